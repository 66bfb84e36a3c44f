"""Agents that show a call of a tool by the tool's own name and nothing else, as any tool may be called."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import options, permission
from scripted import EVERY_SESSION_CALL, Played, Turn, scripted

from thinkwell import ResultMissing, ThoughtTimeout, open_agent
from thinkwell.agents import AgentProfile, Program
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path


def lookup(key: str) -> str:
    return key.upper()


async def uses(turn: Turn, tool: str, **arguments: object) -> str | None:
    """Ask for permission as kimi-cli does, and call the tool where that is given; return its answer."""
    (name,) = (tool_["name"] for tool_ in await turn.list_tools() if tool_["name"].endswith(tool))
    shown = f"{name}: {json.dumps(arguments)}"
    turn.update(s.ToolCallStart(tool_call_id=name, title=shown, status="in_progress"))
    asked = s.ToolCallUpdate(tool_call_id=name, title=shown)
    answer = await turn.client.request_permission(permission(turn.session_id, asked))
    if getattr(answer.outcome, "option_id", None) not in ("a", "y"):
        return None
    result = await turn.call(name, arguments)
    return str(result["content"][0]["text"])


async def looks_up(turn: Turn) -> None:
    turn.say(await uses(turn, "lookup", key="a") or "I was denied.")


def names_of(agent: Played) -> list[str]:
    """Return the names of all tools that were offered, each once, with our server's as MARK."""
    names = " ".join(tool.name for tool in agent.sent.tools)
    for session in agent.sent.sessions:
        for server in session.mcp_servers:
            names = names.replace(server["name"], "MARK")
    return names.split()


async def test_a_run_in_which_a_tool_of_ours_was_denied_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with scripted(looks_up) as agent:
        stream = agent.think().text("Go").tool(lookup).stream()
        assert await stream.result == "I was denied."
    assert stream.view.denied == ('lookup: {"key": "a"}',)
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "seems to be your tool 'lookup'" in warning.getMessage()
    assert "run the task again" in warning.getMessage()


async def test_the_next_session_marks_the_names_and_all_of_them_are_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = Played([looks_up])
    async with scripted(agent=handler) as agent:
        task = agent.think().text("Go").tool(lookup)
        assert [await task.run() for _ in range(3)] == ["I was denied.", "A", "A"]
        assert task.explain().tools[0]["name"] == "lookup"
    assert names_of(handler) == ["lookup", "MARK_lookup", "MARK_lookup"]
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


async def test_a_result_that_is_asked_for_by_its_bare_name_teaches_it_too() -> None:
    async def script(turn: Turn) -> None:
        await uses(turn, "return_result", result=1)

    handler = Played([script])
    async with scripted(agent=handler) as agent:
        for _ in range(2):
            assert await agent.think(int).text("Go").tool(lookup).run() == 1
    assert names_of(handler) == ["lookup", "return_result", "MARK_lookup", "MARK_return_result"]
    assert handler.sent.sessions[1].mcp_servers[0]["name"] in handler.sent.prompts[1].text


async def test_a_session_keeps_the_names_that_it_began_with() -> None:
    handler = Played([looks_up], relists=True)
    async with scripted(agent=handler) as agent, agent.session() as session:
        for _ in range(2):
            assert await session.think().text("Go").tool(lookup).run() == "I was denied."
    assert len(handler.sent.sessions) == 1


async def test_names_that_have_no_room_for_the_mark_stay_as_they_are() -> None:
    handler = Played([looks_up])
    async with scripted(agent=handler) as agent:
        task = agent.think().text("Go").tool(lookup).tool(lookup, name="a" * 43)
        await task.run()
        await task.run()
    assert names_of(handler) == ["lookup", "a" * 43, "MARK_lookup"]


async def test_names_of_a_session_that_is_replaced_are_marked_anew() -> None:
    """An agent that fetches no changed tools gets another session before its first turn."""
    handler = Played([looks_up], capabilities=EVERY_SESSION_CALL)
    async with scripted(agent=handler) as agent:
        assert await agent.think().text("Go").tool(lookup).run() == "I was denied."
        async with agent.session() as session:
            assert await session.think().text("Go").tool(lookup).run() == "A"
    assert names_of(handler) == ["lookup", "MARK_return_result", "MARK_lookup", "MARK_return_result"]


