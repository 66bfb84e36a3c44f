// @ts-check
/** The run that is open. */

import { outcome } from "./choices.js";
import { Conversation } from "./conversation.js";
import { Dock } from "./dock.js";
import { byId, el } from "./elements.js";
import { Header } from "./header.js";
import { Log } from "./log.js";
import { Announcer, notify } from "./notices.js";
import { clock, seconds } from "./numbers.js";
import { Panels } from "./panels.js";
import { DRAWN } from "./prose.js";
import { about, info, request } from "./requests.js";
import { rowsOf } from "./rows.js";
import { Playback, ReplayBar } from "./scrub.js";
import { messageOf, Refused, runPath } from "./server.js";
import { Sources } from "./sources.js";
import { BEGINNING } from "./state.js";
import { recall, remember } from "./storage.js";
import { isObject } from "./text.js";
import { Timeline } from "./timeline.js";
import { Watch } from "./watch.js";
import { waits, waitsSince, words } from "./words.js";

/**
 * @import {Drawn} from "./paint.js"
 * @import {Event, QuestionItem} from "./state.js"
 * @import {Json} from "./text.js"
 */

/** Milliseconds of a frame in which events are taken. */
const FRAME = 20;

/** Milliseconds after which a frame is drawn though more events have come than were taken. */
const BEHIND = 200;

/** Milliseconds between frames while nobody looks. */
const UNSEEN = 400;

/** Events that are still to come when a run is opened, from which on nothing is drawn before they are there. */
const MANY = 50;

/** What was unfolded or folded that is remembered. */
const REMEMBERED = 500;

