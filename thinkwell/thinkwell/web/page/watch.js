// @ts-check
/** The events of a run, as they come. */

import { request } from "./requests.js";
import { address, Refused, runPath } from "./server.js";

/** @import {Event} from "./state.js" */

/** Seconds after which a connection that was refused is tried again, the first time and at most. */
export const PATIENCE = [1, 15];

/**
 * Receives the events of a run, each once and in order, and comes back after whatever cuts the connection.
 */
export class Watch {
  /**
   * @param {string} id
   * @param {(event: Event, size: number) => void} receive
   * @param {(state: "live" | "reconnecting" | "over" | "gone") => void} tell
   */
  constructor(id, receive, tell) {
    this.id = id;
    this.receive = receive;
    this.tell = tell;
    this.last = 0;
    this.over = false;
    this.wait = PATIENCE[0];
    this.timer = 0;
    /** @type {EventSource | null} */
    this.source = null;
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    const source = new EventSource(address(runPath(this.id, `/events?after=${this.last}`)));
    this.source = source;
    source.onopen = () => {
      this.wait = PATIENCE[0];
      this.tell("live");
    };
    source.onmessage = (message) => this.take(message);
    source.addEventListener("end", (message) => this.take(message));
    source.onerror = () => {
      if (source !== this.source) return;
      this.tell("reconnecting"); // the browser tries again by itself, unless the server has refused
      if (source.readyState === EventSource.CLOSED) this.lost();
    };
  }

  /** @param {MessageEvent} message */
  take(message) {
    const seq = Number(message.lastEventId);
    if (this.over || seq <= this.last) return;
    if (seq > this.last + 1) return this.open(); // something is missing
    let event;
    try {
      event = JSON.parse(message.data);
    } catch {
      event = { type: "unknown" }; // nested deeper than the browser reads
    }
    this.last = seq;
    this.receive({ ...event, seq }, message.data.length);
    if (event.type === "end") this.close("over");
  }

  /** Find out why the server has refused, and come back later unless there is nothing to come back for. */
  async lost() {
    try {
      const { data } = await request("GET", runPath(this.id));
      if (this.over) return;
      if (data.run.status !== "running" && data.seq <= this.last) return this.close("over");
    } catch (error) {
      if (this.over) return;
      if (error instanceof Refused && error.status === 404) return this.close("gone");
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), this.wait * 1000);
    this.wait = Math.min(this.wait * 2, PATIENCE[1]);
  }

  /** @param {"over" | "gone"} [why] */
  close(why) {
    this.over = true;
    clearTimeout(this.timer);
    this.source?.close();
    if (why) this.tell(why);
  }
}
