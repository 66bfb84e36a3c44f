// @ts-check
/** The login: a token that the server accepts. */

import { byId } from "./elements.js";
import { notify } from "./notices.js";
import { read, send } from "./server.js";

/** @import {Refused} from "./server.js" */

/** The wait for a valid token; null: the page does not wait. @type {PromiseWithResolvers<void> | null} */
let waiting = null;

/**
 * Ask for a token until the server accepts one. @param {string} [problem] The error of an earlier
 * one.
 */
export function login(problem = "") {
  if (problem || !waiting) refused(problem);
  if (!waiting) {
    byId("login").showModal();
    byId("token").focus();
  }
  waiting ??= Promise.withResolvers();
  return waiting.promise;
}

/** Continue with the requests that needed a token. */
function letIn() {
  waiting?.resolve();
  waiting = null;
  byId("token").value = "";
  byId("login").close();
}

/** @param {string} problem */
function refused(problem) {
  byId("login-problem").textContent = problem;
  byId("login-problem").hidden = !problem;
}

/** @param {globalThis.Event} event */
async function giveToken(event) {
  event.preventDefault();
  const field = byId("token");
  const problem = await tellToken(field.value);
  refused(problem);
  if (problem) field.select();
  else letIn();
}

/**
 * Send a token to the server, and return its error.
 * @param {string} token
 * @param {string} [what] Its name.
 */
async function tellToken(token, what = "That token") {
  try {
    await read(await send("POST", "api/session", { secret: token.trim() }));
    return "";
  } catch (error) {
    const { status, message } = /** @type {Refused} */ (error);
    if (status === 404) return ""; // this server has no tokens
    if (status === 401)
      return `${what} is not accepted. A server that makes its own has a new one each time it is started.`;
    if (status === 429)
      return `${what} is not accepted, and too many were tried. Wait for a minute.`;
    return `${what} could not be checked. ${message}.`;
  }
}

/** Use the token of an address. @param {string} token */
export async function enter(token) {
  const problem = await tellToken(token, "The token in the address");
  if (!problem) return letIn();
  const known = await send("GET", "api").catch(() => null);
  if (known?.status === 401) login(problem);
  else if (known?.ok) notify(`${problem} This browser is known from before.`);
}

/** Check whether another window has sent a token. */
export async function lookAgain() {
  if (!waiting) return;
  const known = await send("GET", "api").catch(() => null);
  if (waiting && known?.ok) letIn();
}

/** Listen to the login. */
export function wireLogin() {
  byId("login-form").onsubmit = giveToken;
  byId("login").oncancel = (/** @type {globalThis.Event} */ event) => event.preventDefault();
  byId("login").onclose = () => waiting && byId("login").showModal(); // some browsers close it anyway
}
