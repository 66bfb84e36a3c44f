// @ts-check
/** A change of a file, drawn. */

import { sideBySide } from "./changes.js";
import { counts, el } from "./elements.js";
import { plural } from "./numbers.js";

/**
 * @import {DiffLine, FileChange} from "./changes.js"
 * @import {Inner} from "./elements.js"
 */

/** Lines of a change that are drawn. */
const DIFF_LINES = 2000;

/**
 * A change of a file as a table.
 * @param {FileChange} change
 * @param {{two?: boolean, title?: string | null, about?: Inner, most?: number}} [how] `two`: both sides.
 */
export function diffNode(change, { two = false, title = null, about = null, most = DIFF_LINES } = {}) {
  const gap = (/** @type {string} */ text) => el("tr", { class: "gap" }, el("td", { colspan: 4 }, text));
  const rows = [];
  let left = most;
  for (const [i, hunk] of change.hunks.entries()) {
    if (i) rows.push(gap("⋯"));
    const lines = hunk.lines.slice(0, left);
    left -= lines.length;
    rows.push(...(two ? sideBySide(lines).map(([old, fresh]) => pairNode(old, fresh)) : lines.map(lineNode)));
    const missing = hunk.more + hunk.lines.length - lines.length;
    if (missing) rows.push(gap(`… ${plural(missing, "more line")}`));
    if (!left) break;
  }
  if (change.more) rows.push(gap(`… ${plural(change.more, "more place")}`));
  if (change.cut) rows.push(gap("too long or too different to be compared line by line"));
  const table = el(
    "table",
    { class: two ? "two" : "one", "aria-label": `Change of ${title ?? "a file"}` },
    el("tbody", {}, ...rows),
  );
  const head = el(
    "div",
    { class: "path" },
    el("span", { class: "mono" }, `${change.isNew ? "new " : ""}${title ?? ""}`),
    about,
    counts(change.added, change.removed),
  );
  return el(
    "div",
    { class: "diff" },
    title === null ? null : head,
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Changed lines" }, table),
  );
}

/** @param {DiffLine} each */
function lineNode(each) {
  const look = { "+": "added", "-": "removed", " ": "" }[each.sign];
  return el(
    "tr",
    {},
    el("td", { class: `number ${look}` }, String(each.old ?? "")),
    el("td", { class: `number ${look}` }, String(each.fresh ?? "")),
    el("td", { class: `sign ${look}` }, each.sign),
    el("td", { class: `code ${look}` }, ...marked(each)),
  );
}

/** @param {DiffLine | null} old @param {DiffLine | null} fresh */
function pairNode(old, fresh) {
  const side = (/** @type {DiffLine | null} */ each, /** @type {number | null | undefined} */ number) => {
    const look = each === null ? "none" : ({ "+": "added", "-": "removed", " ": "" }[each.sign] ?? "");
    return [
      el("td", { class: `number ${look}` }, String(number ?? "")),
      el("td", { class: `code ${look}` }, ...(each === null ? [] : marked(each))),
    ];
  };
  return el("tr", {}, ...side(old, old?.old), ...side(fresh, fresh?.fresh));
}

/** @param {DiffLine} each @returns {Inner[]} */
function marked({ text, spans }) {
  const parts = [];
  let done = 0;
  for (const [from, to] of spans) {
    parts.push(text.slice(done, from), el("mark", {}, text.slice(from, to)));
    done = to;
  }
  return [...parts, text.slice(done)];
}
