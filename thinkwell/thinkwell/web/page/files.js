// @ts-check
/** The files that a run has changed, as a tree of folders. */

/** @import {ChangedFile} from "./changes.js" */

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
