"""A supervisor for callers who block, and the async one behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell import supervision
    from thinkwell.questions import Question, QuestionHandler, Reply
    from thinkwell.sync._loop import LoopThread


class Supervisor:
    """A question handler that asks another agent. Created by `supervise`; see `thinkwell.Supervisor`."""

    def __init__(self, loop: LoopThread, supervisor: supervision.Supervisor) -> None:
        self._loop = loop
        self._supervisor = supervisor

    def __repr__(self) -> str:
        return repr(self._supervisor)

    def __call__(self, question: Question) -> Reply:
        """Return the verdict on a question, or the answer ``None`` without a verdict."""
        return self._loop.call(self._supervisor, question)


def async_handlers(
    given: QuestionHandler | Sequence[QuestionHandler] | None,
) -> QuestionHandler | Sequence[QuestionHandler] | None:
    """Return the handlers for the loop: for a supervisor, its async one, which does not block."""
    if isinstance(given, Supervisor):
        return given._supervisor
    if given is None or callable(given):
        return given
    return [one._supervisor if isinstance(one, Supervisor) else one for one in given]
