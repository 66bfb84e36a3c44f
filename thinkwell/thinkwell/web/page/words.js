// @ts-check
/** Words for what a run does. */

import { ENDS } from "./elements.js";
import { get } from "./lists.js";
import { plural, seconds } from "./numbers.js";
import { line, table } from "./text.js";
import { describe } from "./tools.js";

/** @import {Phase, QuestionItem, State, ToolItem} from "./state.js" */

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

/** When a run came to what it is doing, where that is not told by its items. @param {State} state */
export function waitsSince(state) {
  const phase = state.phases.at(-1);
  return phase && phase.phase !== "responding" && phase.seconds === null ? phase.at : state.at;
}

/** Whether a run goes on without anything in the timeline that shows so. @param {State} state */
export function waits(state) {
  if (!state.items.length) return true;
  if (state.running.length || state.asked.length) return false;
  const { kind } = get(state.items, state.items.length - 1);
  return kind !== "thought" && kind !== "message";
}
