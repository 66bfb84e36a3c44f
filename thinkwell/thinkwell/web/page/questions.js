// @ts-check
/** Open questions. */

import { changesOf } from "./changes.js";
import { choicesOf, verdictWords } from "./choices.js";
import { diffNode } from "./difftable.js";
import { button, byId, el, isNarrow, keyHint, linkAttributes, mark, set, svg } from "./elements.js";
import { FieldInput } from "./fields.js";
import { hostOf, safeLink } from "./links.js";
import { find, get } from "./lists.js";
import { request } from "./requests.js";
import { messageOf, Refused, runPath } from "./server.js";
import { exact, json, relative, shortened } from "./text.js";
import { bareTitle, commandLine, otherArguments, PLACES } from "./tools.js";

/**
 * @import {Choice} from "./choices.js"
 * @import {Inner} from "./elements.js"
 * @import {QuestionItem, State, ToolItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

/**
 * What a question knows of the run that asks it.
 * @typedef {object} QuestionView
 * @property {string} id
 * @property {State} state The run as it is shown.
 * @property {boolean} live Whether the run goes on and is shown as it is now.
 * @property {Set<string>} answered Ids of the questions that were answered in this window.
 * @property {{show: (tab: string) => void}} panels
 */

/** Milliseconds for which a new question takes no answer: a key or a click then was meant for something else. */
const SETTLE = 400;

/** Pixels of a question, besides its answers, that have to be visible for a key to answer it: a line of it. */
const IN_SIGHT = 24;

const ROUND = 2 * Math.PI * 15;

/** An open question. */
export class QuestionCard {
  /** @param {QuestionItem} question @param {QuestionView} view */
  constructor(question, view) {
    this.question = question;
    this.view = view;
    this.choices = choicesOf(question);
    this.ring = el("span", { class: "ring" });
    this.about = el("div", { class: "body" });
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    /** @type {Map<string, FieldInput>} */
    this.inputs = new Map(question.fields.map((field) => [field.name, new FieldInput(field, question.id)]));
    /** @type {HTMLButtonElement[]} */
    this.buttons = this.choices.map((choice) => this.button(choice));
    const title = `question-${question.id}`.replace(/[^\w-]/g, "_");
    const fill =
      question.asks === "form"
        ? button("Send", { class: "button main", type: "submit", disabled: true })
        : null;
    if (fill) this.buttons.unshift(fill);
    this.answers = el("div", { class: "answers" }, ...this.buttons);
    const form = el(
      "form",
      {
        class: "fields",
        novalidate: true,
        onsubmit: (/** @type {globalThis.Event} */ event) => this.fill(event),
        onkeydown: (/** @type {KeyboardEvent} */ event) =>
          event.key === "Enter" && event.ctrlKey && this.fill(event),
      },
      ...[...this.inputs.values()].map((input) => input.node),
      this.answers,
    );
    this.node = el(
      "section",
      { class: "question", tabindex: "-1", "aria-labelledby": title, "data-question": question.id },
      el(
        "div",
        { class: "top" },
        mark("ask"),
        el("h2", { id: title }, exact(shortened(question.title, 8000)) || "The agent asks for permission"),
        this.ring,
      ),
      this.about,
      question.url === null ? null : this.address(question.url),
      form,
      this.problem,
    );
    this.sent = false;
    this.armed = false;
    this.arming = 0;
    this.arm();
    /** @type {ToolItem | null} */
    this.tool = null;
    this.update(question, true);
  }

  /** Take answers from a moment after it can be seen. */
  arm() {
    if (document.hidden) {
      document.addEventListener("visibilitychange", () => this.arm(), { once: true });
      return;
    }
    clearTimeout(this.arming);
    this.arming = setTimeout(() => {
      this.armed = true;
      for (const each of this.buttons) each.disabled = this.sent;
    }, SETTLE);
  }

  /** Whether one sees what a key would answer. Where there is little room, the answers may cover all of it. */
  get inSight() {
    const dock = byId("dock").getBoundingClientRect();
    const [whole, answers] = [this.node, this.answers].map((node) => {
      const { top, bottom } = node.getBoundingClientRect();
      return Math.max(Math.min(bottom, dock.bottom, window.innerHeight) - Math.max(top, dock.top, 0), 0);
    });
    return whole - answers >= IN_SIGHT && this.node.checkVisibility({ visibilityProperty: true });
  }

  /** Bring it into sight, where it takes answers from a moment later as if it were new. */
  reveal() {
    this.armed = false;
    for (const each of this.buttons) each.disabled = true;
    this.node.focus({ preventScroll: true });
    this.node.scrollIntoView({ block: "start" });
    if (!this.inSight && isNarrow()) {
      this.view.panels.show("timeline"); // it has the most room there
      this.node.scrollIntoView({ block: "start" });
    }
    this.arm();
  }

  /** @param {Choice} choice */
  button(choice) {
    const look =
      choice.kind === "allow" && this.question.asks === "permission" && choice.key === "y"
        ? "button main"
        : "button";
    return button(
      choice.label,
      {
        class: look,
        disabled: true,
        "data-choice": choice.kind,
        "aria-keyshortcuts": choice.key || null,
        onclick: () => this.answer(choice.answer),
      },
      keyHint(choice.key),
    );
  }

