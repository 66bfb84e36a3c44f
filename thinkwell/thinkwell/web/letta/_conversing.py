"""The endpoints for sending messages and reading runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from thinkwell.web._http import caller_of, json_answer, read_query
from thinkwell.web._refusals import Refusal, RequestInvalid, RunNotFound
from thinkwell.web.letta._answers import complete_answer, stream_answer
from thinkwell.web.letta._bodies import CancelMessages, Resume, SendMessages
from thinkwell.web.letta._endpoints import Endpoints
from thinkwell.web.letta._failures import BadRequest, NothingToCancel, NotKnown
from thinkwell.web.letta._history import read_run, running_in, thread_messages
from thinkwell.web.letta._lists import LongPage, Runs
from thinkwell.web.letta._runs import RunsQuery, list_runs, state_of
from thinkwell.web.letta._segments import Options, Segment, SegmentReader
from thinkwell.web.letta._sending import Place, Sender
from thinkwell.web.letta._turns import Turn

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from thinkwell.journal import RunRecord
    from thinkwell.web._serving import RunServer

CANCEL_TIME: Final = 10.0
"""Seconds that cancelled runs get to end before the answer, after which another message can be sent."""

DEFAULT: Final = "default"
"""The name of an agent's default conversation."""


class Conversing(Endpoints):
    """What clients do with conversations and runs.

    Args:
        server: The server of the runs.
    """

    def __init__(self, server: RunServer) -> None:
        super().__init__(server)
        self._sender = Sender(server)

    # Sending

    async def send_to_agent(self, request: Request) -> ASGIApp:
        """Send messages to an agent, in its default conversation."""
        body = await self._body(request, SendMessages)
        return await self._send(request, await self._at_agent(request), body, streaming=bool(body.streaming))

    async def stream_to_agent(self, request: Request) -> ASGIApp:
        """Send messages to an agent, in its default conversation, and stream the answer."""
        body = await self._body(request, SendMessages)
        return await self._send(request, await self._at_agent(request), body, streaming=True)

    async def send_to_conversation(self, request: Request) -> ASGIApp:
        """Send messages to a conversation."""
        body = await self._body(request, SendMessages)
        place = await self._at_conversation(request, body.agent_id)
        return await self._send(request, place, body, streaming=body.streaming is not False)

    async def begin_at_agent(self, request: Request) -> ASGIApp:
        """Send messages to an agent, and answer with the new run."""
        body = await self._body(request, SendMessages)
        place = await self._at_agent(request)
        segment, _ = await self._sender.send(place, body, Options(background=True))
        return json_answer(await self._state(segment, place.caller))

    async def _send(self, request: Request, place: Place, body: SendMessages, *, streaming: bool) -> ASGIApp:
        only = body.include_return_message_types
        options = Options(
            tokens=streaming and bool(body.stream_tokens),
            background=streaming and bool(body.background),
            pings=streaming and body.include_pings is not False,
            only=None if only is None else tuple(sorted(set(only))),  # it is stored
        )
        segment, told = await self._sender.send(place, body, options)
        record = await self._server.get(segment.run, caller=place.caller)
        if streaming:
            return stream_answer(self._server, SegmentReader(segment, record, told))
        return await complete_answer(self._server, segment, record, Options(only=told.only))

    # Reading

    async def messages_of_agent(self, request: Request) -> ASGIApp:
        """List the messages of an agent."""
        place = await self._at_agent(request)
        conversation = request.query_params.get("conversation_id")
        if conversation not in (None, DEFAULT):
            place = replace(place, conversation=(await place.store.conversation(str(conversation))).id)
        return await self._messages(request, place)

    async def messages_of_conversation(self, request: Request) -> ASGIApp:
        """List the messages of a conversation."""
        return await self._messages(
            request, await self._at_conversation(request, request.query_params.get("agent_id"))
        )

    async def _messages(self, request: Request, place: Place) -> ASGIApp:
        page = read_query(request, LongPage)
        only = request.query_params.getlist("include_return_message_types")
        return json_answer(
            await thread_messages(
                self._server, caller=place.caller, thread=place.thread, page=page, only=only
            )
        )

    async def runs(self, request: Request) -> ASGIApp:
        """List runs."""
        query = read_query(request, RunsQuery, "agent_ids", "statuses")
        return json_answer(await list_runs(self._server, query, caller=caller_of(request.scope)))

    async def run(self, request: Request) -> ASGIApp:
        """Show a run."""
        caller = caller_of(request.scope)
        return json_answer(await self._state(self._segment(request), caller))

    async def run_messages(self, request: Request) -> ASGIApp:
        """List the messages of a run."""
        record, _ = await self._run(self._segment(request), caller_of(request.scope))
        told = await read_run(self._server.journal, record)
        return json_answer(read_query(request, LongPage).of(told.messages))

    async def run_usage(self, request: Request) -> ASGIApp:
        """Return the usage of a run."""
        record, _ = await self._run(self._segment(request), caller_of(request.scope))
        return json_answer((await read_run(self._server.journal, record)).usage)

    async def _state(self, segment: Segment, caller: str) -> object:
        record, turn = await self._run(segment, caller)
        return await state_of(self._server, record, turn, segment.id)

    # Resuming

    async def resume_run(self, request: Request) -> ASGIApp:
        """Stream the rest of a run."""
        body = await self._body(request, Resume)
        return await self._resume(request, self._segment(request), body)

    async def resume_conversation(self, request: Request) -> ASGIApp:
        """Stream the rest of a run: that of a conversation, or one by its id."""
        body = await self._body(request, Resume)
        if body.run_id is not None:
            return await self._resume(request, _segment(body.run_id), body)
        place = await self._at_conversation(request, body.agent_id)
        if body.otid is not None:
            return await self._resume(request, await self._of_otid(place, body.otid), body)
        running = await running_in(self._server, caller=place.caller, thread=place.thread)
        if not running:
            raise BadRequest("No active runs found for this conversation; its messages have what was said")
        last, current = await place.store.last_answer(place.thread), Segment(run=running[0].id)
        if last is not None and last.segment.run == current.run:
            current = last.segment
        return await self._resume(request, current, body)

    async def _of_otid(self, place: Place, otid: str) -> Segment:
        """Return the run that a message has started.

        Raises:
            NotKnown: There is none.
        """
        async for record in Runs(self._server, caller=place.caller, thread=place.thread):
            turn = Turn.of(record)
            if turn is not None and otid in turn.otids:
                return Segment(run=record.id)
        raise NotKnown("Run not found: no message of that otid has begun one in this conversation")

    async def _resume(self, request: Request, segment: Segment, body: Resume) -> ASGIApp:
        record, turn = await self._run(segment, caller_of(request.scope))
        options = turn.options
        if segment.after:
            agent = await self._store(request).agent(turn.agent)
            last = await self._store(request).last_answer(turn.conversation or agent.id)
            options = last.options if last is not None and last.run == segment.id else options
        if not options.background:
            raise BadRequest("Run was not created in background mode, so it cannot be retrieved")
        after, pings = max(0, body.starting_after or 0), body.include_pings is not False
        return stream_answer(self._server, SegmentReader(segment, record, options, after=after, pings=pings))

    # Cancelling

    async def cancel_agent(self, request: Request) -> ASGIApp:
        """Cancel runs of an agent in all conversations: some by their ids, or all."""
        body = await self._body(request, CancelMessages)
        place = await self._at_agent(request)
        running = await running_in(self._server, caller=place.caller, agent=place.agent.id)
        return await self._cancel(place.caller, running, body, f"agent {place.agent.id}")

    async def cancel_conversation(self, request: Request) -> ASGIApp:
        """Cancel the runs of a conversation."""
        body = await self._body(request, CancelMessages)
        place = await self._at_conversation(request, request.query_params.get("agent_id"))
        running = await running_in(self._server, caller=place.caller, thread=place.thread)
        what = f"conversation {request.path_params['conversation']}"
        return await self._cancel(place.caller, running, body, what)

    async def _cancel(
        self, caller: str, running: list[RunRecord], body: CancelMessages, what: str
    ) -> ASGIApp:
        going = {record.id for record in running}
        named = body.run_ids or [record.id for record in running]
        if not named:
            raise NothingToCancel(what)
        parts = ((name, Segment.of(name)) for name in named)
        known = {name: part.run for name, part in parts if part is not None and part.run in going}
        for run_id in known.values():
            await self._server.cancel(run_id, caller=caller)
        with anyio.move_on_after(CANCEL_TIME):
            for run_id in known.values():
                await self._ended(run_id)
        return json_answer({name: "cancelled" if name in known else "failed" for name in named})

    async def _ended(self, run_id: str) -> None:
        record = await self._server.journal.get(run_id)
        while record is not None and record.status == "running":
            await self._server.journal.wait(run_id, record.last_seq)
            record = await self._server.journal.get(run_id)

    # Paths

    async def _at_agent(self, request: Request) -> Place:
        store = self._store(request)
        return Place(store=store, agent=await store.agent(request.path_params["agent"]))

    async def _at_conversation(self, request: Request, agent_id: str | None) -> Place:
        """Return the conversation of a path; ``default`` is that of the agent in the request.

        Raises:
            NotKnown: There is none.
            RequestInvalid: The agent is missing.
        """
        store, name = self._store(request), request.path_params["conversation"]
        if name == DEFAULT:
            if agent_id is None:
                raise RequestInvalid("agent_id: say whose default conversation is meant")
            return Place(store=store, agent=await store.agent(agent_id))
        if name.startswith("agent-"):
            return Place(store=store, agent=await store.agent(name))
        known = await store.conversation(name)
        return Place(store=store, agent=await store.agent(known.agent_id), conversation=known.id)

    def _segment(self, request: Request) -> Segment:
        return _segment(request.path_params["run"])

    async def _run(self, segment: Segment, caller: str) -> tuple[RunRecord, Turn]:
        """Return the run of a part.

        Raises:
            NotKnown: There is none, or no client of Letta has started it.
        """
        try:
            record = await self._server.get(segment.run, caller=caller)
        except RunNotFound:
            raise _no_run() from None
        turn = Turn.of(record)
        if turn is None:
            raise _no_run()
        return record, turn


def _segment(run_id: str) -> Segment:
    segment = Segment.of(run_id)
    if segment is None:
        raise _no_run()
    return segment


def _no_run() -> Refusal:
    return NotKnown("Run not found; GET /v1/runs/ lists those that there are")
