"""The routes where front ends start runs, continue them, and reconnect."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
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
from thinkwell.web.front_ends._formats import segment_events
from thinkwell.web.front_ends._tools import call_of_front_end

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Container, Mapping, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from thinkwell.events import JsonValue
    from thinkwell.journal import Journal, RunRecord
    from thinkwell.questions import Answer
    from thinkwell.web._serving import RunServer
    from thinkwell.web.front_ends._ag_ui import Point
    from thinkwell.web.front_ends._format import FrontEndFormat

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
    return [
        Route("/ai-sdk/{agent}", Resource(POST=partial(_chat, server))),
        # The path of `DefaultChatTransport` (npm `ai` 7.0, src/ui/http-chat-transport.ts).
        Route("/ai-sdk/{agent}/{chat:path}/stream", Resource(GET=partial(_resume_chat, server))),
        Route("/ag-ui/{agent}", Resource(POST=partial(_run_agent, server))),
    ]


def _agent_of(server: RunServer, request: Request) -> str:
    agent: str = request.path_params["agent"]
    if agent not in server.agents:
        known = ", ".join(server.agents)
        raise HTTPException(404, f"there is no agent {agent[:100]!r}; the server has {known}")
    return agent


class _Thread:
    """A conversation of a caller with an agent."""

    def __init__(self, server: RunServer, caller: str, agent: str, name: str) -> None:
        self.server = server
        self.caller = caller
        self.agent = agent
        self._name = name

    async def run(self, run_id: str) -> RunRecord | None:
        """Return one of its runs; ``None``: it does not exist."""
        try:
            record = await self.server.get(run_id, caller=self.caller)
        except RunNotFound:
            return None
        return record if (record.agent, record.thread) == (self.agent, self._name) else None

    async def runs(self) -> list[RunRecord]:
        """Return its last runs, latest first."""
        records = await self.server.runs(caller=self.caller, thread=self._name, limit=LOOKED_AT)
        return [record for record in records if record.agent == self.agent]

    async def answer(self, run_id: str, question_id: str, answer: Answer) -> None:
        """Answer a question, unless it is answered: the same request may be repeated."""
        with suppress(QuestionClosed):
            await self.server.answer(run_id, question_id, answer, caller=self.caller)

    def stream(
        self, form: FrontEndFormat, cuts: Sequence[int] = (), answered: Collection[str] = ()
    ) -> EventStream:
        """Answer with a part of a run; see `segment_events`."""
        events = segment_events(self.server, form, caller=self.caller, cuts=cuts, answered=answered)
        return EventStream(events, headers=form.headers)


# Chats of the Vercel AI SDK


async def _chat(server: RunServer, request: Request) -> ASGIApp:
    """Start a run with the user's message, or continue one after its questions."""
    agent = _agent_of(server, request)
    chat = await read_json(request, ChatRequest, server.limits.max_request)
    check_depth(thinkwell=None if chat.thinkwell is None else chat.thinkwell.output)
    thread = _Thread(server, caller_of(request.scope), agent, chat.id)
    said, answered = chat.answered, set[str]()
    record = None if said is None else await thread.run(said.run_id)
    if said is not None and record is not None:
        for question_id, given in said.given():
            # What the user leaves open by sending another message is denied.
            answer = MOVED_ON if given is None and chat.prompt is not None else given
            if answer is not None:
                answered.add(question_id)
                if record.status == "running":
                    await thread.answer(record.id, question_id, answer)
    if chat.prompt is not None:
        wanted, key = chat.start(agent, chat.prompt)
        records = [] if key is None else await thread.runs()
        run = next((record for record in records if record.key == key), None)
        if run is None:
            run = await server.start(wanted, caller=thread.caller, key=key)
        return thread.stream(AiSdkFormat(run, stops=True))
    if said is None or record is None:
        raise RequestInvalid(
            "messages: the last one is neither the user's nor a run of this chat that could continue"
        )
    form = AiSdkFormat(record, stops=True, answered=answered)
    return thread.stream(form, said.cuts(record.last_seq), answered)


async def _resume_chat(server: RunServer, request: Request) -> ASGIApp:
    """Send the last run, which the client of a chat may have missed."""
    agent, chat = _agent_of(server, request), request.path_params["chat"]
    thread = _Thread(server, caller_of(request.scope), agent, chat)
    run_id = request.query_params.get("run")
    if run_id is None:
        record = next(filter(_may_be_missed, await thread.runs()), None)
    else:
        record = await thread.run(run_id)
    if record is None:
        return Response(status_code=204, headers={"Cache-Control": "no-store"})
    return thread.stream(AiSdkFormat(record, stops=True))


def _may_be_missed(record: RunRecord) -> bool:
    return record.ended is None or time.time() - record.ended < RECENT


