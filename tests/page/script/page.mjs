// The page's modules that need no document, as the tests import them.

export * from "../../../thinkwell/thinkwell/web/page/ansi.js";
export * from "../../../thinkwell/thinkwell/web/page/changes.js";
export * from "../../../thinkwell/thinkwell/web/page/choices.js";
export * from "../../../thinkwell/thinkwell/web/page/diffs.js";
export * from "../../../thinkwell/thinkwell/web/page/fields.js";
export * from "../../../thinkwell/thinkwell/web/page/files.js";
export * from "../../../thinkwell/thinkwell/web/page/lanes.js";
export * from "../../../thinkwell/thinkwell/web/page/links.js";
export * from "../../../thinkwell/thinkwell/web/page/lists.js";
export * from "../../../thinkwell/thinkwell/web/page/log.js";
export * from "../../../thinkwell/thinkwell/web/page/markdown.js";
export * from "../../../thinkwell/thinkwell/web/page/marks.js";
export * from "../../../thinkwell/thinkwell/web/page/numbers.js";
export * from "../../../thinkwell/thinkwell/web/page/outputs.js";
export * from "../../../thinkwell/thinkwell/web/page/reducer.js";
export * from "../../../thinkwell/thinkwell/web/page/results.js";
export * from "../../../thinkwell/thinkwell/web/page/rows.js";
export * from "../../../thinkwell/thinkwell/web/page/state.js";
export * from "../../../thinkwell/thinkwell/web/page/text.js";
export * from "../../../thinkwell/thinkwell/web/page/tools.js";
export * from "../../../thinkwell/thinkwell/web/page/usage.js";
export * from "../../../thinkwell/thinkwell/web/page/windows.js";
export * from "../../../thinkwell/thinkwell/web/page/words.js";
