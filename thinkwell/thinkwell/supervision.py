"""Let another agent answer an agent's questions: `supervise`."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar, get_args
from weakref import WeakSet

import anyio

from thinkwell._core.schema.arguments import check_count, check_seconds, checked
from thinkwell.questions import FormQuestion, Reply, StopRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell._core.agent.agent_handle import Agent
    from thinkwell._core.task.builder import ThinkBuilder
    from thinkwell._display.brief import Brief
    from thinkwell._values.forms import FormValue
    from thinkwell.questions import Question

__all__ = ("Reviews", "Supervisor", "supervise")

T = TypeVar("T")

Reviews: TypeAlias = Literal["open", "all"]
"""``open``: what the policy leaves open. ``all``: also what it allows, which can then only be denied."""

REASON_LENGTH: Final = 500
"""Most characters of a judge's reason, or of its failure, in the log."""

TITLE_LENGTH: Final = 100
"""Most characters of a question's title in the reason for a run's end."""

RUNS_KEPT: Final = 1000
"""Runs whose denials and judges are remembered: a supervisor is not notified when a run ends."""


def _shown(text: str, length: int) -> str:
    """Return a text as one clean line for a log."""
    from thinkwell._display.brief import shown  # not needed by `import thinkwell`

    return shown(text, length)


class _Recent(OrderedDict[str, T]):
    """Data about the most recently active runs."""

    def keep(self, key: str, value: T) -> None:
        """Store the data of a run, and forget the least recently active one."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > RUNS_KEPT:
            self.popitem(last=False)


_judging: Final[_Recent[WeakSet[Agent]]] = _Recent()
"""The runs in which agents judge, by run id: the judge, and the judges of the runs that led to it."""


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
    if not hasattr(by, "think"):
        raise TypeError(f"supervise(by={by!r:.100}): give an open agent, from open_agent(…)")
    if not checked(instructions, "supervise(instructions=…)").strip():
        raise ValueError("supervise(instructions=…): say what to allow and what to deny")
    check_seconds("timeout", timeout)
    if reviews not in get_args(Reviews):
        raise ValueError(f'supervise(reviews={reviews!r}): choose "open" or "all"')
    if max_denials is not None:
        check_count("max_denials", max_denials)
        if max_denials == 0:
            raise ValueError("supervise(max_denials=0): give 1 or more, or None for no limit")
    return Supervisor(by, instructions, timeout=timeout, reviews=reviews, max_denials=max_denials)


class Supervisor:
    """A question handler that asks another agent. Created by `supervise`.

    Its answer counts only for this question. If the agent is unsure, too slow, has ended, or returns no valid
    verdict, the next handler is asked; without one, the question is denied. A yes does not count if the
    question was too long to be shown to the agent in full.

    An agent can judge its own questions only if its sessions do not wait for each other, so better use two.
    It never judges questions that it asks while it judges.
    """

    by: Final = "supervisor"
    """Its name in the log."""

    def __init__(
        self, agent: Agent, instructions: str, *, timeout: float, reviews: Reviews, max_denials: int | None
    ) -> None:
        self.reviews: Final[Reviews] = reviews
        """Which permission questions it gets."""
        self._agent = agent
        self._instructions = instructions
        self._timeout = timeout
        self._max_denials = max_denials
        self._denials: _Recent[int] = _Recent()

    def __repr__(self) -> str:
        return f"<Supervisor by {self._agent.name}>"

    async def __call__(self, question: Question) -> Reply:
        """Return the verdict on a question, or the answer ``None`` without a verdict. Never raises."""
        involved = _judging.get(question.run_id or "", WeakSet())
        if self._agent in involved:
            return Reply(None, f"agent {self._agent.name} does not judge what it asks while it judges")
        try:
            return await self._reply(question, involved)
        except Exception as exc:  # any failure allows nothing
            return Reply(None, _shown(f"there is no verdict: {type(exc).__name__}: {exc}", REASON_LENGTH))

    async def _reply(self, question: Question, involved: WeakSet[Agent]) -> Reply:
        from thinkwell._display.brief import Judgement, brief_of, form_judgement  # see _shown

        brief = brief_of(question, self._instructions)
        if isinstance(question, FormQuestion):
            form = await self._run(self._agent.think(form_judgement(question.fields)), brief, involved)
            return self._answer(question, brief, form.action, form.reason, form.form)
        judgement = await self._run(self._agent.think(Judgement), brief, involved)
        return self._answer(question, brief, judgement.verdict, judgement.reason, "allow")

    async def _run(self, task: ThinkBuilder[T], brief: Brief, involved: WeakSet[Agent]) -> T:
        """Return the judgement as soon as it arrives; the turn continues. Cancelling this cancels the run."""
        told = task.text(brief.before).quote(brief.document, tag=brief.tag).text(brief.after)
        stream = told.stream(include=(), timeout=self._timeout)
        _judging.keep(stream.id, WeakSet([*involved, self._agent]))
        try:
            return await stream.result
        except anyio.get_cancelled_exc_class():
            await stream._end()
            raise

    def _answer(
        self,
        question: Question,
        brief: Brief,
        verdict: str,
        reason: str,
        yes: Literal["allow"] | Mapping[str, FormValue],
    ) -> Reply:
        why = _shown(reason, REASON_LENGTH)
        if verdict == "unsure":
            return Reply(None, why or "the supervisor is unsure")
        if verdict in ("deny", "decline"):
            return self._denied(question, why)
        if brief.unseen:
            unseen = ", ".join(brief.unseen)
            return Reply(
                None, f"its yes does not count: it was not shown all of the {unseen}; it said: {why}"
            )
        return Reply(yes, why)

    def _denied(self, question: Question, reason: str) -> Reply:
        """Deny the question, and end the run after `max_denials`."""
        run = question.run_id or f"{question.agent} {question.session_id}"
        count = self._denials.get(run, 0) + 1
        self._denials.keep(run, count)
        if self._max_denials is None or count < self._max_denials:
            return Reply("deny", reason)
        title = _shown(question.title, TITLE_LENGTH)
        times = "1 question" if count == 1 else f"{count} questions"
        return Reply(StopRun(f"the supervisor has denied {times}, the last one {title!r}: {reason}"), reason)
