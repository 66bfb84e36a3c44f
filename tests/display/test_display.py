"""What all displays say: texts fit to be shown, and the words for a run and all that happens in it."""

# Private: pure functions of texts and views, told case by case: terminal, lines, HTML and notebook go by them

from __future__ import annotations

import json
import math
import random
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from progress.golden import events, every_recording
from tried import tried

from thinkwell import AuthMethod, FormField, RunView, TokenCounts, ToolView, ViewReducer, errors
from thinkwell import events as ev
from thinkwell._display import diffs, phases, plans, summary, usage
from thinkwell._display.cells import cells, clip, cut, pad, wrap
from thinkwell._display.changes import (
    Block,
    BlockBegun,
    BlockEnded,
    BlockGrown,
    CallBegun,
    CallChanged,
    CallEnded,
    Change,
    ChangeReader,
)
from thinkwell._display.chunks import CleanChunks
from thinkwell._display.compare import STEPS, compare
from thinkwell._display.diffs import DiffLine, Excerpt, FileChange, changes_of, excerpt
from thinkwell._display.explaining import EXPLAINED, explanation
from thinkwell._display.numbers import clock, count, money, plural, seconds
from thinkwell._display.paths import relative
from thinkwell._display.questions import KNOWN, Asked, Putting, allowed, answered, asked, verdict_words
from thinkwell._display.text import MARKS, SEQUENCE, clean, exact, in_json, is_clean, line, result_text
from thinkwell._display.tools import OUTPUT, describe, exit_code, fold, folds, output_of, tool_name
from thinkwell._display.usage import context_share, usage_words
from thinkwell._display.view_changes import ViewReader
from thinkwell.events import Cost
from thinkwell.questions import FieldChoice
from thinkwell.view import AnswerView, PhaseView, QuestionView, TimelineItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from thinkwell.events import JsonValue

HOSTILE = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x1b\x9b\x9d\x90\x9c[];?0123mHJP(\\\x07\r\n\t\x08\u200b\u200d\ufe0f\u0301 "
            "\u202e\u2066\U000e0041ea界👩"
        ),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("plain, as nearly all", "plain, as nearly all"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b[38;2;1;2;3mx\x1b[?25l\x1b[2 qy", "xy"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1bPsixel\x1b\\\x1b_kitty\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\y", "y"),
        ("\x90sixel\x9c\x9ekitty\x1b\\y", "y"),
        ("\x1b(B\x1bc\x1b=\x1b#8x", "x"),
        ("\x1b]never ends", "␛]never ends"),
        ("\x1b[never\nends\x1b", "ever\nends␛"),
        ("\x1b]0;a\x1b[31mb", "␛]0;ab"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("\x00\x07\x08\x7f", "␀␇␈␡"),
        ("\x85\x80", "\\u0085\\u0080"),
        ("a\u202eb\u202c\u2066c\u2069", "a\\u202eb\\u202c\\u2066c\\u2069"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("a\U000e0041b\U000e0100", "a\\U000e0041b\\U000e0100"),
        ("a\xa0b\u202fc\u3000d", "a b c\u3000d"),
        ("so\xadft\u200b\u200e\u200f\u2060\ufeff\u061c", "soft"),
        ("\ud800x", "\ufffdx"),
        ("👨\u200d👩\u200d👧 ❤\ufe0f", "👨\u200d👩\u200d👧 ❤\ufe0f"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\ue0b0 \U0001fae8 \U0001faff", "\ue0b0 \U0001fae8 \U0001faff"),
        ("\U000e1000\u2065", "\\U000e1000\\u2065"),
        ("e\u0301", "e\u0301"),
        ("\u0301e", "◌\u0301e"),
        ("Z" + "\u0301" * 50 + "a", "Z" + "\u0301" * MARKS + "a"),
        ("Z" + "\u0301" * 50, "Z" + "\u0301" * MARKS),
    ],
)
def test_clean(sent: str, shown: str) -> None:
    assert clean(sent) == shown


def test_a_string_for_a_device_that_is_too_long_is_shown() -> None:
    whole = "\x1b]0;" + "x" * (SEQUENCE - 2) + "\x07"
    assert clean(whole) == ""
    assert clean(whole.replace("x", "xx", 1)).startswith("␛]0;xx")


@given(HOSTILE)
def test_nothing_controls_a_terminal(sent: str) -> None:
    for char in clean(sent).replace("\n", "") + line(sent):
        assert (
            char.isprintable() or char in "\u200c\u200d\u3000" or unicodedata.category(char) in ("Co", "Cn")
        )
    assert all(char.isprintable() for char in exact(sent).replace("\n", ""))


@given(HOSTILE)
def test_what_is_clean_stays(sent: str) -> None:
    once = clean(sent)
    assert clean(once) == once


@given(HOSTILE, st.integers(1, 40))
def test_a_line_is_one_and_bounded(sent: str, limit: int) -> None:
    shown = line(sent, limit)
    assert "\n" not in shown
    assert "  " not in shown
    assert len(shown) <= limit


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (" a  b\n\tc ", "a b c"),
        ("short", "short"),
        (" x ", "x"),
        ("0123456789", "0123456789"),
        ("0123456789a", "012345678…"),
        ("\n" * 100 + "x", "…"),
        ("\x1b[31m" * 5 + "x" * 5, "xxxxx"),
    ],
)
def test_line(sent: str, shown: str) -> None:
    assert line(sent, 10) == shown


@given(HOSTILE)
def test_exact_drops_nothing(sent: str) -> None:
    shown = exact(sent.replace("\\", "/").replace('"', "'"))
    lines = [json.loads(f'"{each}"') for each in shown.split("\n")]
    assert "\n".join(lines) == sent.replace("\\", "/").replace('"', "'")


def test_exact_shows_what_does_not_show() -> None:
    assert exact("rm\t\u200b\u3164\ufe0f x\n\x1b[8m") == "rm\\u0009\\u200b\\u3164\\ufe0f x\n\\u001b[8m"
    assert exact("\U000e0041") == "\\udb40\\udc41"
    assert exact("a\u034fb\ufffc") == "a\\u034fb\\ufffc"


@given(HOSTILE)
def test_json_means_the_same(sent: str) -> None:
    shown = in_json(json.dumps(sent, ensure_ascii=False))
    assert json.loads(shown) == sent
    assert not set(shown) & set("\x7f\x80\x9b\u202e\u2066\u2028\U000e0041")


@pytest.mark.long
@pytest.mark.parametrize(
    "piece",
    [
        "\x1b",
        "\x1b[",
        "\x1b[0",
        "\x1b]",
        "\x1b]0;",
        "\x1bP",
        "\x9b",
        "\x9b;",
        "\x90",
        "0;",
        "\x1b(",
        "\x1b ",
        "\u0301",
        "\r",
    ],
)
def test_megabytes_take_no_longer_than_their_length(piece: str) -> None:
    for sent in (piece * 50_000, "\x1b[" + piece * 50_000, "\x1b]" + piece * 50_000):
        clean(sent)  # quadratic time would take minutes


def test_is_clean() -> None:
    assert is_clean("a b")
    assert not is_clean("a\nb")
    assert not is_clean("é")


# In chunks


def shown(*chunks: str) -> list[str]:
    """Return what is shown with each chunk, and what is left at the end."""
    text = CleanChunks()
    return [*(text.take(chunk) for chunk in chunks), text.rest()]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (("plain ", "text"), ["plain ", "text", ""]),
        (("a\x1b", "[31mred"), ["a", "red", ""]),
        (("a\x1b[3", "1", "mred"), ["a", "", "red", ""]),
        (("\x9b", "31mred"), ["", "red", ""]),
        (("\x1b]0;ti", "tle", "\x1b", "\\x"), ["", "", "", "x", ""]),
        (("\x90six", "el\x9cx"), ["", "x", ""]),
        (("\x1b(", "Bx"), ["", "x", ""]),
        (("\x1b]0;a", "\x1b[31mb"), ["", "␛]0;ab", ""]),
        (("a\x1b",), ["a", "␛"]),
        (("a\r", "\nb"), ["a", "\nb", ""]),
        (("a\r", "b\r"), ["a", "\nb", "\n"]),
        (("a\r\x1b[0m", "\nb"), ["a", "\nb", ""]),
        (("e", "\u0301!"), ["e", "\u0301!", ""]),
        (("\u0301", "e"), ["◌\u0301", "e", ""]),
        (("a\n", "\u0301"), ["a\n", "\u0301", ""]),
        (("\u200b", "\u0301"), ["", "◌\u0301", ""]),
        (("ab", "\tc", "\t"), ["ab", "  c", "   ", ""]),
        (("Z" + "\u0301" * 5, "\u0301" * 5), ["Z" + "\u0301" * 5, "\u0301" * (MARKS - 5), ""]),
    ],
)
def test_chunks(chunks: tuple[str, ...], expected: list[str]) -> None:
    assert shown(*chunks) == expected
    assert "".join(expected) == clean("".join(chunks))


