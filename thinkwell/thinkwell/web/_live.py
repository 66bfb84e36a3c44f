"""A run of this process, from its start until the journal has all of it."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

import anyio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from thinkwell import Refused
from thinkwell import events as ev
from thinkwell._core.exit import Options
from thinkwell._display.text import line
from thinkwell.channels import RouterClosed
from thinkwell.errors import (
    AnswerInvalid,
    QuestionNotOpen,
    SteeringUnsupported,
    ThinkwellError,
    ThoughtCancelled,
)
from thinkwell.journal import JournalError, JournalUnwritable
from thinkwell.web._calls import Replied
from thinkwell.web._records import Reduced, RunEnded
from thinkwell.web._refusals import AnswerRefused, MessageNotTaken, QuestionClosed, ServerUnavailable
from thinkwell.web._requests import TextPart
from thinkwell.web._shown_errors import error_shown
from thinkwell.web._threads import FORGOTTEN, Place
from thinkwell.web._waiting import keep_waiting
from thinkwell.web._watching import PIECE, Tail, in_pieces
from thinkwell.web._wording import answer_words, closed_words

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from thinkwell import Session, ThinkBuilder, ThoughtStream
    from thinkwell._conversations.conversation import Turn
    from thinkwell._core.exit import EventReader
    from thinkwell.events import JsonValue
    from thinkwell.journal import Journal, RunEnd, RunRecord
    from thinkwell.tools import Tool
    from thinkwell.web._calls import Asked
    from thinkwell.web._ends import Ends
    from thinkwell.web._records import EntryWriter
    from thinkwell.web._requests import CheckedRun, ImagePart, ServedAgent
    from thinkwell.web._threads import Threads

T = TypeVar("T")

STEER_TIMEOUT: Final = 8.0
"""Seconds that an agent has to accept a message: fewer than the run's process has to answer."""

OVER: Final = "the run has ended; start another one"

UNCLEAR: Final = (
    "it is not known whether the agent has taken it; before you send it again, see whether a `steered` event "
    "of the run has it"
)

LOGGED: Final = 2_000
"""Characters of an error in the log."""

logger = logging.getLogger("thinkwell")


