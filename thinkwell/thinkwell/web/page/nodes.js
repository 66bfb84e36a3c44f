// @ts-check
/**
 * Nodes as elements of the document. The server makes nodes from closed lists of tags; here they
 * become elements and texts, and no string is ever parsed as HTML.
 */

import { changeTable, styledRuns } from "./changes.js";
import { button, el, icon, linkAttributes, mark, meter, set } from "./elements.js";
import { textOf } from "./items.js";

/**
 * @import {ItemNode} from "./items.js"
 * @import {Json} from "./text.js"
 */

/**
 * What nodes are made with.
 * @typedef {object} Maker
 * @property {string} id The item that they belong to.
 * @property {boolean} two Whether both sides of a change stand beside each other.
 * @property {(host: HTMLElement, parent: string, maker: Maker) => void} fill Shows other items in an element.
 * @property {(id: string) => boolean} isOpen Whether an item is unfolded.
 * @property {(id: string, open: boolean) => void} toggle
 * @property {((tools: Json) => () => void) | null} again Asks whether a run whose tools have done all that shall be run again; null: it cannot.
 * @property {(question: string, by: string) => string} by Who decided, in words of this browser; empty: as it is said.
 */

/** Tags that are elements of HTML by the same name, without attributes. */
const SAME_TAGS = new Set(
  "blockquote br code dd del details div dl dt em h2 h3 h4 h5 h6 hr li p strong summary table tbody td th thead tr ul".split(
    " ",
  ),
);

/** Tags with their own functions. Other tags become texts. */
const WHOLE =
  /** @type {{[tag: string]: (look: string, attributes: Json, text: string, maker: Maker) => Element | null}} */ ({
    button: (look, { does, value }, text, { again }) => {
      const copies = async () => {
        await navigator.clipboard.writeText(String(value)).catch(() => {});
        each.textContent = "Copied";
      };
      const onclick = does === "copy" ? copies : does === "again" ? again?.(value) : undefined;
      const each = button("button.small", text, { onclick, hidden: !onclick });
      return each;
    },
    icon: (look) => icon(look),
    img: (look, { type, data, label }) =>
      /^image\/(png|jpeg|gif|webp)$/.test(type) && /^[A-Za-z0-9+/]*={0,2}$/.test(data)
        ? el("img", { class: look, alt: String(label), src: `data:${type};base64,${data}` })
        : null,
    lines: (look, attributes, _, { two }) =>
      look === "changed"
        ? changeTable(attributes, two)
        : el("span", { class: look || null }, ...styledRuns(attributes)),
    mark: (look) => mark(look),
    meter: (look, { value }) => meter(Number(value), look),
    time: (look, { since }) => el("span", { class: look, "data-since": Number(since) }),
  });

/** The attributes of elements that have any. */
const ATTRIBUTES =
  /** @type {{[tag: string]: (attributes: Json) => import("./elements.js").Attributes}} */ ({
    a: ({ href }) => linkAttributes(String(href)),
    ol: ({ start }) => ({ start: Number.isInteger(start) ? start : null }),
    pre: ({ label, lang }) => ({
      tabindex: 0,
      role: "group",
      "aria-label": String(label ?? lang ?? "Code"),
      "data-language": lang ? String(lang) : null,
    }),
    span: ({ label }) => (label ? { role: "img", "aria-label": String(label) } : {}),
  });

/** @param {ItemNode} node @returns {[string, string, Json, ItemNode[]]} */
function partsOf(node) {
  const [tag, look, first, ...rest] = /** @type {Json[]} */ (/** @type {unknown} */ (node));
  if (first === undefined) return [tag, look, {}, []];
  return typeof first === "string" || Array.isArray(first)
    ? [tag, look, {}, [first, ...rest]]
    : [tag, look, first, rest];
}

/**
 * A node as an element or a text. An unknown node becomes its text. @param {ItemNode} node @param
 * {Maker} maker @returns {ChildNode}
 */
