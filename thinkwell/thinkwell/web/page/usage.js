// @ts-check
/** What a run has used. */

import { el, meter, section } from "./elements.js";
import { count, plural, seconds } from "./numbers.js";
import { line, table } from "./text.js";
import { durations } from "./words.js";

/**
 * @import {State} from "./state.js"
 * @import {Json} from "./text.js"
 */

const SIGNS = table({ USD: "$", EUR: "€", GBP: "£", JPY: "¥" });

/** @param {{amount: number, currency: string}} cost */
function money(cost) {
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
function cachedShare({ total, input, output, cachedRead, cachedWrite }) {
  if (!cachedRead || cachedRead < 0 || input === undefined || input < 0) return null;
  const apart = total !== undefined && total >= input + (output ?? 0) + cachedRead;
  const whole = cachedRead > input || apart ? input + cachedRead + Math.max(cachedWrite ?? 0, 0) : input;
  return cachedRead / whole;
}

/** @param {HTMLElement} host @param {State} state @param {{record: Json}} view */
export function drawUsage(host, state, view) {
  const { usage, tokens } = state;
  const parts = [];
  if (usage) {
    const share = usage.size ? usage.used / usage.size : null;
    parts.push(
      section(
        "Context window",
        share === null ? null : meter(share, "wide-meter"),
        el(
          "p",
          {},
          share === null
            ? `${count(usage.used)} tokens`
            : `${count(usage.used)} of ${count(usage.size)} tokens, ${Math.round(share * 100)}%`,
        ),
      ),
    );
  }
  if (tokens) {
    const share = cachedShare(tokens);
    const names = {
      input: "Input",
      output: "Output",
      thought: "Thought",
      cachedRead: "Read from a cache",
      cachedWrite: "Written to a cache",
      total: "Total",
    };
    const rows = Object.entries(names).filter(([name]) => tokens[name] !== undefined);
    parts.push(
      section(
        "Tokens of finished turns",
        facts(rows.map(([name, label]) => [label, tokens[name].toLocaleString("en")])),
        share === null
          ? null
          : el("p", { class: "dim" }, `${Math.round(share * 100)}% of the input came from a cache.`),
      ),
    );
  }
  if (usage?.cost) parts.push(section("Cost", el("p", {}, `${money(usage.cost)}, as the agent says`)));
  if (!parts.length)
    parts.push(section("Usage", el("p", { class: "dim" }, "The agent has not reported any usage.")));
  const taken = durations(state).filter(([, spent]) => spent >= 0.05);
  if (taken.length) parts.push(section("Time", timeBars(taken)));
  parts.push(
    section(
      "Run",
      facts([
        ["Agent", line(state.agent || view.record?.agent, 200)],
        ["Model", line(state.model, 200)],
        ["Mode", line(state.mode, 200)],
        ["Folder", line(state.cwd, 500)],
        ["Session", line(state.session, 200)],
        ["Conversation", view.record && !view.record.thread ? "none: it cannot be gone on with" : ""],
        ["Turns", state.turns > 1 ? String(state.turns) : ""],
        ["Tools", state.tools ? `${state.tools}${state.failed ? `, ${state.failed} failed` : ""}` : ""],
        ["Stop reason", line(state.reason, 100)],
        ["Events", state.end ? state.seq.toLocaleString("en") : ""],
        ["Not understood", state.unknown ? plural(state.unknown, "event") : ""],
        ["Dropped", state.dropped ? plural(state.dropped, "event") : ""],
      ]),
    ),
  );
  host.replaceChildren(...parts);
}

/** @param {[string, string][]} rows */
function facts(rows) {
  return el(
    "dl",
    { class: "facts" },
    ...rows
      .filter(([, value]) => value)
      .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}

/** @param {[string, number][]} taken */
function timeBars(taken) {
  const most = Math.max(...taken.map(([, spent]) => spent));
  return el(
    "div",
    { class: "bars" },
    ...taken.flatMap(([word, spent]) => {
      const bar = el("i", { "aria-hidden": "true" });
      bar.style.width = `${(100 * spent) / most}%`;
      return [el("span", {}, word), el("span", {}, bar), el("span", { class: "dim" }, seconds(spent))];
    }),
  );
}
