// @ts-check
/** What is kept in the browser. */

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
    // it is full, or not there: nothing is lost that matters
  }
}