  /** @param {string} url */
  address(url) {
    const leads = hostOf(url);
    const open =
      safeLink(url) && leads
        ? el("a", { ...linkAttributes(url), class: "button" }, keyHint("o"), "Open the page")
        : null;
    return el(
      "div",
      { class: "body" },
      el("div", { class: "address" }, exact(url)),
      el(
        "div",
        {},
        leads
          ? `It leads to ${leads}.`
          : "It is not certain where that leads, so it is not opened from here.",
      ),
      open,
    );
  }

  /** @param {QuestionItem} question @param {boolean} [first] */
  update(question, first = false) {
    const { state } = this.view;
    const number = question.tool === null ? -1 : find(state.where, `tool/${question.tool}`);
    const tool = number < 0 ? null : /** @type {ToolItem} */ (get(state.items, number));
    if (!first && question === this.question && tool === this.tool) return;
    this.question = question;
    this.tool = tool;
    this.about.replaceChildren(
      .../** @type {Node[]} */ (
        [
          ...(tool ? aboutTool(tool, state.cwd, question.title) : []),
          ...question.verdicts.map((verdict) => el("div", { class: "dim" }, verdictWords(verdict))),
        ].filter(Boolean)
      ),
    );
    this.about.hidden = !this.about.childNodes.length;
  }

  /** Show how much time is left. @param {number} now */
  tick(now) {
    const { deadline, at } = this.question;
    this.ring.hidden = deadline === null;
    if (deadline === null) return;
    const left = Math.max(deadline - now, 0);
    const share = deadline > at ? left / (deadline - at) : 0;
    if (!this.ring.firstChild) this.ring.append(ringNode(), el("span", {}));
    const arc = this.ring.querySelector("circle + circle");
    arc?.setAttribute("stroke-dasharray", `${ROUND * share} ${ROUND}`);
    /** @type {any} */ (this.ring.lastChild).textContent =
      left >= 100 ? `${Math.ceil(left / 60)}m` : String(Math.ceil(left));
    this.ring.classList.toggle("soon", left < 10);
    set(this.ring, { role: "img", "aria-label": `${Math.ceil(left)} seconds left, then it is denied` });
  }

  /** @param {globalThis.Event} event */
  fill(event) {
    event.preventDefault();
    const wrong = [...this.inputs.values()].map((input) => input.check()).filter((why) => why !== "");
    if (wrong.length)
      return /** @type {HTMLElement | null} */ (this.node.querySelector("[aria-invalid]"))?.focus();
    const values = [...this.inputs].map(([name, input]) => [name, input.value()]);
    return this.answer({ form: Object.fromEntries(values.filter(([, value]) => value !== undefined)) });
  }

  /** @param {Json} answer */
  async answer(answer) {
    if (this.sent || !this.armed || !this.view.live) return;
    this.sent = true;
    this.view.answered.add(this.question.id);
    this.problem.hidden = true;
    for (const each of this.buttons) each.disabled = true;
    try {
      await request("POST", runPath(this.view.id, "/answer"), {
        body: { question: this.question.id, answer },
      });
    } catch (error) {
      this.sent = false;
      this.view.answered.delete(this.question.id);
      for (const each of this.buttons) each.disabled = false;
      const gone = error instanceof Refused && error.status === 404;
      this.problem.textContent = gone ? "That question is not open any more." : messageOf(error);
      this.problem.hidden = false;
    }
  }

  /** What a key does here; null where it means nothing. @param {string} key @returns {(() => unknown) | null} */
  meaning(key) {
    const choice = this.choices.find((each) => each.key === key);
    if (choice) return () => this.answer(choice.answer);
    /** @type {(what: string) => HTMLElement | null} */
    const first = (what) => this.node.querySelector(what);
    if (key === "o" && this.question.url) return () => first("a.button")?.click();
    if (key === "f" && this.inputs.size) return () => first("input, select, textarea")?.focus();
    return null;
  }

  /** Do what a key means here, if that can be seen, and tell whether it means anything. @param {string} key */
  press(key) {
    const does = this.meaning(key);
    if (does === null) return false;
    if (this.inSight) does();
    else this.reveal();
    return true;
  }
}

function ringNode() {
  const circle = () => svg("circle", { cx: 17, cy: 17, r: 15 });
  return svg("svg", { viewBox: "0 0 34 34", "aria-hidden": "true" }, circle(), circle());
}

/**
 * What a call would do, with nothing left out that matters for an answer.
 * @param {ToolItem} tool
 * @param {string} cwd
 * @param {string} title
 * @returns {Inner[]}
 */
function aboutTool(tool, cwd, title) {
  const command = commandLine(tool.input);
  const changes = changesOf(tool, "exact");
  const rest = otherArguments(tool, cwd);
  const told = command !== null || changes.length || rest !== null;
  const files = told ? [] : tool.locations.slice(0, PLACES).map((place) => exact(relative(place.path, cwd)));
  const about =
    told || files.length || bareTitle(tool.title) === bareTitle(title)
      ? files
      : [exact(bareTitle(tool.title))];
  return [
    command === null
      ? null
      : el(
          "pre",
          { class: "wrap", tabindex: "0", "aria-label": "Command that would be run" },
          exact(shortened(command, 100000)),
        ),
    ...changes.map((change) => diffNode(change, { title: exact(relative(change.path, cwd)) })),
    rest === null
      ? null
      : el(
          "pre",
          { class: "wrap", tabindex: "0", "aria-label": "Arguments" },
          exact(shortened(json(rest), 100000)),
        ),
    ...about.map((each) => el("div", { class: "mono" }, each)),
  ];
}
