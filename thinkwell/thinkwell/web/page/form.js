// @ts-check
/** The form that starts a run, and the common part of the page's forms. */

import { byId, el } from "./elements.js";
import { freshName, info, startRun } from "./requests.js";
import { messageOf } from "./server.js";
import { recall, remember } from "./storage.js";
import { isObject, line } from "./text.js";

/** @import {Json} from "./text.js" */

/**
 * Offer names to choose from; without names, the choice is hidden. @param {string} id @param
 * {string[]} names @param {string} [chosen]
 */
export function fill(id, names, chosen) {
  byId(`pick-${id}`).hidden = !names.length;
  const options = names.map((value) =>
    el("option", { value, selected: value === chosen }, line(value, 100) || "which?"),
  );
  byId(id).replaceChildren(...options);
}

/**
 * Submit on Control-Enter, or by a button. @param {string} form @param {string} field @param {() =>
 * unknown} send
 */
export function wireForm(form, field, send) {
  const sends = (/** @type {globalThis.Event} */ event) => {
    event.preventDefault();
    send();
  };
  byId(form).onsubmit = sends;
  byId(field).onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) sends(event);
  };
}

/**
 * Offer the operator's choices. Agents have the operator's names, since two may have the same
 * title.
 */
export function drawChoices() {
  const kept = recall(localStorage, "picked") ?? {};
  const { agents } = info;
  const names = agents.map((/** @type {Json} */ each) => each.name);
  fill("agent", names, kept.agent);
  const draw = () => {
    const agent = agents[Math.max(names.indexOf(byId("agent").value), 0)];
    byId("agent").title = line(agent.title, 100);
    fill("folder", agent.folders ?? [], kept.folder);
    fill("permissions", agent.permissions ?? [], kept.permissions);
  };
  byId("agent").onchange = draw;
  draw();
}

/** Keep the unsent text, and show whether it has a schema. */
export function draftChanged() {
  const [prompt, schema] = ["prompt", "schema"].map((id) => byId(id).value);
  remember(sessionStorage, "draft", { prompt, schema });
  byId("schema-set").hidden = !schema.trim();
}

/** Restore the unsent text: a prompt, and its schema. @param {Json} [draft] */
export function restoreDraft(draft = recall(sessionStorage, "draft") ?? {}) {
  for (const id of ["prompt", "schema"]) byId(id).value = draft[id] ?? "";
  draftChanged();
}

/** Show why a run was not started or deleted. @param {unknown} error */
export function showProblem(error) {
  byId("start-problem").textContent = messageOf(error);
  byId("start-problem").hidden = false;
}

/** Start a run with the values of the form. */
export async function start() {
  const [prompt, schema, problem, go] = ["prompt", "schema", "start-problem", "go"].map(byId);
  problem.hidden = true;
  if (!prompt.value.trim()) return prompt.focus();
  let output = null;
  try {
    output = schema.value.trim() ? JSON.parse(schema.value) : null;
    if (output !== null && !isObject(output)) throw new Error("it has to be an object");
  } catch (error) {
    return showProblem(new Error(`The schema is not a JSON Schema: ${messageOf(error)}`));
  }
  go.disabled = true;
  const picked = Object.fromEntries(
    ["agent", "folder", "permissions"].map((name) => [name, byId(name).value || undefined]),
  );
  remember(localStorage, "picked", picked);
  try {
    // A run with a schema has its own session; others are the first turn of a conversation.
    const thread = output === null ? freshName() : undefined;
    await startRun({ prompt: prompt.value, ...picked, output, thread });
    restoreDraft({});
  } catch (error) {
    showProblem(error);
  } finally {
    go.disabled = false;
  }
}
