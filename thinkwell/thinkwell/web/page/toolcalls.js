// @ts-check
/** What becomes of a run when an event tells of a tool call. */

import { find, get, push, put } from "./lists.js";
import { begun, inOrder, without } from "./state.js";
import { isObject } from "./text.js";

/**
 * @import {Event, Reducer, ToolItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

/** @type {Reducer} */
export function called(before, event, at) {
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

/** Whether a call is that of the tool by which results are returned. @param {ToolItem} tool */
function isResultTool(tool) {
  return /(^|[^a-z])return_result$/.test(tool.name || tool.title);
}

/** The result in the arguments of a call, or the part of it that is there. @param {Json} input */
function draftOf(input) {
  if (!isObject(input)) return null;
  const keys = Object.keys(input);
  return keys.length === 1 && keys[0] === "result" ? input.result : input;
}
