"""The agent's side against the client's side: every call both ways, and turns that are cancelled."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from acp_support import LIMIT, REQUESTS, Everything, Json, Wire, method_of, notification, request, result

from thinkwell_acp import (
    AgentHandler,
    AgentSide,
    Client,
    ClientHandler,
    RpcError,
    connect,
    memory_transport_pair,
    serve_agent,
)
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@asynccontextmanager
async def pair(
    client_handler: ClientHandler, agent_handler: AgentHandler
) -> AsyncGenerator[tuple[Client, AgentSide]]:
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(LIMIT):
        async with serve_agent(theirs, agent_handler) as agent, connect(ours, client_handler) as client:
            yield client, agent


@asynccontextmanager
async def raw(handler: AgentHandler) -> AsyncGenerator[tuple[AgentSide, Wire]]:
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(LIMIT):
        async with serve_agent(ours, handler) as agent:
            yield agent, Wire(theirs)


async def test_an_agent_that_serves_nothing_refuses_as_not_found() -> None:
    async with pair(ClientHandler(), AgentHandler()) as (client, _):
        await client.initialize()
        for request in REQUESTS:
            method = method_of(request)
            with pytest.raises(RpcError) as caught:
                await client.call(method, request, object)
            assert (caught.value.code, caught.value.data) == (-32601, {"method": method})
        with pytest.raises(RpcError) as caught:
            await client.ext_call("_x")
        assert (caught.value.code, caught.value.data) == (-32601, {"method": "_x"})


CAPABILITIES = s.ClientCapabilities(
    fs=s.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    elicitation=s.ElicitationCapabilities(url=s.ElicitationUrlCapabilities()),
)


async def test_an_agent_can_ask_everything() -> None:
    handler = Everything()
    async with pair(handler, AgentHandler()) as (client, agent):
        await client.initialize(s.InitializeRequest(protocol_version=1, client_capabilities=CAPABILITIES))
        ask = s.RequestPermissionRequest(
            session_id="s",
            tool_call=s.ToolCallUpdate(tool_call_id="c"),
            options=(s.PermissionOption(option_id="o", name="n", kind="reject_once"),),
        )
        assert (await agent.request_permission(ask)).outcome == s.SelectedPermissionOutcome(option_id="o")
        url = s.ElicitationUrlMode(session_id="s", message="m", elicitation_id="e", url="https://x")
        assert (await agent.create_elicitation(url)).content == {"a": 1}
        assert (await agent.read_text_file(s.ReadTextFileRequest(session_id="s", path="/p"))).content == "/p"
        await agent.write_text_file(s.WriteTextFileRequest(session_id="s", path="/p", content="c"))
        assert (
            await agent.create_terminal(s.CreateTerminalRequest(session_id="s", command="ls"))
        ).terminal_id == "ls"
        assert (
            await agent.terminal_output(s.TerminalOutputRequest(session_id="s", terminal_id="t"))
        ).truncated
        waited = await agent.wait_for_terminal_exit(
            s.WaitForTerminalExitRequest(session_id="s", terminal_id="t")
        )
        assert waited.exit_code == 3
        await agent.kill_terminal(s.KillTerminalRequest(session_id="s", terminal_id="t"))
        await agent.release_terminal(s.ReleaseTerminalRequest(session_id="s", terminal_id="t"))
        connected = await agent.connect_mcp(s.ConnectMcpRequest(server_id="m"))
        assert connected.connection_id == "m"
        asked = s.MessageMcpRequest(connection_id="m", method="tools/list")
        assert await agent.message_mcp(asked) == {"inner": "tools/list"}
        await agent.disconnect_mcp(s.DisconnectMcpRequest(connection_id="m"))
        completed = s.CompleteElicitationNotification(elicitation_id="e")
        note = s.MessageMcpNotification(connection_id="m", method="n")
        agent.complete_elicitation(completed)
        agent.notify_mcp(note)
        agent.ext_notify("_n", {"x": 1})
        assert await agent.ext_call("_x", {"y": 2}) == ["_x", {"y": 2}]
        assert handler.notes == [completed, note, ("_n", {"x": 1})]


async def test_by_default_notifications_of_an_agent_are_ignored() -> None:
    async with pair(ClientHandler(), AgentHandler()) as (_, agent):
        agent.complete_elicitation(s.CompleteElicitationNotification(elicitation_id="e"))
        agent.notify_mcp(s.MessageMcpNotification(connection_id="m", method="n"))
        agent.update("s", s.AgentMessageChunk(content=s.TextContent(text="t")))
        await agent.drain()
        with pytest.raises(RpcError):
            await agent.ext_call("_sync")


class Turns(AgentHandler):
    """Runs turns that last until they are cancelled, or do not wait at all."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    def connected(self, client: AgentSide, /) -> None:
        self.client = client

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        self.begun.append(request.session_id)
        if request.session_id == "quick":
            return s.PromptResponse(stop_reason="end_turn")
        try:
            await anyio.sleep_forever()
            raise AssertionError
        finally:
            self.client.update(
                request.session_id, s.AgentMessageChunk(content=s.TextContent(text="last words"))
            )
            self.ended.append(request.session_id)