/** The run that is open: its events, how it is shown, and what the user has done with that. */
export class RunView {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.log = new Log();
    /** @type {[Event, number][]} */
    this.queue = [];
    this.taken = 0;
    /** The run as it is shown. */
    this.state = BEGINNING;
    /** @type {Json} */
    this.record = null;
    /** What this page has kept with the run when it was started. @type {Json} */
    this.about = {};
    this.target = 0;
    this.link = "connecting";
    this.stopping = false;
    /** When the run began, in seconds of this page's clock; null: not known. @type {number | null} */
    this.began = null;
    this.frame = 0;
    this.timer = 0;
    this.painted = -Infinity;
    this.closed = false;
    const kept = recall(sessionStorage, `run:${id}`) ?? {};
    /** @type {Map<string, boolean>} */
    this.folds = new Map(kept.folds ?? []);
    /** @type {Map<string, number>} */
    this.more = new Map();
    /** @type {string | null} */
    this.file = kept.file ?? null;
    /** Ids of the questions that were answered in this window. @type {Set<string>} */
    this.answered = new Set(kept.answered ?? []);
    this.timeline = new Timeline(this);
    this.timeline.stick = !kept.anchor;
    this.anchor = kept.anchor ?? null;
    this.header = new Header(this);
    /** @type {Panels} */
    this.panels = new Panels(this, kept);
    /** @type {Dock} */
    this.dock = new Dock(this);
    this.conversation = new Conversation(this);
    this.playback = new Playback(this, kept.moment ?? null);
    this.replay = new ReplayBar(this);
    this.announcer = new Announcer();
    this.sources = new Sources();
    /** @type {Watch | null} */
    this.watch = null;
    this.ticking = setInterval(() => this.tick(), 500);
    for (const name of ["title", "phase", "elapsed", "moment"]) byId(name).textContent = "";
    for (const name of ["dock", "panel"]) byId(name).replaceChildren();
    for (const name of ["further", "plan-strip", "replaying", "latest"]) byId(name).hidden = true;
    byId("run").classList.remove("gone", "replaying");
    byId("conversation")?.remove();
    this.replay.draw();
    this.panels.drawTabs();
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
    this.replay.close();
  }

  async load() {
    try {
      const [{ data, response }] = await Promise.all([request("GET", runPath(this.id)), about()]);
      if (this.closed) return;
      this.record = data.run;
      this.about = isObject(data.run.meta?.page) ? data.run.meta.page : {};
      this.target = data.seq;
      const now = Date.parse(response.headers.get("date") ?? "") / 1000 || Date.now() / 1000;
      if (data.run.status === "running")
        this.began = performance.now() / 1000 - Math.max(now - data.run.created, 0);
      this.watch = new Watch(
        this.id,
        (event, size) => this.receive(event, size),
        (link) => this.linked(link),
      );
      if (this.record.thread) this.conversation.load().catch(() => {}); // it can do without
    } catch (error) {
      if (this.closed) return;
      const gone = error instanceof Refused && error.status === 404;
      this.link = gone ? "gone" : "reconnecting";
      if (!gone) setTimeout(() => this.closed || this.load(), 2000);
    }
    this.schedule();
  }

  /** @param {"live" | "reconnecting" | "over" | "gone"} link */
  linked(link) {
    this.link = link;
    this.schedule();
  }

  // Events

  /** @param {Event} event @param {number} size */
  receive(event, size) {
    this.queue.push([event, size]);
    const now = performance.now() / 1000;
    const isNew = (event.seq ?? 0) > this.target && event.type !== "end";
    if (isNew) this.began = Math.min(this.began === null ? Infinity : this.began, now - (event.at ?? 0));
    this.schedule();
  }

  schedule() {
    if (this.frame || this.timer || this.closed) return;
    if (document.hidden) this.timer = setTimeout(() => this.run(), UNSEEN);
    else this.frame = requestAnimationFrame(() => this.run());
  }

  /** Wait for the next frame by the clock that counts now: there is another one while the page is hidden. */
  reschedule() {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.frame = this.timer = 0;
    this.schedule();
  }

  /** Take what has come, and draw it, once in a frame. */
  run() {
    this.frame = this.timer = 0;
    if (this.closed) return;
    const until = performance.now() + FRAME;
    while (this.taken < this.queue.length && performance.now() < until) {
      for (let i = 0; i < 50 && this.taken < this.queue.length; i++)
        this.log.add(...this.queue[this.taken++]);
    }
    if (this.taken === this.queue.length) [this.queue, this.taken] = [[], 0];
    this.playback.play();
    const now = performance.now();
    if (!this.queue.length || now - this.painted > BEHIND) {
      this.draw();
      this.painted = now;
    }
    if (this.queue.length || this.playback.playing) this.schedule();
  }

  /** The moment that is shown, in seconds of the run; null: the latest. */
  get moment() {
    return this.playback.moment;
  }

  /** Whether the run goes on and is shown as it is now. */
  get live() {
    return this.moment === null && this.log.state.end === null;
  }

  /** Seconds from the start of the run to what is shown. */
  get now() {
    if (this.moment !== null) return this.moment;
    const { state } = this.log;
    if (state.end) return state.end.at;
    return this.began === null ? state.at : Math.max(performance.now() / 1000 - this.began, state.at);
  }

  // Drawing

  draw() {
    this.state = this.moment === null ? this.log.state : this.log.at(this.moment);
    const loading = this.log.state.seq < this.target && this.target - this.log.state.seq > MANY;
    this.header.draw(loading);
    if (this.link === "gone") return this.drawGone();
    if (loading) return;
    this.header.drawStrip();
    this.drawTimeline();
    this.dock.draw();
    this.panels.draw();
    this.panels.drawBadges();
    this.conversation.draw();
    this.playback.draw();
    this.replay.draw();
    this.announcer.tell(this.log.state);
    this.tick();
  }

  drawGone() {
    const all = el("a", { href: "#" }, "All runs");
    const text = "There is no such run here: it was deleted, or it is somebody else's. ";
    byId("run").classList.add("gone");
    this.timeline.host.replaceChildren(el("p", { class: "empty" }, text, all));
  }

  drawTimeline() {
    /** @type {Drawn[]} */
    const rows = [];
    const prompt = typeof this.about.prompt === "string" ? this.about.prompt : this.record?.title;
    if (prompt) rows.push({ key: "prompt", text: prompt });
    for (const row of rowsOf(this.state)) rows.push(row);
    if (this.state.end) rows.push({ key: "final", state: this.state });
    else if (waits(this.state)) {
      const text = words(this.state, { stopping: this.stopping });
      rows.push({ key: "wait", text, since: waitsSince(this.state) });
    }
    if (this.sources.changed("over", [this.state.end]))
      for (const row of rows)
        if ("item" in row && row.item.kind !== "message") this.timeline.stale.add(row.key);
    this.timeline.draw(rows);
    if (this.anchor && this.record !== null && this.log.state.seq >= this.target) {
      this.timeline.restore(this.anchor);
      this.timeline.draw(rows);
      this.timeline.restore(this.anchor);
      this.anchor = null;
    }
  }

  /** What became of a question. @param {QuestionItem} question */
  outcome(question) {
    return outcome(question, { here: this.answered.has(question.id), caller: info?.caller });
  }

  /** Bring to date what only depends on the time. */
  tick() {
    const now = this.now;
    byId("elapsed").textContent = this.record ? clock(now) : "";
    for (const each of /** @type {NodeListOf<HTMLElement>} */ (
      this.timeline.host.querySelectorAll(".since")
    )) {
      each.textContent = seconds(Math.max(now - Number(each.dataset.since), 0));
    }
    this.dock.tick(now);
  }

  // What the user does

  /** @param {string} key @param {boolean} otherwise */
  isOpen(key, otherwise) {
    return this.folds.get(key) ?? otherwise;
  }

  /** @param {string} key @param {boolean} open */
  toggle(key, open) {
    this.folds.set(key, open);
    this.timeline.stale.add(key.split("/")[0]);
    this.timeline.stick = false;
    this.schedule();
    requestAnimationFrame(() => requestAnimationFrame(() => this.closed || this.timeline.scrolled()));
    this.save();
  }

  /** @param {string} key */
  drawnOf(key) {
    return DRAWN * (1 + (this.more.get(key) ?? 0));
  }

  /** @param {string} key */
  drawMore(key) {
    this.more.set(key, (this.more.get(key) ?? 0) + 1);
    this.timeline.stale.add(key);
    this.schedule();
  }

  /** @param {string} path */
  choose(path) {
    this.file = path;
    this.schedule();
    this.save();
  }

  async stop() {
    if (this.log.state.end || this.stopping) return;
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

  // Being where one was

  save() {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.keep(), 300);
  }

  keep() {
    clearTimeout(this.saving);
    if (this.record === null || this.anchor) return;
    remember(sessionStorage, `run:${this.id}`, {
      tab: this.panels.tab,
      chosen: this.panels.chosen,
      folds: [...this.folds].slice(-REMEMBERED),
      file: this.file,
      answered: [...this.answered].slice(-REMEMBERED),
      moment: this.moment,
      anchor: this.timeline.stick ? null : this.timeline.anchor(),
    });
  }
}
