"""Updates of a session outside its turns."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from thinkwell import events as ev
from thinkwell._core.log.run_log import RunLog, running_clock
from thinkwell._core.protocol.updates import Mapper
from thinkwell._core.session.history import History
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._core.log.owner import Owner
    from thinkwell._core.protocol.tool_calls import ToolCalls
    from thinkwell._core.protocol.updates import NoteCall, NoteState, ReadReport
    from thinkwell._core.session.history import HistoryMessage

_CONVERSATION: Final = (
    s.UserMessageChunk,
    s.AgentMessageChunk,
    s.AgentThoughtChunk,
    s.ToolCallStart,
    s.ToolCallProgress,
    s.AgentPlanUpdate,
    s.PlanUpdate,
)


class Replay(Enum):
    """Whether updates are a replay, in a reopened session."""

    NONE = auto()
    """They are not: the session is new, or has had a turn."""
    EXPECTED = auto()
    """They may be, until the first turn: some agents replay the rest after their answer."""
    SHOWN = auto()
    """They are, and the readers were told."""


class OutsideTurns:
    """The log of events outside every turn, and the session's conversation.

    Args:
        again: Whether the session is reopened.
        listeners: Called with each event.
        owner: The place where the agent was opened.
        calls: The tool calls of the session.
        note_call: Called with each update of a tool call.
        note_state: Called with each update of the session's state.
        report: Reads an agent's own messages.
    """

    def __init__(
        self,
        *,
        again: bool,
        listeners: Sequence[Callable[[ev.ThoughtEvent], None]],
        owner: Owner,
        calls: ToolCalls,
        note_call: NoteCall,
        note_state: NoteState,
        report: ReadReport,
    ) -> None:
        self.log: RunLog = RunLog(ev.ALL_TYPES, clock=running_clock(), listeners=listeners, owner=owner)
        self.mapper: Mapper = Mapper(self.log, calls, note_call, note_state, report=report)
        self.history: History = History(self.log)
        self._replay = Replay.EXPECTED if again else Replay.NONE
        self._marks: list[int] = []
        """The number of events when each run took the session: those between two runs came late."""

    @property
    def begun(self) -> bool:
        """Whether the session has had a turn."""
        return bool(self._marks)

    def expect(self, batch: Sequence[s.SessionNotification]) -> None:
        """Report a replay if a batch begins one."""
        if self._replay is Replay.EXPECTED and any(isinstance(note.update, _CONVERSATION) for note in batch):
            self.begin_replay()

    def begin_replay(self) -> None:
        """Report the start of a replay."""
        # It has already begun if opening is retried after a login.
        if self._replay is not Replay.SHOWN:  # pragma: no branch - no agent repeats before it wants a login
            self._replay = Replay.SHOWN
            self.log.add(ev.ReplayStarted)
            self.log.publish()

    def end_replay(self) -> None:
        """Report the end of a replay, if one has begun; there may be another."""
        if self._replay is Replay.SHOWN:
            self._replay = Replay.EXPECTED
            self.log.add(ev.ReplayEnded)
            self.log.publish()

    def taken(self, log: RunLog) -> int:
        """Give a run the session, and return how many had it before.

        Args:
            log: The run's log.
        """
        self.end_replay()
        self.history.take(log, replayed=self._replayed)
        self._replay = Replay.NONE
        self._marks.append(self.log.seq)
        return len(self._marks) - 1

    def late(self, place: int) -> tuple[ev.ThoughtEvent, ...]:
        """Return the events between a run and the next.

        Args:
            place: The number of runs that had the session before it.
        """
        begin, *end = self._marks[place : place + 2]
        return tuple(self.log.events[begin : end[0] if end else None])

    def messages(self) -> tuple[HistoryMessage, ...]:
        """Return the conversation so far."""
        return self.history.messages(replayed=self._replayed)

    @property
    def _replayed(self) -> bool:
        return self._replay is not Replay.NONE

    def end(self) -> None:
        """End the log when the session is left."""
        self.end_replay()
        self.log.end()