def prompt(id_: object, session: str) -> Json:
    return request(id_, "session/prompt", {"sessionId": session, "prompt": []})


def cancel(session: str) -> Json:
    return notification("session/cancel", {"sessionId": session})


async def test_a_cancelled_turn_ends_as_cancelled_after_its_last_words() -> None:
    handler = Turns()
    async with raw(handler) as (_, wire):
        await wire.send(prompt(1, "a"), prompt(2, "b"))
        await anyio.wait_all_tasks_blocked()
        await wire.send(cancel("a"), cancel("unknown"))
        assert (await wire.expect("session/update"))["params"]["sessionId"] == "a"
        assert await wire.read() == result(1, {"stopReason": "cancelled"})
        assert handler.ended == ["a"]
        await wire.send(cancel("a"), prompt(3, "quick"))
        assert await wire.read() == result(3, {"stopReason": "end_turn"})


async def test_a_cancellation_read_together_with_its_prompt_counts() -> None:
    handler = Turns()
    async with raw(handler) as (_, wire):
        await wire.send(prompt(1, "a"), cancel("a"))
        assert await wire.read() == result(1, {"stopReason": "cancelled"})
        assert handler.begun == []


async def test_a_handler_can_speak_as_soon_as_it_knows_its_client() -> None:
    class Greets(AgentHandler):
        def connected(self, client: AgentSide, /) -> None:
            client.ext_notify("_hello")

    async with raw(Greets()) as (_, wire):
        await wire.expect("_hello")


async def test_a_cancellation_passes_over_a_prompt_without_a_session() -> None:
    async with raw(Turns()) as (_, wire):
        await wire.send(request(1, "session/prompt", {"prompt": []}), prompt(2, "a"), cancel("a"))
        answers = {answer["id"]: answer for answer in [await wire.read(), await wire.read()]}
        assert answers[1]["error"]["code"] == -32602
        assert answers[2] == result(2, {"stopReason": "cancelled"})


async def test_a_turn_cancelled_by_its_request_is_an_error() -> None:
    async with raw(Turns()) as (_, wire):
        await wire.send(prompt(1, "a"))
        await anyio.wait_all_tasks_blocked()
        await wire.send(notification("$/cancel_request", {"requestId": 1}))
        await wire.expect("session/update")
        assert (await wire.read())["error"]["code"] == -32800


async def test_updates_that_a_client_sends_are_ignored_and_mcp_messages_are_not() -> None:
    class Inner(AgentHandler):
        def __init__(self) -> None:
            self.notes: list[str] = []

        def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
            self.notes.append(notification.method)

    handler = Inner()
    async with raw(handler) as (agent, wire):
        update: Json = {"sessionUpdate": "plan", "entries": []}
        await wire.send(
            notification("session/update", {"sessionId": "s", "update": update}),
            notification("mcp/message", {"connectionId": "c", "method": "n"}),
            request(1, "_x", {}),
        )
        await wire.read()
        assert handler.notes == ["n"]
        await wire.transport.aclose()
        await agent.wait_closed()
