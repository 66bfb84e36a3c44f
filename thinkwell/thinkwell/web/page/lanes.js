// @ts-check
/** The activities of a run over time. */

/** @import {ItemLog} from "./items.js" */

/**
 * @typedef {{from: number, to: number | null, look: string}} Bar
 * @typedef {{name: string, bars: Bar[]}} Lane
 */

/** Lanes of a run's time axis; the last one is for all others. */
const LANES = 8;

/**
 * The activities over time: a lane for thoughts, one for messages, and one for each tool. @param
 * {ItemLog} log @returns {Lane[]}
 */
export function lanesOf(log) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  const items = [...log.now.items.values()].filter((item) => item.more.lane);
  for (const { began, ended, more } of items.sort(
    (one, other) => one.began - other.began || one.order - other.order,
  )) {
    const known =
      lanes.get(more.lane ?? "") ?? (lanes.size < LANES - 1 ? undefined : lanes.get("other tools"));
    const name = lanes.size < LANES - 1 ? (more.lane ?? "") : "other tools";
    const lane = known ?? { name, bars: [] };
    if (known === undefined) lanes.set(name, lane);
    lane.bars.push({
      from: began,
      to: ended ?? (log.over ? log.end : null),
      look: more.look ?? "",
    });
  }
  return [...lanes.values()];
}
