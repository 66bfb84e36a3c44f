// @ts-check
/** Blocks of Markdown, as a tree of plain values. */

import { inline, NESTED } from "./marks.js";
import { plural } from "./numbers.js";
import { line } from "./text.js";

/** @import {Block, Mark} from "./marks.js" */

const TABLE_ROWS = 500;
const TABLE_COLUMNS = 50;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const LISTED = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const DELIMITER = /^ *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$/;

/**
 * The blocks of a clean text. The last one may go on with the next piece of the text; the others stay.
 * @param {string} text
 * @returns {Block[]}
 */
export function blocksOf(text) {
  const lines = text.split("\n");
  /** @type {Block[]} */
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at++;
      continue;
    }
    const [kind, end] = blockAt(lines, at);
    blocks.push({ kind, source: lines.slice(at, end).join("\n") });
    at = end;
  }
  return blocks;
}

/** What begins at a line, and where it ends. @param {string[]} lines @param {number} at @returns {[string, number]} */
function blockAt(lines, at) {
  const fence = FENCE.exec(lines[at]);
  if (fence) return ["code", fenceEnd(lines, at, fence[1])];
  if (HEADING.test(lines[at])) return ["heading", at + 1];
  if (RULE.test(lines[at])) return ["rule", at + 1];
  if (QUOTE.test(lines[at])) return ["quote", endOf(lines, at, (each) => QUOTE.test(each))];
  if (LISTED.test(lines[at])) return ["list", listEnd(lines, at)];
  if (isTable(lines, at)) return ["table", endOf(lines, at, (each) => each.includes("|"))];
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !interrupts(lines, end)) end++;
  return ["text", end];
}

/** @param {string[]} lines @param {number} at @param {string} mark */
function fenceEnd(lines, at, mark) {
  for (let end = at + 1; end < lines.length; end++) {
    const close = lines[end].trim();
    if (close.length >= mark.length && close === mark[0].repeat(close.length)) return end + 1;
  }
  return lines.length;
}

/** @param {string[]} lines @param {number} at @param {(line: string) => boolean} belongs */
function endOf(lines, at, belongs) {
  let end = at;
  while (end < lines.length && belongs(lines[end])) end++;
  return end;
}

/** @param {string[]} lines @param {number} at */
function listEnd(lines, at) {
  for (let end = at + 1; end < lines.length; end++) {
    if (!lines[end].trim()) {
      const next = lines[end + 1];
      if (next === undefined || !(LISTED.test(next) || /^ {2,}\S/.test(next))) return end;
    } else if (
      RULE.test(lines[end]) ||
      (!/^ /.test(lines[end]) && interrupts(lines, end) && !LISTED.test(lines[end]))
    ) {
      return end;
    }
  }
  return lines.length;
}

/** @param {string[]} lines @param {number} at */
function isTable(lines, at) {
  return (
    lines[at].includes("|") &&
    at + 1 < lines.length &&
    lines[at + 1].includes("|") &&
    DELIMITER.test(lines[at + 1])
  );
}

/** @param {string[]} lines @param {number} at */
function interrupts(lines, at) {
  const each = lines[at];
  const listed = LISTED.exec(each);
  const begins = listed !== null && listed[3] !== "" && (!/\d/.test(listed[2]) || /^1[.)]$/.test(listed[2]));
  return (
    begins ||
    FENCE.test(each) ||
    HEADING.test(each) ||
    RULE.test(each) ||
    QUOTE.test(each) ||
    isTable(lines, at)
  );
}

