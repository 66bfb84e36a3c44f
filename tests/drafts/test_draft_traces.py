"""What claude-agent-acp 0.101 and codex-acp 2.6 show of a result while it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from thinkwell import Draft, open_agent
from thinkwell.agents import find_agent
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script

TRACES = Path(__file__).with_name("traces")

pytestmark = pytest.mark.virtual_time


class Report(BaseModel):
    title: str
    items: list[str]
    score: int
    body: str


TITLE, ITEMS = "A longer title, in a few words", ["one", "two", "three"]
REPORT = {"title": TITLE, "items": ITEMS, "score": 7, "body": "Text that goes on for a while, and on."}


def updates(name: str) -> list[tuple[int, dict[str, Any]]]:
    """Read the updates of a recorded turn, with their times, as if its tools were ours."""
    text = (TRACES / f"{name}.ndjson").read_text("utf-8").replace("mcp__rr__", "mcp__thinkwell0123456789ab__")
    text = text.replace('"rr"', '"thinkwell0123456789ab"').replace("mcp.rr.", "mcp.thinkwell0123456789ab.")
    lines = [json.loads(line) for line in text.splitlines()]
    return [
        (line["ms"], line["message"]["params"]["update"])
        for line in lines
        if line["message"].get("method") == "session/update"
    ]


def replaying(name: str, result: dict[str, Any]) -> ScriptedAgent:
    """An agent that sends what the other has sent, and calls the tool when that did."""

    async def play(turn: ScriptedTurn) -> None:
        told = updates(name)
        before = told[0][0]
        (end,) = [
            number
            for number, (_, update) in enumerate(told)
            if update.get("status") == "completed" and "Result accepted." in str(update["rawOutput"])
        ]
        for number, (now, update) in enumerate(told):
            await anyio.sleep((now - before) / 1000)
            before = now
            if number == end:
                assert not (await turn.call("return_result", result)).is_error
            body = {"sessionId": turn.session_id, "update": update}
            turn.client.connection.notify("session/update", body)

    return ScriptedAgent(script.does(play))


async def drafts_of(name: str, type_: Any, agent: str | None, returns: dict[str, Any]) -> list[Draft[Any]]:
    async with (
        replaying(name, returns).connect() as line,
        open_agent(find_agent(agent) if agent else None, transport=line) as opened,
    ):
        return [draft async for draft in opened.think(type_).text("Go").stream().drafts()]


async def test_claude_gives_its_fields_one_by_one() -> None:
    drafts = await drafts_of("claude-draft", Report, "claude", REPORT)
    *before, last = [draft.value for draft in drafts]
    assert before == [
        {"title": TITLE},
        {"title": TITLE, "items": ITEMS},
        {"title": TITLE, "items": ITEMS, "score": 7},
        REPORT,
    ]
    assert last == REPORT
    assert [draft.final for draft in drafts] == [False] * 4 + [True]
    assert all(draft.whole == draft.value.keys() and draft.attempt == 1 for draft in drafts)


async def test_an_agent_that_nothing_is_known_of_may_go_on_with_the_last_field() -> None:
    drafts = await drafts_of("claude-draft", Report, None, REPORT)
    assert [(draft.value, {*draft.whole}) for draft in drafts[:-1]] == [
        ({"title": TITLE}, set()),
        ({"title": TITLE, "items": ["one", "two"]}, {"title"}),
        ({"title": TITLE, "items": ITEMS}, {"title", "items"}),
        (REPORT, {"title", "items", "score"}),
    ]


async def test_claude_gives_nothing_of_a_single_field_before_all_of_it() -> None:
    items = ["first item", "second item", "third item", "fourth"]
    drafts = await drafts_of("claude-draft-wrapped", list[str], "claude", {"result": items})
    assert [(draft.value, draft.final) for draft in drafts] == [(items, False), (items, True)]


async def test_codex_gives_nothing_before_all_of_it() -> None:
    drafts = await drafts_of("codex-draft", Report, "codex", REPORT)
    assert [(draft.value, draft.final) for draft in drafts] == [(REPORT, True)]
