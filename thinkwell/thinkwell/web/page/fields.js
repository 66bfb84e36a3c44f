// @ts-check
/** Inputs for the fields of a form. */

import { el, set } from "./elements.js";
import { line } from "./text.js";

/** @import {Json} from "./text.js" */

/**
 * A field of a form, from the server.
 * @typedef {object} Field
 * @property {string} name
 * @property {string} type
 * @property {string} label
 * @property {string} hint Its valid values, in words.
 * @property {string} [description]
 * @property {boolean} [required]
 * @property {Json} [default]
 * @property {{value: string, title: string, description?: string}[]} [choices]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {string} [format]
 */

/** Most choices of a field that are all visible. */
const AT_ONCE = 7;

/** @type {NonNullable<Field["choices"]>} */
const YES_OR_NO = [
  { value: "true", title: "yes" },
  { value: "false", title: "no" },
];

/** Types of inputs, by the types and formats of fields. */
const INPUTS = new Map([
  ["number", "number"],
  ["integer", "number"],
  ["email", "email"],
  ["uri", "url"],
  ["date", "date"],
]);

/** @param {Json} value @returns {string} */
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? ""));

/** The input of a field. */
export class FieldInput {
  /** @param {Field} field @param {string} question */
  constructor(field, question) {
    this.field = field;
    this.id = `field-${question}-${field.name}`.replace(/[^\w-]/g, "_");
    this.wrong = el("span.wrong", { id: `${this.id}-wrong`, role: "alert", hidden: true });
    const told = [field.description, field.hint].filter(Boolean).join("\n");
    const hint = el("span.hint", { id: `${this.id}-hint` }, told);
    const inner = this.make();
    this.node = inner.matches(".pickable")
      ? el("fieldset.field", { "aria-describedby": hint.id }, el("legend", field.label))
      : el("div.field", el("label", { for: this.id }, field.label));
    this.node.append(hint, inner, this.wrong);
  }

  /** @returns {HTMLElement} */
  make() {
    const { type, format, required, maximum, default: given, choices } = this.field;
    const about = {
      id: this.id,
      "aria-describedby": `${this.id}-hint ${this.id}-wrong`,
      "aria-required": required ? "true" : null,
    };
    const offered = (type === "boolean" ? YES_OR_NO : (choices ?? [])).map((each) => ({
      value: each.value,
      title: line([each.title || each.value, each.description].filter(Boolean).join(" – "), 200),
      isGiven: [given].flat().map(asText).includes(each.value),
    }));
    if (type === "choice" && offered.length > AT_ONCE) {
      const options = offered.map(({ value, title, isGiven }) =>
        el("option", { value, selected: isGiven }, title),
      );
      return el("select", about, el("option", { value: "" }), ...options);
    }
    if (offered.length || type === "choices") {
      const box = type === "choices" ? "checkbox" : "radio";
      const boxes = offered.map(({ value, title, isGiven }) =>
        el("label", el("input", { type: box, name: this.id, value, checked: isGiven }), title),
      );
      return el("div.pickable", ...boxes);
    }
    const value = given === null || given === undefined ? "" : asText(given);
    if (type === "string" && !format && (maximum ?? Infinity) > 200)
      return el("textarea", { ...about, rows: 1 }, value);
    return el("input", {
      ...about,
      type: INPUTS.get(type) ?? INPUTS.get(format ?? "") ?? "text",
      value,
      step: type === "number" ? "any" : null,
      autocomplete: "off",
    });
  }

  /** The value: undefined if there is none, null if a default was removed. @returns {Json} */
  value() {
    const { field } = this;
    const checked = this.node.querySelectorAll(".pickable input:checked");
    const picked = Array.from(checked, (box) => /** @type {HTMLInputElement} */ (box).value);
    const nothing = field.default === undefined || field.default === null ? undefined : null;
    if (field.type === "choices") return picked.length ? picked : nothing;
    if (field.type === "boolean") return picked.length ? picked[0] === "true" : nothing;
    const input = /** @type {HTMLInputElement | null} */ (
      this.node.querySelector(":scope > input, :scope > select, :scope > textarea")
    );
    const text = input === null ? (picked[0] ?? "") : input.value;
    if (text === "") return nothing;
    if (field.type === "number" || field.type === "integer") return Number(text);
    if (field.type !== "unknown") return text;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }

  /** The error, as far as the page can tell; empty if there is none. */
  check() {
    const { field } = this;
    const value = this.value();
    const length = typeof value === "string" || Array.isArray(value) ? [...value].length : value;
    let why = "";
    if (value === undefined || value === null) why = field.required ? "A value is required." : "";
    else if (field.type === "integer" && !Number.isInteger(value))
      why = "It has to be a whole number.";
    else if (field.minimum !== undefined && length < field.minimum)
      why = `It has to be at least ${field.minimum}.`;
    else if (field.maximum !== undefined && length > field.maximum)
      why = `It may be at most ${field.maximum}.`;
    this.wrong.textContent = why;
    this.wrong.hidden = !why;
    const input = this.node.querySelector("input, select, textarea");
    if (input) set(input, { "aria-invalid": why ? "true" : null });
    return why;
  }
}
