"""The rows of a run's timeline: texts, tool calls, questions and others, as nodes."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from thinkwell._core.policy.arguments import command_line
from thinkwell._display import diffs, numbers, questions, tools
from thinkwell._display.items.ansi import output_pieces
from thinkwell._display.items.nodes import by_line, element, link, parts_of, safe_link, styled, text_of
from thinkwell._display.paths import relative
from thinkwell._display.text import clean, exact, json_text, line
from thinkwell._display.urls import url_host
from thinkwell.events import (
    BlockContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell import events as ev
    from thinkwell._display.diffs import DiffLine, FileChange, Hunk
    from thinkwell._display.items.nodes import Node
    from thinkwell._display.tools import Call
    from thinkwell.view import AnswerView, QuestionView, ToolView

Status: TypeAlias = Literal[
    "pending",
    "running",
    "done",
    "failed",
    "cancelled",
    "denied",
    "interrupted",
    "ask",
    "completed",
    "doing",
    "todo",
]
"""The status of a call, a question or a run, as a mark shows it."""

LEAST: Final = 0.1
"""Seconds from which on a duration is shown."""

DATA: Final = 8_000
"""Most characters of arguments, of a command, and of a refused result."""

SHORT: Final = 30
"""Most changed lines of a call that is unfolded at first."""

PICTURES: Final = 8
"""Most pictures of a call."""

PICTURE: Final = 8_000_000
"""Most characters of a picture in base64."""

LINES: Final = 40
"""Lines of an output in a part."""

LONGEST: Final = 4 * tools.OUTPUT
"""Characters of such a part."""

PROMPT: Final = 100_000
"""Most characters of a prompt."""

THINKING: Final = 240
"""Most characters of the end of a thought in progress."""

_PICTURES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


# Parts of rows


@cache
def icon(name: ev.ToolKind | Literal["interrupted"]) -> Node:
    """Return an icon of ours, beside text with the same meaning."""
    return element("icon", name)


@cache
def mark(status: Status) -> Node:
    """Return a status as an icon with a name."""
    return element("mark", status)


def word(status: Status) -> str:
    """Return the outcome of a run or a call, as one word."""
    return "done" if status == "completed" else status


def slot(name: str = "") -> Node:
    """Return the place of the items whose parent has a name; by default the item's own id.

    An element with it contains nothing else.
    """
    return element("slot", name)


def fold(look: str, *row: Node, unfolds: bool = True, body: Sequence[Node] = ()) -> Node:
    """Return a line, with its body below if it unfolds; by default that is the place of its parts."""
    if not unfolds:
        return element("div", "fold", *row)
    inner = element("div", "body", *(body or (slot(),)))
    return element("details", look, element("summary", "fold", *row), inner)


def counts(added: int, removed: int) -> Node:
    """Return the numbers of added and removed lines."""
    label = f"{numbers.plural(added, 'line')} added, {removed:,} removed"
    came, went = element("span", "plus", f"+{added}"), element("span", "minus", f"−{removed}")
    return element("span", "counts", came, went, attributes={"label": label})


def spent(seconds: float | None) -> Node:
    """Return a duration, if it is long enough to show."""
    return "" if seconds is None or seconds < LEAST else element("span", "", numbers.seconds(seconds))


def since(at: float) -> Node:
    """Return the time since a second of the run, which counts up."""
    return element("time", "since", attributes={"since": round(at, 3)})


def shortened(text: str, limit: int) -> str:
    """Return the beginning of a text, and the size of the rest."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n… and {numbers.count(len(text) - limit)} more characters"


# Texts


def thought(text: str, taken: float | None, row: str = "") -> Node:
    """Return the line of a thought.

    Args:
        text: Its beginning.
        taken: Its duration in seconds; ``None``: in progress.
        row: The id of its row, whose end is shown while it is in progress.
    """
    verb = "thinking" if taken is None else "thought"
    if taken is not None and taken >= LEAST:
        verb = f"thought {numbers.seconds(taken)}"
    begins = "" if taken is None else line(text, 160)
    head = (icon("think"), element("span", "verb", verb), element("span", "target dim", begins))
    body = element("div", "thought-body prose", slot())
    whole = element("details", "thought", element("summary", "fold", *head), body)
    return element("div", "", whole, element("div", "thinking", slot(row)) if taken is None else "")


def thinking(text: str) -> Node:
    """Return the end of a thought in progress."""
    rows = clean(text[-4 * THINKING :]).strip().split("\n")[-2:]
    return element("div", "thinking", "\n".join(rows)[-THINKING:])


