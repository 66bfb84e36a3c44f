// @ts-check
/** Windows of long lists: the rows that are in the document. */

/** Rows from which on only those near the visible part of a list are in the document. */
export const LONG = 500;

/** Pixels from its end at which the timeline counts as at its end. */
export const NEAR = 48;

/** Pixels above and below the visible part that are in the document too. */
const AROUND = 1200;

/**
 * The top of each row, and the end of the last.
 * @param {ReadonlyArray<{id: string}>} rows
 * @param {ReadonlyMap<string, number>} heights The measured heights.
 * @param {number} guess The assumed height of the others.
 */
export function topsOf(rows, heights, guess) {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach(({ id }, i) => {
    tops[i + 1] = tops[i] + (heights.get(id) ?? guess);
  });
  return tops;
}

/**
 * The rows in the document: from, and up to.
 * @param {Float64Array} tops
 * @param {number} top The top of the visible part.
 * @param {number} height Its height.
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
