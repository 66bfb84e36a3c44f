"""Sending messages: they start a run, or decide about a waiting call."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell._display.text import line
from thinkwell.web._http import check_depth
from thinkwell.web._refusals import AnswerRefused, QuestionClosed
from thinkwell.web._requests import ImagePart, StartRun, TextPart, check_request
from thinkwell.web.front_ends._tools import front_end_tools
from thinkwell.web.letta._deciding import answer_of, matched
from thinkwell.web.letta._failures import BadRequest, Busy
from thinkwell.web.letta._history import read_run, running_in
from thinkwell.web.letta._incoming import read_incoming
from thinkwell.web.letta._mapping import Asked
from thinkwell.web.letta._segments import Options, Segment
from thinkwell.web.letta._turns import BY, Turn, shortened

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from thinkwell.journal import RunRecord
    from thinkwell.questions import Answer
    from thinkwell.tools import Tool
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._bodies import ClientSkill, SendMessages
    from thinkwell.web.letta._incoming import Incoming
    from thinkwell.web.letta._store import KeptAgent, Store

LATEST: Final = 100
"""Runs of a conversation that are searched for a repeated request."""

TRIES: Final = 10
"""How often starting a run is tried if other runs come first."""

TITLE: Final = 120
"""Characters of a run's title."""


class Place(Struct, frozen=True, kw_only=True):
    """The recipient of a message."""

    caller: str
    agent: KeptAgent
    conversation: str | None = None
    """Id of the conversation; ``None``: the agent's default one."""

    @property
    def thread(self) -> str:
        """The name of the conversation in runs."""
        return self.conversation or self.agent.id


class _LastAnswer(Struct, frozen=True, kw_only=True):
    """The last decision in a conversation."""

    token: str
    """The identity of the request."""
    run: str
    """Id of the part of a run that it has begun."""
    options: Options


class _Wanted(Struct, frozen=True, kw_only=True):
    """A run to start."""

    prompt: tuple[TextPart | ImagePart, ...]
    title: str | None
    tools: list[Tool]
    skills: tuple[ClientSkill, ...]
    turn: Turn


class _Lock:
    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.users = 0