class LiveRun:
    """A run of this process.

    Args:
        record: Its record in the journal.
        checked: The request.
        tools: Tools for the agent.
        writer: Creates the entries.
    """

    def __init__(
        self, record: RunRecord, checked: CheckedRun, tools: Sequence[Tool], writer: EntryWriter
    ) -> None:
        self.record = record
        self.checked = checked
        self.place = Place(
            agent=checked.agent,
            folder=checked.folder,
            caller=record.caller,
            name=record.thread or record.id,
            single=record.thread is None,
        )
        self.tail = Tail()
        self.is_kept = False
        """Whether the journal has it."""
        self.turn: Turn | None = None
        self._watchers = 0
        self.watched = anyio.Event()
        """Set while it has watchers."""
        self._unwatched = anyio.Event()
        """Set while it has none."""
        self._waiting: set[str] = set()
        """Ids of open questions: the user may have left, and come back with an answer."""
        self._waits = False
        """Whether the journal says that it waits for an answer."""
        self._tools = tuple(tools)
        self._reader: EventReader | None = None
        self._began = anyio.current_time()
        self._offset = 0.0
        """Seconds that it had waited when the agent's run began."""
        self._session_told = False
        """Whether the opening of its session is the last entry of its log."""
        self.reduced = Reduced(record)
        self._writer = writer

    @property
    def _stream(self) -> ThoughtStream[object] | None:
        """The agent's run; ``None``: it has not begun, or it ended at once because its session was lost."""
        return None if self.turn is None else self.turn.stream

    # Requests

    async def do(self, asked: Asked) -> None:
        """Do what a caller requests.

        Raises:
            QuestionClosed: The question is not open.
            AnswerRefused: The answer does not fit the question.
            MessageNotTaken: The agent does not take the message.
            ServerUnavailable: The agent does not say whether it takes the message.
        """
        if asked.what == "cancel":
            self.cancel()
        elif asked.what == "watched":
            self.watched.set()
        elif asked.what == "steer":
            await self._steer(asked.text)
        elif (stream := self._stream) is None:
            raise QuestionClosed("the run has asked nothing yet")
        else:
            try:
                stream.answer(asked.question, asked.answer, by=asked.by)
            except QuestionNotOpen as exc:
                raise QuestionClosed(closed_words(exc)) from None
            except AnswerInvalid as exc:
                raise AnswerRefused(answer_words(exc)) from None

    async def _steer(self, text: str) -> None:
        stream = self._stream
        if stream is None or not stream.view.turns:
            raise MessageNotTaken("the agent has not begun with the run; try again when it has")
        try:
            with anyio.fail_after(STEER_TIMEOUT):
                came_to = await stream.steer(text)
        except TimeoutError:
            raise ServerUnavailable(UNCLEAR) from None
        except SteeringUnsupported:
            raise MessageNotTaken(
                "the agent takes no message while it works; send it when the run is over"
            ) from None
        except ThinkwellError as exc:  # it has ended, or the agent has
            raise MessageNotTaken(OVER) from exc
        if isinstance(came_to, Refused):
            why = f"the agent has not taken it: {line(came_to.reason, LOGGED)}"
            raise ServerUnavailable(UNCLEAR) if came_to.unclear else MessageNotTaken(why)

    def cancel(self) -> None:
        """Cancel it."""
        assert self.turn is not None
        self.turn.stop()

    @contextmanager
    def watch(self) -> Generator[Tail]:
        """Count a watcher during a block, and return the end of the log."""
        self._watchers += 1
        self.watched.set()
        try:
            yield self.tail
        finally:
            self._watchers -= 1
            if not self._watchers:
                self._unwatched.set()

    async def cancel_unwatched(self, patience: float) -> None:
        """Cancel it after some time without watchers.  Args: patience: Seconds."""
        while True:
            with anyio.move_on_after(patience) as waiting:
                await self.watched.wait()
            if waiting.cancelled_caught:
                logger.info("Run %s is cancelled: it was not watched for %g s", self.record.id, patience)
                self.cancel()
                return
            while self._watchers or self._waiting:  # a question has a timeout of its own
                self._unwatched = anyio.Event()
                await self._unwatched.wait()
            self.watched = anyio.Event()

    # The run

    async def main(
        self,
        served: ServedAgent,
        journal: Journal,
        threads: Threads,
        ends: Ends,
        *,
        is_leaving: Callable[[], bool],
    ) -> None:
        """Run it, and write all of it to the journal.

        Args:
            served: The agent.
            journal: Stores it.
            threads: The conversations.
            ends: Keeps its end if the journal has no room.
            is_leaving: Returns whether the server is closing.

        Raises:
            JournalError: It cannot be stored. It was stopped.
        """
        assert self.turn is not None
        error: Exception | None = None
        kept, stopped = True, False
        try:
            start = partial(self._start, served, threads)
            await self.turn.begin(self._prompt, start, partial(self._tell, journal))
            await self._copy(journal)
        except JournalUnwritable as exc:
            error = exc
        except JournalError:
            kept = False
            raise
        except anyio.get_cancelled_exc_class():
            stopped = True  # the server's task was cancelled
            raise
        except Exception as exc:  # also of the function that opens the agent
            error = exc
        finally:
            with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
                await self.turn.end()
                if kept:
                    leaving = stopped or is_leaving()
                    await self._finish(journal, ends, served, error, leaving=leaving)

    async def _tell(self, journal: Journal, phase: ev.PhaseChanged) -> None:
        """Log what it waits for."""
        self._session_told = phase.phase == "starting" and not phase.detail
        self._offset = 0.0
        at = anyio.current_time() - self._began
        await self._store(journal, [replace(phase, seq=self.tail.last + 1, at=at)])

    async def _prompt(self) -> str:
        await checkpoint()
        return self.checked.request.text

    def _start(
        self, served: ServedAgent, threads: Threads, session: Session, text: str
    ) -> ThoughtStream[object]:
        prompt, output = self.checked.request.prompt, self.checked.output
        parts = (TextPart(text=text),) if isinstance(prompt, str) else prompt
        builder = self._with(session.think() if output is None else session.think(output), parts)
        options = Options(
            include=ev.ALL_TYPES,
            timeout=self.checked.timeout,
            idle_timeout=served.idle_timeout,
            budget=None if served.budget is None else served.budget(),
            model=self.checked.model,
            retry=served.retry,
            run_id=self.record.id,  # so that the log of the program has one name for it
        )
        stream = builder._starter.start(builder._complete_spec, options)
        log = stream._log
        # All its events so far: how the agent was launched, if this run has waited for
        # that, and `starting`.
        told = log.seq if self._session_told else log.seq - 1
        for event in tuple(log.events):
            if isinstance(event, ev.TryFailed | ev.Notice):  # another agent did not start
                log.adopt(event, log.now())
        if threads.was_forgotten(self.place):
            log.add(ev.Notice, severity="warning", title=FORGOTTEN)
        self._reader = log.reader(after=told)
        self._offset = anyio.current_time() - self._began
        return stream

    def _with(self, builder: ThinkBuilder[T], parts: Sequence[TextPart | ImagePart]) -> ThinkBuilder[T]:
        for part in parts:
            builder = builder.text(part.text) if isinstance(part, TextPart) else builder.image(part.data)
        for tool in self._tools:
            builder = builder.tool(tool)
        return builder

    async def _copy(self, journal: Journal) -> None:
        assert self._reader is not None
        while events := await self._reader.batch():
            await self._store(journal, events)

    async def _store(self, journal: Journal, events: Sequence[ev.ThoughtEvent]) -> None:
        with anyio.CancelScope(shield=True):  # otherwise it is unknown what the journal has
            entries = await self._writer.events(events, self.tail.last + 1, self._offset)
            await journal.append(self.record.id, entries)
            for event in events:
                self._note(event)
            try:
                await self._tell_waiting(journal)  # before a client that has seen a question looks for it
            finally:
                for piece in in_pieces(entries, lambda entry: len(entry.data), PIECE):
                    self.tail.push(piece)

    def _note(self, event: ev.ThoughtEvent) -> None:
        """Note whether it waits for an answer."""
        if isinstance(event, ev.QuestionAsked) and event.timeout is not None:
            self._waiting.add(event.id)
            self.watched.set()
        elif isinstance(event, ev.QuestionAnswered):
            self._waiting.discard(event.id)
            self._unwatched.set()

    async def _tell_waiting(self, journal: Journal) -> None:
        waits = bool(self._waiting)
        if waits != self._waits:
            await keep_waiting(journal, self.record.id, waits=waits)
            self._waits = waits

    async def _end(
        self, journal: Journal, served: ServedAgent, error: Exception | None, *, leaving: bool
    ) -> None:
        at, stop_reason, result = anyio.current_time() - self._began, None, None
        stream = self._stream
        if stream is not None and self._reader is not None:
            await self._copy(journal)  # the rest, if it was stopped from outside
            at, stop_reason = self._offset + stream.elapsed, stream.view.stop_reason
            error = stream.result.exception()
            if error is None:
                result = cast("JsonValue", await stream.result)  # JSON or a text, as requested
        status = _status(error, leaving=leaving)
        if status == "interrupted":  # as if the server was killed: the status says all
            error = stop_reason = None
        if error is not None and status == "failed":
            about = "Run %s of agent %s failed: %s: %s"
            notes: list[str] = getattr(error, "__notes__", [])
            parts = "\n".join([str(error), *notes]).splitlines()
            said = line(" | ".join(filter(str.strip, parts)), LOGGED)  # the text may come from an agent
            logger.warning(about, self.record.id, self.record.agent, type(error).__name__, said)
        if stream is None and (status == "failed" or status == "cancelled"):
            await self._tell(journal, ev.PhaseChanged(phase=status))
        ended = RunEnded(
            seq=self.tail.last + 1,
            at=at,
            status=status,
            stop_reason=stop_reason,
            result=result,
            error=None if error is None else error_shown(error, stderr=served.show_stderr),
        )
        entry = await self._writer.end(ended)
        self._waiting.clear()
        await self._tell_waiting(journal)
        await journal.finish(self.record.id, entry, status, time.time())
        self.tail.push([entry])

    async def _finish(
        self, journal: Journal, ends: Ends, served: ServedAgent, error: Exception | None, *, leaving: bool
    ) -> None:
        """End it, even if there is no room for more entries."""
        try:
            if isinstance(error, JournalUnwritable):
                raise error
            await self._end(journal, served, error, leaving=leaving)
        except JournalUnwritable as exc:
            logger.error("Run %s goes no further, as its log cannot be stored: %s", self.record.id, exc)
            at = anyio.current_time() - self._began
            end = RunEnded(seq=self.tail.last + 1, at=at, status="failed", error=error_shown(exc))
            await ends.end(self.record, end, self.tail)


async def replied(asked: Asked, live: LiveRun | None) -> Replied:
    """Perform a request, and return the outcome.

    Args:
        asked: The request.
        live: The run; ``None``: it has ended.
    """
    try:
        if live is not None:
            await live.do(asked)
        elif asked.what == "answer":
            raise QuestionClosed("the run has ended; nothing of it is open")
        elif asked.what == "steer":
            raise MessageNotTaken(OVER)
    except (AnswerRefused, MessageNotTaken, QuestionClosed, ServerUnavailable) as exc:
        return Replied.by(exc)
    return Replied()


def _status(error: Exception | None, *, leaving: bool) -> RunEnd:
    if error is None:
        return "completed"
    if isinstance(error, RouterClosed) or (leaving and isinstance(error, ThoughtCancelled)):
        return "interrupted"
    return "cancelled" if isinstance(error, ThoughtCancelled) else "failed"
