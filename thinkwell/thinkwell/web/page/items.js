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
 * @property {{open?: boolean, say?: string | true, urgent?: boolean, lane?: string, look?: string, cuts?: number[]}} more
 */

/** Most characters of earlier states of items. */
const KEPT = 50e6;

/** Items in their places: a run at one moment. */
export class Shown {
  constructor() {
    /** @type {Map<string, Item>} */
    this.items = new Map();
    /** The items in each place, by id. @type {Map<string, Map<string, Item>>} */
    this.places = new Map();
    /** The items in each place in order, as far as asked for since they have changed. @type {Map<string, Item[]>} */
    this.sorted = new Map();
  }

  /** Put an item into its place, replacing its earlier state; or remove it. @param {Item} item */
  put(item) {
    const { id, parent, node } = item;
    const before = this.items.get(id);
    if (before !== undefined) this.sorted.delete(before.parent);
    if (before !== undefined && (node === null || parent !== before.parent))
      this.places.get(before.parent)?.delete(id);
    this.items.delete(id);
    if (node === null) return;
    this.items.set(id, item);
    const place = this.places.get(parent) ?? new Map();
    this.places.set(parent, place.set(id, item));
    this.sorted.delete(parent);
  }

  /** The items in a place, in order. @param {string} parent @returns {Item[]} */
  inside(parent) {
    const known = this.sorted.get(parent);
    if (known !== undefined) return known;
    const items = [...(this.places.get(parent)?.values() ?? [])];
    this.sorted.set(parent, items);
    return items.sort((one, other) => one.order - other.order);
  }

  /** The parts of a text, in order. @param {string} id @returns {Item[]} */
  parts(id) {
    return this.inside(id).flatMap((part) => [part, ...this.inside(part.id)]);
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
    const [seq, at, id, [parent, order], began, ended, node, more] = sent;
    const item = { id, parent, order, seq, at, began, ended, node, more };
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
  const parts = shown.parts(id);
  const whole = parts.reduce((sum, { node }) => sum + textOf(node ?? "").length, 0);
  const most = { left: Math.ceil(whole * share) };
  for (const part of parts)
    shown.put({ ...part, node: most.left > 0 ? beginningOf(part.node ?? "", most) : null });
}

/** The beginning of a node, up to so many characters of its text. @param {ItemNode} node @param {{left: number}} most @returns {ItemNode} */
function beginningOf(node, most) {
  if (typeof node === "string") {
    const text = node.slice(0, most.left);
    most.left -= text.length;
    return text;
  }
  const [tag, look, ...rest] = node;
  const inner = rest.flatMap((part) => {
    if (typeof part === "string" || Array.isArray(part))
      return most.left > 0 ? [beginningOf(/** @type {ItemNode} */ (part), most)] : [];
    return tag === "lines" ? { ...part, text: beginningOf(String(part.text), most) } : part;
  });
  return [tag, look, ...inner];
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
