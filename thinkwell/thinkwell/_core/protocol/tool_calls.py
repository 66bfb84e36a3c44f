"""The tool calls of a session, each once: their state, and whether they are of our tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._core.log.run_log import RunLog
    from thinkwell.events import JsonValue, Location, ToolContent, ToolKind


@dataclass(slots=True, eq=False)
class ToolCall:
    """The state of a call."""

    started_in: RunLog | None = None
    """The log that has its start: an update in another log counts as a start there."""
    done: bool = True
    runs: bool = False
    """Whether it is running, as far as the agent says."""
    ours: bool = False
    """Whether it is shown as a call of a tool of ours."""
    owner: Any = ...
    """The state in `OwnCalls` until it ends; ``...``: none yet."""
    counted: bool = False
    """Whether a budget has counted it as the agent's."""
    parent: str | None = None
    """The id of the call that is the sub-agent which has made it."""
    title: str = ""
    kind: ToolKind = "other"
    name: str | None = None
    input: JsonValue = None
    output: JsonValue = None
    content: tuple[ToolContent, ...] = ()
    locations: tuple[Location, ...] = ()

    def begin(
        self,
        title: str,
        kind: ToolKind,
        *,
        name: str | None = None,
        input: JsonValue = None,  # noqa: A002 - the field's name
        output: JsonValue = None,
        content: tuple[ToolContent, ...] = (),
        locations: tuple[Location, ...] = (),
    ) -> None:
        """Handle its start; an id may be reused."""
        self.title, self.kind, self.name = title, kind, name
        self.input, self.output = input, output
        self.content, self.locations = content, locations

    def end(self) -> None:
        """End it: its arguments are no longer needed."""
        self.done = True
        self.runs = False
        self.begin(self.title, self.kind)


class ToolCalls:
    """The calls of a session since the start of its last turn, by the agent's ids."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}

    def get(self, id: str) -> ToolCall | None:  # noqa: A002 - the field's name
        """Return a known call."""
        return self._calls.get(id)

    def meet(self, id: str) -> ToolCall:  # noqa: A002
        """Return a call, and create it if necessary."""
        call = self._calls.get(id)
        if call is None:
            call = self._calls[id] = ToolCall()
        return call

    def forget(self) -> None:
        """Forget all calls before the turns of another run."""
        self._calls.clear()

    def open_in(self, log: RunLog) -> Iterator[tuple[str, ToolCall]]:
        """Yield the open calls of a log."""
        for id_, call in list(self._calls.items()):
            if call.started_in is log and not call.done:
                yield id_, call

    def rest(self) -> None:
        """Mark all calls as not running: those left open by the last turn are not."""
        for call in self._calls.values():
            call.runs = False

    def others_run(self) -> bool:
        """Return whether a call is running that is not of our tools."""
        return any(call.runs and not call.ours for call in self._calls.values())
