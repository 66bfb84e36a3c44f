// @ts-check
/**
 * The page of a server of runs: what it shows is reduced from a run's events, one state from the one before.
 *
 * From top to bottom: texts and numbers, lists that share what did not change, the reducer, words, changes of
 * files, Markdown, colours of terminals, replay, windows of long lists; all of that is pure and runs without a
 * page too. Then what touches the document: elements, the server, the views, and the page itself.
 *
 * Nothing that an agent has sent becomes anything but text nodes, and attributes whose values were checked.
 */

/** @typedef {any} Json A JSON value. */
/** @typedef {{type: string, seq?: number, at?: number, [field: string]: Json}} Event An entry of a run's log. */

// ---------------------------------------------------------------------------------------------------------
// Texts that are fit to be shown
// ---------------------------------------------------------------------------------------------------------

/** Characters of a line. A title of a megabyte costs no more than that. */
const LINE = 2000;

const PLAIN = /^[\n\t -~]*$/;

/** What a terminal obeys. No part goes on past where another may begin, so it takes linear time. */
const SEQUENCES = new RegExp(
  [
    "(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]",
    "(?:\\x1b\\]|\\x9d)[^\\x07\\x1b\\x80-\\x9f]{0,10000}(?:\\x07|\\x1b\\\\|\\x9c)",
    "(?:\\x1b[PX^_]|[\\x90\\x98\\x9e\\x9f])[^\\x1b\\x80-\\x9f]{0,10000}(?:\\x1b\\\\|\\x9c)",
    "\\x1b[ -/]*[0-OQ-WYZ\\\\`-~]",
  ].join("|"),
  "g",
);

/** What does not print, but for line feeds, tabs, and the joiners that scripts and emoji need. */
const UNPRINTED = /(?![\n\t\u200c\u200d\u3000 ])[\p{C}\p{Z}\u{e0000}-\u{e0fff}]/gu;

/** What does not show and changes nothing that matters: hints where to break a line, and their like. */
const DROPPED = new Set("\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff");

/** Heaps of marks on one character cover the lines around. No script needs more than eight. */
const HEAP = /([\p{Mn}\p{Me}\u200c\u200d]{8})[\p{Mn}\p{Me}\u200c\u200d]+/gu;

/** Characters that count as printable and show nothing; texts were hidden in some of them. */
const BLANK =
  /[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc]|(?![\n ])[\p{C}\p{Z}\u{e0000}-\u{e0fff}]/gu;

/**
 * Prose of which nothing controls a display: escape sequences and what does not show are gone, and what would
 * turn the direction of writing has its number in its place.
 * @param {string} text
 */
export function clean(text) {
  if (PLAIN.test(text)) return text;
  const told = text
    .replace(SEQUENCES, "")
    .replace(/\r\n?/g, "\n")
    .replace(UNPRINTED, standIn)
    .replace(HEAP, "$1");
  return /^[\p{Mn}\p{Me}\u200c\u200d]/u.test(told) ? `◌${told}` : told;
}

/** @param {string} char */
function standIn(char) {
  const number = char.codePointAt(0) ?? 0;
  if (number >= 0xe0000 && number <= 0xe0fff) return `\\U${number.toString(16).padStart(8, "0")}`;
  if (DROPPED.has(char)) return "";
  if (number < 0x20) return String.fromCharCode(0x2400 + number);
  if (number === 0x7f) return "␡";
  if (/\p{Zs}/u.test(char)) return " ";
  if (/\p{Cs}/u.test(char)) return "\ufffd";
  if (
    /[\p{Co}\p{Cn}]/u.test(char) &&
    number < 0xe0000 &&
    (number > 0xffff || (number >= 0xe000 && number < 0xf900))
  ) {
    return char; // emoji of next year, and the icons of fonts
  }
  return number <= 0xffff
    ? `\\u${number.toString(16).padStart(4, "0")}`
    : `\\U${number.toString(16).padStart(8, "0")}`;
}

/**
 * What a person is to approve: nothing is dropped, and what does not show is written as JSON escapes it.
 * @param {string} text
 */
export function exact(text) {
  return PLAIN.test(text) && !text.includes("\t") ? text : text.replace(BLANK, escaped);
}

/** @param {string} char */
function escaped(char) {
  const units = Array.from({ length: char.length }, (_, i) =>
    char.charCodeAt(i).toString(16).padStart(4, "0"),
  );
  return units.map((unit) => `\\u${unit}`).join("");
}

/**
 * A text as one line, its white space folded, of a bounded length.
 * @param {unknown} text
 * @param {number} [limit]
 */
export function line(text, limit = LINE) {
  if (typeof text !== "string") return "";
  const folded = clean(cut(text, 4 * limit))
    .replace(/\s+/g, " ")
    .trim();
  return folded.length <= limit && text.length <= 4 * limit ? folded : `${cut(folded, limit - 1)}…`;
}

/** The beginning of a text, without half of a character at its end. @param {string} text @param {number} most */
function cut(text, most) {
  return text.slice(0, /[\ud800-\udbff]/.test(text.charAt(most - 1)) ? most - 1 : most);
}

/**
 * @param {string} text
 * @param {number} limit
 */
export function shortened(text, limit) {
  return text.length <= limit
    ? text
    : `${cut(text, limit)}\n… and ${count(text.length - limit)} more characters`;
}

/**
 * @param {Json} value
 * @param {number} [indent]
 */
export function json(value, indent = 2) {
  try {
    return JSON.stringify(value, null, indent) ?? "";
  } catch {
    return "nested too deep to be shown";
  }
}

/**
 * Values by name, of which a name that an agent made up finds none: not what every object has either.
 * @template T
 * @param {{[name: string]: T}} values
 * @returns {{[name: string]: T | undefined}}
 */
function table(values) {
  return Object.assign(Object.create(null), values);
}

/** @param {unknown} value @returns {value is {[key: string]: Json}} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// ---------------------------------------------------------------------------------------------------------
// Numbers as people read them
// ---------------------------------------------------------------------------------------------------------

/** A duration: ``3.2s``, ``37s``, ``3:42``. @param {number} value */
export function seconds(value) {
  const taken = Math.max(Number.isFinite(value) ? value : 0, 0);
  if (Math.round(taken * 10) < 100) return `${taken.toFixed(1)}s`;
  return Math.round(taken) < 60 ? `${Math.round(taken)}s` : clock(taken);
}

