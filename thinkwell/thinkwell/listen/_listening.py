"""One listener of a run: its messages for the handlers, and their answers."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.exit import SILENCE, Said, background_tasks, call_handler
from thinkwell._lines.words import error_fields
from thinkwell.errors import AgentError, AgentReported, ThoughtTimeout
from thinkwell.listen._lanes import Job, Lanes
from thinkwell.listen._messages import ASKING, ENDS, Narrator, asked
from thinkwell.listen._transcript import record_of
from thinkwell.listen._values import as_answer, to_json
from thinkwell.questions import Reply
from thinkwell_acp.errors import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from thinkwell import ThoughtStream
    from thinkwell._core.exit import Listened, Ruling
    from thinkwell.events import JsonValue
    from thinkwell.listen._registered import Registered
    from thinkwell.listen._transcript import Transcript
    from thinkwell.questions import Answer, Question

T = TypeVar("T")

logger = logging.getLogger("thinkwell")

HANDLER_THREADS: Final = 200
"""Most handlers without ``async`` that may run at the same time."""

REST_TIMEOUT: Final = 10.0
"""Seconds for the rest of a turn after its result: some agents send a last message."""

_LAST_PHASES: Final = ("completed", "failed", "cancelled")

TYPES_TOLD: Final = 100
"""Types of messages without a handler that get a log line each: agents may invent any number."""


class Listening:
    """Listens to one run. Made by `Handlers.begin`, for `ThinkBuilder.listen` and `listen`."""

    by: str = "handler"

    def __init__(
        self, handlers: Mapping[str, Registered], *, transcript: Transcript | None, max_repeats: int | None
    ) -> None:
        self.max_repeats = max_repeats
        self._transcript = transcript
        self._lanes = Lanes(handlers, self._handle)
        self._narrator = Narrator(handlers)
        self._heard = (ev.PhaseChanged, ev.Report, *self._narrator.kinds)
        self._run: Listened | None = None
        self._reports = False
        self._agent = ""
        self._log: Callable[..., None] = logger.log
        """Writes log lines; once there is a run, with its fields."""
        self._asked: dict[str, Job] = {}
        """Questions for handlers, by id."""
        self._announced: list[tuple[int, str, dict[str, JsonValue]]] = []
        """The reserved places of an NDJSON agent's questions that are still to come."""
        self._told: set[str] = set()
        """What has already been logged: types without a handler, and types without answers."""
        self._left = False
        """Whether the listener has left."""
        self._stopped = False
        self._ended = anyio.Event()
        """Set at the end of the turn."""
        self._failure: BaseException | None = None
        self._stream: ThoughtStream[Any] | None = None
        self._scope = anyio.CancelScope()
        """Around the wait for the end."""
        self._threads: anyio.CapacityLimiter | None = None

    # Called by the run

    @property
    def takes_approvals(self) -> bool:
        """Whether it decides permissions."""
        return "approval" in self._lanes

    @property
    def takes_questions(self) -> bool:
        """Whether it answers questions."""
        return "question" in self._lanes

    def begin(self, run: Listened) -> None:
        """Receive the run."""
        self._run = run
        self._agent = run.agent
        self._log = run.lines
        self._reports = run.reports

    def event(self, event: ev.ThoughtEvent) -> None:
        """Queue the message of an event, if it has a handler."""
        if self._left or not isinstance(event, self._heard):  # most are pieces of text without a handler
            return
        if isinstance(event, ev.PhaseChanged) and event.phase in _LAST_PHASES:
            self._ended.set()
        if isinstance(event, ev.Report):
            self._report(event)
        elif not self._reports and (told := self._narrator.message(event)) is not None:
            self._lanes.put(told.type, Job(told.fields))

    def stderr(self, line: str) -> None:
        """Queue a line of standard error. NDJSON agents send log messages instead."""
        if self._left or self._reports:
            return
        if (told := self._narrator.stderr(line)) is not None:
            self._lanes.put(told.type, Job(told.fields))

    async def answer(self, question: Question) -> Answer | None:
        """Return a handler's answer; ``None`` leaves it to the next one asked."""
        run = self._run
        assert run is not None
        told = asked(question)
        if self._left:
            return Reply(None, "the listener has left", "listener")
        if told.type not in self._lanes:
            if not run.asks_others:
                self._unhandled(told.type, told.fields)
            return Reply(None, "there is no handler for it", "listener")
        job = Job(told.fields, question=question)
        self._asked[question.id] = job
        self._lanes.put(told.type, job, self._announced_place(question))
        try:
            await job.settled.wait()
        finally:
            job.drop()
        return job.answer

    def answered(self, question: Question, ruling: Ruling, seconds: float) -> None:
        """Stop the handler of a question that has ended, and record the outcome."""
        job = self._asked.pop(question.id, None)
        if job is not None:
            job.drop()
        elif (place := self._announced_place(question)) is not None:
            self._lanes.give_up(asked(question).type, place)
        if self._transcript is not None:
            told = asked(question)
            self._transcript.append(record_of(question, told.fields, told.type, ruling, seconds))

    def _report(self, event: ev.Report) -> None:
        self._reports = True  # a recording does not say so itself
        if event.kind in ASKING:
            if event.kind in self._lanes and self._run is not None:
                self._announced.append((self._lanes.keep(event.kind), event.kind, event.body))
        elif event.kind in self._lanes and event.kind not in ENDS:
            self._lanes.put(event.kind, Job(event.body, report=event))
        else:
            self._unhandled(event.kind, event.body)

    def _announced_place(self, question: Question) -> int | None:
        """Return the place that a question got when its line was read.

        Of questions that come together, a later one may be decided first: by a policy.
        """
        if question.message is None:
            return None
        told = asked(question)
        for index, (rank, *announced) in enumerate(self._announced):
            if announced == [told.type, told.fields]:
                del self._announced[index]
                return rank
        return None

    def _unhandled(self, type_: str, fields: dict[str, JsonValue]) -> None:
        level = logging.DEBUG
        if type_ not in self._told and len(self._told) < TYPES_TOLD:
            self._told.add(type_)
            level = logging.INFO
        self._log(level, "Agent %s: no handler for a message of type %.100r", self._agent, type_)
        if self._run is not None:
            self._run.tell(ev.Unhandled, kind=type_, body=fields)

    # Listening

    async def hear(self, stream: ThoughtStream[T], timeout: float | None) -> T:  # noqa: ASYNC109
        """Handle all messages, and return the run's result when all is done.

        An exception in a handler, cancelling the caller, and the timeout cancel the run.
        """
        self._stream = stream
        self._threads = anyio.CapacityLimiter(HANDLER_THREADS)
        finished = False
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._lanes.serve, tasks)
                with anyio.move_on_after(timeout) as self._scope:
                    try:
                        await self._follow(stream)
                        finished = True
                    finally:
                        if not finished:  # at once: handlers may need time to end
                            self._stop(None if timeout is None else ThoughtTimeout(timeout))
        finally:
            if not finished or stream.result.exception() is not None:
                with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
                    await stream.wait()
        stream.result.exception()  # it is raised, or its cause is
        try:
            if self._failure is not None:
                raise self._failure
        finally:
            self._failure = None  # its traceback refers to this
        return await stream.result

    async def _follow(self, stream: ThoughtStream[Any]) -> None:
        """Wait for the end of the turn, and until all earlier messages are handled."""
        if stream._run.live:
            await stream.result._outcome.wait()
            if stream.result.exception() is None and not stream._log.ended:
                with anyio.move_on_after(REST_TIMEOUT):
                    await self._ended.wait()
        else:
            async for event in stream:
                self.event(event)
        self._leave()
        error = stream.result.exception()
        if isinstance(error, ThoughtTimeout) and not error.idle:
            return  # the handlers' time is over too
        await self._lanes.drained()
        if error is None and "result" in self._lanes:
            said = {} if self._run is None else self._run.result_fields
            try:
                self._lanes.put("result", Job(said or _result_fields(await stream.result)))
            except TypeError as exc:  # a user's type without a JSON form
                self._fail(exc)
        elif isinstance(error, AgentReported) and "error" in self._lanes:
            self._lanes.put("error", Job(_error_fields(error, spread=self._reports)))
        await self._lanes.drained()

    def _leave(self) -> None:
        """Stop listening: the turn may continue, but there is a result, and no handler is running."""
        self._left = True
        for rank, type_, _ in self._announced:
            self._lanes.give_up(type_, rank)
        for job in self._asked.values():  # the next handler is asked
            job.settled.set()

    def _stop(self, late: ThoughtTimeout | None) -> None:
        """End the run early: a handler failed, the time is over, or the caller is cancelled."""
        assert self._stream is not None
        if late is not None and self._failure is None and self._scope.cancel_called:
            self._failure = late
            if self._run is not None:
                self._run.stop(late)
        self._stopped = True
        self._stream.cancel()
        self._scope.cancel()

    def _fail(self, error: BaseException) -> None:
        """End everything because a handler failed."""
        if self._stopped:
            self._log(
                logging.ERROR,
                "Agent %s: a handler has failed while it was ended",
                self._agent,
                exc_info=error,
            )
            return
        self._failure = error
        self._stop(None)

    # Handlers, each in a separate task

    async def _handle(self, handler: Registered, job: Job) -> None:
        try:
            if not (job.dropped or self._stopped):
                with job.scope:
                    await self._call(handler, job)
        except BaseException as exc:  # including exceptions that end the process, which the caller decides
            if _is_cancellation(exc):
                raise
            assert self._stream is not None
            if job.dropped and isinstance(exc, Exception) and self._stream.result.done():
                about = "Agent %s: %s has failed over a question that had ended, and so has the run"
                self._log(logging.ERROR, about, self._agent, handler.label, exc_info=exc)
                return
            self._fail(exc)

    async def _call(self, handler: Registered, job: Job) -> None:
        message = handler.read(job.fields, self._agent)
        value: object = None
        with anyio.move_on_after(handler.timeout) as limit:
            value = await self._value(handler, message)
        if limit.cancelled_caught:
            about = "Agent %s: %s took longer than %g seconds over a message, and was cancelled"
            self._log(logging.WARNING, about, self._agent, handler.label, handler.timeout)
        if job.question is not None:
            job.answer = self._answer(handler, job.question, value, late=limit.cancelled_caught)
            return
        if job.before is not None:
            await job.before.wait()
        if value is not None and handler.type not in ENDS and self._run is not None:
            await self._respond(self._run, handler, job.report, value)

    async def _value(self, handler: Registered, message: object) -> object:
        assert self._threads is not None
        try:
            return await call_handler(handler.function, message, self._threads)
        except anyio.get_cancelled_exc_class() as exc:
            await checkpoint_if_cancelled()
            # Raised unchanged, it would look like a cancellation of the caller.
            raise RuntimeError(f"{handler.label} was cancelled, and not by the listener") from exc

    def _answer(self, handler: Registered, question: Question, value: object, *, late: bool) -> Answer | None:
        """Return a handler's answer; ``None`` leaves it to the next one asked."""
        if late:
            why = f"the {handler.by} did not answer within {handler.timeout:g} seconds"
            return Reply(None, why, handler.by)
        reply = None if value is None else as_answer(question, value, label=handler.label)
        if reply is None or (reply.answer is None and not isinstance(reply, Said)):
            assert self._run is not None
            if not self._run.asks_others:
                self._warn_of_nothing(handler, question)
                if self._reports:
                    return cast("Answer", SILENCE)  # not an answer that a user can give
            return reply or Reply(None, f"the {handler.by} left it open", handler.by)
        if reply.answer is None:
            self._log(logging.WARNING, "Agent %s, question %s: %s", self._agent, question.id, reply.why)
        by = reply.by or handler.by
        return replace(reply, by=by, why=reply.why or f"the {by} said so")

    def _warn_of_nothing(self, handler: Registered, question: Question) -> None:
        """Warn that a question has no answer: usually a ``return`` was forgotten."""
        if handler.label in self._told:
            return
        self._told.add(handler.label)
        then = "the agent is told nothing and may wait for it" if self._reports else "it is declined"
        about = "Agent %s: %s returned None for question %s, and no other handler is left: %s"
        self._log(logging.WARNING, about, self._agent, handler.label, question.id, then)

    async def _respond(
        self, run: Listened, handler: Registered, report: ev.Report | None, value: object
    ) -> None:
        """Answer a message that is not a question."""
        if report is None:
            if handler.type not in self._told:
                self._told.add(handler.type)
                about = "Agent %s: what %s returns is dropped: over ACP only questions have answers"
                self._log(logging.WARNING, about, self._agent, handler.label)
            return
        answer = to_json(value, handler.label)
        with suppress(AgentError):  # the run fails with it
            await run.respond(report, answer)


def _is_cancellation(error: BaseException) -> bool:
    """Return whether an error is only the cancellation of its task."""
    cancelled = anyio.get_cancelled_exc_class()
    if isinstance(error, BaseExceptionGroup):  # trio's nursery raises a group
        group = cast("BaseExceptionGroup[BaseException]", error)
        return group.split(cancelled)[1] is None
    return isinstance(error, cancelled)


def _result_fields(result: object) -> dict[str, JsonValue]:
    """Return the fields of a result."""
    plain = to_json(result, "the agent")
    if isinstance(plain, dict):
        return cast("dict[str, JsonValue]", plain)
    return {"text" if isinstance(plain, str) else "result": plain}


def _error_fields(error: AgentReported, *, spread: bool) -> dict[str, JsonValue]:
    """Return the fields of an error; `spread`: its data was beside the message."""
    if not spread:
        return error_fields(error)
    fields: dict[str, JsonValue] = {"message": error.message}
    if error.code != INTERNAL_ERROR:  # it means no code
        fields["code"] = error.code
    return {**fields, **cast("dict[str, JsonValue]", error.data or {})}
