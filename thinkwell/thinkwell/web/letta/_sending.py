"""Messages that a client sends: what starts a run, and what decides about a call that waits."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

from thinkwell._display.text import line
from thinkwell._json_schema import is_object
from thinkwell.questions import FormValue, Reply
from thinkwell.web._front_end_tools import front_end_tools, result_form
from thinkwell.web._http import check_depth
from thinkwell.web._refusals import AnswerRefused, QuestionClosed
from thinkwell.web._requests import StartRun, TextPart
from thinkwell.web.letta._carrying import client_call
from thinkwell.web.letta._failures import BadRequest, Busy
from thinkwell.web.letta._history import pending_calls
from thinkwell.web.letta._incoming import read_incoming
from thinkwell.web.letta._segments import Options, Segment
from thinkwell.web.letta._streaming import BY
from thinkwell.web.letta._turns import Turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from thinkwell.events import JsonValue
    from thinkwell.questions import Answer
    from thinkwell.web._requests import ImagePart
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._bodies import ClientSkill, SendMessages
    from thinkwell.web.letta._incoming import Decision, Incoming
    from thinkwell.web.letta._mapping import Asked
    from thinkwell.web.letta._store import KeptAgent, Store

__all__ = ("Place", "Sender")

LATEST: Final = 20
"""Runs of a conversation among which a request is looked for that was sent again."""

TITLE: Final = 120
"""Characters of a run's title."""


class Place(Struct, frozen=True, kw_only=True):
    """Where a message is sent to."""

    caller: str
    agent: KeptAgent
    conversation: str | None = None
    """Id of the conversation; ``None``: the agent's default one."""

    @property
    def thread(self) -> str:
        """What the runs call the conversation."""
        return self.conversation or self.agent.id


class _LastAnswer(Struct, frozen=True, kw_only=True):
    """The last decision in a conversation."""

    token: str
    """What tells the request from others."""
    run: str
    """Id of the part of a run that it has begun."""
    options: Options


class _Lock:
    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.users = 0


class Sender:
    """Takes what clients send, one request of a conversation at a time.

    Args:
        server: Where runs are.
    """

    def __init__(self, server: RunServer) -> None:
        self._server = server
        self._locks: dict[tuple[str, str], _Lock] = {}

    async def send(
        self, place: Place, body: SendMessages, options: Options, store: Store
    ) -> tuple[Segment, Options]:
        """Do what a request wants. The same request again does nothing more.

        Returns:
            The part of a run that answers it, and how that is told.

        Raises:
            RequestInvalid: It means nothing.
            BadRequest: It decides what is not asked.
            Busy: The conversation has a run that goes on, or waits for a decision.
            Refusal: See `RunServer.start`.
        """
        incoming = read_incoming(body)
        async with self._alone(place):
            if incoming.decisions:
                return await self._decide(place, incoming, options, store)
            return await self._start(place, incoming, body, options)

    async def last_segment(self, place: Place, store: Store) -> tuple[Segment, Options] | None:
        """Return the part of a run that the last decision in a conversation has begun."""
        last = await _last_answer(place, store)
        segment = None if last is None else Segment.of(last.run)
        return None if last is None or segment is None else (segment, last.options)

    @asynccontextmanager
    async def _alone(self, place: Place) -> AsyncGenerator[None]:
        """Keep other requests of the same conversation out for the time of a block."""
        key = place.caller, place.thread
        held = self._locks.setdefault(key, _Lock())
        held.users += 1
        try:
            async with held.lock:
                yield
        finally:
            held.users -= 1
            if not held.users:
                del self._locks[key]

    # Something to do

    async def _start(
        self, place: Place, incoming: Incoming, body: SendMessages, options: Options
    ) -> tuple[Segment, Options]:
        offered = [(tool.name, tool.description or "", tool.parameters) for tool in body.client_tools or ()]
        check_depth(client_tools=[parameters for _, _, parameters in offered])
        tools = front_end_tools(offered)
        server, caller, thread = self._server, place.caller, place.thread
        key = f"letta:{thread}:{_token(incoming)}" if incoming.otids else None
        known = await server.runs(caller=caller, thread=thread, limit=LATEST)
        for record in known:
            turn = Turn.of(record)
            if key is not None and record.key == key and turn is not None:
                return Segment(run=record.id), turn.options
        await self._check_free(place)
        skills = _digest(body.client_skills) if body.client_skills else None
        before = Turn.of(known[0]) if known else None
        prompt = incoming.prompt
        if body.client_skills and skills != (before and before.skills):
            prompt = (*_ended(prompt), TextPart(text=_skills_told(body.client_skills)))
        turn = Turn(
            agent=place.agent.id,
            conversation=place.conversation,
            said=incoming.said,
            otids=incoming.otids,
            options=options,
            skills=skills,
        )
        request = StartRun(
            prompt=prompt,
            agent=place.agent.agent,
            folder=place.agent.folder,
            permissions=place.agent.permissions,
            thread=thread,
            title=_title(incoming),
            meta=turn.meta,
        )
        record = await server.start(request, caller=caller, key=key, tools=tools)
        return Segment(run=record.id), (Turn.of(record) or turn).options

    async def _check_free(self, place: Place) -> None:
        running = await self._server.runs(caller=place.caller, thread=place.thread, status="running", limit=1)
        if not running:
            return
        run_id = running[0].id
        if await pending_calls(self._server.journal, run_id):
            raise Busy(
                "The agent is waiting for approval on a tool call; approve or deny it before you send more: "
                f"run_id={run_id}",
                run_id,
            )
        raise Busy(
            "Another message is currently being processed for this conversation; wait for its run, or cancel "
            f"it: run_id={run_id}",
            run_id,
        )

    # Decisions

    async def _decide(
        self, place: Place, incoming: Incoming, options: Options, store: Store
    ) -> tuple[Segment, Options]:
        token = _token(incoming) if incoming.otids else ""
        last = await _last_answer(place, store)
        if token and last is not None and last.token == token:
            segment = Segment.of(last.run)
            assert segment is not None
            return segment, last.options
        running = await self._server.runs(caller=place.caller, thread=place.thread, status="running", limit=1)
        pending = await pending_calls(self._server.journal, running[0].id) if running else []
        if not pending:
            raise BadRequest(
                "No tool call is currently awaiting approval; it was decided already, or the run has ended. "
                "GET the messages of the agent to see how things stand"
            )
        decided = _matched(pending, incoming.decisions)
        answers: list[tuple[str, Answer]] = [
            (asked.question.id, _answer(asked, decision)) for asked, decision in decided
        ]
        run_id, asked_last = running[0].id, decided[-1][0]
        segment = Segment(run=run_id, after=asked_last.question.seq)
        # Before it is answered: the same request may come again while that goes on, in another process too.
        kept = _LastAnswer(token=token, run=segment.id, options=options)
        await store.keep_answer(place.thread, msgspec.json.encode(kept))
        for question_id, answer in answers:
            try:
                await self._server.answer(run_id, question_id, answer, caller=place.caller, by=BY)
            except QuestionClosed:
                await store.keep_answer(place.thread, None)
                raise BadRequest(
                    "No tool call is currently awaiting approval; somebody else has just decided"
                ) from None
            except AnswerRefused:
                await store.keep_answer(place.thread, None)
                raise
        return segment, options


