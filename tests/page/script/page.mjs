// The page's modules that need no document, as the tests import them.

export * from "../../../thinkwell/thinkwell/web/page/files.js";
export * from "../../../thinkwell/thinkwell/web/page/items.js";
export * from "../../../thinkwell/thinkwell/web/page/lanes.js";
export * from "../../../thinkwell/thinkwell/web/page/numbers.js";
export * from "../../../thinkwell/thinkwell/web/page/text.js";
export * from "../../../thinkwell/thinkwell/web/page/windows.js";
