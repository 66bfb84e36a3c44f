"""The client that Letta publishes for TypeScript, unmodified, against real servers on the loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from letta_stage import allowed, hello
from node_packages import node_answers
from real_servers import backend_of, listening
from web_stage import scripted_agent

from thinkwell.web import Access, RunServer, web_app
from thinkwell_acp import RpcError

if TYPE_CHECKING:
    from real_servers import ServerKind
    from scripted import Turn

pytestmark = pytest.mark.long

TOKEN = "a-token-for-ada-0123456789"
TALK = Path(__file__).with_name("letta_talk.mjs")


@pytest.fixture
def anyio_backend(kind: ServerKind) -> str:
    return backend_of(kind)


async def asks(turn: Turn) -> None:
    turn.think("Hm.")
    turn.say("They said " + await allowed(turn))


async def fails(turn: Turn) -> None:
    turn.say("I be")
    raise RpcError(-32603, "no")


async def test_a_conversation(kind: ServerKind) -> None:
    agent, handler = scripted_agent(asks, fails, hello)
    server = RunServer({"scripted": agent})
    async with listening(web_app(server, access=Access({TOKEN: "ada"})), kind) as at:
        told: dict[str, Any] = json.loads(await node_answers(TALK, at.url, TOKEN))
    assert told["agent"] == ["Ada", True]
    assert told["health"] == "ok"
    assert told["frames"] == [
        ["ping", 1],
        ["reasoning_message", 2],
        ["tool_call_message", 3],
        ["approval_request_message", 4],
        ["stop_reason", None],
        ["usage_statistics", None],
    ]
    assert told["call"] == ["execute", {"command": "ls"}]
    is_conflict, detail, posts = told["conflict"]
    assert is_conflict
    assert "waiting for approval" in detail
    assert posts == 1
    assert told["rest"][1:3] == ["They said no", "end_turn"]
    assert told["resumed"] == [
        ["approval_request_message", 4],
        ["stop_reason", None],
        ["usage_statistics", None],
    ]
    assert told["again"] == []
    assert told["messages"] == [
        "assistant_message",
        "approval_response_message",
        "approval_request_message",
        "tool_call_message",
        "reasoning_message",
        "user_message",
    ]
    assert told["runs"] == [[True, "completed"]]
    assert told["agents"] == 1
    assert told["nothing"][0]
    assert "No tool call" in told["nothing"][1]
    assert told["unknown"]
    assert told["failed"] == [["ping", "I be", "llm_api_error"], True, "agent_reported"]
    assert told["answer"] == ["Hello Ada.", "end_turn"]
    assert told["talk"] == [
        "ping",
        "reasoning_message",
        "assistant_message",
        "stop_reason",
        "usage_statistics",
    ]
    assert told["cancelled"] == 409
    assert len(handler.sent.prompts) == 4
