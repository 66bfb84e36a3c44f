"""Our own tools are known by what agents show of them, and allowed without asking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from asking import OPTIONS
from scripted import Played, Turn, scripted

from thinkwell import JsonSchema, ResultMissing
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Script


def add(x: int) -> int:
    return x


async def played(script: Script) -> None:
    """Let an agent play this to its end, in a run with the tool `add`."""

    async def to_its_end(turn: Turn) -> None:
        await script(turn)
        turn.say("Done")

    async with scripted(to_its_end) as agent:
        assert await agent.think().text("Go").tool(add).run() == "Done"


async def permitted(turn: Turn, title: str | None, id_: str, **fields: Any) -> bool:
    tool_call = s.ToolCallUpdate(tool_call_id=id_, title=title, **fields)
    request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=tool_call, options=OPTIONS)
    outcome = (await turn.client.request_permission(request)).outcome
    assert isinstance(outcome, s.SelectedPermissionOutcome)
    return outcome.option_id == "y"


async def test_a_request_with_nothing_but_an_id_is_known_by_the_call_before_it() -> None:
    async def script(turn: Turn) -> None:
        title = f"mcp.{turn.server}.add"
        raw: dict[str, object] = {"server": turn.server, "tool": "add", "arguments": {}}
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

    await played(script)


async def test_a_call_that_is_shown_with_its_servers_name_is_ours__however_they_are_joined() -> None:
    async def script(turn: Turn) -> None:
        server = turn.server
        for number, title in enumerate(
            (f"{server}-add", f"mcp_{server}.add", f"{server}__add", f"{server}:add")
        ):
            id_ = f"t{number}"
            turn.update(s.ToolCallStart(tool_call_id=id_, title=title, kind="other", raw_input={"x": 1}))
            assert await permitted(turn, "add", id_, kind="other", raw_input={"x": 1})
        turn.update(s.ToolCallStart(tool_call_id="late", title="", kind="other"))
        assert not await permitted(turn, None, "late")
        assert await permitted(turn, f"{server}-add", "late")

    await played(script)


async def test_what_looks_like_the_path_of_a_program_is_ours_only_with_its_arguments() -> None:
    async def script(turn: Turn) -> None:
        title = f"{turn.server}/add"
        turn.update(s.ToolCallStart(tool_call_id="t1", title=title, kind="other"))
        assert not await permitted(turn, title, "t1", kind="other")
        turn.update(s.ToolCallProgress(tool_call_id="t1", title=title, status="pending"))
        assert await permitted(turn, title, "t1", kind="other", raw_input={"x": 1})
        assert await permitted(turn, None, "t1")
        assert not await permitted(turn, title, "t2")
        assert await permitted(turn, title, "t3", raw_input={"x": 1})
        assert not await permitted(turn, title, "t4", raw_input={"command": title})
        turn.update(s.ToolCallStart(tool_call_id="t5", title=title, kind="other"))
        turn.update(s.ToolCallProgress(tool_call_id="t5", raw_input={"x": 1}))
        assert await permitted(turn, None, "t5")

    await played(script)


async def test_a_known_call_whose_request_is_about_our_server_stays_ours() -> None:
    async def script(turn: Turn) -> None:
        server = turn.server
        cases: tuple[tuple[str, dict[str, object], bool], ...] = (
            (server, {}, True),
            ("other", {}, False),
            (server, {"command": "rm -rf /"}, False),
        )
        for number, (named, more, is_ours) in enumerate(cases):
            id_ = f"t{number}"
            shown: dict[str, object] = {"server": server, "tool": "add", "arguments": {"x": 1}}
            title = f"Tool: {server}/add"
            turn.update(s.ToolCallStart(tool_call_id=id_, title=title, status="in_progress", raw_input=shown))
            asked: dict[str, object] = {
                "turn_id": "1",
                "server_name": named,
                "request": {"mode": "form"},
                **more,
            }
            assert await permitted(turn, "Approve MCP tool call", id_, raw_input=asked) is is_ours
        # Only where the call itself was shown so: an argument of this name is soon written.
        turn.update(s.ToolCallStart(tool_call_id="code", title=f"{server}_add"))
        asked = {"server_name": server, "code": "import os"}
        assert not await permitted(turn, None, "code", raw_input=asked)

    await played(script)


async def test_a_call_through_a_tool_that_calls_others_is_ours_by_the_name_in_its_meta() -> None:
    async def script(turn: Turn) -> None:
        name = f"mcp__{turn.server}__add"
        cases: tuple[tuple[dict[str, Any], dict[str, Any], bool], ...] = (
            ({"toolName": name}, {"x": 1}, True),
            ({"tool_name": name}, {"x": 1}, True),
            ({"toolName": name}, {"y": "what our tool refuses itself"}, True),
            ({"toolName": "mcp__other__add"}, {"x": 1}, False),
            ({"toolName": name, "tool_name": "bash"}, {"x": 1}, False),
            ({"other": {"toolName": name}}, {"x": 1}, False),
        )
        for number, (meta, raw, is_ours) in enumerate(cases):
            id_ = f"t{number}"
            turn.update(
                s.ToolCallStart(
                    tool_call_id=id_,
                    title="ToolCall",
                    kind="other",
                    raw_input={},
                    meta={"toolName": "tool_call"},
                )
            )
            allowed = await permitted(turn, '{"x": 1}', id_, kind="other", raw_input=raw, meta=meta)
            assert allowed is is_ours

    await played(script)


async def test_the_result_is_known_by_its_tools_name_alone() -> None:
    async def script(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t1", title="return_result", status="in_progress"))
        turn.update(s.ToolCallProgress(tool_call_id="t1", title='return_result: {"result": 1}'))
        assert await permitted(turn, 'return_result: {"result": 1}', "t1")
        assert not await permitted(turn, "return_result", "t2", kind="execute")
        assert not await permitted(turn, "return_result", "t3", raw_input={"command": "return_result"})
        assert not await permitted(turn, "add", "t4")
        await turn.returns(result=1)

    async with scripted(script) as agent:
        assert await agent.think(int).text("Go").tool(add).run() == 1


async def test_a_command_under_the_name_of_the_result_is_not_ours() -> None:
    command = {"command": "rm -rf /"}

    async def script(turn: Turn) -> None:
        assert not await permitted(turn, "return_result", "t1", kind="other", raw_input=command)
        assert not await permitted(turn, "return_result", "t2", raw_input=command)
        turn.update(s.ToolCallStart(tool_call_id="t3", title="return_result"))
        assert not await permitted(turn, None, "t3", raw_input=command)
        assert await permitted(turn, "return_result", "t4", raw_input={"found": 1})
        assert await permitted(turn, f"{turn.server}_return_result", "t5", raw_input=command)
        await turn.returns(found=1)

    async with scripted(script) as agent:
        schema = JsonSchema({"type": "object"})
        assert await agent.think(schema).text("Go").run() == {"found": 1}


async def test_the_servers_name_is_fit_for_every_agent_and_never_the_same() -> None:
    handler = Played([])
    async with scripted(agent=handler) as agent:
        for _ in range(3):
            async with agent.session():
                pass
    names = {server["name"] for request in handler.sent.sessions for server in request.mcp_servers}
    assert len(names) == 3
    assert all(name.isalnum() and len(f"mcp__{name}__return_result") < 64 for name in names)


async def test_a_missing_result_says_what_was_denied() -> None:
    async def script(turn: Turn) -> None:
        assert not await permitted(turn, "lookup: {}", "t1")
        assert not await permitted(turn, None, "t2", kind="execute")
        assert await permitted(turn, f"mcp__{turn.server}__return_result", "t3")
        turn.say("I may not.")

    async with scripted(script) as agent:
        stream = agent.think(int).text("Go").stream(reminders=0)
        with pytest.raises(ResultMissing, match=r"It asked for 'lookup: {}'.*that was denied") as caught:
            await stream.result
    assert caught.value.denied == stream.view.denied
    assert len(stream.view.denied) == 2
