// @ts-check
/** The files that a run has changed. */

import { filesChanged, sumsOf } from "./changes.js";
import { diffNode } from "./difftable.js";
import { counts, el, icon, nothing } from "./elements.js";
import { plural } from "./numbers.js";
import { line } from "./text.js";

/**
 * @import {ChangedFile} from "./changes.js"
 * @import {State} from "./state.js"
 */

/**
 * @typedef {object} Folder A folder of a tree of changed files.
 * @property {string} name
 * @property {Folder[]} folders
 * @property {ChangedFile[]} files
 */

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

/** The tree with a folder that only holds another one in one line with it. @param {Folder} folder @returns {Folder} */
function joined(folder) {
  const folders = folder.folders.map(joined).map((inner) => {
    const [only] = inner.folders;
    return inner.folders.length === 1 && !inner.files.length
      ? { ...only, name: `${inner.name}/${only.name}` }
      : inner;
  });
  return { ...folder, folders };
}

/** Pixels from which on both sides of a change stand beside each other. */
const TWO_SIDES = 700;

/** Files that are listed. */
const LISTED_FILES = 2000;

/**
 * @param {HTMLElement} host
 * @param {State} state
 * @param {{file: string | null, choose: (path: string) => void}} view
 */
export function drawChanges(host, state, view) {
  const files = filesChanged(state);
  if (!files.length) return host.replaceChildren(nothing("The agent has changed no files so far."));
  const chosen = files.find((file) => file.path === view.file) ?? files[0];
  const head = el("h2", {}, `${plural(files.length, "file")} changed`, counts(...sumsOf(files)));
  const two = host.clientWidth >= TWO_SIDES;
  const edits = chosen.edits.slice(-50);
  host.replaceChildren(
    el(
      "div",
      { class: "files" },
      el("section", { class: "section" }, head, treeNode(treeOf(files.slice(0, LISTED_FILES)), chosen, view)),
      ...edits.map(({ change, status }) => {
        const about =
          status === "done" ? null : el("span", { class: "dim" }, status === "pending" ? "proposed" : status);
        return diffNode(change, { two, title: line(chosen.path, 500), about });
      }),
    ),
  );
}

/**
 * @param {Folder} folder
 * @param {ChangedFile} chosen
 * @param {{choose: (path: string) => void}} view
 * @returns {HTMLElement}
 */
function treeNode(folder, chosen, view) {
  const folders = folder.folders.map((inner) =>
    el(
      "li",
      {},
      el("div", { class: "folder" }, icon("folder"), line(inner.name, 300) || "/"),
      treeNode(inner, chosen, view),
    ),
  );
  const files = folder.files.map((file) =>
    el(
      "li",
      {},
      el(
        "button",
        { type: "button", "aria-current": String(file === chosen), onclick: () => view.choose(file.path) },
        icon(file.isNew ? "edit" : "read"),
        el("span", { class: "name" }, line(file.path.split("/").at(-1), 300)),
        counts(file.added, file.removed),
      ),
    ),
  );
  return el("ul", { class: "tree" }, ...folders, ...files);
}
