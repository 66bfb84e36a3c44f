"""Sending messages: they start a run, or decide about a waiting call."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell._display.text import line
from thinkwell.web._http import check_depth
from thinkwell.web._refusals import AnswerRefused, QuestionClosed
from thinkwell.web._requests import ImagePart, StartRun, TextPart, check_request
from thinkwell.web.front_ends._tools import front_end_tools
from thinkwell.web.letta._failures import BadRequest, Busy
from thinkwell.web.letta._history import first_waiting, running_in
from thinkwell.web.letta._incoming import read_incoming
from thinkwell.web.letta._questions import answer_of, matched
from thinkwell.web.letta._segments import LastAnswer, Segment
from thinkwell.web.letta._turns import BY, Turn, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.journal import RunRecord
    from thinkwell.questions import Answer
    from thinkwell.tools import Tool
    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._bodies import ClientSkill, SendMessages
    from thinkwell.web.letta._incoming import Incoming
    from thinkwell.web.letta._segments import Options
    from thinkwell.web.letta._store import KeptAgent, Store

LATEST: Final = 100
"""Runs of a conversation that are searched for a repeated request."""

TRIES: Final = 10
"""How often starting a run is tried if other runs come first."""

TITLE: Final = 120
"""Characters of a run's title."""


class Place(Struct, frozen=True, kw_only=True):
    """The recipient of a message."""

    store: Store
    """That of the caller."""
    agent: KeptAgent
    conversation: str | None = None
    """Id of the conversation; ``None``: the agent's default one."""

    @property
    def caller(self) -> str:
        """The caller."""
        return self.store.caller

    @property
    def thread(self) -> str:
        """The name of the conversation in runs."""
        return self.conversation or self.agent.id


class _Wanted(Struct, frozen=True, kw_only=True):
    """A run to start."""

    prompt: tuple[TextPart | ImagePart, ...]
    """Its paragraphs."""
    request: StartRun
    """All of it but the client's skills, and the turn as its `meta`."""
    turn: Turn
    tools: list[Tool]
    skills: Sequence[ClientSkill]


class Sender:
    """Handles the messages of clients, one request of a conversation at a time.

    Args:
        server: The server of the runs.
    """

    def __init__(self, server: RunServer) -> None:
        self._server = server
        self._locks = WeakValueDictionary[tuple[str, str], anyio.Lock]()
        """The locks of the conversations that have a request."""

    async def send(self, place: Place, body: SendMessages, options: Options) -> tuple[Segment, Options]:
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
        lock = self._locks.setdefault((place.caller, place.thread), anyio.Lock())
        async with lock:
            if not incoming.decisions:
                return await self._start(place, self._wanted(place, incoming, body, options))
            behind = self._wanted(place, incoming, body, options) if incoming.said else None
            segment, told = await self._decide(place, incoming, options)
            if behind is not None:
                # It gets its turn when that run has ended, and the answer follows that one.
                behind = replace(behind, turn=replace(behind.turn, follows=segment.run))
                await self._start(place, behind, alone=False)
            return segment, told

    # Tasks

    def _wanted(self, place: Place, incoming: Incoming, body: SendMessages, options: Options) -> _Wanted:
        offered = [(tool.name, tool.description or "", tool.parameters) for tool in body.client_tools or ()]
        check_depth(client_tools=[parameters for _, _, parameters in offered])
        skills = body.client_skills or ()
        wanted = _Wanted(
            prompt=incoming.prompt,
            request=StartRun(
                prompt=incoming.prompt,
                agent=place.agent.agent,
                folder=place.agent.folder,
                permissions=place.agent.permissions,
                thread=place.thread,
                title=_title(incoming),
            ),
            turn=Turn(
                token=secrets.token_hex(8),
                agent=place.agent.id,
                conversation=place.conversation,
                said=shortened(incoming.said),
                otids=incoming.otids,
                options=options,
                skills=_digest(skills) if skills else None,
            ),
            tools=front_end_tools(offered),
            skills=skills,
        )
        check_request(wanted.request, self._server.agents)  # before any decision
        return wanted

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
        last_id, turn = "", wanted.turn
        for _ in range(TRIES):
            known = await self._server.runs(caller=place.caller, thread=place.thread, limit=LATEST)
            again = turn.again(known)
            if again is not None:
                return Segment(run=again[0].id), again[1].options
            if alone:
                await self._check_free(place)
            before = None
            if known:
                last_id, before = known[0].id, Turn.of(known[0])
            parts = [*wanted.prompt]
            if wanted.skills and turn.skills != (before and before.skills):
                parts.append(TextPart(text=_skills_told(wanted.skills)))
            request = replace(wanted.request, prompt=_paragraphs(parts), meta=turn.meta)
            # Of several after the same run the journal starts one, on any server.
            key = f"letta:{place.thread}:{last_id}"
            record = await self._server.start(request, caller=place.caller, key=key, tools=wanted.tools)
            begun = Turn.of(record)
            if begun is not None and begun.token == turn.token:
                return Segment(run=record.id), turn.options
        raise Busy("Other messages were always first in this conversation; send it again later", last_id)

    async def _check_free(self, place: Place) -> None:
        running = await self._running(place)
        waiting = await first_waiting(self._server.journal, running)
        if waiting is not None:
            run_id = waiting[0].id
            raise Busy(
                "The agent is waiting for approval on a tool call; approve or deny it before you send "
                f"more: run_id={run_id}",
                run_id,
            )
        if running:
            run_id = running[0].id
            raise Busy(
                "Another message is currently being processed for this conversation; wait for its run, or "
                f"cancel it: run_id={run_id}",
                run_id,
            )

    async def _running(self, place: Place) -> list[RunRecord]:
        """Return the running and waiting runs of a conversation, in order."""
        return await running_in(self._server, caller=place.caller, thread=place.thread)

    # Decisions

    async def _decide(self, place: Place, incoming: Incoming, options: Options) -> tuple[Segment, Options]:
        store = place.store
        token = _token(incoming) if incoming.otids else ""
        last = await store.last_answer(place.thread)
        if token and last is not None and last.token == token:
            return last.segment, last.options
        waiting = await first_waiting(self._server.journal, await self._running(place))
        if waiting is None:
            raise BadRequest(
                "No tool call is currently awaiting approval; it was decided already, or the run has ended. "
                "GET the messages of the agent to see how things stand"
            )
        run_id, decided = waiting[0].id, matched(waiting[1].pending, incoming.decisions)
        answers: list[tuple[str, Answer]] = [
            (asked.question.id, answer_of(asked, decision)) for asked, decision in decided
        ]
        segment = Segment(run=run_id, after=decided[-1][0].question.seq)
        # Before it is answered: the request may be repeated meanwhile, in another process too.
        await store.keep_answer(place.thread, LastAnswer(token=token, run=segment.id, options=options))
        try:
            for question_id, answer in answers:
                await self._server.answer(run_id, question_id, answer, caller=place.caller, by=BY)
        except AnswerRefused:
            await store.keep_answer(place.thread, None)
            raise
        except QuestionClosed:
            await store.keep_answer(place.thread, None)
            raise BadRequest(
                "No tool call is currently awaiting approval; it was just decided elsewhere"
            ) from None
        return segment, options


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


def _paragraphs(parts: Sequence[TextPart | ImagePart]) -> tuple[TextPart | ImagePart, ...]:
    """Return parts for an agent: each text is a paragraph."""
    *most, last = parts
    ended = (TextPart(text=f"{part.text}\n\n") if isinstance(part, TextPart) else part for part in most)
    return (*ended, last)
