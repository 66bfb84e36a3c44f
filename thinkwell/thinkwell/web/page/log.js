// @ts-check
/** The events of a run, and the run as it stood after any of them. */

import { reduce } from "./reducer.js";
import { BEGINNING } from "./state.js";

/** @import {Event, State} from "./state.js" */

/** Events after which a state is kept, from which others are found again. */
const EVERY = 500;

/** Characters of events that are kept to be replayed. */
const KEPT = 300e6;

/** The events of a run, and the run as it stood after any of them. */
export class Log {
  constructor() {
    /** @type {Event[]} */
    this.events = [];
    /** When each came, never before the one in front of it. @type {number[]} */
    this.times = [];
    /** @type {State[]} */
    this.kept = [BEGINNING];
    /** The run after all of them. @type {State} */
    this.state = BEGINNING;
    this.size = 0;
    /** @type {{count: number, state: State}} */
    this.found = { count: 0, state: BEGINNING };
  }

  /** @param {Event} event @param {number} size Its characters. */
  add(event, size) {
    this.state = reduce(this.state, event);
    this.size += size;
    if (this.size > KEPT) return; // it is followed, but this part cannot be replayed
    this.events.push(event);
    this.times.push(Math.max(event.at ?? 0, this.times.at(-1) ?? -Infinity));
    if (this.events.length % EVERY === 0) this.kept.push(this.state);
  }

  /** When the first event came: the launch of an agent is before the run. */
  get begin() {
    return Math.min(this.times[0] ?? 0, 0);
  }

  /** When the last one came. */
  get end() {
    return Math.max(this.state.at, 0);
  }

  /** How many events there were at a time. @param {number} time */
  countAt(time) {
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The run after so many events. @param {number} count @returns {State} */
  after(count) {
    if (count >= this.events.length && this.size <= KEPT) return this.state;
    const base = Math.floor(count / EVERY);
    const near = this.found.count <= count && this.found.count >= base * EVERY;
    let state = near ? this.found.state : this.kept[base];
    for (let i = near ? this.found.count : base * EVERY; i < count; i++)
      state = reduce(state, this.events[i]);
    this.found = { count, state };
    return state;
  }

  /** The run at a time. @param {number} time @returns {State} */
  at(time) {
    return this.after(this.countAt(time));
  }
}
