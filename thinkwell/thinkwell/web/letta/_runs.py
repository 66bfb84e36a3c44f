"""Runs as Letta's clients read them, and which of them they want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from thinkwell.web._records import RunEnded, read_entry
from thinkwell.web.letta._history import all_runs
from thinkwell.web.letta._mapping import date_of
from thinkwell.web.letta._segments import stop_reason_of
from thinkwell.web.letta._turns import Turn

if TYPE_CHECKING:
    from thinkwell.journal import RunRecord, RunStatus
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._lists import Page
    from thinkwell.web.letta._messages import StopReasonType

__all__ = ("RunState", "RunsQuery", "Wanted", "list_runs", "state_of")

_STATUSES: Final[dict[RunStatus, str]] = {
    "running": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "interrupted": "failed",
}
"""Where a run is, in Letta's words."""


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


class RunsQuery(Struct, frozen=True, kw_only=True):
    """What a request for runs says of them. What may be there several times is not here."""

    agent_id: str | None = None
    conversation_id: str | None = None
    background: bool | None = None
    stop_reason: str | None = None
    active: bool = False
    """Whether those are wanted that go on."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which runs are wanted. ``None``: whichever."""

    agents: frozenset[str] | None = None
    conversation: str | None = None
    background: bool | None = None
    statuses: frozenset[str] | None = None
    stop_reason: str | None = None

    def may_be(self, turn: Turn) -> bool:
        """Return whether a run is wanted, as far as it is known how it was begun."""
        return (
            (self.agents is None or turn.agent in self.agents)
            and (self.conversation is None or (turn.conversation or "default") == self.conversation)
            and (self.background is None or turn.options.background == self.background)
        )

    @property
    def needs_state(self) -> bool:
        """Whether it matters where a run is."""
        return self.statuses is not None or self.stop_reason is not None

    def is_so(self, state: RunState) -> bool:
        """Return whether a run is where it has to be."""
        return (self.statuses is None or state.status in self.statuses) and (
            self.stop_reason is None or state.stop_reason == self.stop_reason
        )


async def list_runs(server: RunServer, wanted: Wanted, page: Page, *, caller: str) -> list[RunState]:
    """Return runs that clients of Letta's have started. One that waited for approval is listed once."""
    known: list[RunRecord] = []
    turns: dict[str, Turn] = {}
    for record in await all_runs(server, caller=caller):
        turn = Turn.of(record)
        if turn is not None and wanted.may_be(turn):
            known.append(record)
            turns[record.id] = turn
    known.reverse()
    if wanted.needs_state:
        states = [await state_of(server, record, turns[record.id]) for record in known]
        return page.of([state for state in states if wanted.is_so(state)])
    return [await state_of(server, record, turns[record.id]) for record in page.of(known)]


async def state_of(server: RunServer, record: RunRecord, turn: Turn, run_id: str | None = None) -> RunState:
    """Return where a run is.

    Args:
        server: Where it is.
        record: What is known of it.
        turn: How it was begun.
        run_id: What the client calls it, where that is a part of it.
    """
    status = _STATUSES[record.status]
    reason: StopReasonType | None = None
    if record.status == "running":
        questions = (await server.state(record.id, caller=record.caller)).view.questions
        if any(question.deadline is not None for question in questions):
            status, reason = "completed", "requires_approval"  # so it is where the answer begins another one
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
