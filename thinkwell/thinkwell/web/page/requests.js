// @ts-check
/** What the page asks the server for, after a login where the server wants one. */

import { login } from "./login.js";
import { read, runAddress, send } from "./server.js";
import { cut } from "./text.js";

/** @import {Json} from "./text.js" */

/**
 * Ask the server for something; where it wants a token, ask for that first.
 * @param {string} method
 * @param {string} path
 * @param {{body?: Json, headers?: {[name: string]: string}}} [about]
 * @returns {Promise<{data: Json, response: Response}>}
 */
export async function request(method, path, { body, headers = {} } = {}) {
  const response = await send(method, path, body, headers);
  if (response.status !== 401) return read(response);
  await login();
  return request(method, path, { body, headers });
}

/** What the server is, and what it offers; null: it was not asked so far. @type {Json} */
export let info = null;

/** What the server is, and what it offers; asked for once. @returns {Promise<Json>} */
export async function about() {
  return (info ??= (await request("GET", "api")).data);
}

/** Characters of a prompt, and of a schema, that are kept with a run. */
const KEPT_WITH_RUN = 8000;

/**
 * Start a run and show it.
 * @param {{prompt: string, agent?: string, folder?: string, permissions?: string, output: Json, thread?: string}} about
 */
export async function startRun({ output, ...about }) {
  // The list of runs has that of each, so it is kept short.
  const { prompt, folder, permissions } = about;
  const short = JSON.stringify(output).length <= KEPT_WITH_RUN ? { output } : {};
  const kept = { prompt: cut(prompt, KEPT_WITH_RUN), folder, permissions, ...short };
  const body = { ...about, output: output ?? undefined, meta: { page: kept } };
  const { data } = await request("POST", "api/runs", {
    body,
    headers: { "Idempotency-Key": requestName(body) },
  });
  requestNames.clear();
  location.hash = runAddress(data.run.id);
}

/** Whether all is known of what a run was started with, by what was kept with it. @param {Json} kept */
export function isWhole(kept) {
  return "output" in kept && kept.prompt?.length < KEPT_WITH_RUN - 1;
}

/** @type {Map<string, string>} */
const requestNames = new Map();

/** The same name for the same request, until it was answered: then it is not done twice. @param {Json} body */
function requestName(body) {
  const key = JSON.stringify(body);
  const known = requestNames.get(key) ?? freshName();
  requestNames.set(key, known);
  return known;
}

/** A name for a request that no other request has. */
export function freshName() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