@given(st.lists(HOSTILE))
def test_chunks_are_shown_as_the_whole_is(chunks: list[str]) -> None:
    assert "".join(shown(*chunks)) == clean("".join(chunks))


@given(HOSTILE)
def test_so_are_single_characters(text: str) -> None:
    assert "".join(shown(*text)) == clean(text)


@pytest.mark.parametrize("begin", ["\x1b]", "\x1b[", "\x1b", "\x1bP", "\x9b"])
@pytest.mark.parametrize("filling", ["1", " ", "\r"])
def test_what_never_ends_is_not_kept_for_ever(begin: str, filling: str) -> None:
    text = CleanChunks()
    returned = "".join(text.take(filling * 1_000) for _ in range(5))
    returned += text.take(begin) + "".join(text.take(filling * 1_000) for _ in range(50))
    assert len(returned) > 50_000 - 3 * SEQUENCE
    assert "\x1b" not in returned


# In cells

FAMILY = "👨\u200d👩\u200d👧"
LINES = st.text(alphabet=st.sampled_from("ab 数据é\u0301👩\u200d\ufe0f")).map(line)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("数据", 4),
        ("e\u0301", 1),
        (FAMILY, 2),
        ("❤\ufe0f", 2),
        ("", 0),
        ("a\u200cb", 2),
        ("ｱ", 1),
    ],
)
def test_cells(text: str, width: int) -> None:
    assert cells(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("数据库", 6, "数据库"),
        ("数据库", 5, "数据…"),
        ("数据库", 4, "数…"),
        (f"{FAMILY}ab", 3, f"{FAMILY}…"),
        ("数", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_clip(text: str, width: int, shown: str) -> None:
    assert clip(text, width) == shown


@given(LINES, st.integers(1, 30))
def test_what_is_clipped_fits(text: str, width: int) -> None:
    assert cells(clip(text, width)) <= width


@pytest.mark.long
def test_rows_that_are_found_fast_take_as_much_as_others() -> None:
    for char in map(chr, [*range(0x20, 0xD800), *range(0xE000, 0x20000)]):
        if char != "\u200d":  # joins what follows
            assert cells(char) == cells(f"{char}中") - 2, ascii(char)


def test_pad() -> None:
    assert pad("数", 4) == "数  "
    assert pad("long", 2) == "long"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("one\n\ntwo", 8, ["one", "", "two"]),
        ("  indented text goes on", 12, ["  indented", "  text goes", "  on"]),
        ("a unbreakable", 6, ["a unbr", "eakabl", "e"]),
        ("abc unbreakable", 4, ["abc", "unbr", "eaka", "ble"]),
        ("读 数据库迁移", 6, ["读 数", "据库迁", "移"]),
        ("      deep", 6, ["deep"]),
        ("x   ", 9, ["x"]),
    ],
)
def test_wrap(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


@example(" ⺀", 2)
@given(st.text().map(clean), st.integers(2, 30))
def test_nothing_but_white_space_is_lost(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cells(each) <= width for each in lines)


@given(LINES, st.integers(2, 30))
def test_pieces_are_the_whole(text: str, width: int) -> None:
    pieces = cut(text, width)
    assert "".join(pieces) == text
    assert all(cells(piece) <= width for piece in pieces)


# Numbers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0.0s"),
        (-1, "0.0s"),
        (3.21, "3.2s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (37.4, "37s"),
        (59.4, "59s"),
        (59.6, "1:00"),
        (102, "1:42"),
        (605, "10:05"),
        (3723, "1:02:03"),
        (360_000, "100:00:00"),
        (float("nan"), "?"),
        (float("inf"), "?"),
    ],
)
def test_seconds(value: float, shown: str) -> None:
    assert seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "00:00"), (102, "01:42"), (3723, "1:02:03"), (-5, "00:00"), (float("inf"), "00:00")],
)
def test_clock(value: float, shown: str) -> None:
    assert clock(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (18_234, "18.2k"),
        (99_949, "99.9k"),
        (99_960, "100k"),
        (200_000, "200k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (1_500_000, "1.5M"),
        (2_000_000_000, "2G"),
        (10**15, "1.0e+15"),
    ],
)
def test_count(value: int, shown: str) -> None:
    assert count(value) == shown


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        (0.0612, "USD", "$0.06"),
        (0.0012, "USD", "$0.0012"),
        (0, "EUR", "€0.00"),
        (1234.5, "CHF", "1,234.50 CHF"),
        (1, "", "1.00"),
        (1, "\x1b[2Jx\n", "1.00 x"),
        (float("inf"), "GBP", "£?"),
    ],
)
def test_money(amount: float, currency: str, shown: str) -> None:
    assert money(Cost(amount=amount, currency=currency)) == shown


def test_plural() -> None:
    assert (plural(1, "file"), plural(0, "file"), plural(1_200, "file")) == (
        "1 file",
        "0 files",
        "1,200 files",
    )
    assert plural(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("used", "size", "share"),
    [
        (10**400, 10, 1.0),
        (5, 10**400, 0.0),
        (-(10**400), 10, 0.0),
        (10**400, 2 * 10**400, 0.5),
        (1, -5, None),
    ],
)
def test_numbers_that_are_none(used: int, size: int, share: float | None) -> None:
    usage = ev.UsageUpdate(used=used, size=size, cost=ev.Cost(amount=float("nan"), currency="\x1b[2J"))
    view = RunView(usage=usage)
    assert context_share(view) == share
    assert "\x1b" not in usage_words(view)


@pytest.mark.parametrize(("input_", "cached"), [(-3, 3), (-7, 3), (5, -3)])
def test_negative_tokens_have_no_share(input_: int, cached: int) -> None:
    view = RunView(tokens=TokenCounts(input=input_, output=-1, cached_read=cached))
    assert usage_words(view) == f"{input_} in · -1 out"


# What a run is doing


def view_of(*events: ev.ThoughtEvent, error: Exception | None = None) -> RunView:
    reducer = ViewReducer(agent="mine", cwd="/p")
    reducer.apply(events)
    return reducer.snapshot(error)


RESPONDING = ev.PhaseChanged(phase="responding")
RUN = ev.ToolStart(id="r", kind="execute", title="`pytest`", status="in_progress")
ASKED = ev.QuestionAsked(id="q", title="May I?", tool_id="r")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], "opening a session"),
        (
            [ev.PhaseChanged(phase="starting", detail="another run\x1b[2J goes first")],
            "waiting: another run goes first",
        ),
        ([ev.PhaseChanged(phase="launching")], "looking for mine"),
        (
            [ev.PhaseChanged(phase="installing", detail="npm package x@1\x1b[2J")],
            "installing npm package x@1",
        ),
        ([ev.PhaseChanged(phase="initializing")], "starting mine"),
        ([ev.PhaseChanged(phase="authenticating")], "waiting for login"),
        ([ev.PhaseChanged(phase="prompted")], "waiting for the first token"),
        ([RESPONDING], "working"),
        ([RESPONDING, ev.Thought(text="x")], "thinking"),
        ([RESPONDING, ev.Thought(text="x"), ev.Message(text="y")], "answering"),
        ([RESPONDING, ev.Message(text="x"), ev.TurnStarted(number=2)], "waiting for the first token"),
        ([RESPONDING, RUN], "running pytest"),
        ([RESPONDING, RUN, ev.ToolStart(id="s", kind="read", title="x")], "reading x (+1 tool)"),
        ([RESPONDING, RUN, ev.ToolDone(id="r", status="completed")], "working"),
        ([RESPONDING, RUN, ASKED], "waiting for an answer"),
        ([RESPONDING, ev.Stalled(idle=31, limit=60)], "nothing heard for 31s"),
        ([ev.PhaseChanged(phase="completed")], "done"),
        ([RUN, ev.PhaseChanged(phase="cancelled")], "cancelled"),
    ],
)
def test_what_a_run_does(events: list[ev.ThoughtEvent], words: str) -> None:
    assert phases.words(view_of(*events)) == words