/** A time that runs: ``0:07``, ``3:42``, ``1:02:03``. @param {number} value */
export function clock(value) {
  const whole = Math.max(Math.round(Number.isFinite(value) ? value : 0), 0);
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** A number that need not be exact: ``950``, ``18.2k``, ``1.5M``. @param {number} value */
export function count(value) {
  for (const [unit, size] of /** @type {[string, number][]} */ ([
    ["", 1],
    ["k", 1e3],
    ["M", 1e6],
    ["G", 1e9],
  ])) {
    const shown = size === 1 ? String(value) : (value / size).toFixed(value < 99.95 * size ? 1 : 0);
    if (Math.abs(Number(shown)) < 1000) return shown.replace(/\.0$/, "") + unit;
  }
  return value.toExponential(1);
}

const SIGNS = table({ USD: "$", EUR: "€", GBP: "£", JPY: "¥" });

/** @param {{amount: number, currency: string}} cost */
export function money(cost) {
  const small = Math.abs(cost.amount) > 0 && Math.abs(cost.amount) < 0.0095;
  const digits = { minimumFractionDigits: small ? 4 : 2, maximumFractionDigits: small ? 4 : 2 };
  const shown = Number.isFinite(cost.amount) ? cost.amount.toLocaleString("en", digits) : "?";
  const sign = SIGNS[cost.currency];
  return sign ? sign + shown : `${shown} ${line(cost.currency, 12)}`.trim();
}

/**
 * A number of things: ``1 file``, ``3 files``.
 * @param {number} number
 * @param {string} word
 * @param {string} [several]
 */
export function plural(number, word, several = `${word}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? word : several}`;
}

/** @param {string} path @param {string} folder */
export function relative(path, folder) {
  let seen = path;
  if (seen.startsWith("file://")) {
    try {
      seen = decodeURIComponent(seen.slice(7));
    } catch {
      seen = seen.slice(7); // not encoded as it should be
    }
  }
  const root = folder.replace(/[/\\]+$/, "");
  if (root && seen.startsWith(root) && ["/", "\\", ""].includes(seen.charAt(root.length))) {
    seen = seen.slice(root.length + 1) || ".";
  }
  return seen;
}

// ---------------------------------------------------------------------------------------------------------
// Lists and indexes that share what did not change
// ---------------------------------------------------------------------------------------------------------

const CHUNK = 128;

/**
 * A list that is never changed: what is made of it shares all of its chunks but one.
 * @template T
 * @typedef {{readonly length: number, readonly chunks: ReadonlyArray<ReadonlyArray<T>>}} List
 */

/** @type {List<never>} */
export const EMPTY = Object.freeze({ length: 0, chunks: [] });

/** @template T @param {List<T>} list @param {number} index @returns {T} */
export function get(list, index) {
  return list.chunks[Math.floor(index / CHUNK)][index % CHUNK];
}

/** @template T @param {List<T>} list @param {number} index @param {T} value @returns {List<T>} */
export function put(list, index, value) {
  const chunks = list.chunks.slice();
  const chunk = chunks[Math.floor(index / CHUNK)]?.slice() ?? [];
  chunk[index % CHUNK] = value;
  chunks[Math.floor(index / CHUNK)] = chunk;
  return { length: Math.max(list.length, index + 1), chunks };
}

/** @template T @param {List<T>} list @param {T} value @returns {List<T>} */
export function push(list, value) {
  return put(list, list.length, value);
}

/** @template T @param {List<T>} list @returns {T[]} */
export function all(list) {
  return /** @type {T[]} */ ([]).concat(...list.chunks);
}

/** Characters of a piece of a text. Pieces that are full are shared by all states from then on. */
const PIECE = 16384;

/**
 * A text that grows: so every state that has a part of it costs little, however long it is.
 * @typedef {{readonly pieces: ReadonlyArray<string>, readonly length: number}} Text
 */

/** @type {Text} */
export const NO_TEXT = Object.freeze({ pieces: [], length: 0 });

/** @param {Text} text @param {string} more @returns {Text} */
export function longer(text, more) {
  const pieces = text.pieces.slice();
  const last = pieces.at(-1);
  if (last !== undefined && last.length < PIECE) pieces[pieces.length - 1] = last + more;
  else pieces.push(more);
  return { pieces, length: text.length + more.length };
}

/** Its first characters, at most so many. @param {Text} text @param {number} [most] */
export function beginning({ pieces, length }, most = length) {
  let begin = "";
  for (const piece of pieces) {
    if (begin.length >= most) break;
    begin += piece;
  }
  return cut(begin, most);
}

/** Its last characters. @param {Text} text @param {number} most */
export function ending({ pieces }, most) {
  let end = "";
  for (let i = pieces.length - 1; i >= 0 && end.length < most; i--) end = pieces[i] + end;
  return end.slice(-most);
}

const BUCKETS = 128;

/** Numbers by name. @typedef {ReadonlyArray<ReadonlyMap<string, number> | undefined>} Index */

/** @type {Index} */
export const NOWHERE = Object.freeze([]);

/** @param {string} name */
function bucket(name) {
  let hash = name.length;
  for (let i = 0; i < Math.min(name.length, 200); i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return (hash >>> 0) % BUCKETS;
}

/** The number of a name; -1: it has none. @param {Index} index @param {string} name */
export function find(index, name) {
  return index[bucket(name)]?.get(name) ?? -1;
}

/** @param {Index} index @param {string} name @param {number} number @returns {Index} */
export function named(index, name, number) {
  const buckets = index.slice();
  buckets[bucket(name)] = new Map(index[bucket(name)] ?? []).set(name, number);
  return buckets;
}

// ---------------------------------------------------------------------------------------------------------
// The reducer: a run as it stands, from the one before and the next event
// ---------------------------------------------------------------------------------------------------------

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

/** @typedef {(state: State, event: Event, at: number) => State} Reducer */

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
 * @param {Item} item
 * @param {string} [name]
 * @returns {State}
 */
function begun(state, item, name) {
  const where = name === undefined ? state.where : named(state.where, name, state.items.length);
  return { ...state, items: push(state.items, item), where };
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
function called(before, event, at) {
  const name = `tool/${event.id}`;
  const known = find(before.where, name);
  const number = known < 0 ? before.items.length : known;
  /** @type {ToolItem} */
  const old = known < 0 ? noTool(event.id, at) : /** @type {ToolItem} */ (get(before.items, known));
  const merged = MERGED[event.type](old, event, at);
  const tool = { ...merged, edits: old.edits || merged.content.some((part) => part.type === "diff") };
  const state = known < 0 ? begun(before, tool, name) : { ...before, items: put(before.items, known, tool) };
  const goesOn = tool.ended === null;
  const listed = state.running.includes(number);
  const draft = isResultTool(tool) && goesOn ? draftOf(tool.input) : null;
  return {
    ...state,
    open: -1,
    running:
      goesOn === listed
        ? state.running
        : goesOn
          ? inOrder(state.running, number)
          : without(state.running, number),
    tools: state.tools + (known < 0 ? 1 : 0),
    failed: state.failed + (tool.status === "failed" ? 1 : 0) - (old.status === "failed" ? 1 : 0),
    edits: tool.edits && !old.edits ? push(state.edits, number) : state.edits,
    commands:
      tool.does === "execute" && old.does !== "execute" ? push(state.commands, number) : state.commands,
    draft: draft === null ? state.draft : { value: draft, at },
  };
}

/** @param {string} id @param {number} at @returns {ToolItem} */
function noTool(id, at) {
  return {
    kind: "tool",
    at,
    id,
    title: "",
    name: "",
    does: "other",
    status: "pending",
    input: null,
    output: null,
    content: [],
    locations: [],
    began: at,
    ended: null,
    parent: null,
    edits: false,
  };
}

/** @type {{[type: string]: (old: ToolItem, event: Event, at: number) => ToolItem}} */
const MERGED = {
  tool_start: (old, event, at) => ({
    ...noTool(event.id, old.at),
    title: event.title ?? "",
    name: event.name ?? "",
    does: event.kind ?? "other",
    status: event.status ?? "pending",
    input: event.input ?? null,
    content: event.content ?? [],
    locations: event.locations ?? [],
    began: old.ended === null ? old.began : at,
    parent: event.parent ?? null,
    edits: old.edits,
  }),
  tool_update: (old, event) => ({
    ...old,
    title: event.title ?? old.title,
    name: event.name || old.name,
    does: event.kind || old.does,
    status: event.status || old.status,
    input: event.input ?? old.input,
    output: event.output ?? old.output,
    content: event.content ?? old.content,
    locations: event.locations ?? old.locations,
    parent: event.parent || old.parent,
  }),
  tool_done: (old, event, at) => ({
    ...old,
    title: event.title || old.title,
    status: event.status,
    output: event.output ?? null,
    content: event.content ?? [],
    ended: at,
  }),
};

/** @param {ReadonlyArray<number>} numbers @param {number} number */
function without(numbers, number) {
  return numbers.filter((each) => each !== number);
}

/** @param {ReadonlyArray<number>} numbers @param {number} number */
function inOrder(numbers, number) {
  const last = numbers.at(-1) ?? -1;
  return number > last ? [...numbers, number] : [...numbers, number].sort((one, other) => one - other);
}

/** Whether a call is that of the tool by which results are returned. @param {ToolItem} tool */
export function isResultTool(tool) {
  return /(^|[^a-z])return_result$/.test(tool.name || tool.title);
}

/** The result in the arguments of a call, or the part of it that is there. @param {Json} input */
function draftOf(input) {
  if (!isObject(input)) return null;
  const keys = Object.keys(input);
  return keys.length === 1 && keys[0] === "result" ? input.result : input;
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

// ---------------------------------------------------------------------------------------------------------
// Words: what a run does, what its tools do, what it asks
// ---------------------------------------------------------------------------------------------------------

const PHASES = table({
  launching: "looking for {agent}",
  installing: "installing {detail}",
  initializing: "starting {agent}",
  starting: "opening a session",
  authenticating: "waiting for login",
  connecting_tools: "connecting tools",
  tools_ready: "tools are connected",
  prompted: "waiting for the first token",
  responding: "working",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
});

const PARTS = table({
  launching: "start",
  installing: "install",
  initializing: "start",
  starting: "session",
  authenticating: "login",
  connecting_tools: "tools",
  tools_ready: "tools",
  prompted: "first token",
  responding: "answer",
});

const ENDS = table({
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "interrupted",
});

/** Kinds of tools: what is done, what is being done to something, and what is being done. */
const VERBS = table({
  read: ["read", "reading", "reading"],
  edit: ["edit", "editing", "editing"],
  delete: ["delete", "deleting", "deleting"],
  move: ["move", "moving", "moving"],
  search: ["search", "searching for", "searching"],
  execute: ["run", "running", "running a command"],
  think: ["think", "thinking about", "thinking"],
  fetch: ["fetch", "fetching", "fetching"],
  switch_mode: ["mode", "switching to", "switching the mode"],
});

const OTHER = ["tool", "using", "using a tool"];

const STATUSES = table({
  pending: "pending",
  in_progress: "running",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
});

/**
 * What a run is doing, as a line: ``running pytest -q``.
 * @param {State} state
 * @param {{stopping?: boolean}} [about]
 */
export function words(state, { stopping = false } = {}) {
  if (state.end) return ENDS[state.end.status] ?? line(state.end.status);
  const phase = state.phases.at(-1);
  if (phase && ENDS[phase.phase]) return PHASES[phase.phase] ?? "";
  if (stopping) return "stopping";
  if (state.asked.length) return "waiting for your answer";
  if (state.stalled !== null) return `nothing heard for ${seconds(state.stalled)}`;
  if (phase && phase.phase !== "responding") return phaseWords(phase, state.agent);
  return phase ? responding(state) : "starting";
}

/** @param {Phase} phase @param {string} agent */
function phaseWords(phase, agent) {
  const name = line(agent, 200) || "the agent";
  const detail = line(phase.detail, 200);
  if (phase.phase === "starting" && detail) return `waiting: ${detail}`;
  return (PHASES[phase.phase] ?? line(phase.phase))
    .replace("{agent}", () => name)
    .replace("{detail}", () => detail || name);
}

/** @param {State} state */
function responding(state) {
  const tools = runningTools(state);
  const last = tools.at(-1);
  if (last) {
    const doing = line(describe(last, state.cwd).doing, 200);
    return tools.length === 1 ? doing : `${doing} (+${plural(tools.length - 1, "tool")})`;
  }
  if (!state.items.length) return "working";
  const kind = get(state.items, state.items.length - 1).kind;
  return (
    { thought: "thinking", message: "answering", turn: "waiting for the first token" }[String(kind)] ||
    "working"
  );
}

/** The tool calls that go on, but for those that wait for an answer. @param {State} state */
function runningTools(state) {
  const about = new Set(
    state.asked.map((number) => /** @type {QuestionItem} */ (get(state.items, number)).tool),
  );
  return state.running
    .map((number) => /** @type {ToolItem} */ (get(state.items, number)))
    .filter((tool) => !about.has(tool.id));
}

/** How long the parts of a run took, in their order. @param {State} state @returns {[string, number][]} */
export function durations(state) {
  /** @type {Map<string, number>} */
  const taken = new Map();
  for (const { phase, seconds } of state.phases) {
    const word = PARTS[phase];
    if (word && seconds !== null) taken.set(word, (taken.get(word) ?? 0) + seconds);
  }
  return [...taken];
}

/**
 * What to say of a tool call. Every text is a clean line.
 * @typedef {object} Call
 * @property {string} verb
 * @property {string} target
 * @property {string} status
 * @property {number | null} seconds How long it took; null while it goes on.
 * @property {string} doing
 */

/** @param {ToolItem} tool @param {string} cwd @returns {Call} */
export function describe(tool, cwd) {
  const [plain, doing, alone] = VERBS[tool.does] ?? OTHER;
  const name = toolName(tool);
  const own = name && (tool.does === "other" || tool.does === "think");
  const target = line(targetOf(tool, cwd), 500);
  const taken = takenBy(tool);
  const status = STATUSES[tool.status] ?? "pending";
  if (own) {
    const rest = target === name || target === tool.name ? "" : target;
    return {
      verb: name,
      target: rest,
      status,
      seconds: taken,
      doing: `using ${name}${rest ? `: ${rest}` : ""}`,
    };
  }
  const bare = withoutVerb(target, plain);
  return { verb: plain, target: bare, status, seconds: taken, doing: bare ? `${doing} ${bare}` : alone };
}

/** Seconds that a call took; null while it goes on. @param {ToolItem} tool */
function takenBy(tool) {
  return tool.ended === null ? null : Math.max(tool.ended - tool.began, 0);
}

/** @param {ToolItem} tool */
function toolName(tool) {
  const name = line(tool.name, 320);
  const pieces = name.split("__");
  const own = pieces.length === 3 && pieces[0] === "mcp" && pieces[1] && pieces[2] ? pieces[2] : name;
  return own.length <= 32 ? own : `${own.slice(0, 31)}…`;
}

/** @param {string} target @param {string} verb */
function withoutVerb(target, verb) {
  const [first, ...rest] = target.split(" ");
  return rest.length && first.toLowerCase() === verb ? rest.join(" ") : target;
}

/** @param {ToolItem} tool @param {string} cwd */
function targetOf(tool, cwd) {
  const input = tool.input;
  const finders = table({
    execute: () => commandLine(input) ?? "",
    move: () => moved(input, cwd) || filesOf(tool, cwd),
    read: () => filesOf(tool, cwd),
    edit: () => filesOf(tool, cwd),
    delete: () => filesOf(tool, cwd),
    search: () => searched(input, cwd),
    fetch: () => first(input, ["url", "uri", "urls", "query", "prompt"]),
  });
  return finders[tool.does]?.() || bareTitle(tool.title);
}

/** @param {string} title */
function bareTitle(title) {
  const told = title.trim();
  return /^`[^`]+`$/.test(told) ? told.slice(1, -1) : told;
}

/** The first text under one of these keys. @param {Json} input @param {string[]} keys @returns {string} */
function first(input, keys) {
  if (!isObject(input)) return "";
  for (const key of keys) {
    const value = Array.isArray(input[key]) ? input[key][0] : input[key];
    if (typeof value === "string" && value) return value;
  }
  return "";
}

const PATHS = [
  "file_path",
  "filePath",
  "path",
  "absolute_path",
  "file",
  "filename",
  "target_file",
  "notebook_path",
  "paths",
  "uri",
];

/** Places of a call that are looked at. */
const PLACES = 100;

/** @param {ToolItem} tool @param {string} cwd */
function filesOf(tool, cwd) {
  let paths = tool.locations
    .slice(0, PLACES)
    .map(({ path, line }) => relative(path, cwd) + (line && line > 1 ? `:${line}` : ""));
  if (!paths.length) {
    paths = tool.content
      .filter((part) => part.type === "diff")
      .slice(0, PLACES)
      .map(({ path }) => relative(path, cwd));
  }
  const named = first(tool.input, PATHS);
  if (!paths.length && named) paths = [relative(named, cwd)];
  const unique = [...new Set(paths)];
  return unique.slice(0, 2).join(", ") + (unique.length > 2 ? ` (+${unique.length - 2})` : "");
}

/** @param {Json} input @param {string} cwd */
function moved(input, cwd) {
  const source = first(input, ["source", "src", "from", "old_path", "source_path"]);
  const target = first(input, ["destination", "dst", "dest", "to", "new_path", "destination_path", "target"]);
  return source && target ? `${relative(source, cwd)} → ${relative(target, cwd)}` : "";
}

/** @param {Json} input @param {string} cwd */
function searched(input, cwd) {
  const pattern = first(input, ["pattern", "query", "regex", "q", "glob", "search", "search_term"]);
  if (!pattern) return "";
  const where = first(input, ["path", "dir_path", "directory", "include"]);
  const inside = where ? relative(where, cwd) : ".";
  return `"${pattern}"${inside === "." ? "" : ` in ${inside}`}`;
}

const COMMANDS = ["command", "cmd", "argv", "commandLine", "command_line", "shell_command", "script"];
const EDITORS = new Set(["create", "insert", "str_replace", "undo_edit", "view"]);

/**
 * The command line in the arguments of a tool; where there are several, each is a line of it.
 * @param {Json} input
 * @returns {string | null}
 */
export function commandLine(input) {
  if (!isObject(input)) return null;
  const lines = COMMANDS.map((key) => commandOf(input[key])).filter((each) => each !== null);
  const unique = [...new Set(lines)];
  if (!unique.length || (EDITORS.has(unique[0] ?? "") && "path" in input)) return null;
  if (Array.isArray(input.args)) unique[0] = [unique[0], ...input.args.map(quoted)].join(" ").trimEnd();
  const settings = ["env", "environment"].flatMap((key) => pairs(input[key]));
  return [...settings.map(([name, value]) => `${name}=${quoted(value)}`), ...unique].join("\n");
}

/** @param {Json} value @returns {string | null} */
function commandOf(value) {
  if (typeof value === "string") return value;
  return Array.isArray(value) && value.length ? value.map(quoted).join(" ") : null;
}

/** @param {Json} value @returns {[string, Json][]} */
function pairs(value) {
  if (isObject(value)) return Object.entries(value);
  return Array.isArray(value) ? value.filter(isObject).map((each) => [String(each.name), each.value]) : [];
}

/** An argument as a shell wants it. @param {Json} value */
function quoted(value) {
  const text = typeof value === "string" ? value : json(value, 0);
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`;
}

/** Arguments that change nothing in what a command does. */
const HARMLESS = new Set([
  "background",
  "description",
  "explanation",
  "isbackground",
  "justification",
  "maxoutputtokens",
  "reason",
  "reasoning",
  "runinbackground",
  "timeout",
  "timeoutms",
  "timeoutseconds",
  "title",
  "yieldtimems",
]);

/**
 * The arguments that neither the command nor the changes of a call tell of; null: there are none.
 * @param {ToolItem} tool
 * @param {string} cwd
 * @returns {Json}
 */
export function otherArguments(tool, cwd) {
  const input = tool.input;
  const diffs = tool.content.filter((part) => part.type === "diff");
  const isCommand = commandLine(input) !== null;
  if (!isObject(input)) return input ?? null;
  if (!isCommand && (!diffs.length || diffs.length > 20)) return Object.keys(input).length ? input : null;
  const told = (/** @type {string} */ key, /** @type {Json} */ value) => {
    if (/(^|[_-])(cwd|workdir|dir|directory|folder|root)([_-]?path)?$/i.test(key)) return value === cwd;
    if (isCommand) {
      const says = [...COMMANDS, "args", "env", "environment"].includes(key);
      return says || value === null || HARMLESS.has(key.replace(/[_-]/g, "").toLowerCase());
    }
    if (typeof value !== "string") return false;
    const isText = /old|new|text|content|str|patch|insert|replace/i.test(key);
    return diffs.some(
      ({ path, old_text, new_text }) =>
        value === path ||
        value === relative(path, cwd) ||
        (isText && `${old_text ?? ""}\n${new_text}`.includes(value)),
    );
  };
  const rest = Object.entries(input).filter(([key, value]) => !told(key, value));
  return rest.length ? Object.fromEntries(rest) : null;
}

const OUTPUTS = [
  "formatted_output",
  "aggregated_output",
  "output",
  "stdout",
  "text",
  "content",
  "result",
  "error",
];

/** Characters of a tool's output that are shown, from its end. */
const OUTPUT = 20000;

/**
 * What a tool has put out, as it came: the end of it, where it is long.
 * @param {ToolItem} tool
 * @param {number} [limit]
 */
export function outputOf(tool, limit = OUTPUT) {
  const texts = tool.content.filter((part) => part.type === "content").map((part) => blockText(part.content));
  const text = unfenced(texts.filter(Boolean).join("\n") || rawOutput(tool.output));
  if (text.length <= limit) return text;
  const tail = text.slice(-limit);
  return `… ${count(text.length - limit)} characters before this\n${tail.slice(tail.indexOf("\n") + 1)}`;
}

/** What stands in a fence, where all of a text does. @param {string} text */
function unfenced(text) {
  const found = /^\s*(`{3,10})[\w-]{0,30}\n/.exec(text);
  if (found === null) return text;
  const rest = text.slice(found[0].length).trimEnd();
  return rest.endsWith(found[1]) ? rest.slice(0, -found[1].length).replace(/\n$/, "") : text;
}

/** A content block as a text. @param {Json} block @returns {string} */
export function blockText(block) {
  if (block.type === "text") return block.text;
  if (block.type === "resource") return block.text ?? `[${block.mime_type ?? "data"}: ${block.uri}]`;
  return `[${block.mime_type ?? block.uri ?? block.type}]`;
}

/** @param {Json} raw @returns {string} */
function rawOutput(raw) {
  if (raw === null || raw === undefined) return "";
  if (typeof raw === "string") return raw;
  if (!isObject(raw)) return json(raw, 0);
  const texts = OUTPUTS.map((key) => raw[key]).filter((each) => typeof each === "string" && each !== "");
  const shown =
    typeof raw.stderr === "string" && raw.stderr ? [...texts.slice(0, 1), raw.stderr] : texts.slice(0, 1);
  return shown.length ? shown.join("\n") : json(raw, 0);
}

/** The exit code of a command, where the agent tells it. @param {ToolItem} tool @returns {number | null} */
export function exitCode(tool) {
  if (!isObject(tool.output)) return null;
  for (const key of ["exit_code", "exitCode", "exit_status", "returncode"]) {
    if (Number.isInteger(tool.output[key])) return tool.output[key];
  }
  return null;
}

/** What a run has used, piece by piece, the most important first. @param {State} state @returns {string[]} */
export function usageParts(state) {
  const { usage, tokens } = state;
  const parts = [];
  if (usage)
    parts.push(usage.size ? `${count(usage.used)}/${count(usage.size)} ctx` : `${count(usage.used)} ctx`);
  if (tokens) {
    if (!usage && tokens.input !== undefined) parts.push(`${count(tokens.input)} in`);
    if (tokens.output !== undefined) parts.push(`${count(tokens.output)} out`);
    if (tokens.input === undefined && tokens.output === undefined && tokens.total !== undefined) {
      parts.push(`${count(tokens.total)} tokens`);
    }
    const share = cachedShare(tokens);
    if (share !== null) parts.push(`${Math.round(share * 100)}% cached`);
  }
  if (usage?.cost) parts.push(`${money(usage.cost)} (agent)`);
  return parts;
}

/**
 * Which part of the input came from a cache. Some agents count that as input and some do not.
 * @param {{[name: string]: number}} tokens
 */
function cachedShare({ total, input, output, cachedRead, cachedWrite }) {
  if (!cachedRead || cachedRead < 0 || input === undefined || input < 0) return null;
  const apart = total !== undefined && total >= input + (output ?? 0) + cachedRead;
  const whole = cachedRead > input || apart ? input + cachedRead + Math.max(cachedWrite ?? 0, 0) : input;
  return cachedRead / whole;
}

// Questions

const KEYS = table({
  allow_once: "y",
  allow_always: "a",
  reject_once: "n",
  reject_always: "d",
});

const LABELS = table({
  allow_once: "Allow once",
  allow_always: "Always allow",
  reject_once: "Deny",
  reject_always: "Always deny",
});

const PLAIN_NAMES =
  /^((allow|accept|approve|yes|reject|deny|decline|no|always|never)( once| always| allow| reject| deny| it| this time)?|always (allow|reject|deny)|just once|once)[.!]*$/i;

/**
 * A button of a question.
 * @typedef {{key: string, label: string, answer: Json, kind: "allow" | "deny" | "other"}} Choice
 */

/**
 * What may be answered, with the keys for it. They follow from what an option means, not from its name.
 * @param {QuestionItem} question
 * @returns {Choice[]}
 */
export function choicesOf(question) {
  if (question.asks === "url") {
    return [
      { key: "y", label: "I have opened it", answer: "accept", kind: "allow" },
      { key: "n", label: "No", answer: "decline", kind: "deny" },
    ];
  }
  if (question.asks === "form") return [{ key: "n", label: "Decline", answer: "decline", kind: "deny" }];
  /** @type {Choice[]} */
  const choices = [];
  const taken = new Set();
  for (const option of question.options.slice(0, 50)) {
    let key = KEYS[option.kind] ?? "";
    if (!key || taken.has(key)) key = [..."123456789"].find((digit) => !taken.has(digit)) ?? "";
    taken.add(key);
    choices.push({
      key,
      label: optionLabel(option),
      answer: { option: option.id },
      kind: optionKind(option.kind),
    });
  }
  if (!question.options.some((option) => option.kind.startsWith("reject"))) {
    choices.push({ key: "n", label: "Deny", answer: "deny", kind: "deny" }); // nobody has to allow what he is asked
  }
  return choices;
}

/** @param {string} kind @returns {Choice["kind"]} */
function optionKind(kind) {
  return kind.startsWith("allow") ? "allow" : kind.startsWith("reject") ? "deny" : "other";
}

/** @param {{name: string, kind: string}} option */
function optionLabel({ name, kind }) {
  const told = line(name, 60);
  const label = LABELS[kind];
  if (label === undefined) return told || line(kind, 60);
  return !told || PLAIN_NAMES.test(told) ? label : `${label}: ${told}`;
}

const OUTCOMES = table({
  allow_once: "allowed",
  allow_always: "allowed for good",
  reject_once: "denied",
  reject_always: "denied for good",
  accept: "accepted",
  decline: "declined",
});

/** Who decides, as people call it. Where nobody is named, the reason says enough. */
const DECIDERS = table({
  human: "elsewhere",
  policy: "by the permission policy",
  remembered: "",
  handler: "by the server's program",
  listener: "by the server's program",
  supervisor: "by the supervisor",
  deadline: "",
  cancel: "",
  letta: "in a Letta client",
});

/** What reasons mean that tell nobody anything as they are. */
const REASONS = table({
  "answered from outside": "",
  'permissions="deny"': "it denies all that is asked",
  'permissions="allow"': "it allows all that is asked",
  "no rule fits; otherwise: deny": "no rule allows it",
  "no rule fits; otherwise: allow": "no rule forbids it",
  "no one who was asked answered it": "nobody is there who may answer",
  "it was answered for the whole session": "it was answered before, for the whole session",
});

/**
 * What became of a question: ``denied by the supervisor: it deletes files``.
 * @param {QuestionItem} question
 * @param {{here?: boolean, caller?: string}} [about] `here`: it was answered in this window. `caller`: whom the
 *   server takes this browser for.
 */
export function outcome({ answer }, { here = false, caller = "" } = {}) {
  if (answer === null) return "";
  const what = answer.choice === null ? "withdrawn" : (OUTCOMES[answer.choice] ?? line(answer.choice, 60));
  const by = line(answer.by, 60);
  const who = here ? "by you" : by && by === caller ? "elsewhere" : (DECIDERS[by] ?? (by && `by ${by}`));
  const why = REASONS[answer.why] ?? line(answer.why, 500);
  return `${what}${who ? ` ${who}` : ""}${why ? `: ${why}` : ""}`;
}

/** Whether the agent got what it asked for; null where the question was withdrawn. @param {QuestionItem} question */
export function wasAllowed({ answer }) {
  const choice = answer?.choice ?? null;
  return choice === null ? null : choice.startsWith("allow") || choice === "accept";
}

/** @param {{verdict: string | null, by: string, why: string}} verdict */
export function verdictWords({ verdict, by, why }) {
  const said = verdict === null ? "no answer" : line(verdict, 60).replaceAll("_", " ");
  return `${line(by, 60)}: ${said}${why ? ` (${line(why, 500)})` : ""}`;
}

const FIELD_TYPES = table({
  string: "text",
  number: "number",
  integer: "whole number",
  boolean: "yes or no",
  choice: "one of these",
  choices: "any of these",
});

/** What may stand in a field: ``whole number, 1 to 10, required``. @param {Field} field */
export function hintOf(field) {
  const of = { string: " characters", choices: " of them" }[field.type] ?? "";
  const { minimum: least, maximum: most } = field;
  const hints = [FIELD_TYPES[field.type] ?? "value"];
  if (least !== undefined && most !== undefined) hints.push(`${least} to ${most}${of}`);
  else if (least !== undefined) hints.push(`at least ${least}${of}`);
  else if (most !== undefined) hints.push(`at most ${most}${of}`);
  if (field.format) hints.push(line(field.format, 60));
  if (field.required) hints.push("required");
  return hints.join(", ");
}

/**
 * The host that a browser goes to; empty where that is not certain. Names with letters beyond ASCII appear as
 * ``xn--…``, since letters of different scripts look alike.
 * @param {string} url
 */
export function hostOf(url) {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]+(?:[/?#]|$)/i.test(url)) return "";
  try {
    return new URL(url).hostname;
  } catch {
    return "";
  }
}

/** An address that may be followed; null: it may not. @param {string} url */
export function safeLink(url) {
  if (url.length > 4000 || /[\x00-\x20\x7f-\x9f]/.test(url)) return null;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1].toLowerCase();
  if (scheme === "mailto") return url;
  return (scheme === "http" || scheme === "https") && hostOf(url) ? url : null;
}

// ---------------------------------------------------------------------------------------------------------
// Rows of the timeline
// ---------------------------------------------------------------------------------------------------------

/**
 * A row of the timeline: an item, or several tool calls in one line.
 * @typedef {object} Row
 * @property {string} key
 * @property {Item} item
 * @property {ToolItem[]} folded The calls that share the line, where there are several.
 * @property {number} depth How deep it stands in sub-agents.
 * @property {number | null} until When the next item began; null: it is the last one.
 */

/** Sub-agents of sub-agents that are drawn in their places. */
const DEPTH = 4;

/** @type {WeakMap<List<Item>, Row[]>} */
const rowsKnown = new WeakMap();

/** The rows of a run. @param {State} state @returns {Row[]} */
export function rowsOf(state) {
  const known = rowsKnown.get(state.items);
  if (known !== undefined) return known;
  const rows = arranged(all(state.items));
  rowsKnown.set(state.items, rows);
  return rows;
}

/** @param {Item[]} items */
function arranged(items) {
  /** @type {Map<string, number[]>} */
  const children = new Map();
  const seen = new Set();
  const about = new Set();
  const nested = new Set();
  items.forEach((item, number) => {
    if (item.kind === "question" && item.tool !== null) about.add(item.tool);
    if (item.kind !== "tool") return;
    if (item.parent !== null && seen.has(item.parent)) {
      nested.add(number);
      const siblings = children.get(item.parent);
      if (siblings === undefined) children.set(item.parent, [number]);
      else siblings.push(number);
    }
    seen.add(item.id);
  });
  /** @type {Row[]} */
  const rows = [];
  /** @type {[number, number][]} Numbers of items with their depths, those to come first last. */
  const open = items.map((_, number) => /** @type {[number, number]} */ ([number, 0])).reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [number, depth] = next;
    if (depth === 0 && nested.has(number)) continue;
    addRow(rows, items, number, depth, (item) => folds(item, about, children));
    const item = items[number];
    const inner = item.kind === "tool" ? (children.get(item.id) ?? []) : [];
    for (const child of inner.toReversed()) open.push([child, Math.min(depth + 1, DEPTH)]);
  }
  return rows;
}

/**
 * @param {Row[]} rows
 * @param {Item[]} items
 * @param {number} number
 * @param {number} depth
 * @param {(item: Item) => boolean} foldable
 */
function addRow(rows, items, number, depth, foldable) {
  const item = items[number];
  const last = rows.at(-1);
  if (last && depth === last.depth && foldable(item) && foldable(last.item)) {
    if (!last.folded.length) last.folded.push(/** @type {ToolItem} */ (last.item));
    last.folded.push(/** @type {ToolItem} */ (item));
  } else if (item.kind !== "turn" || item.number > 1 || item.reminder) {
    rows.push({ key: String(number), item, folded: [], depth, until: items[number + 1]?.at ?? null });
  }
}

/**
 * Whether a call may share a line with those next to it: it has only looked at something.
 * @param {Item} item
 * @param {Set<string>} about
 * @param {Map<string, number[]>} children
 */
function folds(item, about, children) {
  return (
    item.kind === "tool" &&
    (item.does === "read" || item.does === "search") &&
    item.status === "completed" &&
    !about.has(item.id) &&
    !children.has(item.id)
  );
}

/** Whether two rows show the same. @param {Row} one @param {Row} other */
export function sameRow(one, other) {
  return (
    one.item === other.item &&
    one.until === other.until &&
    one.depth === other.depth &&
    one.folded.length === other.folded.length &&
    one.folded.every((tool, i) => tool === other.folded[i])
  );
}

/** Calls in one line: ``read models.py, db.py (+4)``. @param {ToolItem[]} tools @param {string} cwd @returns {Call} */
export function describeFold(tools, cwd) {
  const calls = tools.map((tool) => ({ does: tool.does, ...describe(tool, cwd) }));
  const does = calls.some((call) => call.does === "read") ? "read" : "search";
  const targets = [...new Set(calls.filter((call) => call.does === does).map((call) => call.target))];
  const searches = does === "read" ? calls.filter((call) => call.does === "search").length : 0;
  const more = [
    ...(targets.length > 2 ? [`+${targets.length - 2}`] : []),
    ...(searches ? [plural(searches, "search", "searches")] : []),
  ];
  const began = Math.min(...tools.map((tool) => tool.began));
  return {
    verb: does,
    target: targets.slice(0, 2).join(", ") + (more.length ? ` (${more.join(", ")})` : ""),
    status: "done",
    seconds: Math.max(...tools.map((tool) => tool.ended ?? tool.began)) - began,
    doing: "",
  };
}

// ---------------------------------------------------------------------------------------------------------
// Changes of files
// ---------------------------------------------------------------------------------------------------------

/**
 * Items of the old sequence in whose place others stand: ``old[oldFrom:oldTo]``. Either may be none.
 * @typedef {{oldFrom: number, oldTo: number, newFrom: number, newTo: number}} Change
 */

/** Comparisons after which two texts are taken for wholly different. */
const STEPS = 200000;

/**
 * The differences of two sequences, by E. Myers' algorithm, with an end to its patience.
 * @param {string[]} old
 * @param {string[]} fresh
 * @param {number} [most]
 * @returns {{changes: Change[], exact: boolean}}
 */
export function compare(old, fresh, most = STEPS) {
  const least = Math.min(old.length, fresh.length);
  let head = 0;
  while (head < least && old[head] === fresh[head]) head++;
  let tail = 0;
  while (tail < least - head && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail++;
  const whole = { oldFrom: head, oldTo: old.length - tail, newFrom: head, newTo: fresh.length - tail };
  if (head === whole.oldTo && head === whole.newTo) return { changes: [], exact: true };
  if (head === whole.oldTo || head === whole.newTo) return { changes: [whole], exact: true };
  const found = shortest(old.slice(head, whole.oldTo), fresh.slice(head, whole.newTo), most);
  if (found === null) return { changes: [whole], exact: false };
  return { changes: found.map((change) => shifted(change, head)), exact: true };
}

/** @param {Change} change @param {number} by @returns {Change} */
function shifted({ oldFrom, oldTo, newFrom, newTo }, by) {
  return { oldFrom: oldFrom + by, oldTo: oldTo + by, newFrom: newFrom + by, newTo: newTo + by };
}

/**
 * The fewest changes; null: it takes too long to find them.
 * @param {string[]} old
 * @param {string[]} fresh
 * @param {number} most
 * @returns {Change[] | null}
 */
function shortest(old, fresh, most) {
  /** @type {Map<number, number>} */
  const furthest = new Map([[1, 0]]);
  /** @type {Map<number, number>[]} How far each diagonal was followed, by number of differences. */
  const reached = [];
  const on = (/** @type {number} */ diagonal) => furthest.get(diagonal) ?? -1;
  for (let differences = 0, steps = 0; ; differences++) {
    for (let diagonal = -differences; diagonal <= differences; diagonal += 2) {
      const down =
        diagonal === -differences || (diagonal !== differences && on(diagonal - 1) < on(diagonal + 1));
      let x = down ? on(diagonal + 1) : on(diagonal - 1) + 1;
      let y = x - diagonal;
      steps++;
      while (x < old.length && y < fresh.length && old[x] === fresh[y]) {
        x++;
        y++;
        steps++;
      }
      furthest.set(diagonal, x);
      if (x >= old.length && y >= fresh.length) return wayBack(old.length, fresh.length, reached);
    }
    if (steps > most) return null;
    reached.push(new Map(furthest));
  }
}

/** @param {number} x @param {number} y @param {Map<number, number>[]} reached @returns {Change[]} */
function wayBack(x, y, reached) {
  /** @type {Change[]} */
  const changes = [];
  for (let differences = reached.length; differences > 0; differences--) {
    const before = reached[differences - 1];
    const diagonal = x - y;
    const on = (/** @type {number} */ each) => before.get(each) ?? -1;
    const down =
      diagonal === -differences || (diagonal !== differences && on(diagonal - 1) < on(diagonal + 1));
    const fromX = down ? on(diagonal + 1) : on(diagonal - 1);
    const fromY = fromX - (down ? diagonal + 1 : diagonal - 1);
    const toX = down ? fromX : fromX + 1;
    const toY = down ? fromY + 1 : fromY;
    const last = changes.at(-1);
    if (last && last.oldFrom === toX && last.newFrom === toY) {
      changes[changes.length - 1] = { ...last, oldFrom: fromX, newFrom: fromY };
    } else {
      changes.push({ oldFrom: fromX, oldTo: toX, newFrom: fromY, newTo: toY });
    }
    [x, y] = [fromX, fromY];
  }
  return changes.reverse();
}

/**
 * @typedef {[from: number, to: number]} Span Characters of a line.
 *
 * @typedef {object} DiffLine
 * @property {" " | "+" | "-"} sign
 * @property {string} text
 * @property {number | null} old Its number in the old file; null: it has none there, or it is not known.
 * @property {number | null} fresh The same in the new one.
 * @property {Span[]} spans Which parts changed, where a similar line stands in its place.
 *
 * @typedef {{lines: DiffLine[], more: number}} Hunk Lines that changed, with some around them.
 *
 * @typedef {object} FileChange
 * @property {string} path
 * @property {number} added
 * @property {number} removed
 * @property {Hunk[]} hunks
 * @property {boolean} isNew
 * @property {number} more How many hunks follow that are not here.
 * @property {boolean} cut Whether the texts were too long or too different to be compared line by line.
 */

const CONTEXT = 3;
/** Hunks of a change, and lines of a side of a hunk, that are kept. */
const HUNKS = 40;
const SIDE = 400;
/** Characters of a line that are kept. */
const WIDTH = 500;
/** Characters of both texts, from which on only their common beginning and end are looked for. */
const COMPARED = 2000000;
/** So many lines, with an end to the last one, are taken for a whole file. */
const WHOLE = 20;

/** What was compared once is remembered, by how its lines are shown. */
const changesKnown = { clean: new WeakMap(), exact: new WeakMap() };

/**
 * The change that a piece of a tool's content shows.
 * @param {Json} diff
 * @param {number | undefined} number The line that the call names.
 * @param {"clean" | "exact"} [how] Whether it is to be approved: then what does not show is an escape.
 * @returns {FileChange}
 */
export function changeOf(diff, number, how = "clean") {
  const known = changesKnown[how].get(diff);
  if (known !== undefined) return known;
  const show = (/** @type {string} */ text) => lineText(text, how);
  const [old, fresh] = [linesOf(diff.old_text ?? ""), linesOf(diff.new_text)];
  const size = (diff.old_text ?? "").length + diff.new_text.length;
  const { changes, exact } = compare(old, fresh, size <= COMPARED ? STEPS : 0);
  const base = baseOf(diff, number, changes);
  const groups = grouped(changes);
  /** @type {FileChange} */
  const change = {
    path: diff.path,
    added: changes.reduce((sum, each) => sum + each.newTo - each.newFrom, 0),
    removed: changes.reduce((sum, each) => sum + each.oldTo - each.oldFrom, 0),
    hunks: groups.slice(0, HUNKS).map((group) => hunkOf(group, old, fresh, base, show)),
    isNew: diff.old_text == null,
    more: Math.max(groups.length - HUNKS, 0),
    cut: !exact,
  };
  changesKnown[how].set(diff, change);
  return change;
}

/** Lines that changes have added, and removed. @param {{added: number, removed: number}[]} changes */
function sumsOf(changes) {
  const sum = (/** @type {"added" | "removed"} */ what) => changes.reduce((sum, each) => sum + each[what], 0);
  return /** @type {const} */ ([sum("added"), sum("removed")]);
}

/** @param {string} text */
function linesOf(text) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * The number of the text's first line in its file. Some agents send whole files and some only the lines around
 * a change; none says which.
 * @param {Json} diff
 * @param {number | undefined} number
 * @param {Change[]} changes
 * @returns {number | null}
 */
function baseOf(diff, number, changes) {
  if (diff.old_text == null) return 1;
  if (number !== undefined) return changes.length && number === changes[0].newFrom + 1 ? 1 : number;
  return diff.old_text.endsWith("\n") && linesOf(diff.old_text).length >= WHOLE ? 1 : null;
}

/** @param {Change[]} changes @returns {Change[][]} */
function grouped(changes) {
  /** @type {Change[][]} */
  const groups = [];
  for (const change of changes) {
    const last = groups.at(-1);
    if (last && change.oldFrom - last[last.length - 1].oldTo <= 2 * CONTEXT) last.push(change);
    else groups.push([change]);
  }
  return groups;
}

/**
 * @param {Change[]} group
 * @param {string[]} old
 * @param {string[]} fresh
 * @param {number | null} base
 * @param {(text: string) => string} show
 * @returns {Hunk}
 */
function hunkOf(group, old, fresh, base, show) {
  /** @type {DiffLine[]} */
  const lines = [];
  let more = 0;
  const shift = group[0].oldFrom - group[0].newFrom;
  let at = Math.max(group[0].newFrom - CONTEXT, 0);
  let gone = shift;
  const number = (/** @type {number} */ index) => (base === null ? null : base + index);
  const same = (/** @type {number} */ index) =>
    lines.push({
      sign: " ",
      text: show(fresh[index]),
      old: number(index + gone),
      fresh: number(index),
      spans: [],
    });
  for (const change of group) {
    while (at < change.newFrom) same(at++);
    const oldTo = Math.min(change.oldTo, change.oldFrom + SIDE);
    const newTo = Math.min(change.newTo, change.newFrom + SIDE);
    more += change.oldTo - oldTo + change.newTo - newTo;
    const removed = old.slice(change.oldFrom, oldTo).map(show);
    const added = fresh.slice(change.newFrom, newTo).map(show);
    const marks = removed.map((text, i) => (i < added.length ? spansOf(text, added[i]) : [[], []]));
    removed.forEach((text, i) =>
      lines.push({
        sign: "-",
        text,
        old: number(change.oldFrom + i),
        fresh: null,
        spans: marks[i][0],
      }),
    );
    added.forEach((text, i) =>
      lines.push({
        sign: "+",
        text,
        old: null,
        fresh: number(change.newFrom + i),
        spans: marks[i]?.[1] ?? [],
      }),
    );
    gone += change.oldTo - change.oldFrom - (change.newTo - change.newFrom);
    at = change.newTo;
  }
  const end = Math.min(at + CONTEXT, fresh.length);
  while (at < end) same(at++);
  return { lines, more };
}

/** @param {string} text @param {"clean" | "exact"} how */
function lineText(text, how) {
  const begin = text.slice(0, 2 * WIDTH).replace(/\r$/, "");
  const shown = how === "exact" ? exact(begin) : clean(begin.replaceAll("\r", "␍"));
  return text.length <= 2 * WIDTH && shown.length <= WIDTH ? shown : `${shown.slice(0, WIDTH - 1)}…`;
}

/**
 * Which parts of two lines differ; nothing where they have little in common.
 * @param {string} was
 * @param {string} now
 * @returns {[Span[], Span[]]}
 */
export function spansOf(was, now) {
  const old = was.match(/\w+|\s+|[^\w\s]/gu) ?? [];
  const fresh = now.match(/\w+|\s+|[^\w\s]/gu) ?? [];
  const { changes, exact } = compare(old, fresh, 2000);
  const removed = extents(
    old,
    changes.map((change) => [change.oldFrom, change.oldTo]),
  );
  const added = extents(
    fresh,
    changes.map((change) => [change.newFrom, change.newTo]),
  );
  const length = was.trim().length + now.trim().length;
  const changed = [...removed, ...added].reduce((sum, [from, to]) => sum + to - from, 0);
  return !exact || !length || (length - changed) / length < 0.4 ? [[], []] : [removed, added];
}

/** Where words are, in characters. @param {string[]} words @param {number[][]} ranges @returns {Span[]} */
function extents(words, ranges) {
  const starts = [0];
  for (const word of words) starts.push(starts[starts.length - 1] + word.length);
  /** @type {Span[]} */
  const found = [];
  for (const [from, to] of ranges) {
    if (from === to) continue;
    const last = found.at(-1);
    const gap = last ? words.slice(starts.indexOf(last[1]), from).join("") : "x";
    if (last && !gap.trim()) last[1] = starts[to];
    else found.push([starts[from], starts[to]]);
  }
  return found;
}

/**
 * The lines of a hunk side by side: what was removed beside what came in its place.
 * @param {DiffLine[]} lines
 * @returns {[DiffLine | null, DiffLine | null][]}
 */
export function sideBySide(lines) {
  /** @type {[DiffLine | null, DiffLine | null][]} */
  const rows = [];
  let removed = /** @type {DiffLine[]} */ ([]);
  let added = /** @type {DiffLine[]} */ ([]);
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++)
      rows.push([removed[i] ?? null, added[i] ?? null]);
    [removed, added] = [[], []];
  };
  for (const each of lines) {
    if (each.sign === " ") {
      flush();
      rows.push([each, each]);
    } else if (each.sign === "-") {
      if (added.length) flush();
      removed.push(each);
    } else added.push(each);
  }
  flush();
  return rows;
}

/**
 * The changes that a tool call shows.
 * @param {ToolItem} tool
 * @param {"clean" | "exact"} [how]
 * @returns {FileChange[]}
 */
export function changesOf(tool, how = "clean") {
  const lines = new Map(tool.locations.slice(0, PLACES).map((place) => [place.path, place.line]));
  return tool.content
    .filter((part) => part.type === "diff")
    .map((part) => changeOf(part, lines.get(part.path), how));
}

/**
 * @typedef {object} ChangedFile What became of a file in a run.
 * @property {string} path As seen from the folder of the session.
 * @property {number} added
 * @property {number} removed
 * @property {boolean} isNew
 * @property {{change: FileChange, status: string}[]} edits
 */

/** The files that a run has changed, or wants to. Calls that failed are left out. @param {State} state */
export function filesChanged(state) {
  /** @type {Map<string, ChangedFile>} */
  const files = new Map();
  for (const number of all(state.edits)) {
    const tool = /** @type {ToolItem} */ (get(state.items, number));
    if (tool.status === "failed" || tool.status === "cancelled") continue;
    for (const change of changesOf(tool)) {
      const path = relative(change.path, state.cwd);
      const file = files.get(path) ?? { path, added: 0, removed: 0, isNew: change.isNew, edits: [] };
      file.added += change.added;
      file.removed += change.removed;
      file.edits.push({ change, status: STATUSES[tool.status] ?? "pending" });
      files.set(path, file);
    }
  }
  return [...files.values()];
}

/**
 * @typedef {object} Folder A folder of a tree of changed files.
 * @property {string} name
 * @property {Folder[]} folders
 * @property {ChangedFile[]} files
 */

/** @param {ChangedFile[]} files @returns {Folder} */
export function treeOf(files) {
  /** @type {Folder} */
  const root = { name: "", folders: [], files: [] };
  for (const file of files) {
    const names = file.path.split("/").slice(0, -1).slice(0, 20);
    let folder = root;
    for (const name of names) {
      let inner = folder.folders.find((each) => each.name === name);
      if (inner === undefined) folder.folders.push((inner = { name, folders: [], files: [] }));
      folder = inner;
    }
    folder.files.push(file);
  }
  return joined(root);
}

/** The tree with a folder that only holds another one in one line with it. @param {Folder} folder @returns {Folder} */
function joined(folder) {
  const folders = folder.folders.map(joined).map((inner) => {
    const [only] = inner.folders;
    return inner.folders.length === 1 && !inner.files.length
      ? { ...only, name: `${inner.name}/${only.name}` }
      : inner;
  });
  return { ...folder, folders };
}

// ---------------------------------------------------------------------------------------------------------
// Markdown, as a tree of plain values
// ---------------------------------------------------------------------------------------------------------

/**
 * An element to be made, or a text. Tags and attributes are ours; only texts and checked addresses are not.
 * @typedef {string | {tag: string, attrs?: {[name: string]: string}, inner: Mark[]}} Mark
 * @typedef {{kind: string, source: string}} Block A piece of a text that is drawn by itself.
 */

/** Characters of a block in which marks are looked for. */
const MARKED = 20000;
/** Lists, quotes and emphasis in each other. */
const NESTED = 8;
const TABLE_ROWS = 500;
const TABLE_COLUMNS = 50;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const LISTED = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const DELIMITER = /^ *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$/;

/**
 * The blocks of a clean text. The last one may go on with the next piece of the text; the others stay.
 * @param {string} text
 * @returns {Block[]}
 */
export function blocksOf(text) {
  const lines = text.split("\n");
  /** @type {Block[]} */
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at++;
      continue;
    }
    const [kind, end] = blockAt(lines, at);
    blocks.push({ kind, source: lines.slice(at, end).join("\n") });
    at = end;
  }
  return blocks;
}

/** What begins at a line, and where it ends. @param {string[]} lines @param {number} at @returns {[string, number]} */
function blockAt(lines, at) {
  const fence = FENCE.exec(lines[at]);
  if (fence) return ["code", fenceEnd(lines, at, fence[1])];
  if (HEADING.test(lines[at])) return ["heading", at + 1];
  if (RULE.test(lines[at])) return ["rule", at + 1];
  if (QUOTE.test(lines[at])) return ["quote", endOf(lines, at, (each) => QUOTE.test(each))];
  if (LISTED.test(lines[at])) return ["list", listEnd(lines, at)];
  if (isTable(lines, at)) return ["table", endOf(lines, at, (each) => each.includes("|"))];
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !interrupts(lines, end)) end++;
  return ["text", end];
}

/** @param {string[]} lines @param {number} at @param {string} mark */
function fenceEnd(lines, at, mark) {
  for (let end = at + 1; end < lines.length; end++) {
    const close = lines[end].trim();
    if (close.length >= mark.length && close === mark[0].repeat(close.length)) return end + 1;
  }
  return lines.length;
}

/** @param {string[]} lines @param {number} at @param {(line: string) => boolean} belongs */
function endOf(lines, at, belongs) {
  let end = at;
  while (end < lines.length && belongs(lines[end])) end++;
  return end;
}

/** @param {string[]} lines @param {number} at */
function listEnd(lines, at) {
  for (let end = at + 1; end < lines.length; end++) {
    if (!lines[end].trim()) {
      const next = lines[end + 1];
      if (next === undefined || !(LISTED.test(next) || /^ {2,}\S/.test(next))) return end;
    } else if (
      RULE.test(lines[end]) ||
      (!/^ /.test(lines[end]) && interrupts(lines, end) && !LISTED.test(lines[end]))
    ) {
      return end;
    }
  }
  return lines.length;
}

/** @param {string[]} lines @param {number} at */
function isTable(lines, at) {
  return (
    lines[at].includes("|") &&
    at + 1 < lines.length &&
    lines[at + 1].includes("|") &&
    DELIMITER.test(lines[at + 1])
  );
}

/** @param {string[]} lines @param {number} at */
function interrupts(lines, at) {
  const each = lines[at];
  const listed = LISTED.exec(each);
  const begins = listed !== null && listed[3] !== "" && (!/\d/.test(listed[2]) || /^1[.)]$/.test(listed[2]));
  return (
    begins ||
    FENCE.test(each) ||
    HEADING.test(each) ||
    RULE.test(each) ||
    QUOTE.test(each) ||
    isTable(lines, at)
  );
}

/** A block as a tree. @param {Block} block @param {number} [depth] @returns {Mark} */
export function markOf({ kind, source }, depth = 0) {
  switch (kind) {
    case "code":
      return codeMark(source);
    case "heading": {
      const [, marks, text] = /** @type {RegExpExecArray} */ (HEADING.exec(source));
      const level = String(Math.min(marks.length + 2, 6)); // the page has headings of its own above
      return { tag: `h${level}`, inner: inline((text ?? "").replace(/(^|[ \t])#+[ \t]*$/, "")) };
    }
    case "rule":
      return { tag: "hr", inner: [] };
    case "quote":
      return { tag: "blockquote", inner: inside(source.replace(new RegExp(QUOTE, "gm"), ""), depth) };
    case "list":
      return listMark(source.split("\n"), depth);
    case "table":
      return tableMark(source.split("\n"));
    default:
      return { tag: "p", inner: inline(source.trim()) };
  }
}

/** @param {string} text @param {number} depth @returns {Mark[]} */
function inside(text, depth) {
  if (depth >= NESTED) return [{ tag: "p", inner: [text] }];
  return blocksOf(text).map((block) => markOf(block, depth + 1));
}

/** @param {string} source @returns {Mark} */
function codeMark(source) {
  const lines = source.split("\n");
  const [, mark, info] = /** @type {RegExpExecArray} */ (FENCE.exec(lines[0]));
  const closed =
    lines.length > 1 &&
    fenceEnd(lines, 0, mark) === lines.length &&
    lines[lines.length - 1].trim().startsWith(mark);
  const text = lines.slice(1, closed ? -1 : undefined).join("\n");
  const language = line(info.trim().split(/\s/)[0], 30);
  return {
    tag: "pre",
    attrs: language ? { "data-language": language } : {},
    inner: [{ tag: "code", inner: [text] }],
  };
}

/** @param {string[]} lines @param {number} depth @returns {Mark} */
function listMark(lines, depth) {
  const [, indent, marker] = /** @type {RegExpExecArray} */ (LISTED.exec(lines[0]));
  /** @type {string[][]} */
  const items = [];
  let offset = 0;
  for (const each of lines) {
    const found = LISTED.exec(each);
    if (found && found[1].length <= indent.length + 1) {
      offset = found[0].length;
      items.push([each.slice(offset)]);
    } else {
      const leading = /^ */.exec(each)?.[0].length ?? 0;
      items[items.length - 1].push(each.slice(Math.min(leading, offset)));
    }
  }
  const ordered = /\d/.test(marker);
  const attrs = ordered && parseInt(marker, 10) !== 1 ? { start: String(parseInt(marker, 10)) } : undefined;
  return { tag: ordered ? "ol" : "ul", attrs, inner: items.map((item) => itemMark(item.join("\n"), depth)) };
}

/** @param {string} text @param {number} depth @returns {Mark} */
function itemMark(text, depth) {
  const task = /^\[([ xX])\] /.exec(text);
  const inner = inside(task ? text.slice(4) : text, depth);
  const [only] = inner;
  const flat =
    inner.length && typeof only !== "string" && only.tag === "p" ? [...only.inner, ...inner.slice(1)] : inner;
  const box = task ? [task[1] === " " ? "☐ " : "☑ "] : [];
  return { tag: "li", attrs: task ? { class: "task" } : {}, inner: [...box, ...flat] };
}

/** @param {string[]} lines @returns {Mark} */
function tableMark(lines) {
  const sides = cellsOf(lines[1]).map(
    (cell) => `${cell.startsWith(":") ? "l" : ""}${cell.endsWith(":") ? "r" : ""}`,
  );
  const row = (/** @type {string} */ each, /** @type {string} */ tag) => {
    const cells = cellsOf(each).slice(0, sides.length);
    const attrs = (/** @type {number} */ i) => ({ r: { class: "right" }, lr: { class: "middle" } })[sides[i]];
    return { tag: "tr", inner: cells.map((cell, i) => ({ tag, attrs: attrs(i), inner: inline(cell) })) };
  };
  const body = lines.slice(2, 2 + TABLE_ROWS).map((each) => row(each, "td"));
  const more = lines.length - 2 - TABLE_ROWS;
  const rest =
    more > 0 ? [{ tag: "tr", inner: [{ tag: "td", inner: [`… ${plural(more, "more row")}`] }] }] : [];
  const head = { tag: "thead", inner: [row(lines[0], "th")] };
  return { tag: "table", inner: [head, { tag: "tbody", inner: [...body, ...rest] }] };
}

/** @param {string} row @returns {string[]} */
function cellsOf(row) {
  const cells = row
    .trim()
    .replace(/^\|/, "")
    .replace(/(^|[^\\])\|$/, "$1")
    .split(/(?<!\\)\|/, TABLE_COLUMNS);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

const SPECIAL = /\\[!-/:-@[-`{-~]|`+|\*\*?|__?|~~|!?\[|<(?=https?:\/\/|mailto:)|https?:\/\//g;

/** Characters that emphasis, and a link, may stretch over. */
const REACH = 2000;

/**
 * The marks in a text.
 * @param {string} text
 * @param {number} [depth]
 * @param {boolean} [links] Whether there may be links in it: in a link there are none.
 * @returns {Mark[]}
 */
export function inline(text, depth = 0, links = true) {
  if (depth > NESTED || text.length > MARKED) return text ? [text] : [];
  /** @type {Mark[]} */
  const marks = [];
  const hopeless = new Set();
  let plain = 0;
  const special = new RegExp(SPECIAL);
  for (let found = special.exec(text); found !== null; found = special.exec(text)) {
    const made = hopeless.has(found[0]) ? null : markAt(text, found.index, found[0], depth, links);
    if (made === null) {
      if (/^[`~]/.test(found[0])) hopeless.add(found[0]); // they were looked for up to the end
      continue;
    }
    if (found.index > plain) marks.push(text.slice(plain, found.index));
    marks.push(...made.marks);
    special.lastIndex = plain = made.end;
  }
  if (plain < text.length) marks.push(text.slice(plain));
  return marks;
}

