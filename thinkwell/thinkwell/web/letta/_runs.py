"""Runs for Letta's clients, and the filters for them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell.web._records import RunEnded, read_entry
from thinkwell.web.letta._lists import LongPage, Runs
from thinkwell.web.letta._mapping import date_of
from thinkwell.web.letta._segments import Segment, stop_reason_of
from thinkwell.web.letta._turns import Turn

if TYPE_CHECKING:
    from thinkwell.journal import RunRecord, RunStatus
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._messages import StopReasonType

_STATUSES: Final[dict[RunStatus, str]] = {
    "running": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "interrupted": "failed",
}
"""The status of a run, in Letta's terms."""


_ACTIVE: Final = frozenset({"created", "running"})
"""The statuses of running ones."""


class RunState(Struct, frozen=True, kw_only=True):
    """A run as clients read it (Letta API, ``Run``)."""

    id: str
    agent_id: str
    conversation_id: str | None
    background: bool
    status: str
    stop_reason: StopReasonType | None
    created_at: str
    completed_at: str | None
    total_duration_ns: int | None


class RunsQuery(LongPage, frozen=True, kw_only=True):
    """The part of the list of runs that a request wants, and its filters. ``None``: any."""

    agent_id: str | None = None
    agent_ids: frozenset[str] = frozenset()
    conversation_id: str | None = None
    background: bool | None = None
    statuses: frozenset[str] | None = None
    stop_reason: str | None = None
    active: bool = False
    """Whether only running ones are requested, whatever `statuses` says."""

    def may_be(self, record: RunRecord, turn: Turn) -> bool:
        """Return whether a run may be requested, as far as that is known without its log."""
        agents = self.agent_ids | ({self.agent_id} if self.agent_id else set[str]())
        running = record.status == "running"
        states = {_STATUSES[record.status], "completed" if running else ""}  # if it waits for approval
        return (
            (not agents or turn.agent in agents)
            and (self.conversation_id is None or (turn.conversation or "default") == self.conversation_id)
            and (self.background is None or turn.options.background == self.background)
            and (self.wanted is None or not self.wanted.isdisjoint(states))
            and (self.stop_reason is None or (self.stop_reason == "requires_approval") == running)
        )

    @property
    def wanted(self) -> frozenset[str] | None:
        """The requested statuses."""
        return _ACTIVE if self.active else self.statuses

    @property
    def is_running(self) -> bool:
        """Whether only running ones are requested."""
        return self.wanted is not None and self.wanted <= _ACTIVE

    @property
    def needs_state(self) -> bool:
        """Whether the status of a run matters."""
        return self.wanted is not None or self.stop_reason is not None

    def is_so(self, state: RunState) -> bool:
        """Return whether a run has a requested status."""
        return (self.wanted is None or state.status in self.wanted) and (
            self.stop_reason is None or state.stop_reason == self.stop_reason
        )


async def list_runs(server: RunServer, query: RunsQuery, *, caller: str) -> list[RunState]:
    """Return runs that clients of Letta have started. A run that has waited for approval is listed once."""
    beside: str | None = None
    if query.cursor is not None:
        segment = Segment.of(query.cursor)
        known = None if segment is None else await server.journal.get(segment.run)
        if known is None or known.caller != caller:
            return []
        beside = known.id
    until = beside if query.forwards else None
    runs = Runs(
        server,
        caller=caller,
        status="running" if query.is_running and until is None else None,  # that one may have ended
        before=None if query.forwards else beside,
        until=until,
    )
    # The latest come first: either the first or the last matches are requested.
    found: deque[tuple[RunRecord, Turn, RunState | None]] = deque(maxlen=query.most)
    async for record in runs:
        turn = Turn.of(record)
        if turn is None or not query.may_be(record, turn):
            continue
        state = await state_of(server, record, turn) if query.needs_state else None
        if state is None or query.is_so(state):
            found.append((record, turn, state))
            if len(found) == query.most and not query.forwards:
                break
    states = [state or await state_of(server, record, turn) for record, turn, state in found]
    return states[::-1] if query.oldest_first else states


async def state_of(server: RunServer, record: RunRecord, turn: Turn, run_id: str | None = None) -> RunState:
    """Return the status of a run.

    Args:
        server: The server of the run.
        record: Its record.
        turn: The request that started it.
        run_id: The client's id, if that is a part of it.
    """
    status = _STATUSES[record.status]
    reason: StopReasonType | None = None
    if record.status == "running":
        questions = (await server.state(record.id, caller=record.caller)).view.questions
        if any(question.deadline is not None for question in questions):
            status, reason = "completed", "requires_approval"  # the answer begins another one
    else:
        for entry in await server.journal.read(record.id, record.last_seq - 1):
            end = read_entry(entry)
            reason = stop_reason_of(end) if isinstance(end, RunEnded) else None
    took = None if record.ended is None else record.ended - record.created
    return RunState(
        id=run_id or record.id,
        agent_id=turn.agent,
        conversation_id=turn.conversation,
        background=turn.options.background,
        status=status,
        stop_reason=reason,
        created_at=date_of(record.created),
        completed_at=None if record.ended is None else date_of(record.ended),
        total_duration_ns=None if took is None else int(took * 1e9),
    )
