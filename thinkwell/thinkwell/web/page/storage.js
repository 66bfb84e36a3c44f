// @ts-check
/** The page's storage in the browser, and its memory of what was drawn. */

/** @import {Json} from "./text.js" */

/** @param {Storage} storage @param {string} name @returns {Json} */
export function recall(storage, name) {
  try {
    return JSON.parse(storage.getItem(`thinkwell:${name}`) ?? "null");
  } catch {
    return null;
  }
}

/** @param {Storage} storage @param {string} name @param {Json} value */
export function remember(storage, name, value) {
  try {
    storage.setItem(`thinkwell:${name}`, JSON.stringify(value));
  } catch {
    // it is full or missing: nothing important is lost
  }
}

/** The values that parts of the page were drawn from: a part is drawn again when one of its values changes. */
export class Sources {
  constructor() {
    /** @type {Map<string, unknown[]>} */
    this.known = new Map();
  }

  /** Whether the values of a part have changed. @param {string} part @param {unknown[]} values */
  changed(part, values) {
    const before = this.known.get(part);
    this.known.set(part, values);
    return before?.length !== values.length || before.some((each, i) => each !== values[i]);
  }

  /** Draw a part again in any case. @param {string} part */
  forget(part) {
    this.known.delete(part);
  }
}
