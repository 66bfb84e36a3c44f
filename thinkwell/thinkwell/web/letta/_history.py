"""The messages of a conversation, read from the logs of its runs."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from thinkwell._display.questions import allowed
from thinkwell.events import QuestionAnswered
from thinkwell.web._records import RunEnded, read_entry
from thinkwell.web._run_ids import DIGITS, run_id_of
from thinkwell.web.letta._lists import Runs
from thinkwell.web.letta._mapping import Asked, Mapper, date_of, otid_of
from thinkwell.web.letta._messages import ApprovalGiven, ApprovalResponse, SystemMessage, UserMessage
from thinkwell.web.letta._segments import Segment
from thinkwell.web.letta._streaming import BY
from thinkwell.web.letta._turns import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from thinkwell.journal import Journal, RunRecord
    from thinkwell.web._records import LogEntry
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._lists import Page
    from thinkwell.web.letta._messages import Message, UsageStatistics

_MESSAGE: Final = re.compile(rf"message-({DIGITS})-.{{1,40}}")


async def running_in(server: RunServer, *, caller: str, thread: str | None = None) -> list[RunRecord]:
    """Return the running and waiting runs of a conversation, in order; optionally all runs."""
    return [record async for record in Runs(server, caller=caller, thread=thread, status="running")][::-1]


async def thread_messages(
    server: RunServer, *, caller: str, thread: str, page: Page, only: Collection[str] | None
) -> list[Message]:
    """Return messages of a conversation.

    Args:
        server: The server of its runs.
        caller: The caller.
        thread: Its name.
        page: The requested part.
        only: The requested types of messages; ``None``: all.
    """
    found: list[Message] = []

    async def take(record: RunRecord) -> bool:
        """Add the messages of a run, from the cursor on; return whether there are enough."""
        messages = await run_messages(server.journal, record)
        if not page.forwards:
            messages.reverse()
        if record is beside:
            names = [message.id for message in messages]
            if page.cursor not in names:
                return True
            messages = messages[names.index(page.cursor) + 1 :]
        found.extend(message for message in messages if only is None or str(_tag(message)) in only)
        return len(found) >= page.limit

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
    return page.in_order(found[: page.limit])


async def run_messages(journal: Journal, record: RunRecord) -> list[Message]:
    """Return the messages of a run: its prompt, and all complete messages."""
    segment = Segment(run=record.id)
    mapper = Mapper(segment.short, record.created, tokens=False)
    found: list[tuple[int, Message]] = [(0, message) for message in _asked(segment, record)]
    begins: list[int] = []
    """Return the numbers of the entries after which a part begins, in Letta's sense."""

    def take(event: LogEntry) -> None:
        found.extend((event.seq, message) for message in mapper.take(event))
        if isinstance(event, RunEnded):
            found.extend((event.seq, message) for message in mapper.flush())
        elif isinstance(event, QuestionAnswered) and event.by == BY and event.id in mapper.asked:
            asked = mapper.asked[event.id]
            begins.append(asked.question.seq)
            found.append((event.seq, _answered(event, asked, segment, record)))

    await _read(journal, record.id, take)
    begins.sort()
    return [replace(message, run_id=_part(segment, begins, seq).id) for seq, message in found]


async def pending_calls(journal: Journal, run_id: str) -> list[Asked]:
    """Return the open questions of a run, in order."""
    mapper = Mapper(Segment(run=run_id).short, 0.0, tokens=False)
    answered: set[str] = set()

    def take(event: LogEntry) -> None:
        mapper.take(event)
        if isinstance(event, QuestionAnswered):
            answered.add(event.id)

    await _read(journal, run_id, take)
    return [asked for id_, asked in mapper.asked.items() if id_ not in answered]


async def run_usage(journal: Journal, run_id: str) -> UsageStatistics:
    """Return the usage of a run so far."""
    mapper = Mapper(Segment(run=run_id).short, 0.0, tokens=False)
    await _read(journal, run_id, mapper.take)
    return mapper.usage(steps=mapper.steps, run_id=run_id)


async def _read(journal: Journal, run_id: str, take: Callable[[LogEntry], object]) -> None:
    """Pass a whole log to a function."""
    seq = 0
    while entries := await journal.read(run_id, seq):
        seq = entries[-1].seq
        for entry in entries:
            take(read_entry(entry))


def _part(segment: Segment, begins: list[int], seq: int) -> Segment:
    """Return the part of an entry."""
    number = bisect_left(begins, seq)
    return replace(segment, after=begins[number - 1]) if number else segment


def _asked(segment: Segment, record: RunRecord) -> list[Message]:
    """Return the prompt of a run."""
    turn = Turn.of(record)
    if turn is None:  # it was started in another way, and nothing else is known of its prompt
        id_ = f"message-{segment.short}-0"
        date = date_of(record.created)
        return [UserMessage(id=id_, date=date, otid=otid_of(id_), content=record.title)]
    messages: list[Message] = []
    for number, said in enumerate(turn.said):
        id_ = f"message-{segment.short}-0{f'.{number}' if number else ''}"
        kind = UserMessage if said.role == "user" else SystemMessage
        messages.append(
            kind(id=id_, date=date_of(record.created), otid=said.otid or otid_of(id_), content=said.content)
        )
    return messages


def _answered(event: QuestionAnswered, asked: Asked, segment: Segment, record: RunRecord) -> ApprovalResponse:
    id_ = f"message-{segment.short}-{event.seq}"
    approve = bool(allowed(event))
    given = ApprovalGiven(tool_call_id=asked.tool_call_id, approve=approve, reason=event.why)
    return ApprovalResponse(
        id=id_,
        date=date_of(record.created + event.at),
        otid=otid_of(id_),
        approval_request_id=asked.message_id,
        approve=approve,
        reason=event.why,
        approvals=(given,),
    )


def _tag(message: Message) -> object:
    return message.__struct_config__.tag
