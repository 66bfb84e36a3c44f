// @ts-check
/** Colours of terminals. */

import { clean } from "./text.js";

/** Pieces of an output that have colours of their own. */
const PIECES = 3000;

/**
 * The output of a program, as pieces with their classes: its colours stay, and everything else that a terminal
 * obeys goes. What was written over itself, such as a progress bar, is there as it stood last.
 * @param {string} text
 * @returns {{text: string, look: string}[]}
 */
export function ansi(text) {
  const rows = text.replaceAll("\r\n", "\n").split("\n");
  const whole = rows.map((row) => row.replace(/\r+$/, "").split("\r").at(-1)).join("\n");
  /** @type {{text: string, look: string}[]} */
  const pieces = [];
  /** @type {Look} */
  let look = {};
  whole.split(/\x1b\[([0-9;:]*)m/).forEach((part, i) => {
    if (i % 2) look = pieces.length < PIECES ? looks(look, part) : {};
    else if (part) pieces.push({ text: clean(part), look: classesOf(look) });
  });
  return pieces;
}

/** @typedef {{fore?: number, back?: number, bold?: boolean, dim?: boolean, italic?: boolean, under?: boolean}} Look */

/** @param {Look} look @param {string} codes @returns {Look} */
function looks(look, codes) {
  let next = { ...look };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i];
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.under = true;
    else if (code === 22) next = { ...next, bold: false, dim: false };
    else if (code === 23) next.italic = false;
    else if (code === 24) next.under = false;
    else if (code === 39) next.fore = undefined;
    else if (code === 49) next.back = undefined;
    else if (code >= 30 && code <= 37) next.fore = code - 30;
    else if (code >= 90 && code <= 97) next.fore = code - 82;
    else if (code >= 40 && code <= 47) next.back = code - 40;
    else if (code === 38 || code === 48) {
      const palette = numbers[i + 1] === 5;
      const colour = palette && numbers[i + 2] < 16 ? numbers[i + 2] : undefined;
      if (code === 38) next.fore = colour;
      else next.back = colour === undefined || colour > 7 ? undefined : colour;
      i += palette ? 2 : 4;
    }
  }
  return next;
}

/** @param {Look} look */
function classesOf({ fore, back, bold, dim, italic, under }) {
  const flags = { bold, dim, italic, under };
  const names = Object.entries(flags)
    .filter(([, is]) => is)
    .map(([name]) => `t-${name}`);
  if (fore !== undefined) names.push(`t-f${fore}`);
  if (back !== undefined) names.push(`t-b${back}`);
  return names.join(" ");
}
