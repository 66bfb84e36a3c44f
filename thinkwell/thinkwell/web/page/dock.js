// @ts-check
/** The open questions of a run. */

import { button, byId, el, isNarrow } from "./elements.js";
import { build } from "./nodes.js";
import { say } from "./notices.js";
import { QuestionCard } from "./questions.js";

/**
 * @import {ItemNode, Shown} from "./items.js"
 * @import {QuestionView} from "./questions.js"
 */

/** Milliseconds for which the page shows that others have answered a question. */
const SETTLED = 15000;

/** Most questions that are shown at once. */
const CARDS = 20;

/**
 * The dock's access to the run.
 * @typedef {QuestionView & {moment: number | null, shown: Shown, panels: {tab: string}}} DockView
 */

/** The open questions of a run, below its timeline. */
export class Dock {
  /** @param {DockView} view */
  constructor(view) {
    this.view = view;
    /** By the ids of their items. @type {Map<string, QuestionCard>} */
    this.cards = new Map();
  }

  draw() {
    const { shown, live, moment, panels } = this.view;
    const open = live ? shown.inside("dock") : [];
    const ids = new Set(open.map(({ id }) => id));
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      const focused = card.node.contains(document.activeElement);
      card.node.replaceWith(...(moment === null ? this.settled(id, card) : []));
      this.cards.delete(id);
      const below = byId(isNarrow() && panels.tab !== "timeline" ? "panel" : "timeline");
      if (focused) ([...this.cards.values()][0]?.node ?? below).focus();
    }
    for (const { id, node } of open.slice(0, CARDS)) {
      const known = this.cards.get(id);
      if (known) known.update(/** @type {ItemNode} */ (node));
      else {
        const card = new QuestionCard(/** @type {ItemNode} */ (node), this.view);
        this.cards.set(id, card);
        byId("dock").append(card.node);
      }
    }
  }

  /**
   * Show for a while that others have answered a question. @param {string} id @param {QuestionCard}
   * card
   */
  settled(id, card) {
    const row = this.view.shown.items.get(id.replace(/\.form$/, ""))?.node ?? "";
    const drawn = el("div", build(row, { ...this.view.board.maker, id }));
    const outcome = drawn.querySelector(":is(.done, .failed).mark");
    if (this.view.answered.has(card.id) || !outcome) return [];
    const text = `${card.title}: ${drawn.querySelector(".told")?.textContent}`;
    const close = button("button.small", "Dismiss", { onclick: () => node.remove() });
    const node = el("div.settled", outcome, el("span.grow", text), close);
    setTimeout(() => node.remove(), SETTLED);
    say(text);
    return [node];
  }

  /** Show the time left. @param {number} now Seconds from the start of the run. */
  tick(now) {
    for (const card of this.cards.values()) card.tick(now);
  }

  /**
   * Handle a key in one of the questions, and return whether it has a meaning.
   * @param {string} key
   * @param {HTMLElement} target The focused element.
   */
  press(key, target) {
    const cards = [...this.cards.values()];
    const card =
      cards.find((each) => each.node.contains(target)) ??
      cards.find((each) => each.inSight) ??
      cards[0];
    return card?.press(key) ?? false;
  }
}
