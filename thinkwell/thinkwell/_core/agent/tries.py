"""A run that may be tried again, by the same agent or by another: one log and one result of several runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from msgspec import structs

from thinkwell import events as ev
from thinkwell._core.agent.effects import Effects
from thinkwell._core.agent.limits import within_budget
from thinkwell._core.agent.run_life import next_run_id
from thinkwell._core.agent.spares import Fallback, add_tries, another_may_help, ended_on_purpose, failed_try
from thinkwell._core.log.log_lines import LogLines
from thinkwell._core.log.observers import RunObserver, RunObservers
from thinkwell._core.log.run_log import RunLog, running_clock
from thinkwell._core.log.settlement import Settlement
from thinkwell._core.log.stream import Refused, ThoughtResult, ThoughtStream
from thinkwell._core.task.briefing import briefing
from thinkwell._core.task.prompt import TextPart, joined
from thinkwell._core.turn.turn import PATIENT
from thinkwell.errors import AgentClosed, AgentExited, ThoughtCancelled, ThoughtTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from thinkwell._core.agent.agent import RunningAgent
    from thinkwell._core.agent.run_handle import RunHandle
    from thinkwell._core.agent.spares import Beginner, Spare
    from thinkwell._core.log.listener import RunListener
    from thinkwell._core.log.observers import RunFacts
    from thinkwell._core.log.stream import Injected, Otherwise, Queued
    from thinkwell._core.session.session import WireSession
    from thinkwell._core.task.builder import Options, Spec
    from thinkwell._core.turn.turn import Patience
    from thinkwell.questions import Answer
    from thinkwell_acp.mcp import ToolOutput

T = TypeVar("T")

LAST_PHASES: Final = ("completed", "failed", "cancelled")


def with_text(spec: Spec[T], text: str) -> Spec[T]:
    """Return a task with text behind its prompt."""
    return replace(spec, parts=joined((*spec.parts, TextPart(text)))) if text else spec


class _Try(RunObserver):
    """One of the runs: passes on what happens in it."""

    def __init__(self, tries: Tries[Any], began: float) -> None:
        self._tries = tries
        self._began = began
        """When it began, in seconds since the first did."""

    def begun(self, facts: RunFacts, /) -> None:
        """Have all tries observed as one run, of which the first says what there is to know."""
        tries = self._tries
        if facts.attempt == 1:
            whole = structs.replace(facts, include=tries._options.include)
            tries.observers = tries._agent.host.observers.whole(whole)
            for listener in tries.observers.listeners:
                tries.log.listen(listener)

    def session(self, session_id: str, /) -> None:
        """Pass on the session."""
        self._tries.observers.session(session_id)

    def event(self, event: ev.ThoughtEvent, /) -> None:
        """Pass on an event."""
        self._tries.take(event, event.at + self._began)

    def settled(self, raw: ev.JsonValue, error: Exception | None, /) -> None:
        """Pass on the result."""
        self._tries.settled(raw, error)

    def ended(self, error: Exception | None, cut: str | None, /) -> None:
        """Pass on the end."""
        self._tries.ended(error)

    def calling(
        self, name: str, arguments: Mapping[str, ev.JsonValue], /
    ) -> AbstractContextManager[Callable[[ToolOutput], None]]:
        """Note a call of a tool of ours."""
        self._tries.effects.add_own_call(name)
        return super().calling(name, arguments)

    def served(self) -> None:
        """Note that a file was written, or a command used."""
        self._tries.effects.add()


class Tries(Generic[T]):
    """A run that is tried again where it fails.

    Args:
        agent: The agent in whose block it is.
        starter: Starts the first try.
        spec: The task.
        options: How it is to go.
        fallback: The agents that take over, where there are any.
        session: The session of all tries; ``None``: each has its own.
    """

    live = True

    def __init__(
        self,
        agent: RunningAgent,
        starter: Beginner,
        spec: Spec[T],
        options: Options,
        fallback: Fallback,
        session: WireSession | None = None,
    ) -> None:
        self._agent = agent
        self._starter = starter
        self._spec = spec
        self._options = options
        self._fallback = fallback
        """The agents that have not been tried."""
        self.session: WireSession | None = session
        self.id: Final = options.run_id or next_run_id()
        name, owner = agent.host.name, agent.host.owner
        self.log: RunLog = RunLog(
            options.include,
            options.buffer,
            lambda error: agent.host.tasks.start_soon(self._overflown, error),
            clock=running_clock(),
            agent=name,
            cwd=agent.setup.cwd,
            owner=owner,
        )
        self.observers: RunObservers = RunObservers(())
        """They observe all tries as one run."""
        self._outcome: Settlement[T] = Settlement(
            self.id,
            lambda raw, error: self.observers.settled(raw, error),
            lines=LogLines(agent=name, run=self.id),
            owner=owner,
        )
        self.effects: Effects = Effects(spec.tools, lambda id_: self._current.is_own(id_))
        self._spare: Spare | None = None
        """The agent that tries it now, or next; ``None``: the block's own."""
        self._delay = 0.0
        """Seconds until it does."""
        self._failed: list[ev.TryFailed] = []
        self._tries_now = False
        """Whether an agent is at it."""
        self._last_phase: ev.PhaseChanged | None = None
        self._stopped_by: Exception | None = None
        self._scope = anyio.CancelScope()
        self.over: anyio.Event = anyio.Event()

    def start(self) -> ThoughtStream[T]:
        """Start the first try, and return the handle of all."""
        self._begin(self._starter, self._spec)
        self._agent.runs.tried[self] = None
        self._agent.host.tasks.start_soon(self._main)
        return ThoughtStream(self.log, ThoughtResult(self._outcome), self)

    def _begin(self, starter: Beginner, spec: Spec[T]) -> None:
        observer = _Try(self, self.log.now())
        options = replace(
            self._options,
            include=frozenset(),
            buffer=None,
            timeout=None,
            retry=None,
            model=self._options.model if self._spare is None else None,  # another agent has other models
            run_id=self.id,
            attempt=len(self._failed) + 1,
        )
        self._current: RunHandle[T] = starter.begin(spec, options, observer)
        self._tries_now = True

    # What a try tells

    def take(self, event: ev.ThoughtEvent, at: float) -> None:
        """Append an event of a try."""
        self.effects.take(event)
        if isinstance(event, ev.Steered) and event.outcome in ("injected", "interrupted"):
            self._spec = with_text(self._spec, f"\n{event.text}")  # the next one has to know, too
        if isinstance(event, ev.PhaseChanged) and event.phase in LAST_PHASES:
            self._last_phase = event  # it is the last only if no other try follows
            return
        self.log.adopt(event, at)
        self.log.publish()

    def settled(self, raw: ev.JsonValue, error: Exception | None) -> None:
        """Take the result of a try, or an error after which there is no other."""
        if error is None:
            outcome = self._current.outcome
            self._outcome.set(outcome.value[0], raw, wrapped=outcome.wrapped)
            return
        retry = self._options.retry
        retried = retry is not None and isinstance(error, retry.on)
        if not (retried or another_may_help(error, self._current.session_id)):
            self._fail(error)

    def ended(self, error: Exception | None) -> None:
        """Take the end of a try: the end of all, or another one follows."""
        self._current.outcome.seen = True
        if error is None or not self._goes_on(error):
            self._end(error)
        else:
            self._tries_now, self._last_phase = False, None

    # What follows

    @property
    def _by(self) -> str:
        """The name of the agent that tries it."""
        return self._agent.host.name if self._spare is None else self._spare.name

    def _goes_on(self, error: Exception) -> bool:
        """Decide what follows a try that has failed, and log it; return whether anything does."""
        if self._stopped_by is not None:
            return False
        name, changed = self._by, self.effects.any()
        delay = None if changed else self._retry_in(error)
        spares = self._fallback.spares
        if delay is not None:
            self._delay = delay
            failed, notice = failed_try(error, name, name, "retry", delay)
        elif (
            spares
            and another_may_help(error, self._current.session_id)
            and (self._fallback.after_effects or not changed)
        ):
            self._spare, self._delay = spares[0], 0.0
            self._fallback = structs.replace(self._fallback, spares=spares[1:])
            failed, notice = failed_try(error, name, self._by, "fallback")
        else:
            return False
        for event in (failed, notice):
            self.log.adopt(event, self.log.now())
        self.log.publish()
        self._current.lines(logging.WARNING, "Run %s: %s: %s", self.id, notice.title, failed.reason)
        self._failed.append(failed)
        return True

    def _retry_in(self, error: Exception) -> float | None:
        """Return how long to wait for another try of the same agent; ``None``: there is none."""
        retry = self._options.retry
        if isinstance(error, AgentExited):  # it has to be started again
            opening = (self._spare or self._agent.spares.itself).opening
            if ended_on_purpose(error) or self.session is not None or not opening.again:
                return None
        before = takewhile(lambda failed: failed.then == "retry", reversed(self._failed))
        return None if retry is None else retry.delay(error, 1 + len(list(before)))

    async def _main(self) -> None:
        """Drive it to its end. Never raises."""
        try:
            with anyio.move_on_after(self._options.timeout) as limit:
                await self._follow()
            if limit.cancel_called:
                assert self._options.timeout is not None
                self.stop(ThoughtTimeout(self._options.timeout))
                await self._follow()
        finally:
            self._end(self._stopped_by or AgentClosed())
            del self._agent.runs.tried[self]
            self.over.set()

    async def _follow(self) -> None:
        """Wait for the end of each try, and begin the next one."""
        while True:
            await self._current.wait()
            if self._stopped_by is None and not self.log.ended:
                with anyio.CancelScope() as self._scope:
                    await self._begin_next()
            if self.log.ended:
                return
            if self._stopped_by is not None and not self._tries_now:
                self._end(self._stopped_by)

    async def _begin_next(self) -> None:
        try:
            with within_budget(self._options.budget, self.stop, self._agent.host.tasks):
                await anyio.sleep(self._delay)
                starter = await self._next_starter()
            self._begin(starter, self._next_spec())
        except Exception as exc:
            if not self._goes_on(exc):
                self._end(exc)

    async def _next_starter(self) -> Beginner:
        spares = self._agent.spares
        if self._spare is None and (
            self.session is not None
            or self._agent.client.connection.error is None
            or not spares.itself.opening.again  # the try says how it has ended
        ):
            return self._starter
        return (await spares.get(self._spare or spares.itself)).starter

    def _next_spec(self) -> Spec[T]:
        if self._spare is None:
            return self._spec
        return with_text(self._spec, briefing(self.log.view(), self._failed, changed=self.effects.any()))

    # The end

    def stop(self, why: Exception, patience: Patience = PATIENT) -> None:
        """End it before its time; the result fails with the reason unless it is there already."""
        if self.log.ended:
            return
        if self._stopped_by is None:
            self._stopped_by = why
            self._fail(why)
        if self._tries_now:
            self._current.stop(why, patience)
        else:
            self._scope.cancel()

    async def _overflown(self, error: Exception) -> None:
        self.stop(error)

    def _fail(self, error: Exception) -> None:
        if not self._outcome.done():
            add_tries(error, self._failed)
            self._outcome.fail(error)

    def _end(self, error: Exception | None) -> None:
        """Append the end, once. Without an error it is the result's, where that is one."""
        if self.log.ended:
            return
        if error is not None:
            self._fail(error)
        final = self._outcome.error
        if self._last_phase is not None:
            phase, cut = self._last_phase.phase, self._last_phase.cut
        else:
            phase, cut = "cancelled" if isinstance(final, ThoughtCancelled) else "failed", None
        self.log.add(ev.PhaseChanged, phase=phase, cut=cut)
        self.log.end(final)
        self.observers.ended(final, cut)

    # What the stream asks

    @property
    def session_id(self) -> str | None:
        """The agent's name for the session of the last try."""
        return self._current.session_id

    @property
    def recording(self) -> Path | None:
        """The file in which the agent of the last try is recorded."""
        return self._current.recording

    @property
    def foreign(self) -> bool:
        """Whether it is a run of the process of which this one is a fork."""
        return self._agent.host.owner.forked

    @property
    def late(self) -> tuple[ev.ThoughtEvent, ...]:
        """What came after the end of the last try."""
        return self._current.late

    def answer(self, question_id: str, answer: Answer, by: str) -> None:
        """Answer an open question."""
        self._current.answer(question_id, answer, by)

    def attach(self, listener: RunListener) -> None:
        """Have a listener hear what was kept, and the try that runs. No other follows."""
        self._current.attach(listener)
        self._fallback, self._options = Fallback(), replace(self._options, retry=None)
        for event in tuple(self.log.events):
            listener.event(event)

    async def steer(self, text: str, otherwise: Otherwise | None) -> Injected | Queued[Any] | Refused:
        """Tell the agent something while it works."""
        if not self._tries_now and not self.log.ended:
            await checkpoint()
            return Refused("no agent works on it: it will be tried again")
        return await self._current.steer(text, otherwise)

    def cancel(self) -> None:
        """Cancel the run."""
        self._check_owner()
        self.stop(ThoughtCancelled())

    def kill(self) -> None:
        """End the agent's process at once."""
        self._check_owner()
        if not self._tries_now:
            self.stop(ThoughtCancelled())
        else:
            self._current.kill()

    async def wait(self) -> None:
        """Wait until it is over."""
        if self.over.is_set():
            await checkpoint()
        else:
            self._agent.host.owner.check()
            await self.over.wait()

    def _check_owner(self) -> None:
        if not self.over.is_set():
            self._agent.host.owner.check()
