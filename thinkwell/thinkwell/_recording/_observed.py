"""Observers of runs and sessions for a recording, and of the wire."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import anyio
import msgspec

from thinkwell._core.log.observers import RunObserver, SessionObserver
from thinkwell._recording import _records as rec
from thinkwell._recording._pieces import taken_out, told
from thinkwell_acp import ConnectionBroken, StdioTransport
from thinkwell_acp._framing import LineSplitter
from thinkwell_acp.errors import FrameTooLong

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from thinkwell import events as ev
    from thinkwell._recording._writer import RecordingWriter
    from thinkwell_acp import Transport
    from thinkwell_acp.mcp import ToolOutput

P = ParamSpec("P")
S = TypeVar("S", bound="RecordedRun | RecordedSession")


def _guarded(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self.recorder.writes:
            with self.recorder.guarded():
                method(self, *args, **kwargs)

    return guarded


class RecordedRun(RunObserver):
    def __init__(self, recorder: RecordingWriter, run: str) -> None:
        self.recorder = recorder
        self._run = run

    @_guarded
    def event(self, event: ev.ThoughtEvent, /) -> None:
        recorder = self.recorder
        fields = msgspec.to_builtins(event)
        place = told(event, fields)
        text = taken_out(fields, place)
        happened = rec.Happened(at=recorder.now(), run=self._run, event=recorder.clean(fields))
        recorder.write(happened, ("run", self._run), event.type, text, place)

    @_guarded
    def session(self, session_id: str, /) -> None:
        recorder = self.recorder
        session = recorder.id(session_id)
        recorder.write(rec.RunSession(at=recorder.now(), run=self._run, session=session))

    @_guarded
    def settled(self, raw: ev.JsonValue, error: Exception | None, /) -> None:
        recorder = self.recorder
        failure = None if error is None else recorder.failure(error)
        recorder.write(
            rec.Settled(at=recorder.now(), run=self._run, value=recorder.clean(raw), error=failure)
        )

    @_guarded
    def ended(self, error: Exception | None, _cut: str | None, /) -> None:
        recorder = self.recorder
        failure = None if error is None else recorder.failure(error)
        recorder.write(rec.RunEnded(at=recorder.now(), run=self._run, error=failure), ("run", self._run))


class RecordedSession(SessionObserver):
    def __init__(self, recorder: RecordingWriter) -> None:
        self.recorder = recorder
        self._session: str | None = None

    def opened(self, session_id: str, /) -> None:
        self._session = self.recorder.id(session_id)

    @_guarded
    def event(self, event: ev.ThoughtEvent, /) -> None:
        recorder = self.recorder
        fields = msgspec.to_builtins(event)
        place = told(event, fields)
        text = taken_out(fields, place)
        between = rec.Between(at=recorder.now(), session=self._session, event=recorder.clean(fields))
        recorder.write(between, ("between", self._session), event.type, text, place)

    def called(self, name: str, arguments: Mapping[str, ev.JsonValue], /) -> Callable[[ToolOutput], None]:
        call = self.recorder.next_call()
        self._called(call, name, arguments)
        return functools.partial(self._answered, call)

    @_guarded
    def _called(self, call: int, name: str, arguments: Mapping[str, ev.JsonValue]) -> None:
        recorder = self.recorder
        recorder.write(
            rec.ToolCalled(
                at=recorder.now(),
                session=self._session,
                call=call,
                name=recorder.id(name),
                arguments=recorder.clean(dict(arguments)),
            )
        )

    @_guarded
    def _answered(self, call: int, output: ToolOutput) -> None:
        recorder = self.recorder
        recorder.write(
            rec.ToolAnswered(
                at=recorder.now(),
                call=call,
                content=recorder.clean(output.wire()["content"]),
                is_error=output.is_error,
            )
        )


class Tap:
    """A transport of which everything is recorded."""

    def __init__(self, pipe: Transport, recorder: RecordingWriter, max_line: int) -> None:
        self._pipe = pipe
        self._recorder = recorder
        self._received, self._sent = LineSplitter(max_line), LineSplitter(max_line)
        self._over = False

    async def receive(self) -> bytes:
        try:
            data = await self._pipe.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, ConnectionBroken):
            with self._recorder.guarded():
                self._ended()
            raise
        self._note(self._received, data, rec.Received)
        return data

    def _ended(self) -> None:
        if not self._over:
            self._over = True
            rest = self._received.finish()
            if rest.strip():
                self._recorder.message(rest, rec.Received)
            pipe = self._pipe
            self._recorder.gone(pipe.exit_code if isinstance(pipe, StdioTransport) else None)

    async def send(self, item: bytes, /) -> None:
        self._note(self._sent, item, rec.Sent)
        await self._pipe.send(item)

    async def aclose(self) -> None:
        await self._pipe.aclose()

    def _note(self, splitter: LineSplitter, data: bytes, kind: type[rec.Sent | rec.Received]) -> None:
        try:
            lines = splitter.feed(data)
        except FrameTooLong:
            return  # the connection ends with the same error
        with self._recorder.guarded():
            for line in lines:
                if line.strip():
                    self._recorder.message(line, kind)