/**
 * What a special character begins; null: nothing.
 * @param {string} text
 * @param {number} at
 * @param {string} sign
 * @param {number} depth
 * @param {boolean} links
 * @returns {{marks: Mark[], end: number} | null}
 */
function markAt(text, at, sign, depth, links) {
  if (sign[0] === "\\") return { marks: [sign[1]], end: at + 2 };
  if (sign[0] === "`") return codeAt(text, at, sign);
  if (/[*_~]/.test(sign)) return emphasisAt(text, at, sign, depth, links);
  if (!links) return null;
  if (sign[0] === "h") return addressAt(text, at);
  if (sign === "<") return bracketedAt(text, at);
  return linkAt(text, at, sign.length === 2, depth);
}

/** @param {string} text @param {number} at @param {string} sign */
function codeAt(text, at, sign) {
  for (let end = text.indexOf(sign, at + sign.length); end >= 0; end = text.indexOf(sign, end + 1)) {
    let after = end + sign.length;
    if (text[after] !== "`" && text[end - 1] !== "`") {
      const code = text.slice(at + sign.length, end).replaceAll("\n", " ");
      const bare = /^ .*\S.* $/.test(code) ? code.slice(1, -1) : code;
      return { marks: [{ tag: "code", inner: [bare] }], end: after };
    }
    while (text[after] === "`") after++;
    end = after - 1;
  }
  return null;
}

/** @param {string} text @param {number} at @param {string} sign @param {number} depth @param {boolean} links */
function emphasisAt(text, at, sign, depth, links) {
  const begin = at + sign.length;
  const isWord = (/** @type {string | undefined} */ char) =>
    char !== undefined && /[\p{L}\p{N}_]/u.test(char);
  if (begin >= text.length || /\s/.test(text[begin])) return null;
  if (sign[0] === "_" && isWord(text[at - 1])) return null;
  const most = Math.min(text.length, begin + REACH);
  for (let end = text.indexOf(sign, begin + 1); end >= 0 && end < most; end = text.indexOf(sign, end + 1)) {
    const after = end + sign.length;
    if (/\s/.test(text[end - 1]) || text[end - 1] === "\\") continue;
    if (sign[0] === "_" && isWord(text[after])) continue;
    if (sign.length === 1 && (text[after] === sign || text[end - 1] === sign)) continue;
    if (sign.length === 2 && text[after] === sign[0] && text[after + 1] !== sign[0]) continue; // ***both***
    const tag = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" }[sign] ?? "em";
    return { marks: [{ tag, inner: inline(text.slice(begin, end), depth + 1, links) }], end: after };
  }
  return null;
}

/** @param {string} text @param {number} at @param {boolean} isImage @param {number} depth */
function linkAt(text, at, isImage, depth) {
  const begin = at + (isImage ? 2 : 1);
  const close = closing(text, begin, "[", "]");
  if (close < 0 || text[close + 1] !== "(") return null;
  const end = closing(text, close + 2, "(", ")");
  if (end < 0) return null;
  const inside = text.slice(close + 2, end).trim();
  const titled = /^(\S+)(?:\s+(?:"[^"]*"|'[^']*'))?$/.exec(inside);
  if (titled === null) return null;
  const url = titled[1].replace(/^<(.*)>$/, "$1");
  const label = text.slice(begin, close);
  const marks = isImage ? [`image: ${label || "without a name"}`] : inline(label, depth + 1, false);
  return { marks: link(url, marks), end: end + 1 };
}

/** @param {string} text @param {number} from @param {string} open @param {string} close */
function closing(text, from, open, close) {
  let depth = 0;
  for (let at = from; at < Math.min(text.length, from + REACH); at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === open) depth++;
    else if (text[at] === close && depth-- === 0) return at;
  }
  return -1;
}

