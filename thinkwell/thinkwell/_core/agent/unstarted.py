"""A run that could not be started, as a stream: it has failed."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, NoReturn

from anyio.lowlevel import checkpoint

from thinkwell import events as ev
from thinkwell._core.log.outcome import Outcome
from thinkwell._core.log.run_log import RunLog
from thinkwell._core.log.stream import ThoughtResult, ThoughtStream
from thinkwell.errors import QuestionNotOpen, RunEnded

if TYPE_CHECKING:
    from thinkwell.questions import Answer

_numbers: Final = count(1)


def unstarted(error: Exception, *, agent: str, cwd: str) -> ThoughtStream[Any]:
    """Return the stream of a run that could not be started.

    Args:
        error: Why.
        agent: The name of the agent that should have run it.
        cwd: The folder that it would have worked in.
    """
    run = _Unstarted()
    log = RunLog(agent=agent, cwd=cwd)
    outcome: Outcome[Any] = Outcome(run.id)
    outcome.fail(error)
    log.add(ev.PhaseChanged, phase="failed")
    log.end(error)
    return ThoughtStream(log, ThoughtResult(outcome), run)


class _Unstarted:
    """What a stream may ask of such a run: nothing is left to be done."""

    session_id = recording = None
    live = foreign = False
    late = ()

    def __init__(self) -> None:
        self.id: Final = f"unstarted-{next(_numbers)}"

    def answer(self, question_id: str, answer: Answer, by: str) -> NoReturn:
        """Refuse an answer: there is no question."""
        raise QuestionNotOpen(question_id)

    def attach(self, listener: object) -> None:
        """Attach nothing: it would hear nothing."""

    async def steer(self, text: str, otherwise: object) -> NoReturn:
        """Refuse a message."""
        raise RunEnded(self.id)

    def cancel(self) -> None:
        """Do nothing."""

    kill = cancel

    async def wait(self) -> None:
        """Wait for nothing."""
        await checkpoint()
