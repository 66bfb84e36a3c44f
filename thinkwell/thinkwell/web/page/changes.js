// @ts-check
/** Changes of files, as tool calls tell of them. */

import { compare, STEPS } from "./diffs.js";
import { all, get } from "./lists.js";
import { clean, exact, relative } from "./text.js";
import { PLACES, STATUSES } from "./tools.js";

/**
 * @import {Change} from "./diffs.js"
 * @import {State, ToolItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

/**
 * @typedef {[from: number, to: number]} Span Characters of a line.
 *
 * @typedef {object} DiffLine
 * @property {" " | "+" | "-"} sign
 * @property {string} text
 * @property {number | null} old Its number in the old file; null: it has none there, or it is not known.
 * @property {number | null} fresh The same in the new one.
 * @property {Span[]} spans Which parts changed, where a similar line stands in its place.
 *
 * @typedef {{lines: DiffLine[], more: number}} Hunk Lines that changed, with some around them.
 *
 * @typedef {object} FileChange
 * @property {string} path
 * @property {number} added
 * @property {number} removed
 * @property {Hunk[]} hunks
 * @property {boolean} isNew
 * @property {number} more How many hunks follow that are not here.
 * @property {boolean} cut Whether the texts were too long or too different to be compared line by line.
 */

const CONTEXT = 3;
/** Hunks of a change, and lines of a side of a hunk, that are kept. */
const HUNKS = 40;
const SIDE = 400;
/** Characters of a line that are kept. */
const WIDTH = 500;
/** Characters of both texts, from which on only their common beginning and end are looked for. */
const COMPARED = 2000000;
/** So many lines, with an end to the last one, are taken for a whole file. */
const WHOLE = 20;

/** What was compared once is remembered, by how its lines are shown. */
const changesKnown = { clean: new WeakMap(), exact: new WeakMap() };

/**
 * The change that a piece of a tool's content shows.
 * @param {Json} diff
 * @param {number | undefined} number The line that the call names.
 * @param {"clean" | "exact"} [how] Whether it is to be approved: then what does not show is an escape.
 * @returns {FileChange}
 */
function changeOf(diff, number, how = "clean") {
  const known = changesKnown[how].get(diff);
  if (known !== undefined) return known;
  const show = (/** @type {string} */ text) => lineText(text, how);
  const [old, fresh] = [linesOf(diff.old_text ?? ""), linesOf(diff.new_text)];
  const size = (diff.old_text ?? "").length + diff.new_text.length;
  const { changes, exact } = compare(old, fresh, size <= COMPARED ? STEPS : 0);
  const base = baseOf(diff, number, changes);
  const groups = grouped(changes);
  /** @type {FileChange} */
  const change = {
    path: diff.path,
    added: changes.reduce((sum, each) => sum + each.newTo - each.newFrom, 0),
    removed: changes.reduce((sum, each) => sum + each.oldTo - each.oldFrom, 0),
    hunks: groups.slice(0, HUNKS).map((group) => hunkOf(group, old, fresh, base, show)),
    isNew: diff.old_text == null,
    more: Math.max(groups.length - HUNKS, 0),
    cut: !exact,
  };
  changesKnown[how].set(diff, change);
  return change;
}

/** Lines that changes have added, and removed. @param {{added: number, removed: number}[]} changes */
export function sumsOf(changes) {
  const sum = (/** @type {"added" | "removed"} */ what) => changes.reduce((sum, each) => sum + each[what], 0);
  return /** @type {const} */ ([sum("added"), sum("removed")]);
}

/** @param {string} text */
function linesOf(text) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * The number of the text's first line in its file. Some agents send whole files and some only the lines around
 * a change; none says which.
 * @param {Json} diff
 * @param {number | undefined} number
 * @param {Change[]} changes
 * @returns {number | null}
 */
function baseOf(diff, number, changes) {
  if (diff.old_text == null) return 1;
  if (number !== undefined) return changes.length && number === changes[0].newFrom + 1 ? 1 : number;
  return diff.old_text.endsWith("\n") && linesOf(diff.old_text).length >= WHOLE ? 1 : null;
}

/** @param {Change[]} changes @returns {Change[][]} */
function grouped(changes) {
  /** @type {Change[][]} */
  const groups = [];
  for (const change of changes) {
    const last = groups.at(-1);
    if (last && change.oldFrom - last[last.length - 1].oldTo <= 2 * CONTEXT) last.push(change);
    else groups.push([change]);
  }
  return groups;
}

/**
 * @param {Change[]} group
 * @param {string[]} old
 * @param {string[]} fresh
 * @param {number | null} base
 * @param {(text: string) => string} show
 * @returns {Hunk}
 */