def test_cancelling() -> None:
    assert phases.words(view_of(RESPONDING, ASKED), cancelling=True) == "cancelling"
    assert phases.words(view_of(ev.PhaseChanged(phase="failed")), cancelling=True) == "failed"


def test_what_runs() -> None:
    assert [tool.id for tool in phases.running(view_of(RUN))] == ["r"]
    assert phases.running(view_of(RUN, ASKED)) == ()
    assert phases.running(view_of(RUN, ev.PhaseChanged(phase="failed"))) == ()


def test_a_phase_of_an_agent_without_a_name() -> None:
    assert phases.phase_words(PhaseView(phase="launching")) == "looking for the agent"


def test_durations() -> None:
    view = view_of(
        ev.PhaseChanged(phase="launching", seconds=0.5, at=-3),
        ev.PhaseChanged(phase="installing", seconds=2, at=-2.5),
        ev.PhaseChanged(phase="initializing", seconds=0.5, at=-0.5),
        ev.PhaseChanged(phase="prompted", at=1),
        ev.PhaseChanged(phase="responding", at=3),
        ev.PhaseChanged(phase="prompted", at=10),
        ev.PhaseChanged(phase="responding", at=11),
        ev.PhaseChanged(phase="completed", at=12),
    )
    assert phases.durations(view) == (("start", 1.0), ("install", 2.0), ("first token", 3.0), ("answer", 8.0))


# Plans


def plan(*steps: str, done: int = 0, current: int | None = None) -> RunView:
    statuses: list[Any] = ["completed" if n < done else "pending" for n in range(len(steps))]
    if current is not None:
        statuses[current] = "in_progress"
    entries = tuple(
        ev.PlanEntry(content=step, status=status) for step, status in zip(steps, statuses, strict=True)
    )
    return view_of(ev.PlanUpdate(entries=entries))


SIX = ("one", "two", "three", "four", "five", "six")


@pytest.mark.parametrize(
    ("view", "width", "text", "progress"),
    [
        (plan("a", "b\nc", done=1), 80, "✔ a   · b c", "1/2"),
        (plan(*SIX, done=2, current=2), 99, "✔ one   ✔ two   ▸ three   · four   · five   · six", "2/6"),
        (plan(*SIX, done=2, current=2), 48, "✔ one   ✔ two   ▸ three   · four   · five   …", "2/6"),
        (plan(*SIX, done=2, current=2), 43, "…   ✔ two   ▸ three   · four   · five   …", "2/6"),
        (plan(*SIX, done=2, current=2), 32, "…   ✔ two   ▸ three   · four   …", "2/6"),
        (plan(*SIX, done=2), 26, "…   · three   · four   …", "2/6"),
        (plan(*SIX, done=6), 27, "…   ✔ four   ✔ five   ✔ six", "6/6"),
        (plan(*SIX, done=6), 3, "…   ✔ six", "6/6"),
        (plan("数" * 300), 10, f"· {'数' * 199}…", "0/1"),
    ],
)
def test_a_plan_in_a_line(view: RunView, width: int, text: str, progress: str) -> None:
    shown = plans.plan_line(view, width)
    assert shown is not None
    assert (shown.text, shown.progress) == (text, progress)


def test_the_steps_of_a_plan() -> None:
    whole = plans.plan_line(plan(*SIX, done=1, current=1), 200)
    assert whole is not None
    assert [(step.content, step.status) for step in whole.steps][:3] == [
        ("one", "completed"),
        ("two", "in_progress"),
        ("three", "pending"),
    ]
    assert (whole.before, whole.after, whole.total) == (0, 0, 6)


def test_no_plan() -> None:
    assert plans.plan_line(view_of(), 80) is None


# Usage


@pytest.mark.parametrize(
    ("used", "tokens", "words"),
    [
        (None, None, "usage not reported"),
        (ev.UsageUpdate(used=18_234, size=200_000), None, "18.2k/200k ctx"),
        (ev.UsageUpdate(used=5, size=0), None, "5 ctx"),
        (
            ev.UsageUpdate(used=18_234, size=200_000, cost=ev.Cost(amount=0.06, currency="USD")),
            TokenCounts(input=5_000, output=4_100, cached_read=4_600),
            "18.2k/200k ctx · 4.1k out · 92% cached · $0.06 (agent)",
        ),
        (None, TokenCounts(input=5_000, output=4_100), "5k in · 4.1k out"),
        (None, TokenCounts(total=70), "70 tokens"),
        (None, TokenCounts(), "usage not reported"),
        (None, TokenCounts(input=100, cached_read=900), "100 in · 90% cached"),
        (None, TokenCounts(input=100, cached_read=100, total=200), "100 in · 50% cached"),
        (None, TokenCounts(input=100, cached_read=100, total=100), "100 in · 100% cached"),
        (None, TokenCounts(input=0, cached_read=0), "0 in"),
        (
            None,
            TokenCounts(input=100, output=1, cached_read=50, cached_write=50, total=201),
            "100 in · 1 out · 25% cached",
        ),
    ],
)
def test_usage(used: ev.UsageUpdate | None, tokens: TokenCounts | None, words: str) -> None:
    assert usage.usage_words(RunView(usage=used, tokens=tokens)) == words


def test_how_full_the_window_is() -> None:
    assert usage.context_share(RunView()) is None
    assert usage.context_share(RunView(usage=ev.UsageUpdate(used=1, size=0))) is None
    assert usage.context_share(RunView(usage=ev.UsageUpdate(used=50, size=200))) == 0.25
    assert usage.context_share(RunView(usage=ev.UsageUpdate(used=500, size=200))) == 1.0


# The end


def edited(
    id_: str, path: str, old: str, new: str, status: ev.FinalStatus = "completed"
) -> list[ev.ThoughtEvent]:
    diff = ev.DiffContent(path=path, old_text=old, new_text=new)
    return [
        ev.ToolStart(id=id_, kind="edit", title="x"),
        ev.ToolDone(id=id_, status=status, content=(diff,)),
    ]


def test_a_summary() -> None:
    view = view_of(
        ev.SessionOpened(agent="mine", cwd="/p", session_id="s\x1b[2J", model="m"),
        *edited("1", "/p/a", "a\n", "b\n"),
        *edited("2", "/p/a", "b\n", "c\nd\n"),
        *edited("3", "/p/b", "x\n", "y\n", "failed"),
        *edited("4", "/p/b", "x\n", "y\n", "cancelled"),
        ev.QuestionAsked(id="q", title="Delete\nall"),
        ev.QuestionAnswered(id="q", choice="reject_once", by="policy", why=""),
        ev.ResultAttempt(accepted=False),
        ev.ResultAttempt(accepted=True),
        ev.TurnEnded(number=1, stop_reason="end_turn"),
        ev.PhaseChanged(phase="completed"),
    )
    told = summary.summary(view, 3.0, "runs/r.ndjson")
    assert (told.status, told.agent, told.model, told.session_id) == ("done", "mine", "m", "s")
    assert [(change.path, change.added, change.removed) for change in told.changes] == [("a", 3, 2)]
    assert (told.tools, told.tools_failed, told.tools_cancelled) == (4, 1, 1)
    assert (told.refused, told.denied) == (1, ("Delete all",))
    assert (told.error, told.recording, told.usage) == (None, "runs/r.ndjson", "usage not reported")
    assert told.work == "4 tools, 1 failed, 1 cancelled · 1 file changed, +3 −2 · 1 result refused · 1 denied"


def test_a_summary_of_nothing() -> None:
    told = summary.summary(RunView(), 0.0)
    assert (told.status, told.work, told.recording, told.session_id) == ("running", "", "", "")


@pytest.mark.parametrize(
    ("phase", "error", "status"),
    [
        ("completed", None, "done"),
        ("failed", errors.AgentExited(1), "failed"),
        ("failed", errors.AgentClosed(), "cancelled"),
        ("cancelled", errors.ThoughtCancelled(), "cancelled"),
        ("cancelled", errors.ThoughtTimeout(3), "cancelled"),
        ("responding", None, "running"),
        ("failed", None, "failed"),
    ],
)
def test_how_a_run_ended(phase: ev.Phase, error: Exception | None, status: str) -> None:
    assert summary.status_of(view_of(ev.PhaseChanged(phase=phase), error=error)) == status


