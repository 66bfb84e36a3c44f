// @ts-check
/** The files that a run has changed. */

import { counts, el, icon } from "./elements.js";
import { plural } from "./numbers.js";
import { line } from "./text.js";

/**
 * @import {Board} from "./board.js"
 * @import {Item} from "./items.js"
 * @import {Json} from "./text.js"
 */

/**
 * @typedef {{path: string, added: number, removed: number, isNew: boolean, edits: Item[]}} ChangedFile
 *
 * @typedef {object} Folder A folder of a tree of changed files.
 * @property {string} name
 * @property {Folder[]} folders
 * @property {ChangedFile[]} files
 */

/** The files of changes. @param {Item[]} edits @returns {ChangedFile[]} */
export function filesOf(edits) {
  const about = (/** @type {Item} */ { node }) => /** @type {Json[]} */ (node)[2];
  const sum = (/** @type {Item[]} */ all, /** @type {0 | 1} */ side) =>
    all.reduce((lines, edit) => lines + about(edit).value[side], 0);
  const files = Map.groupBy(edits, (edit) => String(about(edit).path));
  return [...files].map(([path, inside]) => ({
    path,
    added: sum(inside, 0),
    removed: sum(inside, 1),
    isNew: String(inside[0].node?.[1]).includes("new"),
    edits: inside,
  }));
}

/** Most folders inside each other. */
const DEEP = 20;

/**
 * Files below a folder, with a folder that only contains another one on the same line.
 * @param {ChangedFile[]} files
 * @param {number} [depth] The number of folders above.
 * @returns {Omit<Folder, "name">}
 */
export function treeOf(files, depth = 0) {
  const below = Map.groupBy(files, ({ path }) =>
    path.split("/").slice(0, -1).slice(0, DEEP).at(depth),
  );
  const here = below.get(undefined) ?? [];
  below.delete(undefined);
  const folders = [...below].map(([name, inside]) => {
    const inner = treeOf(inside, depth + 1);
    const [only, ...others] = inner.folders;
    return only && !others.length && !inner.files.length
      ? { ...only, name: `${name}/${only.name}` }
      : { ...inner, name: String(name) };
  });
  return { folders, files: here };
}

/** Pixels from which both sides of a change are side by side. */
const TWO_SIDES = 700;

/** Most files that are listed. */
const LISTED_FILES = 2000;

/** Most changes of a file that are drawn: the last ones. */
const EDITS = 50;

/**
 * @param {HTMLElement} host
 * @param {Item[]} changes
 * @param {{board: Board, file: string | null, choose: (path: string) => void}} view
 */
export function drawChanges(host, changes, view) {
  const files = filesOf(changes);
  const chosen = files.find((file) => file.path === view.file) ?? files[0];
  const sum = (/** @type {"added" | "removed"} */ what) =>
    files.reduce((lines, file) => lines + file[what], 0);
  const sums = counts(sum("added"), sum("removed"));
  const head = el("h2", `${plural(files.length, "file")} changed`, sums);
  const two = host.clientWidth >= TWO_SIDES;
  const maker = { ...view.board.maker, two };
  const last = () => chosen.edits.slice(-EDITS);
  const edits = view.board.fill(el("div.files"), "changes", maker, last);
  const tree = treeNode(treeOf(files.slice(0, LISTED_FILES)), chosen, view);
  host.replaceChildren(el("div.files", el("section.section", head, tree), edits));
}

/** @param {Omit<Folder, "name">} folder @param {ChangedFile} chosen @param {{choose: (path: string) => void}} view @returns {HTMLElement} */
function treeNode(folder, chosen, view) {
  const folders = folder.folders.map((inner) =>
    el(
      "li",
      el("div.folder", icon("folder"), line(inner.name, 300) || "/"),
      treeNode(inner, chosen, view),
    ),
  );
  const files = folder.files.map((file) =>
    el(
      "li",
      el(
        "button",
        {
          type: "button",
          "aria-current": String(file === chosen),
          onclick: () => view.choose(file.path),
        },
        icon(file.isNew ? "edit" : "read"),
        el("span.name", line(file.path.split("/").at(-1), 300)),
        counts(file.added, file.removed),
      ),
    ),
  );
  return el("ul.tree", ...folders, ...files);
}
