"""What a run does when the agent calls its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import Struct

from thinkwell import events as ev
from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell._core.tools.tool import ToolContext
from thinkwell._core.turn.context import adopted, copy_context
from thinkwell_acp.mcp import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from thinkwell._core.log.budget import IdleClock, Meter
    from thinkwell._core.log.observers import RunObservers
    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.tools.tool import Tool
    from thinkwell._core.turn.results import ResultTaker
    from thinkwell.questions import FormField, FormValue
    from thinkwell_acp import schema as s
    from thinkwell_acp.mcp import CallContext, ToolSpec

HOLD_TIMEOUT: Final = 1.0
"""Seconds that the answer to a cancelled tool call waits for the end of the turn."""


class Driver(Struct, frozen=True, kw_only=True):
    """What the record of a run, and its tools, call of the run that drives them."""

    stop: Callable[[Exception], None]
    """Ends the run before its time."""
    stopped: Callable[[], bool]
    """Whether it was ended so."""
    advise: Callable[[Exception], None]
    """Adds to an error what is known to do about it."""
    session_id: Callable[[], str | None]
    """The agent's name for the session."""
    tools_via: Callable[[], str]
    """The way by which the agent has fetched the tools."""
    wait_for_turn: Callable[[], Awaitable[None]]
    """Waits for the end of the turn, where there is one."""
    ask: Callable[[str, Sequence[FormField]], Awaitable[dict[str, FormValue] | None]]
    """Asks something for a tool."""
    note_call: Callable[[s.ToolCallStart | s.ToolCallProgress], bool]
    """Tells the session of a tool call, and returns whether it is of a tool of ours."""
    note_state: Callable[[s.SessionUpdate], None]
    """Tells the session of its state."""


class OwnTools:
    """The tools of one run.

    Args:
        tools: The tools.
        specs: They, and the one that returns the result, as the agent gets them.
        driver: The run.
        log: Where it is told that the agent has fetched them.
        results: Takes the result.
        idle: The clock for silence.
        meter: Counts calls.
        observers: Learn of each call.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        specs: Sequence[ToolSpec],
        driver: Driver,
        *,
        log: RunLog,
        results: ResultTaker[Any],
        idle: IdleClock,
        meter: Meter | None,
        observers: RunObservers,
    ) -> None:
        self.specs: tuple[ToolSpec, ...] = tuple(specs)
        self._tools = {tool.name: tool for tool in tools}
        self._driver = driver
        self._log = log
        self._results = results
        self._idle = idle
        self._meter = meter
        self._observers = observers
        self._context = copy_context()
        self._calls: set[anyio.CancelScope] = set()
        self._announced = False

    def announce(self) -> None:
        """Tell the readers that the agent has fetched the tools."""
        self._announced = True
        names = tuple(spec.name for spec in self.specs)
        self._log.add(ev.ToolsSeen, names=names, via=self._driver.tools_via())
        self._log.publish()

    async def call(self, name: str, arguments: dict[str, ev.JsonValue], context: CallContext) -> ToolOutput:
        """Run a tool for the agent."""
        self._idle.reset()
        if not self._announced and not self._log.ended:
            self.announce()  # some agents fetch them in the middle of the turn
        if name == RESULT_TOOL:
            return self._results.take(arguments)
        if self._meter is not None and not self._driver.stopped():
            self._meter.own_call()
        if self._driver.stopped():
            return _task_cancelled()
        tool = self._tools[name]
        with self._idle.held(), anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                with adopted(self._context), self._observers.calling(name, arguments) as returned:
                    told = ToolContext(self._driver.session_id() or "", context.report, self._driver.ask)
                    result = await tool.call(arguments, told)
                    output = ToolOutput(
                        content=result.content, structured=result.structured, is_error=result.is_error
                    )
                    returned(output)
            finally:
                self._calls.discard(scope)
            return output
        # The answer to a cancelled call must not overtake the cancellation of the turn, or the agent goes on.
        with anyio.move_on_after(HOLD_TIMEOUT):
            await self._driver.wait_for_turn()
        return _task_cancelled()

    def cancel(self) -> None:
        """Cancel the calls that run."""
        for scope in tuple(self._calls):
            scope.cancel()


def _task_cancelled() -> ToolOutput:
    return ToolOutput.text("The task was cancelled.", is_error=True)
