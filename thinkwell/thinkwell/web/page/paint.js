// @ts-check
/** Rows of the timeline, drawn. */

import { foldNode, toolNode } from "./calls.js";
import { filesChanged, sumsOf } from "./changes.js";
import { verdictWords, wasAllowed } from "./choices.js";
import { button, el, ENDS, icon, mark, set } from "./elements.js";
import { card, foldHead, LEAST, timeNode } from "./folds.js";
import { beginning, ending } from "./lists.js";
import { count, plural, seconds } from "./numbers.js";
import { blockNode, DRAWN, drawProse } from "./prose.js";
import { sameRow } from "./rows.js";
import { clean, exact, json, line, shortened } from "./text.js";
import { usageParts } from "./usage.js";

/**
 * @import {RowView} from "./folds.js"
 * @import {Text} from "./lists.js"
 * @import {Row} from "./rows.js"
 * @import {AttemptItem, QuestionItem, State, TextItem} from "./state.js"
 */

/**
 * A row as it is drawn: one of the reducer's, or the prompt at the beginning, or the end.
 * @typedef {Row | {key: "prompt", text: string} | {key: "wait", text: string, since: number} |
 *   {key: "final", state: State}} Drawn
 */

/** @param {Drawn} one @param {Drawn} other */
export function sameDrawn(one, other) {
  if ("item" in one && "item" in other) return sameRow(one, other);
  if ("since" in one && "since" in other) return one.text === other.text && one.since === other.since;
  if ("text" in one && "text" in other) return one.text === other.text;
  return "state" in one && "state" in other && one.state === other.state;
}

/** @param {HTMLElement} host @param {Drawn} row @param {RowView} view */
export function paint(host, row, view) {
  const focused = host.contains(document.activeElement) && document.activeElement !== host;
  if ("item" in row) paintItem(host, row, view);
  else if ("state" in row) paintFinal(host, row.state);
  else if ("since" in row) host.replaceChildren(waitNode(row.text, row.since));
  else paintPrompt(host, row.text);
  if (focused && !host.contains(document.activeElement)) {
    /** @type {HTMLElement | null} */ (host.querySelector("button"))?.focus({ preventScroll: true });
  }
}

/** What is waited for, and for how long. @param {string} text @param {number} since */
function waitNode(text, since) {
  const end = el("span", { class: "end" }, timeNode(since, null, true));
  return el("div", { class: "fold dim" }, mark("running"), el("span", { class: "wait" }, text), end);
}

/** @param {HTMLElement} host @param {Row} row @param {RowView} view */
function paintItem(host, row, view) {
  set(host, { "data-depth": row.depth, "data-kind": row.item.kind });
  const { item } = row;
  switch (item.kind) {
    case "message":
      return paintText(host, row.key, item.text, "text", view);
    case "user":
      return paintText(host, row.key, item.text, "bubble", view);
    case "thought":
      return paintThought(host, row, item, view);
    case "content":
      return host.replaceChildren(el("div", { class: "text" }, blockNode(item.block)));
    case "tool":
      return host.replaceChildren(row.folded.length ? foldNode(row, view) : toolNode(item, row.key, view));
    case "question":
      return host.replaceChildren(pastQuestion(item, row.key, view));
    case "attempt":
      return host.replaceChildren(attemptNode(item, row.key, view));
    case "note":
      return host.replaceChildren(
        el(
          "div",
          { class: `note ${line(item.severity, 20).replace(/[^a-z]/g, "")}` },
          icon("interrupted"),
          el(
            "span",
            {},
            [line(item.title, 500), clean(shortened(item.detail, 4000))].filter(Boolean).join(": "),
          ),
        ),
      );
    case "turn":
      return host.replaceChildren(
        el("div", { class: "divider" }, item.reminder ? "asked again for the result" : `turn ${item.number}`),
      );
  }
}

/** @param {HTMLElement} host @param {string} text */
function paintPrompt(host, text) {
  host.dataset.kind = "prompt";
  host.replaceChildren(
    el("span", { class: "unseen" }, "You: "),
    el("div", { class: "bubble prose" }, el("p", {}, clean(shortened(text, DRAWN)))),
  );
}

/** @param {HTMLElement} host @param {string} key @param {Text} text @param {string} look @param {RowView} view */
function paintText(host, key, text, look, view) {
  let prose = host.querySelector(".prose");
  if (prose === null) host.replaceChildren((prose = el("div", { class: `prose ${look}` })));
  const most = view.drawnOf(key);
  drawProse(prose, beginning(text, most));
  host.querySelector(".more")?.remove();
  if (text.length <= most) return;
  const label = `${count(text.length - most)} more characters: show ${count(Math.min(DRAWN, text.length - most))}`;
  host.append(button(label, { class: "button small more", onclick: () => view.drawMore(key) }));
}

