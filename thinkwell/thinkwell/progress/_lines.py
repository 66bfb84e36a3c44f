"""Runs as lines that are only appended: for logs, CI, and simple terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from thinkwell._display import numbers, phases
from thinkwell._display.cells import cells, clip, cut, wrap
from thinkwell._display.explaining import explanation
from thinkwell._display.plans import plan_line
from thinkwell._display.questions import Putting
from thinkwell._display.summary import summary
from thinkwell._display.text import clean, line
from thinkwell._display.usage import usage_parts
from thinkwell.progress._line_rows import Row, key_rows, question_rows, rows_of
from thinkwell.progress._renderer import Renderer, Shown, is_alone
from thinkwell.progress._settling import Settling
from thinkwell.view import RunView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell import events as ev
    from thinkwell._display.questions import Asked
    from thinkwell._display.summary import Summary

QUIET: Final = 30.0
"""Seconds without a line after which a line says what is running: some CI systems end silent jobs."""

LABEL: Final = 40
"""Characters of the name of a run."""

PREFIX: Final = 9
"""Columns of the prefixes, with a space."""

NARROWEST: Final = 20
"""Fewest columns of text."""

DETAIL: Final = 20
"""Lines of an error's details, the last ones."""

PLAN: Final = 160
"""Most columns of a plan; a longer one is cut around the current step."""

LONGEST: Final = 16
"""Columns before a plan: ``10/12  changed  ``."""

SHORTEST: Final = 0.05
"""Seconds: shorter durations are not shown."""

GROUPED: Final = 3
"""Fewest rows that are folded in logs that support it."""

_ASCII: Final = str.maketrans(
    {"✔": "ok", "✘": "x", "⊘": "-", "▸": ">", "·": "-", "…": "...", "−": "-", "→": "->", "│": "|"}
)
"""For logs that cannot encode other characters."""


class LinesRenderer(Renderer):
    """Writes lines, each with a fixed prefix: ``[tool]``, ``[say]``, ``[done]``, ….

    Args:
        out: The file.
        width: Columns to wrap lines at; ``None``: lines are not wrapped.
        verbose: Whether to write all thoughts and tool output.
        github: Whether to fold long parts with GitHub's log commands.
        brief: Whether the end is one line.
    """

    def __init__(
        self,
        out: TextIO,
        *,
        width: int | None = None,
        verbose: bool = False,
        github: bool = False,
        brief: bool = False,
    ) -> None:
        self._out = out
        self._brief = brief
        self._width = width
        self._verbose = verbose
        self._github = github
        self._runs: dict[int, _Run] = {}
        self._encoding = _poor_encoding(out)

    def draw(self, runs: Sequence[Shown], /, *, end: bool = False) -> None:
        """Write what has happened; at the end the rest, and the outcome of every run."""
        lines: list[str] = []
        alone = is_alone(runs)
        for index, shown in enumerate(runs):
            run = self._runs.get(index)
            if run is None:
                run = self._runs[index] = self._begin()
            over = end or (not alone and shown.view.phase in phases.OVER)
            label = "" if alone else f"{line(shown.label, LABEL)}: "
            lines += self._lines(list(run.rows(shown, over=over)), label)
        if not lines:
            return
        text = "".join(f"{each}\n" for each in lines)
        if self._encoding is not None:
            text = text.translate(_ASCII).encode(self._encoding, "backslashreplace").decode(self._encoding)
        self._out.write(text)
        self._out.flush()

    def _begin(self) -> _Run:
        room = PLAN if self._width is None else self._width - PREFIX
        return _Run(room, verbose=self._verbose, brief=self._brief)

    def _lines(self, rows: Sequence[Row], label: str) -> Iterator[str]:
        """Yield rows as lines; rows that belong to the one before are folded if requested."""
        at = 0
        while at < len(rows):
            after = at + 1
            while after < len(rows) and rows[after].inside:
                after += 1
            lines = [text for row in rows[at:after] for text in self._broken(row, label)]
            if self._github and rows[at].prefix == "tool" and after - at > GROUPED:
                # Commands to the log begin a line, or with ``##[``; ours begin with a prefix.
                lines = [f"::group::{lines[0]}", *lines[1:], "::endgroup::"]
            yield from lines
            at = after

    def _broken(self, row: Row, label: str) -> Iterator[str]:
        prefix = f"{label}{f'[{row.prefix}]':<{PREFIX}}"
        text = row.text.replace("##[", "## [") if self._github else row.text
        parts = text.split("\n")
        if self._width is not None:
            taken = cells(prefix) + cells(row.lead) + cells(row.tail)
            parts = _fitted(text, row.how, max(self._width - taken, NARROWEST))
        for number, part in enumerate(parts, 1):
            tail = row.tail if number == len(parts) else ""
            yield f"{prefix}{row.lead}{part}{tail}".rstrip()


def _fitted(text: str, how: str, room: int) -> list[str]:
    if how == "clip":
        return [clip(text, room)]
    if how == "wrap":
        return wrap(text, room)
    return [piece for row in text.split("\n") for piece in cut(row, room)]


def _poor_encoding(out: TextIO) -> str | None:
    """Return the encoding of a file that cannot encode all our characters; ``None`` if it can."""
    encoding = out.encoding or "utf-8"  # no encoding: it takes any text
    try:
        "".join(map(chr, _ASCII)).encode(encoding)
    except LookupError:
        return "ascii"
    except UnicodeEncodeError:
        return encoding
    return None


