"""The routes where front ends start runs, continue them, and reconnect."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from thinkwell import events as ev
from thinkwell.questions import Reply
from thinkwell.web._http import Resource, caller_of, check_depth, read_json
from thinkwell.web._records import read_entry
from thinkwell.web._refusals import QuestionClosed, RequestInvalid, RunNotFound
from thinkwell.web._sse import EventStream, sse_frame
from thinkwell.web.front_ends._ag_ui import PROTOCOL, AgUiFormat
from thinkwell.web.front_ends._ag_ui_input import Resume, RunInput, ToolMessage
from thinkwell.web.front_ends._ai_sdk import AiSdkFormat
from thinkwell.web.front_ends._ai_sdk_chat import ChatRequest
from thinkwell.web.front_ends._formats import FORMAT_HEADERS, segment_events
from thinkwell.web.front_ends._tools import call_of_front_end

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Container, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from thinkwell.events import JsonValue
    from thinkwell.journal import RunRecord
    from thinkwell.questions import Answer
    from thinkwell.web._serving import RunServer
    from thinkwell.web.front_ends._ag_ui import Point
    from thinkwell.web.front_ends._ai_sdk_chat import ChatMessage

LOOKED_AT: Final = 100
"""How many of a conversation's latest runs are searched."""

RECENT: Final = 60.0
"""Seconds after the end of a run for which a client that reconnects gets it: the connection may have broken
before the end."""

SHOWN: Final = 200
"""Characters of a question's title in a refusal."""

_QUESTIONS: Final = (b'{"type":"question"', b'{"type":"answer"')
"""The beginnings of entries that are questions or answers."""

MOVED_ON: Final = Reply("deny", why="the user has said something else instead")


def routes(server: RunServer) -> list[Route]:
    """Return the routes for clients of the Vercel AI SDK and of AG-UI."""
    chats, agents = _AiSdk(server), _AgUi(server)
    return [
        Route("/ai-sdk/{agent}", Resource(POST=chats.post)),
        # The path of `DefaultChatTransport` (npm `ai` 7.0, src/ui/http-chat-transport.ts).
        Route("/ai-sdk/{agent}/{chat:path}/stream", Resource(GET=chats.resume)),
        Route("/ag-ui/{agent}", Resource(POST=agents.post)),
    ]


class _FrontEnd:
    """The common part of both."""

    def __init__(self, server: RunServer) -> None:
        self._server = server

    def _agent(self, request: Request) -> str:
        agent: str = request.path_params["agent"]
        if agent not in self._server.agents:
            known = ", ".join(self._server.agents)
            raise HTTPException(404, f"there is no agent {agent[:100]!r}; the server has {known}")
        return agent

    async def _run(self, run_id: str, agent: str, thread: str, caller: str) -> RunRecord | None:
        """Return a run of a conversation; ``None``: it does not exist."""
        try:
            record = await self._server.get(run_id, caller=caller)
        except RunNotFound:
            return None
        return record if (record.agent, record.thread) == (agent, thread) else None

    async def _of_thread(self, agent: str, thread: str, caller: str) -> list[RunRecord]:
        """Return the last runs of a conversation, latest first."""
        records = await self._server.runs(caller=caller, thread=thread, limit=LOOKED_AT)
        return [record for record in records if record.agent == agent]

    async def _answer(self, run_id: str, question_id: str, answer: Answer, caller: str) -> None:
        """Answer a question, unless it is answered: the same request may be repeated."""
        with suppress(QuestionClosed):
            await self._server.answer(run_id, question_id, answer, caller=caller)


