// Markdown becomes a tree of elements of ours and texts, and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf, markOf, markText, safeLink } from "./page.mjs";

const drawn = (text) => blocksOf(text).map((block) => markOf(block));

/** A tree in a short form: texts, and lists of a tag and what is in it. */
const short = (mark) => (typeof mark === "string" ? mark : [mark.tag, ...mark.inner.map(short)]);
const shorts = (text) => drawn(text).map(short);

const every = (marks) =>
  marks.flatMap((mark) => (typeof mark === "string" ? [] : [mark, ...every(mark.inner)]));

test("paragraphs, headings, rules and quotes", () => {
  assert.deepEqual(shorts("One\ntwo\n\n## Head ##\n---\n> said\n> so"), [
    ["p", "One\ntwo"],
    ["h4", "Head"],
    ["hr"],
    ["blockquote", ["p", "said\nso"]],
  ]);
});

test("emphasis, code, deletions and escapes", () => {
  assert.deepEqual(shorts("a *b* **c `d*` e** ~~f~~ \\*g\\* snake_case_name 2*3*4"), [
    [
      "p",
      "a ",
      ["em", "b"],
      " ",
      ["strong", "c ", ["code", "d*"], " e"],
      " ",
      ["del", "f"],
      " ",
      "*",
      "g",
      "*",
      " snake_case_name 2",
      ["em", "3"],
      "4",
    ],
  ]);
  assert.deepEqual(shorts("***both*** and `` a ` b ``"), [
    ["p", ["strong", ["em", "both"]], " and ", ["code", "a ` b"]],
  ]);
  assert.deepEqual(shorts("a * b * c ** d"), [["p", "a * b * c ** d"]]);
});

test("lists, in each other, numbered and with boxes", () => {
  assert.deepEqual(shorts("- one\n- two\n  - inner\n    more\n- [x] done\n- [ ] open"), [
    [
      "ul",
      ["li", "one"],
      ["li", "two", ["ul", ["li", "inner\nmore"]]],
      ["li", "☑ ", "done"],
      ["li", "☐ ", "open"],
    ],
  ]);
  const [list] = drawn("3. three\n4. four\n\n   still four");
  assert.equal(list.tag, "ol");
  assert.deepEqual(list.attrs, { start: "3" });
  assert.equal(list.inner.length, 2);
  assert.match(markText(list.inner[1]), /fourstill four/);
});

test("a text after a list is no part of it", () => {
  assert.deepEqual(shorts("- one\n\nAfter."), [
    ["ul", ["li", "one"]],
    ["p", "After."],
  ]);
});

test("a year at the beginning of a line in a paragraph begins no list", () => {
  assert.deepEqual(shorts("It was in\n1984. That year"), [["p", "It was in\n1984. That year"]]);
});

test("fences, open and closed, keep what is in them", () => {
  const [closed] = drawn("```python title\nx = '<b>' # *no*\n```");
  assert.deepEqual(closed.attrs, { "data-language": "python" });
  assert.deepEqual(short(closed), ["pre", ["code", "x = '<b>' # *no*"]]);
  assert.deepEqual(shorts("~~~\na\n```\nb"), [["pre", ["code", "a\n```\nb"]]]);
  assert.deepEqual(shorts("````\n```\n````\nafter"), [
    ["pre", ["code", "```"]],
    ["p", "after"],
  ]);
});

test("tables with sides", () => {
  const [table] = drawn("| a | b |\n|---|--:|\n| 1 | `x\\|y` |\n| only |");
  assert.deepEqual(short(table), [
    "table",
    ["thead", ["tr", ["th", "a"], ["th", "b"]]],
    ["tbody", ["tr", ["td", "1"], ["td", ["code", "x|y"]]], ["tr", ["td", "only"]]],
  ]);
  assert.deepEqual(table.inner[1].inner[0].inner[1].attrs, { class: "right" });
});

test("a line with a bar is no table without the line below", () => {
  assert.deepEqual(shorts("a | b"), [["p", "a | b"]]);
});

