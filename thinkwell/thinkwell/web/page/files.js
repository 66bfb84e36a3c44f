// @ts-check
/** The files that a run has changed. */

import { counts, el, icon, nothing } from "./elements.js";
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
  /** @type {Map<string, ChangedFile>} */
  const files = new Map();
  for (const edit of edits) {
    const [, look, attributes] = /** @type {Json[]} */ (edit.node);
    const path = String(attributes.path);
    /** @type {ChangedFile} */
    const file = files.get(path) ?? {
      path,
      added: 0,
      removed: 0,
      isNew: look.includes("new"),
      edits: [],
    };
    files.set(path, file);
    file.added += attributes.value[0];
    file.removed += attributes.value[1];
    file.edits.push(edit);
  }
  return [...files.values()];
}

/** @param {ChangedFile[]} files @returns {Folder} */
export function treeOf(files) {
  /** @type {Folder} */
  const root = { name: "", folders: [], files: [] };
  for (const file of files) {
    const names = file.path.split("/").slice(0, -1).slice(0, 20);
    let folder = root;
    for (const name of names) {
      let inner = folder.folders.find((each) => each.name === name);
      if (inner === undefined) folder.folders.push((inner = { name, folders: [], files: [] }));
      folder = inner;
    }
    folder.files.push(file);
  }
  return joined(root);
}

/**
 * The tree, with a folder that only contains another one on the same line. @param {Folder} folder
 * @returns {Folder}
 */
function joined(folder) {
  const folders = folder.folders.map(joined).map((inner) => {
    const [only] = inner.folders;
    return inner.folders.length === 1 && !inner.files.length
      ? { ...only, name: `${inner.name}/${only.name}` }
      : inner;
  });
  return { ...folder, folders };
}

/** Pixels from which both sides of a change are side by side. */
const TWO_SIDES = 700;

/** Most files that are listed. */
const LISTED_FILES = 2000;

/** Most changes of a file that are drawn: the last ones. */
const EDITS = 50;

/**
 * @param {HTMLElement} host
 * @param {Item[]} edits
 * @param {{board: Board, file: string | null, choose: (path: string) => void}} view
 */
export function drawChanges(host, edits, view) {
  const files = filesOf(edits);
  if (!files.length) return host.replaceChildren(nothing("The agent has changed no files so far."));
  const chosen = files.find((file) => file.path === view.file) ?? files[0];
  const [added, removed] = files.reduce(
    (sums, file) => [sums[0] + file.added, sums[1] + file.removed],
    [0, 0],
  );
  const head = el("h2", `${plural(files.length, "file")} changed`, counts(added, removed));
  const two = host.clientWidth >= TWO_SIDES;
  const shown = chosen.edits.slice(-EDITS).map(({ id }) => {
    const edit = el("div.diff");
    view.board.mount(edit, "changes", { two, only: id });
    return edit;
  });
  const tree = treeNode(treeOf(files.slice(0, LISTED_FILES)), chosen, view);
  host.replaceChildren(el("div.files", el("section.section", head, tree), ...shown));
}

/** @param {Folder} folder @param {ChangedFile} chosen @param {{choose: (path: string) => void}} view @returns {HTMLElement} */
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
