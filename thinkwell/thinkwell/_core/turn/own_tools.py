"""A run's reaction to the agent's calls of its tools."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import Struct

from thinkwell import events as ev
from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell._core.tools.tool import ToolContext
from thinkwell_acp.mcp import ToolOutput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from contextvars import Context

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
    """The functions of a run that its record and its tools call."""

    stop: Callable[[Exception], None]
    """Ends the run early."""
    stopped: Callable[[], bool]
    """Whether it was ended early."""
    advise: Callable[[Exception], None]
    """Adds hints to an error."""
    session_id: Callable[[], str | None]
    """The agent's name for the session."""
    tools_via: Callable[[], str]
    """The transport over which the agent has fetched the tools."""
    wait_for_turn: Callable[[], Awaitable[None]]
    """Waits for the end of the turn, if there is one."""
    ask: Callable[[str, Sequence[FormField]], Awaitable[dict[str, FormValue] | None]]
    """Asks for values for a tool."""
    note_call: Callable[[s.ToolCallStart | s.ToolCallProgress], bool]
    """Passes a tool call to the session, and returns whether it is of a tool of ours."""
    note_state: Callable[[s.SessionUpdate], None]
    """Passes an update of the state to the session."""


class OwnTools:
    """The tools of one run.

    Args:
        tools: The tools.
        specs: Their declarations for the agent, with the one that returns the result.
        driver: The run.
        log: The log in which the fetch is recorded.
        results: Takes the result.
        idle: The clock for silence.
        meter: Counts calls.
        observers: Notified of each call.
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
        """Record that the agent has fetched the tools."""
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
            self._meter.tool_call()
        if self._driver.stopped():
            return _task_cancelled()
        tool = self._tools[name]
        with self._idle.held(), anyio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                with _adopted(self._context), self._observers.calling(name, arguments) as returned:
                    told = ToolContext(self._driver.session_id() or "", context.report, self._driver.ask)
                    result = await tool.call(arguments, told)
                    output = ToolOutput(
                        content=result.content, structured=result.structured, is_error=result.is_error
                    )
                    returned(output)
            finally:
                self._calls.discard(scope)
            return output
        # The answer to a cancelled call must not overtake the turn's cancellation, or the agent continues.
        with anyio.move_on_after(HOLD_TIMEOUT):
            await self._driver.wait_for_turn()
        return _task_cancelled()

    def cancel(self) -> None:
        """Cancel the running calls."""
        for scope in tuple(self._calls):
            scope.cancel()


@contextmanager
def _adopted(context: Context) -> Generator[None]:
    """Let a block see the context variables of another task: a request's id, a trace, the user."""
    here = copy_context()
    tokens = [(var, var.set(value)) for var, value in context.items() if here.get(var, here) is not value]
    try:
        yield
    finally:
        for var, token in tokens:
            var.reset(token)


def _task_cancelled() -> ToolOutput:
    return ToolOutput.text("The task was cancelled.", is_error=True)
