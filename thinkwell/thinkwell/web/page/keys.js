// @ts-check
/** The keys of the page. */

import { byId, el, keyHint } from "./elements.js";
import { page } from "./screen.js";
import { recall, remember } from "./storage.js";

/**
 * The keys, their descriptions in the help, and their actions if they do not answer a question.
 * @type {[string, string, (() => void)?][]}
 */
const SHORTCUTS = [
  ["y", "allow what is asked, this once"],
  ["a", "allow it always, where that is offered"],
  ["n", "deny it, this once"],
  ["d", "deny it always, where that is offered"],
  ["1 … 9", "choose another of the answers"],
  ["f", "begin to fill in a form"],
  ["o", "open the page that is asked for"],
  ["j", "next step of the run; Enter unfolds it", () => page.run?.timeline.step(1)],
  ["k", "the step before", () => page.run?.timeline.step(-1)],
  [".", "go to the latest", () => page.run?.timeline.toLatest()],
  ["[", "the tab before", () => page.run?.panels.turn(-1)],
  ["]", "the next tab", () => page.run?.panels.turn(1)],
  ["p", "replay, and pause", () => page.run?.playback.playOrPause()],
  ["r", "go to the replay's slider; arrow keys move it", () => page.run && byId("scrub").focus()],
  ["S", "stop the run (with Shift)", () => page.run?.stop()],
  ["c", "write a prompt", () => byId(page.run ? "more" : "prompt").focus()],
  ["u", "all runs", () => (location.hash = "")],
  ["?", "this list", () => byId("help").showModal()],
];

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = target.matches?.(
    "input:not([type=range], [type=radio], [type=checkbox]), textarea, select",
  );
  if (event.key === "Escape" && typing) target.blur();
  if (
    typing ||
    event.defaultPrevented ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.repeat
  )
    return;
  if (document.querySelector("dialog[open]") || !keysOn()) return;
  if (event.key === "Enter" && target.matches(".row"))
    return /** @type {HTMLElement | null} */ (target.querySelector("summary"))?.click();
  const does = SHORTCUTS.find(([key]) => key === event.key)?.[2];
  if (page.run?.dock.press(event.key, target)) event.preventDefault();
  else if (does) {
    event.preventDefault();
    does();
  }
}

function keysOn() {
  return recall(localStorage, "keys") ?? true;
}

/** Listen to keys, and list them in the help. */
export function wireKeys() {
  byId("help-open").onclick = () => byId("help").showModal();
  byId("help-close").onclick = () => byId("help").close();
  byId("keys").append(
    ...SHORTCUTS.flatMap(([key, words]) => [el("dt", keyHint(key)), el("dd", words)]),
  );
  byId("keys-on").checked = keysOn();
  byId("keys-on").onchange = () => remember(localStorage, "keys", byId("keys-on").checked);
  document.addEventListener("keydown", pressed);
}
