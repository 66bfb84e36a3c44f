"""Messages of one agent reach their recipients, and those without one are reported."""

from __future__ import annotations

import gc
import logging

import anyio
import pytest
from pydantic import BaseModel
from scripted import Played, Proceed, Turn, playing, scripted

from thinkwell import AgentClosed, AgentReported, open_agent
from thinkwell_acp import AgentSide, RpcError, memory_transport_pair
from thinkwell_acp import schema as s


class Answer(BaseModel):
    value: int


async def done(turn: Turn) -> None:
    turn.say("Done")


def chunk(text: str) -> s.AgentMessageChunk:
    return s.AgentMessageChunk(content=s.TextContent(text=text))


async def settled(agent_side: AgentSide) -> None:
    """Return when the client has read what was sent before."""
    with pytest.raises(RpcError):
        await agent_side.connect_mcp(s.ConnectMcpRequest(server_id="none"))


async def test_updates_for_a_session_that_is_never_opened_are_seen(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_request: object, _proceed: object) -> None:
        handler.client.update("s1", chunk("early"))
        raise LookupError("no model")

    handler = Played(answers={"session/new": fail})
    async with scripted(agent=handler) as agent:
        with pytest.raises(AgentReported):
            await agent.think().text("Go").run()
    assert "sent 1 updates for sessions that were never opened" in caplog.text


async def test_updates_for_an_unknown_session_are_seen(caplog: pytest.LogCaptureFixture) -> None:
    handler = Played([done])
    async with scripted(agent=handler) as agent:
        handler.client.update("who", chunk("?"))
        await settled(handler.client)
        await agent.think().text("Go").run()
    assert "sent 1 updates for unknown session 'who'" in caplog.text


async def test_a_last_word_about_a_session_that_is_left_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    handler = Played([done])
    async with scripted(agent=handler) as agent:
        stream = agent.think().text("Go").stream()
        await stream.wait()
        handler.client.update("session-1", s.SessionInfoUpdate(title="kept"))
        await settled(handler.client)
        assert [event.type for event in stream.late] == ["session_info"]
        del stream
        gc.collect()
        handler.client.update("session-1", s.SessionInfoUpdate(title="dropped"))
        await settled(handler.client)
    levels = [record.levelname for record in caplog.records if "unknown session" in record.message]
    assert levels == ["DEBUG"]


async def test_mcp_over_acp_is_not_served_where_it_is_not_the_way() -> None:
    handler = Played([done])
    async with scripted(agent=handler) as agent:
        client = handler.client
        client.notify_mcp(s.MessageMcpNotification(connection_id="c", method="notifications/initialized"))
        for asking in (
            client.connect_mcp(s.ConnectMcpRequest(server_id="s")),
            client.message_mcp(s.MessageMcpRequest(connection_id="c", method="tools/list")),
            client.disconnect_mcp(s.DisconnectMcpRequest(connection_id="c")),
        ):
            with pytest.raises(RpcError) as caught:
                await asking
            assert caught.value.code == -32601
        assert await agent.think().text("Go").run() == "Done"


async def test_an_agent_may_disconnect_from_the_tools() -> None:
    handler = Played([done])
    async with scripted(agent=handler) as agent, agent.session():
        (server,) = handler.requests("session/new")[0].mcp_servers
        client, connect = handler.client, s.ConnectMcpRequest(server_id=server.server_id)
        connection_id = (await client.connect_mcp(connect)).connection_id
        await client.disconnect_mcp(s.DisconnectMcpRequest(connection_id=connection_id))
        with pytest.raises(RpcError, match="Unknown MCP connection"):
            await client.message_mcp(s.MessageMcpRequest(connection_id=connection_id, method="tools/list"))


async def test_leaving_a_session_cancels_its_runs_and_no_others() -> None:
    turns = 0

    async def forever(turn: Turn) -> None:
        nonlocal turns
        turns += 1
        turn.say("Started")
        await anyio.sleep_forever()

    handler = Played([forever, forever, done])
    with anyio.fail_after(30):
        async with scripted(agent=handler) as agent:
            other = agent.think().text("Go").stream()
            await anext(aiter(other))
            async with agent.session() as session:
                running, waiting = (session.think().text("Go").stream() for _ in range(2))
                await anext(aiter(running))
            for stream in (running, waiting):
                with pytest.raises(AgentClosed):
                    await stream.result
            assert not other.result.done()
            other.cancel()
            await other.wait()
    assert turns == 2


async def test_a_session_is_closed_where_the_agent_can() -> None:
    sessions = s.SessionCapabilities(close=s.SessionCloseCapabilities())
    handler = Played([done], capabilities=s.AgentCapabilities(session_capabilities=sessions))
    async with scripted(agent=handler) as agent:
        stream = agent.think().text("Go").stream()
        await stream.wait()
        async with agent.session():
            pass
    assert handler.sent.closed == ("session-1", "session-2")


async def test_an_agent_that_fails_to_close_a_session_harms_no_other_session() -> None:
    async def fail(_request: object, _proceed: object) -> None:
        raise LookupError("which?")

    sessions = s.SessionCapabilities(close=s.SessionCloseCapabilities())
    flags = s.McpCapabilities(acp=True)
    capabilities = s.AgentCapabilities(session_capabilities=sessions, mcp_capabilities=flags)
    handler = Played([done], capabilities=capabilities, answers={"session/close": fail})
    async with scripted(agent=handler) as agent:
        assert await agent.think().text("Go").run() == "Done"
        async with agent.session() as session:
            assert await session.think().text("Go").run() == "Done"


async def test_two_first_sessions_at_once_share_one_way() -> None:
    async def script(turn: Turn) -> None:
        await turn.returns(value=1)

    async with scripted(script) as agent:
        streams = [agent.think(Answer).text("Go").stream() for _ in range(4)]
        assert [(await stream.result).value for stream in streams] == [1, 1, 1, 1]


async def test_a_session_that_does_not_open_leaves_nothing_and_harms_no_other_session() -> None:
    asked, failed = anyio.Event(), anyio.Event()

    async def choose(request: s.NewSessionRequest, proceed: Proceed) -> object:
        if asked.is_set():
            raise LookupError("no more")
        asked.set()
        await failed.wait()
        return await proceed(request)

    handler = Played([done], answers={"session/new": choose})
    with anyio.fail_after(30):
        async with scripted(agent=handler) as agent:
            stream = agent.think().text("Go").stream()
            await asked.wait()
            with pytest.raises(AgentReported, match="no more"):
                async with agent.session():
                    raise AssertionError("it opened")
            (server,) = handler.requests("session/new")[1].mcp_servers
            assert isinstance(server, s.McpServerAcp)
            with pytest.raises(RpcError, match="Unknown MCP server"):
                await handler.client.connect_mcp(s.ConnectMcpRequest(server_id=server.server_id))
            failed.set()
            assert await stream.result == "Done"


async def test_a_flood_of_what_is_no_message_is_not_a_flood_of_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, theirs = memory_transport_pair()

    async def script(turn: Turn) -> None:
        turn.say("Hello")

    caplog.set_level(logging.DEBUG, "thinkwell")
    await theirs.send(b"Loading...\n" * 100)
    async with (
        playing(theirs, Played([script])),
        open_agent("noisy", transport=ours) as agent,
    ):
        assert await agent.think().text("Hi").run() == "Hello"
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 4
    assert "10 bytes" in warnings[0]
    assert not any("Loading" in warning for warning in warnings)  # it may be half of a message
    assert "Loading..." in caplog.text
    assert "logged as DEBUG" in warnings[3]
