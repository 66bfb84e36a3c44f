// @ts-check
/** Open questions. */

import { button, byId, el, isNarrow, keyHint, mark, set } from "./elements.js";
import { FieldInput } from "./fields.js";
import { build } from "./nodes.js";
import { request } from "./requests.js";
import { messageOf, Refused, runPath } from "./server.js";

/**
 * @import {ItemNode} from "./items.js"
 * @import {Maker} from "./nodes.js"
 * @import {Json} from "./text.js"
 */

/**
 * A question's access to its run.
 * @typedef {object} QuestionView
 * @property {string} id
 * @property {boolean} live Whether the run is running and shown live.
 * @property {Set<string>} answered Ids of the questions answered in this window.
 * @property {{show: (tab: string) => void}} panels
 * @property {{maker: Maker}} board
 */

/**
 * A button of a question: its key, label and answer, and whether it allows or denies.
 * @typedef {[string, string, Json, "allow" | "deny" | "other"]} Choice
 */

/**
 * Milliseconds for which a new question accepts no answer: a key or click may be meant for
 * something else.
 */
const SETTLE = 400;

/** Pixels of a question's text that must be visible for keys to work: one line. */
const IN_SIGHT = 24;

/** An open question. */
export class QuestionCard {
  /** @param {ItemNode} node @param {QuestionView} view */
  constructor(node, view) {
    const about = /** @type {Json} */ (node[2]);
    this.view = view;
    this.id = String(about.id);
    this.title = String(about.label);
    this.asks = String(about.asks);
    /** @type {Choice[]} */
    this.choices = about.options;
    /**
     * Its deadline and when the clock started; null: none. @type {{deadline: number, since: number}
     * | null}
     */
    this.time = about.deadline === undefined ? null : about;
    this.ring = el("span.ring");
    this.about = el("div.body");
    this.problem = el("p.problem", { role: "alert", hidden: true });
    /** @type {Map<string, FieldInput>} */
    this.inputs = new Map(
      (about.fields ?? []).map((/** @type {Json} */ field) => [
        field.name,
        new FieldInput(field, this.id),
      ]),
    );
    /** @type {HTMLButtonElement[]} */
    this.buttons = this.choices.map((choice) => this.button(choice));
    const title = `question-${this.id}`.replace(/[^\w-]/g, "_");
    const fill =
      this.asks === "form"
        ? button("button.main", "Send", { type: "submit", disabled: true })
        : null;
    if (fill) this.buttons.unshift(fill);
    this.answers = el("div.answers", ...this.buttons);
    const form = el(
      "form.fields",
      {
        novalidate: true,
        onsubmit: (/** @type {globalThis.Event} */ event) => this.fill(event),
        onkeydown: (/** @type {KeyboardEvent} */ event) =>
          event.key === "Enter" && event.ctrlKey && this.fill(event),
      },
      ...[...this.inputs.values()].map((input) => input.node),
      this.answers,
    );
    this.node = el(
      "section.question",
      { tabindex: "-1", "aria-labelledby": title, "data-question": this.id },
      el("div.top", mark("ask"), el("h2", { id: title }, this.title), this.ring),
      this.about,
      form,
      this.problem,
    );
    this.sent = false;
    this.armed = false;
    this.arming = 0;
    this.arm();
    /** @type {ItemNode | null} */
    this.drawn = null;
    this.update(node);
  }

  /** Accept answers shortly after it becomes visible. */
  arm() {
    if (document.hidden) {
      document.addEventListener("visibilitychange", () => this.arm(), { once: true });
      return;
    }
    clearTimeout(this.arming);
    this.arming = setTimeout(() => {
      this.armed = true;
      this.disable(this.sent);
    }, SETTLE);
  }

  /** @param {boolean} is */
  disable(is) {
    for (const each of this.buttons) each.disabled = is;
  }

