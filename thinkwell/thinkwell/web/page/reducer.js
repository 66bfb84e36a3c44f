// @ts-check
/** The reducer: a run as it stands, from the one before and the next event. */

import { find, get, longer, NO_TEXT, put } from "./lists.js";
import { begun, without } from "./state.js";
import { isObject, json, table } from "./text.js";
import { called } from "./toolcalls.js";

/**
 * @import {List} from "./lists.js"
 * @import {AttemptItem, Event, Item, NoteItem, Phase, Plan, QuestionItem, Reducer, State, TextItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

/** Attempts at a result that are kept. */
const ATTEMPTS = 20;

/**
 * The run after an event. Each costs a bounded amount of work, however long the run is.
 * @param {State} state
 * @param {Event} event
 * @returns {State}
 */
export function reduce(state, event) {
  const seq = event.seq ?? state.seq;
  const at = event.at ?? 0;
  const next = (REDUCERS[event.type] ?? passed)(state, event, at);
  return { ...next, seq, at, stalled: event.type === "stalled" ? (event.idle ?? 0) : null };
}

/** @type {Reducer} */
const passed = (state) => state;

const REDUCERS = table(
  /** @type {{[type: string]: Reducer}} */ ({
    thought: (state, event, at) => told(state, event, at, "thought"),
    message: (state, event, at) => told(state, event, at, "message"),
    user_message: (state, event, at) => told(state, event, at, "user"),
    tool_start: (state, event, at) => called(state, event, at),
    tool_update: (state, event, at) => called(state, event, at),
    tool_done: (state, event, at) => called(state, event, at),
    plan: planned,
    usage: (state, event) => ({
      ...state,
      usage: { used: event.used, size: event.size, cost: event.cost ?? state.usage?.cost ?? null },
    }),
    mode: (state, event) => ({ ...state, mode: event.mode_id }),
    config: (state, event) => ({ ...state, model: chosenModel(event.options ?? []) }),
    session: (state, event) => ({
      ...state,
      agent: event.agent,
      cwd: event.cwd,
      session: event.session_id,
      model: event.model ?? "",
      mode: event.mode ?? "",
    }),
    question: asked,
    verdict: (state, event) =>
      ofQuestion(state, event.id, (question) => ({
        ...question,
        verdicts: [...question.verdicts, { verdict: event.verdict, by: event.by, why: event.why }],
      })),
    answer: answered,
    question_done: (state, event) => ofQuestion(state, event.id, (question) => ({ ...question, done: true })),
    result_attempt: attempted,
    phase: (state, event, at) => ({
      ...state,
      phases: [
        ...closedPhases(state.phases, at),
        { phase: event.phase, detail: event.detail ?? "", at, seconds: event.seconds ?? null },
      ],
    }),
    turn_start: (state, event, at) => ({
      ...begun(state, { kind: "turn", at, number: event.number, reminder: event.reminder ?? false }),
      turns: event.number,
      epoch: state.items.length,
      open: -1,
    }),
    turn_end: (state, event) => ({
      ...state,
      reason: event.stop_reason,
      tokens: isObject(event.usage) ? added(state.tokens, event.usage) : state.tokens,
    }),
    notice: (state, event, at) =>
      begun(state, note(at, event.title, event.severity, event.description ?? "")),
    report: (state, event, at) => begun(state, note(at, event.kind, "report", json(event.body, 1))),
    compaction: (state, event, at) => {
      const name = `compaction/${event.id}`;
      const known = find(state.where, name) >= 0;
      return known ? state : begun(state, note(at, "the agent shortens its context"), name);
    },
    replay_start: (state, _, at) => begun(state, note(at, "what follows was said before")),
    replay_end: (state, _, at) => begun(state, note(at, "that was the history of the session")),
    dropped: (state, event) => ({ ...state, dropped: state.dropped + event.count }),
    unknown: (state) => ({ ...state, unknown: state.unknown + 1 }),
    end: ended,
  }),
);

/** @param {number} at @param {string} title @param {string} [severity] @param {string} [detail] @returns {NoteItem} */
function note(at, title, severity = "info", detail = "") {
  return { kind: "note", at, severity, title, detail };
}

/**
 * @param {State} state
 * @param {Event} event
 * @param {number} at
 * @param {"thought" | "message" | "user"} kind
 * @returns {State}
 */
function told(state, event, at, kind) {
  const block = event.content;
  if (isObject(block) && block.type !== "text") {
    return { ...begun(state, { kind: "content", at, from: kind, block }), open: -1 };
  }
  const text = event.text ?? block?.text ?? "";
  const id = event.message_id ?? null;
  const name = `${kind}/${state.epoch}/${id}`;
  const number = id === null ? openOf(state, kind) : find(state.where, name);
  if (number >= 0) {
    const item = /** @type {TextItem} */ (get(state.items, number));
    const more = { ...item, text: longer(item.text, text) };
    const last = kind === "message" ? more.text : state.last;
    return { ...state, items: put(state.items, number, more), open: id === null ? number : -1, last };
  }
  if (!text) return { ...state, open: openOf(state, kind) }; // some agents send empty pieces
  const open = id === null ? state.items.length : -1;
  const begin = longer(NO_TEXT, text);
  const last = kind === "message" ? begin : state.last;
  return { ...begun(state, { kind, at, text: begin, id }, id === null ? undefined : name), open, last };
}