/** @param {string} text @param {number} at */
function bracketedAt(text, at) {
  const end = text.indexOf(">", at);
  if (end < 0 || end - at > REACH || /\s/.test(text.slice(at, end))) return null;
  const url = text.slice(at + 1, end);
  return { marks: link(url, [url]), end: end + 1 };
}

/** @param {string} text @param {number} at */
function addressAt(text, at) {
  if (at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1])) return null;
  let url = /^[^\s<>"'`|*]+/.exec(text.slice(at, at + REACH))?.[0] ?? "";
  for (let last = ""; url !== last;) {
    last = url;
    url = url.replace(/[.,;:!?_~]+$/, "");
    if (url.endsWith(")") && !url.includes("(")) url = url.slice(0, -1);
    if (url.endsWith("]") && !url.includes("[")) url = url.slice(0, -1);
  }
  return safeLink(url) ? { marks: link(url, [url]), end: at + url.length } : null;
}

/**
 * A link, with where it leads beside it: one that says one thing and leads to another is a way to deceive.
 * @param {string} url
 * @param {Mark[]} inner
 * @returns {Mark[]}
 */
function link(url, inner) {
  const told = inner.map(markText).join("");
  if (safeLink(url) === null) return [...inner, told === url ? "" : ` (${exact(url)})`];
  const leads = hostOf(url) || url.slice(url.indexOf(":") + 1);
  const tells = told === url || told === leads;
  const host = { tag: "span", attrs: { class: "host" }, inner: [` (${line(leads, 300)})`] };
  return [{ tag: "a", attrs: { href: url }, inner: inner.length ? inner : [url] }, ...(tells ? [] : [host])];
}

/** The text of a tree. @param {Mark} mark @returns {string} */
export function markText(mark) {
  return typeof mark === "string" ? mark : mark.inner.map(markText).join("");
}

// ---------------------------------------------------------------------------------------------------------
// Colours of terminals
// ---------------------------------------------------------------------------------------------------------

/** Pieces of an output that have colours of their own. */
const PIECES = 3000;

/**
 * The output of a program, as pieces with their classes: its colours stay, and everything else that a terminal
 * obeys goes. What was written over itself, such as a progress bar, is there as it stood last.
 * @param {string} text
 * @returns {{text: string, look: string}[]}
 */
export function ansi(text) {
  const rows = text.replaceAll("\r\n", "\n").split("\n");
  const whole = rows.map((row) => row.replace(/\r+$/, "").split("\r").at(-1)).join("\n");
  /** @type {{text: string, look: string}[]} */
  const pieces = [];
  /** @type {Look} */
  let look = {};
  whole.split(/\x1b\[([0-9;:]*)m/).forEach((part, i) => {
    if (i % 2) look = pieces.length < PIECES ? looks(look, part) : {};
    else if (part) pieces.push({ text: clean(part), look: classesOf(look) });
  });
  return pieces;
}

/** @typedef {{fore?: number, back?: number, bold?: boolean, dim?: boolean, italic?: boolean, under?: boolean}} Look */

/** @param {Look} look @param {string} codes @returns {Look} */
function looks(look, codes) {
  let next = { ...look };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i];
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.under = true;
    else if (code === 22) next = { ...next, bold: false, dim: false };
    else if (code === 23) next.italic = false;
    else if (code === 24) next.under = false;
    else if (code === 39) next.fore = undefined;
    else if (code === 49) next.back = undefined;
    else if (code >= 30 && code <= 37) next.fore = code - 30;
    else if (code >= 90 && code <= 97) next.fore = code - 82;
    else if (code >= 40 && code <= 47) next.back = code - 40;
    else if (code === 38 || code === 48) {
      const palette = numbers[i + 1] === 5;
      const colour = palette && numbers[i + 2] < 16 ? numbers[i + 2] : undefined;
      if (code === 38) next.fore = colour;
      else next.back = colour === undefined || colour > 7 ? undefined : colour;
      i += palette ? 2 : 4;
    }
  }
  return next;
}

/** @param {Look} look */
function classesOf({ fore, back, bold, dim, italic, under }) {
  const flags = { bold, dim, italic, under };
  const names = Object.entries(flags)
    .filter(([, is]) => is)
    .map(([name]) => `t-${name}`);
  if (fore !== undefined) names.push(`t-f${fore}`);
  if (back !== undefined) names.push(`t-b${back}`);
  return names.join(" ");
}

// ---------------------------------------------------------------------------------------------------------
// Replay
// ---------------------------------------------------------------------------------------------------------

/** Events after which a state is kept, from which others are found again. */
const EVERY = 500;

/** Characters of events that are kept to be replayed. */
const KEPT = 300e6;

/** The events of a run, and the run as it stood after any of them. */
export class Log {
  constructor() {
    /** @type {Event[]} */
    this.events = [];
    /** When each came, never before the one in front of it. @type {number[]} */
    this.times = [];
    /** @type {State[]} */
    this.kept = [BEGINNING];
    /** The run after all of them. @type {State} */
    this.state = BEGINNING;
    this.size = 0;
    /** @type {{count: number, state: State}} */
    this.found = { count: 0, state: BEGINNING };
  }

  /** @param {Event} event @param {number} size Its characters. */
  add(event, size) {
    this.state = reduce(this.state, event);
    this.size += size;
    if (this.size > KEPT) return; // it is followed, but this part cannot be replayed
    this.events.push(event);
    this.times.push(Math.max(event.at ?? 0, this.times.at(-1) ?? -Infinity));
    if (this.events.length % EVERY === 0) this.kept.push(this.state);
  }

  /** When the first event came: the launch of an agent is before the run. */
  get begin() {
    return Math.min(this.times[0] ?? 0, 0);
  }

  /** When the last one came. */
  get end() {
    return Math.max(this.state.at, 0);
  }

  /** How many events there were at a time. @param {number} time */
  countAt(time) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The run after so many events. @param {number} count @returns {State} */
  after(count) {
    if (count >= this.events.length && this.size <= KEPT) return this.state;
    const base = Math.floor(count / EVERY);
    const near = this.found.count <= count && this.found.count >= base * EVERY;
    let state = near ? this.found.state : this.kept[base];
    for (let i = near ? this.found.count : base * EVERY; i < count; i++)
      state = reduce(state, this.events[i]);
    this.found = { count, state };
    return state;
  }

  /** The run at a time. @param {number} time @returns {State} */
  at(time) {
    return this.after(this.countAt(time));
  }
}

/**
 * @typedef {{from: number, to: number | null, look: string}} Bar
 * @typedef {{name: string, bars: Bar[]}} Lane
 */

/** Lanes of a run's time axis; the last one is for all other tools. */
const LANES = 8;

/** What went on when: a lane for what was thought, for what was said, and for each tool. @param {State} state */
export function lanesOf(state) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  const items = all(state.items);
  const over = state.end ? state.end.at : null;
  items.forEach((item, number) => {
    const next = items[number + 1]?.at ?? over;
    const [name, bar] = barOf(item, next, over, state.cwd);
    if (bar === null) return;
    const known = lanes.get(name) ?? (lanes.size < LANES - 1 ? undefined : lanes.get("other tools"));
    const lane = known ?? { name: lanes.size < LANES - 1 ? name : "other tools", bars: [] };
    if (known === undefined) lanes.set(lane.name, lane);
    lane.bars.push(bar);
  });
  return [...lanes.values()];
}

/**
 * @param {Item} item
 * @param {number | null} next
 * @param {number | null} over
 * @param {string} cwd
 * @returns {[string, Bar | null]}
 */
function barOf(item, next, over, cwd) {
  switch (item.kind) {
    case "thought":
      return ["thought", { from: item.at, to: next, look: "thought" }];
    case "message":
      return ["answer", { from: item.at, to: next, look: "answer" }];
    case "question":
      return ["questions", { from: item.at, to: item.answer ? item.answer.at : over, look: "ask" }];
    case "tool":
      return [
        describe(item, cwd).verb,
        { from: item.began, to: item.ended ?? over, look: STATUSES[item.status] ?? "" },
      ];
    default:
      return ["", null];
  }
}

// ---------------------------------------------------------------------------------------------------------
// Windows of long lists
// ---------------------------------------------------------------------------------------------------------

/** Rows from which on only those near the visible part of a list are in the document. */
export const LONG = 500;

/** Pixels above and below the visible part that are in the document too. */
const AROUND = 1200;

/**
 * Where each row begins, and at last where all of them end.
 * @param {ReadonlyArray<{key: string}>} rows
 * @param {ReadonlyMap<string, number>} heights Those that were measured.
 * @param {number} guess What is taken for the height of the others.
 */
export function topsOf(rows, heights, guess) {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach(({ key }, i) => {
    tops[i + 1] = tops[i] + (heights.get(key) ?? guess);
  });
  return tops;
}

/**
 * Which rows are in the document: from, and up to.
 * @param {Float64Array} tops
 * @param {number} top Where the visible part begins.
 * @param {number} height How high it is.
 * @returns {[number, number]}
 */
export function windowOf(tops, top, height) {
  const rows = tops.length - 1;
  if (rows <= LONG) return [0, rows];
  return [rowAt(tops, top - AROUND), Math.min(rowAt(tops, top + height + AROUND) + 1, rows)];
}

/** The row at a height. @param {Float64Array} tops @param {number} height */
export function rowAt(tops, height) {
  let [low, high] = [0, tops.length - 2];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= height) low = middle;
    else high = middle - 1;
  }
  return Math.max(low, 0);
}

// ---------------------------------------------------------------------------------------------------------
// Results
// ---------------------------------------------------------------------------------------------------------

/**
 * A field of a result.
 * @typedef {{name: string, type: string, value: Json, given: boolean}} ResultField
 */

/** Fields of an object that are shown. */
const FIELDS = 200;

/**
 * The fields of a result: those that its schema names, given or not, and others that were given.
 * @param {Json} schema The schema; null: it is not known.
 * @param {Json} value What there is of the result.
 * @returns {ResultField[]}
 */
export function fieldsOf(schema, value) {
  const expected = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  const given = isObject(value) ? value : {};
  const names = [...new Set([...Object.keys(expected), ...Object.keys(given)])];
  return names.slice(0, FIELDS).map((name) => {
    const isGiven = Object.hasOwn(given, name);
    const value = isGiven ? given[name] : undefined;
    const type = Object.hasOwn(expected, name) ? typeOf(expected[name]) : kindOf(value);
    return { name, type, value, given: isGiven };
  });
}

/** What a schema asks for, in a word or two. @param {Json} schema @returns {string} */
export function typeOf(schema) {
  if (!isObject(schema)) return "any";
  if (Array.isArray(schema.enum))
    return schema.enum
      .slice(0, 8)
      .map((each) => json(each, 0))
      .join(" | ");
  if ("const" in schema) return json(schema.const, 0);
  for (const key of ["anyOf", "oneOf"]) {
    if (Array.isArray(schema[key])) return [...new Set(schema[key].slice(0, 8).map(typeOf))].join(" | ");
  }
  if (schema.type === "array") return isObject(schema.items) ? `list of ${typeOf(schema.items)}` : "list";
  if (typeof schema.$ref === "string") return line(schema.$ref.split("/").at(-1), 40);
  return Array.isArray(schema.type)
    ? schema.type.join(" | ")
    : line(String(schema.title ?? schema.type ?? "any"), 40);
}

/** What sort of JSON a value is. @param {Json} value */
export function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length ? `list of ${value.length}` : "empty list";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}

// ---------------------------------------------------------------------------------------------------------
// Elements
// ---------------------------------------------------------------------------------------------------------

/** @typedef {Node | string | null | undefined | false} Inner */
/** @typedef {{[name: string]: string | number | boolean | null | undefined | ((event: any) => void)}} Attributes */

/**
 * An element. Functions are listeners, by names such as ``onclick``.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Inner} inner
 * @returns {HTMLElement}
 */
function el(tag, attributes = {}, ...inner) {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(.../** @type {(Node | string)[]} */ (inner.filter((each) => each || each === "")));
  return element;
}

/** @param {Element} element @param {Attributes} attributes */
function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {string} id */
function byId(id) {
  return /** @type {any} */ (document.getElementById(id));
}

const SVG = "http://www.w3.org/2000/svg";

const CIRCLE = "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z";

const SHAPES = table({
  read: "M3.5 2.5h5.5L12.5 6v7.5h-9zM9 2.5V6h3.5",
  edit: "M11.3 2.7l2 2L6 12l-2.8.8L4 10z",
  delete: "M3 4.5h10M6 4.5V3h4v1.5M4.6 4.5l.6 8.5h5.6l.6-8.5",
  move: "M2.5 8h10.5M9.5 4.5L13 8l-3.5 3.5",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3L13.5 13.5",
  execute: "M3 4l3.5 4L3 12M8.5 12H13",
  think: "M6.2 13.3h3.6M6.5 11c0-1.6-2-2.3-2-4.6a3.5 3.5 0 1 1 7 0c0 2.3-2 3-2 4.6z",
  fetch: `${CIRCLE}M2 8h12M8 2c2 1.7 2.7 3.8 2.7 6S10 12.3 8 14c-2-1.7-2.7-3.8-2.7-6S6 3.7 8 2z`,
  switch_mode: "M2.5 5H8M11.5 5h2M2.5 11h2M8 11h5.5M9.7 3.3v3.4M6.2 9.3v3.4",
  other: "M8 2l5.2 3v6L8 14l-5.2-3V5zM8 8v6M8 8L2.8 5M8 8l5.2-3",
  done: "M3.5 8.5l3 3 6-7",
  failed: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  cancelled: `${CIRCLE}M4 12l8-8`,
  interrupted: "M8 3v6.5M8 12.9v.1",
  pending: "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  ask: "M5.8 6a2.2 2.2 0 1 1 3 2c-.6.3-.8.7-.8 1.5M8 12.5v.1",
  fold: "M6 3.5L10.5 8 6 12.5",
  folder: "M2.5 4h4l1.3 1.5h5.7V13h-11z",
  play: "M5 3.2v9.6L12.8 8z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  down: "M8 3v9.5M4 8.8l4 4 4-4",
  light:
    "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  dark: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z",
  system: "M2.5 3.5h11v7.5h-11zM6 13.5h4M8 11v2.5",
});

/** @param {string} tag @param {Attributes} attributes @param {...Node} inner */
function svg(tag, attributes, ...inner) {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  element.append(...inner);
  return element;
}

/** @param {string} name */
function icon(name) {
  const path = svg("path", { d: SHAPES[name] ?? SHAPES.other });
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
}

/** How far something is, as a picture with words for those who do not see it. @param {string} status */
function mark(status) {
  const shape = status === "completed" ? "done" : status;
  const inner = status === "running" ? el("span", { class: "spinner" }) : icon(shape);
  return el("span", { class: `mark ${status}`, role: "img", "aria-label": ENDS[status] ?? status }, inner);
}

/** @param {string} text @param {Attributes} attributes @param {...Inner} more */
function button(text, attributes, ...more) {
  return /** @type {HTMLButtonElement} */ (
    el("button", { type: "button", class: "button", ...attributes }, ...more, text)
  );
}

/** @param {string} key */
function keyHint(key) {
  return key ? el("kbd", { "aria-hidden": "true" }, key) : null;
}

/** A tree of Markdown as nodes. @param {Mark} tree @returns {Node} */
function build(tree) {
  if (typeof tree === "string") return document.createTextNode(tree);
  const element = el(tree.tag, tree.tag === "a" ? linkAttributes(tree.attrs?.href ?? "") : tree.attrs);
  element.append(...tree.inner.map(build));
  return element;
}

/** @param {string} url @returns {Attributes} */
function linkAttributes(url) {
  const href = safeLink(url);
  return {
    href,
    title: exact(url),
    target: "_blank",
    rel: "noopener noreferrer nofollow",
    referrerpolicy: "no-referrer",
  };
}

/** Characters of a text that are drawn, until more is asked for. */
const DRAWN = 100000;

/** What was drawn of each text. @type {WeakMap<Element, string[]>} */
const drawn = new WeakMap();

/**
 * Draw a text as Markdown. Only what has changed since it was drawn last is made anew.
 * @param {Element} host
 * @param {string} text Of a bounded length.
 */
function drawProse(host, text) {
  const blocks = blocksOf(clean(text));
  const sources = blocks.map((block) => `${block.kind}\n${block.source}`);
  const before = drawn.get(host) ?? [];
  let same = 0;
  while (same < before.length && same < sources.length && before[same] === sources[same]) same++;
  while (host.childNodes.length > same) host.lastChild?.remove();
  host.append(...blocks.slice(same).map((block) => build(markOf(block))));
  drawn.set(host, sources);
}

/** @param {string} text */
function terminal(text) {
  return ansi(text).map(({ text, look }) =>
    look ? el("span", { class: look }, text) : document.createTextNode(text),
  );
}

/** @param {number} added @param {number} removed */
function counts(added, removed) {
  return el(
    "span",
    { class: "counts", "aria-label": `${plural(added, "line")} added, ${removed} removed` },
    el("span", { class: "plus" }, `+${added}`),
    el("span", { class: "minus" }, `−${removed}`),
  );
}

/** Lines of a change that are drawn. */
const DIFF_LINES = 2000;

/**
 * A change of a file as a table.
 * @param {FileChange} change
 * @param {{two?: boolean, title?: string | null, about?: Inner, most?: number}} [how] `two`: both sides.
 */
function diffNode(change, { two = false, title = null, about = null, most = DIFF_LINES } = {}) {
  const gap = (/** @type {string} */ text) => el("tr", { class: "gap" }, el("td", { colspan: 4 }, text));
  const rows = [];
  let left = most;
  for (const [i, hunk] of change.hunks.entries()) {
    if (i) rows.push(gap("⋯"));
    const lines = hunk.lines.slice(0, left);
    left -= lines.length;
    rows.push(...(two ? sideBySide(lines).map(([old, fresh]) => pairNode(old, fresh)) : lines.map(lineNode)));
    const missing = hunk.more + hunk.lines.length - lines.length;
    if (missing) rows.push(gap(`… ${plural(missing, "more line")}`));
    if (!left) break;
  }
  if (change.more) rows.push(gap(`… ${plural(change.more, "more place")}`));
  if (change.cut) rows.push(gap("too long or too different to be compared line by line"));
  const table = el(
    "table",
    { class: two ? "two" : "one", "aria-label": `Change of ${title ?? "a file"}` },
    el("tbody", {}, ...rows),
  );
  const head = el(
    "div",
    { class: "path" },
    el("span", { class: "mono" }, `${change.isNew ? "new " : ""}${title ?? ""}`),
    about,
    counts(change.added, change.removed),
  );
  return el(
    "div",
    { class: "diff" },
    title === null ? null : head,
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Changed lines" }, table),
  );
}

/** @param {DiffLine} each */
function lineNode(each) {
  const look = { "+": "added", "-": "removed", " ": "" }[each.sign];
  return el(
    "tr",
    {},
    el("td", { class: `number ${look}` }, String(each.old ?? "")),
    el("td", { class: `number ${look}` }, String(each.fresh ?? "")),
    el("td", { class: `sign ${look}` }, each.sign),
    el("td", { class: `code ${look}` }, ...marked(each)),
  );
}

/** @param {DiffLine | null} old @param {DiffLine | null} fresh */
function pairNode(old, fresh) {
  const side = (/** @type {DiffLine | null} */ each, /** @type {number | null | undefined} */ number) => {
    const look = each === null ? "none" : ({ "+": "added", "-": "removed", " ": "" }[each.sign] ?? "");
    return [
      el("td", { class: `number ${look}` }, String(number ?? "")),
      el("td", { class: `code ${look}` }, ...(each === null ? [] : marked(each))),
    ];
  };
  return el("tr", {}, ...side(old, old?.old), ...side(fresh, fresh?.fresh));
}

/** @param {DiffLine} each @returns {Inner[]} */
function marked({ text, spans }) {
  const parts = [];
  let done = 0;
  for (const [from, to] of spans) {
    parts.push(text.slice(done, from), el("mark", {}, text.slice(from, to)));
    done = to;
  }
  return [...parts, text.slice(done)];
}

/** Base64 characters of a picture that is shown. */
const PICTURE = 8e6;

/** What is no text, as far as it can be shown. @param {Json} block @returns {HTMLElement} */
function blockNode(block) {
  const isPicture = block.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(block.mime_type);
  if (isPicture && block.data.length <= PICTURE && /^[A-Za-z0-9+/]*={0,2}$/.test(block.data)) {
    return el("img", {
      class: "sent",
      alt: "Picture that the agent has sent",
      src: `data:${block.mime_type};base64,${block.data}`,
    });
  }
  if (block.type === "resource_link") {
    const name = line(block.title || block.name, 200);
    return safeLink(block.uri) && hostOf(block.uri)
      ? el(
          "span",
          {},
          el("a", linkAttributes(block.uri), name),
          el("span", { class: "dim" }, ` (${hostOf(block.uri)})`),
        )
      : el("span", {}, name, " ", el("code", { class: "mono dim" }, line(block.uri, 500)));
  }
  return el("span", { class: "dim mono" }, line(blockText(block), 500));
}

// ---------------------------------------------------------------------------------------------------------
// The server
// ---------------------------------------------------------------------------------------------------------

/** What the server does not do, or that it cannot be reached (status 0). */
class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What went wrong, in words. @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** Where the server has a run, or something of it. @param {string} id @param {string} [what] */
function runPath(id, what = "") {
  return `api/runs/${encodeURIComponent(id)}${what}`;
}

/** Where the page has a run. @param {string} id */
function runAddress(id) {
  return `#run=${encodeURIComponent(id)}`;
}

/** @param {string} path */
function address(path) {
  return new URL(path, document.baseURI).href;
}

/**
 * Ask the server for something; where it wants a token, ask for that first.
 * @param {string} method
 * @param {string} path
 * @param {{body?: Json, headers?: {[name: string]: string}}} [about]
 * @returns {Promise<{data: Json, response: Response}>}
 */
async function request(method, path, { body, headers = {} } = {}) {
  const response = await send(method, path, body, headers);
  if (response.status !== 401) return read(response);
  await login();
  return request(method, path, { body, headers });
}

/** What was answered, where that is no refusal. @param {Response} response */
async function read(response) {
  const data = (response.headers.get("content-type") ?? "").includes("json") ? await response.json() : null;
  const why = line(data?.error?.message) || `the server answered ${response.status}`;
  if (!response.ok) throw new Refused(response.status, why);
  return { data, response };
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Json} [body]
 * @param {{[name: string]: string}} [headers]
 */
async function send(method, path, body, headers = {}) {
  const all = new Headers({ Accept: "application/json", ...headers });
  if (body !== undefined) all.set("Content-Type", "application/json");
  const sent = body === undefined ? null : JSON.stringify(body);
  try {
    return await fetch(address(path), {
      method,
      credentials: "same-origin",
      cache: "no-store",
      headers: all,
      body: sent,
    });
  } catch {
    throw new Refused(0, "The server cannot be reached: see whether it runs, and try again");
  }
}