def prompt(text: str) -> Node:
    """Return a prompt."""
    told = element("p", "", clean(shortened(text, PROMPT)))
    return element("div", "", element("span", "unseen", "You: "), element("div", "bubble prose", told))


def doing(status: Status, words: str, at: float | None) -> Node:
    """Return what a run is doing, and since when if that is known."""
    time = "" if at is None else element("span", "end", since(at))
    return element("div", "fold dim", mark(status), element("span", "wait", words), time)


def media(block: ev.ContentBlock) -> Node:
    """Return content other than text, as far as it can be shown."""
    match block:
        case ImageContent(data=data, mime_type=kind) if (
            kind in _PICTURES and len(data) <= PICTURE and _BASE64.fullmatch(data)
        ):
            attributes = {"type": kind, "data": data, "label": "Picture that the agent has sent"}
            return element("img", "sent", attributes=attributes)
        case ResourceLink():
            name = line(block.title or block.name, 200)
            if safe_link(block.uri) and url_host(block.uri):
                return element("span", "", *link(block.uri, name))
            return element("span", "", f"{name} ", element("code", "mono dim", line(block.uri, 500)))
        case TextContent():  # pragma: no cover - it is a text, which is drawn as one
            told = block.text
        case EmbeddedResource(text=str() as told):
            pass
        case EmbeddedResource(mime_type=kind, uri=uri):
            told = f"[{kind or 'data'}: {uri}]"
        case _:
            told = f"[{block.mime_type}]"
    return element("span", "dim mono", line(told, 500))


# Tool calls


def status_of(tool: ToolView, *, over: bool, denied: bool = False) -> Status:
    """Return the status of a call, in a run that may have ended before it."""
    if denied:
        return "denied"
    if tool.ended_at is None:
        return "interrupted" if over else "running" if tool.status == "in_progress" else "pending"
    return tools.status_of(tool)


def call(tool: ToolView, cwd: str, status: Node, end: Node, *, unfolds: bool) -> Node:
    """Return the line of a tool call, with the place of its parts.

    Args:
        tool: The call.
        cwd: The session's folder.
        status: Its mark, or nothing.
        end: The end of the line.
        unfolds: Whether it has parts.
    """
    told = tools.describe(tool, cwd)
    return element("div", "call", fold("card", *_line(told, status, end), unfolds=unfolds))


def outcome(tool: ToolView, cwd: str, status: Status, agent: str = "") -> Node:
    """Return the end of a tool call's line: its outcome and its duration.

    Args:
        tool: The call.
        cwd: The session's folder.
        status: How far it is.
        agent: What is said of the sub-agent that it is; empty where it is none.
    """
    changes = diffs.changes_of(tool, cwd)
    code = tools.exit_code(tool)
    sums: Node = ""
    if status == "denied":
        sums = element("span", "told", "denied")
    elif changes:
        sums = counts(sum(each.added for each in changes), sum(each.removed for each in changes))
    elif code:
        sums = element("span", "minus", f"exit {code}")
    time: Node = ""
    if status in ("running", "pending"):
        time = since(tool.started_at)
    elif status != "denied":
        time = spent(None if tool.ended_at is None else tool.ended_at - tool.started_at)
    said = element("span", "dim", agent) if agent else ""
    return element("span", "end", said, sums, time)


def state(status: Status, end: Node) -> Node:
    """Return what changes in the line of a tool call: its mark and its end."""
    return element("span", "state", mark(status), end)


def _line(told: Call, status: Node, *end: Node) -> Sequence[Node]:
    return (
        status,
        icon(told.kind),
        element("span", "verb", told.verb),
        element("span", "target", told.target),
        *end,
    )


def is_open(tool: ToolView, cwd: str, *, over: bool) -> bool:
    """Return whether a call that was not denied is unfolded at first."""
    changes = diffs.changes_of(tool, cwd)
    changed = sum(change.added + change.removed for change in changes)
    goes_on = tool.ended_at is None and not over
    return tool.status == "failed" or bool(changes and changed <= SHORT) or (goes_on and bool(tool.content))


def looked(calls: Sequence[ToolView], thoughts: Sequence[float], cwd: str) -> Node:
    """Return the line that calls share with the thoughts between them.

    Args:
        calls: The calls; without any, only thoughts share the line.
        thoughts: The duration of each thought, in seconds.
        cwd: The session's folder.
    """
    thought = sum(thoughts)
    words = f"thought {numbers.seconds(thought)}" if thought >= LEAST else "thought" if thoughts else ""
    if not calls:
        return fold("thoughts", icon("think"), element("span", "verb", words))
    told = tools.fold(calls, cwd)
    times = (element("span", "", words) if words else "", spent(told.seconds))
    return fold("card", *_line(told, mark("done"), element("span", "end", *times)))


