// @ts-check
/** The replay of a run, and its bar. */

import { button, byId, el, icon, set } from "./elements.js";
import { doing } from "./header.js";
import { lanesOf } from "./lanes.js";
import { clock } from "./numbers.js";
import { recall, remember, Sources } from "./storage.js";
import { line } from "./text.js";

/** @import {ItemLog, Shown} from "./items.js" */

/** The shown moment of a run, and its playback. */
export class Playback {
  /**
   * @param {{log: ItemLog, schedule: () => void, save: () => void}} view
   * @param {number | null} moment
   */
  constructor(view, moment) {
    this.view = view;
    /** The shown moment, in seconds of the run; null: the latest. @type {number | null} */
    this.moment = moment;
    this.playing = false;
    this.speed = Number(byId("speed").value);
    this.played = 0;
    this.sources = new Sources();
  }

  /** Show a moment of the run; null: the latest. @param {number | null} moment */
  seek(moment) {
    this.moment = moment !== null && moment >= this.view.log.end ? null : moment;
    if (this.moment === null) this.playing = false;
    this.view.schedule();
    this.view.save();
  }

  playOrPause() {
    if (!this.view.log.versions.size) return;
    this.playing = !this.playing;
    this.played = performance.now();
    if (this.playing && this.moment === null) this.moment = this.view.log.begin;
    this.view.schedule();
  }

  /** Advance by the time since the last frame. */
  play() {
    if (!this.playing) return;
    const now = performance.now();
    const moment = (this.moment ?? this.view.log.begin) + ((now - this.played) / 1000) * this.speed;
    this.played = now;
    this.seek(moment);
  }

  /** Show a notice while the shown moment is not the latest. */
  draw() {
    const { log } = this.view;
    const host = byId("replaying");
    byId("run").classList.toggle("replaying", this.moment !== null);
    host.hidden = this.moment === null;
    if (this.moment === null || !this.sources.changed("replaying", [!log.over])) return;
    const label = log.over ? "Back to the end" : "Back to now";
    host.replaceChildren(
      el("span.grow", "This is an earlier moment of the run."),
      button("button.small", label, { onclick: () => this.seek(null) }),
    );
  }
}

const LANE_HEIGHT = 13;

/** Half the width of a slider's thumb: the margin of its scale. */
const THUMB = 8;

/** Milliseconds between drawings of a running run's lanes. */
const REDRAW = 500;

/** @type {{[look: string]: string}} */
const LANE_COLOURS = {
  thought: "--strong-line",
  answer: "--accent",
  ask: "--ask",
  failed: "--bad",
  cancelled: "--ask",
  denied: "--ask",
  done: "--ok",
};

/** The scrubber of a run, with its activities above it. */
export class ReplayBar {
  /** @param {{log: ItemLog, shown: Shown, playback: Playback}} view */
  constructor(view) {
    this.view = view;
    /** @type {HTMLCanvasElement} */
    this.canvas = byId("lanes").querySelector("canvas");
    /** @type {HTMLInputElement} */
    this.scrub = byId("scrub");
    /** @type {HTMLElement} */
    this.needle = byId("needle");
    this.drawnAt = -Infinity;
    this.sources = new Sources();
    this.isOpen = Boolean(recall(localStorage, "lanes"));
    this.open(this.isOpen);
    this.sizes = new ResizeObserver(() => this.lanes(true));
    this.sizes.observe(byId("lanes"));
  }

  close() {
    this.sizes.disconnect();
    clearTimeout(this.later);
  }

  /** Show the activities above the slider, or the slider alone. @param {boolean} is */
  open(is) {
    this.isOpen = is;
    remember(localStorage, "lanes", is);
    byId("replay").classList.toggle("open", is);
    set(byId("unroll"), { "aria-expanded": String(is) });
    this.lanes(true);
  }

  draw() {
    const { log, playback } = this.view;
    const { moment, playing } = playback;
    const { begin, end } = log;
    const at = moment ?? end;
    set(this.scrub, { min: begin, max: Math.max(end, begin + 0.001) });
    this.scrub.value = String(at);
    this.scrub.disabled = !log.versions.size;
    set(this.scrub, {
      "aria-valuetext": `${clock(at)} of ${clock(end)}: ${doing(this.view.shown).words}`,
    });
    const label = playing ? "Pause" : "Replay";
    set(byId("play"), { "aria-label": label, title: label, disabled: !log.versions.size });
    if (this.sources.changed("play", [label]))
      byId("play").replaceChildren(icon(playing ? "pause" : "play"));
    const latest = log.over ? clock(end) : log.versions.size ? "now" : "";
    byId("moment").textContent = moment === null ? latest : `${clock(at)} / ${clock(end)}`;
    this.needle.hidden = moment === null;
    const share = end > begin ? (at - begin) / (end - begin) : 1;
    this.needle.style.left = `calc(${THUMB}px + ${share} * (100% - ${2 * THUMB}px))`;
    this.lanes(false);
  }

  /** @param {boolean} forced */
  lanes(forced) {
    const { log } = this.view;
    const now = performance.now();
    if (!this.isOpen) return;
    if (!this.sources.changed("lanes", [log.version, log.over]) && !forced) return;
    clearTimeout(this.later);
    if (!forced && now - this.drawnAt < REDRAW && !log.over) {
      this.later = setTimeout(() => this.lanes(true), REDRAW);
      return;
    }
    this.drawnAt = now;
    const lanes = lanesOf(log);
    byId("lane-names").replaceChildren(...lanes.map((lane) => el("div", line(lane.name, 40))));
    const { canvas } = this;
    const width = canvas.parentElement?.clientWidth ?? 0;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(lanes.length * LANE_HEIGHT * ratio);
    canvas.style.height = `${lanes.length * LANE_HEIGHT}px`;
    const pen = canvas.getContext("2d");
    if (pen === null || !width) return;
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.body);
    const probe = byId("needle");
    const colour = (/** @type {string} */ look) => {
      probe.style.color = `var(${LANE_COLOURS[look] ?? "--now"})`;
      return getComputedStyle(probe).color || style.color;
    };
    const known = new Map(["", ...Object.keys(LANE_COLOURS)].map((look) => [look, colour(look)]));
    const span = Math.max(log.end - log.begin, 0.001);
    const place = (/** @type {number} */ time) =>
      THUMB + ((time - log.begin) / span) * (width - 2 * THUMB);
    lanes.forEach((lane, row) => {
      for (const bar of lane.bars) {
        pen.fillStyle = known.get(bar.look) ?? known.get("") ?? "";
        const from = place(bar.from);
        pen.fillRect(
          from,
          row * LANE_HEIGHT + 3,
          Math.max(place(bar.to ?? log.end) - from, 2),
          LANE_HEIGHT - 6,
        );
      }
    });
  }
}
