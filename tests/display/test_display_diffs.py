"""Changes of files: what is shown of them, and that it costs little."""

from __future__ import annotations

import random
from itertools import pairwise, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell import ToolView
from thinkwell import events as ev
from thinkwell._display import diffs
from thinkwell._display.compare import STEPS, compare
from thinkwell._display.diffs import DiffLine, Excerpt, FileChange, changes_of, excerpt, total

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


def apply(old: Sequence[str], new: Sequence[str], steps: int = STEPS) -> list[str]:
    made: list[str] = []
    at = 0
    for change in compare(old, new, steps).changes:
        made += old[at : change.old_from]
        made += new[change.new_from : change.new_to]
        at = change.old_to
    return [*made, *old[at:]]


@given(WORDS, WORDS, st.sampled_from([STEPS, 3, 0]))
def test_what_differs_makes_one_of_the_other(old: list[str], new: list[str], steps: int) -> None:
    assert apply(old, new, steps) == new


def longest_common(old: Sequence[str], new: Sequence[str]) -> int:
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, j in product(range(len(old)), range(len(new))):
        same = old[i] == new[j]
        lengths[i + 1][j + 1] = lengths[i][j] + 1 if same else max(lengths[i][j + 1], lengths[i + 1][j])
    return lengths[-1][-1]


@given(WORDS, WORDS)
def test_no_more_differs_than_must(old: list[str], new: list[str]) -> None:
    found = compare(old, new)
    assert found.exact
    kept = len(old) - sum(change.old_to - change.old_from for change in found.changes)
    assert kept == longest_common(old, new)


@given(WORDS, WORDS)
def test_equal_lines_stand_between_changes(old: list[str], new: list[str]) -> None:
    changes = compare(old, new).changes
    for before, after in pairwise(changes):
        assert before.old_to < after.old_from
        assert after.old_from - before.old_to == after.new_from - before.new_to


@pytest.mark.parametrize("size", [2_000, 20_000])
def test_hostile_texts_take_a_bounded_number_of_steps(size: int) -> None:
    dice = random.Random(1)
    texts = [
        ([str(n) for n in range(size)], [str(n) for n in reversed(range(size))]),
        (["a", "b"] * size, ["b", "a", "c"] * size),
        ([dice.choice("ab") for _ in range(size)], [dice.choice("ab") for _ in range(size)]),
        (["x", *["a"] * size, "y"], ["z", *["a"] * size, *["b"] * size, "w"]),
    ]
    for old, new in texts:
        found = compare(old, new)
        assert found.steps <= STEPS + len(old) + len(new)
        assert apply(old, new) == new


def edit(
    old: str | None,
    new: str,
    path: str = "/p/a.py",
    *,
    line: int | None = None,
    status: ev.ToolStatus = "completed",
) -> ToolView:
    return ToolView(
        id="t",
        kind="edit",
        status=status,
        content=(ev.DiffContent(path=path, old_text=old, new_text=new),),
        locations=() if line is None else (ev.Location(path=path, line=line),),
    )


def change(old: str | None, new: str, **options: int) -> FileChange:
    (found,) = changes_of(edit(old, new, line=options.get("line")), "/p")
    return found


def lines(found: FileChange) -> list[str]:
    return [f"{each.number or ''}{each.sign}{each.text}" for hunk in found.hunks for each in hunk.lines]


NUMBERED = "".join(f"line {n}\n" for n in range(1, 41))


def test_a_change() -> None:
    found = change(NUMBERED, NUMBERED.replace("line 20\n", "line twenty\nand more\n"))
    assert (found.path, found.added, found.removed) == ("a.py", 2, 1)
    assert (found.new_file, found.truncated, found.more_hunks) == (False, False, 0)
    assert lines(found) == [
        "18 line 18",
        "19 line 19",
        "20-line 20",
        "20+line twenty",
        "21+and more",
        "22 line 21",
        "23 line 22",
    ]


def test_words_that_changed() -> None:
    (hunk,) = change("total = price * count\n", "total = price * max(count, 1)\n").hunks
    assert hunk.lines == (
        DiffLine(sign="-", text="total = price * count", spans=()),
        DiffLine(sign="+", text="total = price * max(count, 1)", spans=((16, 20), (25, 29))),
    )


