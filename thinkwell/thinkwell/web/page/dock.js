// @ts-check
/** The open questions of a run. */

import { wasAllowed } from "./choices.js";
import { button, byId, el, isNarrow, mark } from "./elements.js";
import { find, get } from "./lists.js";
import { say } from "./notices.js";
import { QuestionCard } from "./questions.js";
import { line } from "./text.js";

/**
 * @import {QuestionView} from "./questions.js"
 * @import {QuestionItem} from "./state.js"
 */

/** Milliseconds for which it is said that others have answered a question. */
const SETTLED = 15000;

/**
 * What the dock knows of the run.
 * @typedef {QuestionView & {
 *   moment: number | null,
 *   panels: {tab: string},
 *   outcome: (question: QuestionItem) => string,
 * }} DockView
 */

/** The open questions of a run, below its timeline. */
export class Dock {
  /** @param {DockView} view */
  constructor(view) {
    this.view = view;
    /** @type {Map<string, QuestionCard>} */
    this.cards = new Map();
  }

  draw() {
    const { state, live, moment, panels } = this.view;
    const open = live
      ? state.asked.map((number) => /** @type {QuestionItem} */ (get(state.items, number)))
      : [];
    const ids = new Set(open.map((question) => question.id));
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      const focused = card.node.contains(document.activeElement);
      card.node.replaceWith(...(moment === null ? this.settled(id) : []));
      this.cards.delete(id);
      const below = byId(isNarrow() && panels.tab !== "timeline" ? "panel" : "timeline");
      if (focused) ([...this.cards.values()][0]?.node ?? below).focus();
    }
    for (const question of open.slice(0, 20)) {
      const known = this.cards.get(question.id);
      if (known) known.update(question);
      else {
        const card = new QuestionCard(question, this.view);
        this.cards.set(question.id, card);
        byId("dock").append(card.node);
      }
    }
  }

  /** What is said for a while in the place of a question that others have answered. @param {string} id */
  settled(id) {
    const number = find(this.view.state.where, `question/${id}`);
    const question = /** @type {QuestionItem} */ (get(this.view.state.items, number));
    if (this.view.answered.has(id) || question.answer === null || question.answer.choice === null) return [];
    const text = `${line(question.title, 200) || "The question"}: ${this.view.outcome(question)}`;
    const close = button("Dismiss", { class: "button small", onclick: () => node.remove() });
    const node = el(
      "div",
      { class: "settled" },
      mark(wasAllowed(question) ? "done" : "failed"),
      el("span", { class: "grow" }, text),
      close,
    );
    setTimeout(() => node.remove(), SETTLED);
    say(text);
    return [node];
  }

  /** Show how much time is left. @param {number} now Seconds from the start of the run. */
  tick(now) {
    for (const card of this.cards.values()) card.tick(now);
  }

  /**
   * Do what a key means in one of the questions, and tell whether it means anything.
   * @param {string} key
   * @param {HTMLElement} target Where it was pressed.
   */
  press(key, target) {
    const cards = [...this.cards.values()];
    const card =
      cards.find((each) => each.node.contains(target)) ?? cards.find((each) => each.inSight) ?? cards[0];
    return card?.press(key) ?? false;
  }
}
