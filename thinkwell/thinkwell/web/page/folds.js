// @ts-check
/** Lines of the timeline that can be unfolded. */

import { el, icon, mark } from "./elements.js";
import { seconds } from "./numbers.js";

/**
 * @import {Inner} from "./elements.js"
 * @import {QuestionItem, State} from "./state.js"
 */

/**
 * What rows are drawn with: the run as it is shown, and what the user has done with that.
 * @typedef {object} RowView
 * @property {State} state
 * @property {(key: string, otherwise: boolean) => boolean} isOpen
 * @property {(key: string, open: boolean) => void} toggle
 * @property {(key: string) => number} drawnOf How many characters of a text are drawn.
 * @property {(key: string) => void} drawMore
 * @property {(question: QuestionItem) => string} outcome What became of a question.
 */

/** Seconds of a call, or of a thought, that are worth a word. */
export const LEAST = 0.1;

/**
 * The line of something that can be unfolded.
 * @param {{key: string, open: boolean | null, view: RowView, glyph: string | null, verb: string, status?: string}} about
 *   `open`: null where there is nothing inside.
 * @param {...Inner} inner
 */
export function foldHead({ key, open, view, glyph, verb, status }, ...inner) {
  const parts = [
    status ? mark(status) : null,
    glyph ? icon(glyph) : null,
    el("span", { class: "verb" }, verb),
    ...inner,
  ];
  if (open === null) return el("div", { class: "fold" }, ...parts);
  const turn = icon("fold");
  turn.classList.add("turn");
  const end = parts.at(-1);
  const tail =
    end instanceof HTMLElement && end.classList.contains("end") ? end : el("span", { class: "end" });
  tail.append(turn);
  if (tail !== end) parts.push(tail);
  return el(
    "button",
    {
      type: "button",
      class: "fold",
      "aria-expanded": String(open),
      "data-key": key,
      onclick: () => view.toggle(key, !open),
    },
    ...parts,
  );
}

/** What can be unfolded, as it is unfolded. @param {Node} head @param {Inner[]} inner @param {string} [status] */
export function card(head, inner, status = "") {
  return el("div", { class: `card ${status}`.trim() }, head, el("div", { class: "body" }, ...inner));
}

/** @param {number} began @param {number | null} taken @param {boolean} goesOn */
export function timeNode(began, taken, goesOn) {
  if (taken !== null) return taken < LEAST ? null : el("span", {}, seconds(taken));
  return goesOn ? el("span", { class: "since", "data-since": began }) : null;
}
