// @ts-check
/** A run as it stands at one moment. */

import { EMPTY, named, NO_TEXT, NOWHERE, push } from "./lists.js";

/**
 * @import {Index, List, Text} from "./lists.js"
 * @import {Json} from "./text.js"
 */

/** @typedef {{type: string, seq?: number, at?: number, [field: string]: Json}} Event An entry of a run's log. */

/**
 * @typedef {object} TextItem
 * @property {"thought" | "message" | "user"} kind
 * @property {number} at Seconds from the start of the run to its beginning.
 * @property {Text} text
 * @property {string | null} id The message's own id.
 *
 * @typedef {object} ContentItem What is no text in the place of one.
 * @property {"content"} kind
 * @property {number} at
 * @property {string} from
 * @property {Json} block
 *
 * @typedef {object} ToolItem
 * @property {"tool"} kind
 * @property {number} at
 * @property {string} id
 * @property {string} title
 * @property {string} name The tool's own name, from agents that give it.
 * @property {string} does The kind of tool.
 * @property {string} status
 * @property {Json} input
 * @property {Json} output
 * @property {ReadonlyArray<Json>} content
 * @property {ReadonlyArray<{path: string, line?: number}>} locations
 * @property {number} began
 * @property {number | null} ended
 * @property {string | null} parent
 * @property {boolean} edits Whether it is among the calls that change files.
 *
 * @typedef {object} QuestionItem
 * @property {"question"} kind
 * @property {number} at
 * @property {string} id
 * @property {string} title
 * @property {"permission" | "form" | "url"} asks
 * @property {ReadonlyArray<{id: string, name: string, kind: string}>} options
 * @property {ReadonlyArray<Field>} fields
 * @property {string | null} url
 * @property {string | null} tool
 * @property {number | null} deadline Seconds from the start of the run.
 * @property {ReadonlyArray<{verdict: string | null, by: string, why: string}>} verdicts
 * @property {{choice: string | null, by: string, why: string, at: number} | null} answer
 * @property {boolean} done Whether the agent says that what a page was opened for is done.
 *
 * @typedef {object} AttemptItem
 * @property {"attempt"} kind
 * @property {number} at
 * @property {boolean} accepted
 * @property {Json} value
 * @property {ReadonlyArray<string>} errors
 *
 * @typedef {object} NoteItem
 * @property {"note"} kind
 * @property {number} at
 * @property {string} severity
 * @property {string} title
 * @property {string} detail
 *
 * @typedef {object} TurnItem
 * @property {"turn"} kind
 * @property {number} at
 * @property {number} number
 * @property {boolean} reminder
 *
 * @typedef {TextItem | ContentItem | ToolItem | QuestionItem | AttemptItem | NoteItem | TurnItem} Item
 *
 * @typedef {object} Field A field of a form.
 * @property {string} name
 * @property {string} type
 * @property {string} [title]
 * @property {string} [description]
 * @property {boolean} [required]
 * @property {Json} [default]
 * @property {{value: string, title: string, description?: string}[]} [choices]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {string} [pattern]
 * @property {string} [format]
 *
 * @typedef {{phase: string, detail: string, at: number, seconds: number | null}} Phase
 * @typedef {{content: string, status: string, priority: string}} Step
 * @typedef {{id: string, entries: ReadonlyArray<Step>, markdown: string | null, uri: string | null}} Plan
 * @typedef {{status: string, reason: string, result: Json, error: {name: string, message: string} | null,
 *   at: number}} End
 *
 * @typedef {object} State A run at one moment. It does not change.
 * @property {number} seq Number of the last entry.
 * @property {number} at Seconds from the start of the run to the last entry.
 * @property {string} agent
 * @property {string} cwd
 * @property {string} session
 * @property {string} model
 * @property {string} mode
 * @property {ReadonlyArray<Phase>} phases
 * @property {List<Item>} items What happened, in its order.
 * @property {Index} where Numbers of items, by what they are called.
 * @property {number} open Number of the text that goes on; -1: none does.
 * @property {ReadonlyArray<number>} running Numbers of the tool calls that go on.
 * @property {ReadonlyArray<number>} asked Numbers of the open questions.
 * @property {List<number>} edits Numbers of the tool calls that show changes of files.
 * @property {List<number>} commands Numbers of the tool calls that run commands.
 * @property {number} tools How many tool calls there were.
 * @property {number} failed How many of them failed.
 * @property {ReadonlyArray<Plan>} plans
 * @property {{used: number, size: number, cost: {amount: number, currency: string} | null} | null} usage
 * @property {{[name: string]: number} | null} tokens
 * @property {ReadonlyArray<AttemptItem>} attempts The last results that the agent gave.
 * @property {{value: Json, at: number} | null} draft A result that is being given.
 * @property {number | null} stalled Seconds for which nothing was heard of the agent, while that is so.
 * @property {number} turns
 * @property {number} epoch How many items there were when the turn began: ids of messages are those of a turn.
 * @property {number} denied
 * @property {number} dropped
 * @property {number} unknown
 * @property {string} reason Why the last turn ended.
 * @property {Text} last Text of the last message.
 * @property {End | null} end
 */

/** @type {State} */
export const BEGINNING = Object.freeze({
  seq: 0,
  at: 0,
  agent: "",
  cwd: "",
  session: "",
  model: "",
  mode: "",
  phases: [],
  items: EMPTY,
  where: NOWHERE,
  open: -1,
  running: [],
  asked: [],
  edits: EMPTY,
  commands: EMPTY,
  tools: 0,
  failed: 0,
  plans: [],
  usage: null,
  tokens: null,
  attempts: [],
  draft: null,
  stalled: null,
  turns: 0,
  epoch: 0,
  denied: 0,
  dropped: 0,
  unknown: 0,
  reason: "",
  last: NO_TEXT,
  end: null,
});

/** @typedef {(state: State, event: Event, at: number) => State} Reducer */

/**
 * @param {State} state
 * @param {Item} item
 * @param {string} [name]
 * @returns {State}
 */
export function begun(state, item, name) {
  const where = name === undefined ? state.where : named(state.where, name, state.items.length);
  return { ...state, items: push(state.items, item), where };
}

/** @param {ReadonlyArray<number>} numbers @param {number} number */
export function without(numbers, number) {
  return numbers.filter((each) => each !== number);
}

/** @param {ReadonlyArray<number>} numbers @param {number} number */
export function inOrder(numbers, number) {
  const last = numbers.at(-1) ?? -1;
  return number > last ? [...numbers, number] : [...numbers, number].sort((one, other) => one - other);
}