class _AiSdk(_FrontEnd):
    """Chats of the Vercel AI SDK."""

    async def post(self, request: Request) -> ASGIApp:
        """Start a run with the user's message, or continue one after its questions."""
        caller, agent = caller_of(request.scope), self._agent(request)
        chat = await read_json(request, ChatRequest, self._server.limits.max_request)
        check_depth(thinkwell=None if chat.thinkwell is None else chat.thinkwell.output)
        said = chat.answered
        record = None if said is None else await self._run(said.run_id, agent, chat.id, caller)
        answered: set[str] = set()
        if said is not None and record is not None:
            answered = await self._take_answers(record, said, caller, moves_on=chat.prompt is not None)
        if chat.prompt is not None:
            wanted, key = chat.start(agent, chat.prompt)
            records = [] if key is None else await self._of_thread(agent, chat.id, caller)
            run = next((record for record in records if record.key == key), None)
            if run is None:
                run = await self._server.start(wanted, caller=caller, key=key)
            return self._stream(run, caller)
        if said is None or record is None:
            raise RequestInvalid(
                "messages: the last one is neither the user's nor a run of this chat that could continue"
            )
        return self._stream(record, caller, said.cuts(record.last_seq), answered)

    async def resume(self, request: Request) -> ASGIApp:
        """Send the last run, which the client of a chat may have missed."""
        caller, agent = caller_of(request.scope), self._agent(request)
        chat, run_id = request.path_params["chat"], request.query_params.get("run")
        if run_id is None:
            record = next(filter(_may_be_missed, await self._of_thread(agent, chat, caller)), None)
        else:
            record = await self._run(run_id, agent, chat, caller)
        if record is None:
            return Response(status_code=204, headers={"Cache-Control": "no-store"})
        return self._stream(record, caller)

    async def _take_answers(
        self, record: RunRecord, said: ChatMessage, caller: str, *, moves_on: bool
    ) -> set[str]:
        """Answer the questions of a run from a message, and return the answered ones.

        Args:
            record: The run.
            said: The message.
            caller: The caller.
            moves_on: Whether the user has sent another message, so that open questions are denied.
        """
        answered: set[str] = set()
        for question_id, answer in said.given():
            if answer is None and moves_on:
                answer = MOVED_ON
            if answer is not None:
                answered.add(question_id)
                if record.status == "running":
                    await self._answer(record.id, question_id, answer, caller)
        return answered

    def _stream(
        self, record: RunRecord, caller: str, cuts: list[int] | None = None, answered: Collection[str] = ()
    ) -> EventStream:
        form = AiSdkFormat(record, stops=True, answered=answered)
        events = segment_events(self._server, record, form, caller=caller, cuts=cuts or (), answered=answered)
        return EventStream(events, headers=FORMAT_HEADERS["ai-sdk"])


def _may_be_missed(record: RunRecord) -> bool:
    return record.ended is None or time.time() - record.ended < RECENT


