"""Draws the settled parts of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.text import Text

from thinkwell import events as ev
from thinkwell._display import diffs, numbers, questions, tools
from thinkwell._display.calls import asked_title
from thinkwell._display.cells import wrap
from thinkwell._display.plans import MARKS, step_text
from thinkwell._display.text import clean, line
from thinkwell.progress._markdown import WIDEST, Code, Prose
from thinkwell.progress._settling import Calls, Said, Skipped, Thought
from thinkwell.view import AnswerView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from thinkwell._display.diffs import DiffLine, FileChange
    from thinkwell._display.tools import Call
    from thinkwell.progress._settling import Settled
    from thinkwell.view import RunView, ToolView

VERB: Final = 7
"""Columns of a verb."""

OUTPUT: Final = 5
"""Rows of the output of a failed call."""

VERBOSE_OUTPUT: Final = 20
"""Rows of the output of any call, with ``verbose``."""

HUNK: Final = 8
"""Rows of a change."""

CHANGES: Final = 3
"""Most changes of one call that are shown."""

INNER: Final = 8
"""Calls of a sub-agent that are shown: the last ones that have failed."""

STEPS: Final = 12
"""Most steps of a new plan that are shown."""

SHORTEST: Final = 1.0
"""Seconds: shorter thoughts are not mentioned."""

USER: Final = 3
"""Rows of a message of the user."""

REASONS: Final = 3
"""Most reasons for an invalid result that are shown."""

DIFF_STYLES: Final = {"+": "green", "-": "red", " ": "dim"}

_UNFINISHED: Final = re.compile(r"␛(?:\[[0-9;]*)?\Z")
"""The beginning of an incomplete escape sequence, as `clean` shows it."""

_STYLES: Final = {
    "done": "green",
    "failed": "bold red",
    "cancelled": "yellow",
    "running": "cyan",
    "pending": "dim",
}

STATUS_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    status: (icon, _STYLES[status]) for status, icon in tools.ICONS.items()
}
"""The mark of each status, and its style."""


def whole(seconds: float) -> str:
    """Return a duration in whole seconds: ``3s``, ``1:42``."""
    return numbers.seconds(int(seconds)).replace(".0s", "s")


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: a text at the left, cut if there is no room, and one at the right."""

    left: Text
    right: Text | None = None
    widest: int = WIDEST

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, self.widest)
        left, right = self.left.copy(), self.right
        left.no_wrap = True
        if right is None or right.cell_len + 12 > width:  # no room for both
            left.truncate(width, overflow="ellipsis")
            yield left
            return
        left.truncate(width - right.cell_len - 1, overflow="ellipsis", pad=True)
        yield Text.assemble(left, " ", right, no_wrap=True)