/**
 * The wait for a token that the server takes; null: nobody waits for one.
 * @type {{over: Promise<void>, end: () => void} | null}
 */
let waiting = null;

/** Ask for a token until the server takes one. @param {string} [problem] What is wrong with one that it was given. */
function login(problem) {
  const { over } = waiting ?? beginWaiting();
  if (problem) refused(problem);
  return over;
}

function beginWaiting() {
  /** @type {PromiseWithResolvers<void>} */
  const { promise, resolve } = Promise.withResolvers();
  byId("login").showModal();
  byId("token").focus();
  refused("");
  return (waiting = { over: promise, end: resolve });
}

/** Go on with what a token was needed for. */
function letIn() {
  const asked = waiting;
  waiting = null;
  byId("token").value = "";
  byId("login").close();
  asked?.end();
}

/** @param {string} problem */
function refused(problem) {
  byId("login-problem").textContent = problem;
  byId("login-problem").hidden = !problem;
}

async function giveToken() {
  const field = byId("token");
  const problem = await tellToken(field.value);
  refused(problem);
  if (problem) field.select();
  else letIn();
}

/**
 * Give the server a token, and return what is wrong with it.
 * @param {string} token
 * @param {string} [what] What it is called.
 */
async function tellToken(token, what = "That token") {
  try {
    await read(await send("POST", "api/session", { secret: token.trim() }));
    return "";
  } catch (error) {
    const { status, message } = /** @type {Refused} */ (error);
    if (status === 404) return ""; // nobody needs one here
    if (status === 401)
      return `${what} is not accepted. A server that makes its own has a new one each time it is started.`;
    if (status === 429) return `${what} is not accepted, and too many were tried. Wait for a minute.`;
    return `${what} could not be checked. ${message}.`;
  }
}

/** A name for a request that nobody else uses. */
function freshName() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

/** Seconds after which a connection that was refused is tried again, the first time and at most. */
const PATIENCE = [1, 15];

/** Seconds out of sight after which a connection may be dead without anybody having said so. */
const ASLEEP = 30;

/**
 * Receives the events of a run, each once and in order, and comes back after whatever cuts the connection.
 */
class Watch {
  /**
   * @param {string} id
   * @param {(event: Event, size: number) => void} receive
   * @param {(state: "live" | "reconnecting" | "over" | "gone") => void} tell
   */
  constructor(id, receive, tell) {
    this.id = id;
    this.receive = receive;
    this.tell = tell;
    this.last = 0;
    this.over = false;
    this.wait = PATIENCE[0];
    this.timer = 0;
    /** @type {EventSource | null} */
    this.source = null;
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    const source = new EventSource(address(runPath(this.id, `/events?after=${this.last}`)));
    this.source = source;
    source.onopen = () => {
      this.wait = PATIENCE[0];
      this.tell("live");
    };
    source.onmessage = (message) => this.take(message);
    source.addEventListener("end", (message) => this.take(message));
    source.onerror = () => {
      if (source !== this.source) return;
      this.tell("reconnecting"); // the browser tries again by itself, unless the server has refused
      if (source.readyState === EventSource.CLOSED) this.lost();
    };
  }

  /** @param {MessageEvent} message */
  take(message) {
    const seq = Number(message.lastEventId);
    if (this.over || seq <= this.last) return;
    if (seq > this.last + 1) return this.open(); // something is missing
    let event;
    try {
      event = JSON.parse(message.data);
    } catch {
      event = { type: "unknown" }; // nested deeper than the browser reads
    }
    this.last = seq;
    this.receive({ ...event, seq }, message.data.length);
    if (event.type === "end") this.close("over");
  }

  /** Find out why the server has refused, and come back later unless there is nothing to come back for. */
  async lost() {
    try {
      const { data } = await request("GET", runPath(this.id));
      if (this.over) return;
      if (data.run.status !== "running" && data.seq <= this.last) return this.close("over");
    } catch (error) {
      if (this.over) return;
      if (error instanceof Refused && error.status === 404) return this.close("gone");
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), this.wait * 1000);
    this.wait = Math.min(this.wait * 2, PATIENCE[1]);
  }

  /** @param {"over" | "gone"} [why] */
  close(why) {
    this.over = true;
    clearTimeout(this.timer);
    this.source?.close();
    if (why) this.tell(why);
  }
}

// ---------------------------------------------------------------------------------------------------------
// What is kept in the browser
// ---------------------------------------------------------------------------------------------------------

/** @param {Storage} storage @param {string} name @returns {Json} */
function recall(storage, name) {
  try {
    return JSON.parse(storage.getItem(`thinkwell:${name}`) ?? "null");
  } catch {
    return null;
  }
}

/** @param {Storage} storage @param {string} name @param {Json} value */
function remember(storage, name, value) {
  try {
    storage.setItem(`thinkwell:${name}`, JSON.stringify(value));
  } catch {
    // it is full, or not there: nothing is lost that matters
  }
}

// ---------------------------------------------------------------------------------------------------------
// Rows of the timeline, drawn
// ---------------------------------------------------------------------------------------------------------

/**
 * A row as it is drawn: one of the reducer's, or the prompt at the beginning, or the end.
 * @typedef {Row | {key: "prompt", text: string} | {key: "wait", text: string, since: number} |
 *   {key: "final", state: State}} Drawn
 */

/** @param {HTMLElement} host @param {Drawn} row @param {RunView} view */
function paint(host, row, view) {
  const focused = host.contains(document.activeElement) && document.activeElement !== host;
  if ("item" in row) paintItem(host, row, view);
  else if ("state" in row) paintFinal(host, row.state);
  else if ("since" in row) host.replaceChildren(waitNode(row.text, row.since));
  else paintPrompt(host, row.text);
  if (focused && !host.contains(document.activeElement)) {
    /** @type {HTMLElement | null} */ (host.querySelector("button"))?.focus({ preventScroll: true });
  }
}

/** What is waited for, and for how long. @param {string} text @param {number} since */
function waitNode(text, since) {
  const end = el("span", { class: "end" }, timeNode(since, null, true));
  return el("div", { class: "fold dim" }, mark("running"), el("span", { class: "wait" }, text), end);
}

/** When a run came to what it is doing, where that is not told by its items. @param {State} state */
function waitsSince(state) {
  const phase = state.phases.at(-1);
  return phase && phase.phase !== "responding" && phase.seconds === null ? phase.at : state.at;
}

/** Whether a run goes on without anything in the timeline that shows so. @param {State} state */
function waits(state) {
  if (!state.items.length) return true;
  if (state.running.length || state.asked.length) return false;
  const { kind } = get(state.items, state.items.length - 1);
  return kind !== "thought" && kind !== "message";
}

/** @param {HTMLElement} host @param {Row} row @param {RunView} view */
function paintItem(host, row, view) {
  set(host, { "data-depth": row.depth, "data-kind": row.item.kind });
  const { item } = row;
  switch (item.kind) {
    case "message":
      return paintText(host, row.key, item.text, "text", view);
    case "user":
      return paintText(host, row.key, item.text, "bubble", view);
    case "thought":
      return paintThought(host, row, item, view);
    case "content":
      return host.replaceChildren(el("div", { class: "text" }, blockNode(item.block)));
    case "tool":
      return host.replaceChildren(row.folded.length ? foldNode(row, view) : toolNode(item, row.key, view));
    case "question":
      return host.replaceChildren(pastQuestion(item, row.key, view));
    case "attempt":
      return host.replaceChildren(attemptNode(item, row.key, view));
    case "note":
      return host.replaceChildren(
        el(
          "div",
          { class: `note ${line(item.severity, 20).replace(/[^a-z]/g, "")}` },
          icon("interrupted"),
          el(
            "span",
            {},
            [line(item.title, 500), clean(shortened(item.detail, 4000))].filter(Boolean).join(": "),
          ),
        ),
      );
    case "turn":
      return host.replaceChildren(
        el("div", { class: "divider" }, item.reminder ? "asked again for the result" : `turn ${item.number}`),
      );
  }
}

/** @param {HTMLElement} host @param {string} text */
function paintPrompt(host, text) {
  host.dataset.kind = "prompt";
  host.replaceChildren(
    el("span", { class: "unseen" }, "You: "),
    el("div", { class: "bubble prose" }, el("p", {}, clean(shortened(text, DRAWN)))),
  );
}

/** @param {HTMLElement} host @param {string} key @param {Text} text @param {string} look @param {RunView} view */
function paintText(host, key, text, look, view) {
  let prose = host.querySelector(".prose");
  if (prose === null) host.replaceChildren((prose = el("div", { class: `prose ${look}` })));
  const most = view.drawnOf(key);
  drawProse(prose, beginning(text, most));
  host.querySelector(".more")?.remove();
  if (text.length <= most) return;
  const label = `${count(text.length - most)} more characters: show ${count(Math.min(DRAWN, text.length - most))}`;
  host.append(button(label, { class: "button small more", onclick: () => view.drawMore(key) }));
}

/** Seconds of a call, or of a thought, that are worth a word. */
const LEAST = 0.1;

/** @param {HTMLElement} host @param {Row} row @param {TextItem} item @param {RunView} view */
function paintThought(host, row, item, view) {
  const goesOn = row.until === null && view.state.end === null;
  const open = view.isOpen(row.key, false);
  const taken = (row.until ?? view.state.end?.at ?? item.at) - item.at;
  const told = goesOn ? "thinking" : taken < LEAST ? "thought" : `thought ${seconds(taken)}`;
  const last = clean(ending(item.text, 800)).trim().split("\n").slice(-2).join("\n").slice(-240);
  const head = foldHead(
    { key: row.key, open, view, glyph: "think", verb: told },
    el("span", { class: "target dim" }, goesOn || open ? "" : line(beginning(item.text, 600), 160)),
  );
  let body = host.querySelector(".thought-body");
  if (open && body === null) body = el("div", { class: "thought-body" });
  host.replaceChildren(
    head,
    ...(open && body ? [body] : goesOn ? [el("div", { class: "thinking" }, last)] : []),
  );
  if (open && body) paintText(/** @type {HTMLElement} */ (body), row.key, item.text, "", view);
}

/**
 * The line of something that can be unfolded.
 * @param {{key: string, open: boolean | null, view: RunView, glyph: string | null, verb: string, status?: string}} about
 *   `open`: null where there is nothing inside.
 * @param {...Inner} inner
 */
function foldHead({ key, open, view, glyph, verb, status }, ...inner) {
  const parts = [
    status ? mark(status) : null,
    glyph ? icon(glyph) : null,
    el("span", { class: "verb" }, verb),
    ...inner,
  ];
  if (open === null) return el("div", { class: "fold" }, ...parts);
  const turn = icon("fold");
  turn.classList.add("turn");
  const end = parts.at(-1);
  const tail =
    end instanceof HTMLElement && end.classList.contains("end") ? end : el("span", { class: "end" });
  tail.append(turn);
  if (tail !== end) parts.push(tail);
  return el(
    "button",
    {
      type: "button",
      class: "fold",
      "aria-expanded": String(open),
      "data-key": key,
      onclick: () => view.toggle(key, !open),
    },
    ...parts,
  );
}

/** What can be unfolded, as it is unfolded. @param {Node} head @param {Inner[]} inner @param {string} [status] */
function card(head, inner, status = "") {
  return el("div", { class: `card ${status}`.trim() }, head, el("div", { class: "body" }, ...inner));
}

/** How far a call is, in a run that may have ended before it. @param {ToolItem} tool @param {State} state */
function statusOf(tool, state) {
  if (tool.ended !== null) return STATUSES[tool.status] ?? "pending";
  if (state.end !== null) return "interrupted";
  return tool.status === "in_progress" ? "running" : "pending";
}

/** @param {number} began @param {number | null} taken @param {boolean} goesOn */
function timeNode(began, taken, goesOn) {
  if (taken !== null) return taken < LEAST ? null : el("span", {}, seconds(taken));
  return goesOn ? el("span", { class: "since", "data-since": began }) : null;
}

/** Changed lines of a call that are shown unasked. */
const SHORT = 30;

/** @param {ToolItem} tool @param {string} key @param {RunView} view */
function toolNode(tool, key, view) {
  const { state } = view;
  const call = describe(tool, state.cwd);
  const status = statusOf(tool, state);
  const goesOn = status === "running" || status === "pending";
  const changes = changesOf(tool);
  const output = outputOf(tool, view.isOpen(`${key}/all`, false) ? 1e6 : OUTPUT);
  const pictures = tool.content.filter(
    (part) => part.type === "content" && part.content.type !== "text" && part.content.type !== "resource",
  );
  const some =
    changes.length || output || pictures.length || tool.input !== null || tool.locations.length > 2;
  const [added, removed] = sumsOf(changes);
  const unfolded =
    (changes.length > 0 && added + removed <= SHORT) || status === "failed" || (goesOn && output !== "");
  const open = some ? view.isOpen(key, unfolded) : null;
  const code = exitCode(tool);
  const sums = changes.length
    ? counts(added, removed)
    : code
      ? el("span", { class: "minus" }, `exit ${code}`)
      : null;
  const head = foldHead(
    { key, open, view, glyph: tool.does, verb: call.verb, status },
    el("span", { class: "target" }, call.target),
    el("span", { class: "end" }, sums, timeNode(tool.began, call.seconds, goesOn)),
  );
  if (!open) return head;
  return card(head, toolBody(tool, key, view, { changes, output, goesOn, pictures }), status);
}

/** Files of a call whose changes are drawn in its row. */
const FILES = 4;

/** Lines of the output of a call that goes on. */
const LAST_LINES = 12;

/**
 * @param {ToolItem} tool
 * @param {string} key
 * @param {RunView} view
 * @param {{changes: FileChange[], output: string, goesOn: boolean, pictures: Json[]}} about
 * @returns {Inner[]}
 */
function toolBody(tool, key, view, { changes, output, goesOn, pictures }) {
  const { cwd } = view.state;
  const command = tool.does === "execute" ? commandLine(tool.input) : null;
  const rest = otherArguments(tool, cwd);
  const places = tool.locations.slice(0, PLACES).map((place) => line(relative(place.path, cwd), 500));
  const shown = goesOn ? output.split("\n").slice(-LAST_LINES).join("\n") : output;
  const cut = output.startsWith("… ") && !view.isOpen(`${key}/all`, false);
  return [
    command === null
      ? null
      : el("pre", { class: "wrap", "aria-label": "Command" }, clean(shortened(command, 8000))),
    !command && !changes.length && places.length > 2
      ? el("div", { class: "mono dim" }, places.join("\n"))
      : null,
    rest === null
      ? null
      : el(
          "details",
          {},
          el("summary", { class: "label" }, "Arguments"),
          el("pre", { class: "wrap" }, clean(shortened(json(rest), 8000))),
        ),
    ...changes
      .slice(0, FILES)
      .map((change) => diffNode(change, { title: line(relative(change.path, cwd), 500), most: 200 })),
    changes.length > FILES
      ? el("div", { class: "dim" }, `… ${plural(changes.length - FILES, "more file")}: see the tab Changes`)
      : null,
    ...pictures.slice(0, 8).map((part) => blockNode(part.content)),
    output
      ? el("pre", { class: "wrap output", tabindex: "0", "aria-label": "Output" }, ...terminal(shown))
      : null,
    cut
      ? button("Show all of it", { class: "button small", onclick: () => view.toggle(`${key}/all`, true) })
      : null,
  ];
}

/** Calls of a line that are listed. */
const FOLDED = 200;

/** @param {Row} row @param {RunView} view */
function foldNode(row, view) {
  const call = describeFold(row.folded, view.state.cwd);
  const open = view.isOpen(row.key, false);
  const head = foldHead(
    { key: row.key, open, view, glyph: call.verb, verb: call.verb, status: "done" },
    el("span", { class: "target" }, call.target),
    el("span", { class: "end" }, timeNode(0, call.seconds, false)),
  );
  if (!open) return head;
  const more = row.folded.length - FOLDED;
  return card(head, [
    ...row.folded.slice(0, FOLDED).map((tool, i) => toolNode(tool, `${row.key}/${i}`, view)),
    more > 0 ? el("div", { class: "dim" }, `… ${plural(more, "more call")}`) : null,
  ]);
}

/** @param {QuestionItem} item @param {string} key @param {RunView} view */
function pastQuestion(item, key, view) {
  const isOpen = item.answer === null && view.state.end === null;
  const told = isOpen ? "waits for your answer" : item.answer ? view.outcome(item) : "not answered";
  const allowed = wasAllowed(item);
  const status = isOpen ? "ask" : allowed === null ? "cancelled" : allowed ? "done" : "failed";
  const verdicts = item.verdicts.map((verdict) => el("div", {}, verdictWords(verdict)));
  const long = item.title.length > 80 || item.title.includes("\n") || told.length > 40 || item.url;
  const open = verdicts.length || long ? view.isOpen(key, false) : null;
  const head = foldHead(
    { key, open, view, glyph: null, verb: "asked", status },
    el("span", { class: "target" }, line(item.title, 200)),
    el("span", { class: "end" }, el("span", { class: "told" }, told)),
  );
  if (!open) return head;
  return card(head, [
    el("div", { class: "asked" }, exact(shortened(item.title, 8000))),
    item.url ? el("div", { class: "address" }, exact(item.url)) : null,
    ...verdicts,
    el("div", { class: "dim" }, told),
  ]);
}

/** @param {AttemptItem} item @param {string} key @param {RunView} view */
function attemptNode(item, key, view) {
  const open = view.isOpen(key, false);
  const head = foldHead(
    {
      key,
      open,
      view,
      glyph: "other",
      verb: item.accepted ? "result" : "result refused",
      status: item.accepted ? "done" : "failed",
    },
    el("span", { class: "target dim" }, item.accepted ? "" : line(item.errors[0], 200)),
  );
  if (!open) return head;
  const errors = item.errors
    .slice(0, 50)
    .map((error) => el("div", { class: "problem" }, clean(shortened(error, 2000))));
  return card(head, [...errors, el("pre", { class: "wrap" }, clean(shortened(json(item.value), 8000)))]);
}

/** @param {HTMLElement} host @param {State} state */
function paintFinal(host, state) {
  host.dataset.kind = "final";
  const { end } = state;
  if (end === null) return;
  const files = filesChanged(state);
  const [added, removed] = sumsOf(files);
  const work = [
    `in ${seconds(end.at)}`,
    state.tools ? plural(state.tools, "tool") + (state.failed ? `, ${state.failed} failed` : "") : "",
    files.length ? `${plural(files.length, "file")} changed, +${added} −${removed}` : "",
    state.denied ? `${state.denied} denied` : "",
    ...usageParts(state),
  ];
  const error =
    end.error && end.status !== "cancelled"
      ? el("div", { class: "error" }, clean(shortened(`${end.error.name}: ${end.error.message}`, 4000)))
      : null;
  const why =
    end.status === "interrupted"
      ? el("div", {}, "The server ended before the run did. What is here is complete up to then.")
      : null;
  host.replaceChildren(
    el(
      "div",
      { class: `final ${end.status}` },
      el(
        "div",
        { class: "words" },
        mark(end.status),
        ENDS[end.status] ?? line(end.status),
        end.reason && end.reason !== "end_turn"
          ? el("span", { class: "dim" }, `(${line(end.reason, 60).replaceAll("_", " ")})`)
          : null,
      ),
      error,
      why,
      el("div", { class: "dim" }, work.filter(Boolean).join(" · ")),
    ),
  );
}

// ---------------------------------------------------------------------------------------------------------
// The timeline
// ---------------------------------------------------------------------------------------------------------

/** What is taken for the height of a row that was never in the document. */
const GUESS = 38;

/** So near to its end the timeline counts as at its end. */
const NEAR = 48;

/** The rows of a run in the document: all of them, or those near what is visible. */
class Timeline {
  /** @param {RunView} view */
  constructor(view) {
    this.view = view;
    /** @type {HTMLElement} */
    this.host = byId("timeline");
    this.above = el("div");
    this.below = el("div");
    this.host.replaceChildren(this.above, this.below);
    /** @type {Map<string, {node: HTMLElement, row: Drawn | null}>} */
    this.nodes = new Map();
    /** @type {Map<string, number>} */
    this.heights = new Map();
    /** @type {Drawn[]} */
    this.rows = [];
    this.tops = new Float64Array(1);
    this.stick = true;
    /** How far it was scrolled. */
    this.top = 0;
    /** Whether rows look otherwise than when they were drawn, though they are the same. */
    this.stale = new Set();
    this.sizes = new ResizeObserver((entries) => this.measured(entries));
    this.sizes.observe(this.host);
    this.onscroll = () => this.scrolled();
    this.host.addEventListener("scroll", this.onscroll, { passive: true });
  }

  close() {
    this.sizes.disconnect();
    this.host.removeEventListener("scroll", this.onscroll);
    this.host.replaceChildren();
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.host;
    const atEnd = scrollTop + clientHeight >= scrollHeight - NEAR;
    // That more has come below is no reason to stay behind; only who scrolls up wants to.
    if (atEnd || scrollTop < this.top) this.stick = atEnd;
    this.top = scrollTop;
    byId("latest").hidden = this.stick;
    if (this.rows.length > LONG) this.view.schedule();
    this.view.save();
  }

  /** @param {ResizeObserverEntry[]} entries */
  measured(entries) {
    for (const { target } of entries) {
      const { key } = /** @type {HTMLElement} */ (target).dataset;
      const height = /** @type {HTMLElement} */ (target).offsetHeight;
      if (key !== undefined && height) this.heights.set(key, height);
    }
    if (this.stick) this.toEnd();
    else if (this.rows.length > LONG) this.view.schedule();
  }

  toEnd() {
    this.host.scrollTop = this.host.scrollHeight;
    this.top = this.host.scrollTop;
  }

  /** @param {Drawn[]} rows */
  draw(rows) {
    const long = rows.length > LONG;
    this.host.style.overflowAnchor = long ? "none" : "auto";
    const anchor = this.stick || !long ? null : this.anchor();
    this.rows = rows;
    this.tops = topsOf(rows, this.heights, GUESS);
    const [from, to] = this.shown();
    const keys = new Set(rows.slice(from, to).map((row) => row.key));
    for (const [key, { node }] of this.nodes) {
      if (keys.has(key)) continue;
      this.sizes.unobserve(node);
      node.remove();
      this.nodes.delete(key);
    }
    /** @type {ChildNode} */
    let place = this.above;
    for (let i = from; i < to; i++) {
      const node = this.node(rows[i], i);
      if (place.nextSibling !== node) place.after(node);
      place = node;
    }
    this.above.style.height = `${this.tops[from]}px`;
    this.below.style.height = `${this.tops[rows.length] - this.tops[to]}px`;
    this.stale.clear();
    if (this.stick) this.toEnd();
    else if (anchor) this.restore(anchor);
  }

  /** Which rows are to be in the document. @returns {[number, number]} */
  shown() {
    const height = this.host.clientHeight || 800;
    const top = this.stick ? this.tops[this.rows.length] - height : this.host.scrollTop;
    return windowOf(this.tops, top, height);
  }

