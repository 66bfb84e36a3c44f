// Runs: purity, rows, replay, changes, results, questions.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BEGINNING,
  EMPTY,
  LONG,
  Log,
  NO_TEXT,
  NOWHERE,
  all,
  ansi,
  beginning,
  changesOf,
  choicesOf,
  describeFold,
  ending,
  fieldsOf,
  filesChanged,
  find,
  get,
  lanesOf,
  longer,
  named,
  otherArguments,
  outcome,
  push,
  put,
  reduce,
  rowAt,
  rowsOf,
  sideBySide,
  topsOf,
  treeOf,
  typeOf,
  wasAllowed,
  windowOf,
} from "./page.mjs";

let seq = 0;
const at = (time, type, about = {}) => ({ seq: ++seq, at: time, type, ...about });
const after = (...events) => events.reduce(reduce, BEGINNING);
const freeze = (value) => {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
};
const read = (id, time, path = `/w/${id}.py`) => [
  at(time, "tool_start", { id, kind: "read", title: id, locations: [{ path }] }),
  at(time + 1, "tool_done", { id, status: "completed" }),
];

const STORY = [
  at(-1, "phase", { phase: "initializing", seconds: 1 }),
  at(0, "session", { agent: "a", session_id: "s", cwd: "/w" }),
  at(0, "turn_start", { number: 1 }),
  at(1, "thought", { text: "Let me" }),
  at(2, "thought", { text: " see." }),
  ...read("one", 3),
  ...read("two", 4),
  at(6, "message", { text: "Hello " }),
  at(7, "message", { text: "there." }),
  at(8, "tool_start", { id: "ask", kind: "execute", title: "rm", input: { command: "rm x" } }),
  at(8, "question", {
    id: "q",
    title: "rm?",
    tool_id: "ask",
    options: [{ id: "y", name: "Allow", kind: "allow_once" }],
    timeout: 60,
  }),
  at(9, "answer", { id: "q", choice: "allow_once", by: "human", why: "" }),
  at(10, "tool_done", { id: "ask", status: "completed", output: { exit_code: 0 } }),
  at(11, "end", { status: "completed", result: "there.", stop_reason: "end_turn" }),
];

test("the reducer changes nothing that it is given", () => {
  let state = freeze(BEGINNING);
  for (const event of STORY) {
    const copy = JSON.stringify(state);
    const next = reduce(state, freeze(event));
    assert.equal(JSON.stringify(state), copy);
    state = next;
    Object.freeze(state);
  }
  assert.equal(state.end.status, "completed");
  assert.deepEqual(after(...STORY), after(...STORY));
});

test("events of types that nobody knows, and broken ones of an agent's, change nothing", () => {
  const state = after(...STORY.slice(0, 5));
  for (const type of ["tomorrow", "constructor", "__proto__"])
    assert.equal(reduce(state, at(20, type)).items, state.items);
  assert.equal(reduce(state, at(20, "verdict", { id: "nobody" })).items, state.items);
  assert.equal(reduce(state, at(20, "answer", { id: "nobody", choice: "reject_once" })).denied, 0);
});

test("lists and indexes share what did not change", () => {
  let list = EMPTY;
  for (let i = 0; i < 1000; i++) list = push(list, i);
  const changed = put(list, 500, "x");
  assert.equal(get(list, 500), 500);
  assert.equal(get(changed, 500), "x");
  assert.equal(changed.chunks[0], list.chunks[0]);
  assert.deepEqual(all(list).slice(998), [998, 999]);
  let index = NOWHERE;
  for (let i = 0; i < 1000; i++) index = named(index, `name ${i}`, i);
  const more = named(index, "name 3", -7);
  assert.equal(find(index, "name 3"), 3);
  assert.equal(find(more, "name 3"), -7);
  assert.equal(find(index, "nobody"), -1);
  assert.equal(find(NOWHERE, "constructor"), -1);
});