/** A block as a tree. @param {Block} block @param {number} [depth] @returns {Mark} */
export function markOf({ kind, source }, depth = 0) {
  switch (kind) {
    case "code":
      return codeMark(source);
    case "heading": {
      const [, marks, text] = /** @type {RegExpExecArray} */ (HEADING.exec(source));
      const level = String(Math.min(marks.length + 2, 6)); // the page has headings of its own above
      return { tag: `h${level}`, inner: inline((text ?? "").replace(/(^|[ \t])#+[ \t]*$/, "")) };
    }
    case "rule":
      return { tag: "hr", inner: [] };
    case "quote":
      return { tag: "blockquote", inner: inside(source.replace(new RegExp(QUOTE, "gm"), ""), depth) };
    case "list":
      return listMark(source.split("\n"), depth);
    case "table":
      return tableMark(source.split("\n"));
    default:
      return { tag: "p", inner: inline(source.trim()) };
  }
}

/** @param {string} text @param {number} depth @returns {Mark[]} */
function inside(text, depth) {
  if (depth >= NESTED) return [{ tag: "p", inner: [text] }];
  return blocksOf(text).map((block) => markOf(block, depth + 1));
}

/** @param {string} source @returns {Mark} */
function codeMark(source) {
  const lines = source.split("\n");
  const [, mark, info] = /** @type {RegExpExecArray} */ (FENCE.exec(lines[0]));
  const closed =
    lines.length > 1 &&
    fenceEnd(lines, 0, mark) === lines.length &&
    lines[lines.length - 1].trim().startsWith(mark);
  const text = lines.slice(1, closed ? -1 : undefined).join("\n");
  const language = line(info.trim().split(/\s/)[0], 30);
  return {
    tag: "pre",
    attrs: language ? { "data-language": language } : {},
    inner: [{ tag: "code", inner: [text] }],
  };
}

/** @param {string[]} lines @param {number} depth @returns {Mark} */
function listMark(lines, depth) {
  const [, indent, marker] = /** @type {RegExpExecArray} */ (LISTED.exec(lines[0]));
  /** @type {string[][]} */
  const items = [];
  let offset = 0;
  for (const each of lines) {
    const found = LISTED.exec(each);
    if (found && found[1].length <= indent.length + 1) {
      offset = found[0].length;
      items.push([each.slice(offset)]);
    } else {
      const leading = /^ */.exec(each)?.[0].length ?? 0;
      items[items.length - 1].push(each.slice(Math.min(leading, offset)));
    }
  }
  const ordered = /\d/.test(marker);
  const attrs = ordered && parseInt(marker, 10) !== 1 ? { start: String(parseInt(marker, 10)) } : undefined;
  return { tag: ordered ? "ol" : "ul", attrs, inner: items.map((item) => itemMark(item.join("\n"), depth)) };
}

/** @param {string} text @param {number} depth @returns {Mark} */
function itemMark(text, depth) {
  const task = /^\[([ xX])\] /.exec(text);
  const inner = inside(task ? text.slice(4) : text, depth);
  const [only] = inner;
  const flat =
    inner.length && typeof only !== "string" && only.tag === "p" ? [...only.inner, ...inner.slice(1)] : inner;
  const box = task ? [task[1] === " " ? "☐ " : "☑ "] : [];
  return { tag: "li", attrs: task ? { class: "task" } : {}, inner: [...box, ...flat] };
}

/** @param {string[]} lines @returns {Mark} */
function tableMark(lines) {
  const sides = cellsOf(lines[1]).map(
    (cell) => `${cell.startsWith(":") ? "l" : ""}${cell.endsWith(":") ? "r" : ""}`,
  );
  const row = (/** @type {string} */ each, /** @type {string} */ tag) => {
    const cells = cellsOf(each).slice(0, sides.length);
    const attrs = (/** @type {number} */ i) => ({ r: { class: "right" }, lr: { class: "middle" } })[sides[i]];
    return { tag: "tr", inner: cells.map((cell, i) => ({ tag, attrs: attrs(i), inner: inline(cell) })) };
  };
  const body = lines.slice(2, 2 + TABLE_ROWS).map((each) => row(each, "td"));
  const more = lines.length - 2 - TABLE_ROWS;
  const rest =
    more > 0 ? [{ tag: "tr", inner: [{ tag: "td", inner: [`… ${plural(more, "more row")}`] }] }] : [];
  const head = { tag: "thead", inner: [row(lines[0], "th")] };
  return { tag: "table", inner: [head, { tag: "tbody", inner: [...body, ...rest] }] };
}

/** @param {string} row @returns {string[]} */
function cellsOf(row) {
  const cells = row
    .trim()
    .replace(/^\|/, "")
    .replace(/(^|[^\\])\|$/, "$1")
    .split(/(?<!\\)\|/, TABLE_COLUMNS);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}
