// @ts-check
/** Elements of the page. */

import { plural } from "./numbers.js";
import { safeLink } from "./text.js";

/** @typedef {Node | string | null | undefined | false} Inner */
/** @typedef {{[name: string]: string | number | boolean | null | undefined | ((event: any) => void)}} Attributes */

/**
 * An element, given its tag and classes: ``p.problem``.
 * @param {string} name
 * @param {...(Attributes | Inner)} parts Its attributes and its contents. Functions are listeners,
 * with names such as ``onclick``.
 * @returns {HTMLElement}
 */
export function el(name, ...parts) {
  const [tag, ...looks] = name.split(".");
  const element = document.createElement(tag);
  element.classList.add(...looks);
  for (const part of parts) {
    if (typeof part === "string" || part instanceof Node) element.append(part);
    else if (part) set(element, part);
  }
  return element;
}

/**
 * Set attributes and listeners; null, undefined and false remove an attribute.
 * @param {Element} element
 * @param {Attributes} attributes
 */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false)
      element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {string} id */
export function byId(id) {
  return /** @type {any} */ (document.getElementById(id));
}

/** Whether the window has room for one column only. */
export function isNarrow() {
  return window.matchMedia("(max-width: 860px)").matches;
}

const SVG = "http://www.w3.org/2000/svg";

const CIRCLE = "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z";

/** @type {{[name: string]: string}} */
const SHAPES = {
  read: "M3.5 2.5h5.5L12.5 6v7.5h-9zM9 2.5V6h3.5",
  edit: "M11.3 2.7l2 2L6 12l-2.8.8L4 10z",
  delete: "M3 4.5h10M6 4.5V3h4v1.5M4.6 4.5l.6 8.5h5.6l.6-8.5",
  move: "M2.5 8h10.5M9.5 4.5L13 8l-3.5 3.5",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3L13.5 13.5",
  execute: "M3 4l3.5 4L3 12M8.5 12H13",
  think: "M6.2 13.3h3.6M6.5 11c0-1.6-2-2.3-2-4.6a3.5 3.5 0 1 1 7 0c0 2.3-2 3-2 4.6z",
  fetch: `${CIRCLE}M2 8h12M8 2c2 1.7 2.7 3.8 2.7 6S10 12.3 8 14c-2-1.7-2.7-3.8-2.7-6S6 3.7 8 2z`,
  switch_mode: "M2.5 5H8M11.5 5h2M2.5 11h2M8 11h5.5M9.7 3.3v3.4M6.2 9.3v3.4",
  other: "M8 2l5.2 3v6L8 14l-5.2-3V5zM8 8v6M8 8L2.8 5M8 8l5.2-3",
  done: "M3.5 8.5l3 3 6-7",
  failed: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  cancelled: `${CIRCLE}M4 12l8-8`,
  denied: `${CIRCLE}M4 12l8-8`,
  interrupted: "M8 3v6.5M8 12.9v.1",
  pending: "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  ask: "M5.8 6a2.2 2.2 0 1 1 3 2c-.6.3-.8.7-.8 1.5M8 12.5v.1",
  fold: "M6 3.5L10.5 8 6 12.5",
  folder: "M2.5 4h4l1.3 1.5h5.7V13h-11z",
  play: "M5 3.2v9.6L12.8 8z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  light:
    "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  dark: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z",
  system: "M2.5 3.5h11v7.5h-11zM6 13.5h4M8 11v2.5",
};

/** @param {string} tag @param {Attributes} attributes @param {...Node} inner */
export function svg(tag, attributes, ...inner) {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  element.append(...inner);
  return element;
}

/** @param {string} name */
export function icon(name) {
  const shape = Object.hasOwn(SHAPES, name) ? SHAPES[name] : SHAPES.other;
  const about = { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" };
  return svg("svg", about, svg("path", { d: shape }));
}

/** Marks whose class differs from their status: class, shape, and name. */
const MARKS = /** @type {{[status: string]: [string, string, string]}} */ ({
  completed: ["completed", "done", "done"],
  doing: ["running", "fold", "being done"],
  todo: ["pending", "pending", "to do"],
});

/** A status as a picture, with a text for screen readers. @param {string} status */
export function mark(status) {
  const known = Object.hasOwn(MARKS, status) ? MARKS[status] : [status, status, status];
  const inner = known[1] === "running" ? el("span.spinner") : icon(known[1]);
  return el(`span.mark.${known[0]}`, { role: "img", "aria-label": known[2] }, inner);
}

/**
 * A button, given its tag and classes: ``button.small``. @param {string} name @param {string} text
 * @param {Attributes} attributes @param {...Inner} more
 */
export function button(name, text, attributes, ...more) {
  return /** @type {HTMLButtonElement} */ (
    el(`button.${name}`, { type: "button", ...attributes }, ...more, text)
  );
}

/** @param {string} key */
export function keyHint(key) {
  return key ? el("kbd", { "aria-hidden": "true" }, key) : null;
}

/** @param {string} url @returns {Attributes} */
export function linkAttributes(url) {
  const href = safeLink(url);
  return {
    href,
    title: href && new URL(href).href,
    target: "_blank",
    rel: "noopener noreferrer nofollow",
    referrerpolicy: "no-referrer",
  };
}

/** @param {number} added @param {number} removed */
export function counts(added, removed) {
  return el(
    "span.counts",
    { role: "img", "aria-label": `${plural(added, "line")} added, ${removed} removed` },
    el("span.plus", `+${added}`),
    el("span.minus", `−${removed}`),
  );
}

/** @param {number} share @param {string} [look] */
export function meter(share, look = "meter") {
  const bar = el("i");
  bar.style.width = `${Math.round(Math.max(0, Math.min(share, 1)) * 100)}%`;
  return el("span", { class: look, "aria-hidden": "true" }, bar);
}
