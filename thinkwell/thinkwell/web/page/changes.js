// @ts-check
/** Styled texts: code, outputs, and changes of files. */

import { el } from "./elements.js";

/** @import {Json} from "./text.js" */

/** @param {Json} lines @returns {[string, string][]} */
function piecesOf({ text, runs }) {
  /** @type {[string, string][]} */
  const pieces = [];
  let at = 0;
  const points = Array.from(String(text)); // lengths count characters, not UTF-16 units
  for (let i = 0; i + 1 < runs.length && at < points.length; i += 2) {
    pieces.push([points.slice(at, at + runs[i]).join(""), String(runs[i + 1])]);
    at += runs[i];
  }
  return pieces;
}

/** The pieces of a text as elements. @param {Json} lines @returns {(string | Node)[]} */
export function styledRuns(lines) {
  return piecesOf(lines).map(([text, look]) => (look ? el("span", { class: look }, text) : text));
}

/**
 * A line of a change.
 * @typedef {{look: string, numbers: [number | null, number | null], inner: (string | Node)[]}} Line
 */

/** @param {Json} lines @returns {Line[]} */
function linesOf(lines) {
  /** @type {Line[]} */
  const found = [];
  for (const [text, looks] of piecesOf(lines)) {
    const [look, ...own] = looks.split(" ");
    const kind = own.find((each) => each !== "marked");
    text.split("\n").forEach((piece, i) => {
      if (i || !found.length)
        found.push({ look, numbers: lines.numbers?.[found.length] ?? [null, null], inner: [] });
      const { inner } = found[found.length - 1];
      const word = kind ? el(`span.${kind}`, piece) : piece;
      const last = inner[inner.length - 1];
      if (own[0] !== "marked") inner.push(word);
      else if (last instanceof Element && last.matches("mark")) last.append(word);
      else inner.push(el("mark", word));
    });
  }
  for (const line of found) line.inner[0] = String(line.inner[0]).slice(1); // the sign
  return found;
}

const SIGNS = /** @type {const} */ ({ added: "+", removed: "-", same: " " });

/**
 * Lines of a change as a table.
 * @param {Json} lines
 * @param {boolean} two Whether both sides are side by side.
 */
export function changeTable(lines, two) {
  const rows = two ? sideBySide(linesOf(lines)).map(pairRow) : linesOf(lines).map(lineRow);
  const table = el(
    "table",
    { class: two ? "two" : "one", "aria-label": "Changed lines" },
    el("tbody", ...rows),
  );
  return el("div.scroll", { tabindex: "0", role: "group", "aria-label": "Changed lines" }, table);
}

/** @param {Line} line */
function lineRow({ look, numbers, inner }) {
  return el(
    "tr",
    el(`td.number.${look}`, String(numbers[0] ?? "")),
    el(`td.number.${look}`, String(numbers[1] ?? "")),
    el(`td.sign.${look}`, SIGNS[/** @type {"same"} */ (look)] ?? ""),
    el(`td.code.${look}`, ...inner),
  );
}

/** The lines of a change in pairs: what was removed beside what was added. @param {Line[]} lines @returns {[Line | null, Line | null][]} */
function sideBySide(lines) {
  /** @type {[Line | null, Line | null][]} */
  const pairs = [];
  let free = 0; // the first line that was removed and has nothing beside it
  for (const line of lines) {
    if (line.look === "removed") pairs.push([line, null]);
    else if (line.look === "added" && free < pairs.length) pairs[free++][1] = line;
    else free = pairs.push([line.look === "added" ? null : line, line]);
  }
  return pairs;
}

/** @param {[Line | null, Line | null]} pair */
function pairRow([old, fresh]) {
  const side = (/** @type {Line | null} */ line, /** @type {0 | 1} */ number) => {
    const look = line?.look ?? "none";
    const inner = (line?.inner ?? []).map((each) =>
      typeof each === "string" ? each : each.cloneNode(true),
    );
    return [
      el(`td.number.${look}`, String(line?.numbers[number] ?? "")),
      el(`td.code.${look}`, ...inner),
    ];
  };
  return el("tr", ...side(old, 0), ...side(fresh, 1));
}
