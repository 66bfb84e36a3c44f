// @ts-check
/** Differences of two sequences. */

/**
 * Items of the old sequence in whose place others stand: ``old[oldFrom:oldTo]``. Either may be none.
 * @typedef {{oldFrom: number, oldTo: number, newFrom: number, newTo: number}} Change
 */

/** Comparisons after which two texts are taken for wholly different. */
export const STEPS = 200000;

/**
 * The differences of two sequences, by E. Myers' algorithm, with an end to its patience.
 * @param {string[]} old
 * @param {string[]} fresh
 * @param {number} [most]
 * @returns {{changes: Change[], exact: boolean}}
 */
export function compare(old, fresh, most = STEPS) {
  const least = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < least && old[head] === fresh[head]) head++;
  let tail = 0;
  while (tail < least - head && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail++;
  const whole = { oldFrom: head, oldTo: old.length - tail, newFrom: head, newTo: fresh.length - tail };
  if (head === whole.oldTo && head === whole.newTo) return { changes: [], exact: true };
  if (head === whole.oldTo || head === whole.newTo) return { changes: [whole], exact: true };
  const found = shortest(old.slice(head, whole.oldTo), fresh.slice(head, whole.newTo), most);
  if (found === null) return { changes: [whole], exact: false };
  return { changes: found.map((change) => shifted(change, head)), exact: true };
}

/** @param {Change} change @param {number} by @returns {Change} */
function shifted({ oldFrom, oldTo, newFrom, newTo }, by) {
  return { oldFrom: oldFrom + by, oldTo: oldTo + by, newFrom: newFrom + by, newTo: newTo + by };
}

/**
 * The fewest changes; null: it takes too long to find them.
 * @param {string[]} old
 * @param {string[]} fresh
 * @param {number} most
 * @returns {Change[] | null}
 */
function shortest(old, fresh, most) {
  /** @type {Map<number, number>} */
  const furthest = new Map([[1, 0]]);
  /** @type {Map<number, number>[]} How far each diagonal was followed, by number of differences. */
  const reached = [];
  const on = (/** @type {number} */ diagonal) => furthest.get(diagonal) ?? -1;
  for (let differences = 0, steps = 0; ; differences++) {
    for (let diagonal = -differences; diagonal <= differences; diagonal += 2) {
      const down =
        diagonal === -differences || (diagonal !== differences && on(diagonal - 1) < on(diagonal + 1));
      let x = down ? on(diagonal + 1) : on(diagonal - 1) + 1;
      let y = x - diagonal;
      steps++;
      while (x < old.length && y < fresh.length && old[x] === fresh[y]) {
        x++;
        y++;
        steps++;
      }
      furthest.set(diagonal, x);
      if (x >= old.length && y >= fresh.length) return wayBack(old.length, fresh.length, reached);
    }
    if (steps > most) return null;
    reached.push(new Map(furthest));
  }
}

/** @param {number} x @param {number} y @param {Map<number, number>[]} reached @returns {Change[]} */
function wayBack(x, y, reached) {
  /** @type {Change[]} */
  const changes = [];
  for (let differences = reached.length; differences > 0; differences--) {
    const before = reached[differences - 1];
    const diagonal = x - y;
    const on = (/** @type {number} */ each) => before.get(each) ?? -1;
    const down =
      diagonal === -differences || (diagonal !== differences && on(diagonal - 1) < on(diagonal + 1));
    const fromX = down ? on(diagonal + 1) : on(diagonal - 1);
    const fromY = fromX - (down ? diagonal + 1 : diagonal - 1);
    const toX = down ? fromX : fromX + 1;
    const toY = down ? fromY + 1 : fromY;
    const last = changes.at(-1);
    if (last && last.oldFrom === toX && last.newFrom === toY) {
      changes[changes.length - 1] = { ...last, oldFrom: fromX, newFrom: fromY };
    } else {
      changes.push({ oldFrom: fromX, oldTo: toX, newFrom: fromY, newTo: toY });
    }
    [x, y] = [fromX, fromY];
  }
  return changes.reverse();
}
