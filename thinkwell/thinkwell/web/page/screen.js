// @ts-check
/** The views of the page. */

/**
 * @import {Home} from "./home.js"
 * @import {RunView} from "./run.js"
 */

/**
 * The open run, and the list, which is beside it if there is room. @type {{run: RunView | null,
 * home: Home | null}}
 */
export const page = { run: null, home: null };
