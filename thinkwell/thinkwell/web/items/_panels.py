"""The panels beside and around a run's timeline, as items."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell import ViewReducer
from thinkwell._display import calls, numbers, phases, tools
from thinkwell._display.calls import returns_result
from thinkwell._display.items import forms, panels, rows
from thinkwell._display.items.nodes import element
from thinkwell.web.items._rows import SAID, TIMELINE, Text
from thinkwell.web.items._store import NOTHING, More, Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from thinkwell._display.items.nodes import Node
    from thinkwell._display.items.rows import Status
    from thinkwell.events import JsonValue
    from thinkwell.view import RunView, ToolView
    from thinkwell.web._records import RunEnded
    from thinkwell.web.items._rows import Question, Row
    from thinkwell.web.items._store import ItemStore

STDERR: Final = 20
"""Lines of the end of a program's standard error."""

TOOLS: Final = 20
"""Calls that are listed before a run is run again."""

LAST: Final = 1 << 50
"""A place after all rows."""


def draft_of(tool: ToolView) -> JsonValue:
    """Return the part of the result that a call has so far; ``None``: there is none."""
    value = calls.draft_of(tool)
    return value["result"] if value is not None and list(value) == ["result"] else value


class Now(Struct, frozen=True, kw_only=True):
    """The state of a run."""

    seq: int
    """Number of its last entry."""
    at: float
    """Its time."""
    view: RunView
    last: Row | None
    """The last row of its timeline."""
    message: Text | None
    """The last message."""
    questions: Mapping[str, Question]
    """Its questions, by their ids."""
    draft: JsonValue
    """The result that is being returned."""
    files: int
    """The number of changed files."""
    commands: int
    """The number of commands."""
    not_understood: int
    """The number of events of unknown types."""
    end: RunEnded | None
    """Its end."""


class Panels:
    """Makes the panels of a run.

    Args:
        schema: The schema of its result; ``None``: it is unknown.
        prompt: Its prompt; empty: it is unknown.
        alone: Whether it belongs to no conversation.
        is_end: Whether only the last entries are known.
    """

    def __init__(self, schema: JsonValue, prompt: str, *, alone: bool, is_end: bool) -> None:
        self._is_end = is_end
        self._schema = schema
        self._prompt = rows.prompt(prompt) if prompt else None
        self._conversation = "none: it cannot be continued" if alone else ""
        self._docked: set[Question] = set()
        """The open questions."""
        self._plans: set[str] = set()
        self._waits: tuple[str, float] = ("", 0.0)
        """What the end of the timeline says that the run is doing, and since when."""

    def draw(self, now: Now, store: ItemStore) -> None:
        """Make all panels in their current state."""
        view, end = now.view, now.end

        def put(name: str, parent: str, node: Node | None, order: int = 0, more: More = NOTHING) -> None:
            store.put(Shown(name, (parent, order), node, now.seq, now.at, now.at, None, more, kept=True))

        words, since = _doing(now)
        status: Status = end.status if end is not None else "ask" if view.questions else "running"
        if since is not None and words == self._waits[0]:
            since = self._waits[1]
        self._waits = ("", 0.0) if since is None else (words, since)
        place, order = ("bar", 0) if since is None else (TIMELINE, LAST)
        put("head", place, rows.doing(status, words, since), order)
        if end is not None:
            error = "" if end.error is None else end.error.message
            more = More(say=f"The run is {rows.word(end.status)}. {error}"[:SAID])
            put("final", TIMELINE, _short(end) if self._is_end else _final(now, end), LAST, more)
        self._draw_questions(now, put)
        if self._is_end:
            return
        store.put(Shown("prompt", (TIMELINE, -1), self._prompt, 0, 0.0, 0.0))
        for number, (name, plan) in enumerate(view.plans.items()):
            put(f"plan.{name}", "plan", panels.plan(plan), number)
        for name in self._plans - view.plans.keys():
            put(f"plan.{name}", "plan", None)
        self._plans = set(view.plans)
        put("strip", "strip", panels.strip(view.plan) if view.plan else None)
        usage = panels.usage_sections(
            view,
            conversation=self._conversation,
            ended=end is not None,
            events=now.seq,
            not_understood=now.not_understood,
        )
        for number, name in enumerate(panels.USAGE):
            put(f"usage.{name}", "usage", usage.get(name), number)
        put("panel.result", "result", self._result(now))
        for name, text in _badges(now).items():
            put(f"badge.{name}", f"badge.{name}", text or None)

    def _draw_questions(self, now: Now, put: Callable[[str, str, Node | None, int], None]) -> None:
        waiting = {} if now.end is not None else {question.id: question for question in now.view.questions}
        open_ = {now.questions[name]: waiting[name] for name in waiting if name in now.questions}
        for question in self._docked - open_.keys():
            put(f"{question.id}.form", "dock", None, question.seq)
        for question, asked in open_.items():
            put(f"{question.id}.form", "dock", forms.form(asked, now.view), question.seq)
        self._docked = set(open_)

    def _result(self, now: Now) -> Node:
        view, end, schema = now.view, now.end, self._schema
        accepted = next((one for one in reversed(view.attempts) if one.accepted), None)
        refused = [one for one in view.attempts if not one.accepted]
        parts: list[Node] = []
        if end is not None and end.status == "completed":
            parts.append(panels.result("Result", end.result, schema))
        elif accepted is not None:
            parts.append(panels.result("Result", accepted.value, schema))
        elif now.draft is not None:
            parts.append(panels.result("Being filled in", now.draft, schema))
        elif view.attempts:
            parts.append(panels.result("Refused; the agent may try again", refused[-1].value, schema))
        elif schema is not None:
            parts.append(panels.result("No result" if end else "Not given so far", None, schema))
        elif now.message is not None:
            said = element("div", "prose", rows.slot(now.message.id))
            parts.append(panels.section("Last message" if end else "Last message so far", said))
        else:
            nothing = "The run has no result." if end else "There is no result so far."
            parts.append(element("p", "empty", nothing))
        if refused:
            parts.append(panels.refused(refused))
        is_typed = schema is not None or bool(view.attempts) or now.draft is not None
        return element("div", "typed" if is_typed else "", *parts)


