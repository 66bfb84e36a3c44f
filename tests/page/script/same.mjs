// Reduces what is on stdin and tells what came of it, for comparison with what Python makes of the same.

import { readFileSync } from "node:fs";
import {
  BEGINNING,
  all,
  beginning,
  clean,
  commandLine,
  compare,
  describe,
  durations,
  exact,
  exitCode,
  get,
  hintOf,
  hostOf,
  line,
  reduce,
  seconds,
  clock,
  count,
  usageParts,
  verdictWords,
  words,
} from "./page.mjs";

const asked = JSON.parse(readFileSync(0, "utf8"));

const answers = {
  texts: (texts) => texts.map((text) => ({ clean: clean(text), exact: exact(text), line: line(text, 40) })),
  numbers: (numbers) =>
    numbers.map((number) => ({
      seconds: seconds(number),
      clock: clock(number),
      count: count(Math.round(number)),
    })),
  hosts: (urls) => urls.map(hostOf),
  commands: (inputs) => inputs.map(commandLine),
  fields: (fields) => fields.map(hintOf),
  diffs: (pairs) => pairs.map(([old, fresh]) => compare(old, fresh)),
  runs: (runs) => runs.map((events) => told(events.reduce(reduce, BEGINNING))),
};

function told(state) {
  const items = all(state.items);
  const texts = (kind) => items.filter((item) => item.kind === kind).map((item) => beginning(item.text));
  return {
    seq: state.seq,
    agent: state.agent,
    cwd: state.cwd,
    model: state.model,
    mode: state.mode,
    messages: texts("message"),
    thoughts: texts("thought"),
    users: texts("user"),
    timeline: items
      .filter((item) => /thought|message|user|tool|turn/.test(item.kind))
      .map((item) => item.kind),
    tools: items
      .filter((item) => item.kind === "tool")
      .map((tool) => [
        tool.id,
        tool.title,
        tool.name,
        tool.does,
        tool.status,
        tool.input,
        tool.output,
        tool.content.length,
        tool.began,
        tool.ended,
        tool.parent,
      ]),
    calls: items.filter((item) => item.kind === "tool").map((tool) => describe(tool, state.cwd)),
    codes: items.filter((item) => item.kind === "tool").map(exitCode),
    phases: state.phases.map(({ phase, detail, at, seconds }) => [phase, detail, at, seconds]),
    plans: state.plans.map(({ id, entries }) => [id, entries.map((step) => [step.content, step.status])]),
    open: state.asked
      .map((number) => get(state.items, number))
      .map(({ id, deadline }) => [id, deadline])
      .sort(),
    verdicts: state.asked
      .map((number) => get(state.items, number))
      .map(({ verdicts }) => verdicts.map(verdictWords)),
    denied: state.denied,
    attempts: state.attempts.map(({ accepted, value, errors }) => [accepted, value, errors]),
    tokens: state.tokens,
    usage: usageParts(state),
    durations: durations(state),
    words: state.end || state.stalled !== null ? "" : words(state),
    turns: state.turns,
    dropped: state.dropped,
    reason: state.reason,
  };
}

const [what] = Object.keys(asked);
process.stdout.write(JSON.stringify(answers[what](asked[what])));