test("a long text is kept in pieces, and found again at both ends", () => {
  let text = NO_TEXT;
  for (let i = 0; i < 9000; i++) text = longer(text, `${String(i).padStart(4, "0")} `);
  assert.equal(text.length, 45000);
  assert.ok(text.pieces.length < 5);
  assert.equal(beginning(text, 9), "0000 0001");
  assert.equal(beginning(text).length, 45000);
  assert.equal(ending(text, 5), "8999 ");
  assert.equal(beginning(longer(NO_TEXT, "a😀"), 2), "a");
});

test("calls that have only looked share a row, and those that were asked about do not", () => {
  const rows = rowsOf(after(...STORY));
  assert.deepEqual(
    rows.map((row) => row.item.kind),
    ["thought", "tool", "message", "tool", "question"],
  );
  assert.equal(rows[1].folded.length, 2);
  assert.equal(rows[0].until, 3);
  const call = describeFold(rows[1].folded, "/w");
  assert.deepEqual([call.verb, call.target, call.seconds], ["read", "one.py, two.py", 2]);
});

test("rows of the same state are the same rows", () => {
  const state = after(...STORY);
  assert.equal(rowsOf(state), rowsOf(state));
});

test("calls of a sub-agent stand below it, however deep, and none is lost", () => {
  const events = [];
  for (let i = 0; i < 3000; i++)
    events.push(at(i, "tool_start", { id: `t${i}`, kind: "think", parent: i ? `t${i - 1}` : null }));
  events.push(at(4000, "tool_start", { id: "own", kind: "think", parent: "own" }));
  const rows = rowsOf(after(...events));
  assert.equal(rows.length, 3001);
  assert.deepEqual(
    rows.slice(0, 3).map((row) => row.depth),
    [0, 1, 2],
  );
  assert.ok(Math.max(...rows.map((row) => row.depth)) <= 4);
});

test("a second turn and a reminder are parted from the first", () => {
  const rows = rowsOf(
    after(
      at(0, "turn_start", { number: 1 }),
      at(1, "message", { text: "a" }),
      at(2, "turn_start", { number: 2, reminder: true }),
    ),
  );
  assert.deepEqual(
    rows.map((row) => row.item.kind),
    ["message", "turn"],
  );
});

test("a replay shows what was there at a time", () => {
  const log = new Log();
  for (const event of STORY) log.add(event, 100);
  assert.equal(log.begin, -1);
  assert.equal(log.end, 11);
  assert.equal(log.at(-2), BEGINNING);
  for (const time of [2, 7.5, 1, 10.5, 0, 11, 8]) {
    const wanted = STORY.filter((event) => event.at <= time).reduce(reduce, BEGINNING);
    assert.deepEqual(log.at(time), wanted, String(time));
  }
  assert.equal(log.at(11), log.state);
});

test("a long replay is found from kept states, in both directions", () => {
  const log = new Log();
  const events = Array.from({ length: 5000 }, (_, i) => at(i, "message", { text: `${i} ` }));
  for (const event of events) log.add(event, 10);
  for (const time of [0, 499, 500, 501, 4999, 1234, 1233, 4000]) {
    assert.equal(log.at(time).seq, events[time].seq);
    assert.match(beginning(log.at(time).last), new RegExp(`(^| )${time} $`));
  }
});

test("events whose time goes back are shown in their order", () => {
  const log = new Log();
  for (const event of [
    at(5, "message", { text: "a" }),
    at(3, "message", { text: "b" }),
    at(6, "message", { text: "c" }),
  ])
    log.add(event, 1);
  assert.equal(beginning(log.at(5).last), "ab");
  assert.equal(beginning(log.at(4).last), "");
});

test("what is too much to be replayed is followed all the same", () => {
  const log = new Log();
  log.add(at(1, "message", { text: "a" }), 10);
  log.add(at(2, "message", { text: "b" }), 1e9);
  assert.equal(beginning(log.state.last), "ab");
  assert.equal(beginning(log.at(1).last), "a");
});

