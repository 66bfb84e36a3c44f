// @ts-check
/** The fields of a result. */

import { isObject, json, line } from "./text.js";

/** @import {Json} from "./text.js" */

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
