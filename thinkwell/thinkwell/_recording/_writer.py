"""Writes a recording: the wire, and the outcomes of its runs. Secrets are never written."""

from __future__ import annotations

import errno
import logging
import math
import os
import stat
import sys
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import anyio
import msgspec
from msgspec.structs import replace

from thinkwell import _version
from thinkwell._core.schema.json_schema import is_object
from thinkwell._lines._names import RESPOND_METHOD, VALUE_META
from thinkwell._recording import _records as rec
from thinkwell._recording._failures import failure_of
from thinkwell._recording._holding import Holder
from thinkwell._recording._pieces import SPEECH, put_in, spoken, taken_out, told
from thinkwell_acp._forks import let_go_in_forks
from thinkwell_acp._jsonrpc import repair

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from thinkwell import events as ev
    from thinkwell._recording._holding import Released
    from thinkwell._recording._pieces import Place
    from thinkwell._recording._redact import Redactor

logger = logging.getLogger("thinkwell")

SILENCE: Final = 0.5
"""Seconds after which a paused text is written, if it cannot end inside a secret."""

_Owner: TypeAlias = tuple[str, str | None]

_NOISE: Final[_Owner] = ("noise", None)


class _Waiting(NamedTuple):
    """A record to be written."""

    record: rec.Record
    place: Place | None
    """The place of its piece of text."""


class RecordingWriter:
    """Writes a recording. After a disk error it stops with a warning; the runs continue.

    Args:
        path: The file; an existing one is overwritten.
        redactor: Removes the secrets.
        clock: Returns the time in seconds.
        new: Whether the file must not exist.

    Raises:
        OSError: The file cannot be written, or is being recorded to.
    """

    def __init__(
        self, path: Path, redactor: Redactor, clock: Callable[[], float], *, new: bool = False
    ) -> None:
        self.path = path
        self._redactor = redactor
        self._holder: Holder[_Waiting] = Holder(redactor)
        self._forms: dict[str | int, ev.JsonValue] = {}
        """The schemas of open forms, by the ids of their questions."""
        self._written = 0
        self._holding = anyio.Event()
        self._held_since = math.inf
        self._speaking: dict[_Owner, set[str | None]] = {}
        """The kinds of unfinished text of a session or a run."""
        self._clock = clock
        self._began = clock()
        self._calls = count(1)
        self._file: int | None = _open(path, new=new)
        let_go_in_forks(self)

    def forked(self) -> Sequence[int]:  # pragma: no cover - in a fork, into which no tool looks
        """Write no more: the file belongs to another process."""
        file, self._file = self._file, None
        return () if file is None else (file,)

    def end(self, stderr: str) -> None:
        """Write the last line.

        Args:
            stderr: The end of the agent's standard error.
        """
        with self.guarded():
            self.write(rec.End(at=self.now(), stderr=self._redactor.text(stderr)))
            self._put(self._holder.flush())
        self._close()

    @property
    def writes(self) -> bool:
        """Whether it is still writing: not after an error."""
        return self._file is not None

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # some file systems report only now that they are full
                os.close(file)

    @contextmanager
    def guarded(self) -> Generator[None]:
        """Catch errors of the recording: they end the recording, and nothing else."""
        try:
            yield
        except Exception as exc:
            logger.warning("The recording %s ends here, the runs go on: %s", self.path, exc)
            logger.debug("It ends because of this", exc_info=True)
            self._close()

    def begin(self, agent: str, command: Sequence[str], cwd: str) -> None:
        """Write the first line."""
        header = rec.Header(
            at=0,
            version=rec.VERSION,
            thinkwell=_version.VERSION,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            agent=self._redactor.text(_printable(agent)),
            command=tuple(self.clean([_printable(word) for word in command])),
            cwd=self._redactor.text(_printable(cwd)),
        )
        with self.guarded():
            self.write(header)

    async def attend(self) -> None:
        """Write waiting records after a pause: there may be no further one."""
        while True:
            await self._holding.wait()
            self._holding = anyio.Event()
            written = -1
            while written != self._written:
                written = self._written
                await anyio.sleep(SILENCE)
            with self.guarded():
                self._held_since = math.inf
                self._put(self._holder.settle())

    def now(self) -> float:
        """Seconds since the recording began."""
        return self._clock() - self._began

    def id(self, session: str) -> str:
        """Return the recorded name of a session, or a tool."""
        return self._redactor.text(session)

    def clean(self, value: ev.JsonValue) -> ev.JsonValue:
        """Return a value without secrets."""
        return self._redactor.redact(value)

    def write(
        self,
        record: rec.Record,
        owner: _Owner | None = None,
        kind: str | None = None,
        text: str | None = None,
        place: Place | None = None,
        size: int = 0,
    ) -> None:
        """Write a record, in order.

        Args:
            record: The record, without secrets.
            owner: The session or the run of it. Its unfinished text does not wait for more unless this is a
                piece of the same kind, or of an equivalent one.
            kind: The kind of text that this is a piece of: a secret may be cut in pieces.
            text: The piece, which is not yet in the record.
            place: Its place.
            size: Its size in bytes, if known: the waiting records are bounded.
        """
        released: list[Released[_Waiting]] = []
        if owner is not None:
            same = set[str | None]() if text is None else (SPEECH if kind in SPEECH else {kind})
            speaking = self._speaking.pop(owner, set[str | None]())
            for before in speaking - same:
                released += self._holder.pause((owner, before))
            if text is not None:
                self._speaking[owner] = speaking & same | {kind}
        self._put(released + self._holder.add(_Waiting(record, place), (owner, kind), text, size))
        self._written += 1
        if not self._holder.holds:
            self._held_since = math.inf
        elif self._held_since == math.inf:
            self._held_since = self._clock()
            self._holding.set()
        elif self._clock() - self._held_since > SILENCE:  # records of others do not wait for it
            self._held_since = math.inf
            self._put(self._holder.settle())

    def event(
        self, event: ev.ThoughtEvent, owner: _Owner, record: Callable[[ev.JsonValue], rec.Record]
    ) -> None:
        """Write an event of a run or a session, in the record that is made of its fields."""
        fields = msgspec.to_builtins(event)
        place = told(event, fields)
        text = taken_out(fields, place)
        self.write(record(self.clean(fields)), owner, event.type, text, place and ("event", *place))

    def _put(self, released: Sequence[Released[_Waiting]]) -> None:
        if self._file is None or not released:
            return
        data = b"".join([_line(waiting, text) for waiting, text in released])
        while data:
            data = data[os.write(self._file, data) :]

    def message(self, line: bytes, kind: type[rec.Sent | rec.Received]) -> None:
        """Write a message of the wire."""
        if self._file is None:
            return
        try:
            message = _decoded(line)
        except (ValueError, RecursionError):
            noise = line.decode(errors="backslashreplace") + "\n"
            self.write(rec.Noise(at=self.now(), text=""), _NOISE, "noise", noise, ("text",), len(line))
            return
        self._blank_form(message, kind)
        session, update, place = spoken(message)
        text = taken_out(message, place)
        owner = None if session is None else ("session", session)
        record = kind(at=self.now(), message=self.clean(message))
        self.write(record, owner, update, text, place and ("message", *place), len(line))

    def _blank_form(self, message: ev.JsonValue, kind: type[rec.Sent | rec.Received]) -> None:
        """Remove the answers to a form: any of them may be a secret."""
        if kind is rec.Received:
            match message:
                case {
                    "method": "elicitation/create",
                    "id": str() | int() as id_,
                    "params": {"requestedSchema": schema},
                }:
                    self._forms[id_] = schema
                case _:
                    pass
            return
        match message:
            case {"method": str(method), "params": params} if method == RESPOND_METHOD:
                self._blank(params, "value", None)
            case {"id": str() | int() as id_, **answer} if "method" not in answer:
                result = answer.get("result")
                if id_ in self._forms:
                    self._blank(result, "content", self._forms.pop(id_))
                if is_object(result):
                    self._blank(result.get("_meta"), VALUE_META, None)
            case _:
                pass

    def _blank(self, answer: ev.JsonValue, name: str, schema: ev.JsonValue) -> None:
        if is_object(answer) and name in answer:
            answer[name] = self._redactor.answers(answer[name], schema)

    def gone(self, exit_code: int | None) -> None:
        """Write that the agent has ended by itself."""
        self.write(rec.Gone(at=self.now(), exit_code=exit_code))

    def failure(self, error: Exception) -> rec.Failure:
        """Return an error as JSON, without secrets."""
        plain = failure_of(error)
        return replace(
            plain,
            message=self._redactor.text(plain.message),
            fields=self.clean(plain.fields),
            notes=tuple(map(self._redactor.text, plain.notes)),
        )

    def next_call(self) -> int:
        """Return a number for a tool call."""
        return next(self._calls)


