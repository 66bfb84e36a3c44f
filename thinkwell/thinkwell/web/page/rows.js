// @ts-check
/** Rows of the timeline: which items have one, and which share one. */

import { all } from "./lists.js";
import { plural } from "./numbers.js";
import { describe } from "./tools.js";

/**
 * @import {List} from "./lists.js"
 * @import {Item, State, ToolItem} from "./state.js"
 * @import {Call} from "./tools.js"
 */

/**
 * A row of the timeline: an item, or several tool calls in one line.
 * @typedef {object} Row
 * @property {string} key
 * @property {Item} item
 * @property {ToolItem[]} folded The calls that share the line, where there are several.
 * @property {number} depth How deep it stands in sub-agents.
 * @property {number | null} until When the next item began; null: it is the last one.
 */

/** Sub-agents of sub-agents that are drawn in their places. */
const DEPTH = 4;

/** @type {WeakMap<List<Item>, Row[]>} */
const rowsKnown = new WeakMap();

/** The rows of a run. @param {State} state @returns {Row[]} */
export function rowsOf(state) {
  const known = rowsKnown.get(state.items);
  if (known !== undefined) return known;
  const rows = arranged(all(state.items));
  rowsKnown.set(state.items, rows);
  return rows;
}

/** @param {Item[]} items */
function arranged(items) {
  /** @type {Map<string, number[]>} */
  const children = new Map();
  const seen = new Set();
  const about = new Set();
  const nested = new Set();
  items.forEach((item, number) => {
    if (item.kind === "question" && item.tool !== null) about.add(item.tool);
    if (item.kind !== "tool") return;
    if (item.parent !== null && seen.has(item.parent)) {
      nested.add(number);
      const siblings = children.get(item.parent);
      if (siblings === undefined) children.set(item.parent, [number]);
      else siblings.push(number);
    }
    seen.add(item.id);
  });
  /** @type {Row[]} */
  const rows = [];
  /** @type {[number, number][]} Numbers of items with their depths, those to come first last. */
  const open = items.map((_, number) => /** @type {[number, number]} */ ([number, 0])).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [number, depth] = next;
    if (depth === 0 && nested.has(number)) continue;
    addRow(rows, items, number, depth, (item) => folds(item, about, children));
    const item = items[number];
    const inner = item.kind === "tool" ? (children.get(item.id) ?? []) : [];
    for (const child of inner.toReversed()) open.push([child, Math.min(depth + 1, DEPTH)]);
  }
  return rows;
}

/**
 * @param {Row[]} rows
 * @param {Item[]} items
 * @param {number} number
 * @param {number} depth
 * @param {(item: Item) => boolean} foldable
 */
function addRow(rows, items, number, depth, foldable) {
  const item = items[number];
  const last = rows.at(-1);
  if (last && depth === last.depth && foldable(item) && foldable(last.item)) {
    if (!last.folded.length) last.folded.push(/** @type {ToolItem} */ (last.item));
    last.folded.push(/** @type {ToolItem} */ (item));
  } else if (item.kind !== "turn" || item.number > 1 || item.reminder) {
    rows.push({ key: String(number), item, folded: [], depth, until: items[number + 1]?.at ?? null });
  }
}

/**
 * Whether a call may share a line with those next to it: it has only looked at something.
 * @param {Item} item
 * @param {Set<string>} about
 * @param {Map<string, number[]>} children
 */
function folds(item, about, children) {
  return (
    item.kind === "tool" &&
    (item.does === "read" || item.does === "search") &&
    item.status === "completed" &&
    !about.has(item.id) &&
    !children.has(item.id)
  );
}

/** Whether two rows show the same. @param {Row} one @param {Row} other */
export function sameRow(one, other) {
  return (
    one.item === other.item &&
    one.until === other.until &&
    one.depth === other.depth &&
    one.folded.length === other.folded.length &&
    one.folded.every((tool, i) => tool === other.folded[i])
  );
}

/** Calls in one line: ``read models.py, db.py (+4)``. @param {ToolItem[]} tools @param {string} cwd @returns {Call} */
export function describeFold(tools, cwd) {
  const calls = tools.map((tool) => ({ does: tool.does, ...describe(tool, cwd) }));
  const does = calls.some((call) => call.does === "read") ? "read" : "search";
  const targets = [...new Set(calls.filter((call) => call.does === does).map((call) => call.target))];
  const searches = does === "read" ? calls.filter((call) => call.does === "search").length : 0;
  const more = [
    ...(targets.length > 2 ? [`+${targets.length - 2}`] : []),
    ...(searches ? [plural(searches, "search", "searches")] : []),
  ];
  const began = Math.min(...tools.map((tool) => tool.began));
  return {
    verb: does,
    target: targets.slice(0, 2).join(", ") + (more.length ? ` (${more.join(", ")})` : ""),
    status: "done",
    seconds: Math.max(...tools.map((tool) => tool.ended ?? tool.began)) - began,
    doing: "",
  };
}