def _doing(now: Now) -> tuple[str, float | None]:
    """Return what the run is doing, and since when, if nothing else in the timeline shows that."""
    view, end = now.view, now.end
    if end is not None:
        return rows.word(end.status), None
    doing = "waiting for your answer" if view.questions else phases.words(view)
    phase = view.phases[-1] if view.phases else None
    since = phase.at if phase is not None and phase.phase != "responding" else now.at
    return doing, None if _shows(now) else since


def _shows(now: Now) -> bool:
    """Return whether the end of the timeline shows what the run is doing."""
    view, last = now.view, now.last
    if last is None:
        return False
    says = isinstance(last, Text) and last.kind != "user" and last.ended is None
    return says or bool(view.questions or phases.running(view))


def _short(end: RunEnded) -> Node:
    """Return the outcome of a run without what is counted."""
    return panels.final(ViewReducer().snapshot(), end.status, end.stop_reason or "", end.at, _error(end))


def _error(end: RunEnded) -> str:
    error = None if end.status == "cancelled" else end.error
    return "" if error is None else f"{error.name}: {error.message}"


def _final(now: Now, end: RunEnded) -> Node:
    about: list[Node] = []
    if end.error is not None and end.error.exit_code is not None:
        about.append(element("div", "minus", f"exit code {end.error.exit_code}"))
    if end.error is not None and end.error.stderr:
        lines = "\n".join(end.error.stderr.splitlines()[-STDERR:])
        about.append(element("pre", "wrap", lines, attributes={"label": "The end of its standard error"}))
    if end.status != "completed":
        run = {"does": "again", "value": _tools_run(now.view)}
        about.append(element("button", "button small", "Run again", attributes=run))
    return panels.final(now.view, end.status, end.stop_reason or "", end.at, _error(end), *about)


def _tools_run(view: RunView) -> list[str]:
    """Return the tool calls of a run, with the number of each."""
    told = (tools.describe(tool, view.cwd) for tool in view.tools.values() if not returns_result(tool))
    done = Counter(f"{each.verb} {each.target}" for each in told if each.status != "cancelled")
    shown = [f"{line} ({count} times)" if count > 1 else line for line, count in done.items()]
    more = [f"and {numbers.plural(len(shown) - TOOLS, 'more call')}"] if len(shown) > TOOLS else []
    return [*shown[:TOOLS], *more]


def _badges(now: Now) -> dict[str, str]:
    view, end = now.view, now.end
    entries = [entry for plan in view.plans.values() for entry in plan.entries]
    given = "✓" if end is not None and end.status == "completed" else "…" if view.attempts else ""
    return {
        "timeline": "?" if view.questions and end is None else "",
        "plan": panels.progress(entries),
        "changes": str(now.files or ""),
        "terminal": str(now.commands or ""),
        "result": given,
    }
