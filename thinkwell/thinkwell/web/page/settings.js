// @ts-check
/** Settings: the theme, and the width of the details. */

import { byId, icon, set } from "./elements.js";
import { recall, remember } from "./storage.js";

/** The width of the details, in percent. @param {number} share */
function widen(share) {
  const width = Math.max(20, Math.min(share, 75));
  document.documentElement.style.setProperty("--side", `${width}%`);
  set(byId("splitter"), { "aria-valuenow": Math.round(width) });
  remember(localStorage, "side", width);
}

function wireSplitter() {
  const splitter = byId("splitter");
  widen(recall(localStorage, "side") ?? 44);
  splitter.onpointerdown = (/** @type {PointerEvent} */ { pointerId }) =>
    splitter.setPointerCapture(pointerId);
  splitter.onpointermove = (/** @type {PointerEvent} */ { pointerId, clientX }) => {
    const { right, width } = byId("run").getBoundingClientRect();
    if (splitter.hasPointerCapture(pointerId)) widen((100 * (right - clientX)) / width);
  };
  splitter.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowLeft: 3, ArrowRight: -3 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    widen(Number(splitter.getAttribute("aria-valuenow")) + by);
  };
}

const THEMES = ["system", "light", "dark"];

/** @param {string} theme */
function colour(theme) {
  document.documentElement.dataset.theme = theme;
  set(byId("theme"), { "aria-label": `Colours: ${theme}`, title: `Colours: ${theme}` });
  byId("theme").replaceChildren(icon(theme));
  remember(localStorage, "theme", theme);
}

/** Apply the stored settings, and let the user change them. */
export function wireSettings() {
  byId("theme").onclick = () =>
    colour(THEMES[(THEMES.indexOf(recall(localStorage, "theme") ?? "system") + 1) % 3]);
  wireSplitter();
  colour(recall(localStorage, "theme") ?? "system");
}
