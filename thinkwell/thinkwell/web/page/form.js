// @ts-check
/** The form that starts a run, and what the forms of the page share. */

import { byId, el } from "./elements.js";
import { freshName, info, startRun } from "./requests.js";
import { messageOf } from "./server.js";
import { recall, remember } from "./storage.js";
import { isObject, line } from "./text.js";

/** @import {Json} from "./text.js" */

/** @param {string} id @param {[string, string][]} options @param {string | undefined} chosen */
export function fill(id, options, chosen) {
  byId(`pick-${id}`).hidden = options.length < 1;
  byId(id).replaceChildren(
    ...options.map(([value, label]) =>
      el("option", { value, selected: value === chosen }, line(label, 100)),
    ),
  );
}

/** Send on Enter with Control, or by a button. @param {string} form @param {string} field @param {() => unknown} send */
export function wireForm(form, field, send) {
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

/** Offer what the operator lets callers choose; of one there is no choice. */
export function drawChoices() {
  const kept = recall(localStorage, "picked") ?? {};
  const agents = info.agents;
  fill(
    "agent",
    agents.map((/** @type {Json} */ each) => [each.name, each.title || each.name]),
    kept.agent,
  );
  const draw = () => {
    const agent =
      agents.find((/** @type {Json} */ each) => each.name === byId("agent").value) ?? agents[0];
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

/** Say why a run was not started, or not deleted. @param {unknown} error */
export function showProblem(error) {
  const host = byId("start-problem");
  host.textContent = messageOf(error);
  host.hidden = false;
}

/** Start a run of what is filled in. */
export async function start() {
  const [prompt, schema, problem, go] = ["prompt", "schema", "start-problem", "go"].map(byId);
  problem.hidden = true;
  if (!prompt.value.trim()) return prompt.focus();
  let output = null;
  try {
    output = schema.value.trim() ? JSON.parse(schema.value) : null;
    if (output !== null && !isObject(output)) throw new Error("it has to be an object");
  } catch (error) {
    return showProblem(new Error(`The schema is no JSON Schema: ${messageOf(error)}`));
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
    showProblem(error);
  } finally {
    go.disabled = false;
  }
}
