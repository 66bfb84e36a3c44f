// @ts-check
/** The list of runs: with the form that starts one, or beside the open run. */

import { button, byId, el, mark } from "./elements.js";
import { drawChoices, restoreDraft, showProblem } from "./form.js";
import { say } from "./notices.js";
import { plural, seconds } from "./numbers.js";
import { about, request } from "./requests.js";
import { runAddress, runPath } from "./server.js";
import { Sources } from "./storage.js";
import { line } from "./text.js";
import { PATIENCE } from "./watch.js";

/** @import {Json} from "./text.js" */

/** Milliseconds between requests for the list, while a run is running and while none is. */
const LOOK_AGAIN = [4000, 15000];

/** Runs in one request. */
const PAGE = 50;

/** The list of runs. */
export class Home {
  constructor() {
    /** @type {Json[]} */
    this.runs = [];
    /** Whether the server has sent the list. */
    this.listed = false;
    /** @type {string | null} */
    this.next = null;
    this.pages = 1;
    /** The open run; null: there is none. @type {string | null} */
    this.beside = null;
    this.sources = new Sources();
    /** Ids of the runs that waited for an answer when the list was drawn. @type {Set<string>} */
    this.waiting = new Set();
    restoreDraft();
    this.load();
  }

  /** Show it alone, or beside a run. @param {string | null} run */
  open(run) {
    this.beside = run;
    if (this.beside === null) byId("title").textContent = "";
    if (this.listed) this.draw();
    this.look();
  }

  async load() {
    try {
      await about();
      drawChoices();
    } catch (error) {
      showProblem(byId("start"), error);
      setTimeout(() => this.load(), LOOK_AGAIN[0]);
    }
  }

  async look() {
    clearTimeout(this.timer);
    let wait = LOOK_AGAIN[1];
    try {
      if (byId("home").checkVisibility()) await this.list(); // in a hidden tab too: its title shows waiting runs
      if (this.runs.some((run) => run.status === "running")) wait = LOOK_AGAIN[0];
      if (this.beside === null) byId("link").hidden = true;
    } catch {
      wait = PATIENCE[0] * 1000;
      if (this.beside === null) byId("link").hidden = false;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), wait);
  }

  async list() {
    const status = byId("filter").value;
    /** @type {Json[]} */
    const runs = [];
    let next = null;
    for (let i = 0; i < this.pages && (next || !i); i++) {
      const about = {
        limit: String(PAGE),
        ...(status && { status }),
        ...(next && { before: next }),
      };
      const { data } = await request("GET", `api/runs?${new URLSearchParams(about)}`);
      runs.push(...data.runs);
      next = data.next ?? null;
    }
    [this.runs, this.next, this.listed] = [runs, next, true];
    this.draw();
  }

  draw() {
    byId("runs-more").hidden = this.next === null;
    this.tellWaiting();
    const now = Date.now() / 1000;
    const rows = this.runs.map(({ id, status, title, input_required: asks }) =>
      [id, status, title, asks].join(" "),
    );
    if (!this.sources.changed("runs", [this.beside, Math.floor(now / 30), ...rows])) return;
    const focused = document.activeElement?.closest("li")?.dataset.run;
    const empty = byId("filter").value
      ? "There are no such runs."
      : "There are no runs so far. Describe a task above.";
    const all = this.runs.map((run) => this.row(run, now));
    byId("runs").replaceChildren(...(all.length ? all : [el("li.empty", empty)]));
    all
      .find((row) => focused && row.dataset.run === focused)
      ?.querySelector("a")
      ?.focus();
  }

  /** Announce the runs that have begun to wait for an answer. The open run does that itself. */
  tellWaiting() {
    const waiting = this.runs.filter((run) => run.input_required && run.id !== this.beside);
    if (this.beside === null) document.title = waiting.length ? "? thinkwell" : "thinkwell";
    for (const run of waiting)
      if (!this.waiting.has(run.id))
        say(`${line(run.title, 100) || "A run"} is waiting for your answer`);
    this.waiting = new Set(waiting.map((run) => run.id));
  }

  /** @param {Json} run @param {number} now */
  row({ id, status, title, agent, created, ended, input_required: asks }, now) {
    const stands = ended ? `took ${seconds(ended - created)}` : "running";
    const began = new Date(created * 1000);
    const link = el(
      "a",
      { href: runAddress(id), "aria-current": id === this.beside && "page" },
      mark(asks ? "ask" : status),
      el("span.name", line(title, 300) || "a run"),
      el(
        "time.about",
        { datetime: began.toISOString(), title: began.toLocaleString() },
        `${line(agent, 100)} · ${ago(now - created)} · `,
        asks ? el("span.asks", "waiting for your answer") : stands,
      ),
    );
    const remove = button("button.small.bare", "Delete", {
      "aria-label": `Delete ${line(title, 100)}`,
      onclick: () => (remove.dataset.sure ? this.remove(id, remove) : sure(remove)),
    });
    return el("li", { "data-run": id }, link, status !== "running" && remove);
  }

  /** @param {string} id @param {HTMLButtonElement} remove */
  async remove(id, remove) {
    remove.disabled = true;
    await request("DELETE", runPath(id)).catch((error) => showProblem(byId("start"), error));
    this.sources.forget("runs");
    await this.look();
  }
}

/** Ask for confirmation, for a moment. @param {HTMLButtonElement} each */
function sure(each) {
  each.dataset.sure = "yes";
  each.textContent = "Really?";
  setTimeout(() => {
    delete each.dataset.sure;
    each.textContent = "Delete";
  }, 3000);
}

/** @param {number} passed Seconds. */
function ago(passed) {
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return plural(Math.floor(passed / 86400), "day") + " ago";
}
