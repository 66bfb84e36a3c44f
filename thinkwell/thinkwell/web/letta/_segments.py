"""A run of Letta's: a part of one of ours, up to where the client has to say something.

Letta ends a run where it waits for approval, and what comes after the answer is another one. Ours goes on, so
it is several of theirs, one behind the other. Each is numbered from 1.
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
from thinkwell.web.letta._messages import ErrorMessage, Ping, StopReason
from thinkwell.web.letta._texts import error_type

if TYPE_CHECKING:
    from typing import Self

    from thinkwell.events import QuestionAsked
    from thinkwell.journal import Entry, RunRecord
    from thinkwell.web.letta._messages import Frame, Message, StopReasonType, UsageStatistics

_ID: Final = re.compile(rf"({RUN_ID})(?:-([1-9][0-9]{{0,15}}))?")

_REPORTED: Final = frozenset(
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, AgentReported)
)
"""The classes of what an agent reports of its model service."""

_STOPS: Final[dict[str, StopReasonType]] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens_exceeded",
    "max_turn_requests": "max_steps",
    "cancelled": "cancelled",
}
"""Why turns end (ACP, Stop Reasons), in Letta's words."""


_INTERRUPTED: Final = ShownError(
    name="Interrupted",
    message="the server was closed while the run went on; send the message again, under another otid",
)
_FAILED: Final = ShownError(name="RunFailed", message="the run has failed; the server's log says more")


class Options(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a run is to be told. What takes it up again later is told in the same way."""

    tokens: bool = False
    """Whether each piece of a message is sent as it comes."""
    background: bool = False
    """Whether it can be taken up again."""
    pings: bool = False
    """Whether signs of life are wanted, the first of them with number 1."""
    only: tuple[str, ...] | None = None
    """The types of messages that are wanted; ``None``: all."""


class Segment(Struct, frozen=True, kw_only=True):
    """Which part of which run."""

    run: str
    """The id of our run."""
    after: int = 0
    """Number of the entry behind which it begins: the question that was answered."""

    @property
    def id(self) -> str:
        """What Letta's clients call it."""
        return f"{self.run}-{self.after}" if self.after else self.run

    @property
    def short(self) -> str:
        """The run's id without its prefix."""
        return run_digits(self.run)

    @classmethod
    def of(cls, run_id: str) -> Self | None:
        """Return the part that an id means; ``None``: it is no id."""
        found = _ID.fullmatch(run_id)
        return None if found is None else cls(run=found[1], after=int(found[2] or 0))


class SegmentReader:
    """Makes the frames of a part of a run of the run's entries.

    Args:
        segment: Which part.
        record: What is known of the run.
        options: How it is told.
    """

    def __init__(self, segment: Segment, record: RunRecord, options: Options) -> None:
        self.segment = segment
        self.over = False
        """Whether the last frame was given."""
        self.end: RunEnded | None = None
        """The end of the run, where that was the last."""
        self.stop: StopReason | None = None
        self.usage: UsageStatistics | None = None
        self.error: ErrorMessage | None = None
        self.seq = 0
        """Number of the last frame."""
        self._options = options
        self._mapper = Mapper(segment.short, record.created, tokens=options.tokens)
        self._steps_before = 0

    def behind(self, record: RunRecord, options: Options) -> SegmentReader:
        """Return what reads the run that was sent behind this one, for the same client."""
        return SegmentReader(Segment(run=record.id), record, replace(options, tokens=self._options.tokens))

    def ping(self, now: float) -> Ping:
        """Return a sign of life. It has the number of what was sent before it.

        Args:
            now: The time, in seconds since the epoch.
        """
        run = self.segment.id
        return Ping(id=f"ping-{run}-{self.seq}", date=date_of(now), run_id=run, seq_id=self.seq)

    def begin(self, now: float) -> list[Ping]:
        """Return what comes before all entries."""
        if not self._options.pings:
            return []
        self.seq = 1
        return [self.ping(now)]

    def take(self, entry: Entry) -> tuple[list[Frame], QuestionAsked | None]:
        """Take the next entry.

        Returns:
            Its frames; and the question that it is, where the part may end with it.
        """
        event = read_entry(entry)
        if isinstance(event, RunEnded):
            return [*self._numbered(self._mapper.flush()), *self._finish(event)], None
        messages = self._mapper.take(event)
        if event.seq <= self.segment.after:
            self._steps_before = self._mapper.steps
            return [], None
        question = self._mapper.asked[event.id].question if waits(event) else None
        return self._numbered(messages), question

    def pause(self) -> list[Frame]:
        """End with the last question."""
        return self._stop("requires_approval")

    def _numbered(self, messages: list[Message]) -> list[Frame]:
        wanted = self._options.only
        frames: list[Frame] = []
        for message in messages:
            if wanted is None or str(message.__struct_config__.tag) in wanted:
                self.seq += 1
                frames.append(replace(message, run_id=self.segment.id, seq_id=self.seq))
        return frames

    def _finish(self, end: RunEnded) -> list[Frame]:
        self.end = end
        reason = stop_reason_of(end)
        if reason not in ("error", "llm_api_error"):
            return self._stop(reason)
        self.over = True
        self.stop = StopReason(reason)
        shown = _INTERRUPTED if end.status == "interrupted" else end.error or _FAILED
        self.error = ErrorMessage(
            error_type=error_type(shown),
            message=shown.message,
            detail=f"{shown.name}: {shown.message}",
            run_id=self.segment.id,
        )
        return [self.stop, self.error]

    def _stop(self, reason: StopReasonType) -> list[Frame]:
        self.over = True
        self.stop = StopReason(reason)
        steps = self._mapper.steps - self._steps_before
        self.usage = self._mapper.usage(steps=steps, run_id=self.segment.id)
        return [self.stop, self.usage]


def stop_reason_of(end: RunEnded) -> StopReasonType:
    """Return why a run has ended, in Letta's words."""
    if end.status == "cancelled":
        return "cancelled"
    reason = _STOPS.get(end.stop_reason or "end_turn")
    if end.status == "completed":
        return reason or "end_turn"
    if end.status == "failed" and reason in ("max_tokens_exceeded", "max_steps"):
        return reason  # what there is was said
    return "llm_api_error" if end.error is not None and end.error.name in _REPORTED else "error"
