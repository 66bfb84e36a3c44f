// @ts-check
/** The run that is saved in the page itself. */

/**
 * @import {Sent} from "./items.js"
 * @import {Json} from "./text.js"
 */

const text = document.getElementById("saved")?.textContent;

/** A run that has ended, and all its items; null: there is a server, which has the runs. @type {{run: Json, seq: number, items: Sent[]} | null} */
export const saved = text ? JSON.parse(text) : null;
