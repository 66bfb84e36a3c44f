"""Several runs at once: one row for each, those that failed first, and one of them with more."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from rich.text import Text

from thinkwell._display import numbers, phases
from thinkwell._display.summary import error_words, summary
from thinkwell._display.text import clean, line
from thinkwell._display.usage import usage_parts
from thinkwell.progress._blocks import STATUS_MARKS, Bar, Hanging
from thinkwell.progress._frame import LOOKED_AT, room, spinner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from thinkwell.progress._renderer import Shown
    from thinkwell.progress._settling import Settling

T = TypeVar("T")

LABEL: Final = 24
"""Columns of the name of a run at most."""

RESULT: Final = 200
"""Characters of a result that are shown."""


def labels_width(runs: Sequence[Shown]) -> int:
    """Return the columns that the names take."""
    return min(max((Text(line(run.label)).cell_len for run in runs), default=0), LABEL)


def run_bar(run: Shown, width: int) -> Bar:
    """Return the row of a run.

    Args:
        run: The run.
        width: Columns of the names.
    """
    view = run.view
    status = run.status
    told = phases.words(view, cancelling=run.cancelling)
    if view.error is not None and status == "failed":
        told = line(error_words(view.error).what)
    elif status == "done":
        told = summary(view, run.now).work or told
    right = [
        *usage_parts(view)[:1],
        numbers.clock(int(run.now)) if status == "running" else numbers.seconds(run.now),
    ]
    text = Text(told, "red" if status == "failed" else "yellow" if view.questions else "")
    return row_bar(run.label, width, mark_of(status, run.now), text, "  ".join(right))


def mark_of(status: str, now: float) -> tuple[str, str]:
    """Return the mark of a row, which turns while it runs, and its style."""
    return STATUS_MARKS[status] if status in ("done", "failed", "cancelled") else (spinner(now), "cyan")


def row_bar(label: str, width: int, mark: tuple[str, str], text: Text, right: str) -> Bar:
    """Return a row of a display with several.

    Args:
        label: Its name.
        width: Columns of the names.
        mark: How far it is, as a mark and its style.
        text: What happens.
        right: Figures.
    """
    name = Text(line(label), "bold")
    name.truncate(width, overflow="ellipsis", pad=True)
    return Bar(Text.assemble(" ", mark, " ", name, "  ", text), Text(right, "dim"))


def fitting(things: Sequence[T], left: int, bar: Callable[[T], Bar], word: str) -> list[Bar]:
    """Return the rows of as many things as there is room for, and the number of the others."""
    shown = things if len(things) <= left else things[: max(left - 1, 0)]
    more = len(things) - len(shown)
    rest = [Bar(Text(f"   … {numbers.plural(more, word)}", "dim"))] if more else []
    return [*map(bar, shown), *rest]


def finished(run: Shown, width: int) -> list[RenderableType]:
    """Return what is printed once when a run has ended.

    Args:
        run: The run.
        width: Columns of the names.
    """
    rows: list[RenderableType] = [run_bar(run, width)]
    if run.view.error is not None and run.status == "failed":
        words = error_words(run.view.error)
        rows += [Hanging(Text("     → "), words.next, "bold")] if words.next else []
    elif run.result is not None and run.status == "done":
        rows.append(Hanging(Text("     → "), line(run.result, RESULT), "dim"))
    return rows


def draw(
    runs: Sequence[Shown], settlings: Sequence[Settling], question: Sequence[Bar], height: int
) -> list[Bar]:
    """Return the live zone.

    Args:
        runs: All runs.
        settlings: What of each is not settled.
        question: The rows of the question that is asked.
        height: Rows of the terminal.
    """
    width = labels_width(runs)
    failed = [run for run in runs if run.status == "failed"]
    going_on = [run for run in runs if run.status == "running"]
    going_on.sort(key=lambda run: not run.view.questions)
    left = room(height) - len(question)
    rows = [_header(runs, going_on, failed)][:left]
    left -= len(rows)
    shown = fitting([*failed, *going_on], left, partial(run_bar, width=width), "more run")[:left]
    rows += shown
    if len(shown) < left and going_on and not question:
        rows += _more(going_on[0], settlings[list(runs).index(going_on[0])])
    return [*rows, *question]


def _header(runs: Sequence[Shown], going_on: Sequence[Shown], failed: Sequence[Shown]) -> Bar:
    parts = [f"{len(runs) - len(going_on)}/{len(runs)} done"]
    parts += [f"{len(failed)} failed"] if failed else []
    asking = sum(len(run.view.questions) for run in runs)
    parts += [numbers.plural(asking, "question")] if asking else []
    longest = max((run.now for run in runs), default=0.0)
    cancelling = [Text("  ⊘ cancelling   Ctrl-C again kills the agents", "bold yellow")]
    return Bar(
        Text.assemble(
            " ",
            (numbers.plural(len(runs), "run"), "bold"),
            (" · ".join(["", *parts]), "dim"),
            *(cancelling if any(run.cancelling for run in going_on) else []),
        ),
        Text(numbers.clock(int(longest))),
    )


def _more(run: Shown, settling: Settling) -> list[Bar]:
    """Return what the first run that goes on says or thinks, in a row."""
    said, _ = settling.saying(run.view)
    text = " ".join(clean((said or settling.thinking(run.view))[-LOOKED_AT:]).split())
    if not text:
        return []
    return [Bar(Text(f"   ┆ {text[-200:]}", "dim italic"))]


def closing(runs: Sequence[Shown]) -> list[RenderableType]:
    """Return the last row: what all of them came to; none where there was no run."""
    if not runs:
        return []
    statuses = [run.status for run in runs]
    words = {"done": "done", "failed": "failed", "cancelled": "cancelled", "running": "going on"}
    parts = [f"{statuses.count(status)} {word}" for status, word in words.items() if status in statuses]
    longest = max((run.now for run in runs), default=0.0)
    style = (
        "bold red"
        if "failed" in statuses
        else "bold yellow"
        if statuses.count("done") < len(runs)
        else "bold green"
    )
    return [
        Text(""),
        Bar(
            Text.assemble(
                " ",
                (numbers.plural(len(runs), "run"), style),
                f": {', '.join(parts)}, {numbers.seconds(longest)}",
            )
        ),
    ]