  /** @param {Drawn} row @param {number} i */
  node(row, i) {
    let known = this.nodes.get(row.key);
    if (known === undefined) {
      const node = el("article", { class: "row", "data-key": row.key, tabindex: "-1" });
      known = { node, row: null };
      this.nodes.set(row.key, known);
      this.sizes.observe(node);
    }
    set(known.node, { "aria-posinset": i + 1, "aria-setsize": this.rows.length });
    if (known.row === null || this.stale.has(row.key) || !sameDrawn(known.row, row)) {
      paint(known.node, row, this.view);
      known.row = row;
    }
    return known.node;
  }

  /** The row at the top of what is visible, and how far it is from there. */
  anchor() {
    const top = this.host.scrollTop;
    for (const node of this.host.children) {
      if (!(node instanceof HTMLElement) || node.dataset.key === undefined) continue;
      if (node.offsetTop + node.offsetHeight > top)
        return { key: node.dataset.key, offset: node.offsetTop - top };
    }
    return null;
  }

  /** @param {{key: string, offset: number}} anchor */
  restore({ key, offset }) {
    const node = this.nodes.get(key)?.node;
    const index = node ? -1 : this.rows.findIndex((row) => row.key === key);
    const top = node ? node.offsetTop : index >= 0 ? this.tops[index] : null;
    if (top !== null && Math.abs(top - offset - this.host.scrollTop) > 1) this.host.scrollTop = top - offset;
  }

  /** Move the focus to the next row, or the one before. @param {number} by */
  step(by) {
    const { activeElement } = document;
    const current = activeElement?.closest?.(".row");
    const key = current instanceof HTMLElement ? current.dataset.key : (this.anchor()?.key ?? null);
    const at = this.rows.findIndex((row) => row.key === key);
    const index = Math.max(0, Math.min(at + (current ? by : 0), this.rows.length - 1));
    const row = this.rows[index];
    if (row === undefined) return;
    this.stick = false;
    if (!this.nodes.has(row.key)) {
      this.host.scrollTop = this.tops[index];
      this.draw(this.rows);
    }
    const node = this.nodes.get(row.key)?.node;
    node?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: "nearest" });
  }
}

/** @param {Drawn} one @param {Drawn} other */
function sameDrawn(one, other) {
  if ("item" in one && "item" in other) return sameRow(one, other);
  if ("since" in one && "since" in other) return one.text === other.text && one.since === other.since;
  if ("text" in one && "text" in other) return one.text === other.text;
  return "state" in one && "state" in other && one.state === other.state;
}

// ---------------------------------------------------------------------------------------------------------
// Questions
// ---------------------------------------------------------------------------------------------------------

/** Milliseconds for which a new question takes no answer: a key or a click then was meant for something else. */
const SETTLE = 400;

/** Pixels of a question, besides its answers, that have to be visible for a key to answer it: a line of it. */
const IN_SIGHT = 24;

/** Milliseconds for which it is said that others have answered a question. */
const SETTLED = 15000;

const ROUND = 2 * Math.PI * 15;

/** An open question. */
class QuestionCard {
  /** @param {QuestionItem} question @param {RunView} view */
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
      this.view.show("timeline"); // it has the most room there
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

/** Choices of a field that are all shown at once. */
const AT_ONCE = 7;

/** A field of a form, as it is filled in. */
class FieldInput {
  /** @param {Field} field @param {string} question */
  constructor(field, question) {
    this.field = field;
    this.id = `field-${question}-${field.name}`.replace(/[^\w-]/g, "_");
    this.wrong = el("span", { class: "wrong", id: `${this.id}-wrong`, role: "alert", hidden: true });
    const label = line(field.title || field.name, 200);
    const hint = el(
      "span",
      { class: "hint", id: `${this.id}-hint` },
      [clean((field.description ?? "").slice(0, 5000)).trim(), hintOf(field)].filter(Boolean).join("\n"),
    );
    const inner = this.make();
    const isGroup = inner.classList.contains("pickable");
    this.node = isGroup
      ? el(
          "fieldset",
          { class: "field", "aria-describedby": hint.id },
          el("legend", {}, label),
          hint,
          inner,
          this.wrong,
        )
      : el("div", { class: "field" }, el("label", { for: this.id }, label), hint, inner, this.wrong);
  }

  /** @returns {HTMLElement} */
  make() {
    const { field } = this;
    const choices = field.choices ?? [];
    const about = {
      id: this.id,
      "aria-describedby": `${this.id}-hint ${this.id}-wrong`,
      "aria-required": field.required ? "true" : null,
    };
    const given = field.default;
    const box = (
      /** @type {string} */ type,
      /** @type {string} */ value,
      /** @type {string} */ label,
      /** @type {boolean} */ checked,
    ) => el("label", {}, el("input", { type, name: this.id, value, checked }), line(label, 200));
    const title = (/** @type {{value: string, title: string, description?: string}} */ each) =>
      (each.title || each.value) + (each.description ? ` – ${each.description}` : "");
    if (field.type === "boolean") {
      return el(
        "div",
        { class: "pickable" },
        box("radio", "true", "yes", given === true),
        box("radio", "false", "no", given === false),
      );
    }
    if (field.type === "choices" || (field.type === "choice" && choices.length <= AT_ONCE)) {
      const type = field.type === "choice" ? "radio" : "checkbox";
      const isGiven = (/** @type {string} */ value) =>
        Array.isArray(given) ? given.includes(value) : given === value;
      return el(
        "div",
        { class: "pickable" },
        ...choices.map((each) => box(type, each.value, title(each), isGiven(each.value))),
      );
    }
    if (field.type === "choice") {
      const options = choices.map((each) =>
        el("option", { value: each.value, selected: given === each.value }, line(title(each), 200)),
      );
      return el("select", about, el("option", { value: "" }, ""), ...options);
    }
    const value =
      given === undefined || given === null ? "" : typeof given === "string" ? given : json(given, 0);
    if (field.type === "string" && !field.format && (field.maximum ?? Infinity) > 200) {
      const area = /** @type {HTMLTextAreaElement} */ (el("textarea", { ...about, rows: 1 }));
      area.value = value;
      return area;
    }
    const formats = table({ email: "email", uri: "url", date: "date" });
    const isNumber = field.type === "number" || field.type === "integer";
    const type = isNumber ? "number" : (formats[field.format ?? ""] ?? "text");
    return el("input", {
      ...about,
      type,
      value,
      step: field.type === "number" ? "any" : null,
      autocomplete: "off",
    });
  }

  /** What was filled in: undefined where nothing was, null where a default was taken away. @returns {Json} */
  value() {
    const { field } = this;
    const picked = [
      .../** @type {NodeListOf<HTMLInputElement>} */ (this.node.querySelectorAll(".pickable input:checked")),
    ].map((box) => box.value);
    const nothing = field.default === undefined || field.default === null ? undefined : null;
    if (field.type === "choices") return picked.length ? picked : nothing;
    if (field.type === "boolean") return picked.length ? picked[0] === "true" : nothing;
    const input = /** @type {HTMLInputElement | null} */ (
      this.node.querySelector(":scope > input, :scope > select, :scope > textarea")
    );
    const text = input === null ? (picked[0] ?? "") : input.value;
    if (text === "") return nothing;
    if (field.type === "number" || field.type === "integer") return Number(text);
    if (field.type !== "unknown") return text;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }

  /** What is wrong, as far as it can be seen here; empty where nothing is. */
  check() {
    const { field } = this;
    const value = this.value();
    const length = typeof value === "string" || Array.isArray(value) ? [...value].length : value;
    let why = "";
    if (value === undefined || value === null) why = field.required ? "A value is required." : "";
    else if (field.type === "integer" && !Number.isInteger(value)) why = "It has to be a whole number.";
    else if (field.minimum !== undefined && length < field.minimum)
      why = `It has to be at least ${field.minimum}.`;
    else if (field.maximum !== undefined && length > field.maximum)
      why = `It may be at most ${field.maximum}.`;
    this.wrong.textContent = why;
    this.wrong.hidden = !why;
    const input = this.node.querySelector("input, select, textarea");
    if (input) set(input, { "aria-invalid": why ? "true" : null });
    return why;
  }
}

// ---------------------------------------------------------------------------------------------------------
// Panels
// ---------------------------------------------------------------------------------------------------------

/**
 * A panel beside the timeline.
 * @typedef {object} Panel
 * @property {string} label
 * @property {(state: State) => string} badge What stands beside its name; may be empty.
 * @property {(state: State) => unknown[]} needs What it is drawn from: it is drawn again when one of these changes.
 * @property {(host: HTMLElement, state: State, view: RunView) => void} draw
 */

/** @type {{[tab: string]: Panel}} */
const PANELS = {
  timeline: {
    label: "Timeline",
    badge: (state) => (state.asked.length ? "?" : ""),
    needs: (state) => [state.asked.length],
    draw: () => {},
  },
  plan: {
    label: "Plan",
    badge: (state) => (state.plans.length ? planCount(state.plans) : ""),
    needs: (state) => [state.plans],
    draw: drawPlans,
  },
  changes: {
    label: "Changes",
    badge: (state) => (state.edits.length ? String(filesChanged(state).length) : ""),
    needs: (state) => [state.edits.length && state.items],
    draw: drawChanges,
  },
  terminal: {
    label: "Terminal",
    badge: (state) => (state.commands.length ? String(state.commands.length) : ""),
    needs: (state) => [state.commands.length && state.items, state.end],
    draw: drawTerminal,
  },
  result: {
    label: "Result",
    badge: (state) => (state.end?.status === "completed" ? "✓" : state.attempts.length ? "…" : ""),
    needs: (state) => [state.end, state.attempts, state.draft, state.end ? "" : state.last],
    draw: drawResult,
  },
  usage: {
    label: "Usage",
    badge: () => "",
    needs: ({ usage, tokens, phases, turns, tools, failed, session, model, mode, unknown, dropped, end }) => [
      usage,
      tokens,
      phases,
      turns,
      tools,
      failed,
      session,
      model,
      mode,
      unknown,
      dropped,
      end,
    ],
    draw: drawUsage,
  },
};

/** @param {string} title @param {...Inner} inner */
function section(title, ...inner) {
  return el("section", { class: "section" }, el("h2", {}, title), ...inner);
}

/** @param {string} text */
function nothing(text) {
  return el("p", { class: "empty" }, text);
}

/** @param {ReadonlyArray<Plan>} plans */
function planCount(plans) {
  const steps = plans.flatMap((plan) => plan.entries);
  return steps.length ? `${steps.filter((step) => step.status === "completed").length}/${steps.length}` : "";
}

/** @param {number} share @param {string} [look] */
function meter(share, look = "meter") {
  const bar = el("i");
  bar.style.width = `${Math.round(Math.max(0, Math.min(share, 1)) * 100)}%`;
  return el("span", { class: look, "aria-hidden": "true" }, bar);
}

/** Steps of a plan that are shown. */
const PLANNED = 1000;

/** @param {HTMLElement} host @param {State} state */
function drawPlans(host, state) {
  if (!state.plans.length) return host.replaceChildren(nothing("The agent has made no plan so far."));
  host.replaceChildren(
    ...state.plans.map((plan) => {
      const done = plan.entries.filter((step) => step.status === "completed").length;
      const title = plan.id === "main" ? "Plan" : line(plan.id, 100);
      const head = el(
        "h2",
        {},
        title,
        plan.entries.length ? ` ${done}/${plan.entries.length}` : "",
        plan.entries.length ? meter(done / plan.entries.length) : null,
      );
      const prose = el("div", { class: "prose" });
      if (plan.markdown) drawProse(prose, shortened(plan.markdown, DRAWN));
      const more = plan.entries.length - PLANNED;
      return el(
        "section",
        { class: "section" },
        head,
        el("ol", { class: "steps" }, ...plan.entries.slice(0, PLANNED).map(stepNode)),
        more > 0 ? el("p", { class: "dim" }, `… ${plural(more, "more step")}`) : null,
        plan.markdown ? prose : null,
        plan.uri ? el("p", { class: "mono dim" }, line(plan.uri, 1000)) : null,
      );
    }),
  );
}

/** @param {Step} step */
function stepNode(step) {
  const words = table({ completed: "done", in_progress: "being done", pending: "to do" });
  const shape = { completed: "done", in_progress: "running" }[String(step.status)] ?? "pending";
  const what = el("span", { class: "what" }, line(step.content, 1000));
  const first = shape === "running" ? icon("fold") : icon(shape);
  const high =
    step.priority === "high" && step.status !== "completed" ? el("span", { class: "badge" }, "high") : null;
  return el(
    "li",
    { class: step.status, "aria-current": step.status === "in_progress" ? "step" : null },
    el("span", { class: `mark ${shape}`, role: "img", "aria-label": words[step.status] ?? "" }, first),
    what,
    high,
  );
}

/** Pixels from which on both sides of a change stand beside each other. */
const TWO_SIDES = 700;

/** Files that are listed. */
const LISTED_FILES = 2000;

/** @param {HTMLElement} host @param {State} state @param {RunView} view */
function drawChanges(host, state, view) {
  const files = filesChanged(state);
  if (!files.length) return host.replaceChildren(nothing("The agent has changed no files so far."));
  const chosen = files.find((file) => file.path === view.file) ?? files[0];
  const head = el("h2", {}, `${plural(files.length, "file")} changed`, counts(...sumsOf(files)));
  const two = host.clientWidth >= TWO_SIDES;
  const edits = chosen.edits.slice(-50);
  host.replaceChildren(
    el(
      "div",
      { class: "files" },
      el("section", { class: "section" }, head, treeNode(treeOf(files.slice(0, LISTED_FILES)), chosen, view)),
      ...edits.map(({ change, status }) => {
        const about =
          status === "done" ? null : el("span", { class: "dim" }, status === "pending" ? "proposed" : status);
        return diffNode(change, { two, title: line(chosen.path, 500), about });
      }),
    ),
  );
}

/** @param {Folder} folder @param {ChangedFile} chosen @param {RunView} view @returns {HTMLElement} */
function treeNode(folder, chosen, view) {
  const folders = folder.folders.map((inner) =>
    el(
      "li",
      {},
      el("div", { class: "folder" }, icon("folder"), line(inner.name, 300) || "/"),
      treeNode(inner, chosen, view),
    ),
  );
  const files = folder.files.map((file) =>
    el(
      "li",
      {},
      el(
        "button",
        { type: "button", "aria-current": String(file === chosen), onclick: () => view.choose(file.path) },
        icon(file.isNew ? "edit" : "read"),
        el("span", { class: "name" }, line(file.path.split("/").at(-1), 300)),
        counts(file.added, file.removed),
      ),
    ),
  );
  return el("ul", { class: "tree" }, ...folders, ...files);
}

/** Commands that are shown, unless earlier ones are asked for. */
const SHELL = 100;

/** @type {WeakMap<ToolItem, {over: boolean, node: HTMLElement}>} */
const shellKnown = new WeakMap();

/** @param {HTMLElement} host @param {State} state @param {RunView} view */
function drawTerminal(host, state, view) {
  const numbers = all(state.commands);
  if (!numbers.length) return host.replaceChildren(nothing("The agent has run no commands so far."));
  const most = SHELL * (1 + (view.more.get("terminal") ?? 0));
  const atEnd = host.scrollTop + host.clientHeight >= host.scrollHeight - NEAR;
  const nodes = numbers.slice(-most).map((number) => {
    const tool = /** @type {ToolItem} */ (get(state.items, number));
    const known = shellKnown.get(tool);
    if (known && known.over === (state.end !== null)) return known.node;
    const node = shellNode(tool, state);
    shellKnown.set(tool, { over: state.end !== null, node });
    return node;
  });
  const earlier = numbers.length - most;
  const more =
    earlier > 0
      ? button(`${plural(earlier, "earlier command")}: show more`, {
          class: "button small",
          onclick: () => view.drawMore("terminal"),
        })
      : null;
  host.replaceChildren(el("div", { class: "shell" }, more, ...nodes));
  if (atEnd) host.scrollTop = host.scrollHeight;
}

/** @param {ToolItem} tool @param {State} state */
function shellNode(tool, state) {
  const status = statusOf(tool, state);
  const command = commandLine(tool.input) ?? bareTitle(tool.title);
  const output = outputOf(tool);
  const code = exitCode(tool);
  const taken = takenBy(tool);
  return el(
    "div",
    {},
    el(
      "div",
      { class: "command" },
      el("span", { class: "dollar", "aria-hidden": "true" }, "$"),
      el("span", { class: "text" }, clean(shortened(command, 8000))),
      code ? el("span", { class: "minus" }, `exit ${code}`) : null,
      taken === null ? mark(status) : timeNode(tool.began, taken, false),
    ),
    output ? el("pre", { tabindex: "0", "aria-label": "Output" }, ...terminal(output)) : null,
  );
}

// The result

/** Values in each other that are drawn as such. */
const DEEP = 4;

/** Items of a list that are drawn. */
const ITEMS = 200;

/** @param {HTMLElement} host @param {State} state @param {RunView} view */
function drawResult(host, state, view) {
  const schema = view.about.output ?? null;
  const accepted = state.attempts.findLast((attempt) => attempt.accepted);
  const refused = state.attempts.filter((attempt) => !attempt.accepted);
  const last = state.attempts.at(-1);
  const parts = [];
  if (state.end?.status === "completed") parts.push(resultNode("Result", state.end.result, schema));
  else if (accepted) parts.push(resultNode("Result", accepted.value, schema));
  else if (state.draft) parts.push(resultNode("Being filled in", state.draft.value, schema));
  else if (last) parts.push(resultNode("Refused; the agent may try again", last.value, schema));
  else if (schema) parts.push(resultNode(state.end ? "No result" : "Not given so far", null, schema));
  else if (state.last.length) return drawLast(host, state);
  else parts.push(nothing(state.end ? "The run has no result." : "There is no result so far."));
  if (refused.length) {
    const reasons = refused
      .slice(-10)
      .map((attempt) => el("li", {}, clean(shortened(attempt.errors.join("\n"), 2000))));
    parts.push(section(plural(refused.length, "refused attempt"), el("ol", { class: "dim" }, ...reasons)));
  }
  host.replaceChildren(...parts);
}

/** The last message, which becomes the result: drawn on as it grows. @param {HTMLElement} host @param {State} state */
function drawLast(host, state) {
  const title = state.end ? "Last message" : "Last message so far";
  let prose = host.querySelector(".last");
  if (prose === null) host.replaceChildren(section(title, (prose = el("div", { class: "prose last" }))));
  drawProse(prose, shortened(beginning(state.last, DRAWN), DRAWN));
}

/** @param {string} title @param {Json} value @param {Json} schema */
function resultNode(title, value, schema) {
  const copied = button("Copy", {
    class: "button small",
    onclick: async () => {
      await navigator.clipboard.writeText(typeof value === "string" ? value : json(value)).catch(() => {});
      copied.textContent = "Copied";
    },
  });
  const given = value !== null && value !== undefined;
  return section(title, valueNode(value, schema, 0), given ? el("div", { class: "actions" }, copied) : null);
}

/** @param {Json} value @param {Json} schema @param {number} depth @returns {HTMLElement} */
function valueNode(value, schema, depth) {
  if (
    isObject(value) ||
    (isObject(schema) && isObject(schema.properties) && (value === null || value === undefined))
  ) {
    const fields = fieldsOf(schema, value);
    if (depth >= DEEP || !fields.length)
      return el("pre", { class: "wrap" }, clean(shortened(json(value), 8000)));
    const inner = (/** @type {ResultField} */ field) =>
      isObject(schema?.properties?.[field.name]) ? schema.properties[field.name] : null;
    return el("dl", { class: "value" }, ...fields.flatMap((field) => fieldNodes(field, inner(field), depth)));
  }
  if (Array.isArray(value)) return listNode(value, isObject(schema) ? schema.items : null, depth);
  if (typeof value !== "string") return el("span", { class: "mono" }, json(value, 0));
  if (depth > 0) return el("span", {}, clean(shortened(value, 20000)));
  const prose = el("div", { class: "prose" });
  drawProse(prose, shortened(value, DRAWN));
  return prose;
}

/** @param {ResultField} field @param {Json} schema @param {number} depth */
function fieldNodes(field, schema, depth) {
  const name = el("dt", {}, line(field.name, 200), el("small", {}, line(field.type, 200)));
  const value = field.given
    ? el("dd", {}, valueNode(field.value, schema, depth + 1))
    : el("dd", { class: "waits" }, "not given");
  return [name, value];
}

/** @param {Json[]} values @param {Json} schema @param {number} depth @returns {HTMLElement} */
function listNode(values, schema, depth) {
  const more = values.length - ITEMS;
  const shown = values.slice(0, ITEMS);
  const rest = more > 0 ? `… ${plural(more, "more item")}` : "";
  if (!values.length) return el("span", { class: "dim" }, "empty");
  const names = [...new Set(shown.flatMap((each) => (isObject(each) ? Object.keys(each) : [])))];
  if (depth < DEEP && shown.every(isObject) && names.length && names.length <= 8) {
    const head = el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, line(name, 100))));
    const cell = (/** @type {Json} */ each, /** @type {string} */ name) =>
      el("td", {}, Object.hasOwn(each, name) ? valueNode(each[name], null, depth + 1) : "");
    const rows = shown.map((each) => el("tr", {}, ...names.map((name) => cell(each, name))));
    return el(
      "div",
      { class: "grid", tabindex: "0", role: "group", "aria-label": "Table" },
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)),
      rest,
    );
  }
  return el(
    "ul",
    {},
    ...shown.map((each) => el("li", {}, valueNode(each, schema, depth + 1))),
    rest ? el("li", {}, rest) : null,
  );
}

// Usage

/** @param {HTMLElement} host @param {State} state @param {RunView} view */
function drawUsage(host, state, view) {
  const { usage, tokens } = state;
  const parts = [];
  if (usage) {
    const share = usage.size ? usage.used / usage.size : null;
    parts.push(
      section(
        "Context window",
        share === null ? null : meter(share, "wide-meter"),
        el(
          "p",
          {},
          share === null
            ? `${count(usage.used)} tokens`
            : `${count(usage.used)} of ${count(usage.size)} tokens, ${Math.round(share * 100)}%`,
        ),
      ),
    );
  }
  if (tokens) {
    const share = cachedShare(tokens);
    const names = {
      input: "Input",
      output: "Output",
      thought: "Thought",
      cachedRead: "Read from a cache",
      cachedWrite: "Written to a cache",
      total: "Total",
    };
    const rows = Object.entries(names).filter(([name]) => tokens[name] !== undefined);
    parts.push(
      section(
        "Tokens of finished turns",
        facts(rows.map(([name, label]) => [label, tokens[name].toLocaleString("en")])),
        share === null
          ? null
          : el("p", { class: "dim" }, `${Math.round(share * 100)}% of the input came from a cache.`),
      ),
    );
  }
  if (usage?.cost) parts.push(section("Cost", el("p", {}, `${money(usage.cost)}, as the agent says`)));
  if (!parts.length)
    parts.push(section("Usage", el("p", { class: "dim" }, "The agent has not reported any usage.")));
  const taken = durations(state).filter(([, spent]) => spent >= 0.05);
  if (taken.length) parts.push(section("Time", timeBars(taken)));
  parts.push(
    section(
      "Run",
      facts([
        ["Agent", line(state.agent || view.record?.agent, 200)],
        ["Model", line(state.model, 200)],
        ["Mode", line(state.mode, 200)],
        ["Folder", line(state.cwd, 500)],
        ["Session", line(state.session, 200)],
        ["Conversation", view.record && !view.record.thread ? "none: it cannot be gone on with" : ""],
        ["Turns", state.turns > 1 ? String(state.turns) : ""],
        ["Tools", state.tools ? `${state.tools}${state.failed ? `, ${state.failed} failed` : ""}` : ""],
        ["Stop reason", line(state.reason, 100)],
        ["Events", state.end ? state.seq.toLocaleString("en") : ""],
        ["Not understood", state.unknown ? plural(state.unknown, "event") : ""],
        ["Dropped", state.dropped ? plural(state.dropped, "event") : ""],
      ]),
    ),
  );
  host.replaceChildren(...parts);
}

