// @ts-check
/** What a run has used. */

import { count } from "./numbers.js";
import { line, table } from "./text.js";

/** @import {State} from "./state.js" */

const SIGNS = table({ USD: "$", EUR: "€", GBP: "£", JPY: "¥" });

/** @param {{amount: number, currency: string}} cost */
export function money(cost) {
  const small = Math.abs(cost.amount) > 0 && Math.abs(cost.amount) < 0.0095;
  const digits = { minimumFractionDigits: small ? 4 : 2, maximumFractionDigits: small ? 4 : 2 };
  const shown = Number.isFinite(cost.amount) ? cost.amount.toLocaleString("en", digits) : "?";
  const sign = SIGNS[cost.currency];
  return sign ? sign + shown : `${shown} ${line(cost.currency, 12)}`.trim();
}

/** What a run has used, piece by piece, the most important first. @param {State} state @returns {string[]} */
export function usageParts(state) {
  const { usage, tokens } = state;
  const parts = [];
  if (usage)
    parts.push(usage.size ? `${count(usage.used)}/${count(usage.size)} ctx` : `${count(usage.used)} ctx`);
  if (tokens) {
    if (!usage && tokens.input !== undefined) parts.push(`${count(tokens.input)} in`);
    if (tokens.output !== undefined) parts.push(`${count(tokens.output)} out`);
    if (tokens.input === undefined && tokens.output === undefined && tokens.total !== undefined) {
      parts.push(`${count(tokens.total)} tokens`);
    }
    const share = cachedShare(tokens);
    if (share !== null) parts.push(`${Math.round(share * 100)}% cached`);
  }
  if (usage?.cost) parts.push(`${money(usage.cost)} (agent)`);
  return parts;
}

/**
 * Which part of the input came from a cache. Some agents count that as input and some do not.
 * @param {{[name: string]: number}} tokens
 */
export function cachedShare({ total, input, output, cachedRead, cachedWrite }) {
  if (!cachedRead || cachedRead < 0 || input === undefined || input < 0) return null;
  const apart = total !== undefined && total >= input + (output ?? 0) + cachedRead;
  const whole = cachedRead > input || apart ? input + cachedRead + Math.max(cachedWrite ?? 0, 0) : input;
  return cachedRead / whole;
}