test("each tool has a lane, and the rest share one", () => {
  const lanes = lanesOf(after(...STORY));
  assert.deepEqual(
    lanes.map((lane) => lane.name),
    ["thought", "read", "answer", "run", "questions"],
  );
  assert.deepEqual(
    lanes[1].bars.map(({ from, to }) => [from, to]),
    [
      [3, 4],
      [4, 5],
    ],
  );
  const tools = Array.from({ length: 20 }, (_, i) => at(i, "tool_start", { id: `t${i}`, name: `tool ${i}` }));
  const many = lanesOf(after(...tools));
  assert.equal(many.length, 8);
  assert.equal(many[7].name, "other tools");
  assert.equal(many[7].bars.length, 13);
});

test("only rows near the visible part are in a long list", () => {
  const rows = Array.from({ length: 10000 }, (_, i) => ({ key: String(i) }));
  const tops = topsOf(rows, new Map([["0", 100]]), 40);
  assert.equal(tops[1], 100);
  assert.equal(tops[10000], 100 + 9999 * 40);
  const [from, to] = windowOf(tops, tops[5000], 800);
  assert.ok(from < 5000 && from > 4900 && to > 5020 && to < 5100, `${from} ${to}`);
  assert.deepEqual(windowOf(tops, 0, 800)[0], 0);
  assert.equal(windowOf(tops, 1e9, 800)[1], 10000);
  assert.equal(rowAt(tops, tops[77] + 1), 77);
  assert.deepEqual(windowOf(topsOf(rows.slice(0, LONG), new Map(), 40), 5000, 800), [0, LONG]);
  assert.deepEqual(windowOf(topsOf([], new Map(), 40), 0, 800), [0, 0]);
});

const edit = (id, path, old_text, new_text, status = "completed") => [
  at(1, "tool_start", { id, kind: "edit", content: [{ type: "diff", path, old_text, new_text }] }),
  at(2, "tool_done", { id, status, content: [{ type: "diff", path, old_text, new_text }] }),
];

test("changed files are told with their sums, and those of failed calls are not", () => {
  const state = after(
    at(0, "session", { agent: "a", session_id: "s", cwd: "/w" }),
    ...edit("1", "/w/src/deep/a.py", "a\nb\n", "a\nc\nd\n"),
    ...edit("2", "/w/src/deep/a.py", "d\n", "e\n"),
    ...edit("3", "/w/b.py", undefined, "new\n"),
    ...edit("4", "/w/c.py", "x", "y", "failed"),
  );
  const files = filesChanged(state);
  assert.deepEqual(
    files.map(({ path, added, removed, isNew }) => [path, added, removed, isNew]),
    [
      ["src/deep/a.py", 3, 2, false],
      ["b.py", 1, 0, true],
    ],
  );
  const tree = treeOf(files);
  assert.deepEqual(
    tree.folders.map((folder) => folder.name),
    ["src/deep"],
  );
  assert.deepEqual(
    tree.files.map((file) => file.path),
    ["b.py"],
  );
});

test("a change has its lines, numbered where that is known, with what changed in them", () => {
  const old = Array.from({ length: 40 }, (_, i) => `line ${i}`);
  const fresh = old.map((text, i) => (i === 20 ? "line twenty" : text));
  const state = after(...edit("1", "/a", `${old.join("\n")}\n`, `${fresh.join("\n")}\n`));
  const [change] = changesOf(get(state.items, 0));
  assert.deepEqual([change.added, change.removed, change.hunks.length], [1, 1, 1]);
  const [{ lines }] = change.hunks;
  assert.deepEqual(
    lines.map(({ sign, old, fresh }) => [sign, old, fresh]),
    [
      [" ", 18, 18],
      [" ", 19, 19],
      [" ", 20, 20],
      ["-", 21, null],
      ["+", null, 21],
      [" ", 22, 22],
      [" ", 23, 23],
      [" ", 24, 24],
    ],
  );
  assert.deepEqual(lines[3].spans, [[5, 7]]);
  assert.deepEqual(lines[4].spans, [[5, 11]]);
  const rows = sideBySide(lines);
  assert.equal(rows.length, 7);
  assert.deepEqual(
    rows[3].map((line) => line.sign),
    ["-", "+"],
  );
});