export function build(node, maker) {
  if (typeof node === "string") return document.createTextNode(node);
  const [tag, look, attributes, children] = partsOf(node);
  if (look === "by") {
    const words = maker.by(String(attributes.id), String(attributes.name));
    return document.createTextNode(words || textOf(node));
  }
  if (Object.hasOwn(WHOLE, tag)) {
    const whole = WHOLE[tag](look, attributes, textOf(node), maker);
    return whole ?? document.createTextNode(textOf(node));
  }
  if (!SAME_TAGS.has(tag) && !Object.hasOwn(ATTRIBUTES, tag))
    return document.createTextNode(textOf(node));
  const element = el(tag, attributesOf(tag, look, attributes));
  const place = placeIn(children);
  if (place === undefined) element.append(...children.map((child) => build(child, maker)));
  else maker.fill(element, place || maker.id, maker);
  if (tag === "summary" && look === "fold") wireSummary(element, maker);
  if (tag === "details") setOpen(element, children, maker);
  return element;
}

/** The attributes of an element. @param {string} tag A known one. @param {string} look @param {Json} attributes */
function attributesOf(tag, look, attributes) {
  return { class: look || null, ...ATTRIBUTES[tag]?.(attributes) };
}

/**
 * Open or close an item, as the user has left it. The browser hides the contents of a closed one.
 * @param {HTMLElement} details @param {ItemNode[]} inner @param {Maker} maker
 */
function setOpen(details, [summary], { id, isOpen }) {
  if (summary?.[1] === "fold") set(details, { open: isOpen(id), "data-key": id });
}

/**
 * The place of items that an element is; empty: that of its own item; undefined: it has other contents.
 * @param {ItemNode[]} children
 * @returns {string | undefined}
 */
function placeIn([only]) {
  return Array.isArray(only) && only[0] === "slot" ? only[1] : undefined;
}

/**
 * The summary line of details: the user's choice is remembered. @param {HTMLElement} summary @param
 * {Maker} maker
 */
function wireSummary(summary, maker) {
  const turn = icon("fold");
  turn.classList.add("turn");
  summary.append(turn);
  summary.addEventListener("click", (event) => {
    event.preventDefault();
    maker.toggle(maker.id, !maker.isOpen(maker.id));
  });
}

/**
 * Update the element of a node to another node, with the fewest changes: selection and focus stay.
 * @param {ChildNode} old
 * @param {ItemNode} before
 * @param {ItemNode} after
 * @param {Maker} maker
 * @returns {ChildNode} The element that is there now.
 */
export function patch(old, before, after, maker) {
  if (same(before, after)) return old;
  if (typeof before === "string" && typeof after === "string" && old instanceof Text) {
    if (after.startsWith(before)) old.appendData(after.slice(before.length));
    else old.data = after;
    return old;
  }
  if (typeof after === "string" || !(old instanceof HTMLElement))
    return replaced(old, after, maker);
  const [tag, look, attributes, children] = partsOf(after);
  const [known, , , earlier] = partsOf(before);
  const place = placeIn(children);
  const whole = tag === "summary" || Object.hasOwn(WHOLE, tag);
  if (whole || tag !== known || place !== placeIn(earlier)) return replaced(old, after, maker);
  set(old, attributesOf(tag, look, attributes));
  if (tag === "details") setOpen(old, children, maker);
  if (place !== undefined) return old;
  children.forEach((child, i) => {
    if (i < earlier.length) patch(old.childNodes[i], earlier[i], child, maker);
    else old.append(build(child, maker));
  });
  for (const gone of Array.from(old.childNodes).slice(children.length)) gone.remove();
  return old;
}

/** @param {ItemNode} one @param {ItemNode} other */
function same(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** @param {ChildNode} old @param {ItemNode} node @param {Maker} maker */
function replaced(old, node, maker) {
  const fresh = build(node, maker);
  const held = old.contains(document.activeElement);
  old.replaceWith(fresh);
  if (held && fresh instanceof HTMLElement)
    /** @type {HTMLElement | null} */ (
      fresh.closest("summary") ?? fresh.querySelector("summary, button")
    )?.focus({
      preventScroll: true,
    });
  return fresh;
}
