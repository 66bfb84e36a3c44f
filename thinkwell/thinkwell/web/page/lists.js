// @ts-check
/** Lists, texts and indexes that share what did not change. */

import { cut } from "./text.js";

const CHUNK = 128;

/**
 * A list that is never changed: what is made of it shares all of its chunks but one.
 * @template T
 * @typedef {{readonly length: number, readonly chunks: ReadonlyArray<ReadonlyArray<T>>}} List
 */

/** @type {List<never>} */
export const EMPTY = Object.freeze({ length: 0, chunks: [] });

/** @template T @param {List<T>} list @param {number} index @returns {T} */
export function get(list, index) {
  return list.chunks[Math.floor(index / CHUNK)][index % CHUNK];
}

/** @template T @param {List<T>} list @param {number} index @param {T} value @returns {List<T>} */
export function put(list, index, value) {
  const chunks = list.chunks.slice();
  const chunk = chunks[Math.floor(index / CHUNK)]?.slice() ?? [];
  chunk[index % CHUNK] = value;
  chunks[Math.floor(index / CHUNK)] = chunk;
  return { length: Math.max(list.length, index + 1), chunks };
}

/** @template T @param {List<T>} list @param {T} value @returns {List<T>} */
export function push(list, value) {
  return put(list, list.length, value);
}

/** @template T @param {List<T>} list @returns {T[]} */
export function all(list) {
  return /** @type {T[]} */ ([]).concat(...list.chunks);
}

/** Characters of a piece of a text. Pieces that are full are shared by all states from then on. */
const PIECE = 16384;

/**
 * A text that grows: so every state that has a part of it costs little, however long it is.
 * @typedef {{readonly pieces: ReadonlyArray<string>, readonly length: number}} Text
 */

/** @type {Text} */
export const NO_TEXT = Object.freeze({ pieces: [], length: 0 });

/** @param {Text} text @param {string} more @returns {Text} */
export function longer(text, more) {
  const pieces = text.pieces.slice();
  const last = pieces.at(-1);
  if (last !== undefined && last.length < PIECE) pieces[pieces.length - 1] = last + more;
  else pieces.push(more);
  return { pieces, length: text.length + more.length };
}

/** Its first characters, at most so many. @param {Text} text @param {number} [most] */
export function beginning({ pieces, length }, most = length) {
  let begin = "";
  for (const piece of pieces) {
    if (begin.length >= most) break;
    begin += piece;
  }
  return cut(begin, most);
}

/** Its last characters. @param {Text} text @param {number} most */
export function ending({ pieces }, most) {
  let end = "";
  for (let i = pieces.length - 1; i >= 0 && end.length < most; i--) end = pieces[i] + end;
  return end.slice(-most);
}

const BUCKETS = 128;

/** Numbers by name. @typedef {ReadonlyArray<ReadonlyMap<string, number> | undefined>} Index */

/** @type {Index} */
export const NOWHERE = Object.freeze([]);

/** @param {string} name */
function bucket(name) {
  let hash = name.length;
  for (let i = 0; i < Math.min(name.length, 200); i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return (hash >>> 0) % BUCKETS;
}

/** The number of a name; -1: it has none. @param {Index} index @param {string} name */
export function find(index, name) {
  return index[bucket(name)]?.get(name) ?? -1;
}

/** @param {Index} index @param {string} name @param {number} number @returns {Index} */
export function named(index, name, number) {
  const buckets = index.slice();
  buckets[bucket(name)] = new Map(index[bucket(name)] ?? []).set(name, number);
  return buckets;
}