function hunkOf(group, old, fresh, base, show) {
  /** @type {DiffLine[]} */
  const lines = [];
  let more = 0;
  const shift = group[0].oldFrom - group[0].newFrom;
  let at = Math.max(group[0].newFrom - CONTEXT, 0);
  let gone = shift;
  const number = (/** @type {number} */ index) => (base === null ? null : base + index);
  const same = (/** @type {number} */ index) =>
    lines.push({
      sign: " ",
      text: show(fresh[index]),
      old: number(index + gone),
      fresh: number(index),
      spans: [],
    });
  for (const change of group) {
    while (at < change.newFrom) same(at++);
    const oldTo = Math.min(change.oldTo, change.oldFrom + SIDE);
    const newTo = Math.min(change.newTo, change.newFrom + SIDE);
    more += change.oldTo - oldTo + change.newTo - newTo;
    const removed = old.slice(change.oldFrom, oldTo).map(show);
    const added = fresh.slice(change.newFrom, newTo).map(show);
    const marks = removed.map((text, i) => (i < added.length ? spansOf(text, added[i]) : [[], []]));
    removed.forEach((text, i) =>
      lines.push({
        sign: "-",
        text,
        old: number(change.oldFrom + i),
        fresh: null,
        spans: marks[i][0],
      }),
    );
    added.forEach((text, i) =>
      lines.push({
        sign: "+",
        text,
        old: null,
        fresh: number(change.newFrom + i),
        spans: marks[i]?.[1] ?? [],
      }),
    );
    gone += change.oldTo - change.oldFrom - (change.newTo - change.newFrom);
    at = change.newTo;
  }
  const end = Math.min(at + CONTEXT, fresh.length);
  while (at < end) same(at++);
  return { lines, more };
}

/** @param {string} text @param {"clean" | "exact"} how */
function lineText(text, how) {
  const begin = text.slice(0, 2 * WIDTH).replace(/\r$/, "");
  const shown = how === "exact" ? exact(begin) : clean(begin.replaceAll("\r", "␍"));
  return text.length <= 2 * WIDTH && shown.length <= WIDTH ? shown : `${shown.slice(0, WIDTH - 1)}…`;
}

/**
 * Which parts of two lines differ; nothing where they have little in common.
 * @param {string} was
 * @param {string} now
 * @returns {[Span[], Span[]]}
 */
function spansOf(was, now) {
  const old = was.match(/\w+|\s+|[^\w\s]/gu) ?? [];
  const fresh = now.match(/\w+|\s+|[^\w\s]/gu) ?? [];
  const { changes, exact } = compare(old, fresh, 2000);
  const removed = extents(
    old,
    changes.map((change) => [change.oldFrom, change.oldTo]),
  );
  const added = extents(
    fresh,
    changes.map((change) => [change.newFrom, change.newTo]),
  );
  const length = was.trim().length + now.trim().length;
  const changed = [...removed, ...added].reduce((sum, [from, to]) => sum + to - from, 0);
  return !exact || !length || (length - changed) / length < 0.4 ? [[], []] : [removed, added];
}

/** Where words are, in characters. @param {string[]} words @param {number[][]} ranges @returns {Span[]} */
function extents(words, ranges) {
  const starts = [0];
  for (const word of words) starts.push(starts[starts.length - 1] + word.length);
  /** @type {Span[]} */
  const found = [];
  for (const [from, to] of ranges) {
    if (from === to) continue;
    const last = found.at(-1);
    const gap = last ? words.slice(starts.indexOf(last[1]), from).join("") : "x";
    if (last && !gap.trim()) last[1] = starts[to];
    else found.push([starts[from], starts[to]]);
  }
  return found;
}

/**
 * The lines of a hunk side by side: what was removed beside what came in its place.
 * @param {DiffLine[]} lines
 * @returns {[DiffLine | null, DiffLine | null][]}
 */
export function sideBySide(lines) {
  /** @type {[DiffLine | null, DiffLine | null][]} */
  const rows = [];
  let removed = /** @type {DiffLine[]} */ ([]);
  let added = /** @type {DiffLine[]} */ ([]);
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++)
      rows.push([removed[i] ?? null, added[i] ?? null]);
    [removed, added] = [[], []];
  };
  for (const each of lines) {
    if (each.sign === " ") {
      flush();
      rows.push([each, each]);
    } else if (each.sign === "-") {
      if (added.length) flush();
      removed.push(each);
    } else added.push(each);
  }
  flush();
  return rows;
}

/**
 * The changes that a tool call shows.
 * @param {ToolItem} tool
 * @param {"clean" | "exact"} [how]
 * @returns {FileChange[]}
 */
export function changesOf(tool, how = "clean") {
  const lines = new Map(tool.locations.slice(0, PLACES).map((place) => [place.path, place.line]));
  return tool.content
    .filter((part) => part.type === "diff")
    .map((part) => changeOf(part, lines.get(part.path), how));
}

/**
 * @typedef {object} ChangedFile What became of a file in a run.
 * @property {string} path As seen from the folder of the session.
 * @property {number} added
 * @property {number} removed
 * @property {boolean} isNew
 * @property {{change: FileChange, status: string}[]} edits
 */

/** The files that a run has changed, or wants to. Calls that failed are left out. @param {State} state */
export function filesChanged(state) {
  /** @type {Map<string, ChangedFile>} */
  const files = new Map();
  for (const number of all(state.edits)) {
    const tool = /** @type {ToolItem} */ (get(state.items, number));
    if (tool.status === "failed" || tool.status === "cancelled") continue;
    for (const change of changesOf(tool)) {
      const path = relative(change.path, state.cwd);
      const file = files.get(path) ?? { path, added: 0, removed: 0, isNew: change.isNew, edits: [] };
      file.added += change.added;
      file.removed += change.removed;
      file.edits.push({ change, status: STATUSES[tool.status] ?? "pending" });
      files.set(path, file);
    }
  }
  return [...files.values()];
}
