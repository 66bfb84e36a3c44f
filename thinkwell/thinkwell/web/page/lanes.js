// @ts-check
/** What went on when in a run. */

import { all } from "./lists.js";
import { describe, STATUSES } from "./tools.js";

/** @import {Item, State} from "./state.js" */

/**
 * @typedef {{from: number, to: number | null, look: string}} Bar
 * @typedef {{name: string, bars: Bar[]}} Lane
 */

/** Lanes of a run's time axis; the last one is for all other tools. */
const LANES = 8;

/** What went on when: a lane for what was thought, for what was said, and for each tool. @param {State} state */
export function lanesOf(state) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  const items = all(state.items);
  const over = state.end ? state.end.at : null;
  items.forEach((item, number) => {
    const next = items[number + 1]?.at ?? over;
    const [name, bar] = barOf(item, next, over, state.cwd);
    if (bar === null) return;
    const known = lanes.get(name) ?? (lanes.size < LANES - 1 ? undefined : lanes.get("other tools"));
    const lane = known ?? { name: lanes.size < LANES - 1 ? name : "other tools", bars: [] };
    if (known === undefined) lanes.set(lane.name, lane);
    lane.bars.push(bar);
  });
  return [...lanes.values()];
}

/**
 * @param {Item} item
 * @param {number | null} next
 * @param {number | null} over
 * @param {string} cwd
 * @returns {[string, Bar | null]}
 */
function barOf(item, next, over, cwd) {
  switch (item.kind) {
    case "thought":
      return ["thought", { from: item.at, to: next, look: "thought" }];
    case "message":
      return ["answer", { from: item.at, to: next, look: "answer" }];
    case "question":
      return ["questions", { from: item.at, to: item.answer ? item.answer.at : over, look: "ask" }];
    case "tool":
      return [
        describe(item, cwd).verb,
        { from: item.began, to: item.ended ?? over, look: STATUSES[item.status] ?? "" },
      ];
    default:
      return ["", null];
  }
}