/** The text of a kind that goes on; -1: none does. @param {State} state @param {string} kind */
function openOf(state, kind) {
  if (kind === "user") return lastUser(state.items);
  return state.open >= 0 && get(state.items, state.open).kind === kind ? state.open : -1;
}

/**
 * What the user said without an id, where nothing of the conversation came since; -1: nothing.
 * @param {List<Item>} items
 */
function lastUser(items) {
  for (let number = items.length - 1; number >= 0; number--) {
    const item = get(items, number);
    if (item.kind === "user") return item.id === null ? number : -1;
    if (!["question", "attempt", "note"].includes(item.kind)) return -1;
  }
  return -1;
}

/** @type {Reducer} */
function planned(state, event) {
  const id = event.id ?? "main";
  /** @type {Plan} */
  const plan = { id, entries: event.entries ?? [], markdown: event.markdown ?? null, uri: event.uri ?? null };
  const known = state.plans.some((each) => each.id === id);
  const plans = event.removed
    ? state.plans.filter((each) => each.id !== id)
    : known
      ? state.plans.map((each) => (each.id === id ? plan : each))
      : [...state.plans, plan];
  return { ...state, plans, open: -1 };
}

/** @type {Reducer} */
function asked(state, event, at) {
  const name = `question/${event.id}`;
  /** @type {QuestionItem} */
  const question = {
    kind: "question",
    at,
    id: event.id,
    title: event.title,
    asks: event.asks ?? "permission",
    options: event.options ?? [],
    fields: event.fields ?? [],
    url: event.url ?? null,
    tool: event.tool_id ?? null,
    deadline: event.timeout == null ? null : at + event.timeout,
    verdicts: [],
    answer: null,
    done: false,
  };
  const open = without(state.asked, find(state.where, name)); // where it is asked anew
  return { ...begun(state, question, name), asked: [...open, state.items.length] };
}

/**
 * @param {State} state
 * @param {string} id
 * @param {(question: QuestionItem) => QuestionItem} change
 * @returns {State}
 */
function ofQuestion(state, id, change) {
  const number = find(state.where, `question/${id}`);
  if (number < 0) return state;
  const question = /** @type {QuestionItem} */ (get(state.items, number));
  return { ...state, items: put(state.items, number, change(question)) };
}

/** @type {Reducer} */
function answered(state, event, at) {
  const number = find(state.where, `question/${event.id}`);
  if (!state.asked.includes(number)) return state;
  const choice = event.choice ?? null;
  const answer = { choice, by: event.by, why: event.why, at };
  const { asks } = /** @type {QuestionItem} */ (get(state.items, number));
  const withoutOption = asks === "permission" && choice === null && event.by !== "cancel";
  return {
    ...ofQuestion(state, event.id, (question) => ({ ...question, answer })),
    asked: without(state.asked, number),
    denied: state.denied + (withoutOption || String(choice).startsWith("reject") ? 1 : 0),
  };
}

/** @type {Reducer} */
function attempted(state, event, at) {
  /** @type {AttemptItem} */
  const attempt = {
    kind: "attempt",
    at,
    accepted: event.accepted,
    value: event.value ?? null,
    errors: event.errors ?? [],
  };
  return { ...begun(state, attempt), attempts: [...state.attempts, attempt].slice(-ATTEMPTS), draft: null };
}

/** @param {ReadonlyArray<Phase>} phases @param {number} at @returns {ReadonlyArray<Phase>} */
function closedPhases(phases, at) {
  const last = phases.at(-1);
  if (last === undefined || last.seconds !== null) return phases;
  return [...phases.slice(0, -1), { ...last, seconds: at - last.at }];
}

const COUNTS = {
  total: "totalTokens",
  input: "inputTokens",
  output: "outputTokens",
  cachedRead: "cachedReadTokens",
  cachedWrite: "cachedWriteTokens",
  thought: "thoughtTokens",
};

/** @param {{[name: string]: number} | null} counts @param {{[key: string]: Json}} usage */
function added(counts, usage) {
  const sums = { ...counts };
  for (const [name, key] of Object.entries(COUNTS)) {
    if (Number.isInteger(usage[key])) sums[name] = (sums[name] ?? 0) + usage[key];
  }
  return sums;
}

/** The model that is chosen by a session's options, in the protocol's form. @param {Json[]} options */
function chosenModel(options) {
  const option = options.find((each) => isObject(each) && each.category === "model");
  if (option === undefined) return "";
  const chosen = innerOptions(option).find((each) => each.value === option.currentValue);
  const name = chosen ? chosen.name : option.currentValue;
  return typeof name === "string" ? name : "";
}

/** The choices of an option, or of a group of them. @param {Json} option @returns {Json[]} */
function innerOptions(option) {
  const inner = Array.isArray(option.options) ? option.options.filter(isObject) : [];
  return inner.flatMap((/** @type {Json} */ each) => [each, ...innerOptions(each)]);
}

/** @type {Reducer} */
function ended(state, event, at) {
  const end = {
    status: event.status,
    reason: event.stop_reason ?? "",
    result: event.result ?? null,
    error: event.error ?? null,
    at,
  };
  return {
    ...state,
    phases: closedPhases(state.phases, at),
    open: -1,
    running: [],
    asked: [],
    reason: end.reason || state.reason,
    end,
  };
}
