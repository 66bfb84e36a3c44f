// @ts-check
/** The timeline of a run. */

import { byId, el, set } from "./elements.js";
import { build, patch } from "./nodes.js";
import { LONG, NEAR, topsOf, windowOf } from "./windows.js";

/**
 * @import {Item, ItemNode} from "./items.js"
 * @import {Maker} from "./nodes.js"
 */

/** The assumed height of a row that was never in the document. */
const GUESS = 38;

/** The rows of a run in the document: all of them, or those near what is visible. */
export class Timeline {
  /** @param {{board: {maker: (id: string) => Maker}, schedule: () => void, save: () => void}} view */
  constructor(view) {
    this.view = view;
    /** @type {HTMLElement} */
    this.host = byId("timeline");
    this.above = el("div");
    this.below = el("div");
    this.host.replaceChildren(this.above, this.below);
    /** @type {Map<string, {host: HTMLElement, node: ItemNode}>} */
    this.nodes = new Map();
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
    const ids = new Set(rows.slice(from, to).map(({ id }) => id));
    for (const [id, { host }] of this.nodes) {
      if (ids.has(id)) continue;
      this.sizes.unobserve(host);
      host.remove();
      this.nodes.delete(id);
    }
    /** @type {ChildNode} */
    let place = this.above;
    for (let i = from; i < to; i++) {
      const node = this.node(rows[i], i);
      if (place.nextSibling !== node) place.after(node);
      place = node;
    }
    this.above.style.height = `${this.tops[from]}px`;
    this.below.style.height = `${this.tops[rows.length] - this.tops[to]}px`;
    if (this.stick) this.toEnd();
    else if (anchor) this.restore(anchor);
  }

  /** The rows that are in the document. @returns {[number, number]} */
  shown() {
    const height = this.host.clientHeight || 800;
    const top = this.stick ? this.tops[this.rows.length] - height : this.host.scrollTop;
    return windowOf(this.tops, top, height);
  }

  /** @param {Item} row @param {number} i */
  node({ id, node }, i) {
    const fresh = /** @type {ItemNode} */ (node);
    let known = this.nodes.get(id);
    if (known === undefined) {
      const kind = /^[a-z](?=[0-9])/.exec(id)?.[0] ?? id;
      const about = { "data-key": id, "data-kind": kind, tabindex: "-1" };
      const host = el("article.row", about, build(fresh, this.view.board.maker(id)));
      this.nodes.set(id, (known = { host, node: fresh }));
      this.sizes.observe(host);
    } else if (known.node !== fresh) {
      const made = /** @type {ChildNode} */ (known.host.firstChild);
      patch(made, known.node, fresh, this.view.board.maker(id));
      known.node = fresh;
    }
    set(known.host, { "aria-posinset": i + 1, "aria-setsize": this.rows.length });
    return known.host;
  }

  /** The first visible row, and its distance from the top. */
  anchor() {
    const top = this.host.scrollTop;
    for (const node of this.host.children) {
      if (!(node instanceof HTMLElement) || node.dataset.key === undefined) continue;
      if (node.offsetTop + node.offsetHeight > top)
        return { key: node.dataset.key, offset: node.offsetTop - top };
    }
    return null;
  }

  /** @param {{key: string, offset: number}} anchor */
  restore({ key, offset }) {
    const node = this.nodes.get(key)?.host;
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
    if (!this.nodes.has(row.id)) {
      this.host.scrollTop = this.tops[index];
      this.draw(this.rows);
    }
    const node = this.nodes.get(row.id)?.host;
    node?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: "nearest" });
  }
}
