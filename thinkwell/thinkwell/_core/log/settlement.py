"""What a run comes to: a result or an error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from thinkwell._core.log.log_lines import LogLines
from thinkwell.errors import ThoughtCancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell._core.log.owner import Owner
    from thinkwell.events import JsonValue

T = TypeVar("T")


class Settlement(Generic[T]):
    """What a run comes to: the side that its run settles. Users get it as a `ThoughtResult`."""

    def __init__(
        self,
        run_id: str,
        on_settled: Callable[[JsonValue, Exception | None], None] | None = None,
        *,
        lines: LogLines | None = None,
        owner: Owner | None = None,
    ) -> None:
        self.run_id = run_id
        self._owner = owner
        self._lines = lines or LogLines(run=run_id)
        self._on_settled = on_settled
        self._settled = anyio.Event()
        self.value: list[T] = []
        """The result, once it is there."""
        self.raw: JsonValue = None
        """The result as the agent gave it."""
        self.wrapped: bool = False
        """Whether the value is under a key of its own in it."""
        self.error: Exception | None = None
        self.seen: bool = False
        """Whether anybody looked at the error, or was told of it."""

    def done(self) -> bool:
        """Return whether there is a result or an error."""
        return bool(self.value) or self.error is not None

    async def wait(self) -> None:
        """Wait until there is one.

        Raises:
            WrongEventLoop: There never is one in the event loop of the caller.
        """
        if self._owner is not None:
            self._owner.check()
        await self._settled.wait()

    def set(self, value: T, raw: JsonValue, *, wrapped: bool = False) -> None:
        """Settle with a value; it must not be settled yet.

        Args:
            value: The result.
            raw: What the agent gave.
            wrapped: Whether the value is under a key of its own in that.
        """
        assert not self.done()
        self.raw, self.wrapped = raw, wrapped
        self.value.append(value)
        self._settle()

    def fail(self, error: Exception) -> None:
        """Settle with an error, where it is not settled yet."""
        if self.done():
            return
        # A traceback would keep its frames, and with them this outcome, from being collected: no warning.
        self.error = error.with_traceback(None)
        self._settle()

    def _settle(self) -> None:
        self._settled.set()
        if self._on_settled is not None:
            self._on_settled(self.raw, self.error)

    def __del__(self) -> None:
        """Log an error that was never looked at. A run that was cancelled was ended on purpose."""
        if self.error is not None and not self.seen and not isinstance(self.error, ThoughtCancelled):
            self.seen = True
            about = "Run %s%s failed and its result was never awaited: %s"
            agent = self._lines.known.get("agent")  # a replay has none
            of_agent = f" of agent {agent}" if agent else ""
            self._lines(logging.WARNING, about, self.run_id, of_agent, self.error)
