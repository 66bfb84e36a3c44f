// @ts-check
/** The commands of a run. */

import { button, el, mark, nothing } from "./elements.js";
import { timeNode } from "./folds.js";
import { all, get } from "./lists.js";
import { plural } from "./numbers.js";
import { exitCode, outputOf } from "./outputs.js";
import { terminal } from "./prose.js";
import { clean, shortened } from "./text.js";
import { bareTitle, commandLine, statusOf, takenBy } from "./tools.js";
import { NEAR } from "./windows.js";

/** @import {State, ToolItem} from "./state.js" */

/** Commands that are shown, unless earlier ones are asked for. */
const SHELL = 100;

/** @type {WeakMap<ToolItem, {over: boolean, node: HTMLElement}>} */
const shellKnown = new WeakMap();

/**
 * @param {HTMLElement} host
 * @param {State} state
 * @param {{more: Map<string, number>, drawMore: (key: string) => void}} view
 */
export function drawTerminal(host, state, view) {
  const numbers = all(state.commands);
  if (!numbers.length) return host.replaceChildren(nothing("The agent has run no commands so far."));
  const most = SHELL * (1 + (view.more.get("terminal") ?? 0));
  const atEnd = host.scrollTop + host.clientHeight >= host.scrollHeight - NEAR;
  const nodes = numbers.slice(-most).map((number) => {
    const tool = /** @type {ToolItem} */ (get(state.items, number));
    const known = shellKnown.get(tool);
    if (known && known.over === (state.end !== null)) return known.node;
    const node = shellNode(tool, state);
    shellKnown.set(tool, { over: state.end !== null, node });
    return node;
  });
  const earlier = numbers.length - most;
  const more =
    earlier > 0
      ? button(`${plural(earlier, "earlier command")}: show more`, {
          class: "button small",
          onclick: () => view.drawMore("terminal"),
        })
      : null;
  host.replaceChildren(el("div", { class: "shell" }, more, ...nodes));
  if (atEnd) host.scrollTop = host.scrollHeight;
}

/** @param {ToolItem} tool @param {State} state */
function shellNode(tool, state) {
  const status = statusOf(tool, state);
  const command = commandLine(tool.input) ?? bareTitle(tool.title);
  const output = outputOf(tool);
  const code = exitCode(tool);
  const taken = takenBy(tool);
  return el(
    "div",
    {},
    el(
      "div",
      { class: "command" },
      el("span", { class: "dollar", "aria-hidden": "true" }, "$"),
      el("span", { class: "text" }, clean(shortened(command, 8000))),
      code ? el("span", { class: "minus" }, `exit ${code}`) : null,
      taken === null ? mark(status) : timeNode(tool.began, taken, false),
    ),
    output ? el("pre", { tabindex: "0", "aria-label": "Output" }, ...terminal(output)) : null,
  );
}
