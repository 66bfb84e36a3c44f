// @ts-check
/** Numbers as people read them. */

/** A duration: ``3.2s``, ``37s``, ``3:42``. @param {number} value */
export function seconds(value) {
  const taken = Math.max(Number.isFinite(value) ? value : 0, 0);
  if (Math.round(taken * 10) < 100) return `${taken.toFixed(1)}s`;
  return Math.round(taken) < 60 ? `${Math.round(taken)}s` : clock(taken);
}

/** A time that runs: ``0:07``, ``3:42``, ``1:02:03``. @param {number} value */
export function clock(value) {
  const whole = Math.max(Math.round(Number.isFinite(value) ? value : 0), 0);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const [hours, minutes, rest] = [
    Math.floor(whole / 3600),
    Math.floor(whole / 60) % 60,
    whole % 60,
  ];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/**
 * A number of things: ``1 file``, ``3 files``.
 * @param {number} number
 * @param {string} word
 */
export function plural(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}
