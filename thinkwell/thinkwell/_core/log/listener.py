"""Listeners to a run: typed handlers, or a host to which the run is passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell import events as ev
    from thinkwell._core.log.log_lines import LogLines
    from thinkwell._values.rulings import Ruling
    from thinkwell.questions import Answer, Question

E = TypeVar("E", bound="ev.ThoughtEvent")


class Listened(Protocol):
    """The requests of a listener to its run."""

    @property
    def id(self) -> str:
        """Name of the run, unique in this process."""
        ...

    @property
    def agent(self) -> str:
        """Name of the agent."""
        ...

    @property
    def lines(self) -> LogLines:
        """Writes log lines about the run."""
        ...

    @property
    def reports(self) -> bool:
        """Whether the agent sends everything as a `Report`."""
        ...

    @property
    def result_fields(self) -> dict[str, ev.JsonValue]:
        """The fields with which such an agent has ended its turn; may be empty."""
        ...

    def is_own(self, tool_id: str) -> bool:
        """Return whether a tool call that the agent shows is of a tool of ours."""
        ...

    @property
    def asks_others(self) -> bool:
        """Whether others are asked if the listener leaves a question open."""
        ...

    def tell(self, kind: Callable[..., E], /, **fields: object) -> None:
        """Append an event to the run's log."""
        ...

    async def respond(self, report: ev.Report, value: ev.JsonValue) -> None:
        """Answer a report that is neither a question nor an approval.

        Raises:
            AgentError: The agent has ended.
        """
        ...

    def stop(self, why: Exception) -> None:
        """End the run; its result fails with the reason unless there is one."""
        ...


class RunListener(Protocol):
    """Gets all events of a run, and is asked first."""

    by: str
    """Its name in the log, if an answer has none."""
    max_repeats: int | None
    """How often the agent may ask the same; ``None``: unlimited."""

    @property
    def takes_approvals(self) -> bool:
        """Whether it decides permissions: an error if everything is denied anyway."""
        ...

    @property
    def takes_questions(self) -> bool:
        """Whether it answers questions: a warning if the agent was not told that it may ask."""
        ...

    def begin(self, run: Listened) -> None:
        """Receive the run; called once, before anything else."""
        ...

    def event(self, event: ev.ThoughtEvent) -> None:
        """Handle an event, whether the run keeps it or not. It must neither wait nor raise."""
        ...

    def stderr(self, line: str) -> None:
        """Handle a line of the agent's standard error, without its end."""
        ...

    async def answer(self, question: Question) -> Answer | None:
        """Answer a question; ``None`` leaves it to the next one asked."""
        ...

    def answered(self, question: Question, ruling: Ruling, seconds: float) -> None:
        """Handle the end of a question, and how long it took."""
        ...
