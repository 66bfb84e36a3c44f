// @ts-check
/** Requests to the server, each answered or refused. */

import { line } from "./text.js";

/**
 * @import {Sent} from "./items.js"
 * @import {Json} from "./text.js"
 */

const kept = document.getElementById("saved")?.textContent;

/**
 * A run saved in the page itself, with all its items; null: a server has the runs. @type {{run:
 * Json, seq: number, items: Sent[]} | null}
 */
export const saved = kept ? JSON.parse(kept) : null;

/** A refusal of the server, or status 0 if it cannot be reached. */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The message of an error. @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** The server's path of a run, or of a part of it. @param {string} id @param {string} [what] */
export function runPath(id, what = "") {
  return `api/runs/${encodeURIComponent(id)}${what}`;
}

/** The page's address of a run. @param {string} id */
export function runAddress(id) {
  return `#run=${encodeURIComponent(id)}`;
}

/** @param {string} path */
export function address(path) {
  return new URL(path, document.baseURI).href;
}

/** The content of an answer, unless it is a refusal. @param {Response} response */
export async function read(response) {
  const text = await response.text();
  const isJson = text && response.headers.get("content-type")?.includes("json");
  const data = isJson ? JSON.parse(text) : null;
  const why = line(data?.error?.message) || `the server answered ${response.status}`;
  if (!response.ok) throw new Refused(response.status, why);
  return { data, response };
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Json} [body]
 * @param {{[name: string]: string}} [headers]
 */
export async function send(method, path, body, headers = {}) {
  const all = new Headers({ Accept: "application/json", ...headers });
  if (body !== undefined) all.set("Content-Type", "application/json");
  const sent = body === undefined ? null : JSON.stringify(body);
  try {
    return await fetch(address(path), {
      method,
      credentials: "same-origin",
      cache: "no-store",
      headers: all,
      body: sent,
    });
  } catch {
    throw new Refused(0, "The server cannot be reached: check that it is running, and try again");
  }
}