class _Run:
    """What was written about one run."""

    def __init__(self, room: int, *, verbose: bool, brief: bool) -> None:
        self._room = room
        self._brief = brief
        self._settling = Settling(verbose=verbose)
        self._verbose = verbose
        self._before = Shown(view=RunView(), now=0.0)
        """The run when it was last written about."""
        self._asked: dict[str, Asked] = {}
        """Open questions as written."""
        self._putting = Putting()
        self._keyed = ""
        """Id of the question whose keys were written last."""
        self._told_at = 0.0
        self._ended = False

    def rows(self, shown: Shown, *, over: bool) -> Iterator[Row]:
        """Yield what has happened since the last time."""
        if self._ended:
            return
        rows = [*self._news(shown, over=over), *self._questions(shown)]
        self._before = shown
        if not rows and not over and shown.now - self._told_at >= QUIET:
            doing = phases.words(shown.view, cancelling=shown.cancelling)
            rows.append(Row("phase", f"{doing}, {numbers.seconds(shown.now)} so far"))
        if over:
            self._ended = True
            rows += _end_row(shown) if self._brief else _end(shown, verbose=self._verbose)
        if rows:
            self._told_at = shown.now
        yield from rows

    def _news(self, shown: Shown, *, over: bool) -> Iterator[Row]:
        view = shown.view
        later = self._before.view.turns > 0 and view.turns > 1
        if not later:
            yield from self._phase(shown)
        for thing in self._settling.look(view, shown.now, end=over):
            yield from rows_of(thing, view, verbose=self._verbose)
        if later:
            yield from self._phase(shown)
        yield from self._plan_rows(view)

    def _phase(self, shown: Shown) -> Iterator[Row]:
        view, before = shown.view, self._before
        if not before.view.phases:
            names = [line(name) for name in (view.agent, view.model or "", view.cwd) if name]
            yield Row("phase", " · ".join(names) or "begins")
        for phase in view.phases[len(before.view.phases) :]:
            if phase.phase == "responding":
                first = view.phases[view.phases.index(phase) - 1]
                if first.phase == "prompted" and (first.seconds or 0) >= SHORTEST:
                    yield Row("phase", f"first token after {numbers.seconds(first.seconds or 0)}")
            elif phase.phase not in phases.OVER and (phase.seconds is None or phase.seconds >= 1):
                took = "" if phase.seconds is None else f" ({numbers.seconds(phase.seconds)})"
                turn = f"turn {view.turns}: " if phase.phase == "prompted" and view.turns > 1 else ""
                yield Row("phase", f"{turn}{phases.phase_words(phase, view.agent)}{took}")
        if shown.cancelling + shown.killed > before.cancelling + before.killed:
            yield Row("phase", "killed" if shown.killed else "cancelling")
        if view.stalled is not None and before.view.stalled is None:
            limit = numbers.seconds(view.stalled.limit)
            idle = numbers.seconds(view.stalled.idle)
            yield Row("phase", f"nothing heard for {idle}; it is cancelled after {limit}")

    def _plan_rows(self, view: RunView) -> Iterator[Row]:
        before = self._before.view
        if view.plan is before.plan or _steps(view.plan) == _steps(before.plan):
            return
        short = plan_line(view, self._room - LONGEST)
        changed = "changed  " if view.plan_changes > before.plan_changes else ""
        if short is None:
            yield Row("plan", "taken back")
        else:
            yield Row("plan", f"{short.progress}  {changed}{short.text}", how="clip")

    def _questions(self, shown: Shown) -> Iterator[Row]:
        view = shown.view
        told, self._asked = self._asked, {}
        for question in view.questions:
            put = self._asked[question.id] = self._putting.put(question, view)
            before = told.get(question.id)
            changed = before is not None and not before.same(put)
            if changed:
                yield Row("ask", "the agent has changed what it asks:")
            if before is None or changed:
                yield from question_rows(put, shown.now)
            if question.id == shown.asking and (changed or self._keyed != question.id):
                self._keyed = question.id
                yield from key_rows(put)
        if shown.explained > self._before.explained:
            found = next(each for each in view.questions if each.id == shown.asking)
            tool = None if found.tool_id is None else view.tools.get(found.tool_id)
            for part in explanation(self._asked[found.id], tool):
                yield Row(
                    "ask", part.text, how="cut", lead="    " if part.kind in ("code", "+", "-") else "  "
                )
        if shown.problem and shown.problem != self._before.problem:
            yield Row("ask", line(shown.problem), lead="  ")


def _steps(plan: Sequence[ev.PlanEntry]) -> list[tuple[str, str]]:
    return [(entry.status, entry.content) for entry in plan]


# The end


def _end_row(shown: Shown) -> list[Row]:
    told = summary(shown.view, shown.now)
    return [Row("done", " · ".join((told.end, *usage_parts(shown.view))))]


def _end(shown: Shown, *, verbose: bool) -> Iterator[Row]:
    told = summary(shown.view, shown.now, shown.recording)
    yield Row("usage", told.usage)
    if (result := shown.untold_result) is not None:
        yield Row("result", clean(result))
    yield Row("done", told.end)
    yield from _error(told, verbose=verbose)
    if told.denied:
        yield Row("done", f"denied: {', '.join(told.denied)}")
    if told.time:
        yield Row("done", f"time: {told.time}")
    names = [f"session {told.session_id}"] * bool(told.session_id)
    names += [f"recorded in {told.recording}"] * bool(told.recording)
    if names:
        yield Row("done", " · ".join(names))


def _error(told: Summary, *, verbose: bool) -> Iterator[Row]:
    error = told.error
    if error is None or told.status == "cancelled":
        return
    yield Row("done", f"error: {error.what}")
    if error.detail:
        lines = error.detail.split("\n")
        for text in lines if verbose else lines[-DETAIL:]:
            yield Row("done", text, how="cut", lead="  | ")
    if error.next:
        yield Row("done", f"next: {error.next}")
