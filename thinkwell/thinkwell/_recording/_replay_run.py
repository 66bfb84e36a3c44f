"""The replay of a recorded run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.log.run_log import RunLog, running_clock
from thinkwell._core.log.settlement import Settlement
from thinkwell._core.log.stream import ThoughtResult, ThoughtStream
from thinkwell._core.schema.json_schema import is_object
from thinkwell._core.schema.output import RESULT_KEY, Output, OutputInvalid, output_of
from thinkwell._core.schema.partial import PartialResult
from thinkwell._recording import _records as rec
from thinkwell._recording._failures import error_of
from thinkwell._recording._reading import read_recording
from thinkwell.errors import (
    QuestionNotOpen,
    RecordingCut,
    RecordingError,
    ResultInvalid,
    RunEnded,
    ThoughtCancelled,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from thinkwell._core.log.listener import RunListener
    from thinkwell._core.log.run_log import Buffer
    from thinkwell._core.log.stream import Otherwise
    from thinkwell._recording._reading import Recording
    from thinkwell.questions import Answer
    from thinkwell.view import RunView

T = TypeVar("T")


def replayed(
    path: str | os.PathLike[str],
    output: object,
    *,
    run: str | None,
    speed: float,
    include: ev.Include | None,
    buffer: Buffer | None,
) -> ThoughtStream[ev.JsonValue]:
    """Return a recorded run as a stream; see `thinkwell.replay`."""
    recording = read_recording(path)
    begun = _find(recording, run)
    prepared = None if output is None else output_of(output)
    if begun.text and prepared is not None and prepared.text is None:
        raise TypeError(
            f"replay(…, {prepared.name}): the result of {begun.run} is a text; leave the type out"
        )
    if not begun.text and prepared is not None and prepared.schema is None:
        raise TypeError(
            f"replay(…, str): the result of {begun.run} is no text; give its type, or leave it out"
        )
    kept = frozenset(begun.include) if include is None else ev.included(include)
    return _Replay(recording, begun, prepared, speed, kept, buffer).stream


def _find(recording: Recording, run: str | None) -> rec.RunBegun:
    runs = [record for record in recording.records if isinstance(record, rec.RunBegun)]
    found = [begun for begun in runs if run in (None, begun.run)]
    if len(found) == 1:
        return found[0]
    if not runs:
        where = f": {recording.cut}" if recording.cut else ""
        raise RecordingError(recording.path, f"no run was begun in it{where}")
    known = ", ".join(begun.run for begun in runs)
    if run is None:
        raise RecordingError(
            recording.path, f'it holds several runs ({known}): say which, run="{runs[0].run}"'
        )
    raise RecordingError(recording.path, f"it holds no {run!r}, but {known}")


def _running_clock() -> Callable[[], float]:
    try:
        return running_clock()
    except RuntimeError as exc:
        raise RuntimeError("replay(): no event loop runs; call it in async code, or give speed=0") from exc


class _Step(Struct, frozen=True):
    """A step that is due at a time."""

    due: float
    record: rec.Record | None
    """``None``: the recording is cut here."""
    event: ev.ThoughtEvent | None = None


def _steps(recording: Recording, begun: rec.RunBegun) -> Iterator[_Step]:
    """Yield the run's steps, in order."""
    ours = over = False
    session: str | None = None
    for record in recording.records:
        match record:
            case rec.RunSession(run=run, session=where):
                if run == begun.run:
                    ours, session = True, where
                elif where == session:
                    ours = False  # later events outside turns belong to another run
            case rec.Happened(run=run) | rec.Settled(run=run) | rec.RunEnded(run=run):
                if run != begun.run:
                    continue
            case rec.Between(session=where):
                if not ours or where != session:
                    continue
            case _:
                continue
        event = None
        if isinstance(record, rec.Happened | rec.Between):
            event = _event(recording.path, record.event)
            if event is None:
                continue
        yield _Step(record.at - begun.at, record, event)
        over = over or isinstance(record, rec.RunEnded)
    if not over:
        yield _Step(recording.records[-1].at - begun.at, None)


def _event(path: str, fields: ev.JsonValue) -> ev.ThoughtEvent | None:
    """Return a recorded event; ``None`` for an unknown kind.

    Raises:
        RecordingError: It is malformed.
    """
    try:
        event: ev.ThoughtEvent = msgspec.convert(fields, ev.ThoughtEvent)
    except msgspec.ValidationError as exc:
        if is_object(fields) and fields.get("type") not in ev.ALL_TYPES:
            return None
        raise RecordingError(path, f"an event in it cannot be read: {exc}") from exc
    return event