class Sender:
    """Handles the messages of clients, one request of a conversation at a time.

    Args:
        server: The server of the runs.
    """

    def __init__(self, server: RunServer) -> None:
        self._server = server
        self._locks: dict[tuple[str, str], _Lock] = {}

    async def send(
        self, place: Place, body: SendMessages, options: Options, store: Store
    ) -> tuple[Segment, Options]:
        """Handle a request. A repeated request has no further effect.

        Returns:
            The part of a run that answers it, and the form of the answer.

        Raises:
            RequestInvalid: It is invalid.
            BadRequest: It decides about a question that is not open.
            Busy: The conversation has a run that is running or waits for a decision.
            Refusal: See `RunServer.start`.
        """
        incoming = read_incoming(body)
        async with self._alone(place):
            if not incoming.decisions:
                return await self._start(place, self._wanted(place, incoming, body, options))
            behind = self._wanted(place, incoming, body, options) if incoming.said else None
            segment, told = await self._decide(place, incoming, options, store)
            if (
                behind is not None
            ):  # it gets its turn when that run has ended, and the answer follows that one
                behind = replace(behind, turn=replace(behind.turn, follows=segment.run))
                await self._start(place, behind, alone=False)
            return segment, told

    async def last_segment(self, place: Place, store: Store) -> tuple[Segment, Options] | None:
        """Return the part of a run that the last decision in a conversation has begun."""
        last = await _last_answer(place, store)
        segment = None if last is None else Segment.of(last.run)
        return None if last is None or segment is None else (segment, last.options)

    @asynccontextmanager
    async def _alone(self, place: Place) -> AsyncGenerator[None]:
        """Exclude other requests of the same conversation during a block."""
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

    # Tasks

    def _wanted(self, place: Place, incoming: Incoming, body: SendMessages, options: Options) -> _Wanted:
        offered = [(tool.name, tool.description or "", tool.parameters) for tool in body.client_tools or ()]
        check_depth(client_tools=[parameters for _, _, parameters in offered])
        skills = body.client_skills or ()
        wanted = _Wanted(
            prompt=incoming.prompt,
            title=_title(incoming),
            tools=front_end_tools(offered),
            skills=tuple(skills),
            turn=Turn(
                token=secrets.token_hex(8),
                agent=place.agent.id,
                conversation=place.conversation,
                said=shortened(incoming.said),
                otids=incoming.otids,
                options=options,
                skills=_digest(skills) if skills else None,
            ),
        )
        check_request(self._request(place, wanted), self._server.agents)  # before any decision
        return wanted

    def _request(self, place: Place, wanted: _Wanted) -> StartRun:
        return StartRun(
            prompt=wanted.prompt,
            agent=place.agent.agent,
            folder=place.agent.folder,
            permissions=place.agent.permissions,
            thread=place.thread,
            title=wanted.title,
            meta=wanted.turn.meta,
        )

    async def _start(self, place: Place, wanted: _Wanted, *, alone: bool = True) -> tuple[Segment, Options]:
        """Start a run, unless the same request has started one.

        Args:
            place: The recipient.
            wanted: The run.
            alone: Whether no other may be running or waiting there.

        Raises:
            Busy: Another one is.
            Refusal: See `RunServer.start`.
        """
        last: RunRecord | None = None
        for _ in range(TRIES):
            known = await self._server.runs(caller=place.caller, thread=place.thread, limit=LATEST)
            again = wanted.turn.again(known)
            if again is not None:
                return Segment(run=again[0].id), again[1].options
            if alone:
                await self._check_free(place)
            last = known[0] if known else None
            begun = await self._begin(place, wanted, last)
            if begun is not None:
                return begun
        raise Busy(
            "Other messages were always first in this conversation; send it again later",
            "" if last is None else last.id,
        )

    async def _begin(
        self, place: Place, wanted: _Wanted, last: RunRecord | None
    ) -> tuple[Segment, Options] | None:
        """Start a run after the last one of a conversation; ``None``: another one was first."""
        before = None if last is None else Turn.of(last)
        if wanted.skills and wanted.turn.skills != (before and before.skills):
            told = TextPart(text=_skills_told(wanted.skills))
            wanted = replace(wanted, prompt=(*_ended(wanted.prompt), told))
        # Of several after the same run the journal starts one, on any server.
        key = f"letta:{place.thread}:{'' if last is None else last.id}"
        record = await self._server.start(
            self._request(place, wanted), caller=place.caller, key=key, tools=wanted.tools
        )
        turn = Turn.of(record)
        if turn is None or turn.token != wanted.turn.token:
            return None
        return Segment(run=record.id), turn.options

    async def _check_free(self, place: Place) -> None:
        running = await self._running(place)
        if not running:
            return
        for record in running:
            if (await read_run(self._server.journal, record)).pending:
                raise Busy(
                    "The agent is waiting for approval on a tool call; approve or deny it before you send "
                    f"more: run_id={record.id}",
                    record.id,
                )
        run_id = running[0].id
        raise Busy(
            "Another message is currently being processed for this conversation; wait for its run, or cancel "
            f"it: run_id={run_id}",
            run_id,
        )

    async def _running(self, place: Place) -> list[RunRecord]:
        """Return the running and waiting runs of a conversation, in order."""
        return await running_in(self._server, caller=place.caller, thread=place.thread)

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
        run_id, pending = "", list[Asked]()
        for record in await self._running(place):
            run_id, pending = record.id, (await read_run(self._server.journal, record)).pending
            if pending:
                break
        if not pending:
            raise BadRequest(
                "No tool call is currently awaiting approval; it was decided already, or the run has ended. "
                "GET the messages of the agent to see how things stand"
            )
        decided = matched(pending, incoming.decisions)
        answers: list[tuple[str, Answer]] = [
            (asked.question.id, answer_of(asked, decision)) for asked, decision in decided
        ]
        segment = Segment(run=run_id, after=decided[-1][0].question.seq)
        # Before it is answered: the request may be repeated meanwhile, in another process too.
        kept = _LastAnswer(token=token, run=segment.id, options=options)
        await store.keep_answer(place.thread, msgspec.json.encode(kept))
        for question_id, answer in answers:
            try:
                await self._server.answer(run_id, question_id, answer, caller=place.caller, by=BY)
            except QuestionClosed:
                await store.keep_answer(place.thread, None)
                raise BadRequest(
                    "No tool call is currently awaiting approval; it was just decided elsewhere"
                ) from None
            except AnswerRefused:
                await store.keep_answer(place.thread, None)
                raise
        return segment, options


async def _last_answer(place: Place, store: Store) -> _LastAnswer | None:
    data = await store.last_answer(place.thread)
    return None if data is None else msgspec.json.decode(data, type=_LastAnswer)


def _token(incoming: Incoming) -> str:
    """Return the identity of a request: the names of all its messages."""
    return hashlib.sha256("\0".join(incoming.otids).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _title(incoming: Incoming) -> str | None:
    """Return a title for lists: the last text. Clients put other things before it."""
    texts = [part.text.strip() for part in incoming.prompt if isinstance(part, TextPart)]
    said = [text for text in texts if text]
    return line(said[-1].partition("\n")[0], TITLE) if said else None


def _digest(skills: Sequence[ClientSkill]) -> str:
    return hashlib.sha256(msgspec.json.encode(skills)).hexdigest()[:16]


def _skills_told(skills: Sequence[ClientSkill]) -> str:
    rows = [f"- {skill.name}: {skill.description} ({skill.location})" for skill in skills]
    return "\n".join(("<client_skills>", *rows, "</client_skills>"))


def _ended(prompt: tuple[TextPart | ImagePart, ...]) -> tuple[TextPart | ImagePart, ...]:
    """Return a prompt after which another paragraph can follow."""
    *most, last = prompt
    return (*most, TextPart(text=f"{last.text}\n\n") if isinstance(last, TextPart) else last)
