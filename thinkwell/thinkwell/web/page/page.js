// @ts-check
/** The page: what it shows, and what its user does. */

import { changesOf, filesChanged, sumsOf } from "./changes.js";
import { choicesOf, outcome, verdictWords, wasAllowed } from "./choices.js";
import { diffNode } from "./difftable.js";
import {
  button,
  byId,
  counts,
  el,
  ENDS,
  icon,
  isNarrow,
  keyHint,
  linkAttributes,
  mark,
  meter,
  nothing,
  section,
  set,
  svg,
} from "./elements.js";
import { FieldInput } from "./fields.js";
import { treeOf } from "./files.js";
import { lanesOf } from "./lanes.js";
import { hostOf, safeLink } from "./links.js";
import { all, beginning, ending, find, get } from "./lists.js";
import { Log } from "./log.js";
import { clock, count, plural, seconds } from "./numbers.js";
import { exitCode, OUTPUT, outputOf } from "./outputs.js";
import { blockNode, DRAWN, drawProse, terminal } from "./prose.js";
import { fieldsOf } from "./results.js";
import { describeFold, rowsOf, sameRow } from "./rows.js";
import { address, messageOf, read, Refused, runAddress, runPath, send } from "./server.js";
import { BEGINNING } from "./state.js";
import { recall, remember } from "./storage.js";
import { clean, cut, exact, isObject, json, line, relative, shortened, table } from "./text.js";
import { bareTitle, commandLine, describe, otherArguments, PLACES, statusOf, takenBy } from "./tools.js";
import { cachedShare, money, usageParts } from "./usage.js";
import { LONG, NEAR, topsOf, windowOf } from "./windows.js";
import { durations, waits, waitsSince, words } from "./words.js";

/**
 * @import {ChangedFile, FileChange} from "./changes.js"
 * @import {Choice} from "./choices.js"
 * @import {Inner} from "./elements.js"
 * @import {Folder} from "./files.js"
 * @import {Text} from "./lists.js"
 * @import {ResultField} from "./results.js"
 * @import {Row} from "./rows.js"
 * @import {AttemptItem, Event, Plan, QuestionItem, State, Step, TextItem, ToolItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

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

/** What is taken for the height of a row that was never in the document. */
const GUESS = 38;

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

/** @param {ReadonlyArray<Plan>} plans */
function planCount(plans) {
  const steps = plans.flatMap((plan) => plan.entries);
  return steps.length ? `${steps.filter((step) => step.status === "completed").length}/${steps.length}` : "";
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

wire();
window.addEventListener("hashchange", route);
route();
