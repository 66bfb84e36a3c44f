// @ts-check
/** The keys of the page. */

import { byId, el, keyHint } from "./elements.js";
import { page } from "./screen.js";
import { recall, remember } from "./storage.js";

/** The keys, and their descriptions in the help. @type {[string, string][]} */
const SHORTCUTS = [
  ["y", "allow what is asked, this once"],
  ["a", "allow it always, where that is offered"],
  ["n", "deny it, this once"],
  ["d", "deny it always, where that is offered"],
  ["1 … 9", "choose another of the answers"],
  ["f", "begin to fill in a form"],
  ["o", "open the page that is asked for"],
  ["j  k", "next step of the run, and the one before; Enter unfolds it"],
  [".", "go to the latest"],
  ["[  ]", "the tab before, and the next one"],
  ["p", "replay, and pause"],
  ["r", "go to the replay's slider; arrow keys move it"],
  ["Shift S", "stop the run"],
  ["c", "write a prompt"],
  ["u", "all runs"],
  ["?", "this list"],
];

/** The actions of keys that do not answer a question. @type {{[key: string]: () => void}} */
const DOES = {
  j: () => page.run?.timeline.step(1),
  k: () => page.run?.timeline.step(-1),
  ".": () => page.run?.timeline.toLatest(),
  "[": () => page.run?.panels.turn(-1),
  "]": () => page.run?.panels.turn(1),
  p: () => page.run?.playback.playOrPause(),
  r: () => page.run && byId("scrub").focus(),
  S: () => page.run?.stop(),
  c: () => byId(page.run ? "more" : "prompt").focus(),
  u: () => (location.hash = ""),
  "?": () => byId("help").showModal(),
};

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
  const done =
    page.run?.dock.press(event.key, target) ||
    (Object.hasOwn(DOES, event.key) && (DOES[event.key](), true));
  if (done) event.preventDefault();
}

function keysOn() {
  return recall(localStorage, "keys") ?? true;
}

/** Listen to keys, and list them in the help. */
export function wireKeys() {
  byId("help-open").onclick = () => byId("help").showModal();
  byId("help-close").onclick = () => byId("help").close();
  byId("keys").append(
    ...SHORTCUTS.flatMap(([keys, does]) => [
      el("dt", ...keys.split("  ").flatMap((key) => [keyHint(key), " "])),
      el("dd", does),
    ]),
  );
  byId("keys-on").checked = keysOn();
  byId("keys-on").onchange = () => remember(localStorage, "keys", byId("keys-on").checked);
  document.addEventListener("keydown", pressed);
}
