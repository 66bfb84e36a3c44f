// How the driver of a browser talks to the tests: commands on stdin, one JSON object a line, and answers on stdout.

import { createInterface } from "node:readline";

/**
 * Answer commands until stdin ends.
 * @param {(tab: number | null, call: string, given: unknown[]) => Promise<unknown>} does
 */
export async function answerCommands(does) {
  for await (const line of createInterface({ input: process.stdin }))
    answer(JSON.parse(line), does);
}

async function answer({ id, tab, call, given }, does) {
  let said;
  try {
    said = { id, value: (await does(tab, call, given)) ?? null };
  } catch (error) {
    said = { id, error: String(error.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