class _RunRefused(Exception):  # noqa: N818 - it is no error of ours
    """A request is refused by an event of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class _AgUi(_FrontEnd):
    """Clients of AG-UI."""

    async def post(self, request: Request) -> ASGIApp:
        """Start a run with the user's message, or continue one after its questions."""
        caller, agent = caller_of(request.scope), self._agent(request)
        wanted = await read_json(request, RunInput, self._server.limits.max_request)
        check_depth(forwardedProps=wanted.forwarded_props)
        try:
            given = wanted.given()
            if not given:
                return await self._start(wanted, agent, caller)
            begin = max(point.seq for point in given)
            record = await self._take_answers(wanted, given, begin, agent, caller)
            answered = {point.question_id for point in given}
            if wanted.moves_on(record):
                return await self._start(wanted, agent, caller, answered)
            return self._stream(record, wanted, caller, begin, answered)
        except _RunRefused as exc:
            # Clients expect an event if the protocol has one (AG-UI, concepts/interrupts, error handling).
            run = {"threadId": wanted.thread_id, "runId": wanted.run_id, "protocolVersion": PROTOCOL}
            error = {"message": exc.message, "code": exc.code}
            return EventStream(_written({"type": "RUN_STARTED", **run}, {"type": "RUN_ERROR", **error}))

    async def _start(
        self, wanted: RunInput, agent: str, caller: str, answered: Container[str] = ()
    ) -> ASGIApp:
        earlier = await self._of_thread(agent, wanted.thread_id, caller)
        known = next((record for record in earlier if record.key == wanted.key(agent)), None)
        if known is None:
            for record in earlier:
                if record.status == "running":
                    await self._clear(record, caller, answered)
            run = wanted.start(agent, is_first=not earlier)
            known = await self._server.start(
                run, caller=caller, key=wanted.key(agent), tools=wanted.offered()
            )
        return self._stream(known, wanted, caller)

    async def _clear(self, record: RunRecord, caller: str, answered: Container[str]) -> None:
        """Make room for the next run of the conversation, which waits for this one.

        Raises:
            _RunRefused: The client has to answer its question first.
        """
        _, asked = await self._asked(record)
        waiting = [question for question in asked.values() if question.id not in answered]
        for question in waiting:
            if call_of_front_end(question.fields) is None:
                raise _RunRefused(
                    "interrupts_pending",
                    f"the conversation waits for an answer: {question.title[:SHOWN]!r}; "
                    "send it as resume, or answer it elsewhere",
                )
        for question in waiting:
            await self._answer(record.id, question.id, MOVED_ON, caller)

    async def _take_answers(
        self,
        wanted: RunInput,
        given: Mapping[Point, Resume | ToolMessage],
        begin: int,
        agent: str,
        caller: str,
    ) -> RunRecord:
        """Answer the questions of a run, and return it.

        Args:
            wanted: The request.
            given: The answers in it.
            begin: The entry after which the stream continues.
            agent: The agent.
            caller: The caller.

        Raises:
            _RunRefused: They do not fit its questions.
        """
        run_id, *others = {point.run_id for point in given}
        record = await self._run(run_id, agent, wanted.thread_id, caller)
        if others or record is None or begin > record.last_seq:
            raise _RunRefused("interrupt_unknown", "resume: no run of this conversation has asked that")
        asked, still_open = await self._asked(record, begin)
        answers = [
            _answer_of(asked, point, said)
            for point, said in given.items()
            if point.question_id in asked
            or isinstance(said, Resume)  # otherwise it was sent before, and stays with the client
        ]
        if record.status == "running":
            known = {point.question_id for point in given}
            missing = [
                asked[id_].title
                for id_ in (asked.keys() & still_open.keys()) - known
                if call_of_front_end(asked[id_].fields) is None
            ]
            if missing:
                what = f"resume: there is no answer to {missing[0][:SHOWN]!r}"
                raise _RunRefused("interrupts_pending", what)
            for question_id, answer in answers:
                try:
                    await self._answer(record.id, question_id, answer, caller)
                except RequestInvalid as exc:  # the question stays open
                    raise _RunRefused("answer_invalid", exc.message) from None
        return record

    async def _asked(
        self, record: RunRecord, seq: int = 0
    ) -> tuple[dict[str, ev.QuestionAsked], dict[str, ev.QuestionAsked]]:
        """Return the questions that were open after an entry, and those that are open now."""
        then: dict[str, ev.QuestionAsked] = {}
        asked: dict[str, ev.QuestionAsked] = {}
        last = 0
        while entries := await self._server.journal.read(record.id, last):
            last = entries[-1].seq
            for entry in entries:
                if entry.data.startswith(_QUESTIONS):
                    event = read_entry(entry)
                    if isinstance(event, ev.QuestionAsked):
                        if event.timeout is not None:
                            asked[event.id] = event
                    else:
                        assert isinstance(event, ev.QuestionAnswered)
                        asked.pop(event.id, None)
                if entry.seq == seq:
                    then = asked.copy()
        return then, asked

    def _stream(
        self,
        record: RunRecord,
        wanted: RunInput,
        caller: str,
        begin: int = 0,
        answered: Collection[str] = (),
    ) -> EventStream:
        form = AgUiFormat(
            record,
            thread=wanted.thread_id,
            run=wanted.run_id,
            state=wanted.state if _is_shallow(wanted.state) else None,
            messages=wanted.messages if _is_shallow(wanted.messages) else (),
            begin=begin,
            stops=True,
        )
        cuts = [begin] if begin else []
        return EventStream(
            segment_events(self._server, record, form, caller=caller, cuts=cuts, answered=answered),
            headers=FORMAT_HEADERS["ag-ui"],
        )


def _is_shallow(value: JsonValue) -> bool:
    """Return whether a client's message can be sent back. Parts of it may come from an agent."""
    try:
        check_depth(value=value)
    except RequestInvalid:
        return False
    return True


def _answer_of(
    asked: Mapping[str, ev.QuestionAsked], point: Point, said: Resume | ToolMessage
) -> tuple[str, Answer]:
    question = asked.get(point.question_id)
    if question is None or isinstance(said, ToolMessage) != (call_of_front_end(question.fields) is not None):
        raise _RunRefused("interrupt_unknown", f"resume: the run has not asked {point.id!r}")
    try:
        return question.id, said.answer(question)
    except RequestInvalid as exc:
        raise _RunRefused("answer_invalid", exc.message) from None


async def _written(*events: Mapping[str, object]) -> AsyncGenerator[bytes]:
    for event in events:
        yield sse_frame(msgspec.json.encode(event))
