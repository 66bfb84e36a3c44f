// @ts-check
/** What the page shows: a run, or the list of all runs. */

/**
 * @import {Home} from "./home.js"
 * @import {RunView} from "./run.js"
 */

/** @type {{run: RunView | null, home: Home | null}} */
export const page = { run: null, home: null };
