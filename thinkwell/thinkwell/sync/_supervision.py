"""`supervise`: another agent as the judge of what an agent asks, for callers who block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell import supervision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.questions import Question, QuestionHandler, Reply
    from thinkwell.supervision import Reviews
    from thinkwell.sync._agent import Agent


class Supervisor:
    """A question handler that asks another agent. Made by `supervise`; see `thinkwell.Supervisor`."""

    def __init__(self, agent: Agent, supervisor: supervision.Supervisor) -> None:
        self._agent = agent
        self._supervisor = supervisor

    def __repr__(self) -> str:
        return repr(self._supervisor)

    def __call__(self, question: Question) -> Reply:
        """Return the verdict on a question; with the answer ``None`` where there is none."""
        return self._agent._held.loop.call(self._supervisor, question)


def supervise(
    by: Agent,
    instructions: str,
    *,
    timeout: float = 60,
    reviews: Reviews = "open",
    max_denials: int | None = 5,
) -> Supervisor:
    """Let another agent decide what an agent asks: ``open_agent(on_question=supervise(by=judge, …))``.

    Args:
        by: The agent that judges. It gets a session of its own for every question.
        instructions: What to allow and what to deny, in your words.
        timeout: Seconds that it gets for a verdict, the start of its session included.
        reviews: Whether it is also asked about what the policy allows.
        max_denials: With which denial in one run the run is ended; ``None``: with none.

    Raises:
        TypeError: An argument is of another type.
        ValueError: The instructions are empty, or an argument is out of range.
    """
    if not hasattr(by, "_agent"):
        raise TypeError(f"supervise(by={by!r:.100}): give an open agent, from thinkwell.sync.open_agent(…)")
    supervisor = supervision.supervise(
        by._agent, instructions, timeout=timeout, reviews=reviews, max_denials=max_denials
    )
    return Supervisor(by, supervisor)


def async_handlers(
    given: QuestionHandler | Sequence[QuestionHandler] | None,
) -> QuestionHandler | Sequence[QuestionHandler] | None:
    """Return who answers questions in the loop: for a supervisor, the one that does not block."""
    if isinstance(given, Supervisor):
        return given._supervisor
    if given is None or callable(given):
        return given
    return [one._supervisor if isinstance(one, Supervisor) else one for one in given]
