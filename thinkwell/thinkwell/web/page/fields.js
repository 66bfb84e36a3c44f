// @ts-check
/** Fields of a form, as they are filled in. */

import { el, set } from "./elements.js";
import { line } from "./text.js";

/** @import {Json} from "./text.js" */

/**
 * A field of a form, as the server tells of it.
 * @typedef {object} Field
 * @property {string} name
 * @property {string} type
 * @property {string} label
 * @property {string} hint What may stand in it.
 * @property {string} [description]
 * @property {boolean} [required]
 * @property {Json} [default]
 * @property {{value: string, title: string, description?: string}[]} [choices]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {string} [format]
 */

/** Choices of a field that are all shown at once. */
const AT_ONCE = 7;

/** A field of a form, as it is filled in. */
export class FieldInput {
  /** @param {Field} field @param {string} question */
  constructor(field, question) {
    this.field = field;
    this.id = `field-${question}-${field.name}`.replace(/[^\w-]/g, "_");
    this.wrong = el("span.wrong", { id: `${this.id}-wrong`, role: "alert", hidden: true });
    const { label } = field;
    const hint = el(
      "span.hint",
      { id: `${this.id}-hint` },
      [field.description, field.hint].filter(Boolean).join("\n"),
    );
    const inner = this.make();
    const isGroup = inner.classList.contains("pickable");
    this.node = isGroup
      ? el(
          "fieldset.field",
          { "aria-describedby": hint.id },
          el("legend", label),
          hint,
          inner,
          this.wrong,
        )
      : el("div.field", el("label", { for: this.id }, label), hint, inner, this.wrong);
  }

  /** @returns {HTMLElement} */
  make() {
    const { field } = this;
    const choices = field.choices ?? [];
    const about = {
      id: this.id,
      "aria-describedby": `${this.id}-hint ${this.id}-wrong`,
      "aria-required": field.required ? "true" : null,
    };
    const given = field.default;
    const box = (
      /** @type {string} */ type,
      /** @type {string} */ value,
      /** @type {string} */ label,
      /** @type {boolean} */ checked,
    ) => el("label", el("input", { type, name: this.id, value, checked }), line(label, 200));
    const title = (/** @type {{value: string, title: string, description?: string}} */ each) =>
      (each.title || each.value) + (each.description ? ` – ${each.description}` : "");
    if (field.type === "boolean") {
      return el(
        "div.pickable",
        box("radio", "true", "yes", given === true),
        box("radio", "false", "no", given === false),
      );
    }
    if (field.type === "choices" || (field.type === "choice" && choices.length <= AT_ONCE)) {
      const type = field.type === "choice" ? "radio" : "checkbox";
      const isGiven = (/** @type {string} */ value) =>
        Array.isArray(given) ? given.includes(value) : given === value;
      return el(
        "div.pickable",
        ...choices.map((each) => box(type, each.value, title(each), isGiven(each.value))),
      );
    }
    if (field.type === "choice") {
      const options = choices.map((each) =>
        el("option", { value: each.value, selected: given === each.value }, line(title(each), 200)),
      );
      return el("select", about, el("option", { value: "" }, ""), ...options);
    }
    const value =
      given === undefined || given === null
        ? ""
        : typeof given === "string"
          ? given
          : JSON.stringify(given);
    if (field.type === "string" && !field.format && (field.maximum ?? Infinity) > 200) {
      const area = /** @type {HTMLTextAreaElement} */ (el("textarea", { ...about, rows: 1 }));
      area.value = value;
      return area;
    }
    const formats = new Map([
      ["email", "email"],
      ["uri", "url"],
      ["date", "date"],
    ]);
    const isNumber = field.type === "number" || field.type === "integer";
    const type = isNumber ? "number" : (formats.get(field.format ?? "") ?? "text");
    return el("input", {
      ...about,
      type,
      value,
      step: field.type === "number" ? "any" : null,
      autocomplete: "off",
    });
  }

  /** What was filled in: undefined where nothing was, null where a default was taken away. @returns {Json} */
  value() {
    const { field } = this;
    const picked = [
      .../** @type {NodeListOf<HTMLInputElement>} */ (
        this.node.querySelectorAll(".pickable input:checked")
      ),
    ].map((box) => box.value);
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

  /** What is wrong, as far as it can be seen here; empty where nothing is. */
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