METHODS = (AuthMethod(id="key", name="An API key"), AuthMethod(id="web", name="Browser\x1b[2J"))


@pytest.mark.parametrize(
    ("error", "what", "next_", "detail"),
    [
        (
            errors.AgentNotFound("x", "no program of that name", next_command="npm i -g x"),
            "Agent 'x' was not found: no program of that name",
            "type: npm i -g x",
            "",
        ),
        (
            errors.AgentStartFailed("x", "it ended", stderr_tail="boom\x1b[31m\n", version="1.0"),
            "Agent 'x' (version 1.0) could not be started: it ended",
            "",
            "boom",
        ),
        (
            errors.AgentExited(1, "line one\nline two\n", agent="x"),
            "Agent 'x' exited with code 1 before it had finished",
            "open it again to go on",
            "line one\nline two",
        ),
        (
            errors.LoginRequired("x", METHODS),
            "Agent 'x': it wants a login first",
            "log in: thinkwell login x",
            "key: An API key\nweb: Browser",
        ),
        (
            errors.ResultMissing("max_tokens", ""),
            "The agent ended its turn (max_tokens) without a result",
            "ask for less, or for a smaller result",
            "It said nothing",
        ),
        (
            errors.ResultMissing("end_turn", "Hm.", denied=["x"]),
            "The agent ended its turn (end_turn) without a result",
            "allow what it needs by permissions=; it was denied 1 thing",
            "It said: Hm.",
        ),
        (
            errors.ResultInvalid({}, ["a: missing", "b: missing"], 3),
            "The agent returned no valid result in 3 attempts",
            "say in the prompt what the result has to be, or allow more in its type",
            "a: missing\nb: missing",
        ),
        (errors.ResultRefused("No."), "The model refused", "put the prompt differently", "No."),
        (
            errors.ToolsNotSeen(["http"]),
            "The agent never asked for our tools over http",
            "Its settings may forbid MCP servers in this folder; its log says more",
            "",
        ),
        (errors.ThoughtCancelled(), "The run was cancelled", "", ""),
        (
            errors.ThoughtTimeout(3),
            "The run took longer than 3 seconds and was cancelled",
            "give it more time, or ask for less",
            "",
        ),
        (
            errors.ThoughtTimeout(3, idle=True),
            "Nothing was heard of the agent for 3 seconds, and the run was cancelled",
            "raise idle_timeout= if it needs longer",
            "",
        ),
        (errors.QuestionsStopped("enough", "q1"), "The run was ended over question q1: enough", "", ""),
        (OSError("x" * 5_000), f"OSError: {'x' * 1_990}…", "", ""),
        (KeyError(), "KeyError", "", ""),
    ],
)
def test_errors(error: Exception, what: str, next_: str, detail: str) -> None:
    assert summary.error_words(error) == (what, next_, detail)


def test_what_is_noted_at_an_error() -> None:
    error = OSError("full")
    error.add_note("delete something")
    assert summary.error_words(error).next == "delete something"


def test_a_long_detail_keeps_its_end() -> None:
    detail = summary.error_words(errors.AgentExited(1, "x" * 9_000 + "end")).detail
    assert len(detail) == summary.DETAIL
    assert detail.startswith("…x")
    assert detail.endswith("end")


def test_a_tool_view_alone_is_shown() -> None:
    view = RunView(phase="responding", tools={"t": ToolView(id="t", kind="read")})
    assert phases.words(view) == "reading"


# Tool calls

CWD = "/home/ada/shop"


def tool(kind: ev.ToolKind = "other", title: str = "", **more: Any) -> ToolView:
    return ToolView(id="t", kind=kind, title=title, **more)


def said(kind: ev.ToolKind, title: str = "", **more: Any) -> str:
    call = describe(tool(kind, title, **more), CWD)
    return f"{call.verb} {call.target}".rstrip()


def at(*paths: str, line: int | None = None) -> tuple[ev.Location, ...]:
    return tuple(ev.Location(path=path, line=line) for path in paths)


@pytest.mark.parametrize(
    ("kind", "title", "more", "words"),
    [
        ("read", "Read x", {"locations": at(f"{CWD}/a.py")}, "read a.py"),
        ("read", "Read x", {"locations": at(f"{CWD}/a.py", line=7)}, "read a.py:7"),
        ("read", "Read x", {"locations": at(f"{CWD}/a.py", line=1)}, "read a.py"),
        ("read", "", {"locations": at(*(f"{CWD}/{n}" for n in "aabcdef"))}, "read a, b (+4)"),
        ("read", "Read x", {"input": {"file_path": f"{CWD}/b.py"}}, "read b.py"),
        ("read", "", {"input": {"paths": ["/etc/passwd", "x"]}}, "read /etc/passwd"),
        ("read", "Read something", {}, "read something"),
        ("read", "Reading", {}, "read Reading"),
        ("edit", "", {"content": (ev.DiffContent(path=f"{CWD}/c.py", new_text=""),)}, "edit c.py"),
        ("delete", "", {"locations": at(f"{CWD}-other/x")}, "delete /home/ada/shop-other/x"),
        ("move", "", {"input": {"source": f"{CWD}/a", "destination": f"{CWD}/b"}}, "move a → b"),
        ("move", "", {"locations": at(f"{CWD}/a")}, "move a"),
        ("search", "", {"input": {"pattern": "x y", "path": f"{CWD}/src"}}, 'search "x y" in src'),
        ("search", "", {"input": {"query": "x", "path": CWD}}, 'search "x"'),
        ("search", "Search for it", {"input": {"n": 1}}, "search for it"),
        ("execute", "Run it", {"input": {"command": ["ls", "-l", "a b"]}}, "run ls -l 'a b'"),
        ("execute", "`ls -l`", {}, "run ls -l"),
        ("execute", "`ls` and `pwd`", {}, "run `ls` and `pwd`"),
        ("execute", "", {"input": {"command": "a\n\x1b[2J\tb"}}, "run a b"),
        ("fetch", "Fetch", {"input": {"url": "https://x.example"}}, "fetch https://x.example"),
        ("fetch", "", {"input": {"urls": [["deep"]]}}, "fetch"),
        ("think", "Look", {"name": "Task"}, "Task Look"),
        ("think", "Think hard", {}, "think hard"),
        ("switch_mode", "Plan mode", {}, "mode Plan mode"),
        ("other", "Do", {"name": "mcp__git__create_issue"}, "create_issue Do"),
        ("other", "create", {"name": "create"}, "create"),
        ("other", "mcp__a__b", {"name": "mcp__a__b"}, "b"),
        ("other", "Do", {"input": "text"}, "tool Do"),
        ("other", "", {}, "tool"),
    ],
)
def test_what_was_done_to_what(kind: ev.ToolKind, title: str, more: dict[str, Any], words: str) -> None:
    assert said(kind, title, **more) == words


@pytest.mark.parametrize(
    ("kind", "title", "doing"),
    [
        ("execute", "`pytest -q`", "running pytest -q"),
        ("think", "", "thinking"),
        ("think", "it over", "thinking about it over"),
        ("search", "", "searching"),
        ("switch_mode", "", "switching the mode"),
    ],
)
def test_what_is_being_done(kind: ev.ToolKind, title: str, doing: str) -> None:
    assert describe(tool(kind, title), CWD).doing == doing


def test_doing_something_with_a_tool_of_its_own_name() -> None:
    assert describe(tool("other", "x", name="deploy"), CWD).doing == "using deploy: x"


