// @ts-check
/** Notices for the user, on the screen and for screen readers. */

import { byId, el } from "./elements.js";
import { textOf } from "./items.js";
import { messageOf } from "./server.js";
import { line } from "./text.js";

/** @import {Item, Shown} from "./items.js" */

/** Most characters of an announced text. */
const SAID = 300;

/** Announce a text to screen readers. @param {string} text @param {boolean} [urgent] */
export function say(text, urgent = false) {
  const host = byId(urgent ? "urgent" : "polite");
  host.append(el("p", text));
  while (host.childNodes.length > 5) host.firstChild?.remove();
}

/**
 * Show and announce a text that belongs to no part of the page. @param {string} text Empty: hide
 * it.
 */
export function notify(text) {
  byId("notice-text").textContent = text;
  byId("notice").hidden = !text;
  if (text) say(text, true);
}

/**
 * Ask whether to run a run again, and do that. @param {string[]} tools Its tool calls.
 * @param {() => Promise<void>} does
 */
export function askAgain(tools, does) {
  const text = tools.length
    ? "Its tools have run, and may do all of this a second time:"
    : "None of its tools has run.";
  byId("again-text").textContent = text;
  byId("again-tools").replaceChildren(...tools.map((each) => el("li", each)));
  byId("again").onclose = () => {
    if (byId("again").returnValue === "again")
      does().catch((error) => notify(`It was not started: ${messageOf(error)}.`));
  };
  byId("again").returnValue = "";
  byId("again").showModal();
}

/** Announces the important events of a run to screen readers, not every word. */
export class Announcer {
  constructor() {
    /** Ids of the announced items. @type {Set<string>} */
    this.told = new Set();
    /** @type {Item[]} */
    this.waiting = [];
  }

  /** @param {Item} item @param {boolean} isNew Whether it came after the page was loaded. */
  tell(item, isNew) {
    if (!item.more.say || this.told.has(item.id)) return;
    this.told.add(item.id);
    if (isNew) this.waiting.push(item);
  }

  /** Announce what the current frame has brought. @param {Shown} shown */
  speak(shown) {
    for (const { id, more } of this.waiting.splice(0)) {
      const inside = shown.parts(id).map(({ node }) => textOf(node ?? ""));
      say(line(more.say === true ? inside.join(" ") : more.say, SAID), more.urgent);
    }
  }
}