def test_lines_with_little_in_common_have_no_such_words() -> None:
    (hunk,) = change("return None\n", "raise ValueError(f'no {name} here')\n").hunks
    assert [each.spans for each in hunk.lines] == [(), ()]
    (hunk,) = change("\n", "   \n").hunks
    assert [each.spans for each in hunk.lines] == [(), ()]


def test_words_next_to_each_other_are_one() -> None:
    (hunk,) = change("call(alpha beta, gamma, delta)\n", "call(one two, gamma, delta)\n").hunks
    assert [each.spans for each in hunk.lines] == [((5, 15),), ((5, 12),)]


def test_lines_that_are_alike_but_long_are_not_compared_for_ever() -> None:
    one = " ".join(f"{n}a" for n in range(120))
    other = " ".join(f"{n}b" for n in range(120))
    (hunk,) = change(f"{one}\n", f"{other}\n").hunks
    assert [each.spans for each in hunk.lines] == [(), ()]


@pytest.mark.parametrize(
    ("old", "line", "first"),
    [
        (None, None, 1),
        (NUMBERED, None, 18),
        (NUMBERED, 20, 18),
        (NUMBERED, 100, 117),
        ("line 19\nline 20\nline 21", None, None),
        ("line 19\nline 20\nline 21", 55, 55),
    ],
)
def test_numbers_of_lines_are_told_where_they_are_known(
    old: str | None, line: int | None, first: int | None
) -> None:
    new = "text\n" if old is None else old.replace("line 20", "line twenty")
    (found,) = changes_of(edit(old, new, line=line), "/p")
    assert found.hunks[0].lines[0].number == first


def test_a_new_file() -> None:
    found = change(None, "a\nb\n")
    assert (found.new_file, found.added, found.removed) == (True, 2, 0)
    assert lines(found) == ["1+a", "2+b"]
    assert change(None, "").hunks == ()


def test_nothing_changed() -> None:
    found = change("a\n", "a\n")
    assert (found.added, found.removed, found.hunks) == (0, 0, ())
    assert excerpt(found) == Excerpt((), 0, 0)


def test_hunks_are_counted_where_there_are_too_many() -> None:
    old = [f"{n}\n" for n in range(400)]
    new = [f"{n}!\n" if n % 10 == 0 else f"{n}\n" for n in range(400)]
    found = change("".join(old), "".join(new))
    assert (len(found.hunks), found.more_hunks, found.added) == (diffs.HUNKS, 20, 40)
    assert excerpt(found).more_hunks == 39


def test_lines_of_a_hunk_are_counted_where_there_are_too_many() -> None:
    found = change("".join(f"old {n}\n" for n in range(500)), "new\n" * 300)
    (hunk,) = found.hunks
    assert (len(hunk.lines), hunk.more_lines) == (2 * diffs.SIDE, 800 - 2 * diffs.SIDE)


def test_many_changes_close_to_each_other() -> None:
    old = "".join(f"{n}\nsame\n" for n in range(300))
    new = "".join(f"{n}!\nsame\n" for n in range(300))
    (hunk,) = change(old, new).hunks
    assert hunk.more_lines > 0
    changed = sum(each.sign != " " for each in hunk.lines)
    assert changed + hunk.more_lines == 600


def test_texts_that_are_too_long_are_compared_by_their_ends() -> None:
    head, tail = "head\n" * 50_000, "tail\n" * 50_000
    found = change(f"{head}a\nb\nc\n{tail}", f"{head}x\nb\nz\n{tail}")
    assert (found.added, found.removed, found.truncated) == (3, 3, True)
    assert lines(found)[0] == "49999 head"


def test_what_was_compared_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = edit("remembered\n", "or not\n")
    first = changes_of(tool, "/p")
    assert changes_of(tool, "/elsewhere")[0].path == "/p/a.py"

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(diffs, "compare", fail)
    assert changes_of(tool, "/p")[0].hunks is first[0].hunks


def test_not_all_is_remembered() -> None:
    old = "a\n" * diffs.SIDE
    number = diffs.KNOWN // (2 * diffs.SIDE)
    for _ in range(number + 10):
        changes_of(edit(old, old.replace("a", f"{_}.")), "")
    assert diffs._known._lines <= diffs.KNOWN
    assert number // 2 < len(diffs._known._changes) <= number