@pytest.mark.parametrize(
    ("status", "shown", "icon"),
    [
        ("pending", "pending", "·"),
        ("in_progress", "running", "▸"),
        ("completed", "done", "✔"),
        ("failed", "failed", "✘"),
        ("cancelled", "cancelled", "⊘"),
    ],
)
def test_how_far_it_is(status: Any, shown: str, icon: str) -> None:
    call = describe(tool(status=status, started_at=2, ended_at=5.5), CWD)
    assert (call.status, call.icon, call.seconds) == (shown, icon, 3.5)
    assert describe(tool(status=status, started_at=2), CWD).seconds is None
    assert describe(tool(status=status, started_at=2, ended_at=1), CWD).seconds == 0


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [("a\n", "b\nc\n", "+2 −1"), (None, "a\n", "+1"), ("a\n", "", "−1"), ("a\n", "a\n", "±0")],
)
def test_what_came_of_an_edit(old: str | None, new: str, detail: str) -> None:
    content = (ev.DiffContent(path="x", old_text=old, new_text=new),)
    assert describe(tool("edit", content=content), CWD).detail == detail


@pytest.mark.parametrize(
    ("output", "code", "detail"),
    [
        ({"exit_code": 1}, 1, "exit 1"),
        ({"exitCode": 0}, 0, ""),
        ({"exit_code": True}, None, ""),
        ({"exit_code": 10**100}, None, ""),
        ("text", None, ""),
        ({}, None, ""),
    ],
)
def test_exit_codes(output: JsonValue, code: int | None, detail: str) -> None:
    assert exit_code(tool("execute", output=output)) == code
    assert describe(tool("execute", output=output), CWD).detail == detail


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"{CWD}/a/b", "a/b"),
        (CWD, "."),
        (f"{CWD}/", "."),
        (f"{CWD}/../x", "../x"),
        (f"file://{CWD}/a%20b", "a b"),
        ("/other", "/other"),
        ("rel", "rel"),
    ],
)
def test_paths(path: str, shown: str) -> None:
    assert relative(path, CWD) == relative(path, f"{CWD}/") == shown


def test_paths_of_windows() -> None:
    assert relative(r"C:\shop\a.py", r"C:\shop") == "a.py"
    assert relative("/etc", "") == relative("/etc", "/") == "/etc"


def test_names() -> None:
    assert tool_name(tool(name="x" * 50)) == "x" * 31 + "…"
    assert tool_name(tool(name="mcp____x")) == "mcp____x"
    assert tool_name(tool()) == ""


def look(kind: ev.ToolKind, target: str, begin: float, end: float | None = None) -> ToolView:
    given: dict[str, Any] = {"input": {"pattern": target}} if kind == "search" else {"locations": at(target)}
    return tool(kind, status="completed", started_at=begin, ended_at=end, **given)


def test_folding() -> None:
    reads = [look("read", name, n, n + 0.5) for n, name in enumerate("abcdb")]
    call = fold([*reads, look("search", "x", 5, 7.5), look("search", "y", 5, 6)], CWD)
    assert (call.verb, call.target, call.seconds) == ("read", "a, b (+2, 2 searches)", 7.5)
    assert fold(reads[:2], CWD).target == "a, b"
    assert fold(reads[:1], CWD) == describe(reads[0], CWD)
    searches = fold([look("search", name, 0) for name in "xyz"], CWD)
    assert (searches.verb, searches.target, searches.seconds) == ("search", '"x", "y" (+1)', None)


def test_what_folds() -> None:
    assert folds(tool("read", status="completed"))
    assert folds(tool("search", status="completed"))
    assert not folds(tool("read", status="failed"))
    assert not folds(tool("edit", status="completed"))


def text(*blocks: ev.ContentBlock) -> tuple[ev.ToolContent, ...]:
    return tuple(ev.BlockContent(content=block) for block in blocks)


IMAGE = ev.ImageContent(data="", mime_type="image/png")
LINK = ev.ResourceLink(uri="file:///x", name="x")


@pytest.mark.parametrize(
    ("content", "output", "shown"),
    [
        (text(ev.TextContent(text="a\x1b[2J\n"), ev.TextContent(text="b\n\n")), "raw", "a\n\nb"),
        (text(ev.TextContent(text="```console\n  $ ls\na ` b\n```\n")), None, "  $ ls\na ` b"),
        (text(ev.TextContent(text="```\na\n```\nmore\n```\nb\n```")), None, "a\n```\nmore\n```\nb"),
        (text(ev.TextContent(text="1%\r50%\r100%\r\ndone\r\n")), None, "100%\ndone"),
        (text(IMAGE, LINK), None, "[image/png]\n[file:///x]"),
        (text(ev.EmbeddedResource(uri="u", text="inside")), None, "inside"),
        (text(ev.EmbeddedResource(uri="u", blob="")), None, "[data: u]"),
        ((ev.TerminalContent(terminal_id="t"),), "raw", "raw"),
        ((), None, ""),
        ((), {"stdout": "out", "stderr": "err"}, "out\nerr"),
        ((), {"stdout": "", "stderr": "err"}, "err"),
        ((), {"stdout": "out", "stderr": ""}, "out"),
        ((), {"output": "one", "text": "two", "result": "three"}, "one\ntwo"),
        ((), {"rows": [1, "é"]}, '{"rows": [1, "é"]}'),
        ((), [1], "[1]"),
    ],
)
def test_output(content: tuple[ev.ToolContent, ...], output: JsonValue, shown: str) -> None:
    assert output_of(tool(content=content, output=output)) == shown


def test_output_is_bounded_and_ends_with_its_end() -> None:
    shown = output_of(tool(output="".join(f"line {n}\n" for n in range(100_000))))
    assert len(shown) <= OUTPUT + 1
    assert shown.startswith("…\nline ")
    assert shown.endswith("line 99999")
    assert output_of(tool(output="x" * 100), limit=10) == "…" + "x" * 10
    assert output_of(tool(output="```\n" + "x" * 2_000_000 + "\n```"), limit=5) == "…xxxxx"


def test_output_that_is_nested_too_deep() -> None:
    deep: JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    assert output_of(tool(output=deep)) == "…"
    while deep:
        deep = deep.pop()


# Changes of files

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


def test_few_lines_differ_in_a_file_that_repeats_itself() -> None:
    rows = [["  {", f'    "id": {n},', '    "kind": "x",', "  },", ""] for n in range(1_000)]
    old = [line for row in rows for line in row]
    for n in range(0, 1_000, 20):
        rows[n][1:2] = [f'    "id": "{n}",', '    "more": 1,']
    found = compare(old, [line for row in rows for line in row])
    assert found.exact
    assert len(found.changes) == 50
    assert sum(change.new_to - change.new_from for change in found.changes) == 100


@given(WORDS, WORDS)
def test_equal_lines_stand_between_changes(old: list[str], new: list[str]) -> None:
    changes = compare(old, new).changes
    for before, after in pairwise(changes):
        assert before.old_to < after.old_from
        assert after.old_from - before.old_to == after.new_from - before.new_to