def _open(path: Path, *, new: bool) -> int:
    """Open a file for writing, for its owner only and exclusively."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else 0)
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)  # else a pipe without a reader blocks
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            _lock(file, path)
            os.ftruncate(file, 0)
        else:
            os.set_blocking(file, True)
    except BaseException:
        os.close(file)
        raise
    return file


def _lock(file: int, path: Path) -> None:
    if sys.platform != "win32":  # pragma: no branch - the tests run on POSIX
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(errno.EBUSY, "another agent is being recorded in this file", str(path)) from None
        os.fchmod(file, 0o600)


def _decoded(line: bytes) -> ev.JsonValue:
    """Return a message as readers see it.

    Raises:
        ValueError, RecursionError: It is not a message.
    """
    try:
        return msgspec.json.decode(line)
    except ValueError:
        repaired = repair(line)
        if repaired is None:
            raise
        return msgspec.json.decode(repaired)


def _printable(text: str) -> str:
    """Return a text that can be written, with lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _line(waiting: _Waiting, text: str | None) -> bytes:
    """Return a line of the file: the record with its piece of text in its place."""
    record, place = waiting
    if text is None or place is None:
        return rec.encode_record(record)
    fields = msgspec.to_builtins(record)
    put_in(fields, place, text.rstrip("\n") if isinstance(record, rec.Noise) else text)
    return rec.encode_record(fields)
