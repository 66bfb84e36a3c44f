"""Records an agent: observes its sessions and runs, and its connection."""

from __future__ import annotations

import functools
import logging
import os
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import anyio

from thinkwell._core.log.observers import Observer, RunObserver, SessionObserver
from thinkwell._core.log.run_log import running_clock
from thinkwell._recording import _records as rec
from thinkwell._recording._redact import Redactor
from thinkwell._recording._writer import RecordingWriter
from thinkwell.agents._choosing import TRACE_VARIABLE
from thinkwell_acp import ConnectionBroken, StdioTransport
from thinkwell_acp._framing import MAX_LINE, LineSplitter
from thinkwell_acp.errors import FrameTooLong

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from thinkwell import events as ev
    from thinkwell._core.log.observers import RunFacts
    from thinkwell_acp import Transport
    from thinkwell_acp.mcp import ToolOutput

P = ParamSpec("P")
S = TypeVar("S", bound="RecordedRun | RecordedSession")

logger = logging.getLogger("thinkwell")

_trace_numbers = count(1)


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
        at, run = self.recorder.now(), self._run
        self.recorder.event(event, ("run", run), lambda fields: rec.Happened(at=at, run=run, event=fields))

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
        at, session = self.recorder.now(), self._session
        self.recorder.event(
            event, ("between", session), lambda fields: rec.Between(at=at, session=session, event=fields)
        )

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


class Recorder(RecordingWriter, Observer):
    """Records one agent, while its block is entered."""

    _pipe: Transport | None = None
    _whole: frozenset[str] = frozenset()
    """The runs whose tries are recorded as one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Write the last line."""
        stderr = self._pipe.stderr_tail if isinstance(self._pipe, StdioTransport) else ""
        self.end(stderr)

    def tapped(self, pipe: Transport, max_line: int = MAX_LINE) -> Transport:
        """Return the connection, with the recorder attached; its lines have that limit."""
        self._pipe = pipe
        return Tap(pipe, self, max_line)

    def run(self, facts: RunFacts, /) -> RunObserver | None:
        """Record a run, unless it is part of one that is recorded."""
        return None if facts.id in self._whole else self._run(facts)

    def whole(self, facts: RunFacts, /) -> RunObserver:
        """Record all tries of a run as one."""
        self._whole |= {facts.id}
        return self._run(facts)

    def _run(self, facts: RunFacts) -> RunObserver:
        include = tuple(sorted(facts.include))
        with self.guarded():
            self.write(
                rec.RunBegun(
                    at=self.now(),
                    run=facts.name,
                    include=include,
                    text=facts.text,
                    wrapped=facts.wrapped,
                    own_fields=facts.own_fields,
                )
            )
        return RecordedRun(self, facts.name)

    def session(self, how: str, /) -> SessionObserver:
        """Record a session."""
        return RecordedSession(self)


def _trace_path(folder: str, agent: str) -> Path:
    """Return a new file's path in the folder for traces."""
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in agent[:60])
    return Path(folder, f"{time}-{name}-{os.getpid()}-{next(_trace_numbers)}.ndjson")


def _traced(folder: str, agent: str, redactor: Redactor) -> Recorder:
    """Begin a recording in a new file of the folder for traces, which is created if missing."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        try:
            return Recorder(_trace_path(folder, redactor.text(agent)), redactor, running_clock(), new=True)
        except FileExistsError:
            continue  # it belongs to another program with this number that shares the folder


def recorder_of(
    record: str | os.PathLike[str] | None,
    *,
    agent: str,
    command: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
) -> Recorder | None:
    """Begin a recording.

    Args:
        record: The file. ``None``: a new one in the folder that `TRACE_VARIABLE` names. If that fails, there
            is a warning and no recording.
        agent: The agent's name.
        command: The started command.
        cwd: The folder in which the agent works.
        environment: The agent's environment, whose secrets are removed.

    Raises:
        OSError: The file cannot be written.
    """
    redactor = Redactor(environment)
    if record is not None:
        recorder = Recorder(Path(record), redactor, running_clock())
    else:
        folder = os.environ[TRACE_VARIABLE]
        try:
            recorder = _traced(folder, agent, redactor)
        except OSError as exc:
            logger.warning("%s=%s: nothing is recorded: %s", TRACE_VARIABLE, folder, exc)
            return None
    recorder.begin(agent, command, cwd)
    return recorder