/** @param {[string, string][]} rows */
function facts(rows) {
  return el(
    "dl",
    { class: "facts" },
    ...rows
      .filter(([, value]) => value)
      .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}

/** @param {[string, number][]} taken */
function timeBars(taken) {
  const most = Math.max(...taken.map(([, spent]) => spent));
  return el(
    "div",
    { class: "bars" },
    ...taken.flatMap(([word, spent]) => {
      const bar = el("i", { "aria-hidden": "true" });
      bar.style.width = `${(100 * spent) / most}%`;
      return [el("span", {}, word), el("span", {}, bar), el("span", { class: "dim" }, seconds(spent))];
    }),
  );
}

// ---------------------------------------------------------------------------------------------------------
// The bar of a replay
// ---------------------------------------------------------------------------------------------------------

const LANE_HEIGHT = 13;

/** Half of the width of a slider's thumb: so far from its ends begins and ends what it stands for. */
const THUMB = 8;

/** Milliseconds after which the lanes of a run that goes on are drawn again. */
const REDRAW = 500;

/** @type {{[look: string]: string}} */
const LANE_COLOURS = {
  thought: "--strong-line",
  answer: "--accent",
  ask: "--ask",
  failed: "--bad",
  cancelled: "--ask",
  done: "--ok",
};

/** The scrubber of a run, and what went on when above it. */
class ReplayBar {
  /** @param {RunView} view */
  constructor(view) {
    this.view = view;
    /** @type {HTMLCanvasElement} */
    this.canvas = byId("lanes").querySelector("canvas");
    /** @type {HTMLInputElement} */
    this.scrub = byId("scrub");
    /** @type {HTMLElement} */
    this.needle = byId("needle");
    this.drawnAt = -Infinity;
    /** @type {unknown[]} */
    this.drawnOf = [];
    this.sizes = new ResizeObserver(() => this.lanes(true));
    this.sizes.observe(byId("lanes"));
  }

  close() {
    this.sizes.disconnect();
    clearTimeout(this.later);
  }

  draw() {
    const { log, moment, playing } = this.view;
    const { begin, end } = log;
    const at = moment ?? end;
    set(this.scrub, { min: begin, max: Math.max(end, begin + 0.001) });
    this.scrub.value = String(at);
    this.scrub.disabled = !log.events.length;
    set(this.scrub, { "aria-valuetext": `${clock(at)} of ${clock(end)}: ${words(this.view.state)}` });
    set(byId("play"), { "aria-label": playing ? "Pause" : "Replay", title: playing ? "Pause" : "Replay" });
    const glyph = playing ? "pause" : "play";
    if (byId("play").dataset.glyph !== glyph) {
      byId("play").dataset.glyph = glyph;
      byId("play").replaceChildren(icon(glyph));
    }
    byId("play").disabled = !log.events.length;
    const latest = log.state.end ? clock(end) : log.events.length ? "now" : "";
    byId("moment").textContent = moment === null ? latest : `${clock(at)} / ${clock(end)}`;
    this.needle.hidden = moment === null;
    const share = end > begin ? (at - begin) / (end - begin) : 1;
    this.needle.style.left = `calc(${THUMB}px + ${share} * (100% - ${2 * THUMB}px))`;
    this.lanes(false);
  }

  /** @param {boolean} forced */
  lanes(forced) {
    const { log } = this.view;
    const now = performance.now();
    const of = [log.state.items, log.state.end];
    if (!forced && of.every((each, i) => each === this.drawnOf[i])) return;
    clearTimeout(this.later);
    if (!forced && now - this.drawnAt < REDRAW && log.state.end === null) {
      this.later = setTimeout(() => this.lanes(true), REDRAW);
      return;
    }
    [this.drawnAt, this.drawnOf] = [now, of];
    const lanes = lanesOf(log.state);
    byId("lane-names").replaceChildren(...lanes.map((lane) => el("div", {}, line(lane.name, 40))));
    const { canvas } = this;
    const width = canvas.parentElement?.clientWidth ?? 0;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(lanes.length * LANE_HEIGHT * ratio);
    canvas.style.height = `${lanes.length * LANE_HEIGHT}px`;
    const pen = canvas.getContext("2d");
    if (pen === null || !width) return;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.body);
    const probe = byId("needle");
    const colour = (/** @type {string} */ look) => {
      probe.style.color = `var(${LANE_COLOURS[look] ?? "--now"})`;
      return getComputedStyle(probe).color || style.color;
    };
    const known = new Map(["", ...Object.keys(LANE_COLOURS)].map((look) => [look, colour(look)]));
    const span = Math.max(log.end - log.begin, 0.001);
    const place = (/** @type {number} */ time) => THUMB + ((time - log.begin) / span) * (width - 2 * THUMB);
    lanes.forEach((lane, row) => {
      for (const bar of lane.bars) {
        pen.fillStyle = known.get(bar.look) ?? known.get("") ?? "";
        const from = place(bar.from);
        pen.fillRect(
          from,
          row * LANE_HEIGHT + 3,
          Math.max(place(bar.to ?? log.end) - from, 2),
          LANE_HEIGHT - 6,
        );
      }
    });
  }
}

// ---------------------------------------------------------------------------------------------------------
// A run
// ---------------------------------------------------------------------------------------------------------

/** Milliseconds of a frame in which events are taken. */
const FRAME = 20;

/** Milliseconds after which a frame is drawn though more events have come than were taken. */
const BEHIND = 200;

/** Milliseconds between frames while nobody looks. */
const UNSEEN = 400;

/** Events that are still to come when a run is opened, from which on nothing is drawn before they are there. */
const MANY = 50;

/** Turns of a conversation that are known, and those before and behind the one that is open that have links. */
const TURNS = 500;
const AROUND_TURN = 10;

/** What was unfolded or folded that is remembered. */
const REMEMBERED = 500;

