// @ts-check
/** Requests to the server, after a login if it is needed. */

import { login } from "./login.js";
import { read, runAddress, send } from "./server.js";
import { cut } from "./text.js";

/** @import {Json} from "./text.js" */

/**
 * Send a request; if the server needs a token, ask for it first.
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

/** The server's description; null: not requested yet. @type {Json} */
export let info = null;

/** The server's description, requested once. @returns {Promise<Json>} */
export async function about() {
  return (info ??= (await request("GET", "api")).data);
}

/** Most characters of a prompt, and of a schema, that are stored with a run. */
const KEPT_WITH_RUN = 8000;

/**
 * Start a run and show it.
 * @param {{prompt: string, agent?: string, folder?: string, permissions?: string, output: Json, thread?: string}} about
 */
export async function startRun({ output, ...about }) {
  // The list of runs contains it for each, so it is short.
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

/** Whether the stored input of a run is complete. @param {Json} kept */
export function isWhole(kept) {
  return "output" in kept && kept.prompt?.length < KEPT_WITH_RUN - 1;
}

/** @type {Map<string, string>} */
const requestNames = new Map();

/**
 * The same key for the same request, until it is answered: so it is not done twice. @param {Json}
 * body
 */
function requestName(body) {
  const key = JSON.stringify(body);
  const known = requestNames.get(key) ?? freshName();
  requestNames.set(key, known);
  return known;
}

/** A unique key for a request. */
export function freshName() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
