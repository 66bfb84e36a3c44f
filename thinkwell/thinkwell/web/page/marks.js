// @ts-check
/** Marks in a line of Markdown, as a tree of plain values. */

import { hostOf, safeLink } from "./links.js";
import { exact, line } from "./text.js";

/**
 * An element to be made, or a text. Tags and attributes are ours; only texts and checked addresses are not.
 * @typedef {string | {tag: string, attrs?: {[name: string]: string}, inner: Mark[]}} Mark
 * @typedef {{kind: string, source: string}} Block A piece of a text that is drawn by itself.
 */

/** Characters of a block in which marks are looked for. */
const MARKED = 20000;
/** Lists, quotes and emphasis in each other. */
export const NESTED = 8;

const SPECIAL = /\\[!-/:-@[-`{-~]|`+|\*\*?|__?|~~|!?\[|<(?=https?:\/\/|mailto:)|https?:\/\//g;

/** Characters that emphasis, and a link, may stretch over. */
const REACH = 2000;

/**
 * The marks in a text.
 * @param {string} text
 * @param {number} [depth]
 * @param {boolean} [links] Whether there may be links in it: in a link there are none.
 * @returns {Mark[]}
 */
export function inline(text, depth = 0, links = true) {
  if (depth > NESTED || text.length > MARKED) return text ? [text] : [];
  /** @type {Mark[]} */
  const marks = [];
  const hopeless = new Set();
  let plain = 0;
  const special = new RegExp(SPECIAL);
  for (let found = special.exec(text); found !== null; found = special.exec(text)) {
    const made = hopeless.has(found[0]) ? null : markAt(text, found.index, found[0], depth, links);
    if (made === null) {
      if (/^[`~]/.test(found[0])) hopeless.add(found[0]); // they were looked for up to the end
      continue;
    }
    if (found.index > plain) marks.push(text.slice(plain, found.index));
    marks.push(...made.marks);
    special.lastIndex = plain = made.end;
  }
  if (plain < text.length) marks.push(text.slice(plain));
  return marks;
}

/**
 * What a special character begins; null: nothing.
 * @param {string} text
 * @param {number} at
 * @param {string} sign
 * @param {number} depth
 * @param {boolean} links
 * @returns {{marks: Mark[], end: number} | null}
 */
function markAt(text, at, sign, depth, links) {
  if (sign[0] === "\\") return { marks: [sign[1]], end: at + 2 };
  if (sign[0] === "`") return codeAt(text, at, sign);
  if (/[*_~]/.test(sign)) return emphasisAt(text, at, sign, depth, links);
  if (!links) return null;
  if (sign[0] === "h") return addressAt(text, at);
  if (sign === "<") return bracketedAt(text, at);
  return linkAt(text, at, sign.length === 2, depth);
}

/** @param {string} text @param {number} at @param {string} sign */
function codeAt(text, at, sign) {
  for (let end = text.indexOf(sign, at + sign.length); end >= 0; end = text.indexOf(sign, end + 1)) {
    let after = end + sign.length;
    if (text[after] !== "`" && text[end - 1] !== "`") {
      const code = text.slice(at + sign.length, end).replaceAll("\n", " ");
      const bare = /^ .*\S.* $/.test(code) ? code.slice(1, -1) : code;
      return { marks: [{ tag: "code", inner: [bare] }], end: after };
    }
    while (text[after] === "`") after++;
    end = after - 1;
  }
  return null;
}

/** @param {string} text @param {number} at @param {string} sign @param {number} depth @param {boolean} links */
function emphasisAt(text, at, sign, depth, links) {
  const begin = at + sign.length;
  const isWord = (/** @type {string | undefined} */ char) =>
    char !== undefined && /[\p{L}\p{N}_]/u.test(char);
  if (begin >= text.length || /\s/.test(text[begin])) return null;
  if (sign[0] === "_" && isWord(text[at - 1])) return null;
  const most = Math.min(text.length, begin + REACH);
  for (let end = text.indexOf(sign, begin + 1); end >= 0 && end < most; end = text.indexOf(sign, end + 1)) {
    const after = end + sign.length;
    if (/\s/.test(text[end - 1]) || text[end - 1] === "\\") continue;
    if (sign[0] === "_" && isWord(text[after])) continue;
    if (sign.length === 1 && (text[after] === sign || text[end - 1] === sign)) continue;
    if (sign.length === 2 && text[after] === sign[0] && text[after + 1] !== sign[0]) continue; // ***both***
    const tag = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" }[sign] ?? "em";
    return { marks: [{ tag, inner: inline(text.slice(begin, end), depth + 1, links) }], end: after };
  }
  return null;
}

/** @param {string} text @param {number} at @param {boolean} isImage @param {number} depth */
function linkAt(text, at, isImage, depth) {
  const begin = at + (isImage ? 2 : 1);
  const close = closing(text, begin, "[", "]");
  if (close < 0 || text[close + 1] !== "(") return null;
  const end = closing(text, close + 2, "(", ")");
  if (end < 0) return null;
  const inside = text.slice(close + 2, end).trim();
  const titled = /^(\S+)(?:\s+(?:"[^"]*"|'[^']*'))?$/.exec(inside);
  if (titled === null) return null;
  const url = titled[1].replace(/^<(.*)>$/, "$1");
  const label = text.slice(begin, close);
  const marks = isImage ? [`image: ${label || "without a name"}`] : inline(label, depth + 1, false);
  return { marks: link(url, marks), end: end + 1 };
}

/** @param {string} text @param {number} from @param {string} open @param {string} close */
function closing(text, from, open, close) {
  let depth = 0;
  for (let at = from; at < Math.min(text.length, from + REACH); at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === open) depth++;
    else if (text[at] === close && depth-- === 0) return at;
  }
  return -1;
}

/** @param {string} text @param {number} at */
function bracketedAt(text, at) {
  const end = text.indexOf(">", at);
  if (end < 0 || end - at > REACH || /\s/.test(text.slice(at, end))) return null;
  const url = text.slice(at + 1, end);
  return { marks: link(url, [url]), end: end + 1 };
}

/** @param {string} text @param {number} at */
function addressAt(text, at) {
  if (at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1])) return null;
  let url = /^[^\s<>"'`|*]+/.exec(text.slice(at, at + REACH))?.[0] ?? "";
  for (let last = ""; url !== last;) {
    last = url;
    url = url.replace(/[.,;:!?_~]+$/, "");
    if (url.endsWith(")") && !url.includes("(")) url = url.slice(0, -1);
    if (url.endsWith("]") && !url.includes("[")) url = url.slice(0, -1);
  }
  return safeLink(url) ? { marks: link(url, [url]), end: at + url.length } : null;
}

/**
 * A link, with where it leads beside it: one that says one thing and leads to another is a way to deceive.
 * @param {string} url
 * @param {Mark[]} inner
 * @returns {Mark[]}
 */
function link(url, inner) {
  const told = inner.map(markText).join("");
  if (safeLink(url) === null) return [...inner, told === url ? "" : ` (${exact(url)})`];
  const leads = hostOf(url) || url.slice(url.indexOf(":") + 1);
  const tells = told === url || told === leads;
  const host = { tag: "span", attrs: { class: "host" }, inner: [` (${line(leads, 300)})`] };
  return [{ tag: "a", attrs: { href: url }, inner: inner.length ? inner : [url] }, ...(tells ? [] : [host])];
}

/** The text of a tree. @param {Mark} mark @returns {string} */
export function markText(mark) {
  return typeof mark === "string" ? mark : mark.inner.map(markText).join("");
}