# Clients of AG-UI


class _RunRefused(Exception):  # noqa: N818 - it is no error of ours
    """A request is refused by an event of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


async def _run_agent(server: RunServer, request: Request) -> ASGIApp:
    """Start a run with the user's message, or continue one after its questions."""
    agent = _agent_of(server, request)
    wanted = await read_json(request, RunInput, server.limits.max_request)
    check_depth(forwardedProps=wanted.forwarded_props)
    thread = _Thread(server, caller_of(request.scope), agent, wanted.thread_id)
    try:
        given = wanted.given()
        answered = {point.question_id for point in given}
        begin = max((point.seq for point in given), default=0)
        record = await _take_answers(thread, given, begin) if given else None
        if record is None or wanted.moves_on(record):
            record, begin, answered = await _started(thread, wanted, answered), 0, set[str]()
    except _RunRefused as exc:
        # Clients expect an event if the protocol has one (AG-UI, concepts/interrupts, error handling).
        run = {"threadId": wanted.thread_id, "runId": wanted.run_id, "protocolVersion": PROTOCOL}
        error = {"message": exc.message, "code": exc.code}
        return EventStream(_written({"type": "RUN_STARTED", **run}, {"type": "RUN_ERROR", **error}))
    form = AgUiFormat(
        record,
        thread=wanted.thread_id,
        run=wanted.run_id,
        state=wanted.state if _is_shallow(wanted.state) else None,
        messages=wanted.messages if _is_shallow(wanted.messages) else (),
        begin=begin,
        stops=True,
    )
    return thread.stream(form, [begin] if begin else [], answered)


async def _started(thread: _Thread, wanted: RunInput, answered: Container[str]) -> RunRecord:
    """Start a run, unless the same request has started one.

    Raises:
        _RunRefused: The client has to answer a question of the current one first.
    """
    earlier, key = await thread.runs(), wanted.key(thread.agent)
    known = next((record for record in earlier if record.key == key), None)
    if known is not None:
        return known
    for record in earlier:
        if record.status == "running":  # the new one would wait for it
            _, asked = await _asked(thread.server.journal, record)
            waiting = [question for question in asked.values() if question.id not in answered]
            for question in waiting:
                if call_of_front_end(question) is None:
                    raise _RunRefused(
                        "interrupts_pending",
                        f"the conversation waits for an answer: {question.title[:SHOWN]!r}; "
                        "send it as resume, or answer it elsewhere",
                    )
            for question in waiting:
                await thread.answer(record.id, question.id, MOVED_ON)
    run = wanted.start(thread.agent, is_first=not earlier)
    return await thread.server.start(run, caller=thread.caller, key=key, tools=wanted.offered())


async def _take_answers(
    thread: _Thread, given: Mapping[Point, Resume | ToolMessage], begin: int
) -> RunRecord:
    """Answer the questions of a run, and return it.

    Args:
        thread: The conversation.
        given: The answers.
        begin: The entry after which the stream continues.

    Raises:
        _RunRefused: They do not fit its questions.
    """
    run_id, *others = {point.run_id for point in given}
    record = await thread.run(run_id)
    if others or record is None or begin > record.last_seq:
        raise _RunRefused("interrupt_unknown", "resume: no run of this conversation has asked that")
    asked, still_open = await _asked(thread.server.journal, record, begin)
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
            if call_of_front_end(asked[id_]) is None
        ]
        if missing:
            what = f"resume: there is no answer to {missing[0][:SHOWN]!r}"
            raise _RunRefused("interrupts_pending", what)
        for question_id, answer in answers:
            try:
                await thread.answer(record.id, question_id, answer)
            except RequestInvalid as exc:  # the question stays open
                raise _RunRefused("answer_invalid", exc.message) from None
    return record


async def _asked(
    journal: Journal, record: RunRecord, seq: int = 0
) -> tuple[dict[str, ev.QuestionAsked], dict[str, ev.QuestionAsked]]:
    """Return the questions that were open after an entry, and those that are open now."""
    then: dict[str, ev.QuestionAsked] = {}
    asked: dict[str, ev.QuestionAsked] = {}
    last = 0
    while entries := await journal.read(record.id, last):
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
    if question is None or isinstance(said, ToolMessage) != (call_of_front_end(question) is not None):
        raise _RunRefused("interrupt_unknown", f"resume: the run has not asked {point.id!r}")
    try:
        return question.id, said.answer(question)
    except RequestInvalid as exc:
        raise _RunRefused("answer_invalid", exc.message) from None


async def _written(*events: Mapping[str, object]) -> AsyncGenerator[bytes]:
    for event in events:
        yield sse_frame(msgspec.json.encode(event))
