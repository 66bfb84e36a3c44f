// @ts-check
/** The open run. */

import { Board } from "./board.js";
import { Conversation } from "./conversation.js";
import { Dock } from "./dock.js";
import { byId, el } from "./elements.js";
import { Header } from "./header.js";
import { ItemLog } from "./items.js";
import { Announcer, askAgain, notify } from "./notices.js";
import { clock, seconds } from "./numbers.js";
import { Panels } from "./panels.js";
import { about, info, isWhole, request } from "./requests.js";
import { Playback, ReplayBar } from "./scrub.js";
import { messageOf, runPath, saved } from "./server.js";
import { recall, remember } from "./storage.js";
import { isObject } from "./text.js";
import { Timeline } from "./timeline.js";
import { Watch } from "./watch.js";

/**
 * @import {Sent} from "./items.js"
 * @import {Json} from "./text.js"
 */

/** Milliseconds between frames while items up to now are coming. */
const BEHIND = 200;

/** Milliseconds between frames while the page is hidden. */
const UNSEEN = 400;

/** Missing entries of a newly opened run from which the page says that it is loading. */
const MANY = 50;

/** Most opened or closed items that are remembered. */
const REMEMBERED = 500;

/** The open run: its items, its display, and the user's choices. */
export class RunView {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.log = new ItemLog();
    /** The items that come again, until all are there. @type {ItemLog | null} */
    this.anew = null;
    /** Whether only the end of the run is there. */
    this.isPart = false;
    /** Places with changed items. @type {Set<string>} */
    this.changed = new Set();
    /** The shown run. */
    this.shown = this.log.now;
    this.board = new Board({
      isOpen: (id) => this.isOpen(id),
      toggle: (id, open) => this.toggle(id, open),
      by: (question, by) => this.decider(question, by),
      again: null,
    });
    /** @type {Json} */
    this.record = null;
    /** The input that the page has stored with the run. @type {Json} */
    this.about = {};
    this.target = 0;
    this.link = "connecting";
    this.stopping = false;
    /**
     * The start of the run, in seconds of the page's clock; null: unknown. @type {number | null}
     */
    this.began = null;
    this.frame = 0;
    this.timer = 0;
    this.painted = -Infinity;
    this.closed = false;
    const kept = recall(sessionStorage, `run:${id}`) ?? {};
    /** @type {Map<string, boolean>} */
    this.folds = new Map(kept.folds ?? []);
    /** Ids of the questions answered in this window. @type {Set<string>} */
    this.answered = new Set(kept.answered ?? []);
    this.timeline = new Timeline(this);
    this.timeline.stick = !kept.anchor;
    this.anchor = kept.anchor ?? null;
    this.header = new Header(this);
    this.panels = new Panels(this, kept);
    /** @type {Dock} */
    this.dock = new Dock(this);
    this.conversation = new Conversation(this);
    this.playback = new Playback(this, kept.moment ?? null);
    this.replay = new ReplayBar(this);
    this.announcer = new Announcer();
    /** @type {Watch | null} */
    this.watch = null;
    this.ticking = setInterval(() => {
      this.tick();
      this.replay.lanes();
    }, 500);
    for (const name of ["title", "phase", "elapsed", "moment"]) byId(name).textContent = "";
    for (const name of ["dock", "panel"]) byId(name).replaceChildren();
    for (const name of ["further", "replaying", "latest"]) byId(name).hidden = true;
    this.board.fill(byId("plan-strip"), "strip");
    byId("run").classList.remove("gone", "replaying");
    byId("conversation")?.remove();
    this.replay.draw();
    this.panels.drawTab();
    this.load();
  }

  close() {
    this.closed = true;
    this.keep();
    clearInterval(this.ticking);
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.watch?.close();
    this.timeline.close();
  }

  async load() {
    if (saved) {
      this.know(saved);
      return this.receive(saved.items, 0);
    }
    try {
      await about();
      if (!this.closed) this.watch = new Watch(this.id, this);
    } catch {
      if (this.closed) return;
      this.linked("reconnecting");
      setTimeout(() => this.closed || this.load(), 2000);
    }
  }

  /** @param {Json} about The record of the run, and the number of its last entry. */
  know({ run, seq }) {
    this.record = run;
    this.about = isObject(run.meta?.page) ? run.meta.page : {};
    this.target = seq;
    if (
      info?.agents.some((/** @type {Json} */ each) => each.name === run.agent) &&
      isWhole(this.about)
    )
      this.board.maker.again = (tools) => () => askAgain(tools, () => this.again());
  }

  /** @param {"live" | "reconnecting" | "over" | "gone"} link */
  linked(link) {
    this.link = link;
    this.schedule();
  }

  // Items

  /** All items come; old ones are shown until then. @param {Json} about */
  begin(about) {
    if (this.record === null) {
      this.know(about);
      if (about.run.status === "running")
        this.began = performance.now() / 1000 - Math.max(about.age, 0);
      if (about.run.thread) this.conversation.load().catch(() => {}); // the page works without it
      this.isPart = about.part ?? false;
    }
    this.anew = this.log.versions.size ? new ItemLog() : null;
    this.schedule();
  }

  /** All items up to now have come: those that came again are shown in the place of the old ones. */
  whole() {
    this.isPart = false;
    if (this.anew !== null) {
      [this.log, this.anew] = [this.anew, null];
      for (const parent of this.board.places.keys()) this.changed.add(parent);
    }
    this.schedule();
  }

  /** @param {Sent[]} items @param {number} size Their characters. */
  receive(items, size) {
    for (const item of items) this.add(item, size / items.length);
    const now = performance.now() / 1000;
    const [seq, at] = items[items.length - 1] ?? [0, 0];
    const isNew = seq > this.target && this.record?.status === "running";
    if (isNew) this.began = Math.min(this.began === null ? Infinity : this.began, now - at);
    this.schedule(this.loading ? this.painted + BEHIND - performance.now() : 0);
  }

  /** Whether items up to now are missing. */
  get loading() {
    return this.isPart || this.target - this.log.seq > MANY;
  }

  /** Draw in the next frame, or later. @param {number} [later] Milliseconds until then. */
  schedule(later = 0) {
    if (this.frame || this.timer || this.closed) return;
    const wait = document.hidden ? UNSEEN : later;
    if (wait > 0) this.timer = setTimeout(() => this.run(), wait);
    else this.frame = requestAnimationFrame(() => this.run());
  }

  /** Wait for the next frame: a hidden page has another clock. */
  reschedule() {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.frame = this.timer = 0;
    this.schedule();
  }

  /** Draw the run, once per frame. */
  run() {
    this.frame = this.timer = 0;
    if (this.closed) return;
    this.playback.play();
    this.draw();
    this.painted = performance.now();
    if (this.playback.playing) this.schedule();
  }

  /** @param {Sent} sent @param {number} size */
  add(sent, size) {
    const log = this.anew ?? this.log;
    const before = log.now.items.get(sent[2]);
    const isNew = log.seq >= this.target && log.versions.size > 0;
    const item = log.add(sent, size);
    this.announcer.tell(item, isNew && item.seq > this.target);
    if (this.anew !== null) return;
    if (before !== undefined) this.changed.add(before.parent);
    this.changed.add(item.parent);
  }

  /** The shown moment, in seconds of the run; null: the latest. */
  get moment() {
    return this.playback.moment;
  }

  /** Whether the run is running and shown live. */
  get live() {
    return this.moment === null && !this.log.over;
  }

  /** Seconds from the start of the run to the shown moment. */
  get now() {
    if (this.moment !== null) return this.moment;
    const { end, over } = this.log;
    if (over) return end;
    return this.began === null ? end : Math.max(performance.now() / 1000 - this.began, end);
  }

  // Drawing

  draw() {
    const before = this.shown;
    this.shown = this.moment === null ? this.log.now : this.log.at(this.moment);
    // At another moment anything may differ.
    this.board.show(
      this.shown,
      before === this.shown ? this.changed : [...this.board.places.keys()],
    );
    this.changed = new Set();
    this.header.draw();
    if (this.link === "gone") return this.drawGone();
    this.drawTimeline();
    this.dock.draw();
    this.panels.draw();
    this.conversation.draw();
    this.playback.draw();
    this.replay.draw();
    this.announcer.speak(this.log.now);
    this.tick();
  }

  drawGone() {
    const all = el("a", { href: "#" }, "All runs");
    const text = "There is no such run here: it was deleted, or is another caller's. ";
    byId("run").classList.add("gone");
    this.timeline.host.replaceChildren(el("p.empty", text, all));
  }

  drawTimeline() {
    const rows = this.shown.inside("timeline");
    this.timeline.draw(rows);
    if (this.anchor && this.record !== null && !this.isPart && this.log.seq >= this.target) {
      this.timeline.restore(this.anchor);
      this.timeline.draw(rows);
      this.timeline.restore(this.anchor);
      this.anchor = null;
    }
  }

  /**
   * The author of an answer, if this browser knows better. @param {string} question @param {string}
   * by
   */
  decider(question, by) {
    if (this.answered.has(question)) return " by you";
    return by && by === info?.caller ? " elsewhere" : "";
  }

  /** Update the parts that only depend on the time. */
  tick() {
    const now = this.now;
    byId("elapsed").textContent = this.record ? clock(now) : "";
    for (const each of /** @type {NodeListOf<HTMLElement>} */ (
      byId("run").querySelectorAll(".since")
    )) {
      each.textContent = seconds(Math.max(now - Number(each.dataset.since), 0));
    }
    this.dock.tick(now);
  }

  // Actions of the user

  /** Whether an item is open. @param {string} id */
  isOpen(id) {
    return this.folds.get(id) ?? this.shown.items.get(id)?.more.open ?? false;
  }

  /** @param {string} id @param {boolean} open */
  toggle(id, open) {
    this.folds.set(id, open);
    this.timeline.stick = false;
    this.board.refold(id);
    requestAnimationFrame(() =>
      requestAnimationFrame(() => this.closed || this.timeline.scrolled()),
    );
    this.save();
  }

  /** Start a run with the same input. */
  again() {
    return this.conversation.start(this.about);
  }

  async stop() {
    if (this.log.over || this.stopping) return;
    this.stopping = true;
    this.schedule();
    try {
      await request("POST", runPath(this.id, "/cancel"));
    } catch (error) {
      this.stopping = false;
      notify(`It could not be stopped: ${messageOf(error)}.`);
      this.schedule();
    }
  }

  // Restoring the position

  save() {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.keep(), 300);
  }

  keep() {
    clearTimeout(this.saving);
    if (this.record === null || this.anchor) return;
    remember(sessionStorage, `run:${this.id}`, {
      ...this.panels.kept,
      folds: [...this.folds].slice(-REMEMBERED),
      answered: [...this.answered].slice(-REMEMBERED),
      moment: this.moment,
      anchor: this.timeline.stick ? null : this.timeline.anchor(),
    });
  }
}
