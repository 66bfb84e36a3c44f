// @ts-check
/** The rows of a run's timeline. */

import { doing } from "./header.js";
import { clean, shortened } from "./text.js";

/**
 * @import {ItemNode, Shown} from "./items.js"
 * @import {Row} from "./timeline.js"
 */

/** Characters of a prompt that are shown. */
const PROMPT = 100000;

/** Kinds of rows, by the letters that their ids begin with. @type {{[letter: string]: string}} */
const KINDS = {
  a: "attempt",
  c: "tool",
  f: "tool",
  m: "message",
  n: "note",
  p: "content",
  q: "question",
  r: "turn",
  t: "thought",
  u: "user",
};

/** Makes the rows of a timeline: those of its items, one of what the run was asked, and one of what it waits for. */
export class Rows {
  constructor() {
    /** What the run was asked, and that as a node. @type {[string, ItemNode]} */
    this.prompt = ["", ""];
  }

  /**
   * @param {Shown} shown
   * @param {string} prompt What the run was asked; empty: it is not known.
   * @param {boolean} stopping Whether the user has stopped it.
   */
  of(shown, prompt, stopping) {
    /** @type {Row[]} */
    const rows = prompt ? [this.asked(prompt)] : [];
    for (const { id, node } of shown.inside("timeline")) {
      const kind = KINDS[/^[a-z](?=[0-9])/.exec(id)?.[0] ?? ""] ?? id;
      rows.push({ key: id, kind, node: /** @type {ItemNode} */ (node) });
    }
    const { words, since } = doing(shown);
    if (since !== null) rows.push(waitRow(stopping ? "stopping" : words, since));
    return rows;
  }

  /** @param {string} prompt @returns {Row} */
  asked(prompt) {
    if (this.prompt[0] !== prompt) {
      const text = clean(shortened(prompt, PROMPT));
      const you = ["span", "unseen", "You: "];
      this.prompt = [prompt, ["div", "", you, ["div", "bubble prose", ["p", "", text]]]];
    }
    return { key: "prompt", kind: "prompt", node: this.prompt[1] };
  }
}

/** @param {string} words @param {number} since @returns {Row} */
function waitRow(words, since) {
  const end = ["span", "end", ["time", "since", { since }]];
  return {
    key: "wait",
    kind: "wait",
    node: ["div", "fold dim", ["mark", "running"], ["span", "wait", words], end],
  };
}