/** @param {HTMLElement} host @param {Row} row @param {TextItem} item @param {RowView} view */
function paintThought(host, row, item, view) {
  const goesOn = row.until === null && view.state.end === null;
  const open = view.isOpen(row.key, false);
  const taken = (row.until ?? view.state.end?.at ?? item.at) - item.at;
  const told = goesOn ? "thinking" : taken < LEAST ? "thought" : `thought ${seconds(taken)}`;
  const last = clean(ending(item.text, 800)).trim().split("\n").slice(-2).join("\n").slice(-240);
  const head = foldHead(
    { key: row.key, open, view, glyph: "think", verb: told },
    el("span", { class: "target dim" }, goesOn || open ? "" : line(beginning(item.text, 600), 160)),
  );
  let body = host.querySelector(".thought-body");
  if (open && body === null) body = el("div", { class: "thought-body" });
  host.replaceChildren(
    head,
    ...(open && body ? [body] : goesOn ? [el("div", { class: "thinking" }, last)] : []),
  );
  if (open && body) paintText(/** @type {HTMLElement} */ (body), row.key, item.text, "", view);
}

/** @param {QuestionItem} item @param {string} key @param {RowView} view */
function pastQuestion(item, key, view) {
  const isOpen = item.answer === null && view.state.end === null;
  const told = isOpen ? "waits for your answer" : item.answer ? view.outcome(item) : "not answered";
  const allowed = wasAllowed(item);
  const status = isOpen ? "ask" : allowed === null ? "cancelled" : allowed ? "done" : "failed";
  const verdicts = item.verdicts.map((verdict) => el("div", {}, verdictWords(verdict)));
  const long = item.title.length > 80 || item.title.includes("\n") || told.length > 40 || item.url;
  const open = verdicts.length || long ? view.isOpen(key, false) : null;
  const head = foldHead(
    { key, open, view, glyph: null, verb: "asked", status },
    el("span", { class: "target" }, line(item.title, 200)),
    el("span", { class: "end" }, el("span", { class: "told" }, told)),
  );
  if (!open) return head;
  return card(head, [
    el("div", { class: "asked" }, exact(shortened(item.title, 8000))),
    item.url ? el("div", { class: "address" }, exact(item.url)) : null,
    ...verdicts,
    el("div", { class: "dim" }, told),
  ]);
}

/** @param {AttemptItem} item @param {string} key @param {RowView} view */
function attemptNode(item, key, view) {
  const open = view.isOpen(key, false);
  const head = foldHead(
    {
      key,
      open,
      view,
      glyph: "other",
      verb: item.accepted ? "result" : "result refused",
      status: item.accepted ? "done" : "failed",
    },
    el("span", { class: "target dim" }, item.accepted ? "" : line(item.errors[0], 200)),
  );
  if (!open) return head;
  const errors = item.errors
    .slice(0, 50)
    .map((error) => el("div", { class: "problem" }, clean(shortened(error, 2000))));
  return card(head, [...errors, el("pre", { class: "wrap" }, clean(shortened(json(item.value), 8000)))]);
}

/** @param {HTMLElement} host @param {State} state */
function paintFinal(host, state) {
  host.dataset.kind = "final";
  const { end } = state;
  if (end === null) return;
  const files = filesChanged(state);
  const [added, removed] = sumsOf(files);
  const work = [
    `in ${seconds(end.at)}`,
    state.tools ? plural(state.tools, "tool") + (state.failed ? `, ${state.failed} failed` : "") : "",
    files.length ? `${plural(files.length, "file")} changed, +${added} −${removed}` : "",
    state.denied ? `${state.denied} denied` : "",
    ...usageParts(state),
  ];
  const error =
    end.error && end.status !== "cancelled"
      ? el("div", { class: "error" }, clean(shortened(`${end.error.name}: ${end.error.message}`, 4000)))
      : null;
  const why =
    end.status === "interrupted"
      ? el("div", {}, "The server ended before the run did. What is here is complete up to then.")
      : null;
  host.replaceChildren(
    el(
      "div",
      { class: `final ${end.status}` },
      el(
        "div",
        { class: "words" },
        mark(end.status),
        ENDS[end.status] ?? line(end.status),
        end.reason && end.reason !== "end_turn"
          ? el("span", { class: "dim" }, `(${line(end.reason, 60).replaceAll("_", " ")})`)
          : null,
      ),
      error,
      why,
      el("div", { class: "dim" }, work.filter(Boolean).join(" · ")),
    ),
  );
}
