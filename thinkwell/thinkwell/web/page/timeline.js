// @ts-check
/** The timeline of a run. */

import { arrange, Place } from "./board.js";
import { byId, el, set } from "./elements.js";
import { LONG, NEAR, topsOf, windowOf } from "./windows.js";

/**
 * @import {Item} from "./items.js"
 * @import {Maker} from "./nodes.js"
 */

/** The assumed height of a row that was never in the document. */
const GUESS = 38;

/** The rows of a run in the document: all of them, or those near what is visible. */
export class Timeline {
  /** @param {{board: {maker: Maker}, schedule: () => void, save: () => void}} view */
  constructor(view) {
    this.view = view;
    /** @type {HTMLElement} */
    this.host = byId("timeline");
    /** The rows in the document. @type {Map<string, Place>} */
    this.places = new Map();
    /** @type {Map<string, number>} */
    this.heights = new Map();
    /** @type {Item[]} */
    this.rows = [];
    this.tops = new Float64Array(1);
    this.stick = true;
    /** Its scroll position. */
    this.top = 0;
    this.sizes = new ResizeObserver((entries) => this.measured(entries));
    this.sizes.observe(this.host);
    this.onscroll = () => this.scrolled();
    this.host.addEventListener("scroll", this.onscroll, { passive: true });
  }

  close() {
    this.sizes.disconnect();
    this.host.removeEventListener("scroll", this.onscroll);
    this.host.replaceChildren();
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.host;
    const atEnd = scrollTop + clientHeight >= scrollHeight - NEAR;
    // New rows below do not end the following; only scrolling up does.
    if (atEnd || scrollTop < this.top) this.stick = atEnd;
    this.top = scrollTop;
    byId("latest").hidden = this.stick;
    if (this.rows.length > LONG) this.view.schedule();
    this.view.save();
  }

  /** @param {ResizeObserverEntry[]} entries */
  measured(entries) {
    for (const { target } of entries) {
      const { key } = /** @type {HTMLElement} */ (target).dataset;
      const height = /** @type {HTMLElement} */ (target).offsetHeight;
      if (key !== undefined && height) this.heights.set(key, height);
    }
    if (this.stick) this.toEnd();
    else if (this.rows.length > LONG) this.view.schedule();
  }

  toEnd() {
    this.host.scrollTop = this.host.scrollHeight;
    this.top = this.host.scrollTop;
  }

  /** Go to the end, and follow it. */
  toLatest() {
    this.stick = true;
    byId("latest").hidden = true;
    this.view.schedule();
    this.toEnd();
  }

  /** @param {Item[]} rows */
  draw(rows) {
    const long = rows.length > LONG;
    this.host.style.overflowAnchor = long ? "none" : "auto";
    const anchor = this.stick || !long ? null : this.anchor();
    this.rows = rows;
    this.tops = topsOf(rows, this.heights, GUESS);
    const [from, to] = this.shown();
    this.places = new Map(rows.slice(from, to).map((row, i) => [row.id, this.row(row, from + i)]));
    const hosts = Array.from(this.places.values(), ({ host }) => host);
    for (const gone of arrange(this.host, hosts))
      if (gone instanceof Element) this.sizes.unobserve(gone);
    this.host.style.setProperty("--above", `${this.tops[from]}px`);
    this.host.style.setProperty("--below", `${this.tops[rows.length] - this.tops[to]}px`);
    if (this.stick) this.toEnd();
    else if (anchor) this.restore(anchor);
  }

  /** The rows that are in the document. @returns {[number, number]} */
  shown() {
    const height = this.host.clientHeight || 800;
    const top = this.stick ? this.tops[this.rows.length] - height : this.host.scrollTop;
    return windowOf(this.tops, top, height);
  }

  /** The place of a row, with it. @param {Item} row @param {number} i */
  row(row, i) {
    const { id } = row;
    const kind = /^[a-z](?=[0-9])/.exec(id)?.[0] ?? id;
    const about = { "data-key": id, "data-kind": kind, tabindex: "-1" };
    const known = this.places.get(id);
    const place = known ?? new Place(el("article.row", about), this.view.board.maker);
    if (!known) this.sizes.observe(place.host);
    place.show([row]);
    set(place.host, { "aria-posinset": i + 1, "aria-setsize": this.rows.length });
    return place;
  }

  /** The first visible row, and its distance from the top. */
  anchor() {
    const top = this.host.scrollTop;
    for (const [key, { host }] of this.places)
      if (host.offsetTop + host.offsetHeight > top) return { key, offset: host.offsetTop - top };
    return null;
  }

  /** @param {{key: string, offset: number}} anchor */
  restore({ key, offset }) {
    const node = this.places.get(key)?.host;
    const index = node ? -1 : this.rows.findIndex(({ id }) => id === key);
    const top = node ? node.offsetTop : index >= 0 ? this.tops[index] : null;
    if (top !== null && Math.abs(top - offset - this.host.scrollTop) > 1)
      this.host.scrollTop = top - offset;
  }

  /** Move the focus to the next or previous row. @param {number} by */
  step(by) {
    const { activeElement } = document;
    const current = activeElement?.closest?.(".row");
    const key = current instanceof HTMLElement ? current.dataset.key : (this.anchor()?.key ?? null);
    const at = this.rows.findIndex(({ id }) => id === key);
    const index = Math.max(0, Math.min(at + (current ? by : 0), this.rows.length - 1));
    const row = this.rows[index];
    if (row === undefined) return;
    this.stick = false;
    if (!this.places.has(row.id)) {
      this.host.scrollTop = this.tops[index];
      this.draw(this.rows);
    }
    const node = this.places.get(row.id)?.host;
    node?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: "nearest" });
  }
}
