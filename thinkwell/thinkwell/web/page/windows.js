// @ts-check
/** Windows of long lists: which rows are in the document. */

/** Rows from which on only those near the visible part of a list are in the document. */
export const LONG = 500;

/** So near to its end the timeline counts as at its end. */
export const NEAR = 48;

/** Pixels above and below the visible part that are in the document too. */
const AROUND = 1200;

/**
 * Where each row begins, and at last where all of them end.
 * @param {ReadonlyArray<{id: string}>} rows
 * @param {ReadonlyMap<string, number>} heights Those that were measured.
 * @param {number} guess What is taken for the height of the others.
 */
export function topsOf(rows, heights, guess) {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach(({ id }, i) => {
    tops[i + 1] = tops[i] + (heights.get(id) ?? guess);
  });
  return tops;
}

/**
 * Which rows are in the document: from, and up to.
 * @param {Float64Array} tops
 * @param {number} top Where the visible part begins.
 * @param {number} height How high it is.
 * @returns {[number, number]}
 */
export function windowOf(tops, top, height) {
  const rows = tops.length - 1;
  if (rows <= LONG) return [0, rows];
  return [rowAt(tops, top - AROUND), Math.min(rowAt(tops, top + height + AROUND) + 1, rows)];
}

/** The row at a height. @param {Float64Array} tops @param {number} height */
export function rowAt(tops, height) {
  let [low, high] = [0, tops.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= height) low = middle;
    else high = middle - 1;
  }
  return Math.max(low, 0);
}
