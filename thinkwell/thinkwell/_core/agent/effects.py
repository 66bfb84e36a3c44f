"""What an agent may have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._core.tools.tool import Tool

HARMLESS: Final = ("read", "search", "think", "fetch")
"""The kinds of tool calls that change nothing."""


class Effects:
    """What an agent may have changed in a run: if nothing, its task can be given to an agent again.

    Args:
        tools: The tools of the run.
        is_own: Whether a tool call that the agent shows is of one of these.
    """

    def __init__(self, tools: Sequence[Tool], is_own: Callable[[str], bool]) -> None:
        self._readonly = {tool.name for tool in tools if tool.readonly}
        self._is_own = is_own
        self._certain = False
        self._shown: set[str] = set()
        """The calls that may change something, unless they turn out to be of tools of ours."""

    def any(self) -> bool:
        """Return whether it may have changed something."""
        return self._certain or not all(map(self._is_own, self._shown))

    def add(self) -> None:
        """Note that a file was written, or a command used."""
        self._certain = True

    def add_own_call(self, name: str) -> None:
        """Note a call of a tool of ours."""
        self._certain = self._certain or name not in self._readonly

    def take(self, event: ev.ThoughtEvent) -> None:
        """Note what the agent shows. Whose tool it is, it may show later."""
        if isinstance(event, ev.ToolStart | ev.ToolUpdate):
            if event.kind is not None and event.kind not in HARMLESS:
                self._shown.add(event.id)
        elif isinstance(event, ev.ToolDone) and event.id in self._shown:
            self._shown.discard(event.id)  # it may be used again, for a call of another tool
            self._certain = self._certain or not self._is_own(event.id)
        elif isinstance(event, ev.Report):  # an agent that shows no tool calls may do anything
            self._certain = True
