// @ts-check
/** What agents send, drawn: texts, output of programs, pictures. */

import { ansi } from "./ansi.js";
import { el, linkAttributes } from "./elements.js";
import { hostOf, safeLink } from "./links.js";
import { blocksOf, markOf } from "./markdown.js";
import { blockText } from "./outputs.js";
import { clean, line } from "./text.js";

/**
 * @import {Mark} from "./marks.js"
 * @import {Json} from "./text.js"
 */

/** A tree of Markdown as nodes. @param {Mark} tree @returns {Node} */
function build(tree) {
  if (typeof tree === "string") return document.createTextNode(tree);
  const element = el(tree.tag, tree.tag === "a" ? linkAttributes(tree.attrs?.href ?? "") : tree.attrs);
  element.append(...tree.inner.map(build));
  return element;
}

/** Characters of a text that are drawn, until more is asked for. */
export const DRAWN = 100000;

/** What was drawn of each text. @type {WeakMap<Element, string[]>} */
const drawn = new WeakMap();

/**
 * Draw a text as Markdown. Only what has changed since it was drawn last is made anew.
 * @param {Element} host
 * @param {string} text Of a bounded length.
 */
export function drawProse(host, text) {
  const blocks = blocksOf(clean(text));
  const sources = blocks.map((block) => `${block.kind}\n${block.source}`);
  const before = drawn.get(host) ?? [];
  let same = 0;
  while (same < before.length && same < sources.length && before[same] === sources[same]) same++;
  while (host.childNodes.length > same) host.lastChild?.remove();
  host.append(...blocks.slice(same).map((block) => build(markOf(block))));
  drawn.set(host, sources);
}

/** @param {string} text */
export function terminal(text) {
  return ansi(text).map(({ text, look }) =>
    look ? el("span", { class: look }, text) : document.createTextNode(text),
  );
}

/** Base64 characters of a picture that is shown. */
const PICTURE = 8e6;

/** What is no text, as far as it can be shown. @param {Json} block @returns {HTMLElement} */
export function blockNode(block) {
  const isPicture = block.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(block.mime_type);
  if (isPicture && block.data.length <= PICTURE && /^[A-Za-z0-9+/]*={0,2}$/.test(block.data)) {
    return el("img", {
      class: "sent",
      alt: "Picture that the agent has sent",
      src: `data:${block.mime_type};base64,${block.data}`,
    });
  }
  if (block.type === "resource_link") {
    const name = line(block.title || block.name, 200);
    return safeLink(block.uri) && hostOf(block.uri)
      ? el(
          "span",
          {},
          el("a", linkAttributes(block.uri), name),
          el("span", { class: "dim" }, ` (${hostOf(block.uri)})`),
        )
      : el("span", {}, name, " ", el("code", { class: "mono dim" }, line(block.uri, 500)));
  }
  return el("span", { class: "dim mono" }, line(blockText(block), 500));
}
