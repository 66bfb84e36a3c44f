"""The messages of a conversation, read from the logs of its runs."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from thinkwell._display.questions import allowed
from thinkwell.events import QuestionAnswered
from thinkwell.web._records import read_entry
from thinkwell.web._run_ids import DIGITS, run_id_of
from thinkwell.web.letta._incoming import Said
from thinkwell.web.letta._lists import Runs
from thinkwell.web.letta._mapping import Mapper, head_of
from thinkwell.web.letta._messages import ApprovalGiven, ApprovalResponse, SystemMessage, UserMessage, tag_of
from thinkwell.web.letta._segments import Segment
from thinkwell.web.letta._turns import BY, Turn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from thinkwell.journal import Journal, RunRecord
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._lists import Page
    from thinkwell.web.letta._messages import Message, UsageStatistics
    from thinkwell.web.letta._questions import Asked

_MESSAGE: Final = re.compile(rf"message-({DIGITS})-.{{1,40}}")


async def running_in(
    server: RunServer, *, caller: str, thread: str | None = None, agent: str | None = None
) -> list[RunRecord]:
    """Return the running and waiting runs of a conversation or an agent, in order."""
    records = [record async for record in Runs(server, caller=caller, thread=thread, status="running")]
    if agent is not None:
        records = [record for record in records if (turn := Turn.of(record)) and turn.agent == agent]
    return records[::-1]


async def first_waiting(journal: Journal, records: Iterable[RunRecord]) -> tuple[RunRecord, ToldRun] | None:
    """Return the first of some runs with an open question."""
    for record in records:
        told = await read_run(journal, record)
        if told.pending:
            return record, told
    return None


async def thread_messages(
    server: RunServer, *, caller: str, thread: str, page: Page, only: Collection[str]
) -> list[Message]:
    """Return messages of a conversation.

    Args:
        server: The server of its runs.
        caller: The caller.
        thread: Its name.
        page: The requested part.
        only: The requested types of messages; empty: all.
    """
    found: list[Message] = []

    async def take(record: RunRecord) -> bool:
        """Add the messages of a run, from the cursor on; return whether there are enough."""
        messages = (await read_run(server.journal, record)).messages
        if not page.forwards:
            messages.reverse()
        if record is beside:
            if page.cursor not in {message.id for message in messages}:
                return True
            messages = page.beyond(messages)
        found.extend(message for message in messages if not only or tag_of(message) in only)
        return len(found) >= page.most

    beside: RunRecord | None = None
    if page.cursor is not None:
        named = _MESSAGE.fullmatch(page.cursor)
        beside = await server.journal.get(run_id_of(named[1])) if named else None
        if beside is None or (beside.caller, beside.thread) != (caller, thread):
            return []
    id_ = None if beside is None else beside.id
    enough = beside is not None and await take(beside)
    if not enough and page.forwards:
        # A journal is read from its end, so the beginning must be found first.
        newer = [record.id async for record in Runs(server, caller=caller, thread=thread, until=id_)]
        while newer and not enough:
            record = await server.journal.get(newer.pop())
            enough = record is not None and await take(record)
    elif not enough:
        async for record in Runs(server, caller=caller, thread=thread, before=id_):
            if await take(record):
                break
    return page.in_order(found)


class ToldRun(Struct, frozen=True, kw_only=True):
    """What a run has told so far."""

    messages: list[Message]
    """Its prompt, and all complete messages."""
    pending: list[Asked]
    """The open questions, in order."""
    usage: UsageStatistics


async def read_run(journal: Journal, record: RunRecord) -> ToldRun:
    """Read the whole log of a run."""
    segment = Segment(run=record.id)
    mapper = Mapper(segment.short, record.created, tokens=False)
    found: list[tuple[int, Message]] = [(0, message) for message in _prompt(segment, record)]
    begins: list[int] = []
    """The numbers of the entries after which a part begins, in Letta's sense."""
    answered: set[str] = set()
    last = 0
    while entries := await journal.read(record.id, last):
        last = entries[-1].seq
        for event in map(read_entry, entries):
            found += [(event.seq, message) for message in mapper.take(event)]
            if isinstance(event, QuestionAnswered) and event.id in mapper.asked:
                answered.add(event.id)
                if event.by == BY:
                    asked = mapper.asked[event.id]
                    begins.append(asked.question.seq)
                    found.append((event.seq, _decided(event, asked, segment, record)))
    parts = [segment, *(replace(segment, after=seq) for seq in sorted(begins))]
    return ToldRun(
        messages=[
            replace(message, run_id=parts[bisect_left(parts, seq, lo=1, key=lambda part: part.after) - 1].id)
            for seq, message in found
        ],
        pending=[asked for id_, asked in mapper.asked.items() if id_ not in answered],
        usage=mapper.usage(steps=mapper.steps, run_id=record.id),
    )


def _prompt(segment: Segment, record: RunRecord) -> list[Message]:
    """Return the prompt of a run."""
    turn = Turn.of(record)  # without one it was started in another way, and its title is all that is known
    said = (Said(content=record.title),) if turn is None else turn.said
    messages: list[Message] = []
    for number, each in enumerate(said):
        id_ = f"message-{segment.short}-0{f'.{number}' if number else ''}"
        kind = UserMessage if each.role == "user" else SystemMessage
        messages.append(kind(**head_of(id_, record.created, each.otid), content=each.content))
    return messages


def _decided(event: QuestionAnswered, asked: Asked, segment: Segment, record: RunRecord) -> ApprovalResponse:
    approve = bool(allowed(event))
    given = ApprovalGiven(tool_call_id=asked.tool_call_id, approve=approve, reason=event.why)
    return ApprovalResponse(
        **head_of(f"message-{segment.short}-{event.seq}", record.created + event.at),
        approval_request_id=asked.message_id,
        approve=approve,
        reason=event.why,
        approvals=(given,),
    )
