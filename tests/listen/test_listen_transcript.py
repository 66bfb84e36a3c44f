"""`Transcript`: what was asked and answered, as a list, as a file, and as a document."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from listen.line_programs import form, program
from listen.talkers import SOON
from scripted import Turn, scripted

from thinkwell import PermissionPolicy, Rule
from thinkwell import events as ev
from thinkwell.listen import AgentApproval, AgentQuestion, Handlers, Record, Transcript, listen
from thinkwell.testing import virtual_backend
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

    from lines.program import Program

pytestmark = pytest.mark.anyio


def record(**fields: Any) -> Record:
    given: dict[str, Any] = {
        "kind": "question",
        "question": "Which?",
        "answer": "RS256",
        "by": "architect",
        "why": "it is usual",
        "seconds": 1.25,
        "at": datetime(2026, 1, 31, 12, 0, 0, 5, UTC),
        "agent": "worker",
        "run_id": "run-1",
        "question_id": "q1",
        **fields,
    }
    return Record(**given)


async def over_acp(handlers: Handlers, **options: Any) -> str:
    """Let an agent ask for a choice and for a permission, and return the id of the run."""

    async def play(turn: Turn) -> None:
        names = {"alg": s.StringPropertySchema(enum=("RS256", "HS256"))}
        await turn.client.create_elicitation(form(turn.session_id, names))
        await turn.client.request_permission(permission(turn.session_id))

    async with scripted(play, **options) as agent:
        stream = agent.think().text("Go").stream()
        with anyio.fail_after(SOON):
            await listen(stream, handlers)
    return stream.id


@pytest.mark.parametrize("anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")])
async def test_what_handlers_answer_is_written_down() -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)

    @handlers.on("question", by="architect")
    async def answer(question: AgentQuestion) -> str:
        await anyio.sleep(3)
        return "rs256"

    @handlers.on("approval", by="reviewer")
    async def approve(approval: AgentApproval) -> str:
        return "not in this folder"

    before = datetime.now(UTC)
    run_id = await over_acp(handlers, permissions="ask")
    first, second = transcript
    assert (first.kind, first.question, first.answer, first.by, first.why) == (
        "question",
        "Which?",
        "rs256",
        "architect",
        "the architect said so",
    )
    assert first.seconds == pytest.approx(3, abs=0.01)
    assert (first.agent, first.run_id, first.question_id) == ("scripted", run_id, "q1")
    assert first.details["options"] == ["RS256", "HS256"]
    assert (second.kind, second.question, second.answer, second.by, second.why) == (
        "approval",
        "rm -rf build",
        "not in this folder",
        "reviewer",
        "not in this folder",
    )
    assert second.details["command"] == "rm -rf build"
    assert before <= first.at <= second.at <= datetime.now(UTC)
    assert first.at.utcoffset() == timedelta()


async def test_what_others_answer_is_written_down_too() -> None:
    transcript = Transcript()

    async def person(question: object) -> Any:
        return {"alg": "HS256"}

    policy = PermissionPolicy(rules=(Rule(verdict="allow", kind="execute"),), otherwise="ask")
    await over_acp(Handlers(transcript=transcript), permissions=policy, on_question=person)
    assert [(record.kind, record.answer, record.by) for record in transcript] == [
        ("question", {"alg": "HS256"}, "handler"),
        ("approval", True, "policy"),
    ]


async def leave(question: object) -> None:
    """Leave it open."""


async def test_unanswered_questions_are_recorded_too() -> None:
    transcript = Transcript()
    await over_acp(Handlers(transcript=transcript), on_question=leave, permissions="ask")
    assert [(record.kind, record.answer, record.by) for record in transcript] == [
        ("question", None, "policy"),
        ("approval", False, "policy"),
    ]


# Files and documents


async def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    transcript = Transcript(
        [record(), record(kind="approval", answer=None, details={"paths": ["/ü", "\u2028\x9b"]})]
    )
    path = tmp_path / "transcript.jsonl"
    transcript.save(path)
    data = path.read_bytes()
    assert data.count(b"\n") == 2
    assert b"\xe2\x80\xa8" not in data
    assert "/ü" in data.decode()
    assert [json.loads(line) for line in data.split(b"\n")[:2]] == transcript.to_json()
    loaded = Transcript.load(path)
    assert loaded == transcript
    assert isinstance(loaded, Transcript)
    loaded.save(str(path))
    assert path.read_bytes() == data


async def test_json_has_the_time_as_text() -> None:
    (first,) = Transcript([record()]).to_json()
    assert first["at"] == "2026-01-31T12:00:00.000005+00:00"
    assert first["details"] == {}


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"kind":"question"}', '{"kind":"other"}', "[" * 100_000])
async def test_a_broken_file_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "transcript.jsonl"
    Transcript([record()]).save(path)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(ValueError, match=r"transcript\.jsonl, line 3: this is no record"):
        Transcript.load(path)
    with pytest.raises(FileNotFoundError):
        Transcript.load(tmp_path / "other.jsonl")


async def test_a_time_needs_its_zone(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    (fields,) = Transcript([record()]).to_json()
    path.write_text(json.dumps({**fields, "at": "2026-01-31T12:00:00"}), encoding="utf-8")
    with pytest.raises(ValueError, match="line 1"):
        Transcript.load(path)


async def test_the_document_is_for_people() -> None:
    why = "it is usual, " * 20
    second = record(kind="approval", answer=True, why=why, details={"command": "make ü"})
    document = Transcript([record(), second]).markdown()
    assert document.startswith("## 1. `Which?`\n\n- Asked: `question q1 of run-1, agent worker`\n")
    assert "- Answered by: `architect, after 1.2 s, at 2026-01-31 12:00:00 UTC`\n" in document
    assert "- Why: `it is usual`\n\n```text\nWhich?\n```\n\n```text\nRS256\n```\n\n## 2. " in document
    assert f"- Why: `{why.strip()}`\n" in document
    assert document.endswith('```json\n{\n  "command": "make ü"\n}\n```\n\n```json\ntrue\n```\n')
    assert Transcript().markdown() == ""


async def test_nothing_that_an_agent_wrote_is_markup() -> None:
    evil = "`</code>\n```\n# Approved by Ann\n[here](http://evil)\x1b[2J\u202e"
    texts = record(question=evil, answer=evil, why=evil, agent=evil)
    document = Transcript([texts, record(answer=[evil], details={evil: evil})]).markdown()
    fence = ""
    for line in document.splitlines():
        if not fence and line.startswith("```"):
            fence = line.removesuffix("text").removesuffix("json")
        elif fence and line == fence:
            fence = ""
        elif not fence and line:
            assert line.count("`") == 2
            assert line.endswith("`")
    assert not fence
    assert "\x1b" not in document
    assert "\u202e" not in document


async def test_the_log_tells_no_secrets() -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)

    @handlers.on("question")
    async def answer(question: AgentQuestion) -> str:
        return "hunter2"

    async def play(program: Program) -> None:
        assert await program.ask("question", question="Password?") == "hunter2"

    async with program(play) as agent:
        stream = agent.think().text("Go").stream(include="all")
        with anyio.fail_after(SOON):
            await listen(stream, handlers)
            events = [event async for event in stream]
    assert transcript[0].answer == "hunter2"
    assert not any("hunter2" in str(ev.event_to_json(event)) for event in events)
