"""The same supervised task over ACP and in lines gives the same transcript."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest
from listen.talkers import LIMIT, LineTurn, talking
from pydantic import BaseModel

from thinkwell import ChooseOption, Reply, open_agent
from thinkwell.listen import AgentApproval, AgentPartial, AgentQuestion, Handlers, Transcript, listen
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from listen.talkers import Json, Protocol, Turn

    from thinkwell import Agent, Question
    from thinkwell.events import JsonValue

pytestmark = pytest.mark.anyio

ALGORITHM = "RS256 or HS256?"
MINUTES = "How many minutes is a token valid?"
TEST = "Which test comes first?"
DELETE = "Delete auth/session.py"
MAKE = "Run make test"

TITLES = (ALGORITHM, MINUTES, DELETE, TEST, MAKE)
KINDS = ("question", "question", "approval", "question", "approval")


class Report(BaseModel):
    summary: str
    files: list[str]


def form(*options: str) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", **({"enum": list(options)} if options else {})}
    return {"type": "object", "properties": {"answer": field}, "required": ["answer"]}


def over_acp(kind: str, told: JsonValue) -> Any:
    """Return the form or option that answers over ACP what this value answers in lines."""
    if kind == "question":
        return "decline" if told is None else {"answer": f"{told}"}
    return "allow_once" if told in (True, "yes") else "reject_once"


def scripted(told: Sequence[JsonValue]) -> ScriptedAgent:
    """Return an agent that does over ACP what the program does, and expects to be told the same."""
    algorithm, minutes, deleted, first, tested = map(over_acp, KINDS, told)
    return ScriptedAgent(
        script.uses("Reading 12 files", kind="read")
        .asks_form(ALGORITHM, form("RS256", "HS256"), expect=algorithm)
        .asks_form(MINUTES, form(), expect=minutes)
        .asks(DELETE, kind="delete", expect=deleted)
        .uses("Writing tests", kind="edit")
        .asks_form(TEST, form(), expect=first)
        .asks(MAKE, kind="execute", expect=tested)
        .says("Auth is moved ")
        .says("to JWT.")
        .returns({"summary": "Auth is moved to JWT.", "files": ["auth/token.py"]})
    )


async def in_lines(turn: Turn) -> Json:
    """Do it in lines, and log in the end what it was told."""
    assert isinstance(turn, LineTurn)
    told: list[object] = []

    async def ask(kind: str, **fields: object) -> None:
        told.append(await (await turn.asks_else(kind, **fields)).answer())

    async def say(kind: str, **fields: object) -> None:
        await turn.talker.send({"type": kind, **fields})

    await say("progress", message="Reading 12 files", stage="read", percent=10)
    await ask("question", question=ALGORITHM, options=["RS256", "HS256"], context="JWT signing")
    await ask("question", question=MINUTES)
    await ask("approval", description=DELETE, risk_level="high")
    await say("progress", message="Writing tests", stage="write", percent=60)
    await ask("question", question=TEST)
    await ask("approval", description=MAKE, risk_level="low")
    await turn.partial("Auth is moved ")
    await turn.partial("to JWT.")
    await say("log", message=json.dumps(told), level="debug")
    return {"summary": "Auth is moved to JWT.", "files": ["auth/token.py"]}


@asynccontextmanager
async def opened(
    protocol: Protocol, told: Sequence[JsonValue], folder: Path | None, **options: Any
) -> AsyncGenerator[Agent]:
    """Open the agent in memory; where there is a folder, as a process."""
    if protocol == "ndjson":
        async with talking("ndjson", in_lines, **options) as (agent, _talker):
            yield agent
    elif folder is not None:
        played = scripted(told)
        async with open_agent(command=played.program(folder), **options) as agent:
            yield agent
        played.check()
    else:
        async with scripted(told).open(**options) as agent:
            yield agent


class Supervision(NamedTuple):
    """The handlers, and the answer to each of the five questions and its source."""

    handlers: Callable[[Handlers], None]
    told: Sequence[JsonValue]
    """What a program is told."""
    by: Sequence[str]
    on_question: Callable[[Question], Any] | None = None


def by_architect(handlers: Handlers) -> None:
    """A rule for everything, by typed handlers."""

    @handlers.on("question", by="architect")
    async def _(question: AgentQuestion) -> str:
        if question.options:
            return question.options[0]
        return "15" if "minutes" in question.question else "expired tokens"

    @handlers.on("approval", by="doorman")
    def _(approval: AgentApproval) -> bool:
        return approval.description == MAKE


def by_all_sorts(handlers: Handlers) -> None:
    """All the forms that an answer has."""

    @handlers.on("question", by="architect")
    def _(question: dict[str, Any]) -> object:
        match question["question"]:
            case "RS256 or HS256?":
                return Reply("HS256", "it is simpler", by="junior")
            case "How many minutes is a token valid?":
                return 30
            case _:
                return None

    @handlers.on("approval", by="doorman")
    async def _(approval: AgentApproval) -> object:
        return "Rename it instead" if approval.description == DELETE else Reply("yes", "", by="ci")


def leaves_all(handlers: Handlers) -> None:
    """Nobody has an answer, so the next is asked."""

    @handlers.on("question", by="architect")
    async def _(_question: AgentQuestion) -> None:
        return None

    @handlers.on("approval", by="doorman")
    async def _(_approval: AgentApproval) -> None:
        return None


def hears_nothing(_handlers: Handlers) -> None:
    """No handler for anything that is asked."""


async def house_rules(question: Question) -> object:
    match question.title:
        case "RS256 or HS256?":
            return {"answer": "RS256"}
        case "Which test comes first?":
            return Reply({"answer": "the happy path"}, "as always", by="manual")
        case "Delete auth/session.py":
            return ChooseOption(question.options[-1].id)  # type: ignore[union-attr]
        case "Run make test":
            return "allow"
        case _:
            return None


async def silent(_question: Question) -> None:
    return None


BY_RULES = (
    ("RS256", None, False, "the happy path", True),
    ("handler", "policy", "handler", "manual", "handler"),
    house_rules,
)

SUPERVISED = {
    "each by a handler": Supervision(
        by_architect,
        ("RS256", "15", False, "expired tokens", True),
        ("architect", "architect", "doorman", "architect", "doorman"),
    ),
    "by answers of all sorts": Supervision(
        by_all_sorts,
        ("HS256", 30, "Rename it instead", "the happy path", "yes"),
        ("junior", "architect", "doorman", "manual", "ci"),
        house_rules,
    ),
    "by the next in the chain": Supervision(leaves_all, *BY_RULES),
    "without handlers": Supervision(hears_nothing, *BY_RULES),
    "without any answer": Supervision(
        hears_nothing, (None, None, False, None, False), ("policy",) * 5, silent
    ),
}


@pytest.mark.parametrize("who", ["acp", pytest.param("acp process", marks=pytest.mark.long), "ndjson"])
@pytest.mark.parametrize("supervision", SUPERVISED.values(), ids=SUPERVISED)
async def test_the_same_task_gives_the_same_transcript(
    supervision: Supervision, who: str, tmp_path: Path
) -> None:
    protocol: Protocol = "ndjson" if who == "ndjson" else "acp"
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)
    supervision.handlers(handlers)
    pieces: list[str] = []
    told: list[JsonValue] = []

    @handlers.on("partial")
    async def _(partial: AgentPartial) -> None:
        pieces.append(partial.text)

    @handlers.on("log")
    async def _(log: dict[str, Any]) -> None:
        if protocol == "ndjson":
            told.extend(json.loads(log["message"]))

    options: dict[str, Any] = {"permissions": "ask"}
    if supervision.on_question is not None:
        options["on_question"] = supervision.on_question
    with anyio.fail_after(LIMIT):
        folder = tmp_path if who == "acp process" else None
        async with opened(protocol, supervision.told, folder, **options) as agent:
            stream = agent.think(Report).text("Move auth to JWT.").stream()
            report = await listen(stream, handlers)
    assert report == Report(summary="Auth is moved to JWT.", files=["auth/token.py"])
    assert "".join(pieces) == "Auth is moved to JWT."
    said = [(record.kind, record.question, record.answer, record.by) for record in transcript]
    if protocol == "acp":  # a form there has fields with names, and lines have none
        said = [(kind, question, _plain(answer), by) for kind, question, answer, by in said]
    assert said == list(zip(KINDS, TITLES, supervision.told, supervision.by, strict=True))
    if protocol == "ndjson":
        assert told == list(supervision.told)
    assert len({record.run_id for record in transcript}) == 1
    assert [record.at for record in transcript] == sorted(record.at for record in transcript)
    assert all(0 <= record.seconds < LIMIT for record in transcript)


def _plain(answer: JsonValue) -> JsonValue:
    """Return what was filled in as the only field."""
    match answer:
        case {"answer": value, **others} if not others:
            return value
        case _:
            return answer
