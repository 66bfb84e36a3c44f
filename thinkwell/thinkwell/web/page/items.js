// @ts-check
/**
 * The items of a run: its parts on the page, made by the server.
 *
 * The last item of each id up to a moment is the run at that moment. So a replay needs no request,
 * and no server.
 */

/** @import {Json} from "./text.js" */

/**
 * A text, or ``[tag, class, attributes?, …children]``.
 * @typedef {string | [string, string, ...Json[]]} ItemNode
 */

/**
 * An item, as it is sent.
 * @typedef {[number, number, string, [string, number], number, number | null, ItemNode | null, Json]} Sent
 *
 * @typedef {object} Item
 * @property {string} id
 * @property {string} parent The id of what it stands in.
 * @property {number} order Where it stands there.
 * @property {number} seq Number of the entry of the run's log after which it is so.
 * @property {number} at When that was, in seconds of the run.
 * @property {number} began
 * @property {number | null} ended null: it goes on.
 * @property {ItemNode | null} node null: it is gone.
 * @property {{open?: boolean, say?: string, urgent?: boolean, lane?: string, look?: string, cuts?: number[]}} more
 */

/** Most characters of earlier states of items. */
const KEPT = 50e6;

/** @param {Sent} sent @returns {Item} */
function itemOf([seq, at, id, [parent, order], began, ended, node, more]) {
  return { id, parent, order, seq, at, began, ended, node, more };
}

/** Items in their places: a run at one moment. */
export class Shown {
  constructor() {
    /** @type {Map<string, Item>} */
    this.items = new Map();
    /** The items in each place. @type {Map<string, Item[]>} */
    this.places = new Map();
    /** Places whose items are not sorted. @type {Set<string>} */
    this.mixed = new Set();
  }

  /** Put an item into its place, replacing its earlier state; or remove it. @param {Item} item */
  put(item) {
    const before = this.items.get(item.id);
    if (item.node === null && before === undefined) return;
    const place = this.places.get(before?.parent ?? "");
    if (before !== undefined && place !== undefined) {
      const at = place.lastIndexOf(before);
      if (item.node !== null && item.parent === before.parent && item.order === before.order)
        place[at] = item;
      else place.splice(at, 1);
    }
    if (item.node === null) {
      this.items.delete(item.id);
      return;
    }
    this.items.set(item.id, item);
    if (before !== undefined && item.parent === before.parent && item.order === before.order)
      return;
    const others = this.places.get(item.parent);
    if (others === undefined) this.places.set(item.parent, [item]);
    else {
      if (others.length && others[others.length - 1].order > item.order)
        this.mixed.add(item.parent);
      others.push(item);
    }
  }

  /** The items in a place, in order. @param {string} parent @returns {Item[]} */
  inside(parent) {
    const items = this.places.get(parent) ?? [];
    if (this.mixed.delete(parent)) items.sort((one, other) => one.order - other.order);
    return items;
  }
}

/** All items of a run that were sent. */
export class ItemLog {
  constructor() {
    /** The states of each item, the last one at the end. @type {Map<string, Item[]>} */
    this.versions = new Map();
    /** The current run. */
    this.now = new Shown();
    /** Number of the last entry that it includes. */
    this.seq = 0;
    /** Its time, from and to. */
    this.begin = 0;
    this.end = 0;
    this.over = false;
    this.size = 0;
    /** The number of received items. */
    this.version = 0;
  }

  /** Take an item, and return it. @param {Sent} sent @param {number} size Its characters. */
  add(sent, size) {
    const item = itemOf(sent);
    this.version += 1;
    this.seq = Math.max(this.seq, item.seq);
    this.begin = Math.min(this.begin, item.began);
    if (item.id === "final") [this.over, this.end] = [true, item.at];
    else if (!this.over) this.end = Math.max(this.end, item.at);
    this.size += size;
    const known = this.versions.get(item.id);
    if (known === undefined) this.versions.set(item.id, [item]);
    else if (this.size > KEPT || known[known.length - 1].at === item.at)
      known[known.length - 1] = item;
    else {
      known.push(item);
      if (known[known.length - 2].at > item.at) known.sort((one, other) => one.at - other.at);
    }
    this.now.put(item);
    return item;
  }

  /** The run at a moment, in seconds. @param {number} moment @returns {Shown} */
  at(moment) {
    const shown = new Shown();
    for (const versions of this.versions.values()) {
      const last = versions[versions.length - 1];
      const row = this.versions.get(last.id.split(".")[0])?.at(-1);
      const isText = row !== undefined && row !== last && row.more.cuts !== undefined;
      const item = isText && row.began <= moment ? last : lastUpTo(versions, moment);
      if (item !== null) shown.put(item);
    }
    for (const { id, more } of [...shown.items.values()]) {
      const cuts = this.versions.get(id)?.at(-1)?.more.cuts ?? more.cuts;
      if (cuts !== undefined && cuts[cuts.length - 2] > moment)
        cutText(shown, id, shareAt(cuts, moment));
    }
    return shown;
  }
}

/**
 * The state of an item at a moment; null: it did not exist. @param {Item[]} versions @param
 * {number} moment
 */
function lastUpTo(versions, moment) {
  for (let i = versions.length - 1; i >= 0; i--) if (versions[i].at <= moment) return versions[i];
  return null;
}

/** The share of a text at a moment. @param {number[]} cuts @param {number} moment */
function shareAt(cuts, moment) {
  let length = 0;
  for (let i = 0; i < cuts.length && cuts[i] <= moment; i += 2) length = cuts[i + 1];
  return length / Math.max(cuts[cuts.length - 1], 1);
}

/**
 * Cut the text of a row whose parts are complete. @param {Shown} shown @param {string} id @param
 * {number} share
 */
function cutText(shown, id, share) {
  const parts = shown.inside(id).flatMap((part) => [part, ...shown.inside(part.id)]);
  const whole = parts.reduce((sum, { node }) => sum + textOf(node ?? "").length, 0);
  let left = Math.ceil(whole * share);
  for (const part of parts) {
    const { length } = textOf(part.node ?? "");
    if (left <= 0) shown.put({ ...part, node: null });
    else if (length > left) shown.put({ ...part, node: beginningOf(part.node ?? "", left) });
    left -= length;
  }
}

/** The beginning of a node, up to so many characters of its text. @param {ItemNode} node @param {number} most @returns {ItemNode} */
function beginningOf(node, most) {
  if (typeof node === "string") return node.slice(0, most);
  const [tag, look, ...rest] = node;
  let left = most;
  const inner = [];
  for (const part of rest) {
    if (typeof part === "object" && !Array.isArray(part))
      inner.push(tag === "lines" ? cutLines(part, left) : part);
    else if (left > 0) {
      inner.push(beginningOf(part, left));
      left -= textOf(part).length;
    }
  }
  return [tag, look, ...inner];
}

/** @param {Json} lines @param {number} most */
function cutLines(lines, most) {
  return { ...lines, text: String(lines.text).slice(0, most) };
}

/** The text of a node. @param {ItemNode} node @returns {string} */
export function textOf(node) {
  if (typeof node === "string") return node;
  const [tag, , ...rest] = node;
  return rest
    .map((part) => {
      if (typeof part === "string" || Array.isArray(part))
        return textOf(/** @type {ItemNode} */ (part));
      return tag === "lines" ? String(part.text) : "";
    })
    .join("");
}