class _Replay(Generic[T]):
    """A recorded run, up to the current time."""

    live = False
    foreign = False

    def __init__(
        self,
        recording: Recording,
        begun: rec.RunBegun,
        output: Output[T] | None,
        speed: float,
        include: frozenset[str],
        buffer: Buffer | None,
    ) -> None:
        self.id = begun.run
        self._session_id: str | None = None
        self._path = recording.path
        self._cut = recording.cut or "the run is not over when it ends"
        self._begun = begun
        self._output = output
        self._steps: Sequence[_Step] = tuple(_steps(recording, begun))
        self._next = 0
        self._late: list[ev.ThoughtEvent] = []
        self._speed = speed
        self._clock = _running_clock() if speed else _no_time
        self._started = self._clock()
        self._advancing = False
        partial = PartialResult(
            output_of(str) if begun.text else output,
            own_fields=begun.own_fields,
        )
        self._log = _ReplayLog(self, recording.header, include, buffer, partial)
        self._outcome: _ReplaySettlement[Any] = _ReplaySettlement(self)
        self.advance()

    @property
    def stream(self) -> ThoughtStream[T]:
        return ThoughtStream(self._log, ThoughtResult(self._outcome), self)

    @property
    def session_id(self) -> str | None:
        self.advance()
        return self._session_id

    @property
    def recording(self) -> Path:
        """The file of the recording."""
        return Path(self._path)

    @property
    def late(self) -> tuple[ev.ThoughtEvent, ...]:
        self.advance()
        return tuple(self._late)

    def answer(self, question_id: str, answer: Answer, by: str) -> None:
        """Refuse: the question was answered when the run was recorded."""
        raise QuestionNotOpen(question_id)

    async def steer(self, text: str, otherwise: Otherwise | None) -> Never:
        """Refuse: the run is over."""
        raise RunEnded(self.id)

    def attach(self, listener: RunListener) -> None:
        """Do nothing: a listener to a replay reads its events."""

    def cancel(self) -> None:
        """End the replay at its current place."""
        self.advance()
        self.fail(ThoughtCancelled())

    def kill(self) -> None:
        """End the replay at its current place: there is no agent."""
        self.cancel()

    @property
    def elapsed(self) -> float:
        """The current place in the recorded run, in seconds."""
        self.advance()
        took = self._steps[-1].due if self._steps else 0.0
        return min(took, (self._clock() - self._started) * self._speed) if self._speed else took

    async def wait(self) -> None:
        """Wait for the end of the events."""
        self.advance()
        while not self._log.ended:
            await self._log.wait()

    @property
    def due(self) -> float:
        """When the next step is due, by the clock of the event loop."""
        if self._next == len(self._steps):  # pragma: no cover - nothing waits then: the last step ends it
            return math.inf
        return self._started + self._steps[self._next].due / self._speed

    def advance(self) -> None:
        """Apply all steps that are due."""
        if self._advancing:
            return  # a step is already being applied
        self._advancing = True
        now = self._clock()
        while self._next < len(self._steps) and not (self._speed and self.due > now):
            self._next += 1
            self._apply(self._steps[self._next - 1])
            self._log.publish()
        self._advancing = False

    def _apply(self, step: _Step) -> None:
        match record := step.record:
            case None:
                self.fail(RecordingCut(self._path, self._cut))
            case rec.RunSession():
                if record.run == self.id:
                    self._session_id = record.session
            case rec.Happened():
                assert step.event is not None
                self._append(step.event)
            case rec.Settled():
                self._settle(record)
            case rec.RunEnded():
                failed = None if record.error is None else error_of(record.error)
                self._outcome.fail(failed or RecordingCut(self._path, "its run has no result"))
                self._log.end(failed and (self._outcome.error or failed))
            case rec.Between():
                assert step.event is not None
                self._late.append(step.event)
            case _:  # pragma: no cover - `_steps` picks no other
                raise AssertionError(record)

    def _append(self, event: ev.ThoughtEvent) -> None:
        self._log.append(replace(event, seq=self._log.seq + 1))

    def _settle(self, record: rec.Settled) -> None:
        if record.error is not None:
            self._outcome.fail(error_of(record.error))
            return
        value = record.value
        if self._output is None or self._begun.text:
            wrapped = self._begun.wrapped and not self._begun.text and RESULT_KEY in value
            self._outcome.set(value[RESULT_KEY] if wrapped else value, value)  # what the agent meant
            return
        try:
            self._outcome.set(self._output.accept(value, wrapped=self._begun.wrapped), value)
        except OutputInvalid as exc:
            from thinkwell._recording._table import MARK  # imports the search for secrets

            if MARK in str(value):
                why = f"a secret was taken out of its result, which is no {self._output.name} without it"
                self._outcome.fail(RecordingError(self._path, f"{why}; leave the type out"))
            else:
                self._outcome.fail(ResultInvalid(value, exc.errors, 1))

    def fail(self, error: Exception) -> None:
        """End the replay before the run's end, if it is not over."""
        if not self._log.ended:
            self._outcome.fail(error)
            cancelled = isinstance(error, ThoughtCancelled)
            self._log.add(ev.PhaseChanged, phase="cancelled" if cancelled else "failed")
            self._log.end(error)
            self._steps = self._steps[: self._next]


class _ReplayLog(RunLog):
    """The log of a replay: waiting for more means waiting until a step is due."""

    def __init__(
        self,
        run: _Replay[Any],
        header: rec.Header,
        include: frozenset[str],
        buffer: Buffer | None,
        partial: PartialResult,
    ) -> None:
        super().__init__(include, buffer, run.fail, agent=header.agent, cwd=header.cwd, partial=partial)
        self._run = run

    async def wait(self) -> None:
        """Wait for the next step."""
        with anyio.CancelScope(deadline=self._run.due):
            await super().wait()
        self._run.advance()

    def elapsed(self) -> float:
        """Seconds since the run began, at the speed of the replay."""
        return self._run.elapsed

    def view(self) -> RunView:
        """Return the current view of the run."""
        self._run.advance()
        return super().view()


class _ReplaySettlement(Settlement[T]):
    """The result of a replay."""

    def __init__(self, run: _Replay[Any]) -> None:
        super().__init__(run.id)
        self._run = run

    def done(self) -> bool:
        """Return whether there is a result or an error by now."""
        if not super().done():
            self._run.advance()
        return super().done()

    async def wait(self) -> None:
        """Wait until there is one."""
        while not self.done():
            with anyio.CancelScope(deadline=self._run.due):
                await super().wait()


def _no_time() -> float:
    return 0.0
