"""Our own tools are known by what agents show of them, and allowed without asking."""

from __future__ import annotations

from typing import Any

from asking import OPTIONS
from scripted import ScriptedAgent, Turn, scripted

from thinkwell_acp import schema as s


def add(x: int) -> int:
    return x


async def permitted(turn: Turn, title: str | None, id_: str, **fields: Any) -> bool:
    tool_call = s.ToolCallUpdate(tool_call_id=id_, title=title, **fields)
    request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=tool_call, options=OPTIONS)
    outcome = (await turn.client.request_permission(request)).outcome
    assert isinstance(outcome, s.SelectedPermissionOutcome)
    return outcome.option_id == "y"


def server_of(turn: Turn) -> str:
    (server,) = turn.agent.sessions[-1].mcp_servers
    return server.name


async def test_our_own_tools_are_allowed_by_default() -> None:
    async def script(turn: Turn) -> None:
        assert await permitted(turn, f"mcp__{server_of(turn)}__add", "t1")
        assert await permitted(turn, f"mcp__{server_of(turn)}__return_result", "t2", raw_input={"result": 1})
        assert not await permitted(turn, f"mcp__{server_of(turn)}__other", "t3")
        turn.say("Done")
        await turn.returns(result=1)

    async with scripted(script) as agent:
        assert await agent.think(int).text("Go").tool(add).run() == 1


async def test_a_request_with_nothing_but_an_id_is_known_by_the_call_before_it() -> None:
    async def script(turn: Turn) -> None:
        title = f"mcp.{server_of(turn)}.add"
        raw: dict[str, object] = {"server": server_of(turn), "tool": "add", "arguments": {}}
        assert not await permitted(turn, None, "t1", kind="execute")
        turn.update(s.ToolCallStart(tool_call_id="t1", title=title, kind="execute", raw_input=raw))
        assert await permitted(turn, None, "t1", kind="execute")
        turn.update(s.ToolCallProgress(tool_call_id="t1", status="in_progress"))
        assert await permitted(turn, "Approve add", "t1")
        turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed"))
        assert not await permitted(turn, None, "t1", kind="execute")  # ids are used again
        turn.update(s.ToolCallStart(tool_call_id="t2", title=title, kind="execute", raw_input=raw))
        turn.update(s.ToolCallStart(tool_call_id="t2", title="rm -rf /", kind="execute"))
        assert not await permitted(turn, None, "t2", kind="execute")
        turn.say("Done")

    async with scripted(script) as agent:
        assert await agent.think().text("Go").tool(add).run() == "Done"


async def test_the_servers_name_is_fit_for_every_agent_and_never_the_same() -> None:
    handler = ScriptedAgent([])
    async with scripted(agent=handler) as agent:
        for _ in range(3):
            async with agent.session():
                pass
    names = {server.name for request in handler.sessions for server in request.mcp_servers}
    assert len(names) == 3
    assert all(name.isalnum() and len(f"mcp__{name}__return_result") < 64 for name in names)