@pytest.mark.parametrize("size", [2_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_hostile_texts_take_a_bounded_time(size: int) -> None:
    dice = random.Random(1)
    texts = [
        ([str(n) for n in range(size)], [str(n) for n in reversed(range(size))]),
        (["a", "b"] * size, ["b", "a", "c"] * size),
        ([dice.choice("ab") for _ in range(size)], [dice.choice("ab") for _ in range(size)]),
        (["x", *["a"] * size, "y"], ["z", *["a"] * size, *["b"] * size, "w"]),
    ]
    for old, new in texts:
        begun = perf_counter()
        assert apply(old, new) == new
        assert perf_counter() - begun < 5


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
    assert (len(found.hunks), found.more_hunks, found.added) == (diffs.BRIEF.hunks, 20, 40)
    assert excerpt(found).more_hunks == 39


def test_lines_of_a_hunk_are_counted_where_there_are_too_many() -> None:
    found = change("".join(f"old {n}\n" for n in range(500)), "new\n" * 300)
    (hunk,) = found.hunks
    assert (len(hunk.lines), hunk.more_lines) == (2 * diffs.BRIEF.side, 800 - 2 * diffs.BRIEF.side)


def test_many_changes_close_to_each_other() -> None:
    old = "".join(f"{n}\nsame\n" for n in range(80))
    new = "".join(f"{n}!\nsame\n" for n in range(80))
    (hunk,) = change(old, new).hunks
    assert hunk.more_lines > 0
    changed = sum(each.sign != " " for each in hunk.lines)
    assert changed + hunk.more_lines == 160


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


def test_not_all_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "KNOWN", 50 * diffs.BRIEF.side)
    old = "a\n" * diffs.BRIEF.side
    number = diffs.KNOWN // (2 * diffs.BRIEF.side)
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
    assert (one.path, one.added, len(one.hunks), one.more_hunks) == ("a", 30, diffs.BRIEF.hunks, 10)
    assert two.path == "b"


def test_a_file_that_was_changed_twice_counts_once() -> None:
    edits = [
        edit("a\n", "b\n"),
        edit("b\n", "c\nd\n"),
        edit(None, "x\n", "/p/x"),
        edit("a", "z", status="failed"),
    ]
    tools = {f"{number}": replace(tool, id=f"{number}") for number, tool in enumerate(edits)}
    told = summary.summary(RunView(cwd="/p", tools=tools), 0.0)
    assert told.work == "4 tools, 1 failed · 2 files changed, +4 −2"


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
        ("a b c d", "a b c X", 3, " c -d +X", 1),
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


# Questions


def ask(*events: ev.ThoughtEvent, **question: Any) -> Asked:
    given: dict[str, Any] = {"id": "q", "title": "May I?", "tool_id": "t", **question}
    reducer = ViewReducer(agent="mine", cwd=CWD)
    reducer.apply([*events, ev.QuestionAsked(**given)])
    view = reducer.snapshot()
    return asked(view.questions[0], view)


def about(input_: JsonValue, kind: ev.ToolKind = "execute", **more: Any) -> Asked:
    return ask(ev.ToolStart(id="t", kind=kind, title="x", input=input_, **more))


def test_a_command_is_whole_and_exact() -> None:
    command = "rm -rf ~\t# \u202e\x1b[8m\n" + "x" * 100_000
    put = about({"command": command, "description": "harmless", "timeout": 5, "cwd": CWD})
    assert put.command == "rm -rf ~\\u0009# \\u202e\\u001b[8m\n" + "x" * 100_000
    assert put.arguments == ""
    assert put.call is not None
    assert put.call.verb == "run"


def test_what_else_the_arguments_say_is_told() -> None:
    put = about({"command": "ls", "args": ["-l"], "env": {"A": "b"}, "cwd": "/etc", "sudo": True})
    assert put.command == "A=b\nls -l"
    assert put.arguments == '{\n  "cwd": "/etc",\n  "sudo": true\n}'
    put = about({"command": "ls", "cmd": {"rm": "-rf"}, "args": "; rm", "env": "PATH=/tmp"})
    assert put.command == "ls"
    assert put.arguments == '{\n  "cmd": {\n    "rm": "-rf"\n  },\n  "args": "; rm",\n  "env": "PATH=/tmp"\n}'


@pytest.mark.parametrize(
    ("input_", "arguments"),
    [
        ({"title": "a", "description": "b"}, '{\n  "title": "a",\n  "description": "b"\n}'),
        ({"to": "\x1b[2Jall"}, '{\n  "to": "\\u001b[2Jall"\n}'),
        (["a"], '[\n  "a"\n]'),
        ("text\u202e", '"text\\u202e"'),
        ({}, ""),
        (None, ""),
    ],
)
def test_arguments_of_other_calls(input_: JsonValue, arguments: str) -> None:
    put = about(input_, "other")
    assert (put.command, put.arguments) == (None, arguments)


def test_arguments_that_are_nested_too_deep() -> None:
    deep: JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    assert about(deep, "other").arguments == "arguments that are nested too deep to be shown"
    while deep:
        deep = deep.pop()


def test_a_change_that_is_asked_about() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a.py", old_text="a\n", new_text="b\n")
    put = about(
        {"file_path": "a.py", "old": "a", "new": "b", "force": True, "mode": "a"}, "edit", content=(diff,)
    )
    assert [change.path for change in put.changes] == ["a.py"]
    assert put.arguments == '{\n  "force": true,\n  "mode": "a"\n}'


def test_a_change_tells_only_what_is_in_it() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a.py", old_text="a\n", new_text="b\n")
    input_: JsonValue = {"path": f"{CWD}/a.py", "destination": "/etc/passwd", "text": "other", "args": "x"}
    put = about(input_, "move", content=(diff,))
    assert put.arguments == '{\n  "destination": "/etc/passwd",\n  "text": "other",\n  "args": "x"\n}'
    many: JsonValue = {f"text{number}": "b" for number in range(1_000)}
    assert '"text7": "b"' in about(many, "edit", content=(diff,)).arguments


def test_folders_in_the_arguments_of_a_change() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a.py", old_text=None, new_text="b\n")
    put = about({"cwd": CWD, "directory": "/etc"}, "edit", content=(diff,))
    assert put.arguments == '{\n  "directory": "/etc"\n}'


def test_not_every_question_is_remembered() -> None:
    putting = Putting()
    view = ViewReducer().snapshot()
    first = QuestionView(id="first", title="May I?")
    put = putting.put(first, view)
    assert putting.put(first, view) is put
    for number in range(KNOWN):
        putting.put(QuestionView(id=str(number), title="May I?"), view)
    assert putting.put(first, view) is not put
    assert putting.put(first, view) == put


def test_a_change_is_exact() -> None:
    diff = ev.DiffContent(path=f"{CWD}/a\u200b\n.py", old_text=None, new_text="a\tb\x1b[8m\u200b\r\n")
    (change,) = about(None, "edit", content=(diff,)).changes
    assert change.path == "a\\u200b\\u000a.py"
    assert [line.text for line in change.hunks[0].lines] == ["a   b\\u001b[8m\\u200b"]


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("May I?", ""),
        ("x" * 3_000, "x" * 3_000),
        ("May\u200bI  now?\nNow?", "May\\u200bI  now?\nNow?"),
    ],
)
def test_a_title_that_does_not_fit_into_a_line_is_there_as_it_is(title: str, said: str) -> None:
    assert ask(tool_id=None, title=title).said == said


def test_a_call_without_arguments_names_its_places() -> None:
    places = tuple(ev.Location(path=f"{CWD}/{name}") for name in ("a", "b\u200b", "c" * 1_000))
    put = about(None, "delete", locations=places)
    assert put.about == ("a", "b\\u200b", "c" * 1_000)
    assert about(None, "delete", locations=places * 50).more_about == 50
    assert ask(ev.ToolStart(id="t", kind="delete", title="`delete  x`")).about == (" x",)
    assert about({"path": "a"}, "delete", locations=places).about == ask(tool_id=None).about == ()


def test_an_unknown_call() -> None:
    put = ask(tool_id=None)
    assert (put.call, put.command, put.arguments, put.changes) == (None, None, "", ())
    assert ask(tool_id="elsewhere").call is None


def test_a_page_that_is_asked_for() -> None:
    put = ask(asks="url", url="https://user@xn--e1afmkfd.example\u202e/x y")
    assert (put.url, put.host) == ("https://user@xn--e1afmkfd.example\\u202e/x y", "")
    assert ask(asks="url", url="https://пример.example/").host == "xn--e1afmkfd.example"
    assert (put.asks, ask().url, ask().host) == ("url", None, "")


def test_time_that_is_left() -> None:
    assert ask(timeout=60, at=2.0).left(12) == 50
    assert ask(timeout=60, at=2.0).left(100) == 0
    assert ask().left(1) is None


def options(*given: tuple[str, str]) -> list[tuple[str, str, str]]:
    made = tuple(ev.QuestionOption(id=f"o{n}", name=name, kind=kind) for n, (name, kind) in enumerate(given))
    keys = ask(options=made).options
    return [(each.key, each.label, each.option.id) for each in keys if each.option is not None]


def test_keys_follow_from_what_an_option_means() -> None:
    assert options(
        ("Yes", "allow_once"),
        ("Always allow", "allow_always"),
        ("No", "reject_once"),
        ("Never.", "reject_always"),
    ) == [("y", "once", "o0"), ("a", "always", "o1"), ("n", "no", "o2"), ("d", "never", "o3")]


def test_words_of_the_agent_are_added_and_never_replace_the_meaning() -> None:
    assert options(
        ("Reject\x1b[2J", "allow_once"), ("", "allow_always"), ("No, keep planning", "reject_once")
    ) == [
        ("y", "once", "o0"),
        ("a", "always", "o1"),
        ("n", "no: No, keep planning", "o2"),
    ]
    assert options(("Reject it all", "allow_once"))[0][1] == "once: Reject it all"