@dataclass(frozen=True, slots=True)
class Hanging:
    """A text, wrapped beside its prefix."""

    before: Text
    text: str
    style: str = ""
    limit: int = 1_000
    """Rows at most."""
    repeat: bool = False
    """Whether the prefix is repeated in each row."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDEST) - self.before.cell_len
        rows = wrap(self.text, width)
        if len(rows) > self.limit:
            rows = [*rows[: self.limit - 1], f"{rows[self.limit - 1]} …"]
        blank = Text(" " * self.before.cell_len)
        for number, row in enumerate(rows):
            before = self.before if not number or self.repeat else blank
            yield Text.assemble(before, (row, self.style), no_wrap=True, overflow="ellipsis")


def call_bar(call: Call, *, depth: int = 0, time: str | None = None, more: str = "") -> Bar:
    """Return the row of a tool call.

    Args:
        call: The call.
        depth: Its depth in calls of sub-agents.
        time: The text for its time; by default how long it took.
        more: Additional text.
    """
    mark = STATUS_MARKS[call.status]
    left = Text.assemble(" " * (1 + 2 * depth), mark, " ", (f"{call.verb:<{VERB}}", "bold"), " ", call.target)
    if time is None:
        time = "" if call.seconds is None else numbers.seconds(call.seconds)
    details = [_detail(call.detail), Text(more, "dim"), Text(f"{time:>5}", "dim")]
    return Bar(left, Text("  ").join(each for each in details if each.plain.strip()))


def _detail(detail: str) -> Text:
    """Return ``+42 −3`` in its colours, and other details in theirs."""
    text = Text(detail, "red" if detail.startswith("exit") else "")
    text.highlight_regex(r"\+\d+", "green")
    text.highlight_regex(r"−\d+", "red")
    return text


def hunk_rows(change: FileChange) -> list[Bar]:
    """Return the first hunk of a change, and counts of the rest."""
    shown = diffs.excerpt(change, HUNK)
    rows = [_diff_row(each) for each in _without_blanks(shown.lines)]
    rest = [*shown.rest, *(["too long to compare"] if change.truncated else [])]
    return [*rows, Bar(Text(f"         … {', '.join(rest)}", "dim"))] if rest else rows


def _without_blanks(lines: Sequence[DiffLine]) -> Sequence[DiffLine]:
    """Return lines without unchanged empty ones at both ends."""
    begin, end = 0, len(lines)
    while begin < end and lines[begin].sign == " " and not lines[begin].text.strip():
        begin += 1
    while begin < end and lines[end - 1].sign == " " and not lines[end - 1].text.strip():
        end -= 1
    return lines[begin:end]


def _diff_row(row: DiffLine) -> Bar:
    style = DIFF_STYLES[row.sign]
    number = "" if row.number is None else str(row.number)
    text = Text(row.text, style)
    for begin, end in row.spans:
        text.stylize("bold reverse", begin, end)
    return Bar(Text.assemble((f"{number:>7} ", "dim"), (f"{row.sign} ", style), text))


def change_bar(change: FileChange, indent: int = 5) -> Bar:
    """Return the row above a change: the file, and the number of lines."""
    counts = _detail(
        " ".join(filter(None, (f"+{change.added}", f"−{change.removed}" * bool(change.removed))))
    )
    about = "  new file" if change.new_file else ""
    return Bar(Text.assemble(" " * indent, (change.path, "bold"), "  ", counts, (about, "dim")))


def output_rows(text: str, limit: int) -> list[Bar]:
    """Return the last lines of a tool's output, which is clean already."""
    text = _UNFINISHED.sub("", text)
    rows = [row for row in text.rstrip().split("\n") if row.strip()]
    return [Bar(Text(f"     {row}", "dim")) for row in rows[-limit:]]


