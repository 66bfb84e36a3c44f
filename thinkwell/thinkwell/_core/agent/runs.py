"""The runs of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    import anyio

    from thinkwell._core.agent.run import Run
    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.session.session import WireSession
    from thinkwell._core.turn.turn import Patience
    from thinkwell.events import Phase


class RunStatistics(NamedTuple):
    """Statistics of a run that has not ended."""

    id: str
    """`ThoughtStream.id`."""
    session_id: str | None
    """The agent's name for the session; ``None`` until it is open."""
    phase: Phase
    buffered_events: int
    """The number of events kept for readers."""
    open_questions: int
    """The number of open questions."""


class AgentStatistics(NamedTuple):
    """Statistics of an agent's current work: see `Agent.statistics`."""

    runs: tuple[RunStatistics, ...]
    """The runs that have not ended, in the order of their start; first those that may be tried again."""
    buffered_events: int
    """The number of events that these runs keep for readers."""
    open_questions: int
    """The number of open questions, including those outside runs."""


class Waiting(Protocol):
    """A run that may be between two of its tries, when no agent knows of it."""

    over: anyio.Event
    log: RunLog

    @property
    def id(self) -> str:
        """Its id, which its tries have, too."""
        ...

    @property
    def session(self) -> WireSession | None:
        """The session of all its tries; ``None``: each has its own."""
        ...

    def stop(self, why: Exception, patience: Patience) -> None:
        """End it."""
        ...


class Runs:
    """The runs of an agent that are not over, in the order of their start."""

    def __init__(self) -> None:
        self._runs: dict[Run[Any], None] = {}
        self.tried: dict[Waiting, None] = {}
        """Those that may be tried again. Each try is a run, too."""

    def __iter__(self) -> Iterator[Run[Any]]:
        return iter(tuple(self._runs))

    def add(self, run: Run[Any]) -> None:
        """Add a run."""
        self._runs[run] = None

    def over(self, run: Run[Any]) -> None:
        """Remove a run."""
        self._runs.pop(run, None)

    def all(self) -> tuple[Run[Any] | Waiting, ...]:
        """Return all of them, first those that may be tried again."""
        return (*self.tried, *self._runs)

    def statistics(self, open_questions: int) -> AgentStatistics:
        """Return statistics of all runs. One that may be tried again counts once.

        Args:
            open_questions: The number of open questions, those of agents that have taken over, too.
        """
        logs = {each.id: each.log for each in self.tried}
        for run in self:
            logs.setdefault(run.id, run.record.log)
        views = [(id_, log, log.view()) for id_, log in logs.items()]
        runs = tuple(
            RunStatistics(
                id=id_,
                session_id=view.session_id,
                phase=view.phase,
                buffered_events=len(log.events),
                open_questions=len(view.questions),
            )
            for id_, log, view in views
        )
        return AgentStatistics(
            runs=runs, buffered_events=sum(run.buffered_events for run in runs), open_questions=open_questions
        )

    def stderr(self, line: str) -> None:
        """Pass a line of standard error to the listeners."""
        for run in self:
            if run.record.listener is not None:
                run.record.listener.stderr(line)