/** The run that is open: its events, how it is shown, and what the user has done with that. */
class RunView {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.log = new Log();
    /** @type {[Event, number][]} */
    this.queue = [];
    this.taken = 0;
    /** The run as it is shown. */
    this.state = BEGINNING;
    /** @type {Json} */
    this.record = null;
    /** What this page has kept with the run when it was started. @type {Json} */
    this.about = {};
    /** The turns of the conversation that it is one of. @type {Json[]} */
    this.conversation = [];
    this.target = 0;
    this.link = "connecting";
    this.stopping = false;
    /** When the run began, in seconds of this page's clock; null: not known. @type {number | null} */
    this.began = null;
    this.frame = 0;
    this.timer = 0;
    this.painted = -Infinity;
    this.closed = false;
    const kept = recall(sessionStorage, `run:${id}`) ?? {};
    this.tab = PANELS[kept.tab] ? kept.tab : isNarrow() ? "timeline" : "plan";
    this.chosen = kept.chosen ?? false;
    this.narrow = isNarrow();
    /** The tab that gave way to the timeline when the window became narrow. @type {string | null} */
    this.beside = null;
    /** @type {Map<string, boolean>} */
    this.folds = new Map(kept.folds ?? []);
    /** @type {Map<string, number>} */
    this.more = new Map();
    /** @type {string | null} */
    this.file = kept.file ?? null;
    /** The moment that is shown, in seconds of the run; null: the latest. @type {number | null} */
    this.moment = kept.moment ?? null;
    /** Ids of the questions that were answered in this window. @type {Set<string>} */
    this.answered = new Set(kept.answered ?? []);
    this.playing = false;
    this.speed = Number(byId("speed").value);
    this.played = 0;
    this.timeline = new Timeline(this);
    this.timeline.stick = !kept.anchor;
    this.anchor = kept.anchor ?? null;
    this.replay = new ReplayBar(this);
    /** @type {Map<string, QuestionCard>} */
    this.cards = new Map();
    /** @type {Map<string, unknown[]>} */
    this.drawn = new Map();
    this.told = { items: -1, end: false };
    /** @type {Watch | null} */
    this.watch = null;
    this.ticking = setInterval(() => this.tick(), 500);
    for (const name of ["title", "phase", "elapsed", "moment"]) byId(name).textContent = "";
    for (const name of ["dock", "panel"]) byId(name).replaceChildren();
    for (const name of ["further", "plan-strip", "replaying", "latest"]) byId(name).hidden = true;
    byId("run").classList.remove("gone", "replaying");
    byId("conversation")?.remove();
    this.replay.draw();
    this.drawTabs();
    this.load();
  }

  close() {
    this.closed = true;
    this.keep();
    clearInterval(this.ticking);
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.watch?.close();
    this.timeline.close();
    this.replay.close();
  }

  async load() {
    try {
      const [{ data, response }] = await Promise.all([request("GET", runPath(this.id)), about()]);
      if (this.closed) return;
      this.record = data.run;
      this.about = isObject(data.run.meta?.page) ? data.run.meta.page : {};
      this.target = data.seq;
      const now = Date.parse(response.headers.get("date") ?? "") / 1000 || Date.now() / 1000;
      if (data.run.status === "running")
        this.began = performance.now() / 1000 - Math.max(now - data.run.created, 0);
      this.watch = new Watch(
        this.id,
        (event, size) => this.receive(event, size),
        (link) => this.linked(link),
      );
      if (this.record.thread) this.loadConversation().catch(() => {}); // it can do without
    } catch (error) {
      if (this.closed) return;
      const gone = error instanceof Refused && error.status === 404;
      this.link = gone ? "gone" : "reconnecting";
      if (!gone) setTimeout(() => this.closed || this.load(), 2000);
    }
    this.schedule();
  }

  /** The other turns of the conversation that the run is one of. */
  async loadConversation() {
    const { data } = await request(
      "GET",
      `api/runs?limit=${TURNS}&thread=${encodeURIComponent(this.record.thread)}`,
    );
    this.conversation = data.runs.toReversed();
    this.schedule();
  }

  /** @param {"live" | "reconnecting" | "over" | "gone"} link */
  linked(link) {
    this.link = link;
    this.schedule();
  }

  // Events

  /** @param {Event} event @param {number} size */
  receive(event, size) {
    this.queue.push([event, size]);
    const now = performance.now() / 1000;
    const isNew = (event.seq ?? 0) > this.target && event.type !== "end";
    if (isNew) this.began = Math.min(this.began === null ? Infinity : this.began, now - (event.at ?? 0));
    this.schedule();
  }

  schedule() {
    if (this.frame || this.timer || this.closed) return;
    if (document.hidden) this.timer = setTimeout(() => this.run(), UNSEEN);
    else this.frame = requestAnimationFrame(() => this.run());
  }

  /** Take what has come, and draw it, once in a frame. */
  run() {
    this.frame = this.timer = 0;
    if (this.closed) return;
    const until = performance.now() + FRAME;
    while (this.taken < this.queue.length && performance.now() < until) {
      for (let i = 0; i < 50 && this.taken < this.queue.length; i++)
        this.log.add(...this.queue[this.taken++]);
    }
    if (this.taken === this.queue.length) [this.queue, this.taken] = [[], 0];
    this.play();
    const now = performance.now();
    if (!this.queue.length || now - this.painted > BEHIND) {
      this.draw();
      this.painted = now;
    }
    if (this.queue.length || this.playing) this.schedule();
  }

  /** Whether the run goes on and is shown as it is now. */
  get live() {
    return this.moment === null && this.log.state.end === null;
  }

  /** Seconds from the start of the run to what is shown. */
  get now() {
    if (this.moment !== null) return this.moment;
    const { state } = this.log;
    if (state.end) return state.end.at;
    return this.began === null ? state.at : Math.max(performance.now() / 1000 - this.began, state.at);
  }

  // Drawing

  draw() {
    this.state = this.moment === null ? this.log.state : this.log.at(this.moment);
    const loading = this.log.state.seq < this.target && this.target - this.log.state.seq > MANY;
    this.drawBar(loading);
    if (this.link === "gone") return this.drawGone();
    if (loading) return;
    this.drawStrip();
    this.drawTimeline();
    this.drawDock();
    this.drawPanel();
    this.drawBadges();
    this.drawFurther();
    this.drawReplaying();
    this.replay.draw();
    this.announce();
    this.tick();
  }

  /** @param {boolean} loading */
  drawBar(loading) {
    const { state } = this.log;
    const title = line(this.record?.title, 300) || (this.link === "gone" ? "No such run" : "Run");
    const status = this.state.end?.status ?? (this.state.asked.length ? "ask" : "running");
    byId("title").textContent = title;
    byId("title").title = title;
    byId("state").hidden = this.link === "gone";
    if (byId("mark").dataset.status !== status) {
      byId("mark").dataset.status = status;
      byId("mark").replaceChildren(mark(status));
    }
    const loaded = loading ? `loading ${count(state.seq)} of ${count(this.target)} events` : "";
    byId("phase").textContent = loaded || words(this.state, { stopping: this.stopping });
    byId("phase").title = byId("phase").textContent;
    const link = { reconnecting: "reconnecting", connecting: "" }[String(this.link)] ?? "";
    byId("link").hidden = !link;
    if (byId("link").textContent !== link)
      byId("link").replaceChildren(...(link ? [el("span", { class: "spinner" }), link] : []));
    const stop = byId("stop");
    const goesOn = this.record?.status === "running" && state.end === null && this.link !== "gone";
    if (!goesOn && stop === document.activeElement) this.timeline.host.focus();
    stop.hidden = !goesOn;
    stop.disabled = this.stopping;
    stop.textContent = this.stopping ? "Stopping" : "Stop";
    const sign = state.asked.length
      ? "? "
      : state.end
        ? ({ completed: "✔ ", failed: "✘ " }[state.end.status] ?? "⊘ ")
        : "▸ ";
    document.title = `${sign}${title} – thinkwell`;
  }

  drawGone() {
    const all = el("a", { href: "#" }, "All runs");
    const text = "There is no such run here: it was deleted, or it is somebody else's. ";
    byId("run").classList.add("gone");
    this.timeline.host.replaceChildren(el("p", { class: "empty" }, text, all));
  }

  drawStrip() {
    const strip = byId("plan-strip");
    const plan = this.state.plans.find((each) => each.id === "main") ?? this.state.plans[0];
    const entries = plan?.entries ?? [];
    strip.hidden = !entries.length;
    if (!entries.length || !this.changed("strip", [entries])) return;
    const done = entries.filter((step) => step.status === "completed").length;
    const step =
      entries.find((each) => each.status === "in_progress") ??
      entries.find((each) => each.status === "pending");
    strip.replaceChildren(
      el("span", { class: "dim" }, `plan ${done}/${entries.length}`),
      meter(done / entries.length),
      el("span", { class: "step" }, step ? line(step.content, 300) : "done"),
    );
  }

  drawTimeline() {
    /** @type {Drawn[]} */
    const rows = [];
    const prompt = typeof this.about.prompt === "string" ? this.about.prompt : this.record?.title;
    if (prompt) rows.push({ key: "prompt", text: prompt });
    for (const row of rowsOf(this.state)) rows.push(row);
    if (this.state.end) rows.push({ key: "final", state: this.state });
    else if (waits(this.state)) {
      const text = words(this.state, { stopping: this.stopping });
      rows.push({ key: "wait", text, since: waitsSince(this.state) });
    }
    if (this.changed("over", [this.state.end]))
      for (const row of rows)
        if ("item" in row && row.item.kind !== "message") this.timeline.stale.add(row.key);
    this.timeline.draw(rows);
    if (this.anchor && this.record !== null && this.log.state.seq >= this.target) {
      this.timeline.restore(this.anchor);
      this.timeline.draw(rows);
      this.timeline.restore(this.anchor);
      this.anchor = null;
    }
  }

  drawDock() {
    const open = this.live
      ? this.state.asked.map((number) => /** @type {QuestionItem} */ (get(this.state.items, number)))
      : [];
    const ids = new Set(open.map((question) => question.id));
    for (const [id, card] of this.cards) {
      if (ids.has(id)) continue;
      const focused = card.node.contains(document.activeElement);
      card.node.replaceWith(...(this.moment === null ? this.settled(id) : []));
      this.cards.delete(id);
      const below = byId(isNarrow() && this.tab !== "timeline" ? "panel" : "timeline");
      if (focused) ([...this.cards.values()][0]?.node ?? below).focus();
    }
    for (const question of open.slice(0, 20)) {
      const known = this.cards.get(question.id);
      if (known) known.update(question);
      else {
        const card = new QuestionCard(question, this);
        this.cards.set(question.id, card);
        byId("dock").append(card.node);
      }
    }
  }

  /** What is said for a while in the place of a question that others have answered. @param {string} id */
  settled(id) {
    const number = find(this.state.where, `question/${id}`);
    const question = /** @type {QuestionItem} */ (get(this.state.items, number));
    if (this.answered.has(id) || question.answer === null || question.answer.choice === null) return [];
    const text = `${line(question.title, 200) || "The question"}: ${this.outcome(question)}`;
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

  /** What became of a question. @param {QuestionItem} question */
  outcome(question) {
    return outcome(question, { here: this.answered.has(question.id), caller: page.info?.caller });
  }

  drawTabs() {
    byId("tabs").replaceChildren(
      ...Object.entries(PANELS).map(([name, { label }]) =>
        el(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${name}`,
            "aria-controls": name === "timeline" ? "left" : "panel",
            onclick: () => this.show(name),
          },
          label,
        ),
      ),
    );
    this.drawTab();
  }

  drawTab() {
    const shown = this.tab === "timeline" && !isNarrow() ? "plan" : this.tab;
    byId("run").dataset.tab = shown;
    for (const tab of byId("tabs").children) {
      const isIt = tab.id === `tab-${shown}`;
      set(tab, { "aria-selected": String(isIt), tabindex: isIt ? 0 : -1 });
      if (isIt) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    set(byId("panel"), { "aria-labelledby": `tab-${shown}` });
    return shown;
  }

  /** Show what was beside the timeline in its place, or the timeline itself where something is asked. */
  resized() {
    const { narrow } = this;
    this.narrow = isNarrow();
    if (this.narrow && !narrow && this.cards.size) [this.beside, this.tab] = [this.tab, "timeline"];
    else if (narrow && !this.narrow) {
      if (this.tab === "timeline") this.tab = this.beside ?? this.tab;
      this.beside = null;
    }
    this.drawTab();
    this.drawn.delete("panel");
    this.schedule();
  }

  drawBadges() {
    for (const [name, { label, badge, needs }] of Object.entries(PANELS)) {
      if (!this.changed(`badge ${name}`, needs(this.state))) continue;
      const text = badge(this.state);
      byId(`tab-${name}`).replaceChildren(label, ...(text ? [el("span", { class: "badge" }, text)] : []));
    }
  }

  drawPanel() {
    if (!this.chosen && !isNarrow()) this.follow();
    const tab = byId("run").dataset.tab;
    const { needs, draw } = PANELS[tab];
    if (
      tab !== "timeline" &&
      this.changed("panel", [tab, this.file, this.record, this.more.get("terminal"), ...needs(this.state)])
    ) {
      const focus =
        byId("panel").contains(document.activeElement) && document.activeElement !== byId("panel");
      draw(byId("panel"), this.state, this);
      if (focus) byId("panel").querySelector('[aria-current="true"]')?.focus();
    }
  }

  /** Show what there is something of, as long as nobody has chosen. */
  follow() {
    const { state } = this;
    const has =
      state.end?.status === "completed"
        ? "result"
        : state.plans.length
          ? "plan"
          : state.edits.length
            ? "changes"
            : state.commands.length
              ? "terminal"
              : "plan";
    if (has !== this.tab) {
      this.tab = has;
      this.drawTab();
    }
  }

  drawFurther() {
    const turns = this.conversation;
    const agent = page.info?.agents.find((/** @type {Json} */ each) => each.name === this.record?.agent);
    const may = Boolean(this.record?.thread && agent && this.log.state.end && this.moment === null);
    byId("further").hidden = !may;
    if (!this.changed("conversation", [turns, may])) return;
    if (may) this.drawChoices(agent);
    byId("conversation")?.remove();
    if (turns.length < 2) return;
    const at = turns.findIndex((run) => run.id === this.id);
    const from = Math.max(at - AROUND_TURN, 0);
    const links = turns.slice(from, at + AROUND_TURN + 1).map((run, i) => {
      const number = String(from + i + 1);
      return run.id === this.id
        ? el("strong", { "aria-current": "page" }, number)
        : el("a", { href: runAddress(run.id), title: line(run.title, 300) }, number);
    });
    const name = `Turns of the conversation, ${turns.length} in all`;
    this.timeline.host.before(
      el("nav", { id: "conversation", "aria-label": name }, from ? "Turns …" : "Turns", ...links),
    );
  }

  /**
   * Offer what has to be known to go on with the conversation, where a program has begun it: with another folder,
   * or other permissions, it would be another conversation.
   * @param {Json} agent
   */
  drawChoices(agent) {
    const turns = this.conversation.length;
    const isLast = !turns || this.conversation[turns - 1].id === this.id;
    const label = isLast
      ? "Go on with this conversation"
      : `Go on with this conversation, after turn ${turns}`;
    set(byId("more"), { placeholder: label, "aria-label": label });
    const known = this.choices();
    for (const name of /** @type {const} */ (["folder", "permissions"])) {
      const offered = agent[name === "folder" ? "folders" : "permissions"];
      const open = known === null && offered.length > 1;
      const options = [["", "which?"], ...offered.map((/** @type {string} */ each) => [each, each])];
      fill(`more-${name}`, open ? options : [], undefined);
    }
  }

  /** What was chosen for the conversation; null: nothing here knows that. @returns {Json} */
  choices() {
    const turns = [this.record, ...this.conversation.toReversed()];
    return turns.map((run) => run.meta?.page).find(isObject) ?? null;
  }

  drawReplaying() {
    const host = byId("replaying");
    byId("run").classList.toggle("replaying", this.moment !== null);
    host.hidden = this.moment === null;
    if (this.moment === null || !this.changed("replaying", [this.log.state.end === null])) return;
    const label = this.log.state.end ? "Back to the end" : "Back to now";
    host.replaceChildren(
      el("span", { class: "grow" }, "This is how it was; nothing here is happening now."),
      button(label, { class: "button small", onclick: () => this.seek(null) }),
    );
  }

  /** Whether something is drawn of other values than before. @param {string} what @param {unknown[]} values */
  changed(what, values) {
    const before = this.drawn.get(what);
    if (before && before.length === values.length && before.every((each, i) => each === values[i]))
      return false;
    this.drawn.set(what, values);
    return true;
  }

  /** Bring to date what only depends on the time. */
  tick() {
    const now = this.now;
    byId("elapsed").textContent = this.record ? clock(now) : "";
    for (const each of /** @type {NodeListOf<HTMLElement>} */ (
      this.timeline.host.querySelectorAll(".since")
    )) {
      each.textContent = seconds(Math.max(now - Number(each.dataset.since), 0));
    }
    for (const card of this.cards.values()) card.tick(now);
  }

  /** Tell those who do not see the page what matters, and not every word. */
  announce() {
    const { state } = this.log;
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

  // What the user does

  /** @param {string} key @param {boolean} otherwise */
  isOpen(key, otherwise) {
    return this.folds.get(key) ?? otherwise;
  }

  /** @param {string} key @param {boolean} open */
  toggle(key, open) {
    this.folds.set(key, open);
    this.timeline.stale.add(key.split("/")[0]);
    this.timeline.stick = false;
    this.schedule();
    requestAnimationFrame(() => requestAnimationFrame(() => this.closed || this.timeline.scrolled()));
    this.save();
  }

  /** @param {string} key */
  drawnOf(key) {
    return DRAWN * (1 + (this.more.get(key) ?? 0));
  }

  /** @param {string} key */
  drawMore(key) {
    this.more.set(key, (this.more.get(key) ?? 0) + 1);
    this.timeline.stale.add(key);
    this.schedule();
  }

  /** @param {string} tab */
  show(tab) {
    [this.tab, this.chosen] = [tab, true];
    this.drawTab();
    this.schedule();
    this.save();
  }

  /** @param {string} path */
  choose(path) {
    this.file = path;
    this.schedule();
    this.save();
  }

  async stop() {
    if (this.log.state.end || this.stopping) return;
    this.stopping = true;
    this.schedule();
    try {
      await request("POST", runPath(this.id, "/cancel"));
    } catch (error) {
      this.stopping = false;
      notify(`It could not be stopped: ${messageOf(error)}.`);
      this.schedule();
    }
  }

  /** Go on with the conversation in another run. @param {string} prompt */
  async further(prompt) {
    const picks = ["folder", "permissions"].filter((name) => !byId(`pick-more-${name}`).hidden);
    const open = picks.filter((name) => !byId(`more-${name}`).value);
    if (open.length) {
      byId(`more-${open[0]}`).focus();
      throw new Error(
        `Choose the ${open.join(" and the ")} that the conversation has: with others it begins anew.`,
      );
    }
    const picked = Object.fromEntries(picks.map((name) => [name, byId(`more-${name}`).value]));
    const { folder, permissions } = this.choices() ?? picked;
    const { agent, thread } = this.record;
    return startRun({ prompt, agent, thread, folder, permissions, output: null });
  }

  /** Show a moment of the run; null: the latest. @param {number | null} moment */
  seek(moment) {
    this.moment = moment !== null && moment >= this.log.end ? null : moment;
    if (this.moment === null) this.playing = false;
    this.schedule();
    this.save();
  }

  playOrPause() {
    if (!this.log.events.length) return;
    this.playing = !this.playing;
    this.played = performance.now();
    if (this.playing && this.moment === null) this.moment = this.log.begin;
    this.schedule();
  }

  /** Move on by the time that has passed since the last frame. */
  play() {
    if (!this.playing) return;
    const now = performance.now();
    const moment = (this.moment ?? this.log.begin) + ((now - this.played) / 1000) * this.speed;
    this.played = now;
    this.seek(moment);
  }

  // Being where one was

  save() {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.keep(), 300);
  }

  keep() {
    clearTimeout(this.saving);
    if (this.record === null || this.anchor) return;
    remember(sessionStorage, `run:${this.id}`, {
      tab: this.tab,
      chosen: this.chosen,
      folds: [...this.folds].slice(-REMEMBERED),
      file: this.file,
      answered: [...this.answered].slice(-REMEMBERED),
      moment: this.moment,
      anchor: this.timeline.stick ? null : this.timeline.anchor(),
    });
  }
}

function isNarrow() {
  return window.matchMedia("(max-width: 860px)").matches;
}

/** @param {string} text @param {boolean} [urgent] */
function say(text, urgent = false) {
  const host = byId(urgent ? "urgent" : "polite");
  host.append(el("p", {}, text));
  while (host.childNodes.length > 5) host.firstChild?.remove();
}

/** Show and say something that belongs to no part of the page. @param {string} text Empty: nothing more. */
function notify(text) {
  byId("notice-text").textContent = text;
  byId("notice").hidden = !text;
  if (text) say(text, true);
}

/** Characters of a prompt, and of a schema, that are kept with a run. */
const KEPT_WITH_RUN = 8000;

/**
 * Start a run and show it.
 * @param {{prompt: string, agent?: string, folder?: string, permissions?: string, output: Json, thread?: string}} about
 */
async function startRun({ prompt, agent, folder, permissions, output, thread }) {
  // The list of runs has that of each, so it is kept short.
  const short = json(output, 0).length <= KEPT_WITH_RUN ? output : null;
  const kept = { prompt: cut(prompt, KEPT_WITH_RUN), folder, permissions, output: short };
  const body = {
    prompt,
    agent,
    folder,
    permissions,
    thread,
    output: output ?? undefined,
    meta: { page: kept },
  };
  const { data } = await request("POST", "api/runs", {
    body,
    headers: { "Idempotency-Key": requestName(body) },
  });
  requestNames.clear();
  location.hash = runAddress(data.run.id);
}

/** @type {Map<string, string>} */
const requestNames = new Map();

/** The same name for the same request, until it was answered: then it is not done twice. @param {Json} body */
function requestName(body) {
  const key = json(body, 0);
  const known = requestNames.get(key) ?? freshName();
  requestNames.set(key, known);
  return known;
}

// ---------------------------------------------------------------------------------------------------------
// All runs
// ---------------------------------------------------------------------------------------------------------

/** Milliseconds after which the list is asked for again, while a run goes on and while none does. */
const LOOK_AGAIN = [4000, 15000];

/** Runs that are asked for at a time. */
const PAGE = 50;

/** The list of runs, and the form that starts one. */
class Home {
  constructor() {
    this.closed = false;
    /** @type {Json[]} */
    this.runs = [];
    /** @type {string | null} */
    this.next = null;
    this.pages = 1;
    this.shown = "";
    /** Ids of the runs that waited for an answer when the list was drawn. @type {Set<string>} */
    this.waiting = new Set();
    document.title = "thinkwell";
    byId("title").textContent = "";
    byId("prompt").value = recall(sessionStorage, "prompt") ?? "";
    this.load();
    this.look();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  async load() {
    try {
      await about();
      if (!this.closed) drawChoices();
    } catch (error) {
      this.problem(error);
      if (!this.closed) setTimeout(() => this.closed || this.load(), LOOK_AGAIN[0]);
    }
  }

  async look() {
    clearTimeout(this.timer);
    let wait = 0;
    try {
      await this.list(); // in a hidden tab too: its title says where an answer is waited for
      if (!this.closed) byId("link").hidden = true;
      wait = LOOK_AGAIN[this.runs.some((run) => run.status === "running") ? 0 : 1];
    } catch {
      if (this.closed) return;
      wait = PATIENCE[0] * 1000;
      byId("link").hidden = false;
      byId("link").replaceChildren(el("span", { class: "spinner" }), "reconnecting");
    }
    if (!this.closed) this.timer = setTimeout(() => this.look(), wait);
  }

  async list() {
    const status = byId("filter").value;
    /** @type {Json[]} */
    let runs = [];
    let next = null;
    for (let i = 0; i < this.pages; i++) {
      const query = new URLSearchParams({
        limit: String(PAGE),
        ...(status && { status }),
        ...(next && { before: next }),
      });
      const { data } = await request("GET", `api/runs?${query}`);
      runs = [...runs, ...data.runs];
      next = data.next ?? null;
      if (next === null) break;
    }
    if (this.closed) return;
    [this.runs, this.next] = [runs, next];
    this.draw();
  }

  draw() {
    byId("runs-more").hidden = this.next === null;
    const now = Date.now() / 1000;
    const sign = json([this.runs, Math.floor(now / 30)], 0);
    if (sign === this.shown) return;
    this.shown = sign;
    this.tellWaiting();
    const focused = document.activeElement?.closest("li")?.dataset.run;
    const empty = byId("filter").value
      ? "There are no such runs."
      : "Nothing was run so far. Describe a task above.";
    byId("runs").replaceChildren(
      ...(this.runs.length
        ? this.runs.map((run) => this.row(run, now))
        : [el("li", { class: "empty" }, empty)]),
    );
    if (focused)
      [...byId("runs").children]
        .find((row) => row.dataset.run === focused)
        ?.querySelector("a")
        ?.focus();
  }

  /** Say which runs have begun to wait for an answer. */
  tellWaiting() {
    const waiting = this.runs.filter((run) => run.input_required);
    document.title = waiting.length ? "? thinkwell" : "thinkwell";
    for (const run of waiting)
      if (!this.waiting.has(run.id)) say(`${line(run.title, 100) || "A run"} is waiting for your answer`);
    this.waiting = new Set(waiting.map((run) => run.id));
  }

  /** @param {Json} run @param {number} now */
  row(run, now) {
    const status = run.status ?? "running";
    const stands = run.ended ? `took ${seconds(run.ended - run.created)}` : "running";
    const link = el(
      "a",
      { href: runAddress(run.id) },
      mark(run.input_required ? "ask" : status),
      el("span", { class: "name" }, line(run.title, 300) || "a run"),
      el(
        "time",
        {
          class: "about",
          datetime: new Date(run.created * 1000).toISOString(),
          title: new Date(run.created * 1000).toLocaleString(),
        },
        `${line(run.agent, 100)} · ${ago(now - run.created)} · `,
        run.input_required ? el("span", { class: "asks" }, "waiting for your answer") : stands,
      ),
    );
    const remove = button("Delete", {
      class: "button small bare",
      "aria-label": `Delete ${line(run.title, 100)}`,
      onclick: () => (remove.dataset.sure ? this.remove(run.id, remove) : sure(remove)),
    });
    return el("li", { "data-run": run.id }, link, status === "running" ? null : remove);
  }

  /** @param {string} id @param {HTMLButtonElement} remove */
  async remove(id, remove) {
    remove.disabled = true;
    try {
      await request("DELETE", runPath(id));
    } catch (error) {
      this.problem(error);
    }
    this.shown = "";
    await this.look();
  }

  /** @param {unknown} error */
  problem(error) {
    const host = byId("start-problem");
    host.textContent = messageOf(error);
    host.hidden = false;
  }

  async start() {
    const [prompt, schema, problem, go] = ["prompt", "schema", "start-problem", "go"].map(byId);
    problem.hidden = true;
    if (!prompt.value.trim()) return prompt.focus();
    let output = null;
    try {
      output = schema.value.trim() ? JSON.parse(schema.value) : null;
      if (output !== null && !isObject(output)) throw new Error("it has to be an object");
    } catch (error) {
      return this.problem(new Error(`The schema is no JSON Schema: ${messageOf(error)}`));
    }
    go.disabled = true;
    const picked = Object.fromEntries(
      ["agent", "folder", "permissions"].map((name) => [name, byId(name).value || undefined]),
    );
    remember(localStorage, "picked", picked);
    try {
      // A run with a type has a session of its own; others are the first turn of a conversation.
      await startRun({
        prompt: prompt.value,
        ...picked,
        output,
        thread: output === null ? freshName() : undefined,
      });
      prompt.value = "";
      remember(sessionStorage, "prompt", "");
    } catch (error) {
      this.problem(error);
    } finally {
      go.disabled = false;
    }
  }
}

/** Ask once more, for a moment. @param {HTMLButtonElement} each */
function sure(each) {
  each.dataset.sure = "yes";
  each.textContent = "Really?";
  setTimeout(() => {
    delete each.dataset.sure;
    each.textContent = "Delete";
  }, 3000);
}

/** @param {number} passed Seconds. */
function ago(passed) {
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return plural(Math.floor(passed / 86400), "day") + " ago";
}

/** Offer what the operator lets callers choose; of one there is no choice. */
function drawChoices() {
  const kept = recall(localStorage, "picked") ?? {};
  const agents = page.info.agents;
  fill(
    "agent",
    agents.map((/** @type {Json} */ each) => [each.name, each.title || each.name]),
    kept.agent,
  );
  const draw = () => {
    const agent = agents.find((/** @type {Json} */ each) => each.name === byId("agent").value) ?? agents[0];
    for (const name of ["folder", "permissions"]) {
      const names = agent[name === "folder" ? "folders" : "permissions"] ?? [];
      fill(
        name,
        names.map((/** @type {string} */ each) => [each, each]),
        kept[name],
      );
    }
  };
  byId("agent").onchange = draw;
  draw();
}

/** @param {string} id @param {[string, string][]} options @param {string | undefined} chosen */
function fill(id, options, chosen) {
  byId(`pick-${id}`).hidden = options.length < 1;
  byId(id).replaceChildren(
    ...options.map(([value, label]) => el("option", { value, selected: value === chosen }, line(label, 100))),
  );
}

// ---------------------------------------------------------------------------------------------------------
// The page
// ---------------------------------------------------------------------------------------------------------

/** @type {{info: Json, run: RunView | null, home: Home | null, routes: number}} */
const page = { info: null, run: null, home: null, routes: 0 };

/** What the server is, and what it offers; asked for once. @returns {Promise<Json>} */
async function about() {
  return (page.info ??= (await request("GET", "api")).data);
}

/** Keys and what they do. @type {[string, string][]} */
const SHORTCUTS = [
  ["y", "allow what is asked, this once"],
  ["a", "allow it always, where that is offered"],
  ["n", "deny it, this once"],
  ["d", "deny it always, where that is offered"],
  ["1 … 9", "choose another of the answers"],
  ["f", "begin to fill in a form"],
  ["o", "open the page that is asked for"],
  ["j  k", "next step of the run, and the one before; Enter unfolds it"],
  [".", "go to the latest"],
  ["[  ]", "the tab before, and the next one"],
  ["p", "replay, and pause"],
  ["r", "go to the replay's slider; arrow keys move it"],
  ["Shift S", "stop the run"],
  ["c", "write a prompt"],
  ["u", "all runs"],
  ["?", "this list"],
];

/** @type {{[key: string]: () => void}} */
const DOES = {
  j: () => page.run?.timeline.step(1),
  k: () => page.run?.timeline.step(-1),
  ".": toLatest,
  "[": () => turnTab(-1),
  "]": () => turnTab(1),
  p: () => page.run?.playOrPause(),
  r: () => page.run && byId("scrub").focus(),
  S: () => page.run?.stop(),
  c: () => byId(page.run ? "more" : "prompt").focus(),
  u: () => (location.hash = ""),
  "?": () => byId("help").showModal(),
};

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = target.matches?.("input:not([type=range], [type=radio], [type=checkbox]), textarea, select");
  if (event.key === "Escape" && typing) target.blur();
  if (typing || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat)
    return;
  if (document.querySelector("dialog[open]") || !keysOn()) return;
  if (event.key === "Enter" && target.matches(".row")) return target.querySelector("button")?.click();
  const done = answeredBy(event.key, target) || (Object.hasOwn(DOES, event.key) && (DOES[event.key](), true));
  if (done) event.preventDefault();
}

/** @param {string} key @param {HTMLElement} target */
function answeredBy(key, target) {
  const cards = [...(page.run?.cards.values() ?? [])];
  const card =
    cards.find((each) => each.node.contains(target)) ?? cards.find((each) => each.inSight) ?? cards[0];
  return card?.press(key) ?? false;
}

function keysOn() {
  return recall(localStorage, "keys") ?? true;
}

function toLatest() {
  const { run } = page;
  if (run === null) return;
  run.timeline.stick = true;
  byId("latest").hidden = true;
  run.schedule();
  run.timeline.toEnd();
}

/** @param {number} by */
function turnTab(by) {
  if (page.run === null) return;
  const names = Object.keys(PANELS).filter((name) => name !== "timeline" || isNarrow());
  const at = names.indexOf(byId("run").dataset.tab);
  page.run.show(names[(at + by + names.length) % names.length]);
}

/** @param {KeyboardEvent} event */
function tabKeys(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (by === undefined) return;
  event.preventDefault();
  turnTab(by);
  byId("tabs").querySelector('[aria-selected="true"]')?.focus();
}

/** The share of the width that the details have, in percent. @param {number} share */
function widen(share) {
  const width = Math.max(20, Math.min(share, 75));
  document.documentElement.style.setProperty("--side", `${width}%`);
  set(byId("splitter"), { "aria-valuenow": Math.round(width), "aria-valuemin": 20, "aria-valuemax": 75 });
  remember(localStorage, "side", width);
}

function wireSplitter() {
  const splitter = byId("splitter");
  widen(recall(localStorage, "side") ?? 44);
  splitter.onpointerdown = (/** @type {PointerEvent} */ event) => {
    splitter.setPointerCapture(event.pointerId);
    splitter.onpointermove = (/** @type {PointerEvent} */ move) =>
      widen(100 - (100 * move.clientX) / window.innerWidth);
  };
  splitter.onpointerup = () => {
    splitter.onpointermove = null;
  };
  splitter.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowLeft: 3, ArrowRight: -3 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    widen(Number(splitter.getAttribute("aria-valuenow")) + by);
  };
}

const THEMES = ["system", "light", "dark"];

/** @param {string} theme */
function colour(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  set(byId("theme"), { "aria-label": `Colours: ${theme}`, title: `Colours: ${theme}` });
  byId("theme").replaceChildren(icon(theme));
  remember(localStorage, "theme", theme);
  page.run?.replay.lanes(true);
}

/** Send on Enter with Control, or by a button. @param {string} form @param {string} field @param {() => unknown} send */
function wireForm(form, field, send) {
  byId(form).onsubmit = (/** @type {globalThis.Event} */ event) => {
    event.preventDefault();
    send();
  };
  byId(field).onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    }
  };
}

async function sendFurther() {
  const [field, problem, go] = ["more", "more-problem", "more-go"].map(byId);
  if (!field.value.trim() || page.run === null) return field.focus();
  problem.hidden = go.disabled = true;
  try {
    await page.run.further(field.value);
    field.value = "";
  } catch (error) {
    problem.textContent = messageOf(error);
    problem.hidden = false;
  } finally {
    go.disabled = false;
  }
}

/** Seconds by which a slider may miss what it was moved to: it does not have every digit. */
const SLACK = 0.0005;

function wire() {
  byId("login-form").onsubmit = (/** @type {globalThis.Event} */ event) => {
    event.preventDefault();
    giveToken();
  };
  byId("login").oncancel = (/** @type {globalThis.Event} */ event) => event.preventDefault();
  byId("login").onclose = () => waiting && byId("login").showModal(); // some browsers close it all the same
  byId("notice-close").onclick = () => notify("");
  byId("stop").onclick = () => page.run?.stop();
  byId("latest").prepend(icon("down"));
  byId("latest").onclick = toLatest;
  byId("plan-strip").onclick = () => page.run?.show("plan");
  byId("play").onclick = () => page.run?.playOrPause();
  byId("speed").onchange = () => page.run && (page.run.speed = Number(byId("speed").value));
  byId("scrub").oninput = () => {
    if (page.run) page.run.playing = false;
    page.run?.seek(Number(byId("scrub").value) + SLACK);
  };
  byId("tabs").onkeydown = tabKeys;
  byId("skip").onclick = () => byId(page.run ? "timeline" : "prompt").focus();
  byId("theme").onclick = () =>
    colour(THEMES[(THEMES.indexOf(recall(localStorage, "theme") ?? "system") + 1) % 3]);
  byId("help-open").onclick = () => byId("help").showModal();
  byId("help-close").onclick = () => byId("help").close();
  byId("keys").append(
    ...SHORTCUTS.flatMap(([keys, does]) => [
      el("dt", {}, ...keys.split("  ").flatMap((key) => [keyHint(key), " "])),
      el("dd", {}, does),
    ]),
  );
  byId("keys-on").checked = keysOn();
  byId("keys-on").onchange = () => remember(localStorage, "keys", byId("keys-on").checked);
  byId("filter").onchange = () => page.home?.look();
  byId("older").onclick = () => {
    if (page.home) page.home.pages++;
    page.home?.look();
  };
  byId("prompt").oninput = () => remember(sessionStorage, "prompt", byId("prompt").value);
  wireForm("start", "prompt", () => page.home?.start());
  wireForm("further", "more", sendFurther);
  wireSplitter();
  colour(recall(localStorage, "theme") ?? "system");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.run?.replay.lanes(true));
  document.addEventListener("keydown", pressed);
  window.addEventListener("pagehide", () => page.run?.keep());
  window.addEventListener("resize", () => page.run?.resized());
  new ResizeObserver(() => {
    if (byId("run").dataset.tab !== "changes") return;
    page.run?.drawn.delete("panel");
    page.run?.schedule();
  }).observe(byId("panel"));
  watchSleep();
}

/** See whether a token was given in another window meanwhile. */
async function lookAgain() {
  const known = await send("GET", "api").catch(() => null);
  if (waiting && known?.ok) letIn();
}

/** Come back at once where a connection may have died unseen: after sleep, or with another network. */
function watchSleep() {
  let hidden = Infinity;
  const again = () => {
    const { run } = page;
    if (run?.watch && !run.watch.over) run.watch.open();
    page.home?.look();
  };
  window.addEventListener("online", again);
  document.addEventListener("visibilitychange", () => {
    const { run } = page;
    if (waiting && !document.hidden) lookAgain();
    if (document.hidden) {
      hidden = performance.now();
      run?.keep();
    } else if (performance.now() - hidden > ASLEEP * 1000) again();
    if (run === null) return;
    clearTimeout(run.timer); // frames come with another clock now
    cancelAnimationFrame(run.frame);
    run.frame = run.timer = 0;
    run.schedule();
  });
}

/** What the address asks for. The token in it is taken out at once. */
function takeAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const token = asked.get("secret");
  if (token !== null) {
    asked.delete("secret");
    history.replaceState(null, "", `${location.pathname}${location.search}${asked.size ? `#${asked}` : ""}`);
  }
  return { run: asked.get("run"), token };
}

/** Use the token of an address. @param {string} token */
async function enter(token) {
  const problem = await tellToken(token, "The token in the address");
  if (!problem) return letIn();
  const known = await send("GET", "api").catch(() => null);
  if (known?.status === 401) login(problem);
  else if (known?.ok) notify(`${problem} This browser is known from before.`);
}

async function route() {
  const { run, token } = takeAddress();
  const route = (page.routes += 1);
  if (token !== null) await enter(token);
  if (route !== page.routes) return; // the address has changed meanwhile
  if (run !== null && page.run?.id === run) return;
  page.run?.close();
  page.home?.close();
  page.run = page.home = null;
  byId("home").hidden = run !== null;
  byId("run").hidden = run === null;
  byId("bar").classList.toggle("of-run", run !== null);
  for (const id of ["state", "stop", "link"]) byId(id).hidden = true;
  if (run === null) page.home = new Home();
  else page.run = new RunView(run);
}

if (typeof document !== "undefined") {
  wire();
  window.addEventListener("hashchange", route);
  route();
}
