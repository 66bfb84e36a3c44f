// @ts-check
/** The conversation that a run is a turn of. */

import { byId, el, set } from "./elements.js";
import { fill } from "./form.js";
import { info, request, startRun } from "./requests.js";
import { runAddress, runPath, saved } from "./server.js";
import { Sources } from "./storage.js";
import { isObject, line } from "./text.js";

/**
 * @import {ItemLog} from "./items.js"
 * @import {Json} from "./text.js"
 */

/** Known turns of a conversation, and how many before and after the open one have links. */
const TURNS = 500;
const AROUND_TURN = 10;

/** The conversation that a run is a turn of. */
export class Conversation {
  /**
   * @param {{
   *   id: string,
   *   record: Json,
   *   log: ItemLog,
   *   moment: number | null,
   *   timeline: {host: HTMLElement},
   *   schedule: () => void,
   * }} view
   */
  constructor(view) {
    this.view = view;
    /** Its turns, oldest first. @type {Json[]} */
    this.turns = [];
    this.sources = new Sources();
  }

  /** The other turns of the run's conversation. */
  async load() {
    const { data } = await request(
      "GET",
      `api/runs?limit=${TURNS}&thread=${encodeURIComponent(this.view.record.thread)}`,
    );
    this.turns = data.runs.toReversed();
    this.view.schedule();
  }

  /** Draw links to the other turns, and the field to continue. */
  draw() {
    const { id, record, log, moment, timeline } = this.view;
    const { turns } = this;
    const agent = info?.agents.find((/** @type {Json} */ each) => each.name === record?.agent);
    const may = Boolean(record?.thread && agent && log.over && moment === null);
    const steers = !saved && record !== null && !log.over && moment === null;
    byId("further").hidden = !may && !steers && (saved !== null || !byId("more").value);
    if (!this.sources.changed("conversation", [turns, may, steers])) return;
    if (may) this.drawOffer(agent);
    if (steers) this.label("Tell the agent something while it works");
    byId("conversation")?.remove();
    if (turns.length < 2) return;
    const at = turns.findIndex((run) => run.id === id);
    const from = Math.max(at - AROUND_TURN, 0);
    const links = turns.slice(from, at + AROUND_TURN + 1).map((run, i) => {
      const number = String(from + i + 1);
      return run.id === id
        ? el("strong", { "aria-current": "page" }, number)
        : el("a", { href: runAddress(run.id), title: line(run.title, 300) }, number);
    });
    const name = `Turns of the conversation, ${turns.length} in all`;
    timeline.host.before(
      el("nav", { id: "conversation", "aria-label": name }, from ? "Turns …" : "Turns", ...links),
    );
  }

  /**
   * Offer the choices for the next turn, if a program has begun the conversation: with another
   * folder, or other permissions, it would be another conversation.
   * @param {Json} agent
   */
  drawOffer(agent) {
    const turns = this.turns.length;
    const isLast = !turns || this.turns[turns - 1].id === this.view.id;
    const label = isLast
      ? "Continue this conversation"
      : `Continue this conversation, after turn ${turns}`;
    this.label(label);
    const known = this.choices();
    for (const name of /** @type {const} */ (["folder", "permissions"])) {
      const offered = agent[name === "folder" ? "folders" : "permissions"];
      fill(`more-${name}`, known === null && offered.length > 1 ? ["", ...offered] : []);
    }
  }

  /** Label the field. @param {string} label */
  label(label) {
    set(byId("more"), { placeholder: label, "aria-label": label });
    for (const name of ["folder", "permissions"]) fill(`more-${name}`, []);
  }

  /** The choices of the conversation; null: they are unknown here. @returns {Json} */
  choices() {
    const turns = [this.view.record, ...this.turns.toReversed()];
    return turns.map((run) => run.meta?.page).find(isObject) ?? null;
  }

  /**
   * Steer the agent while it works; otherwise continue the conversation in another run. @param
   * {string} prompt
   */
  async further(prompt) {
    const { id, record, log } = this.view;
    if (!log.over) return request("POST", runPath(id, "/steer"), { body: { text: prompt } });
    if (!record.thread)
      throw new Error("The run has ended, and its conversation cannot be continued.");
    const picks = ["folder", "permissions"].filter((name) => !byId(`pick-more-${name}`).hidden);
    const open = picks.filter((name) => !byId(`more-${name}`).value);
    if (open.length) {
      byId(`more-${open[0]}`).focus();
      throw new Error(
        `Choose the ${open.join(" and the ")} of the conversation: with others, a new one begins.`,
      );
    }
    const picked = Object.fromEntries(picks.map((name) => [name, byId(`more-${name}`).value]));
    const { folder, permissions } = this.choices() ?? picked;
    return this.start({ prompt, folder, permissions, output: null });
  }

  /** Start another turn. @param {{prompt: string, folder?: string, permissions?: string, output: Json}} about */
  start({ prompt, folder, permissions, output }) {
    const { agent, thread } = this.view.record;
    return startRun({ prompt, agent, thread: thread ?? undefined, folder, permissions, output });
  }
}
