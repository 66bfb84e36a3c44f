// @ts-check
/** What the page says to its user, also to one who does not see it. */

import { byId, el, ENDS } from "./elements.js";
import { beginning, get } from "./lists.js";
import { line } from "./text.js";

/** @import {State} from "./state.js" */

/** Say something to those who do not see the page. @param {string} text @param {boolean} [urgent] */
export function say(text, urgent = false) {
  const host = byId(urgent ? "urgent" : "polite");
  host.append(el("p", {}, text));
  while (host.childNodes.length > 5) host.firstChild?.remove();
}

/** Show and say something that belongs to no part of the page. @param {string} text Empty: nothing more. */
export function notify(text) {
  byId("notice-text").textContent = text;
  byId("notice").hidden = !text;
  if (text) say(text, true);
}

/** Says what happens in a run. */
export class Announcer {
  constructor() {
    this.told = { items: -1, end: false };
  }

  /**
   * Tell those who do not see the page what matters, and not every word.
   * @param {State} state The run as it is now.
   */
  tell(state) {
    const first = this.told.items < 0;
    for (let i = Math.max(this.told.items, 0); i < state.items.length && !first; i++) {
      const item = get(state.items, i);
      const before = i > 0 ? get(state.items, i - 1) : null;
      if (before?.kind === "message") say(line(beginning(before.text, 1200), 300));
      if (item.kind === "question") say(`Question: ${line(item.title, 300)}`, true);
      if (item.kind === "note" && item.severity !== "info") say(line(item.title, 200));
    }
    if (state.end && !this.told.end && !first) {
      say(
        `The run is ${ENDS[state.end.status] ?? "over"}. ${line(state.end.error?.message ?? beginning(state.last, 1200), 300)}`,
      );
    }
    this.told = { items: state.items.length, end: state.end !== null };
  }
}
