"""The runs of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from thinkwell._core.agent.run import Run
    from thinkwell._core.session.session import WireSession
    from thinkwell._core.turn.turn import Patience


class Runs:
    """The runs of an agent that are not over, in the order of their start."""

    def __init__(self) -> None:
        self._runs: dict[Run[Any], None] = {}

    def __iter__(self) -> Iterator[Run[Any]]:
        return iter(tuple(self._runs))

    def add(self, run: Run[Any]) -> None:
        """Know of a run."""
        self._runs[run] = None

    def over(self, run: Run[Any]) -> None:
        """Forget a run."""
        self._runs.pop(run, None)

    def stop(self, why: Callable[[], Exception], patience: Patience) -> None:
        """End all of them, each with an error of its own."""
        for run in self:
            run.stop(why(), patience)

    def of(self, session: WireSession) -> tuple[Run[Any], ...]:
        """Return those of a session."""
        return tuple(run for run in self if run.session is session)

    def stderr(self, line: str) -> None:
        """Tell those who listen what the agent's process has written to standard error."""
        for run in self:
            if run.record.listener is not None:
                run.record.listener.stderr(line)
