"""`Outcomes` of `Agent.map`, for callers who block."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from thinkwell.sync._loop import LoopEnded
from thinkwell.sync._stream import Pulled

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from thinkwell import Outcome
    from thinkwell import Outcomes as AsyncOutcomes
    from thinkwell.sync._loop import LoopThread

T_co = TypeVar("T_co", covariant=True)
In_co = TypeVar("In_co", covariant=True)


class Outcomes(Pulled["Outcome[In_co, T_co]"], Generic[In_co, T_co]):
    """The outcomes of many inputs, one for each: ``for outcome in agent.map(task, inputs)``.

    The first runs have started. Each outcome is delivered once. If you leave the loop, no more runs start
    once as many outcomes wait as runs are running; with ``with``, leaving the block cancels the runs.
    """

    def __init__(self, loop: LoopThread, outcomes: AsyncOutcomes[In_co, T_co], owner: object) -> None:
        super().__init__(loop)
        self._outcomes = outcomes
        self._owner = owner  # an agent without users is closed

    def __repr__(self) -> str:
        return self._loop.ask(repr, self._outcomes)

    async def _fetch(self) -> None:
        try:
            self._ready.append(await anext(self._outcomes))
        except StopAsyncIteration:
            self._over = True

    def _fetch_rest(self) -> None:
        try:
            self._ready.extend(filter(None, [self._outcomes._take()]))
        except StopAsyncIteration:
            self._over = True

    def results(self) -> list[Outcome[In_co, T_co]]:
        """Wait for all runs; return their outcomes in the order of the inputs. Ctrl-C cancels them.

        Raises:
            Exception: Reading the inputs raised it.
            AgentClosed: The agent was closed before all runs had started.
        """
        try:
            return sorted(self, key=lambda outcome: outcome.index)
        except BaseException:
            self.close()
            raise

    def cancel(self) -> None:
        """Cancel the running runs, and start no more. Returns at once; their outcomes still come."""
        self._loop.ask(self._outcomes.cancel)

    def close(self) -> None:
        """Cancel the running runs, and wait for their end."""
        with suppress(LoopEnded):  # then nothing is running
            self._loop.call(self._outcomes.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