def test_of_many_changes_the_first_ones_are_compared_line_by_line() -> None:
    parts = tuple(
        ev.DiffContent(path=f"{n}.py", old_text="a\nb\nc\n", new_text="x\nb\nz\n")
        for n in range(diffs.FULLY + 1)
    )
    *most, last = changes_of(ToolView(id="t", content=parts), "")
    assert [(len(each.hunks), each.more_hunks, each.truncated) for each in most] == [
        (1, 0, False)
    ] * diffs.FULLY
    assert (last.added, last.removed, last.hunks, last.more_hunks, last.truncated) == (3, 3, (), 1, True)


def test_several_changes_of_one_file_are_one() -> None:
    parts = tuple(ev.DiffContent(path="/p/a", old_text=f"{n}\n", new_text=f"{n}!\n") for n in range(30))
    other = ev.DiffContent(path="/p/b", new_text="b\n")
    tool = ToolView(id="t", status="completed", content=(*parts, other, ev.TerminalContent(terminal_id="x")))
    one, two = changes_of(tool, "/p")
    assert (one.path, one.added, len(one.hunks), one.more_hunks) == ("a", 30, diffs.HUNKS, 10)
    assert two.path == "b"


def test_total() -> None:
    tools = [
        edit("a\n", "b\n"),
        edit("b\n", "c\nd\n"),
        edit(None, "x\n", "/p/x"),
        edit("a", "z", status="failed"),
    ]
    assert total(tools, "/p") == (2, 4, 2)


def test_texts_of_a_change_are_clean() -> None:
    found = change("\x1b[2Ja\r\n\tb\rc\n", f"\x1b[2Jb\u202e\r\n\tb\rd\n{'w' * 700}\n")
    assert lines(found) == ["-a", "-    b␍c", "+b\\u202e", "+    b␍d", f"+{'w' * (diffs.WIDTH - 1)}…"]
    (odd,) = changes_of(edit("a", "b", "file:///p/sub%20dir/\x1b[31mx\n"), "/p")
    assert odd.path == "sub dir/x"


@pytest.mark.parametrize(
    ("old", "new", "limit", "shown", "more"),
    [
        ("a b c d e f", "a b X d e f", 8, " a  b -c +X  d  e", 0),
        ("a b c d e f", "a b X d e f", 4, " b -c +X", 3),
        ("a b c d e f", "a b X d Y f", 8, " a  b -c +X  d -e +Y  f", 0),
        ("a b c d e f", "a b X d Y f", 6, " b -c +X  d -e +Y", 2),
        ("a b c d e f", "a b X d Y f", 5, " b -c +X", 5),
        ("1 2 3 4 5 6 7 8", "a b c d e f g h", 4, "-1 -2 +a +b", 12),
        ("1 2 3 4 5 6 7 8", "a", 4, "-1 -2 -3 +a", 5),
        ("1", "a b c d e f g h", 4, "-1 +a +b +c", 5),
        ("1 2 3", "a b c", 2, "-1 +a", 4),
        ("k 1 2 3", "k a b c", 2, "-1 +a", 5),
    ],
)
def test_excerpt(old: str, new: str, limit: int, shown: str, more: int) -> None:
    part = excerpt(change("\n".join(old.split()), "\n".join(new.split())), limit)
    assert " ".join(f"{each.sign}{each.text}" for each in part.lines) == shown
    assert (part.more_lines, part.more_hunks) == (more, 0)


@given(
    st.lists(st.sampled_from("abcd"), max_size=40),
    st.lists(st.sampled_from("abcd"), max_size=40),
    st.integers(1, 12),
)
def test_an_excerpt_is_short_and_counts_the_rest(old: list[str], new: list[str], limit: int) -> None:
    found = change("\n".join(old), "\n".join(new))
    part = excerpt(found, limit)
    assert len(part.lines) <= limit
    if found.hunks:
        assert len(part.lines) + part.more_lines == len(found.hunks[0].lines) + found.hunks[0].more_lines
        assert any(each.sign != " " for each in part.lines)