def test_options_of_the_same_or_of_an_unknown_kind_get_digits() -> None:
    assert options(
        ("Yes", "allow_once"), ("Yes, and more", "allow_once"), ("Maybe", "perhaps"), ("", "sudo\x1b[2J")
    ) == [("y", "once", "o0"), ("1", "once: Yes, and more", "o1"), ("2", "Maybe", "o2"), ("3", "sudo", "o3")]
    many = options(*[(f"option {n}", "other") for n in range(12)])
    assert [key for key, _, _ in many] == [*"123456789"]


@pytest.mark.parametrize(
    ("field", "hint", "default"),
    [
        (FormField(name="n", type="string"), "text", ""),
        (
            FormField(name="n", type="string", maximum=9, format="email"),
            "text, at most 9 characters, email",
            "",
        ),
        (FormField(name="n", type="integer", minimum=1, default=3), "whole number, at least 1", "3"),
        (FormField(name="n", type="number", minimum=0.5, maximum=2), "number, 0.5 to 2", ""),
        (FormField(name="n", type="boolean", required=True, default=True), "yes or no, required", "yes"),
        (FormField(name="n", type="boolean", default=False), "yes or no", "no"),
        (
            FormField(name="n", type="choices", maximum=2, default=["a", "b"]),
            "any of these, at most 2 of them",
            "a, b",
        ),
        (FormField(name="n", type="string", default="\x1b[2Jx\n"), "text", "x"),
        (FormField(name="n", type="unknown", default={"a": 1}), "value", ""),
    ],
)
def test_fields(field: FormField, hint: str, default: str) -> None:
    (shown,) = ask(asks="form", fields=(field,)).fields
    assert (shown.hint, shown.default, shown.raw) == (hint, default, field)


def test_names_of_fields_and_choices_are_clean_and_their_values_are_not_touched() -> None:
    choices = (FieldChoice(value="a\x1b", title="A\x1b[2J\n1"), FieldChoice(value="b", title=""))
    field = FormField(
        name="n\x1b", type="choice", title="T\u202e", description="one\n\ttwo ", choices=choices
    )
    (shown,) = ask(asks="form", fields=(field,)).fields
    assert (shown.raw.name, shown.label, shown.description) == ("n\x1b", "T\\u202e", "one\n    two")
    assert shown.choices == (("a\x1b", "A 1"), ("b", "b"))
    assert shown.offered == "A 1 · b"


def test_of_many_choices_some_are_offered_at_a_glance() -> None:
    choices = tuple(FieldChoice(value=str(number), title="x" * 99) for number in range(1_000))
    (shown,) = ask(asks="form", fields=(FormField(name="n", type="choices", choices=choices),)).fields
    assert shown.offered == " · ".join(["x" * 59 + "…"] * 9 + ["… 991 more"])
    (shown,) = ask(asks="form", fields=(FormField(name="n", type="string"),)).fields
    assert shown.offered == ""


def answer(choice: str | None, by: str = "human", why: str = "") -> AnswerView:
    return AnswerView(id="q", title="t", choice=choice, by=by, why=why)


@pytest.mark.parametrize(
    ("given", "words", "yes"),
    [
        (answer("allow_once"), "allowed by human", True),
        (answer("allow_once", why="answered from outside"), "allowed by human", True),
        (answer("allow_always", "policy", "rule 3"), "allowed for good by policy: rule 3", True),
        (answer("reject_once", "supervisor", "it\ndeletes"), "denied by supervisor: it deletes", False),
        (answer("reject_always"), "denied for good by human", False),
        (answer("accept"), "accepted by human", True),
        (answer("decline"), "declined by human", False),
        (answer("sudo\x1b[2J"), "sudo by human", False),
        (answer(None, "cancel", "the turn was cancelled"), "withdrawn: the turn was cancelled", None),
        (answer(None, ""), "withdrawn", None),
    ],
)
def test_answers(given: AnswerView, words: str, yes: bool | None) -> None:
    assert (answered(given), allowed(given)) == (words, yes)


def test_verdicts() -> None:
    verdict = ev.QuestionVerdict(id="q", verdict="allow_session", by="su\npervisor", why="fine\x1b[2J")
    assert verdict_words(verdict) == "su pervisor: allow session (fine)"
    assert verdict_words(ev.QuestionVerdict(id="q", verdict=None, by="policy", why="")) == "policy: no answer"
    reducer = ViewReducer()
    reducer.apply([ev.QuestionAsked(id="q", title="x"), verdict])
    view = reducer.snapshot()
    assert asked(view.questions[0], view).verdicts == ("su pervisor: allow session (fine)",)


# Explaining a question


def explained(tool: ToolView | None, **question: Any) -> str:
    view = RunView(tools={} if tool is None else {tool.id: tool})
    parts = explanation(asked(QuestionView(id="q", title="do it", tool_id="t", **question), view), tool)
    return "\n".join(part.text for part in parts)


def test_everything_that_there_is() -> None:
    tool = ToolView(
        id="t",
        name="shell\x07",
        kind="execute",
        input={"command": "ls \u200b-l", "why": "to\nsee"},
        locations=(ev.Location(path="/a"), ev.Location(path="/b", line=2)),
        content=(ev.BlockContent(content=ev.TextContent(text="no change")),),
    )
    verdict = ev.QuestionVerdict(seq=1, at=0, id="q", verdict="deny", by="supervisor", why="it may not")
    text = explained(tool, verdicts=(verdict,))
    assert text.startswith("do it\nTool call shell")
    assert "at /a\nat /b:2\n" in text
    assert "Command:\nls \\u200b-l\n" in text
    assert '"why": "to\\nsee"' in text
    assert text.endswith("supervisor: deny (it may not)")
    assert text.replace("\n", "").isprintable()


def test_a_question_without_a_tool_call() -> None:
    assert "shows no tool call" in explained(None)


def test_a_tool_call_without_input_and_choices_without_names() -> None:
    options = tuple(ev.QuestionOption(id=name, name=name, kind="allow_once") for name in ("Go on", ""))
    text = explained(ToolView(id="t", kind="edit"), options=options)
    assert text == "do it\nTool call, of kind edit\nInput:\nthe agent does not show it\n[y] Go on"


def test_a_page_to_open_is_its_address_and_nothing_else() -> None:
    text = explained(ToolView(id="t", input={"a": 1}), asks="url", url="https://e.x/\u202e")
    assert text == "do it\nhttps://e.x/\\u202e"


def test_what_is_too_long_says_so() -> None:
    text = explained(ToolView(id="t", input={"text": "x" * 300_000}))
    assert len(text) < EXPLAINED + 200
    assert "more characters, which are not shown" in text


def test_what_is_nested_too_deep() -> None:
    deep: ev.JsonValue = []
    for _ in range(100_000):
        deep = [deep]
    tool = ToolView(id="t", title="deep")
    view = RunView(tools={"t": tool})
    question = asked(QuestionView(id="q", title="do it", tool_id="t"), view)
    parts = explanation(question, ToolView(id="t", input=deep))
    assert any("nested too deep" in part.text for part in parts)


# Results


def test_results_as_people_read_them() -> None:
    @dataclass
    class Point:
        x: int
        y: float

    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    assert result_text("as\nit is") == "as\nit is"
    assert result_text(Point(1, math.inf)) == '{\n  "x": 1,\n  "y": Infinity\n}'
    assert result_text([b"\xff", {1: None}]) == '[\n  "_w==",\n  {\n    "1": null\n  }\n]'
    assert "object at" in result_text(object())
    assert result_text(Odd()) == "a Odd that cannot be shown: PydanticSerializationError"


# What changed

IDS = st.sampled_from([None, None, "1", "2"])
TEXTS = st.sampled_from(["", "a", "bc"])
CALLS = st.sampled_from(["t", "u"])
SAYING: st.SearchStrategy[ev.ThoughtEvent] = st.one_of(
    st.builds(ev.Message, text=TEXTS, message_id=IDS),
    st.builds(ev.Message, text=TEXTS, message_id=IDS),
    st.builds(ev.Thought, text=TEXTS, message_id=IDS),
    st.builds(ev.UserMessage, text=TEXTS, message_id=IDS),
)
CHANGING: st.SearchStrategy[ev.ThoughtEvent] = SAYING | st.one_of(
    st.just(ev.Message(text="", content=ev.ImageContent(data="", mime_type="image/png"))),
    st.builds(ev.ToolStart, id=CALLS, title=TEXTS),
    st.builds(ev.ToolUpdate, id=CALLS, status=st.sampled_from([None, "in_progress"])),
    st.builds(ev.ToolDone, id=CALLS, status=st.sampled_from(["completed", "failed"])),
    st.just(ev.PlanUpdate(entries=())),
    st.builds(ev.Steered, text=st.just("s."), outcome=st.sampled_from(["injected", "refused"])),
    st.just(ev.TurnStarted(number=1)),
    st.just(ev.TurnEnded(number=1, stop_reason="end_turn", usage=ev.TokenUsage(total=3))),
    st.just(ev.QuestionAsked(id="q", title="May I?", asks="permission", timeout=1.0)),
    st.just(ev.QuestionAsked(id="q", title="May I?", asks="permission")),
    st.just(ev.UsageUpdate(used=1, size=2)),
)


