// @ts-check
/**
 * Texts that are safe to show, and addresses that are safe to follow. The server has cleaned the
 * agents' texts.
 */

/** @typedef {any} Json A JSON value. */

/**
 * Characters without a use in a line of text: controls and invisible ones. Scripts and emoji need
 * joiners.
 */
const BLANK = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\s]+/gu;

/**
 * A text as one line, its white space folded, of a bounded length.
 * @param {unknown} text
 * @param {number} [limit]
 */
export function line(text, limit = 2000) {
  const beginning = typeof text === "string" ? text.slice(0, 4 * limit) : "";
  const folded = beginning.replace(BLANK, " ").trim();
  return folded.length <= limit ? folded : `${cut(folded, limit - 1)}…`;
}

/** The beginning of a text, without half of a character at its end. @param {string} text @param {number} most */
export function cut(text, most) {
  return text.slice(0, /[\ud800-\udbff]/.test(text.charAt(most - 1)) ? most - 1 : most);
}

/** @param {unknown} value @returns {value is {[key: string]: Json}} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * An address that is safe to follow; null: it is not safe, or its target is uncertain. @param
 * {string} url
 */
export function safeLink(url) {
  if (url.length > 4000 || /[\x00-\x20\x7f-\x9f]/.test(url)) return null;
  if (/^mailto:/i.test(url)) return url;
  return /^https?:\/\/[^/?#\\]+(?:[/?#]|$)/i.test(url) && URL.canParse(url) ? url : null;
}
