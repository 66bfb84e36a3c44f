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

/** Show why what a form asks for was not done. @param {HTMLFormElement} form @param {unknown} error */
export function showProblem(form, error) {
  const problem = /** @type {HTMLElement} */ (form.querySelector(".problem"));
  problem.textContent = messageOf(error);
  problem.hidden = false;
}

/**
 * Submit a form on Control-Enter in a field, or by its button, and show its problem.
 * @param {HTMLFormElement} form
 * @param {HTMLElement} field
 * @param {() => Promise<unknown>} send
 */
export function wireForm(form, field, send) {
  const [problem, go] = [".problem", ".main"].map(
    (part) => /** @type {any} */ (form.querySelector(part)),
  );
  const sends = async (/** @type {globalThis.Event} */ event) => {
    event.preventDefault();
    problem.hidden = go.disabled = true;
    await send().catch((error) => showProblem(form, error));
    go.disabled = false;
  };
  form.onsubmit = sends;
  field.onkeydown = (event) => {
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

/** Start a run with the values of the form. */
export async function start() {
  const [prompt, schema] = ["prompt", "schema"].map(byId);
  if (!prompt.value.trim()) return prompt.focus();
  const output = schemaOf(schema.value);
  const picked = Object.fromEntries(
    ["agent", "folder", "permissions"].map((name) => [name, byId(name).value || undefined]),
  );
  remember(localStorage, "picked", picked);
  // A run with a schema has its own session; others are the first turn of a conversation.
  const thread = output === null ? freshName() : undefined;
  await startRun({ prompt: prompt.value, ...picked, output, thread });
  restoreDraft({});
}

/** The schema of a text; null: it is empty. @param {string} text @returns {Json} */
function schemaOf(text) {
  try {
    const schema = text.trim() ? JSON.parse(text) : null;
    if (schema !== null && !isObject(schema)) throw new Error("it has to be an object");
    return schema;
  } catch (error) {
    throw new Error(`The schema is not a JSON Schema: ${messageOf(error)}`);
  }
}
