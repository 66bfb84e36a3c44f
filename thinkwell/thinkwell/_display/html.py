"""A run as HTML of a bounded size.

It is for notebooks, and uses the same nodes as the page; see `thinkwell._display.items`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from thinkwell import events as ev
from thinkwell._display import diffs, numbers, phases, questions, summary, tools, usage
from thinkwell._display.calls import denied_calls, returns_result
from thinkwell._display.html_style import STYLE
from thinkwell._display.items import forms, panels, rows
from thinkwell._display.items.html import LEAST as SHORTEST
from thinkwell._display.items.html import Html, to_html
from thinkwell._display.items.nodes import element, filled
from thinkwell._display.summary import Picture
from thinkwell._display.text import line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from thinkwell._display.items.nodes import Node
    from thinkwell.view import AnswerView, QuestionView, RunView, TimelineItem, ToolView

PAGE_LIMIT: Final = 400_000
"""Most characters of a page, whatever the run. A notebook's file keeps the page."""

FRAME_LIMIT: Final = 100_000
"""The same while the run continues and the page is sent repeatedly."""

LEAST: Final = 20_000
"""Characters below which only the row of one of several runs is drawn."""

NAME: Final = 160
"""Most characters of a name."""

ROW: Final = 2_000
"""Most characters of HTML of a row that represents a run, and of its sums."""

PART: Final = 40_000
"""Most characters of HTML of a step, a question, the plan, or the outcome of the run."""

NOTE: Final = 200
"""Most characters of HTML for notes about omitted parts, and around parts."""

MESSAGE: Final = 20_000
"""Most characters of a message, of an error."""

THOUGHT: Final = 6_000
"""Most characters of neighbouring thoughts."""

OUTPUT: Final = 4_000
"""Most characters of a tool's output."""

TEXTS: Final = 100
"""Messages and thoughts whose drawing is cached."""

LAST_LINES: Final = 5
"""Most lines of the output of a running tool."""

FILES: Final = 4
"""Most files of which one tool's changes are drawn."""

KEPT: Final = diffs.Kept(2, 20)
"""How much of a file's changes is drawn."""

LISTED: Final = 50
"""Most tool calls that are listed under another one: those that share its line, or its sub-agent's."""

DEPTH: Final = 3
"""Most levels of sub-agents."""

STEPS: Final = 40
"""Most steps of a plan."""

ASKED: Final = 5
"""Most open questions, answers and notices, each."""


def page(picture: Picture, *, limit: int = PAGE_LIMIT) -> str:
    """Return a run as HTML of at most `limit` characters. Omissions are marked."""
    return _whole(_run(picture, limit - len(_whole(Html("")))))


def bundle(plain: str, view: RunView, now: float, recording: Path | None) -> dict[str, str]:
    """Return a run in the formats from which notebooks choose.

    Args:
        plain: The run as text.
        view: The run.
        now: Seconds since it began.
        recording: The file of the recording.
    """
    picture = Picture(view=view, now=now, recording=None if recording is None else str(recording))
    return {"text/plain": plain, "text/html": page(picture)}


