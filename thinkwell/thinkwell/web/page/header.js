// @ts-check
/** The bar above a run. */

import { byId, el, mark, meter } from "./elements.js";
import { count } from "./numbers.js";
import { Sources } from "./sources.js";
import { line } from "./text.js";
import { words } from "./words.js";

/**
 * @import {Log} from "./log.js"
 * @import {State} from "./state.js"
 * @import {Json} from "./text.js"
 */

/** The bar above a run: its title, what it does, and how far its plan is. */
export class Header {
  /**
   * @param {{
   *   log: Log,
   *   state: State,
   *   record: Json,
   *   link: string,
   *   target: number,
   *   stopping: boolean,
   *   timeline: {host: HTMLElement},
   * }} view
   */
  constructor(view) {
    this.view = view;
    this.sources = new Sources();
  }

  /** @param {boolean} loading */
  draw(loading) {
    const { link, log, record, stopping, target } = this.view;
    const { state } = log;
    const title = line(record?.title, 300) || (link === "gone" ? "No such run" : "Run");
    const status = this.view.state.end?.status ?? (this.view.state.asked.length ? "ask" : "running");
    byId("title").textContent = title;
    byId("title").title = title;
    byId("state").hidden = link === "gone";
    if (byId("mark").dataset.status !== status) {
      byId("mark").dataset.status = status;
      byId("mark").replaceChildren(mark(status));
    }
    const loaded = loading ? `loading ${count(state.seq)} of ${count(target)} events` : "";
    byId("phase").textContent = loaded || words(this.view.state, { stopping });
    byId("phase").title = byId("phase").textContent;
    const told = link === "reconnecting" ? link : "";
    byId("link").hidden = !told;
    if (byId("link").textContent !== told)
      byId("link").replaceChildren(...(told ? [el("span", { class: "spinner" }), told] : []));
    const stop = byId("stop");
    const goesOn = record?.status === "running" && state.end === null && link !== "gone";
    if (!goesOn && stop === document.activeElement) this.view.timeline.host.focus();
    stop.hidden = !goesOn;
    stop.disabled = stopping;
    stop.textContent = stopping ? "Stopping" : "Stop";
    const sign = state.asked.length
      ? "? "
      : state.end
        ? ({ completed: "✔ ", failed: "✘ " }[state.end.status] ?? "⊘ ")
        : "▸ ";
    document.title = `${sign}${title} – thinkwell`;
  }

  drawStrip() {
    const strip = byId("plan-strip");
    const { plans } = this.view.state;
    const plan = plans.find((each) => each.id === "main") ?? plans[0];
    const entries = plan?.entries ?? [];
    strip.hidden = !entries.length;
    if (!entries.length || !this.sources.changed("strip", [entries])) return;
    const done = entries.filter((step) => step.status === "completed").length;
    const step =
      entries.find((each) => each.status === "in_progress") ??
      entries.find((each) => each.status === "pending");
    strip.replaceChildren(
      el("span", { class: "dim" }, `plan ${done}/${entries.length}`),
      meter(done / entries.length),
      el("span", { class: "step" }, step ? line(step.content, 300) : "done"),
    );
  }
}
