// @ts-check
/** What was drawn of which values. */

/** The values that parts of the page were drawn from: a part is drawn again when one of its values changes. */
export class Sources {
  constructor() {
    /** @type {Map<string, unknown[]>} */
    this.known = new Map();
  }

  /** Whether a part is drawn from other values than before. @param {string} part @param {unknown[]} values */
  changed(part, values) {
    const before = this.known.get(part);
    if (before && before.length === values.length && before.every((each, i) => each === values[i]))
      return false;
    this.known.set(part, values);
    return true;
  }

  /** Have a part drawn again in any case. @param {string} part */
  forget(part) {
    this.known.delete(part);
  }
}