@pytest.mark.parametrize(
    "error", [ResultMissing, ThoughtTimeout], ids=["the agent ends its turn", "it takes too long"]
)
@pytest.mark.virtual_time
async def test_errors_tell_of_a_tool_of_ours_that_was_denied(error: type[Exception]) -> None:
    async def script(turn: Turn) -> None:
        for _ in range(2):
            await uses(turn, "lookup", key="a")
        if error is ThoughtTimeout:
            await anyio.sleep(100)

    async with scripted(script) as agent:
        with pytest.raises(error) as caught:
            await agent.think(int).text("Go").tool(lookup).run(timeout=10, reminders=0)
    (note,) = caught.value.__notes__
    assert note.startswith("""The agent asked for 'lookup: {"key": "a"}' and was denied.""")


@pytest.mark.parametrize(
    "shown",
    [
        {"title": "lookup", "kind": "execute", "raw_input": {"command": "lookup"}},
        {"title": "lookup", "kind": "other", "raw_input": {"command": "lookup"}},
        {"title": "lookup", "kind": "search"},
        {"title": "lookup in the dark"},
        {"title": "lookups"},
        {"title": "Run", "meta": {"toolName": "mcp__other__lookup"}},
        {"title": "rm"},
    ],
)
async def test_what_is_denied_of_other_tools_is_no_tool_of_ours(
    shown: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def script(turn: Turn) -> None:
        call = s.ToolCallUpdate(tool_call_id="t1", **shown)
        await turn.client.request_permission(permission(turn.session_id, call))
        turn.say("Done.")

    handler = Played([script])
    async with scripted(agent=handler) as agent:
        for _ in range(2):
            assert await agent.think().text("Go").tool(lookup).run() == "Done."
    assert names_of(handler) == ["lookup"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_form_that_is_not_known_is_told_of_and_teaches_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script(turn: Turn) -> None:
        call = s.ToolCallUpdate(tool_call_id="t1", title=f"Run {turn.server}_lookup")
        await turn.client.request_permission(permission(turn.session_id, call, options("allow_once")))
        turn.say("Done.")

    handler = Played([script])
    async with scripted(agent=handler) as agent:
        for _ in range(2):
            stream = agent.think().text("Go").tool(lookup).stream()
            assert await stream.result == "Done."
            (denied,) = stream.view.denied  # though the agent offered no option to deny it
            assert denied.startswith("Run thinkwell")
    assert names_of(handler) == ["lookup"]
    assert "allow it by `permissions=`" in caplog.text


async def test_an_agent_that_shows_whose_tool_it_is_once_shows_no_bare_names() -> None:
    """copilot shows a call by SERVER-TOOL, and asks with the same id by the tool's name."""

    async def script(turn: Turn) -> None:
        title = f"{turn.server}-lookup"
        turn.update(s.ToolCallStart(tool_call_id="t1", title=title))
        call = s.ToolCallUpdate(tool_call_id="t1", title="lookup")
        await turn.client.request_permission(permission(turn.session_id, call))
        turn.say("Done.")

    handler = Played([script])
    async with scripted(agent=handler) as agent:
        for _ in range(2):
            await agent.think().text("Go").tool(lookup).run()
    assert names_of(handler) == ["lookup"]


async def test_a_profile_says_that_an_agent_shows_bare_names(tmp_path: Path) -> None:
    played = ScriptedAgent(script.calls("lookup", {"key": "a"}).returns("A"))
    program = Program(command=played.program(tmp_path))
    profile = AgentProfile(name="bare", program=program, bare_tool_names=True)
    async with open_agent(profile) as agent:
        assert await agent.think(str | int).text("Go").tool(lookup).run() == "A"
    (server,) = played.sent.sessions[0].mcp_servers
    assert [tool.name for tool in played.sent.tools] == [
        f"{server['name']}_lookup",
        f"{server['name']}_return_result",
    ]
