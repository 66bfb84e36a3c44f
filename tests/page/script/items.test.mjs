// The items of a run: in their places, as they stood at any moment, and what the page makes of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  filesOf,
  ItemLog,
  LONG,
  lanesOf,
  rowAt,
  safeLink,
  textOf,
  topsOf,
  treeOf,
  windowOf,
} from "./page.mjs";

/** A log of items, each given by what matters in it. */
const log = (...items) => {
  const made = new ItemLog();
  for (const {
    seq = 0,
    at = 0,
    id,
    place,
    began = at,
    ended = null,
    node = ["p", "", id],
    more = {},
  } of items)
    made.add([seq, at, id, place, began, ended, node, more], 100);
  return made;
};
const ids = (shown, place) => shown.inside(place).map(({ id }) => id);
const texts = (shown, place) => shown.inside(place).map(({ node }) => textOf(node));

test("items stand in their places in order, and move, change and go", () => {
  const made = log(
    { id: "c9", place: ["timeline", 9] },
    { id: "c3", place: ["timeline", 3] },
    { id: "c5", place: ["timeline", 5] },
  );
  assert.deepEqual(ids(made.now, "timeline"), ["c3", "c5", "c9"]);
  made.add([10, 1, "c5", ["f3", 5], 0, null, ["p", "", "moved"], {}], 1);
  made.add([10, 1, "c9", ["timeline", 9], 0, null, ["p", "", "changed"], {}], 1);
  made.add([10, 1, "c3", ["timeline", 3], 0, null, null, {}], 1);
  assert.deepEqual(texts(made.now, "timeline"), ["changed"]);
  assert.deepEqual(texts(made.now, "f3"), ["moved"]);
});

test("a moment of the past has what was there then", () => {
  const call = (at, node, place = "timeline") => ({
    seq: at,
    at,
    began: 1,
    id: "c1",
    place: [place, 1],
    node,
  });
  const made = log(
    call(1, ["p", "", "runs"]),
    call(3, ["p", "", "done"]),
    { seq: 4, at: 4, id: "c1", began: 1, place: ["f1", 1], node: ["p", "", "done"] },
    { seq: 4, at: 4, id: "n4", place: ["timeline", 4] },
    { seq: 6, at: 6, id: "n4", place: ["timeline", 4], node: null },
  );
  assert.deepEqual(texts(made.at(0), "timeline"), []);
  assert.deepEqual(texts(made.at(1), "timeline"), ["runs"]);
  assert.deepEqual(texts(made.at(3), "timeline"), ["done"]);
  assert.deepEqual([ids(made.at(4), "timeline"), ids(made.at(4), "f1")], [["n4"], ["c1"]]);
  assert.deepEqual(ids(made.at(6), "timeline"), []);
  assert.deepEqual(ids(made.at(5), "timeline"), ["n4"]);
});

test("a text that is closed is cut to what it was", () => {
  const made = log(
    { id: "m1", at: 1, place: ["timeline", 1], more: { cuts: [1, 4, 2, 8, 3, 16] } },
    { id: "m1.0", at: 9, began: 1, place: ["m1", 0], node: ["p", "", "abcd"] },
    { id: "m1.1", at: 9, began: 1, place: ["m1", 1], node: ["p", "", ["em", "", "efgh"], "ij"] },
    { id: "m1.2", at: 9, began: 1, place: ["m1", 2], node: ["pre", "", ["slot", ""]] },
    {
      id: "m1.2.0",
      at: 9,
      began: 1,
      place: ["m1.2", 0],
      node: ["lines", "", { text: "klmnop", runs: [6, "string"] }],
    },
  );
  const shown = (moment) =>
    texts(made.at(moment), "m1").join("|") + texts(made.at(moment), "m1.2").join("");
  assert.equal(shown(0.5), "");
  assert.equal(shown(1), "abcd");
  assert.equal(shown(2.5), "abcd|efgh");
  assert.equal(shown(3), "abcd|efghij|klmnop");
});

