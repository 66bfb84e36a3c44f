// @ts-check
/** Panels beside the timeline. */

import { filesChanged } from "./changes.js";
import { byId, el, isNarrow, set } from "./elements.js";
import { drawChanges } from "./files.js";
import { drawPlans, planCount } from "./plans.js";
import { drawResult } from "./results.js";
import { Sources } from "./sources.js";
import { drawTerminal } from "./terminal.js";
import { drawUsage } from "./usage.js";

/**
 * @import {State} from "./state.js"
 * @import {Json} from "./text.js"
 */

/**
 * What panels show beside the state of a run, and what can be done in them.
 * @typedef {object} PanelView
 * @property {Json} about What this page has kept with the run when it was started.
 * @property {Json} record The server's record of the run; null: it is not there yet.
 * @property {string | null} file The file whose changes are shown; null: the first one.
 * @property {(path: string) => void} choose Show the changes of a file.
 * @property {Map<string, number>} more How often more was asked for, by what is shown.
 * @property {(key: string) => void} drawMore
 */

/**
 * A panel beside the timeline.
 * @typedef {object} Panel
 * @property {string} label
 * @property {(state: State) => string} badge What stands beside its name; may be empty.
 * @property {(state: State) => unknown[]} needs What it is drawn from: it is drawn again when one of these changes.
 * @property {(host: HTMLElement, state: State, view: PanelView) => void} draw
 */

/** @type {{[tab: string]: Panel}} */
const PANELS = {
  timeline: {
    label: "Timeline",
    badge: (state) => (state.asked.length ? "?" : ""),
    needs: (state) => [state.asked.length],
    draw: () => {},
  },
  plan: {
    label: "Plan",
    badge: (state) => (state.plans.length ? planCount(state.plans) : ""),
    needs: (state) => [state.plans],
    draw: drawPlans,
  },
  changes: {
    label: "Changes",
    badge: (state) => (state.edits.length ? String(filesChanged(state).length) : ""),
    needs: (state) => [state.edits.length && state.items],
    draw: drawChanges,
  },
  terminal: {
    label: "Terminal",
    badge: (state) => (state.commands.length ? String(state.commands.length) : ""),
    needs: (state) => [state.commands.length && state.items, state.end],
    draw: drawTerminal,
  },
  result: {
    label: "Result",
    badge: (state) => (state.end?.status === "completed" ? "✓" : state.attempts.length ? "…" : ""),
    needs: (state) => [state.end, state.attempts, state.draft, state.end ? "" : state.last],
    draw: drawResult,
  },
  usage: {
    label: "Usage",
    badge: () => "",
    needs: ({ usage, tokens, phases, turns, tools, failed, session, model, mode, unknown, dropped, end }) => [
      usage,
      tokens,
      phases,
      turns,
      tools,
      failed,
      session,
      model,
      mode,
      unknown,
      dropped,
      end,
    ],
    draw: drawUsage,
  },
};

/** The tabs of a run, and the panel of the one that is shown. */
export class Panels {
  /**
   * @param {PanelView & {
   *   state: State,
   *   dock: {cards: {size: number}},
   *   schedule: () => void,
   *   save: () => void,
   * }} view
   * @param {Json} kept What was remembered of them.
   */
  constructor(view, kept) {
    this.view = view;
    this.tab = PANELS[kept.tab] ? kept.tab : isNarrow() ? "timeline" : "plan";
    /** Whether the user has chosen the tab. */
    this.chosen = kept.chosen ?? false;
    this.narrow = isNarrow();
    /** The tab that gave way to the timeline when the window became narrow. @type {string | null} */
    this.beside = null;
    this.sources = new Sources();
  }

  drawTabs() {
    byId("tabs").replaceChildren(
      ...Object.entries(PANELS).map(([name, { label }]) =>
        el(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${name}`,
            "aria-controls": name === "timeline" ? "left" : "panel",
            onclick: () => this.show(name),
          },
          label,
        ),
      ),
    );
    this.drawTab();
  }

  drawTab() {
    const shown = this.tab === "timeline" && !isNarrow() ? "plan" : this.tab;
    byId("run").dataset.tab = shown;
    for (const tab of byId("tabs").children) {
      const isIt = tab.id === `tab-${shown}`;
      set(tab, { "aria-selected": String(isIt), tabindex: isIt ? 0 : -1 });
      if (isIt) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    set(byId("panel"), { "aria-labelledby": `tab-${shown}` });
    return shown;
  }

  /** Show what was beside the timeline in its place, or the timeline itself where something is asked. */
  resized() {
    const { narrow } = this;
    this.narrow = isNarrow();
    if (this.narrow && !narrow && this.view.dock.cards.size) [this.beside, this.tab] = [this.tab, "timeline"];
    else if (narrow && !this.narrow) {
      if (this.tab === "timeline") this.tab = this.beside ?? this.tab;
      this.beside = null;
    }
    this.drawTab();
    this.redraw();
  }

  /** Draw the panel again, though nothing that it shows has changed. */
  redraw() {
    this.sources.forget("panel");
    this.view.schedule();
  }

  drawBadges() {
    for (const [name, { label, badge, needs }] of Object.entries(PANELS)) {
      if (!this.sources.changed(`badge ${name}`, needs(this.view.state))) continue;
      const text = badge(this.view.state);
      byId(`tab-${name}`).replaceChildren(label, ...(text ? [el("span", { class: "badge" }, text)] : []));
    }
  }

  draw() {
    if (!this.chosen && !isNarrow()) this.follow();
    const tab = byId("run").dataset.tab;
    const { needs, draw } = PANELS[tab];
    const { state, file, record, more } = this.view;
    if (
      tab !== "timeline" &&
      this.sources.changed("panel", [tab, file, record, more.get("terminal"), ...needs(state)])
    ) {
      const focus =
        byId("panel").contains(document.activeElement) && document.activeElement !== byId("panel");
      draw(byId("panel"), state, this.view);
      if (focus) byId("panel").querySelector('[aria-current="true"]')?.focus();
    }
  }

  /** Show what there is something of, as long as nobody has chosen. */
  follow() {
    const { state } = this.view;
    const has =
      state.end?.status === "completed"
        ? "result"
        : state.plans.length
          ? "plan"
          : state.edits.length
            ? "changes"
            : state.commands.length
              ? "terminal"
              : "plan";
    if (has !== this.tab) {
      this.tab = has;
      this.drawTab();
    }
  }

  /** @param {string} tab */
  show(tab) {
    [this.tab, this.chosen] = [tab, true];
    this.drawTab();
    this.view.schedule();
    this.view.save();
  }

  /** Show the next tab, or the one before. @param {number} by */
  turn(by) {
    const names = Object.keys(PANELS).filter((name) => name !== "timeline" || isNarrow());
    const at = names.indexOf(byId("run").dataset.tab);
    this.show(names[(at + by + names.length) % names.length]);
  }
}
