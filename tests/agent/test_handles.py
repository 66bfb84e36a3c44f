"""The handles: what users may call, and how they look in a log: short, and without what was said."""

from __future__ import annotations

import re

import anyio
import pytest
from pydantic import BaseModel

from thinkwell import Agent, ResultMissing, Session, ThinkBuilder, ThoughtResult, ThoughtStream, ToolContext
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script


class Review(BaseModel):
    text: str


def plain(x: int) -> int:
    return x


def names(type_: type) -> set[str]:
    return {name for name in dir(type_) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("type_", "public"),
    [
        (
            Agent,
            {"answer", "auth_methods", "authenticate", "capabilities", "close", "delete_session", "info"}
            | {"kill", "launch_phases", "list_sessions", "name", "questions", "session", "think"}
            | {"auth_status", "logout", "providers", "use_provider"},
        ),
        (
            Session,
            {
                "answer",
                "close",
                "commands",
                "cwd",
                "events",
                "fork",
                "history",
                "id",
                "mode",
                "model",
                "models",
                "modes",
                "options",
                "set_mode",
                "set_model",
            }
            | {"set_option", "think", "title", "usage"},
        ),
        (ThoughtResult, {"done", "exception"}),
        (
            ThoughtStream,
            {
                "answer",
                "cancel",
                "elapsed",
                "events",
                "id",
                "kill",
                "late",
                "recording",
                "session_id",
                "steer",
            }
            | {"view", "wait"},
        ),
        (
            ThinkBuilder,
            {
                "code",
                "cwd",
                "explain",
                "image",
                "line",
                "listen",
                "meta",
                "quote",
                "resource",
                "run",
                "stream",
            }
            | {"skill", "system", "text", "tool"},
        ),
        (ToolContext, {"ask", "cancelled", "progress", "raise_if_cancelled"}),
    ],
)
def test_the_handles_show_what_users_call_and_no_more(type_: type, public: set[str]) -> None:
    assert names(type_) == public


async def test_handles_say_what_they_are_and_not_what_was_said() -> None:
    go = anyio.Event()

    async def hold(_: ScriptedTurn) -> None:
        await go.wait()

    played = ScriptedAgent(script.says("secret words").does(hold).returns({"text": "secret result"}))
    async with played.open() as agent:
        assert repr(agent) == "<Agent scripted>"
        builder = agent.think(Review).text("secret prompt").quote("x").tool(plain)
        assert repr(builder) == "<ThinkBuilder for Review, 1 part, 1 tool>"
        assert repr(agent.think()) == "<ThinkBuilder for str, 0 parts, 0 tools>"
        stream = builder.stream()
        with anyio.fail_after(30):
            async for _ in stream:
                break
        assert re.fullmatch(r"<ThoughtStream run-\d+ responding, [1-9]\d* events>", repr(stream))
        assert repr(stream.result) == f"<ThoughtResult {stream.id} pending>"
        go.set()
        await stream.result
        await stream.wait()
        assert repr(stream.result) == f"<ThoughtResult {stream.id} done: Review>"
        assert "completed" in repr(stream)
        assert "secret" not in repr([stream, stream.result, builder])
        async with agent.session() as session:
            assert repr(session) == "<Session session-2 of scripted>"


async def test_a_failure_is_named_by_its_type_only() -> None:
    async with ScriptedAgent(script.says("secret").stops("max_tokens")).open() as agent:
        stream = agent.think().text("Go").stream()
        await stream.wait()
        assert repr(stream.result) == f"<ThoughtResult {stream.id} failed: ResultMissing>"
        assert isinstance(stream.result.exception(), ResultMissing)