test("a text that goes on is what was told of it", () => {
  const part = (at, text) => ({
    id: "m1.0",
    seq: at,
    at,
    began: 1,
    place: ["m1", 0],
    node: ["p", "", text],
  });
  const made = log({ id: "m1", at: 1, place: ["timeline", 1] }, part(1, "One"), part(2, "One two"));
  assert.deepEqual(texts(made.at(1.5), "m1"), ["One"]);
  assert.deepEqual(texts(made.at(2), "m1"), ["One two"]);
});

test("the end of a run ends its time", () => {
  const made = log(
    { id: "final", at: 5, place: ["timeline", 99] },
    { id: "c1", at: 7, began: -1, place: ["timeline", 1] },
  );
  assert.deepEqual([made.begin, made.end, made.over], [-1, 5, true]);
});

test("each tool has a lane, and the rest share one", () => {
  const items = Array.from({ length: 12 }, (_, i) => ({
    id: `c${i}`,
    at: i,
    ended: i === 11 ? null : i + 1,
    place: ["timeline", i],
    more: { lane: `tool ${i}`, look: "done" },
  }));
  const lanes = lanesOf(log(...items));
  assert.deepEqual(
    lanes.map(({ name, bars }) => [name, bars.length]),
    [...Array.from({ length: 7 }, (_, i) => [`tool ${i}`, 1]), ["other tools", 5]],
  );
  assert.deepEqual(lanes[0].bars, [{ from: 0, to: 1, look: "done" }]);
  assert.equal(lanes[7].bars[4].to, null);
});

test("only rows near the visible part are in a long list", () => {
  const rows = Array.from({ length: 10000 }, (_, i) => ({ id: String(i) }));
  const tops = topsOf(rows, new Map([["3", 100]]), 40);
  assert.equal(tops[4], 220);
  const [from, to] = windowOf(tops, tops[5000], 800);
  assert.ok(from < 5000 && from > 4900 && to > 5020 && to < 5100, `${from} ${to}`);
  assert.deepEqual(windowOf(tops, 0, 800)[0], 0);
  assert.equal(windowOf(tops, 1e9, 800)[1], 10000);
  assert.equal(rowAt(tops, tops[77] + 1), 77);
  assert.deepEqual(windowOf(topsOf(rows.slice(0, LONG), new Map(), 40), 5000, 800), [0, LONG]);
  assert.deepEqual(windowOf(topsOf([], new Map(), 40), 0, 800), [0, 0]);
});

test("changed files stand in a tree, with their sums", () => {
  const edit = (id, path, value, look = "edit") => ({ id, node: ["div", look, { path, value }] });
  const files = filesOf([
    edit("e1", "src/deep/a.py", [2, 1]),
    edit("e2", "src/deep/a.py", [1, 1]),
    edit("e3", "b.py", [1, 0], "edit new"),
  ]);
  assert.deepEqual(
    files.map(({ path, added, removed, isNew, edits }) => [
      path,
      added,
      removed,
      isNew,
      edits.length,
    ]),
    [
      ["src/deep/a.py", 3, 2, false, 2],
      ["b.py", 1, 0, true, 1],
    ],
  );
  const tree = treeOf(files);
  assert.deepEqual(
    tree.folders.map((folder) => folder.name),
    ["src/deep"],
  );
  assert.deepEqual(
    tree.files.map((file) => file.path),
    ["b.py"],
  );
});

test("an address is checked once more before it is followed", () => {
  for (const url of [
    "javascript:alert(1)",
    "data:text/html,x",
    "//x",
    "/x",
    "https:\\\\x",
    "http://",
    "https://a\0b",
  ])
    assert.equal(safeLink(url), null, url);
  for (const url of ["https://example.com/x?y=1", "mailto:ada@example.com"])
    assert.equal(safeLink(url), url);
});

test("ten thousand items are taken, and a moment of them is found, in no time", () => {
  const began = performance.now();
  const items = Array.from({ length: 10000 }, (_, i) => ({
    id: `c${i}`,
    at: i,
    place: ["timeline", i],
  }));
  const made = log(...items, ...items.map((item) => ({ ...item, at: item.at + 10000 })));
  assert.equal(made.at(5000).inside("timeline").length, 5001);
  assert.ok(performance.now() - began < 2000);
});
