// @ts-check
/** Texts that are fit to be shown, and JSON values as texts. */

import { count } from "./numbers.js";

/** @typedef {any} Json A JSON value. */

/** Characters of a line. A title of a megabyte costs no more than that. */
const LINE = 2000;

const PLAIN = /^[\n\t -~]*$/;

/** What a terminal obeys. No part goes on past where another may begin, so it takes linear time. */
const SEQUENCES = new RegExp(
  [
    "(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]",
    "(?:\\x1b\\]|\\x9d)[^\\x07\\x1b\\x80-\\x9f]{0,10000}(?:\\x07|\\x1b\\\\|\\x9c)",
    "(?:\\x1b[PX^_]|[\\x90\\x98\\x9e\\x9f])[^\\x1b\\x80-\\x9f]{0,10000}(?:\\x1b\\\\|\\x9c)",
    "\\x1b[ -/]*[0-OQ-WYZ\\\\`-~]",
  ].join("|"),
  "g",
);

/** What does not print, but for line feeds, tabs, and the joiners that scripts and emoji need. */
const UNPRINTED = /(?![\n\t\u200c\u200d\u3000 ])[\p{C}\p{Z}\u{e0000}-\u{e0fff}]/gu;

/** What does not show and changes nothing that matters: hints where to break a line, and their like. */
const DROPPED = new Set("\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff");

/** Heaps of marks on one character cover the lines around. No script needs more than eight. */
const HEAP = /([\p{Mn}\p{Me}\u200c\u200d]{8})[\p{Mn}\p{Me}\u200c\u200d]+/gu;

/** Characters that count as printable and show nothing; texts were hidden in some of them. */
const BLANK =
  /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc]|(?![\n ])[\p{C}\p{Z}\u{e0000}-\u{e0fff}]/gu;

/**
 * Prose of which nothing controls a display: escape sequences and what does not show are gone, and what would
 * turn the direction of writing has its number in its place.
 * @param {string} text
 */
export function clean(text) {
  if (PLAIN.test(text)) return text;
  const told = text
    .replace(SEQUENCES, "")
    .replace(/\r\n?/g, "\n")
    .replace(UNPRINTED, standIn)
    .replace(HEAP, "$1");
  return /^[\p{Mn}\p{Me}\u200c\u200d]/u.test(told) ? `◌${told}` : told;
}

/** @param {string} char */
function standIn(char) {
  const number = char.codePointAt(0) ?? 0;
  if (number >= 0xe0000 && number <= 0xe0fff) return `\\U${number.toString(16).padStart(8, "0")}`;
  if (DROPPED.has(char)) return "";
  if (number < 0x20) return String.fromCharCode(0x2400 + number);
  if (number === 0x7f) return "␡";
  if (/\p{Zs}/u.test(char)) return " ";
  if (/\p{Cs}/u.test(char)) return "\ufffd";
  if (
    /[\p{Co}\p{Cn}]/u.test(char) &&
    number < 0xe0000 &&
    (number > 0xffff || (number >= 0xe000 && number < 0xf900))
  ) {
    return char; // emoji of next year, and the icons of fonts
  }
  return number <= 0xffff
    ? `\\u${number.toString(16).padStart(4, "0")}`
    : `\\U${number.toString(16).padStart(8, "0")}`;
}

/**
 * What a person is to approve: nothing is dropped, and what does not show is written as JSON escapes it.
 * @param {string} text
 */
export function exact(text) {
  return PLAIN.test(text) && !text.includes("\t") ? text : text.replace(BLANK, escaped);
}

/** @param {string} char */
function escaped(char) {
  const units = Array.from({ length: char.length }, (_, i) =>
    char.charCodeAt(i).toString(16).padStart(4, "0"),
  );
  return units.map((unit) => `\\u${unit}`).join("");
}

/**
 * A text as one line, its white space folded, of a bounded length.
 * @param {unknown} text
 * @param {number} [limit]
 */
export function line(text, limit = LINE) {
  if (typeof text !== "string") return "";
  const folded = clean(cut(text, 4 * limit))
    .replace(/\s+/g, " ")
    .trim();
  return folded.length <= limit && text.length <= 4 * limit ? folded : `${cut(folded, limit - 1)}…`;
}

/** The beginning of a text, without half of a character at its end. @param {string} text @param {number} most */
export function cut(text, most) {
  return text.slice(0, /[\ud800-\udbff]/.test(text.charAt(most - 1)) ? most - 1 : most);
}

/**
 * @param {string} text
 * @param {number} limit
 */
export function shortened(text, limit) {
  return text.length <= limit
    ? text
    : `${cut(text, limit)}\n… and ${count(text.length - limit)} more characters`;
}

/**
 * @param {Json} value
 * @param {number} [indent]
 */
export function json(value, indent = 2) {
  try {
    return JSON.stringify(value, null, indent) ?? "";
  } catch {
    return "nested too deep to be shown";
  }
}

/**
 * Values by name, of which a name that an agent made up finds none: not what every object has either.
 * @template T
 * @param {{[name: string]: T}} values
 * @returns {{[name: string]: T | undefined}}
 */
export function table(values) {
  return Object.assign(Object.create(null), values);
}

/** @param {unknown} value @returns {value is {[key: string]: Json}} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
