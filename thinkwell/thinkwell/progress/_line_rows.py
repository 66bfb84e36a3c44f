"""The settled parts of a run as rows of text, each with a prefix for its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from thinkwell import events as ev
from thinkwell._display import numbers, questions
from thinkwell._display.calls import asked_title
from thinkwell._display.diffs import changes_of, excerpt
from thinkwell._display.questions import keys_of
from thinkwell._display.text import clean, line
from thinkwell._display.tools import agent_words, describe, fold, output_of
from thinkwell.progress import _settling as st
from thinkwell.view import AnswerView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell._display.diffs import DiffLine, FileChange
    from thinkwell._display.questions import Asked
    from thinkwell._display.tools import Call
    from thinkwell.view import RunView, ToolView

Prefix: TypeAlias = Literal[
    "phase",
    "think",
    "tool",
    "diff",
    "plan",
    "ask",
    "answer",
    "user",
    "say",
    "note",
    "usage",
    "result",
    "done",
]

OUTPUT: Final = 10
"""Lines of the output of a failed tool, the last ones."""

WHOLE_OUTPUT: Final = 200
"""The same for any tool, with ``verbose``."""

DIFF: Final = 8
"""Lines of a change."""

ASKED_HUNKS: Final = 5
"""Hunks of a change that needs permission."""

ASKED_LINES: Final = 60
"""Lines of each of these hunks."""

PROBLEMS: Final = 5
"""Most problems of a result that are shown."""


class Row(NamedTuple):
    """A line, or several if it is wrapped."""

    prefix: Prefix
    text: str
    """Clean; may have several lines."""
    how: Literal["wrap", "clip", "cut"] = "wrap"
    """For text that does not fit: wrap it by word, clip it, or wrap it by character, because it must be seen
    exactly."""
    lead: str = ""
    """Text before every line."""
    tail: str = ""
    """Text after the row, which is never left out."""
    inside: bool = False
    """Whether it belongs to the row before, and may be folded with it."""


def rows_of(thing: st.Settled, view: RunView, *, verbose: bool) -> Iterator[Row]:
    """Yield the rows of a settled part."""
    match thing:
        case st.Calls():
            yield from _calls(thing, view, verbose=verbose)
        case st.Said(piece=piece):
            code = piece.code is not None
            yield Row("say", clean(piece.text), how="cut" if code else "wrap", lead="    " if code else "")
        case st.Thought():
            yield _thought(thing, verbose=verbose)
        case st.UserSaid(text=text):
            yield Row("user", clean(text).strip())
        case AnswerView():
            yield from _answered(thing, view)
        case ev.ResultAttempt(accepted=True):
            yield Row("result", "accepted")
        case ev.ResultAttempt(errors=errors):
            problems = [line(problem) for problem in errors[:PROBLEMS]]
            more = len(errors) - PROBLEMS
            yield Row("result", f"refused: {problems[0] if problems else 'it is not valid'}")
            for problem in [*problems[1:], *([f"… and {more} more"] if more > 0 else [])]:
                yield Row("result", problem, lead="  ")
        case ev.Notice():
            about = f": {line(thing.description)}" if thing.description else ""
            yield Row("note", f"{line(thing.severity, 20)}: {line(thing.title)}{about}")
        case st.Skipped(count=count):
            yield Row("note", f"… {numbers.plural(count, 'more thing')} happened")
        case _:
            pass  # a plan and a turn are written when they begin


def _thought(thought: st.Thought, *, verbose: bool) -> Row:
    if verbose:
        return Row("think", clean(thought.text).strip())
    return Row("think", f"thought for {numbers.seconds(thought.seconds)}: {line(thought.text)}", how="clip")


# Tool calls


def _calls(calls: st.Calls, view: RunView, *, verbose: bool) -> Iterator[Row]:
    tool, *others = calls.tools
    if others:
        yield _call_row(fold(calls.tools, view.cwd))
        if calls.thought is not None:
            yield _thought(calls.thought, verbose=verbose)
        return
    yield from _tool(tool, view, 0, verbose=verbose)
    for depth, inner in calls.inner:
        yield from _tool(inner, view, depth, verbose=verbose)


def _tool(tool: ToolView, view: RunView, depth: int, *, verbose: bool) -> Iterator[Row]:
    call = describe(tool, view.cwd)
    lead = "  " * depth
    yield _call_row(call, lead, agent_words(view, tool.id))
    changes = changes_of(tool, view.cwd)
    for change in changes:
        yield from diff_rows(change, named=len(changes) > 1)
    if call.status == "failed" or (verbose and call.kind not in ("read", "search") and not changes):
        yield from _output(tool, lead, WHOLE_OUTPUT if verbose else OUTPUT)


_ENDS: Final = {"failed": "failed", "cancelled": "cancelled", "running": "not ended", "pending": "not begun"}


def _call_row(call: Call, lead: str = "", more: str = "") -> Row:
    end = _ENDS.get(call.status, "")
    took = "" if call.seconds is None else numbers.seconds(call.seconds)
    came = ", ".join(filter(None, (end, call.detail)))
    text = " ".join(filter(None, (call.icon, call.verb, call.target)))
    tail = "".join(f"  {each}" for each in (more, came, took) if each)
    return Row("tool", text, how="clip", lead=lead, tail=tail, inside=bool(lead))


def _output(tool: ToolView, lead: str, most: int) -> Iterator[Row]:
    lines = [text.rstrip() for text in output_of(tool).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    lead += "  | "
    if len(lines) > most:
        yield Row("tool", f"… {numbers.plural(len(lines) - most, 'line')} before", lead=lead, inside=True)
    for text in lines[-most:]:
        yield Row("tool", text, how="cut", lead=lead, inside=True)


def diff_rows(change: FileChange, *, named: bool = True) -> Iterator[Row]:
    """Yield the first lines of a change."""
    part = excerpt(change, DIFF)
    if named:
        about = "about " if change.truncated else ""
        yield Row("diff", f"{change.path} {about}+{change.added} −{change.removed}", inside=True)
    yield from _diff_lines(part.lines)
    column = _numbers_width(part.lines)
    if part.rest:
        yield Row("diff", f"… {', '.join(part.rest)}", lead=" " * (column + 2), inside=True)


def _numbers_width(lines: Sequence[DiffLine]) -> int:
    return 5 if any(each.number is not None for each in lines) else 0


def _diff_lines(lines: Sequence[DiffLine]) -> Iterator[Row]:
    column = _numbers_width(lines)
    for each in lines:
        number = "" if each.number is None else f"{each.number} "
        more = f" {numbers.plural(each.more, 'more character')}" if each.more else ""
        text = f"{number:>{column}}{each.sign} {each.text}{more}"
        yield Row("diff", text, how="clip", lead="  ", inside=True)


# Questions


def _answered(answer: AnswerView, view: RunView) -> Iterator[Row]:
    title = line(asked_title(answer, view)) or answer.asks
    yield Row("answer", f"{title}: {questions.answered(answer)}")
    for verdict in answer.verdicts:
        if verdict.by != answer.by or verdict.why != answer.why:
            yield Row("answer", questions.verdict_words(verdict), lead="  ")


def question_rows(asked: Asked, now: float) -> Iterator[Row]:
    """Yield an open question, with everything needed to decide it."""
    yield Row("ask", _question(asked))
    if asked.said and asked.title_tells:
        yield Row("ask", asked.said, how="cut", lead="  ", inside=True)
    yield from _command(asked)
    if asked.url is not None:
        yield Row("ask", asked.url, how="cut", lead="  ", inside=True)
        yield Row("ask", f"which leads to {asked.host or 'an unknown host'}", lead="  ", inside=True)
    for change in asked.changes:
        yield from _asked_change(change)
    yield from _about(asked)
    if asked.arguments:
        yield Row("ask", asked.arguments, how="cut", lead="  ", inside=True)
    for field in asked.fields:
        yield Row("ask", f"{field.label}: {field.hint}", lead="  ", inside=True)
        if field.choices:
            yield Row("ask", field.offered, lead="    ", inside=True)
    for verdict in asked.verdicts:
        yield Row("ask", verdict, lead="  ", inside=True)
    left = asked.left(now)
    if left is not None:
        yield Row("ask", f"denied in {numbers.seconds(left)}, unless it is answered", lead="  ", inside=True)


def _command(asked: Asked) -> Iterator[Row]:
    for number, text in enumerate(asked.command.split("\n") if asked.command is not None else ()):
        yield Row("ask", text, how="cut", lead="    " if number else "  $ ", inside=True)


def _about(asked: Asked) -> Iterator[Row]:
    for about in asked.about:
        if asked.call is None or about != asked.call.target:
            yield Row("ask", about, how="cut", lead="  ", inside=True)
    yield from _left_out(asked.more_about, "more file")


def _asked_change(change: FileChange) -> Iterator[Row]:
    """Yield the details of a change in full, with counts of what is left out."""
    about = "about " if change.truncated else ""
    yield Row("ask", f"{change.path} {about}+{change.added} −{change.removed}", how="cut", inside=True)
    hunks = change.hunks[:ASKED_HUNKS]
    for number, hunk in enumerate(hunks):
        if number:
            yield Row("ask", "…", lead="  ", inside=True)
        shown = hunk.lines[:ASKED_LINES]
        for row in _diff_lines(shown):
            yield row._replace(prefix="ask", how="cut")
        more = len(hunk.lines) - len(shown) + hunk.more_lines
        yield from _left_out(more, "more line")
    yield from _left_out(len(change.hunks) - len(hunks) + change.more_hunks, "more hunk")


def _left_out(count: int, word: str) -> Iterator[Row]:
    if count:
        yield Row("ask", f"… {numbers.plural(count, word)}", lead="  ", inside=True)


def cut(asked: Asked) -> bool:
    """Return whether `question_rows` leaves out a part of the question."""
    changes = asked.changes
    hunks = [hunk for change in changes for hunk in change.hunks]
    return (
        asked.more_about > 0
        or any(change.more_hunks or len(change.hunks) > ASKED_HUNKS for change in changes)
        or any(hunk.more_lines or len(hunk.lines) > ASKED_LINES for hunk in hunks)
        or any(each.more for hunk in hunks for each in hunk.lines)
    )


def _question(asked: Asked) -> str:
    if asked.asks != "permission":
        return f"{'form' if asked.asks == 'form' else 'open a web page'}: {asked.title}"
    call = asked.call
    about = "" if call is None or asked.command else f" ({f'{call.verb} {call.target}'.rstrip()})"
    return f"permission: {asked.title}{about}"


def key_rows(asked: Asked) -> Iterator[Row]:
    """Yield the keys and their meanings."""
    if cut(asked):
        yield Row("ask", "that is not all of it: [e] shows the rest", lead="  ")
    if asked.more_options:
        yield Row("ask", f"{numbers.plural(asked.more_options, 'more option')} without a key", lead="  ")
    yield Row("ask", "  ".join(f"[{each.key}] {each.label}" for each in keys_of(asked)), lead="  ")
