// @ts-check
/** Words for what a tool call does. */

import { isObject, json, line, relative, table } from "./text.js";

/**
 * @import {State, ToolItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

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

/** How far tool calls are, in a word. */
export const STATUSES = table({
  pending: "pending",
  in_progress: "running",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
});

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
export function takenBy(tool) {
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
export function bareTitle(title) {
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
export const PLACES = 100;

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

/** How far a call is, in a run that may have ended before it. @param {ToolItem} tool @param {State} state */
export function statusOf(tool, state) {
  if (tool.ended !== null) return STATUSES[tool.status] ?? "pending";
  if (state.end !== null) return "interrupted";
  return tool.status === "in_progress" ? "running" : "pending";
}