def changes_in(happened: Sequence[ev.ThoughtEvent]) -> list[Change]:
    """All changes. A reader that does not take what only goes on comes to the same."""
    reader, skipping = ChangeReader(), ChangeReader()
    found: list[Change] = []
    for event in happened:
        made = reader.take(event)
        found += made
        block = skipping.goes_on(event) if isinstance(event, ev.Message | ev.Thought) else None
        if block is None:
            assert [*map(type, skipping.take(event))] == [*map(type, made)]
        else:
            (grown,) = made
            assert isinstance(grown, BlockGrown)
            assert not grown.resumed
            assert (grown.block.kind, grown.block.index) == (block.kind, block.index)
    return found + reader.end_block(happened[-1])


def check_texts(texts: Mapping[Block, str], view: RunView) -> None:
    """Check that blocks have the texts of a view."""
    for kind, shown_texts in (
        ("message", view.messages),
        ("thought", view.thought_blocks),
        ("user", view.user_messages),
    ):
        assert tuple(text for block, text in texts.items() if block.kind == kind) == shown_texts


def check_changes(happened: Sequence[ev.ThoughtEvent]) -> None:
    """Check that changes add up to what a view shows, and that each thing has one beginning and its ends."""
    reducer = ViewReducer()
    reducer.apply(happened)
    view = reducer.snapshot()
    texts: dict[Block, str] = {}
    said: Block | None = None
    calls: dict[int, ToolView] = {}
    over: set[int] = set()
    began = -1, -1
    for change in changes_in(happened):
        match change:
            case BlockBegun(block):
                assert said is None
                assert block.index == sum(other.kind == block.kind for other in texts)
                texts[block], said = "", block
            case BlockGrown(block, text, resumed):
                assert text
                assert resumed is (said is None)
                said = block
                texts[block] += text
            case BlockEnded(block):
                assert said is block
                said = None
            case CallBegun(number, shown):
                assert number == len(calls)
                assert shown.id not in {calls[other].id for other in calls.keys() - over}
                calls[number], began = shown, (number, change.seq)
            case CallChanged(number, shown, before, late) | CallEnded(number, shown, before, late):
                assert late is (number in over)
                assert before == calls[number] or began == (number, change.seq)
                calls[number] = shown
                if isinstance(change, CallEnded):
                    over.add(number)
                    assert shown.status == change.status
            case _:
                pass
    assert said is None
    check_texts(texts, view)
    assert {call.id: call for call in calls.values()} == dict(view.tools)


def numbered(happened: Sequence[ev.ThoughtEvent]) -> list[ev.ThoughtEvent]:
    return [replace(event, seq=at + 1, at=float(at)) for at, event in enumerate(happened)]


@tried(st.lists(CHANGING, min_size=1, max_size=60), few=150, many=1500)
def test_changes_add_up_to_the_view(happened: list[ev.ThoughtEvent]) -> None:
    check_changes(numbered(happened))


A, B = (ev.Message(text=f"{id_}.", message_id=id_) for id_ in "ab")
C, D = ev.Message(text="c."), ev.Thought(text="d.")
USER, USED = ev.UserMessage(text="u."), ev.UsageUpdate(used=1, size=2)
STEERED = ev.Steered(text="s.", outcome="injected")
BEGUN, ENDED = ev.ToolStart(id="t", title="T"), ev.ToolDone(id="t", status="failed")


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param([A, C, A, C], id="a named message goes on, and ends the one without a name"),
        pytest.param([A, B, A, D, B, A], id="named messages come in turns"),
        pytest.param([USER, D, USER, USED, USER], id="the user's words with others between"),
        pytest.param([D, ev.Message(text=""), D], id="an empty message ends a thought"),
        pytest.param([BEGUN, ENDED, BEGUN, ENDED], id="the id of a call is used again"),
        pytest.param([BEGUN, ENDED, BEGUN, D, ENDED, ENDED], id="a call ends twice"),
        pytest.param([USER] * 100, id="many pieces"),
        pytest.param([C, STEERED, USER, STEERED, C], id="what the user says while the agent works"),
        pytest.param([C, ev.PlanUpdate(entries=()), C, ev.TurnStarted(number=2), C], id="plan and turn"),
    ],
)
def test_changes_and_looks(happened: list[ev.ThoughtEvent]) -> None:
    happened = numbered(happened)
    check_changes(happened)
    for each in range(1, len(happened) + 1):
        check_looks(happened, set(range(each - 1, len(happened), each)))


@every_recording
def test_changes_of_a_recorded_run_add_up_to_its_view(name: str) -> None:
    check_changes(events(name))


def item_of(block: Block, view: RunView) -> TimelineItem:
    """Return the item of a block."""
    return next(item for item in view.timeline if (item.kind, item.index) == (block.kind, block.index))


def check_looks(happened: Sequence[ev.ThoughtEvent], looks: AbstractSet[int]) -> None:
    """Check at each look that changes add up to the view."""
    reducer, reader = ViewReducer(), ViewReader()
    texts: dict[Block, str] = {}
    calls: dict[int, ToolView] = {}
    news: list[object] = []
    latest: Block | None = None
    for at, event in enumerate(happened):
        reducer.apply((event,))
        if at not in looks and at + 1 != len(happened):
            continue
        view = reducer.snapshot()
        begun: set[Block] = set()
        for change in reader.look(view, float(at)):
            match change:
                case BlockBegun(block):
                    assert block.index == sum(other.kind == block.kind for other in texts)
                    texts[block] = ""
                    begun.add(block)
                case BlockGrown(block, text, resumed):
                    assert resumed is (block is not latest and block not in begun)
                    texts[block] += text
                case CallBegun(number, shown):
                    assert number == len(calls)
                    calls[number] = shown
                case _:
                    news.append(change)
        check_texts(texts, view)
        last = {call.id: call.started_at for call in calls.values()}
        assert last == {id_: tool.started_at for id_, tool in view.tools.items()}
        items = [block for block in texts if view.timeline[-1:] == (item_of(block, view),)]
        latest = items[0] if items else None
        assert {change for change in news if isinstance(change, ev.Notice)} == set(view.notices)
        assert [change for change in news if isinstance(change, AnswerView)] == list(view.answers)
        turns = sum(item.kind == "turn" for item in view.timeline)
        assert sum(isinstance(change, ev.TurnStarted) for change in news) == turns


def test_of_many_calls_the_first_to_end_are_forgotten() -> None:
    happened = [ev.ToolDone(id=f"{number}", status="completed", title="T") for number in range(70)]
    late = [ev.ToolUpdate(id=id_, output=1) for id_ in ("0", "69")]
    first, last = changes_in([*happened, *late])[-2:]
    assert isinstance(first, CallChanged)
    assert isinstance(last, CallChanged)
    assert (first.number, first.late, first.view.title) == (0, True, "")
    assert (last.number, last.late, last.view.title) == (69, True, "T")


@tried(st.lists(st.tuples(CHANGING, st.booleans()), min_size=1, max_size=60), few=150, many=1500)
def test_looks_add_up_to_the_view(happened: list[tuple[ev.ThoughtEvent, bool]]) -> None:
    check_looks(
        numbered([event for event, _ in happened]),
        {at for at, (_, is_look) in enumerate(happened) if is_look},
    )


@every_recording
@pytest.mark.parametrize("each", [1, 7])
def test_looks_at_a_recorded_run_add_up_to_its_view(name: str, each: int) -> None:
    happened = events(name)
    check_looks(happened, set(range(0, len(happened), each)))
