// @ts-check
/** What the page says to its user, also to one who does not see it. */

import { byId, el } from "./elements.js";
import { messageOf } from "./server.js";

/** @import {Item} from "./items.js" */

/** Say something to those who do not see the page. @param {string} text @param {boolean} [urgent] */
export function say(text, urgent = false) {
  const host = byId(urgent ? "urgent" : "polite");
  host.append(el("p", text));
  while (host.childNodes.length > 5) host.firstChild?.remove();
}

/** Show and say something that belongs to no part of the page. @param {string} text Empty: nothing more. */
export function notify(text) {
  byId("notice-text").textContent = text;
  byId("notice").hidden = !text;
  if (text) say(text, true);
}

/** Ask whether a run shall be run again, and do that. @param {string[]} tools What its tools have done. @param {() => Promise<void>} does */
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

/** Says what happens in a run to those who do not see the page: what matters, and not every word. */
export class Announcer {
  constructor() {
    /** Ids of the items that were told of. @type {Set<string>} */
    this.told = new Set();
    /** @type {[string, boolean | undefined][]} */
    this.waiting = [];
  }

  /** @param {Item} item @param {boolean} isNew Whether it was not there when the page was loaded. */
  tell({ id, more }, isNew) {
    if (!more.say || this.told.has(id)) return;
    this.told.add(id);
    if (isNew) this.waiting.push([more.say, more.urgent]);
  }

  /** Say it, after all that is drawn now has said what it has to. */
  speak() {
    for (const [text, urgent] of this.waiting.splice(0)) say(text, urgent);
  }
}