def arguments(tool: ToolView, cwd: str, line_says: str = "") -> Node:
    """Return a call's command and arguments, unless something else shows them.

    Args:
        tool: The call.
        cwd: The session's folder.
        line_says: The text of its line.
    """
    command = command_line(tool.input) if tool.kind == "execute" else None
    rest = questions.other_arguments(tool, cwd, command=command is not None)
    places = [line(relative(place.path, cwd), 500) for place in tool.locations[: tools.PLACES]]
    parts: list[Node] = []
    if command is not None and command != line_says:
        told = clean(shortened(command, DATA))
        parts.append(element("pre", "wrap", told, attributes={"label": "Command"}))
    elif command is None and len(places) > tools.NAMED and not diffs.changes_of(tool, cwd):
        parts.append(element("div", "mono dim", "\n".join(places)))
    if rest:
        summary = element("summary", "label", "Arguments")
        parts.append(element("details", "", summary, element("pre", "wrap", clean(shortened(rest, DATA)))))
    return element("div", "asked-for", *parts) if parts else ""


def change(change: FileChange, *inner: Node) -> Node:
    """Return a file's change around its hunks."""
    parts = [_head(change), *inner]
    if change.more_hunks:
        parts.append(element("div", "gap", f"… {numbers.plural(change.more_hunks, 'more place')}"))
    if change.truncated:
        parts.append(element("div", "gap", "too long or too different to be compared line by line"))
    return element("div", "diff", *parts)


def _head(change: FileChange, told: str = "") -> Node:
    """Return the line of a file's change, with a note."""
    name = element("span", "mono", f"{'new ' if change.new_file else ''}{change.path}")
    state = element("span", "dim", told) if told else ""
    return element("div", "path", name, state, counts(change.added, change.removed))


def hunk(hunk: Hunk, path: str) -> Node:
    """Return changed lines of a file, with some context."""
    lines = styled(_diff_pieces(hunk.lines, path), "changed")
    assert not isinstance(lines, str)
    tag, look, attributes, _ = parts_of(lines)
    places = [[each.before, each.number if each.sign != "-" else None] for each in hunk.lines]
    node = (tag, look, {**attributes, "numbers": places})
    if not hunk.more_lines:
        return node
    return element(
        "div", "", node, element("div", "gap", f"… {numbers.plural(hunk.more_lines, 'more line')}")
    )


_SIGNS: Final = {"+": "added", "-": "removed", " ": "same"}


