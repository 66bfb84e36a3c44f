"""A run of Letta: a part of one of our runs, up to a question for the client.

Letta ends a run that waits for approval, and continues in another one. Our run continues, so it is several of
Letta's, one after another. The messages of each are numbered from 1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from thinkwell import errors
from thinkwell.errors import AgentReported
from thinkwell.web._records import RunEnded, ShownError, read_entry
from thinkwell.web._run_ids import RUN_ID, run_digits
from thinkwell.web.letta._mapping import Mapper, date_of, waits
from thinkwell.web.letta._messages import ErrorMessage, Ping, StopReason, tag_of
from thinkwell.web.letta._texts import error_type

if TYPE_CHECKING:
    from typing import Self

    from thinkwell.events import QuestionAsked
    from thinkwell.journal import Entry, RunRecord
    from thinkwell.web.letta._messages import Frame, StopReasonType

_ID: Final = re.compile(rf"({RUN_ID})(?:-([1-9][0-9]{{0,15}}))?")

_REPORTED: Final = frozenset(
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, AgentReported)
)
"""The classes of errors that an agent reports of its model service."""

_STOPS: Final[dict[str, StopReasonType]] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens_exceeded",
    "max_turn_requests": "max_steps",
    "cancelled": "cancelled",
}
"""The stop reasons of turns (ACP, Stop Reasons), in Letta's terms."""


_INTERRUPTED: Final = ShownError(
    name="Interrupted",
    message="the server was closed while the run went on; send the message again, under another otid",
)
_FAILED: Final = ShownError(name="RunFailed", message="the run has failed; the server's log says more")


class Options(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The form of a run's answer. A resumed stream has the same form."""

    tokens: bool = False
    """Whether each piece of a message is sent at once."""
    background: bool = False
    """Whether it can be resumed."""
    pings: bool = False
    """Whether signs of life are sent, the first of them with number 1."""
    only: tuple[str, ...] | None = None
    """The requested types of messages; ``None``: all."""


class Segment(Struct, frozen=True, kw_only=True):
    """A part of a run."""

    run: str
    """The id of our run."""
    after: int = 0
    """Number of the entry after which it begins: the answered question."""

    @property
    def id(self) -> str:
        """Its id for Letta's clients."""
        return f"{self.run}-{self.after}" if self.after else self.run

    @property
    def short(self) -> str:
        """The run's id without its prefix."""
        return run_digits(self.run)

    @classmethod
    def of(cls, run_id: str) -> Self | None:
        """Return the part of an id; ``None``: it is not an id."""
        found = _ID.fullmatch(run_id)
        return None if found is None else cls(run=found[1], after=int(found[2] or 0))


class LastAnswer(Struct, frozen=True, kw_only=True):
    """The last decision in a conversation."""

    token: str
    """The identity of the request."""
    run: str
    """Id of the part of a run that it has begun."""
    options: Options

    @property
    def segment(self) -> Segment:
        """The part of a run that it has begun."""
        segment = Segment.of(self.run)
        assert segment is not None
        return segment


class SegmentReader:
    """Makes the frames of a part of a run from the run's entries.

    Args:
        segment: The part.
        record: The record of the run.
        options: The form of the answer.
        after: Number of the last frame that the client has.
        pings: Whether to send signs of life; by default as in the first request.
    """

    def __init__(
        self,
        segment: Segment,
        record: RunRecord,
        options: Options,
        *,
        after: int = 0,
        pings: bool | None = None,
    ) -> None:
        self.segment = segment
        self.record = record
        self.pings = options.pings if pings is None else pings
        """Whether signs of life are sent."""
        self.stop: StopReasonType | None = None
        """Why there are no more frames but the last ones; ``None``: there may be more."""
        self.error: ErrorMessage | None = None
        """The failure of the run."""
        self._options = options
        self._after = after
        self._seq = 0
        """Number of the last frame."""
        self._mapper = Mapper(segment.short, record.created, tokens=options.tokens)
        self._steps_before = 0

    def behind(self, record: RunRecord, options: Options) -> SegmentReader:
        """Return a reader of the run that was sent after this one, for the same client."""
        options = replace(options, tokens=self._options.tokens)
        return SegmentReader(Segment(run=record.id), record, options, pings=self.pings and options.pings)

    def ping(self, now: float) -> Ping:
        """Return a sign of life, with the number of the frame before it.

        Args:
            now: The time, in seconds since the epoch.
        """
        run = self.segment.id
        return Ping(id=f"ping-{run}-{self._seq}", date=date_of(now), run_id=run, seq_id=self._seq)

    def begin(self, now: float) -> list[Frame]:
        """Return the frames before all entries."""
        if not self._options.pings:
            return []
        self._seq = 1
        return [self.ping(now)] if self.pings and not self._after else []

    def take(self, entry: Entry) -> tuple[list[Frame], QuestionAsked | None]:
        """Take the next entry.

        Returns:
            Its frames; and its question, if the part may end with it.
        """
        event = read_entry(entry)
        messages = self._mapper.take(event)
        if isinstance(event, RunEnded):
            self._end(event)
        elif event.seq <= self.segment.after:
            self._steps_before = self._mapper.steps
            return [], None
        question = self._mapper.asked[event.id].question if waits(event) else None
        wanted = self._options.only
        frames: list[Frame] = []
        for message in messages:
            if wanted is None or tag_of(message) in wanted:
                self._seq += 1
                if self._seq > self._after:
                    frames.append(replace(message, run_id=self.segment.id, seq_id=self._seq))
        return frames, question

    def pause(self) -> None:
        """End with the last question."""
        self.stop = "requires_approval"

    def last(self) -> list[Frame]:
        """Return the frames after all entries; none if they were cut off."""
        if self.stop is None:
            return []
        steps = self._mapper.steps - self._steps_before
        return [StopReason(self.stop), self.error or self._mapper.usage(steps=steps, run_id=self.segment.id)]

    def _end(self, end: RunEnded) -> None:
        self.stop = stop_reason_of(end)
        if self.stop in ("error", "llm_api_error"):
            shown = _INTERRUPTED if end.status == "interrupted" else end.error or _FAILED
            self.error = ErrorMessage(
                error_type=error_type(shown),
                message=shown.message,
                detail=f"{shown.name}: {shown.message}",
                run_id=self.segment.id,
            )


def stop_reason_of(end: RunEnded) -> StopReasonType:
    """Return why a run has ended, in Letta's terms."""
    if end.status == "cancelled":
        return "cancelled"
    reason = _STOPS.get(end.stop_reason or "end_turn")
    if end.status == "completed":
        return reason or "end_turn"
    if end.status == "failed" and reason in ("max_tokens_exceeded", "max_steps"):
        return reason  # its text was sent
    return "llm_api_error" if end.error is not None and end.error.name in _REPORTED else "error"
