// @ts-check
/** Receives the items of a run. */

import { request } from "./requests.js";
import { address, Refused, runPath } from "./server.js";

/**
 * @import {Sent} from "./items.js"
 * @import {Json} from "./text.js"
 */

/**
 * What receives the items of a run.
 * @typedef {object} Receiver
 * @property {(items: Sent[], size: number) => void} receive
 * @property {(about: Json) => void} begin Called before all items come again.
 * @property {() => void} whole Called when all items up to now are there.
 * @property {(state: "live" | "reconnecting" | "over" | "gone") => void} linked
 */

/** Seconds before another attempt after a refused connection, at first and at most. */
export const PATIENCE = [1, 15];

/** Receives the items of a run, and reconnects after interruptions. */
export class Watch {
  /** @param {string} id @param {Receiver} to */
  constructor(id, to) {
    this.id = id;
    this.to = to;
    this.last = "";
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
    const source = new EventSource(address(runPath(this.id, `/items?after=${this.last}`)));
    this.source = source;
    source.onopen = () => {
      this.wait = PATIENCE[0];
      this.to.linked("live");
    };
    source.onmessage = (message) => this.take(message);
    source.addEventListener("begin", ({ data }) => this.to.begin(JSON.parse(data)));
    source.addEventListener("whole", () => this.to.whole());
    source.addEventListener("end", () => this.close("over"));
    source.onerror = () => {
      if (source !== this.source) return;
      this.to.linked("reconnecting"); // the browser reconnects by itself, unless the server has refused
      if (source.readyState === EventSource.CLOSED) this.lost();
    };
  }

  /** @param {MessageEvent} message */
  take(message) {
    if (this.over || message.lastEventId === this.last) return;
    this.last = message.lastEventId;
    this.to.receive(JSON.parse(message.data), message.data.length);
  }

  /** Find out why the server has refused, and reconnect later unless that is pointless. */
  async lost() {
    try {
      await request("HEAD", runPath(this.id, "/items"));
      if (this.over) return;
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
    if (why) this.to.linked(why);
  }
}