def _diff_pieces(lines: Sequence[DiffLine], path: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of the lines. The first one of each is its sign."""
    before, after = (_code([each.text for each in lines if each.sign != other], path) for other in "+-")
    for number, each in enumerate(lines):
        look = _SIGNS[each.sign]
        yield ("\n" if number else "") + each.sign, look
        old = next(before) if each.sign != "+" else []
        words = next(after) if each.sign != "-" else old
        ends = [*accumulate(len(word) for word, _ in words)]
        points = sorted({0, *ends, *chain.from_iterable(each.spans)})
        for begin, end in pairwise(points):
            marked = any(first <= begin < last for first, last in each.spans)
            _, kind = words[bisect_right(ends, begin)]
            yield each.text[begin:end], " ".join(filter(None, (look, "marked" if marked else "", kind)))


def _code(lines: Sequence[str], path: str) -> Iterator[list[tuple[str, str]]]:
    """Yield lines of a file as pieces with their styles."""
    if find_spec("pygments") is None:
        return iter([[(each, "")] for each in lines])
    from thinkwell._display.items import code  # needs an extra

    return iter(code.coloured_by_line("\n".join(lines), path))


def output(tool: ToolView) -> list[Node]:
    """Return a tool's output, in parts of `LINES` lines. Those at the beginning may be empty."""
    text = tools.whole_output(tool).strip("\n")
    if not text:
        return []
    lines = text.split("\n")
    parts = ["\n".join(lines[begin : begin + LINES]) for begin in range(0, len(lines), LINES)]
    gone, left = 0, len(text)
    while left > tools.OUTPUT and gone < len(parts) - 1:
        left -= len(parts[gone]) + 1
        gone += 1
    parts[gone] = parts[gone] if len(parts[gone]) <= LONGEST else f"…{parts[gone][-LONGEST:]}"
    rows = by_line(output_pieces("\n".join(parts[gone:])))
    for row in rows[:-1]:
        row.append(("\n", ""))
    shown = (rows[begin : begin + LINES] for begin in range(0, len(rows), LINES))
    return [*[""] * gone, *(styled(chain.from_iterable(part)) for part in shown)]


def command(tool: ToolView, state: str, output: str) -> Node:
    """Return a command, as in a terminal.

    Args:
        tool: The call.
        state: The place of its `state`.
        output: The place of its output.
    """
    text = command_line(tool.input) or tools.bare_title(tool)
    line_ = element(
        "div",
        "command",
        element("span", "dollar", "$"),
        element("span", "text", clean(shortened(text, DATA))),
        element("span", "state", slot(state)),
    )
    return element("div", "", line_, element("pre", "", slot(output), attributes={"label": "Output"}))


def edit(change: FileChange, status: Status, hunks: str) -> Node:
    """Return a file's change as one of all changes of a run.

    Args:
        change: The change.
        status: The status of its call.
        hunks: The id of the element with its hunks.
    """
    told = {"done": "", "pending": "proposed"}.get(status, status)
    look = "diff new" if change.new_file else "diff"
    attributes = {"path": change.path, "value": [change.added, change.removed]}
    inner = element("div", "", slot(hunks))
    return element("div", look, _head(change, told), inner, attributes=attributes)


def pictures(tool: ToolView) -> Node:
    """Return a tool's output that is not text; may be empty."""
    blocks = [part.content for part in tool.content if isinstance(part, BlockContent)]
    shown = [media(block) for block in blocks if not isinstance(block, TextContent | EmbeddedResource)]
    return element("div", "pictures", *shown[:PICTURES]) if shown else ""


# Questions


def past_question(question: QuestionView, answer: AnswerView | None, *, over: bool) -> Node:
    """Return the line of a question, with its outcome.

    Args:
        question: The question.
        answer: Its answer; ``None``: there is none so far.
        over: Whether the run is over.
    """
    status, told = _outcome(question, answer, over=over)
    row = (
        mark(status),
        element("span", "verb", "asked"),
        element("span", "target", line(question.title, 200)),
        element("span", "end", element("span", "told", *told)),
    )
    verdicts = [element("div", "", questions.verdict_words(verdict)) for verdict in question.verdicts]
    title = question.title
    unfolds = verdicts or question.url or len(title) > 80 or "\n" in title or len(text_of(*told)) > 40
    body = (
        element("div", "asked", exact(shortened(title, DATA))),
        element("div", "address", exact(question.url)) if question.url else "",
        *verdicts,
        element("div", "dim", *told),
    )
    return fold(f"card {status}", *row, unfolds=bool(unfolds), body=body)


def _outcome(
    question: QuestionView, answer: AnswerView | None, *, over: bool
) -> tuple[Status, Sequence[Node]]:
    if answer is None:
        return ("cancelled", ("not answered",)) if over else ("ask", ("waits for your answer",))
    allowed = questions.allowed(answer)
    status: Status = "cancelled" if allowed is None else "done" if allowed else "failed"
    words = questions.outcome(answer)
    told: list[Node] = [words.what]
    if words.by or answer.by:
        by = element(
            "span", "by", words.by and f" {words.by}", attributes={"id": question.id, "name": answer.by}
        )
        told.append(by)
    if words.why:
        told.append(f": {words.why}")
    return status, told


# Other rows


def attempt(attempt: ev.ResultAttempt) -> Node:
    """Return a result that the agent gave, and why it was refused."""
    errors = attempt.errors
    row = (
        mark("done" if attempt.accepted else "failed"),
        icon("other"),
        element("span", "verb", "result" if attempt.accepted else "result refused"),
        element("span", "target dim", "" if attempt.accepted else line(errors[0] if errors else "", 200)),
    )
    problems = (element("div", "problem", clean(shortened(error, 2_000))) for error in errors[:50])
    value = element("pre", "wrap", clean(shortened(json_text(attempt.value), DATA)))
    return fold("card", *row, body=(*problems, value))


def note(title: str, severity: str = "info", detail: str = "") -> Node:
    """Return a note of the agent or the program."""
    told = ": ".join(filter(None, (line(title, 500), clean(shortened(detail, 4_000)))))
    look = re.sub("[^a-z]", "", severity[:20])
    return element("div", f"note {look}", icon("interrupted"), element("span", "", told))


def turn(number: int, *, reminder: bool) -> Node:
    """Return the line between two turns."""
    return element("div", "divider", "asked again for the result" if reminder else f"turn {number}")
