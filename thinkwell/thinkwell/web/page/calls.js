// @ts-check
/** Tool calls, drawn. */

import { changesOf, sumsOf } from "./changes.js";
import { diffNode } from "./difftable.js";
import { button, counts, el } from "./elements.js";
import { card, foldHead, timeNode } from "./folds.js";
import { plural } from "./numbers.js";
import { exitCode, OUTPUT, outputOf } from "./outputs.js";
import { blockNode, terminal } from "./prose.js";
import { describeFold } from "./rows.js";
import { clean, json, line, relative, shortened } from "./text.js";
import { commandLine, describe, otherArguments, PLACES, statusOf } from "./tools.js";

/**
 * @import {FileChange} from "./changes.js"
 * @import {Inner} from "./elements.js"
 * @import {RowView} from "./folds.js"
 * @import {Row} from "./rows.js"
 * @import {ToolItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

/** Changed lines of a call that are shown unasked. */
const SHORT = 30;

/** @param {ToolItem} tool @param {string} key @param {RowView} view */
export function toolNode(tool, key, view) {
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
 * @param {RowView} view
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

/** @param {Row} row @param {RowView} view */
export function foldNode(row, view) {
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
