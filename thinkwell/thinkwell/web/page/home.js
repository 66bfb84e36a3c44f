// @ts-check
/** All runs. */

import { button, byId, el, mark } from "./elements.js";
import { drawChoices, showProblem } from "./form.js";
import { say } from "./notices.js";
import { plural, seconds } from "./numbers.js";
import { about, request } from "./requests.js";
import { runAddress, runPath } from "./server.js";
import { recall } from "./storage.js";
import { json, line } from "./text.js";
import { PATIENCE } from "./watch.js";

/** @import {Json} from "./text.js" */

/** Milliseconds after which the list is asked for again, while a run goes on and while none does. */
const LOOK_AGAIN = [4000, 15000];

/** Runs that are asked for at a time. */
const PAGE = 50;

/** The list of runs, and the form that starts one. */
export class Home {
  constructor() {
    this.closed = false;
    /** @type {Json[]} */
    this.runs = [];
    /** @type {string | null} */
    this.next = null;
    this.pages = 1;
    this.shown = "";
    /** Ids of the runs that waited for an answer when the list was drawn. @type {Set<string>} */
    this.waiting = new Set();
    document.title = "thinkwell";
    byId("title").textContent = "";
    byId("prompt").value = recall(sessionStorage, "prompt") ?? "";
    this.load();
    this.look();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  async load() {
    try {
      await about();
      if (!this.closed) drawChoices();
    } catch (error) {
      showProblem(error);
      if (!this.closed) setTimeout(() => this.closed || this.load(), LOOK_AGAIN[0]);
    }
  }

  async look() {
    clearTimeout(this.timer);
    let wait = 0;
    try {
      await this.list(); // in a hidden tab too: its title says where an answer is waited for
      if (!this.closed) byId("link").hidden = true;
      wait = LOOK_AGAIN[this.runs.some((run) => run.status === "running") ? 0 : 1];
    } catch {
      if (this.closed) return;
      wait = PATIENCE[0] * 1000;
      byId("link").hidden = false;
      byId("link").replaceChildren(el("span", { class: "spinner" }), "reconnecting");
    }
    if (!this.closed) this.timer = setTimeout(() => this.look(), wait);
  }

  async list() {
    const status = byId("filter").value;
    /** @type {Json[]} */
    let runs = [];
    let next = null;
    for (let i = 0; i < this.pages; i++) {
      const query = new URLSearchParams({
        limit: String(PAGE),
        ...(status && { status }),
        ...(next && { before: next }),
      });
      const { data } = await request("GET", `api/runs?${query}`);
      runs = [...runs, ...data.runs];
      next = data.next ?? null;
      if (next === null) break;
    }
    if (this.closed) return;
    [this.runs, this.next] = [runs, next];
    this.draw();
  }

  draw() {
    byId("runs-more").hidden = this.next === null;
    const now = Date.now() / 1000;
    const sign = json([this.runs, Math.floor(now / 30)], 0);
    if (sign === this.shown) return;
    this.shown = sign;
    this.tellWaiting();
    const focused = document.activeElement?.closest("li")?.dataset.run;
    const empty = byId("filter").value
      ? "There are no such runs."
      : "Nothing was run so far. Describe a task above.";
    byId("runs").replaceChildren(
      ...(this.runs.length
        ? this.runs.map((run) => this.row(run, now))
        : [el("li", { class: "empty" }, empty)]),
    );
    if (focused)
      [...byId("runs").children]
        .find((row) => row.dataset.run === focused)
        ?.querySelector("a")
        ?.focus();
  }

  /** Say which runs have begun to wait for an answer. */
  tellWaiting() {
    const waiting = this.runs.filter((run) => run.input_required);
    document.title = waiting.length ? "? thinkwell" : "thinkwell";
    for (const run of waiting)
      if (!this.waiting.has(run.id))
        say(`${line(run.title, 100) || "A run"} is waiting for your answer`);
    this.waiting = new Set(waiting.map((run) => run.id));
  }

  /** @param {Json} run @param {number} now */
  row(run, now) {
    const status = run.status ?? "running";
    const stands = run.ended ? `took ${seconds(run.ended - run.created)}` : "running";
    const link = el(
      "a",
      { href: runAddress(run.id) },
      mark(run.input_required ? "ask" : status),
      el("span", { class: "name" }, line(run.title, 300) || "a run"),
      el(
        "time",
        {
          class: "about",
          datetime: new Date(run.created * 1000).toISOString(),
          title: new Date(run.created * 1000).toLocaleString(),
        },
        `${line(run.agent, 100)} · ${ago(now - run.created)} · `,
        run.input_required ? el("span", { class: "asks" }, "waiting for your answer") : stands,
      ),
    );
    const remove = button("Delete", {
      class: "button small bare",
      "aria-label": `Delete ${line(run.title, 100)}`,
      onclick: () => (remove.dataset.sure ? this.remove(run.id, remove) : sure(remove)),
    });
    return el("li", { "data-run": run.id }, link, status === "running" ? null : remove);
  }

  /** @param {string} id @param {HTMLButtonElement} remove */
  async remove(id, remove) {
    remove.disabled = true;
    try {
      await request("DELETE", runPath(id));
    } catch (error) {
      showProblem(error);
    }
    this.shown = "";
    await this.look();
  }
}

/** Ask once more, for a moment. @param {HTMLButtonElement} each */
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
