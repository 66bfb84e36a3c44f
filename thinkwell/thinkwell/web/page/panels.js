// @ts-check
/** Panels beside the timeline. */

import { button, byId, el, isNarrow, set } from "./elements.js";
import { drawChanges } from "./files.js";
import { plural } from "./numbers.js";
import { Sources } from "./storage.js";
import { NEAR } from "./windows.js";

/**
 * @import {Board} from "./board.js"
 * @import {Item, Shown} from "./items.js"
 * @import {Json} from "./text.js"
 */

/**
 * The panels' access to the run.
 * @typedef {object} PanelView
 * @property {Board} board
 * @property {Shown} shown The shown run.
 * @property {{cards: {size: number}}} dock
 * @property {{stick: boolean}} timeline
 * @property {() => void} schedule
 * @property {() => void} save
 */

/** The texts of empty tabs. @type {{[tab: string]: string}} */
const NOTHING = {
  result: "There is no result so far.",
  plan: "The agent has made no plan so far.",
  changes: "The agent has changed no files so far.",
  terminal: "The agent has run no commands so far.",
};

/** The names of the tabs that can be selected. */
function tabNames() {
  const names = Array.from(byId("tabs").children, ({ id }) => id.replace("tab-", ""));
  return isNarrow() ? names : names.slice(1);
}

/** Commands that are shown at first. */
const COMMANDS = 100;

/** The tabs of a run, and the panel of the selected one. */
export class Panels {
  /** @param {PanelView} view @param {Json} kept Their remembered state. */
  constructor(view, kept) {
    this.view = view;
    this.tab = byId(`tab-${kept.tab}`) ? kept.tab : isNarrow() ? "timeline" : "plan";
    /** Whether the user has chosen the tab. */
    this.chosen = kept.chosen ?? false;
    /**
     * Whether panels are beside the timeline; null: as soon as one has contents. @type {boolean |
     * null}
     */
    this.beside = kept.beside ?? null;
    /** The file whose changes are shown; null: the first one. @type {string | null} */
    this.file = kept.file ?? null;
    /** Most commands that are shown. */
    this.commands = COMMANDS;
    this.narrow = isNarrow();
    /**
     * The tab that was replaced by the timeline when the window became narrow. @type {string |
     * null}
     */
    this.gaveWay = null;
    this.sources = new Sources();
    for (const badge of byId("tabs").querySelectorAll(".badge"))
      view.board.fill(badge, badge.parentElement.id.replace("tab-", "badge."));
  }

  /** The state to remember. */
  get kept() {
    const { tab, chosen, beside, file } = this;
    return { tab, chosen, beside, file };
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

  /** Show the panel in place of the timeline, or the timeline if a question is open. */
  resized() {
    const { narrow } = this;
    this.narrow = isNarrow();
    if (this.narrow && !narrow && this.view.dock.cards.size)
      [this.gaveWay, this.tab] = [this.tab, "timeline"];
    else if (narrow && !this.narrow) {
      if (this.tab === "timeline") this.tab = this.gaveWay ?? this.tab;
      this.gaveWay = null;
    }
    this.drawTab();
    this.redraw();
  }

  /** Draw the panel again, even if nothing has changed. */
  redraw() {
    this.sources.forget("panel");
    this.view.schedule();
  }

  /** Draw the panel. The board updates its contents. */
  draw() {
    const filled = this.filled();
    if (!this.chosen) this.follow(filled);
    const isBeside = this.beside ?? (this.chosen || filled.length > 0);
    byId("run").classList.toggle("single", !isBeside);
    set(byId("details"), { "aria-pressed": String(isBeside) });
    const tab = byId("run").dataset.tab;
    if (tab === "timeline" || !(isBeside || isNarrow())) return;
    const { board, shown } = this.view;
    const { commands, file } = this;
    const inside = shown.inside(tab);
    const atEnd =
      byId("panel").scrollTop + byId("panel").clientHeight >= byId("panel").scrollHeight - NEAR;
    const isNew = this.sources.changed("panel", [
      tab,
      inside.length > 0,
      ...(tab === "changes" ? [file, ...inside] : []),
      ...(tab === "terminal" ? [commands, Math.max(inside.length - commands, 0)] : []),
    ]);
    if (isNew) {
      const host = byId("panel");
      const focus = host.contains(document.activeElement) && document.activeElement !== host;
      if (!inside.length) host.replaceChildren(el("p.empty", NOTHING[tab]));
      else if (tab === "changes")
        drawChanges(host, inside, { board, file, choose: (path) => this.choose(path) });
      else if (tab === "terminal") this.drawTerminal(host, inside.length);
      else host.replaceChildren(board.fill(el("div"), tab));
      if (focus) host.querySelector('[aria-current="true"]')?.focus();
    }
    if (tab === "terminal" && atEnd) byId("panel").scrollTop = byId("panel").scrollHeight;
  }

  /** @param {HTMLElement} host @param {number} all */
  drawTerminal(host, all) {
    const { board } = this.view;
    const last = (/** @type {Item[]} */ items) => items.slice(-this.commands);
    host.replaceChildren(board.fill(el("div.shell"), "terminal", board.maker, last));
    if (all <= this.commands) return;
    const label = `${plural(all - this.commands, "earlier command")}: show more`;
    const onclick = () => {
      this.commands += COMMANDS;
      this.view.schedule();
    };
    host.prepend(button("button.small", label, { onclick }));
  }

  /** Show the changes of a file. @param {string} path */
  choose(path) {
    this.file = path;
    this.view.schedule();
    this.view.save();
  }

  /** The panels with something that the timeline does not show, in order. */
  filled() {
    const { shown } = this.view;
    const isTyped = shown.items.get("panel.result")?.node?.[1] === "typed";
    const filled = ["plan", "changes", "terminal"].filter((name) => shown.inside(name).length);
    return isTyped ? [...filled, "result"] : filled;
  }

  /**
   * Select a tab with contents until the user selects one: the result as soon as there is one.
   * @param {string[]} filled
   */
  follow(filled) {
    const isThere = this.view.shown.items.get("badge.result")?.node === "✓";
    const wide = isThere ? "result" : (filled[0] ?? "plan");
    const narrow = isThere && this.view.timeline.stick ? "result" : "timeline";
    const tab = isNarrow() ? narrow : wide;
    if (tab === this.tab) return;
    this.tab = tab;
    this.drawTab();
  }

  /** Show the panels, or the timeline alone. */
  showBeside() {
    this.beside = byId("run").classList.contains("single");
    this.redraw();
    this.view.save();
  }

  /** @param {string} tab */
  show(tab) {
    [this.tab, this.chosen, this.beside] = [tab, true, null];
    this.drawTab();
    this.view.schedule();
    this.view.save();
  }

  /** Select the next tab, or the previous one. @param {number} by */
  turn(by) {
    const names = tabNames();
    const at = names.indexOf(byId("run").dataset.tab);
    this.show(names[(at + by + names.length) % names.length]);
  }
}
