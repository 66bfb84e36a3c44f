// @ts-check
/** The bar above a run. */

import { byId, mark } from "./elements.js";
import { textOf } from "./items.js";
import { plural } from "./numbers.js";
import { address, runPath, saved } from "./server.js";
import { Sources } from "./storage.js";
import { line } from "./text.js";

/**
 * @import {ItemLog, Shown} from "./items.js"
 * @import {Json} from "./text.js"
 */

/**
 * The activity of a run at a moment. @param {Shown} shown @returns {{status: string, words:
 * string}}
 */
export function doing(shown) {
  const [, , mark, words] = /** @type {Json[]} */ (shown.items.get("head")?.node ?? []);
  return { status: mark ? String(mark[1]) : "running", words: words ? textOf(words) : "" };
}

/** The bar above a run: its title, its activity, and the progress of its plan. */
export class Header {
  /**
   * @param {{
   *   id: string,
   *   log: ItemLog,
   *   shown: Shown,
   *   record: Json,
   *   link: string,
   *   target: number,
   *   loading: boolean,
   *   stopping: boolean,
   *   timeline: {host: HTMLElement},
   * }} view
   */
  constructor(view) {
    this.view = view;
    this.sources = new Sources();
  }

  draw() {
    const { id, link, loading, log, record, shown, stopping, target } = this.view;
    const title = line(record?.title, 300) || (link === "gone" ? "No such run" : "Run");
    const { status, words } = doing(shown);
    byId("title").textContent = title;
    byId("title").title = title;
    byId("state").hidden = link === "gone";
    if (this.sources.changed("mark", [status])) byId("mark").replaceChildren(mark(status));
    const loaded = loading ? `loading ${plural(target, "event")}` : "";
    byId("phase").textContent = loaded || (stopping && !log.over ? "stopping" : words);
    byId("phase").title = byId("phase").textContent;
    byId("link").hidden = link !== "reconnecting";
    const stop = byId("stop");
    const goesOn = record?.status === "running" && !log.over && link !== "gone";
    if (!goesOn && stop === document.activeElement) this.view.timeline.host.focus();
    stop.hidden = !goesOn;
    stop.disabled = stopping;
    stop.textContent = stopping ? "Stopping" : "Stop";
    byId("save").hidden = saved !== null || !log.over || link === "gone";
    byId("save").href = address(runPath(id, "/html"));
    const now = doing(log.now).status;
    const sign = { ask: "? ", running: "▸ ", completed: "✔ ", failed: "✘ " }[now] ?? "⊘ ";
    document.title = `${sign}${title} – thinkwell`;
  }
}