test("where lines came in or went, the numbers of both sides go on rightly", () => {
  const state = after(
    ...edit("1", "/a", undefined, "a\nb\n"),
    ...edit("2", "/b", `${"x\n".repeat(25)}end\n`, `new\n${"x\n".repeat(25)}END\n`),
  );
  const [change] = changesOf(get(state.items, 1));
  const last = change.hunks.at(-1).lines;
  assert.deepEqual(
    last.filter((line) => line.sign === " ").map(({ old, fresh }) => fresh - old),
    [1, 1, 1],
  );
});

test("huge changes are told by their length and not compared", () => {
  const big = Array.from({ length: 200000 }, (_, i) => `a${i}`).join("\n");
  const other = Array.from({ length: 200000 }, (_, i) => `b${i}`).join("\n");
  const began = performance.now();
  const [change] = changesOf(get(after(...edit("1", "/a", big, other)).items, 0));
  assert.deepEqual([change.added, change.cut], [200000, true]);
  assert.ok(change.hunks[0].lines.length < 1000);
  assert.ok(performance.now() - began < 3000);
});

test("a change that is to be approved hides nothing", () => {
  const state = after(...edit("1", "/a", "a\n", "b\u202e\u200b\n"));
  const tool = get(state.items, 0);
  assert.equal(changesOf(tool, "exact")[0].hunks[0].lines[1].text, "b\\u202e\\u200b");
  assert.equal(changesOf(tool)[0].hunks[0].lines[1].text, "b\\u202e");
});

test("arguments that nothing else tells of are told", () => {
  const tool = (input, content = []) =>
    get(after(at(0, "tool_start", { id: "t", kind: "execute", input, content })).items, 0);
  assert.equal(otherArguments(tool({ command: "ls", description: "List", cwd: "/w" }), "/w"), null);
  assert.deepEqual(otherArguments(tool({ command: "ls", cwd: "/etc", sudo: true }), "/w"), {
    cwd: "/etc",
    sudo: true,
  });
  const diff = { type: "diff", path: "/w/a", old_text: "x", new_text: "whole text" };
  assert.deepEqual(
    otherArguments(tool({ file_path: "/w/a", new_string: "whole", mode: "0777" }, [diff]), "/w"),
    { mode: "0777" },
  );
  assert.deepEqual(otherArguments(tool({ anything: 1 }), "/w"), { anything: 1 });
  assert.equal(otherArguments(tool(null), "/w"), null);
});

test("keys follow from what options mean, and denying is always offered", () => {
  const ask = (options) => choicesOf({ asks: "permission", options });
  const option = (kind, name = "") => ({ id: `id of ${kind} ${name}`, name, kind });
  const shown = ask([
    option("allow_once", "No, never!"),
    option("allow_always", "Always"),
    option("reject_once", "Reject"),
    option("allow_once", "with sudo"),
    option("constructor", "odd"),
  ]);
  assert.deepEqual(
    shown.map(({ key, label, kind }) => [key, label, kind]),
    [
      ["y", "Allow once: No, never!", "allow"],
      ["a", "Always allow", "allow"],
      ["n", "Deny", "deny"],
      ["1", "Allow once: with sudo", "allow"],
      ["2", "odd", "other"],
    ],
  );
  assert.deepEqual(
    ask([option("allow_once")]).map((choice) => [choice.key, choice.answer]),
    [
      ["y", { option: "id of allow_once " }],
      ["n", "deny"],
    ],
  );
  assert.deepEqual(
    choicesOf({ asks: "url" }).map((choice) => choice.answer),
    ["accept", "decline"],
  );
  assert.equal(wasAllowed({ answer: { choice: "reject_once" } }), false);
});

