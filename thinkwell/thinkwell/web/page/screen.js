// @ts-check
/** What the page shows. */

/**
 * @import {Home} from "./home.js"
 * @import {RunView} from "./run.js"
 */

/** The run that is open, and the list, which stands beside it where there is room. @type {{run: RunView | null, home: Home | null}} */
export const page = { run: null, home: null };