class Blocks:
    """Draws the settled parts of one run, in order.

    Args:
        verbose: Whether outputs and thoughts are drawn whole.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self._verbose = verbose
        self._above = ""
        """The kind of the last drawn part: between text and actions, there is an empty row."""

    def draw(self, things: Sequence[Settled], view: RunView) -> list[RenderableType]:
        """Return what to print for things of a run."""
        return [each for thing in things for each in self._spaced(thing, view)]

    def _spaced(self, thing: Settled, view: RunView) -> Iterator[RenderableType]:
        said = isinstance(thing, Said)
        goes_on = isinstance(thing, Said) and thing.piece.goes_on
        drawn = list(self._thing(thing, view))
        if not drawn:
            return
        if self._above and not goes_on and (said or self._above == "said"):
            yield Text("")
        yield from drawn
        self._above = "said" if said else "done"

    def _thing(self, thing: Settled, view: RunView) -> Iterator[RenderableType]:
        match thing:
            case Calls():
                yield from self._calls(thing, view)
            case Said():
                yield from _said(thing)
            case Thought():
                yield from self._thought(thing)
            case AnswerView():
                yield from _answered(thing, view)
            case ev.PlanUpdate():
                yield from _plan(thing.entries)
            case ev.ResultAttempt():
                yield from _returned(thing)
            case ev.Notice():
                yield from _notice(thing)
            case ev.TurnStarted():
                yield Text(f" ↻ turn {thing.number}", "dim")
            case Skipped():
                yield Text(f" … {thing.count:,} more things happened at once", "dim")
            case _:
                said = clean(thing.text[:1_000]).strip()
                yield Hanging(Text(" › ", "dim"), said, "dim", limit=USER)

    def _calls(self, calls: Calls, view: RunView) -> Iterator[RenderableType]:
        if len(calls.tools) > 1:
            thought = 0.0 if calls.thought is None else calls.thought.seconds
            more = f"thought for {whole(thought)}" if thought >= SHORTEST else ""
            yield call_bar(tools.fold(calls.tools, view.cwd), more=more)
            if self._verbose:
                for tool in calls.tools:
                    yield call_bar(tools.describe(tool, view.cwd), depth=1)
            return
        for tool in calls.tools:
            yield from self._call(tool, 0, view)
        inner = calls.inner
        if not self._verbose:
            inner = tuple(each for each in inner if each.tool.status == "failed")[-INNER:]
        for depth, tool in inner:
            yield from self._call(tool, depth, view)

    def _call(self, tool: ToolView, depth: int, view: RunView) -> Iterator[RenderableType]:
        yield call_bar(tools.describe(tool, view.cwd), depth=depth, more=tools.agent_words(view, tool.id))
        changes = () if tool.status == "failed" or depth else diffs.changes_of(tool, view.cwd)
        for change in changes[:CHANGES]:
            if len(changes) > 1:
                yield change_bar(change)
            yield from hunk_rows(change)
        if len(changes) > CHANGES:
            yield Text(f"     … {numbers.plural(len(changes) - CHANGES, 'more file')}", "dim")
        limit = VERBOSE_OUTPUT if self._verbose else OUTPUT if tool.status == "failed" else 0
        if limit:
            indent = 2 * depth
            yield from (Padding(row, (0, 0, 0, indent)) for row in output_rows(tools.output_of(tool), limit))

    def _thought(self, thought: Thought) -> Iterator[RenderableType]:
        if self._verbose:
            yield Hanging(Text(" ┆ ", "dim"), clean(thought.text).strip(), "dim italic", repeat=True)
        if thought.seconds >= SHORTEST:
            yield Text(f" ┆ thought for {whole(thought.seconds)}", "dim italic")


def _said(said: Said) -> Iterator[RenderableType]:
    piece = said.piece
    if piece.skipped:
        yield Text(f" … {piece.skipped:,} characters are not shown here", "dim")
    if piece.code is None:
        yield Padding(Prose(piece.text), (0, 1, 0, 1))
    else:
        yield Padding(Code(piece.text, piece.code), (0, 1, 0, 3))


def _answered(answer: AnswerView, view: RunView) -> Iterator[RenderableType]:
    about = tools.called(answer.tool_id, view) or line(asked_title(answer, view))
    icon, style = {True: ("✔", "green"), False: ("✘", "yellow"), None: ("⊘", "dim")}[
        questions.allowed(answer)
    ]
    yield Bar(Text.assemble(" ", (icon, style), " ", (f"{'asked':<{VERB}}", "bold"), " ", about))
    yield Hanging(Text(" " * (VERB + 2) + "→ ", "dim"), questions.answered(answer), style)


def _plan(entries: Sequence[ev.PlanEntry]) -> Iterator[RenderableType]:
    yield Text(" ≡ the plan has changed", "bold")
    for entry in entries[:STEPS]:
        yield step_bar(entry)
    if len(entries) > STEPS:
        yield Text(f"     … {numbers.plural(len(entries) - STEPS, 'more step')}", "dim")


def step_bar(entry: ev.PlanEntry) -> Bar:
    """Return the row of a step of a plan."""
    return Bar(Text.assemble("   ", step_words(entry)))


def step_words(entry: ev.PlanEntry) -> Text:
    """Return a step of a plan, with its mark."""
    mark = "green" if entry.status == "completed" else "cyan"
    style = {"completed": "dim strike", "in_progress": "bold", "pending": ""}[entry.status]
    return Text.assemble((MARKS[entry.status], mark), " ", (step_text(entry), style))


def _returned(attempt: ev.ResultAttempt) -> Iterator[RenderableType]:
    if attempt.accepted:
        yield Text.assemble(" ", STATUS_MARKS["done"], " ", ("result", "bold"))
        return
    yield Text.assemble(
        " ", ("✘", "yellow"), " ", (f"{'result':<{VERB}}", "bold"), " was not valid; the agent was told why"
    )
    for error in attempt.errors[:REASONS]:
        yield Hanging(Text("     "), line(error), "dim", limit=REASONS)


def _notice(notice: ev.Notice) -> Iterator[RenderableType]:
    style = {"error": "red", "warning": "yellow"}.get(notice.severity, "cyan")
    said = ": ".join(filter(None, (line(notice.title), line(notice.description or ""))))
    yield Hanging(Text(" ! ", f"bold {style}"), said, style)