  /** Whether the user sees what a key would answer. On a small screen, the answers may cover it. */
  get inSight() {
    const dock = byId("dock").getBoundingClientRect();
    const [whole, answers] = [this.node, this.answers].map((node) => {
      const { top, bottom } = node.getBoundingClientRect();
      return Math.max(
        Math.min(bottom, dock.bottom, window.innerHeight) - Math.max(top, dock.top, 0),
        0,
      );
    });
    return whole - answers >= IN_SIGHT && this.node.checkVisibility({ visibilityProperty: true });
  }

  /** Scroll it into view. It accepts answers shortly afterwards, like a new question. */
  reveal() {
    this.armed = false;
    this.disable(true);
    this.node.focus({ preventScroll: true });
    this.node.scrollIntoView({ block: "start" });
    if (!this.inSight && isNarrow()) {
      this.view.panels.show("timeline"); // it has the most room there
      this.node.scrollIntoView({ block: "start" });
    }
    this.arm();
  }

  /** @param {Choice} choice */
  button([key, label, answer, kind]) {
    const main = kind === "allow" && this.asks === "permission" && key === "y";
    return button(
      main ? "button.main" : "button",
      label,
      {
        disabled: true,
        "data-choice": kind,
        "aria-keyshortcuts": key || null,
        onclick: () => this.answer(answer),
      },
      keyHint(key),
    );
  }

  /** @param {ItemNode} node */
  update(node) {
    if (node === this.drawn) return;
    this.drawn = node;
    const inner = /** @type {ItemNode[]} */ (node.slice(3));
    this.about.replaceChildren(...inner.map((each) => build(each, this.view.board.maker)));
    this.about.hidden = !inner.length;
    this.about.querySelector("a.button")?.prepend(keyHint("o") ?? "");
  }

  /** Show the time left. @param {number} now */
  tick(now) {
    this.ring.hidden = this.time === null;
    if (this.time === null) return;
    const { deadline, since } = this.time;
    const left = Math.max(deadline - now, 0);
    const share = deadline > since ? left / (deadline - since) : 0;
    this.ring.style.setProperty("--share", String(share));
    this.ring.textContent = String(left >= 100 ? `${Math.ceil(left / 60)}m` : Math.ceil(left));
    this.ring.classList.toggle("soon", left < 10);
    set(this.ring, {
      role: "img",
      "aria-label": `${Math.ceil(left)} seconds left, then it is denied`,
    });
  }

  /** @param {globalThis.Event} event */
  fill(event) {
    event.preventDefault();
    const wrong = [...this.inputs.values()].filter((input) => input.check());
    if (wrong.length)
      return /** @type {HTMLElement | null} */ (this.node.querySelector("[aria-invalid]"))?.focus();
    const values = [...this.inputs].map(([name, input]) => [name, input.value()]);
    return this.answer({
      form: Object.fromEntries(values.filter(([, value]) => value !== undefined)),
    });
  }

  /** @param {Json} answer */
  async answer(answer) {
    if (this.sent || !this.armed || !this.view.live) return;
    this.sent = true;
    this.view.answered.add(this.id);
    this.problem.hidden = true;
    this.disable(true);
    try {
      await request("POST", runPath(this.view.id, "/answer"), {
        body: { question: this.id, answer },
      });
    } catch (error) {
      this.sent = false;
      this.view.answered.delete(this.id);
      this.disable(false);
      const gone = error instanceof Refused && error.status === 404;
      this.problem.textContent = gone ? "That question is not open any more." : messageOf(error);
      this.problem.hidden = false;
    }
  }

  /** The action of a key; null: none. @param {string} key @returns {(() => unknown) | null} */
  meaning(key) {
    const choice = this.choices.find((each) => each[0] === key);
    if (choice) return () => this.answer(choice[2]);
    /** @type {(what: string) => HTMLElement | null} */
    const first = (what) => this.node.querySelector(what);
    if (key === "o" && this.asks === "url") return () => first("a.button")?.click();
    if (key === "f" && this.inputs.size) return () => first("input, select, textarea")?.focus();
    return null;
  }

  /**
   * Handle a key, if the question is visible, and return whether it has a meaning. @param {string}
   * key
   */
  press(key) {
    const does = this.meaning(key);
    if (does === null) return false;
    if (this.inSight) does();
    else this.reveal();
    return true;
  }
}
