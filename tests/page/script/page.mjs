// The script of the page, as the tests import it.

export * from "../../../thinkwell/thinkwell/web/page/page.js";
