// @ts-check
/** The open questions of a run. */

import { button, byId, el, isNarrow, mark } from "./elements.js";
import { textOf } from "./items.js";
import { say } from "./notices.js";
import { QuestionCard } from "./questions.js";

/**
 * @import {Shown} from "./items.js"
 * @import {ItemNode} from "./items.js"
 * @import {QuestionView} from "./questions.js"
 * @import {Json} from "./text.js"
 */

/** Milliseconds for which the page shows that others have answered a question. */
const SETTLED = 15000;

/** Most questions that are shown at once. */
const CARDS = 20;

/**
 * The dock's access to the run.
 * @typedef {QuestionView & {moment: number | null, shown: Shown, panels: {tab: string}}} DockView
 */

/** The open questions of a run, below its timeline. */
export class Dock {
  /** @param {DockView} view */
  constructor(view) {
    this.view = view;
    /** By the ids of their items. @type {Map<string, QuestionCard>} */
    this.cards = new Map();
  }

  draw() {
    const { shown, live, moment, panels } = this.view;
    const open = live ? shown.inside("dock") : [];
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      const focused = card.node.contains(document.activeElement);
      card.node.replaceWith(...(moment === null ? this.settled(id, card) : []));
      this.cards.delete(id);
      const below = byId(isNarrow() && panels.tab !== "timeline" ? "panel" : "timeline");
      if (focused) ([...this.cards.values()][0]?.node ?? below).focus();
    }
    for (const { id, node } of open.slice(0, CARDS)) {
      const known = this.cards.get(id);
      if (known) known.update(/** @type {ItemNode} */ (node));
      else {
        const card = new QuestionCard(/** @type {ItemNode} */ (node), this.view);
        this.cards.set(id, card);
        byId("dock").append(card.node);
      }
    }
  }

  /**
   * Show for a while that others have answered a question. @param {string} id @param {QuestionCard}
   * card
   */
  settled(id, card) {
    const row = this.view.shown.items.get(id.replace(/\.form$/, ""))?.node ?? "";
    const status = find(row, "mark")?.[1];
    const told = find(row, "span", "told");
    if (
      this.view.answered.has(card.id) ||
      told === null ||
      (status !== "done" && status !== "failed")
    )
      return [];
    const text = `${card.title}: ${textOf(told)}`;
    const close = button("button.small", "Dismiss", { onclick: () => node.remove() });
    const node = el("div.settled", mark(status), el("span.grow", text), close);
    setTimeout(() => node.remove(), SETTLED);
    say(text);
    return [node];
  }

  /** Show the time left. @param {number} now Seconds from the start of the run. */
  tick(now) {
    for (const card of this.cards.values()) card.tick(now);
  }

  /**
   * Handle a key in one of the questions, and return whether it has a meaning.
   * @param {string} key
   * @param {HTMLElement} target The focused element.
   */
  press(key, target) {
    const cards = [...this.cards.values()];
    const card =
      cards.find((each) => each.node.contains(target)) ??
      cards.find((each) => each.inSight) ??
      cards[0];
    return card?.press(key) ?? false;
  }
}

/**
 * The first element in a node with a tag, and with a class if one is given. @param {ItemNode} node
 * @param {string} tag @param {string} [look] @returns {Json}
 */
function find(node, tag, look) {
  if (typeof node === "string") return null;
  if (node[0] === tag && (look === undefined || node[1] === look)) return node;
  for (const part of node.slice(2)) {
    const found = Array.isArray(part) ? find(/** @type {ItemNode} */ (part), tag, look) : null;
    if (found !== null) return found;
  }
  return null;
}
