"""The live zone of one run: what is running, in as few rows as possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.text import Text

from thinkwell._display import numbers, phases, tools
from thinkwell._display.calls import draft_in
from thinkwell._display.cells import cells, wrap
from thinkwell._display.paths import from_home
from thinkwell._display.plans import plan_line
from thinkwell._display.text import clean, json_text, line
from thinkwell._display.usage import context_share, usage_parts
from thinkwell.progress._blocks import Bar, call_bar, output_rows, step_bar, step_words, whole
from thinkwell.progress._markdown import WIDEST
from thinkwell.progress._question import question_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._display.tools import Call
    from thinkwell.progress._renderer import Shown
    from thinkwell.progress._settling import Nested, Settling
    from thinkwell.view import ToolView

SHARE: Final = 3
"""The live zone has at most one in this many rows of the terminal."""

GAP: Final = 7
"""Rows of a live zone with room for an empty one above it."""

SPINNER: Final = "◐◓◑◒"

LOOKED_AT: Final = 2_000
"""Characters of a running text whose last rows are shown."""

LOOKED_AT_CALLS: Final = 60
"""Most running calls that are shown, the last ones."""

WAITING: Final = 3
"""Rows of waiting questions."""

THOUGHT: Final = 2
"""Rows of thoughts."""

OUTPUT: Final = 5
"""Rows of the output of a running call."""

STEPS: Final = 5
"""Rows of a plan that does not fit into one row."""

WAITED: Final = 3
"""Seconds from which on durations are shown."""

METER: Final = 8
"""Columns of the bar for the use of the context window."""

_FULL: Final = ((0.9, "red"), (0.7, "yellow"), (0.0, "cyan"))
"""The colours of that bar, by share."""


def room(height: int) -> int:
    """Return how many rows the live zone may have."""
    return max(height // SHARE, 1)


def inner_room(height: int) -> int:
    """Return how many of them are not empty."""
    return room(height) - (room(height) >= GAP)


def spinner(now: float) -> str:
    """Return the mark of running things, which turns once in four seconds."""
    return SPINNER[int(now) % len(SPINNER)]


@dataclass(slots=True)
class _Section:
    """Rows that belong together, some of which may be left out."""

    rows: Sequence[Bar] = ()
    last: bool = False
    """Whether the first rows are left out, not the last."""
    taken: int = field(default=0, init=False)

    def shown(self) -> Sequence[Bar]:
        if not self.taken:
            return ()
        return self.rows[-self.taken :] if self.last else self.rows[: self.taken]


class Frame:
    """Draws the live zone of one run.

    Args:
        settling: Knows the parts of the run that are not settled.
        inner: Whether the owner of the terminal shows the run's agent and usage.
    """

    def __init__(self, settling: Settling, *, inner: bool = False) -> None:
        self._settling = settling
        self._inner = inner
        self._held: tuple[tuple[ToolView, ...], Bar] | None = None
        self._known: dict[str, tuple[ToolView, Call]] = {}
        """Running calls with their descriptions, which may take long to find."""
        self._output: tuple[ToolView, list[Bar]] | None = None

    def draw(self, shown: Shown, question: Sequence[Bar], width: int, height: int) -> list[Bar]:
        """Return the rows, each of which fits.

        Args:
            shown: The run.
            question: The rows of the current question.
            width: Columns of the terminal.
            height: Rows of the terminal.
        """
        width = min(width, WIDEST)
        running = self._settling.running
        header = _Section(() if self._inner else [header_bar(shown, running)])
        plan = _Section(_plan(shown, width))
        thought = _Section(self._thought(shown, width), last=True)
        held = _Section(self._held_bar(shown))
        called, put_out = self._calls(shown, running)
        calls, output = _Section(called, last=True), _Section(put_out, last=True)
        saying = self._said(shown, width)
        said = _Section(saying or _written(shown, width), last=True)
        waiting = _Section(_waiting(shown))
        asked = _Section(question, last=True)
        usage = _Section(() if self._inner else _usage(shown))
        told = bool(called or saying or thought.rows or waiting.rows or question)
        told = told and not (shown.cancelling or shown.killed)
        status = _Section(() if told or shown.view.phase in phases.OVER else [status_bar(shown)])
        sections = [header, plan, thought, held, calls, output, status, said, waiting, asked, usage]
        left = inner_room(height)
        for section, most in (
            *((asked, len(question)), (header, 1), (status, 1), (waiting, 1), (calls, 2), (said, 2)),
            *((plan, 1), (usage, 1), (thought, THOUGHT), (held, 1), (output, 3), (calls, len(called))),
            *((said, 6), (output, OUTPUT), (plan, STEPS), (waiting, WAITING), (said, len(said.rows))),
        ):
            taken = min(max(most, section.taken), len(section.rows), section.taken + left)
            left -= taken - section.taken
            section.taken = taken
        rows = [row for section in sections for row in section.shown()]
        return [Bar(Text("")), *rows] if room(height) > inner_room(height) else rows

    def _thought(self, shown: Shown, width: int) -> list[Bar]:
        text = " ".join(clean(self._settling.thinking(shown.view)[-LOOKED_AT:]).split())
        if not text:
            return []
        rows = wrap(text, width - 3 - len(" (thinking)"))[-THOUGHT:]
        bars = [Bar(Text(f" ┆ {row}", "dim italic")) for row in rows]
        return [*bars[:-1], Bar(bars[-1].left, Text("(thinking)", "dim"))]

    def _held_bar(self, shown: Shown) -> list[Bar]:
        held = self._settling.held
        if not held:
            return []
        if self._held is None or self._held[0] is not held:
            self._held = held, call_bar(tools.fold(held, shown.view.cwd))
        return [self._held[1]]

    def _calls(self, shown: Shown, running: Sequence[Nested]) -> tuple[list[Bar], list[Bar]]:
        """Return the rows of the running calls, and the output of the last one."""
        asked = {question.tool_id for question in shown.view.questions}
        calls = [each for each in running[-LOOKED_AT_CALLS:] if each.tool.id not in asked]
        loud = next(
            (each for each in reversed(calls) if each.tool.content or each.tool.output is not None), None
        )
        if loud is not None and not any(each.depth for each in calls):
            calls = [*(each for each in calls if each is not loud), loud]
        known, self._known = self._known, {}
        for each in calls:
            tool = each.tool
            before = known.get(tool.id)
            if before is None or before[0] is not tool:
                before = tool, tools.describe(tool, shown.view.cwd)
            self._known[tool.id] = before
        bars = [_running_bar(each, self._known[each.tool.id][1], shown) for each in calls]
        if loud is None or calls[-1] is not loud:
            return bars, []
        if self._output is None or self._output[0] is not loud.tool:
            self._output = loud.tool, output_rows(tools.output_of(loud.tool, LOOKED_AT), OUTPUT)
        return bars, self._output[1]

    def _said(self, shown: Shown, width: int) -> list[Bar]:
        text, code = self._settling.saying(shown.view)
        text = clean(text[-LOOKED_AT:]).strip("\n")
        if not text.strip():
            return []
        return _growing(text, "   " if code else " ", width)


def _growing(text: str, indent: str, width: int) -> list[Bar]:
    """Return the rows of a text that goes on."""
    *rows, last = wrap(text, width - len(indent) - 1)
    bars = [Bar(Text(f"{indent}{row}")) for row in rows]
    return [*bars, Bar(Text.assemble(indent, last, ("▌", "cyan")))]


def _written(shown: Shown, width: int) -> list[Bar]:
    """Return the rows of the result that the agent writes."""
    draft = draft_in(shown.view)
    if not draft:
        return []
    text = json_text(draft).rstrip('"]}\n ')  # it ends where the agent goes on
    return _growing(clean(text[-LOOKED_AT:]), "   ", width)


def header_bar(shown: Shown, running: Sequence[Nested]) -> Bar:
    """Return the first row: what runs, where, and for how long."""
    view = shown.view
    agent = line(view.agent)
    names = dict.fromkeys(filter(None, (line(shown.label), agent, line(view.model or ""))))
    first, *others = [*names, *([f"[{line(view.mode)}]"] if view.mode else []), from_home(view.cwd)]
    left = Text.assemble(" ", (first, "bold"), (" · ".join(["", *filter(None, others)]), "dim"))
    going_on = sum(not each.depth for each in running)
    count = [Text(f"{spinner(shown.now)} {numbers.plural(going_on, 'tool')}", "cyan")] if going_on else []
    return Bar(left, Text("  ").join([Text(numbers.clock(int(shown.now))), *count]))


def status_bar(shown: Shown) -> Bar:
    """Return the row with the current activity."""
    words = phases.words(shown.view, cancelling=shown.cancelling)
    if shown.killed:
        return Bar(Text(" ⊘ killing the agent", "bold red"))
    if shown.cancelling:
        return Bar(Text.assemble((f" ⊘ {words}", "bold yellow"), ("   Ctrl-C again kills the agent", "dim")))
    style = "yellow" if shown.view.stalled is not None or shown.view.questions else "cyan"
    phases_ = shown.view.phases
    waited = int(shown.now - max(phases_[-1].at, 0.0)) if phases_ and shown.view.phase != "responding" else 0
    return Bar(
        Text.assemble((f" {spinner(shown.now)} {words}", style), " …"),
        Text(whole(waited), "dim") if waited >= WAITED else None,
    )


def _plan(shown: Shown, width: int) -> list[Bar]:
    left = Text(" plan  ", "bold")
    entries = shown.view.plan
    plan = plan_line(shown.view, width - left.cell_len - len(f"  {len(entries)}/{len(entries)}"))
    if plan is None:
        return []
    right = Text(plan.progress, "dim")
    steps = Text("   ").join(map(step_words, plan.steps))
    before = Text("…  " if plan.before else "", "dim")
    after = Text("  …" if plan.after else "", "dim")
    if not (plan.before or plan.after):
        return [Bar(Text.assemble(left, steps), right)]
    if cells(plan.text) + left.cell_len + right.cell_len + 2 <= width and len(plan.steps) > 1:
        return [Bar(Text.assemble(left, before, steps, after), right)]
    return [
        Bar(Text.assemble(left, before, steps, after), right),
        *(step_bar(entry) for entry in entries[plan.before + 1 : plan.before + STEPS]),
    ]


def _running_bar(running: Nested, call: Call, shown: Shown) -> Bar:
    taken = whole(max(shown.now - call.started_at, 0.0))
    return call_bar(
        call, depth=running.depth, time=taken, more=tools.agent_words(shown.view, running.tool.id)
    )


def _waiting(shown: Shown) -> list[Bar]:
    """Return the rows of the questions that have to wait."""
    waiting = [question for question in shown.view.questions if question.id != shown.asking]
    few = waiting if len(waiting) <= WAITING else waiting[: WAITING - 1]
    rows = [question_bar(question, shown.view, shown.now) for question in few]
    if more := len(waiting) - len(few):
        rows.append(Bar(Text(f"   … {numbers.plural(more, 'more question')}", "yellow")))
    return rows


def _usage(shown: Shown) -> list[Bar]:
    parts = usage_parts(shown.view)
    if not parts:
        return []
    share = context_share(shown.view)
    left = Text(" ")
    if share is not None:
        filled = round(share * METER)
        style = next(style for least, style in _FULL if share >= least)
        left.append("━" * filled, style)
        left.append("─" * (METER - filled) + " ", "bright_black")
    return [Bar(Text.assemble(left, (" · ".join(parts), "dim")))]
