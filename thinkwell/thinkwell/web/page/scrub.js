// @ts-check
/** The replay of a run, and its bar. */

import { byId, el, icon, set, svg } from "./elements.js";
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
    byId("run").classList.toggle("replaying", this.moment !== null);
    byId("replaying").hidden = this.moment === null;
    byId("back").textContent = this.view.log.over ? "Back to the end" : "Back to now";
  }
}

const LANE_HEIGHT = 13;

/** Half the width of a slider's thumb: the margin of its scale. */
const THUMB = 8;

/** The scrubber of a run, with its activities above it. */
export class ReplayBar {
  /** @param {{log: ItemLog, shown: Shown, playback: Playback}} view */
  constructor(view) {
    this.view = view;
    /** @type {HTMLInputElement} */
    this.scrub = byId("scrub");
    /** @type {HTMLElement} */
    this.needle = byId("needle");
    this.sources = new Sources();
    this.isOpen = false;
    this.open(Boolean(recall(localStorage, "lanes")));
  }

  /** Show the activities above the slider, or the slider alone. @param {boolean} is */
  open(is) {
    this.isOpen = is;
    remember(localStorage, "lanes", is);
    byId("replay").classList.toggle("open", is);
    set(byId("unroll"), { "aria-expanded": String(is) });
    this.lanes();
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
  }

  /** Draw the activities, if they are shown and have changed. */
  lanes() {
    const { log } = this.view;
    if (!this.isOpen || !this.sources.changed("lanes", [log, log.version])) return;
    const lanes = lanesOf(log);
    byId("lane-names").replaceChildren(...lanes.map((lane) => el("div", line(lane.name, 40))));
    const span = Math.max(log.end - log.begin, 0.001);
    const height = lanes.length * LANE_HEIGHT;
    set(byId("chart"), { viewBox: `${log.begin} 0 ${span} ${height}`, height });
    const bars = lanes.flatMap(({ bars }, row) =>
      [...Map.groupBy(bars, ({ look }) => look)].map(([look, inside]) => {
        const top = row * LANE_HEIGHT + 4; // with the stroke, which is there for short ones
        const paths = inside.map(({ from, to }) => {
          const width = (to ?? log.end) - from;
          return `M${from} ${top}h${width}v${LANE_HEIGHT - 8}h${-width}z`;
        });
        return svg("path", { class: look, d: paths.join("") });
      }),
    );
    byId("chart").replaceChildren(...bars);
  }
}
