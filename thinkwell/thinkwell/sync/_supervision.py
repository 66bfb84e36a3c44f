"""`supervise`: another agent as the judge of what an agent asks, for callers who block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell import supervision
from thinkwell.sync._supervisor import Supervisor

if TYPE_CHECKING:
    from thinkwell.supervision import Reviews
    from thinkwell.sync._agent import Agent


def supervise(
    by: Agent,
    instructions: str,
    *,
    timeout: float = 60,
    reviews: Reviews = "open",
    max_denials: int | None = 5,
) -> Supervisor:
    """Let another agent answer an agent's questions: ``open_agent(on_question=supervise(by=judge, …))``.

    Args:
        by: The agent that judges, in a new session for every question.
        instructions: What to allow and what to deny, in your words.
        timeout: Seconds for a verdict, including the start of its session.
        reviews: Whether it is also asked about what the policy allows.
        max_denials: End the run after this many denials; ``None`` for no limit.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The instructions are empty, or an argument is out of range.
    """
    if not hasattr(by, "_agent"):
        raise TypeError(f"supervise(by={by!r:.100}): give an open agent, from thinkwell.sync.open_agent(…)")
    supervisor = supervision.supervise(
        by._agent, instructions, timeout=timeout, reviews=reviews, max_denials=max_denials
    )
    return Supervisor(by._held.loop, supervisor)