async def _last_answer(place: Place, store: Store) -> _LastAnswer | None:
    data = await store.last_answer(place.thread)
    return None if data is None else msgspec.json.decode(data, type=_LastAnswer)


def _token(incoming: Incoming) -> str:
    """Return what tells a request from others: the names of all of its messages."""
    return hashlib.sha256("\0".join(incoming.otids).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _title(incoming: Incoming) -> str | None:
    """Return what lists call a run: what was said last. Clients put other things before it."""
    texts = [part.text.strip() for part in incoming.prompt if isinstance(part, TextPart)]
    said = [text for text in texts if text]
    return line(said[-1].partition("\n")[0], TITLE) if said else None


def _digest(skills: Sequence[ClientSkill]) -> str:
    return hashlib.sha256(msgspec.json.encode(skills)).hexdigest()[:16]


def _skills_told(skills: Sequence[ClientSkill]) -> str:
    rows = [f"- {skill.name}: {skill.description} ({skill.location})" for skill in skills]
    return "\n".join(("<client_skills>", *rows, "</client_skills>"))


def _ended(prompt: tuple[TextPart | ImagePart, ...]) -> tuple[TextPart | ImagePart, ...]:
    """Return a prompt behind which another paragraph can stand."""
    *most, last = prompt
    return (*most, TextPart(text=f"{last.text}\n\n") if isinstance(last, TextPart) else last)


def _matched(pending: list[Asked], decisions: Sequence[Decision]) -> list[tuple[Asked, Decision]]:
    """Return the questions that are decided, in order.

    Raises:
        BadRequest: One is not asked, or an older one is left open. A stream ends with the oldest one.
    """
    waiting = ", ".join(asked.tool_call_id for asked in pending)
    whichever = next((decision for decision in decisions if decision.tool_call_id is None), None)
    left = {decision.tool_call_id: decision for decision in decisions if decision.tool_call_id is not None}
    decided: list[tuple[Asked, Decision]] = []
    for asked in pending:
        decision = left.pop(asked.tool_call_id, whichever)
        if decision is None:
            break
        decided.append((asked, decision))
    if left or not decided:
        raise BadRequest(f"Invalid tool call IDs; these wait for approval, the first one first: {waiting}")
    return decided


def _answer(asked: Asked, decision: Decision) -> Answer:
    """Return a decision as an answer to its question.

    Raises:
        BadRequest: It is none.
    """
    question, returned = asked.question, decision.returned
    called = client_call(question)
    if called is not None:
        if returned is None and decision.approve:
            raise BadRequest(
                f"The tool {called.name} is run by the client: send what it has returned for tool call "
                f"{asked.tool_call_id}, or deny it"
            )
        if decision.approve:
            return result_form(returned, None)
        return result_form("", decision.reason or returned or "The call was denied")
    why = decision.reason or (None if decision.approve else returned)
    if question.asks == "form" and decision.approve and returned is not None:
        return _values(asked, returned)
    return decision.approve if why is None else Reply(decision.approve, why)


def _values(asked: Asked, returned: str) -> dict[str, FormValue | None]:
    """Return what a form is filled in with: a JSON object, or the text of its only field.

    Raises:
        BadRequest: It cannot be read.
    """
    fields = asked.question.fields
    try:
        values: JsonValue = msgspec.json.decode(returned)
    except ValueError:  # it is a text
        values = None
    if is_object(values):
        try:
            return msgspec.convert(values, dict[str, FormValue | None])
        except msgspec.ValidationError as exc:
            raise BadRequest(f"The form cannot be filled in with that: {exc}") from None
    if len(fields) == 1:
        return {fields[0].name: returned}
    names = ", ".join(field.name for field in fields)
    raise BadRequest(f"The form has several fields: return a JSON object with {names}")