def pages(pictures: Sequence[Picture], *, limit: int = PAGE_LIMIT) -> str:
    """Return several runs as one page: a row for each, failed ones first.

    Finished ones can be unfolded: one that is redrawn all the time could not stay open.
    """
    left = limit - len(_whole(Html("")))
    ordered = sorted(pictures, key=lambda picture: picture.status != "failed")
    body = Html("".join(_several(picture, left // len(pictures)) for picture in ordered))
    return _whole(body if len(body) <= left else to_html(f"{len(pictures)} runs", NOTE))


def _whole(body: Html) -> str:
    return f'<div class="thinkwell-run"><style>{STYLE}</style>{body}</div>'


def _several(picture: Picture, limit: int) -> Html:
    unfolds = picture.over and limit >= LEAST
    doing = phases.words(picture.view, cancelling=picture.cancelling)
    facts = " · ".join((doing, *usage.usage_parts(picture.view)))
    time = element("span", "end dim", numbers.clock(picture.now))
    row = to_html(element("summary" if unfolds else "div", "fold", *_names(picture, facts), time), ROW)
    left = limit - len(row) - NOTE
    if unfolds:
        run = f'<div class="thinkwell-run">{_run(picture, left)}</div>'
        return Html(f'<details class="tw-card">{row}{run}</details>')
    return row if picture.over else Html(row + _open_questions(picture, _Room(left, picture.now)))


class _Room:
    """The remaining characters of a page."""

    def __init__(self, left: int, now: float) -> None:
        self.left = left
        self._now = now

    def take(self, node: Node, most: int = PART) -> Html:
        """Return a node as HTML, which takes at most half of the rest: other nodes need some too."""
        html = to_html(node, min(most, self.left // 2), self._now)
        self.left -= len(html)
        return html


def _run(picture: Picture, limit: int) -> Html:
    view = picture.view
    room = _Room(limit - NOTE, picture.now)
    head = room.take(_head(picture), ROW)
    asked = _open_questions(picture, room)
    end = "".join([room.take(node) for node in _end(picture)])
    foot = room.take(_foot(picture), ROW)
    plan = room.take(panels.plan(ev.PlanUpdate(entries=view.plan), STEPS) if view.plan else "")
    return Html(f"{head}{plan}{_timeline(picture, room)}{asked}{end}{foot}")


def _names(picture: Picture, *facts: str) -> Sequence[Node]:
    """Return a run's status, its name, and other facts."""
    label = line(picture.label or picture.view.agent or "run", NAME)
    dim = " · ".join(line(fact, NAME) for fact in facts if fact)
    return (rows.mark(picture.status), element("strong", "", label), element("span", "dim", dim))


def _head(picture: Picture) -> Node:
    view = picture.view
    agent = view.agent if picture.label and picture.label != view.agent else ""
    doing = phases.words(view, cancelling=picture.cancelling)
    running = len(phases.running(view))
    at_once = numbers.plural(running, "tool") + " running" if running else ""
    state = " · ".join(filter(None, (doing, at_once, numbers.clock(picture.now))))
    names = _names(picture, agent, view.model or "", view.mode or "", view.cwd)
    return element("div", "head", *names, element("span", "end dim" if picture.over else "end now", state))


def _more(number: int, word: str) -> Node:
    return element("div", "dim", f"… {numbers.plural(number, f'more {word}')}") if number > 0 else ""


def shortened(text: str, limit: int) -> str:
    """Return the beginning and the end of a text that is too long, and the size of the omission."""
    cut = len(text) - limit
    if cut <= 0:
        return text
    head = limit * 3 // 4
    tail = limit - head
    return f"{text[:head]}\n… {cut:,} characters are not shown …\n{text[len(text) - tail :]}"


# The timeline


def _timeline(picture: Picture, room: _Room) -> Html:
    """Return the timeline. If there is too little room, its beginning is left out."""
    steps = _Steps(picture.view, over=picture.over)
    left = list(steps.all)
    parts: list[str] = []
    while left and room.left >= SHORTEST:
        is_last = not parts and not picture.over
        part = to_html(steps.node(left.pop(), is_last=is_last), min(PART, room.left), picture.now)
        room.left -= len(part)
        parts.append(part)
    if left:
        parts.append(to_html(element("div", "dim", f"… {len(left):,} earlier steps are not shown"), NOTE))
    return Html(f'<div class="tw-timeline">{"".join(reversed(parts))}</div>' if any(parts) else "")


class _Steps:
    """The steps of a run, one by one.

    Args:
        view: The run.
        over: Whether it is over.
    """

    def __init__(self, view: RunView, *, over: bool) -> None:
        self._view = view
        self._over = over
        self._denied = denied_calls(view)
        self._children: dict[str, list[ToolView]] = {}
        """The tool calls of each sub-agent."""
        self._answers: dict[str, list[AnswerView]] = {}
        """The answers about each tool call."""
        self.all: list[list[TimelineItem] | ev.ResultAttempt] = []
        """The content of each step: calls that share a line, one item, or the accepted result."""
        for answer in view.answers:
            if answer.tool_id is not None:
                self._answers.setdefault(answer.tool_id, []).append(answer)
        seen: set[str] = set()
        nested: set[str | None] = set()
        for tool in view.tools.values():
            if tool.parent in seen:  # a call inside itself would never be drawn
                self._children.setdefault(tool.parent, []).append(tool)
                nested.add(tool.id)
            seen.add(tool.id)
        accepted = [attempt for attempt in view.attempts if attempt.accepted]
        for item in view.timeline:
            if item.kind == "tool" and (item.id in nested or returns_result(self._tool(item))):
                continue
            while accepted and accepted[0].at < item.at:
                self.all.append(accepted.pop(0))
            last = self.all[-1] if self.all else ()
            if isinstance(last, list) and self._shares(last[-1]) and self._shares(item):
                last.append(item)
            else:
                self.all.append([item])
        self.all += accepted

    def _shares(self, item: TimelineItem) -> bool:
        """Return whether an item is a call that may share a line with its neighbours."""
        return item.kind == "tool" and tools.folds(self._tool(item)) and item.id not in self._answers

    def _tool(self, item: TimelineItem) -> ToolView:
        return self._view.tools[item.id or ""]

    def node(self, step: Sequence[TimelineItem] | ev.ResultAttempt, *, is_last: bool) -> Node:
        """Return a step.

        Args:
            step: Its contents.
            is_last: Whether it is the current one.
        """
        if isinstance(step, ev.ResultAttempt):
            return rows.attempt(step)
        view = self._view
        item = step[0]
        match item.kind:
            case "tool":
                calls = list(map(self._tool, step))
                return self._fold(calls) if len(calls) > 1 else self._call(calls[0], 0)
            case "message":
                said = shortened(view.messages[item.index], MESSAGE)
                return element("div", "prose text", *_prose(said))
            case "thought" if is_last:
                return rows.thinking(view.thought_blocks[item.index])
            case "thought":
                thought = view.thought_blocks[item.index]
                return filled(rows.thought(thought, 0), _prose(shortened(thought, THOUGHT)))
            case "user":
                said = shortened(view.user_messages[item.index], MESSAGE)
                return element("div", "prose bubble", *_prose(said))
            case _:
                return rows.turn(item.index, reminder=False) if item.index > 1 else ""

    def _call(self, tool: ToolView, depth: int) -> Node:
        """Return a tool call with its contents."""
        cwd = self._view.cwd
        goes_on = tool.ended_at is None and not self._over
        answers = self._answers.get(tool.id, [])
        changes = diffs.changes_of(tool, cwd, kept=KEPT)
        output = tools.output_of(tool).strip("\n")
        if goes_on:
            output = "\n".join(output.splitlines()[-LAST_LINES:])
        parts = (
            *(element("div", "answer", questions.answered(answer)) for answer in answers[-LISTED:]),
            rows.arguments(tool, cwd, tools.describe(tool, cwd).target),
            *(
                rows.change(each, *(rows.hunk(hunk, each.path) for hunk in each.hunks))
                for each in changes[:FILES]
            ),
            _more(len(changes) - FILES, "file"),
            element("pre", "wrap", shortened(output, OUTPUT)) if output else "",
            *self._calls(self._children.get(tool.id, []), depth + 1),
        )
        denied = tool.id in self._denied
        agent = tools.agent_words(self._view, tool.id)
        status = rows.status_of(tool, over=self._over, denied=denied)
        end = rows.outcome(tool, cwd, status, agent)
        row = rows.call(tool, cwd, rows.mark(status), end, unfolds=any(parts))
        return filled(row, parts, is_open=goes_on or denied or rows.is_open(tool, cwd, over=self._over))

    def _calls(self, calls: Sequence[ToolView], depth: int) -> Sequence[Node]:
        shown = calls[-max(1, LISTED // 8 ** (depth - 1)) :] if depth <= DEPTH else ()
        more = _more(len(calls) - len(shown), "earlier call" if shown else "call")
        return (more, *(self._call(tool, depth) for tool in shown))

    def _fold(self, shared: Sequence[ToolView]) -> Node:
        shown = shared[:LISTED]
        cwd = self._view.cwd
        lines: list[Node] = []
        for tool in shown:
            status = rows.status_of(tool, over=self._over)
            end = rows.outcome(tool, cwd, status)
            lines.append(rows.call(tool, cwd, rows.mark(status), end, unfolds=False))
        return filled(rows.looked(shared, (), cwd), (*lines, _more(len(shared) - LISTED, "call")))


@lru_cache(TEXTS)
def _prose(text: str) -> Sequence[Node]:
    """Return a text as nodes, and cache them: a running run is drawn again and again."""
    return panels.prose(text)


# Questions


def _open_questions(picture: Picture, room: _Room) -> Html:
    """Return the open questions in full, because the user must decide them."""
    view = picture.view
    boxes = [_question(questions.asked(each, view), each, picture.now) for each in view.questions[:ASKED]]
    boxes.append(_more(len(view.questions) - ASKED, "question"))
    if view.stalled is not None and not picture.over:
        quiet = f"nothing was heard of the agent for {numbers.seconds(view.stalled.idle)}"
        boxes.append(rows.note(quiet, "warning"))
    return Html("".join(map(room.take, boxes)))


def _question(asked: questions.Asked, question: QuestionView, now: float) -> Node:
    left = asked.left(now)
    time = "" if left is None else element("span", "dim", f"  {numbers.clock(left)} left")
    offered = [choice.label for choice in asked.options] or [
        f"{one.label} ({one.hint}{one.offered and f': {one.offered}'})" for one in asked.fields
    ]
    return element(
        "div",
        "box ask",
        element("div", "title", f"? {asked.title}", time),
        element("pre", "wrap", asked.said) if asked.said else "",
        *forms.about(asked, question),
        element("div", "dim", " · ".join(offered)),
        _more(asked.more_options, "choice"),
    )


# Results


def _end(picture: Picture) -> Iterator[Node]:
    view = picture.view
    for notice in view.notices[-ASKED:]:
        yield rows.note(f"{notice.severity}: {notice.title}", notice.severity, notice.description or "")
    alone = [answer for answer in view.answers if answer.tool_id not in view.tools]
    for answer in alone[-ASKED:]:
        yield element("div", "answer", line(f"{answer.title}: {questions.answered(answer)}", 4 * NAME))
    if refused := [attempt for attempt in view.attempts if not attempt.accepted]:
        yield panels.refused(refused)
    if view.error is not None and picture.over:
        words = summary.error_words(view.error)
        yield element(
            "div",
            f"box {picture.status}",
            element("div", "text", shortened(words.what, MESSAGE)),
            element("pre", "wrap", shortened(words.detail, MESSAGE)) if words.detail else "",
            element("div", "text", f"→ {shortened(words.next, MESSAGE)}") if words.next else "",
        )
    result = _result(picture)
    told = result if picture.result is None else picture.result
    stands_there = isinstance(told, str) and view.messages and told.strip() == view.messages[-1].strip()
    if result is not None and not stands_there:
        yield panels.section("Result", panels.value_node(result, None, 0))


def _result(picture: Picture) -> ev.JsonValue:
    """Return the result, or else the last accepted one."""
    result = picture.result
    if result is None:
        accepted = [one.value for one in picture.view.attempts if one.accepted]
        return "null" if accepted[-1:] == [None] else accepted[-1] if accepted else None
    if result.strip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            value: ev.JsonValue = json.loads(result)
            return value
    return result


def _foot(picture: Picture) -> Node:
    """Return the sums: work, usage, and the recording."""
    told = [usage.usage_words(picture.view)]
    if picture.over:
        sums = summary.summary(picture.view, picture.now, picture.recording)
        turns = numbers.plural(sums.turns, "turn") if sums.turns > 1 else ""
        told = [
            " · ".join(filter(None, (sums.work, turns, sums.usage))),
            sums.time,
            f"session {sums.session_id}" if sums.session_id else "",
            f"recorded in {sums.recording}" if sums.recording else "",
        ]
    return element("div", "foot dim", *(element("div", "", line(row, 4 * NAME)) for row in told if row))
