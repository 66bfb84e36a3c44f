"""The common part of the formats of front ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from thinkwell.journal import RunRecord
    from thinkwell.web._records import LogEntry, ShownError
    from thinkwell.web.front_ends._facts import Chunk
    from thinkwell.web.front_ends._shown_run import ShownRun, Told


class FrontEndFormat(ABC):
    """A format of front ends: takes the entries of a run, and returns the frames for each.

    Args:
        record: The run.
        run: The state that clients have.
    """

    headers: ClassVar[Mapping[str, str]] = {}
    """Further headers of answers."""
    closing: ClassVar[tuple[bytes, ...]] = ()
    """The end of a stream, after the last chunk, as the data of events."""

    def __init__(self, record: RunRecord, run: ShownRun) -> None:
        self.record = record
        self.run = run
        self._out: list[Chunk] = []
        self._opened = False

    def take(self, entry: LogEntry) -> list[Chunk]:
        """Take the next entry of the run, and return its frames."""
        return self._sent(self.run.take(entry))

    def pause(self) -> list[Chunk]:
        """End the stream at open questions, whose answers come with the next request."""
        return self._sent(self.run.silence(), self._pauses)

    def resume(self) -> None:
        """Begin the stream after a pause. Its opening comes with the next entry."""
        self._opened = False

    def break_off(self, error: ShownError) -> list[Chunk]:
        """End the stream if the server cannot continue it, though the run may continue."""
        return self._sent(self.run.silence(), lambda: self._fails(error))

    def _sent(self, told: Iterable[Told], end: Callable[[], None] = lambda: None) -> list[Chunk]:
        if not self._opened:
            self._opened = True
            self._opens()
        for each in told:
            self._tell(each)
        end()
        out, self._out = self._out, []
        return out

    def _send(self, kind: str, /, **fields: object) -> None:
        self._out.append({"type": kind, **fields})

    @abstractmethod
    def _opens(self) -> None:
        """Begin the stream."""

    @abstractmethod
    def _tell(self, told: Told) -> None:
        """Send a change."""

    @abstractmethod
    def _pauses(self) -> None:
        """End the stream at open questions."""

    @abstractmethod
    def _fails(self, error: ShownError) -> None:
        """End the stream for a reason that the client gets."""
