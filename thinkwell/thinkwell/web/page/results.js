// @ts-check
/** The result of a run. */

import { button, el, nothing, section } from "./elements.js";
import { beginning } from "./lists.js";
import { plural } from "./numbers.js";
import { DRAWN, drawProse } from "./prose.js";
import { clean, isObject, json, line, shortened } from "./text.js";

/**
 * @import {State} from "./state.js"
 * @import {Json} from "./text.js"
 */

/**
 * A field of a result.
 * @typedef {{name: string, type: string, value: Json, given: boolean}} ResultField
 */

/** Fields of an object that are shown. */
const FIELDS = 200;

/**
 * The fields of a result: those that its schema names, given or not, and others that were given.
 * @param {Json} schema The schema; null: it is not known.
 * @param {Json} value What there is of the result.
 * @returns {ResultField[]}
 */
export function fieldsOf(schema, value) {
  const expected = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  const given = isObject(value) ? value : {};
  const names = [...new Set([...Object.keys(expected), ...Object.keys(given)])];
  return names.slice(0, FIELDS).map((name) => {
    const isGiven = Object.hasOwn(given, name);
    const value = isGiven ? given[name] : undefined;
    const type = Object.hasOwn(expected, name) ? typeOf(expected[name]) : kindOf(value);
    return { name, type, value, given: isGiven };
  });
}

/** What a schema asks for, in a word or two. @param {Json} schema @returns {string} */
export function typeOf(schema) {
  if (!isObject(schema)) return "any";
  if (Array.isArray(schema.enum))
    return schema.enum
      .slice(0, 8)
      .map((each) => json(each, 0))
      .join(" | ");
  if ("const" in schema) return json(schema.const, 0);
  for (const key of ["anyOf", "oneOf"]) {
    if (Array.isArray(schema[key])) return [...new Set(schema[key].slice(0, 8).map(typeOf))].join(" | ");
  }
  if (schema.type === "array") return isObject(schema.items) ? `list of ${typeOf(schema.items)}` : "list";
  if (typeof schema.$ref === "string") return line(schema.$ref.split("/").at(-1), 40);
  return Array.isArray(schema.type)
    ? schema.type.join(" | ")
    : line(String(schema.title ?? schema.type ?? "any"), 40);
}

/** What sort of JSON a value is. @param {Json} value */
function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length ? `list of ${value.length}` : "empty list";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
}

/** Values in each other that are drawn as such. */
const DEEP = 4;

/** Items of a list that are drawn. */
const ITEMS = 200;

/** @param {HTMLElement} host @param {State} state @param {{about: Json}} view */
export function drawResult(host, state, view) {
  const schema = view.about.output ?? null;
  const accepted = state.attempts.findLast((attempt) => attempt.accepted);
  const refused = state.attempts.filter((attempt) => !attempt.accepted);
  const last = state.attempts.at(-1);
  const parts = [];
  if (state.end?.status === "completed") parts.push(resultNode("Result", state.end.result, schema));
  else if (accepted) parts.push(resultNode("Result", accepted.value, schema));
  else if (state.draft) parts.push(resultNode("Being filled in", state.draft.value, schema));
  else if (last) parts.push(resultNode("Refused; the agent may try again", last.value, schema));
  else if (schema) parts.push(resultNode(state.end ? "No result" : "Not given so far", null, schema));
  else if (state.last.length) return drawLast(host, state);
  else parts.push(nothing(state.end ? "The run has no result." : "There is no result so far."));
  if (refused.length) {
    const reasons = refused
      .slice(-10)
      .map((attempt) => el("li", {}, clean(shortened(attempt.errors.join("\n"), 2000))));
    parts.push(section(plural(refused.length, "refused attempt"), el("ol", { class: "dim" }, ...reasons)));
  }
  host.replaceChildren(...parts);
}

/** The last message, which becomes the result: drawn on as it grows. @param {HTMLElement} host @param {State} state */
function drawLast(host, state) {
  const title = state.end ? "Last message" : "Last message so far";
  let prose = host.querySelector(".last");
  if (prose === null) host.replaceChildren(section(title, (prose = el("div", { class: "prose last" }))));
  drawProse(prose, shortened(beginning(state.last, DRAWN), DRAWN));
}

/** @param {string} title @param {Json} value @param {Json} schema */
function resultNode(title, value, schema) {
  const copied = button("Copy", {
    class: "button small",
    onclick: async () => {
      await navigator.clipboard.writeText(typeof value === "string" ? value : json(value)).catch(() => {});
      copied.textContent = "Copied";
    },
  });
  const given = value !== null && value !== undefined;
  return section(title, valueNode(value, schema, 0), given ? el("div", { class: "actions" }, copied) : null);
}

/** @param {Json} value @param {Json} schema @param {number} depth @returns {HTMLElement} */
function valueNode(value, schema, depth) {
  if (
    isObject(value) ||
    (isObject(schema) && isObject(schema.properties) && (value === null || value === undefined))
  ) {
    const fields = fieldsOf(schema, value);
    if (depth >= DEEP || !fields.length)
      return el("pre", { class: "wrap" }, clean(shortened(json(value), 8000)));
    const inner = (/** @type {ResultField} */ field) =>
      isObject(schema?.properties?.[field.name]) ? schema.properties[field.name] : null;
    return el("dl", { class: "value" }, ...fields.flatMap((field) => fieldNodes(field, inner(field), depth)));
  }
  if (Array.isArray(value)) return listNode(value, isObject(schema) ? schema.items : null, depth);
  if (typeof value !== "string") return el("span", { class: "mono" }, json(value, 0));
  if (depth > 0) return el("span", {}, clean(shortened(value, 20000)));
  const prose = el("div", { class: "prose" });
  drawProse(prose, shortened(value, DRAWN));
  return prose;
}

/** @param {ResultField} field @param {Json} schema @param {number} depth */
function fieldNodes(field, schema, depth) {
  const name = el("dt", {}, line(field.name, 200), el("small", {}, line(field.type, 200)));
  const value = field.given
    ? el("dd", {}, valueNode(field.value, schema, depth + 1))
    : el("dd", { class: "waits" }, "not given");
  return [name, value];
}

/** @param {Json[]} values @param {Json} schema @param {number} depth @returns {HTMLElement} */
function listNode(values, schema, depth) {
  const more = values.length - ITEMS;
  const shown = values.slice(0, ITEMS);
  const rest = more > 0 ? `… ${plural(more, "more item")}` : "";
  if (!values.length) return el("span", { class: "dim" }, "empty");
  const names = [...new Set(shown.flatMap((each) => (isObject(each) ? Object.keys(each) : [])))];
  if (depth < DEEP && shown.every(isObject) && names.length && names.length <= 8) {
    const head = el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, line(name, 100))));
    const cell = (/** @type {Json} */ each, /** @type {string} */ name) =>
      el("td", {}, Object.hasOwn(each, name) ? valueNode(each[name], null, depth + 1) : "");
    const rows = shown.map((each) => el("tr", {}, ...names.map((name) => cell(each, name))));
    return el(
      "div",
      { class: "grid", tabindex: "0", role: "group", "aria-label": "Table" },
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)),
      rest,
    );
  }
  return el(
    "ul",
    {},
    ...shown.map((each) => el("li", {}, valueNode(each, schema, depth + 1))),
    rest ? el("li", {}, rest) : null,
  );
}