test("who has answered is told as people call it", () => {
  const told = (choice, by, why, about) => outcome({ answer: { choice, by, why } }, about);
  const caller = "ada";
  assert.equal(told("allow_once", "ada", "answered from outside", { here: true, caller }), "allowed by you");
  assert.equal(told("allow_once", "ada", "answered from outside", { caller }), "allowed elsewhere");
  assert.equal(told("allow_always", "human", "It is fine."), "allowed for good elsewhere: It is fine.");
  assert.equal(told("accept", "robot", ""), "accepted by robot");
  assert.equal(told("reject_once", "supervisor", "no"), "denied by the supervisor: no");
  assert.equal(
    told("reject_once", "deadline", "no answer within 5 seconds"),
    "denied: no answer within 5 seconds",
  );
  assert.equal(
    told("allow_once", "remembered", "it was answered for the whole session"),
    "allowed: it was answered before, for the whole session",
  );
  assert.equal(told(null, "cancel", "the turn was cancelled"), "withdrawn: the turn was cancelled");
  assert.equal(told("constructor", "constructor", "constructor"), "constructor by constructor: constructor");
  assert.equal(told("allow_once", "", ""), "allowed");
  assert.equal(outcome({ answer: null }), "");
});

test("colours of terminals stay, and what else they obey goes", () => {
  assert.deepEqual(
    ansi("\x1b[1;31mred\x1b[0m plain\x1b[2J\x1b]0;title\x07 \x1b[38;5;2mgreen\x1b[38;2;1;2;3mtrue\x1b[39m"),
    [
      { text: "red", look: "t-bold t-f1" },
      { text: " plain ", look: "" },
      { text: "green", look: "t-f2" },
      { text: "true", look: "" },
    ],
  );
  assert.deepEqual(ansi("10%\r50%\r100%\r\ndone\r\n"), [{ text: "100%\ndone\n", look: "" }]);
  const began = performance.now();
  assert.ok(ansi("\x1b[31mx".repeat(100000)).length <= 100000);
  assert.ok(performance.now() - began < 2000);
});

test("fields of a result are those of the schema, filled in as they come", () => {
  const schema = {
    type: "object",
    properties: {
      name: { type: "string" },
      tags: { type: "array", items: { type: "string" } },
      level: { enum: ["low", "high"] },
      either: { anyOf: [{ type: "integer" }, { type: "null" }] },
    },
  };
  assert.deepEqual(fieldsOf(schema, { name: "x", extra: 1.5 }), [
    { name: "name", type: "string", value: "x", given: true },
    { name: "tags", type: "list of string", value: undefined, given: false },
    { name: "level", type: '"low" | "high"', value: undefined, given: false },
    { name: "either", type: "integer | null", value: undefined, given: false },
    { name: "extra", type: "number", value: 1.5, given: true },
  ]);
  assert.equal(typeOf({ $ref: "#/$defs/Item" }), "Item");
  assert.deepEqual(fieldsOf({ properties: { constructor: {} } }, {})[0].given, false);
  assert.deepEqual(fieldsOf(null, null), []);
});

test("a result that is being given is a draft until it is taken or refused", () => {
  const begin = at(1, "tool_start", {
    id: "r",
    name: "mcp__thinkwell__return_result",
    input: { result: { name: "a" } },
  });
  const more = at(2, "tool_update", { id: "r", input: { result: { name: "ab", size: 1 } } });
  assert.deepEqual(after(begin).draft.value, { name: "a" });
  assert.deepEqual(after(begin, more).draft.value, { name: "ab", size: 1 });
  const refused = after(
    begin,
    more,
    at(3, "result_attempt", { accepted: false, value: {}, errors: ["size: too small"] }),
  );
  assert.equal(refused.draft, null);
  assert.equal(refused.attempts.length, 1);
});

test("ten thousand calls and a text of five megabytes are reduced in no time", () => {
  const began = performance.now();
  let state = BEGINNING;
  for (let i = 0; i < 10000; i++) {
    state = reduce(state, at(i, "tool_start", { id: `t${i}`, kind: "execute", input: { command: "ls" } }));
    state = reduce(state, at(i, "tool_done", { id: `t${i}`, status: "completed" }));
  }
  for (let i = 0; i < 50000; i++) state = reduce(state, at(10000, "message", { text: "x".repeat(100) }));
  assert.equal(state.last.length, 5e6);
  assert.equal(rowsOf(state).length, 10001);
  assert.ok(performance.now() - began < 5000, `${performance.now() - began} ms`);
});
