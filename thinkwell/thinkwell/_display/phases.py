"""The current activity of a run, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from thinkwell._display.calls import returns_result, told_calls
from thinkwell._display.numbers import plural, seconds
from thinkwell._display.text import line
from thinkwell._display.tools import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import Phase
    from thinkwell.view import PhaseView, RunView, ToolView

DOING: Final = 200
"""Most characters of an activity."""

OVER: Final = frozenset(("completed", "failed", "cancelled"))
"""The phases at the end."""

_WORDS: Final[dict[Phase, str]] = {
    "launching": "looking for {agent}",
    "installing": "installing {detail}",
    "initializing": "starting {agent}",
    "starting": "opening a session",
    "authenticating": "waiting for login",
    "connecting_tools": "connecting tools",
    "tools_ready": "tools are connected",
    "prompted": "waiting for the first token",
    "responding": "working",
    "completed": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}

_PARTS: Final[dict[Phase, str]] = {
    "launching": "start",
    "installing": "install",
    "initializing": "start",
    "starting": "session",
    "authenticating": "login",
    "connecting_tools": "tools",
    "tools_ready": "tools",
    "prompted": "first token",
    "responding": "answer",
}


class Duration(NamedTuple):
    """The duration of a part of a run."""

    word: str
    """``start``, ``install``, ``login``, ``session``, ``tools``, ``first token`` or ``answer``."""
    seconds: float


def words(view: RunView, *, cancelling: bool = False) -> str:
    """Return the current activity of a run, as a clean line: ``running pytest -q``.

    Args:
        view: The run.
        cancelling: Whether it was cancelled.
    """
    if view.phase in OVER:
        return _WORDS[view.phase]
    if cancelling:
        return "cancelling"
    if view.questions:
        return "waiting for an answer"
    if view.stalled is not None:
        return f"nothing heard for {seconds(view.stalled.idle)}"
    if view.phase == "responding":
        return _responding(view)
    return phase_words(view.phases[-1], view.agent) if view.phases else _WORDS["starting"]


def phase_words(phase: PhaseView, agent: str = "") -> str:
    """Return the activity of a phase, as a clean line."""
    name = line(agent, DOING) or "the agent"
    detail = line(phase.detail, DOING)
    if phase.phase == "starting" and detail:
        return f"waiting: {detail}"
    return _WORDS[phase.phase].format(agent=name, detail=detail or name)


def running(view: RunView) -> tuple[ToolView, ...]:
    """Return the running tool calls, in order. Those that only wait for an answer are not."""
    if view.phase in OVER:
        return ()
    if all(tool.ended_at is not None for tool in view.tools.values()):
        return ()
    asked = {question.tool_id for question in view.questions}
    return tuple(tool for tool in told_calls(view) if tool.ended_at is None and tool.id not in asked)


def _responding(view: RunView) -> str:
    tools = running(view)
    if not tools:
        tools = tuple(tool for tool in view.tools.values() if tool.ended_at is None and returns_result(tool))
    if tools:
        return _doing(tools, view.cwd)
    last = view.timeline[-1].kind if view.timeline else ""
    return {"thought": "thinking", "message": "answering", "turn": "waiting for the first token"}.get(
        last, "working"
    )


def _doing(tools: Sequence[ToolView], cwd: str) -> str:
    doing = line(describe(tools[-1], cwd).doing, DOING)
    return doing if len(tools) == 1 else f"{doing} (+{plural(len(tools) - 1, 'tool')})"


def durations(view: RunView) -> tuple[Duration, ...]:
    """Return the durations of the parts of a run, in the order in which they began."""
    taken: dict[str, float] = {}
    for phase in view.phases:
        word = _PARTS.get(phase.phase)
        if word is not None and phase.seconds is not None:
            taken[word] = taken.get(word, 0.0) + phase.seconds
    return tuple(Duration(word, value) for word, value in taken.items())
