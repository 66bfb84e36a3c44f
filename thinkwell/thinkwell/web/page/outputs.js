// @ts-check
/** What tool calls have put out. */

import { count } from "./numbers.js";
import { isObject, json } from "./text.js";

/**
 * @import {ToolItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

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
export const OUTPUT = 20000;

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