test("links lead to the web or to a mailbox, and tell where", () => {
  assert.deepEqual(shorts('[docs](https://example.com/a_(b) "title")'), [
    ["p", ["a", "docs"], ["span", " (example.com)"]],
  ]);
  assert.deepEqual(shorts("https://example.com/x?y=1. (see https://a.example)"), [
    ["p", ["a", "https://example.com/x?y=1"], ". (see ", ["a", "https://a.example"], ")"],
  ]);
  assert.deepEqual(shorts("<https://example.com> [mail](mailto:ada@example.com)"), [
    ["p", ["a", "https://example.com"], " ", ["a", "mail"], ["span", " (ada@example.com)"]],
  ]);
  assert.deepEqual(shorts("[example.com](https://example.com)"), [["p", ["a", "example.com"]]]);
  assert.deepEqual(shorts("[https://bank.example](https://evil.example)"), [
    ["p", ["a", "https://bank.example"], ["span", " (evil.example)"]],
  ]);
});

test("what is no such link is a text", () => {
  for (const url of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc",
    "//x",
    "/x",
    "https:\\\\x",
    "http://",
    "https://a\u0000b",
  ]) {
    const marks = every(drawn(`[go](${url})`));
    assert.deepEqual(
      marks.filter((mark) => mark.tag === "a"),
      [],
      url,
    );
    assert.equal(safeLink(url), null, url);
  }
  assert.match(markText(drawn("[go](javascript:alert(1))")[0]), /go \(javascript:alert\(1\)\)/);
});

test("pictures are links and load nothing", () => {
  assert.deepEqual(shorts("![a cat](https://example.com/cat.png)"), [
    ["p", ["a", "image: a cat"], ["span", " (example.com)"]],
  ]);
});

test("HTML is a text", () => {
  const text = "<script>alert(1)</script>\n<img src=x onerror=alert(1)>";
  assert.deepEqual(shorts(text), [["p", text]]);
});

test("tags and attributes are ours, whatever is written", () => {
  const pieces = [
    "<b>",
    "[",
    "](",
    ")",
    "*",
    "**",
    "_",
    "`",
    "```\n",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    "|",
    "|-|-|\n",
    "# ",
    "https://a.example",
    "javascript:x",
    "\\",
    "~~",
    "![",
    " ",
    "a\n",
  ];
  const tags = new Set(
    "a blockquote code del em h3 h4 h5 h6 hr li ol p pre span strong table tbody td th thead tr ul".split(
      " ",
    ),
  );
  const names = new Set(["href", "class", "start", "data-language"]);
  let seed = 7;
  const next = (most) => (seed = (seed * 1103515245 + 12345) % 2147483648) % most;
  for (let round = 0; round < 3000; round++) {
    const text = Array.from({ length: 1 + next(30) }, () => pieces[next(pieces.length)]).join("");
    for (const mark of every(drawn(text))) {
      assert.ok(tags.has(mark.tag), `${mark.tag} of ${text}`);
      for (const [name, value] of Object.entries(mark.attrs ?? {})) {
        assert.ok(names.has(name), name);
        if (name === "href") assert.ok(safeLink(value), value);
      }
    }
  }
});

test("nothing of a text is lost but its marks", () => {
  const text =
    "One **two** three [four](https://five.example)\n\n- six\n- seven\n\n| eight | nine |\n|---|---|\n| ten | eleven |";
  const shown = drawn(text).map(markText).join(" ");
  for (const word of [
    "One",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
  ])
    assert.match(shown, new RegExp(word));
});

test("bad texts take no longer than others", () => {
  const bad = [
    "*a ".repeat(30000),
    "[".repeat(60000),
    "`".repeat(30000) + "a",
    "> ".repeat(20000),
    "a|".repeat(20000) + "\n" + "|-".repeat(20000),
    "- ".repeat(20000),
    "_a_b".repeat(20000),
    "**a*".repeat(20000),
    "<https://".repeat(9000),
    "\n".repeat(90000),
    "![](".repeat(20000),
    "` `` ".repeat(9000),
  ];
  for (const text of bad) {
    const began = performance.now();
    const marks = drawn(text);
    assert.ok(marks.length < 100000);
    assert.ok(performance.now() - began < 2000, `${text.slice(0, 10)}: ${performance.now() - began} ms`);
  }
});

test("a block stays the same when a text goes on behind it", () => {
  const before = blocksOf("One.\n\n```\ncode\n```\n\nTw");
  const after = blocksOf("One.\n\n```\ncode\n```\n\nTwo and\n\nthree");
  assert.deepEqual(after.slice(0, 2), before.slice(0, 2));
});
