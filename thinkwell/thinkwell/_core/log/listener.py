"""Who listens to a run and speaks up in it: typed handlers, or a host that the run is passed on to."""

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
    """What a listener may ask of its run."""

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
        """Writes what is logged about the run."""
        ...

    @property
    def reports(self) -> bool:
        """Whether all that the agent says comes as a `Report`."""
        ...

    @property
    def result_fields(self) -> dict[str, ev.JsonValue]:
        """The fields by which such an agent has ended its turn; empty where there are none."""
        ...

    def is_own(self, tool_id: str) -> bool:
        """Return whether a tool call that the agent shows is of a tool of ours."""
        ...

    @property
    def asks_others(self) -> bool:
        """Whether others are asked what the listener leaves open."""
        ...

    def tell(self, kind: Callable[..., E], /, **fields: object) -> None:
        """Append an event to the run's log."""
        ...

    async def respond(self, report: ev.Report, value: ev.JsonValue) -> None:
        """Answer a report that is neither a question nor an approval.

        Raises:
            AgentError: The agent is gone.
        """
        ...

    def stop(self, why: Exception) -> None:
        """End the run; its result fails with the reason unless it is there already."""
        ...


class RunListener(Protocol):
    """Hears all of a run, and is the first who is asked what its agent asks."""

    by: str
    """Its name on the log, where an answer names none."""
    max_repeats: int | None
    """How often the agent may ask the same; ``None``: as often as it likes."""

    @property
    def takes_approvals(self) -> bool:
        """Whether it is to decide what the agent may do: an error where everything is denied anyway."""
        ...

    @property
    def takes_questions(self) -> bool:
        """Whether it is to answer questions: a warning where the agent was not told that it may ask."""
        ...

    def begin(self, run: Listened) -> None:
        """Learn which run it is; called once, before anything else."""
        ...

    def event(self, event: ev.ThoughtEvent) -> None:
        """Learn of an event, whether the run keeps it or not. It must neither wait nor raise."""
        ...

    def stderr(self, line: str) -> None:
        """Learn of a line that the agent's process has written to standard error, without its end."""
        ...

    async def answer(self, question: Question) -> Answer | None:
        """Answer a question; ``None`` leaves it to those who are asked next."""
        ...

    def answered(self, question: Question, ruling: Ruling, seconds: float) -> None:
        """Learn how a question has ended, and after how long."""
        ...
