"""The three ways by which an agent reaches our tools, with the official MCP client at its end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from mcp_agent import CAPABILITIES, McpAgent, mcp_agent
from msgspec.structs import replace
from pydantic import BaseModel
from scripted import Played, Proceed, Script, Turn, playing, scripted
from trio.testing import MockClock

from thinkwell import (
    AgentClosed,
    CapabilityMissing,
    ThoughtTimeout,
    ToolsNotSeen,
    events,
    open_agent,
)
from thinkwell_acp import RpcError, Transport, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent

# The client leaves its HTTP library's generators to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")

WAYS = ("acp", "http", "stdio")


class Answer(BaseModel):
    value: int


def double(x: int) -> int:
    """Double a number."""
    return x * 2


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def test_a_tool_is_called_and_a_result_returned(way: str) -> None:
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        assert [tool["name"] for tool in await turn.list_tools()] == ["double", "return_result"]
        answers.append(await turn.call("double", {"x": 21}))
        answers.append(await turn.returns(value=answers[0]["content"][0]["text"]))

    with anyio.fail_after(20):
        async with mcp_agent(way, script) as (agent, handler):
            stream = agent.think(Answer).text("Go").tool(double).stream(include="all")
            assert await stream.result == Answer(value=42)
            seen = [event async for event in stream if isinstance(event, events.ToolsSeen)]
    assert [(event.via, event.names) for event in seen] == [(way, ("double", "return_result"))]
    assert [answer["isError"] for answer in answers] == [False, False]
    (request,) = handler.requests("session/new")
    (server,) = request.mcp_servers
    kinds = {"acp": s.McpServerAcp, "http": s.McpServerHttp, "stdio": s.McpServerStdio}
    assert isinstance(server, kinds[way])


async def test_the_way_can_be_chosen() -> None:
    with anyio.fail_after(20):
        async with mcp_agent("acp", tools_via="http") as (agent, handler):
            async with agent.session():
                pass
            (server,) = handler.requests("session/new")[0].mcp_servers
            assert isinstance(server, s.McpServerHttp)


@pytest.mark.parametrize(
    ("chosen", "flag"), [("acp", "mcpCapabilities.acp"), ("http", "mcpCapabilities.http")]
)
async def test_a_way_that_is_not_advertised_is_refused_before_anything_is_sent(
    chosen: str, flag: str
) -> None:
    handler = Played([], capabilities=s.AgentCapabilities())
    async with scripted(agent=handler, tools_via=chosen) as agent:
        with pytest.raises(CapabilityMissing) as caught:
            await agent.think(Answer).text("Go").run()
    assert caught.value.capability == flag
    assert not handler.sent.sessions


async def test_two_runs_have_servers_of_their_own() -> None:
    async def script(turn: Turn) -> None:
        number = int(turn.text.split()[0])
        answer = await turn.call("double", {"x": number})
        await turn.returns(value=answer["content"][0]["text"])

    with anyio.fail_after(20):
        async with mcp_agent("acp", script) as (agent, handler):
            streams = [agent.think(Answer).text(f"{n} ").tool(double).stream() for n in range(3)]
            assert [(await stream.result).value for stream in streams] == [0, 2, 4]
            for stream in streams:
                await stream.wait()
        names = {server["name"] for request in handler.sent.sessions for server in request.mcp_servers}
        assert len(names) == 3


# Readiness


class Recorder:
    """A transport that keeps what goes out."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.sent = b""

    async def receive(self) -> bytes:
        return await self._inner.receive()

    async def send(self, item: bytes, /) -> None:
        self.sent += item
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def test_the_prompt_is_not_sent_before_the_list_of_tools_was() -> None:
    class Lazy(Played):
        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            tasks.start_soon(self._look_later, request.mcp_servers[0])
            return await super().open_session(request, proceed)

        async def _look_later(self, server: s.McpServerAcp) -> None:
            connected = await self.client.connect_mcp(s.ConnectMcpRequest(server_id=server.server_id))
            await anyio.wait_all_tasks_blocked()
            await self.client.message_mcp(
                s.MessageMcpRequest(connection_id=connected.connection_id, method="tools/list")
            )

    async def script(turn: Turn) -> None:
        await turn.returns(value=1)

    ours, theirs = memory_transport_pair()
    recorder = Recorder(ours)
    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as tasks,
            playing(theirs, Lazy([script], lists_tools=False)),
            open_agent("lazy", transport=recorder) as agent,
        ):
            assert await agent.think(Answer).text("Go").run() == Answer(value=1)
    assert 0 < recorder.sent.index(b'"inputSchema"') < recorder.sent.index(b'"session/prompt"')


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_an_agent_that_never_lists_is_prompted_after_five_seconds() -> None:
    times: list[float] = []

    async def script(turn: Turn) -> None:
        times.append(anyio.current_time())
        turn.say("Which tools?")

    async with scripted(agent=Played([script], lists_tools=False)) as agent:
        for _ in range(2):
            began = anyio.current_time()
            with pytest.raises(ToolsNotSeen, match=r"over acp.*Which tools?"):
                await agent.think(Answer).text("Go").run()
            assert times.pop() - began == pytest.approx(5)
        async with agent.session() as session:
            began = anyio.current_time()
            for _ in range(2):
                with pytest.raises(ToolsNotSeen):
                    await session.think(Answer).text("Go").run()
            assert times.pop(0) - began == pytest.approx(5)
            assert times.pop() - began == pytest.approx(5.3)  # it had its chance; the next prompts wait less


@pytest.mark.virtual_time
async def test_a_turn_that_needs_no_tools_does_not_wait_for_them(caplog: pytest.LogCaptureFixture) -> None:
    async def says(turn: Turn) -> None:
        turn.say("Hello")

    async def lists_and_returns(turn: Turn) -> None:
        await turn.list_tools()
        await turn.returns(result={"value": 1})

    handler = Played([says, lists_and_returns, says, says], lists_tools=False, relists=False)
    async with scripted(agent=handler) as agent, agent.session() as session:
        began = anyio.current_time()
        assert await session.think().text("Hi").run() == "Hello"
        assert anyio.current_time() == began
        with caplog.at_level("INFO", "thinkwell"):
            assert await session.think(Answer).text("Go").run() == Answer(value=1)
        assert "did not fetch our tools within 5 s" in caplog.text
        assert anyio.current_time() - began == pytest.approx(5)  # it has its time before the first that does
        for _ in range(2):
            assert await session.think().text("Thanks").run() == "Hello"
        assert anyio.current_time() - began == pytest.approx(5)
    assert len(handler.sent.sessions) == 1


@pytest.mark.parametrize("chosen", WAYS)
@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.05)})])
async def test_the_error_names_the_way_that_was_tried(chosen: Any) -> None:
    async def script(turn: Turn) -> None:
        pass

    capabilities = s.AgentCapabilities(mcp_capabilities=CAPABILITIES["acp"])
    handler = Played([script], capabilities=capabilities, lists_tools=False)
    async with scripted(agent=handler, tools_via=chosen) as agent:
        with pytest.raises(ToolsNotSeen, match=f"over {chosen}") as caught:
            await agent.think(Answer).text("Go").run()
    assert caught.value.via == (chosen,)


async def test_a_text_without_tools_needs_no_server() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Text")

    handler = Played([script], capabilities=s.AgentCapabilities())
    async with scripted(agent=handler) as agent:
        assert await agent.think().text("Go").run() == "Text"
    assert handler.sent.sessions[0].mcp_servers == ()


async def test_a_host_that_cannot_open_fails_the_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    handler = Played([], capabilities=s.AgentCapabilities())
    async with scripted(agent=handler) as agent:
        for _ in range(2):
            with anyio.fail_after(5), pytest.raises(FileNotFoundError):
                await agent.think(Answer).text("Go").run()
    assert not handler.sent.sessions


async def test_whenever_the_agent_is_left_a_way_that_is_being_opened_ends_with_it() -> None:
    for moments in range(60):
        with anyio.fail_after(20):
            async with scripted(agent=Played(), tools_via="stdio") as agent:
                stream = agent.think(Answer).text("Go").stream()
                for _ in range(moments):
                    await checkpoint()
            await stream.wait()
            assert isinstance(stream.result.exception(), AgentClosed)


# Ways that are advertised and do not work


class Deaf(McpAgent):
    """Does nothing with servers that it is to reach in some of the ways, and refuses others."""

    ignores: tuple[type[s.McpServer], ...] = ()
    refuses: tuple[type[s.McpServer], ...] = ()

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        if any(isinstance(server, self.refuses) for server in request.mcp_servers):
            raise RpcError(-32602, "no such servers here")
        seen = tuple(server for server in request.mcp_servers if not isinstance(server, self.ignores))
        return await super().open_session(replace(request, mcp_servers=seen), proceed)


@asynccontextmanager
async def deaf_agent(
    *scripts: Script,
    ignores: tuple[type[s.McpServer], ...],
    refuses: tuple[type[s.McpServer], ...] = (),
    modes: s.SessionModeState | None = None,
    kind: type[Deaf] = Deaf,
    **options: Any,
) -> AsyncGenerator[tuple[Agent, Deaf]]:
    """Open an agent that advertises HTTP."""
    close = s.SessionCapabilities(close=s.SessionCloseCapabilities())
    capabilities = s.AgentCapabilities(mcp_capabilities=CAPABILITIES["http"], session_capabilities=close)
    ours, theirs = memory_transport_pair()
    async with anyio.create_task_group() as tasks:
        handler = kind(scripts, tasks, capabilities)
        handler.ignores, handler.refuses, handler.modes = ignores, refuses, modes
        async with playing(theirs, handler), open_agent("deaf", transport=ours, **options) as agent:
            yield agent, handler
            tasks.cancel_scope.cancel()


async def returns_one(turn: Turn) -> None:
    await turn.returns(value=1)


MODES = s.SessionModeState(
    current_mode_id="ask",
    available_modes=(s.SessionMode(id="ask", name="Ask"), s.SessionMode(id="act", name="Act")),
)


@pytest.mark.fast_time(10)
async def test_another_way_is_tried_where_the_agent_does_not_come_for_our_tools() -> None:
    with anyio.fail_after(300):
        async with deaf_agent(returns_one, ignores=(s.McpServerHttp,)) as (agent, handler):
            stream = agent.think(Answer).text("Go").stream(include={"tools_seen"})
            assert await stream.result == Answer(value=1)
            assert [event.via async for event in stream if isinstance(event, events.ToolsSeen)] == ["stdio"]
            assert stream.session_id == "session-2"
            assert handler.sent.closed[0] == "session-1"
            # The next one begins with the way that works.
            assert await agent.think(Answer).text("Go").run() == Answer(value=1)
    kinds: list[list[type[object]]] = [
        [type(server) for server in session.mcp_servers] for session in handler.requests("session/new")
    ]
    assert kinds == [[s.McpServerHttp], [s.McpServerStdio], [s.McpServerStdio]]


class Late(Deaf):
    """Comes for our tools when its model calls one, and not before."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: dict[str, Any] = {}

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        opened = await super().open_session(replace(request, mcp_servers=()), proceed)
        self.waiting[opened.session_id] = request.mcp_servers
        return opened

    async def mcp(self, turn: Turn, method: str, params: dict[str, Any] | None) -> dict[str, Any]:
        for server in self.waiting[turn.session_id]:
            if not isinstance(server, self.ignores):
                self.clients[turn.session_id] = await self._tasks.start(self._hold, server)
        return await super().mcp(turn, method, params)


def ways_of(handler: Played) -> list[str]:
    servers = [server for session in handler.sent.sessions for server in session.mcp_servers]
    return ["http" if server.get("type") == "http" else "stdio" for server in servers]


@pytest.mark.fast_time(10)
async def test_a_way_that_works_is_learnt_when_the_agent_comes_in_the_turn() -> None:
    with anyio.fail_after(300):
        async with deaf_agent(returns_one, ignores=(s.McpServerHttp,), kind=Late) as (agent, handler):
            for _ in range(2):
                assert await agent.think(Answer).text("Go").run() == Answer(value=1)
    assert ways_of(handler) == ["http", "stdio", "stdio"]


@pytest.mark.fast_time(10)
async def test_a_way_that_works_is_taken_by_sessions_that_began_with_another() -> None:
    with anyio.fail_after(300):
        async with deaf_agent(returns_one, ignores=(s.McpServerHttp,)) as (agent, handler):
            async with agent.session() as early:
                assert await agent.think(Answer).text("Go").run() == Answer(value=1)
                assert await early.think(Answer).text("Go").run() == Answer(value=1)
            assert await agent.think(Answer).text("Go").run() == Answer(value=1)
    assert ways_of(handler) == ["http", "http", "stdio", "stdio", "stdio"]


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.5)})])
async def test_a_way_that_works_is_kept_though_another_session_finds_none() -> None:
    class Lame(Deaf):
        """Does nothing with the tools of its first session, whichever way they go."""

        openings = 0

        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            self.openings += 1  # first session, second session, and then each of them over its second way
            seen = () if self.openings in (1, 3) else request.mcp_servers
            return await super().open_session(replace(request, mcp_servers=seen), proceed)

    async def script(turn: Turn) -> None:
        if turn.session_id in handler.clients:
            await turn.returns(value=1)

    async with (
        deaf_agent(script, ignores=(s.McpServerHttp,), kind=Lame) as (agent, handler),
        anyio.create_task_group() as tasks,
    ):
        stream = agent.think(Answer).text("Go").stream()

        async def begin_later() -> None:
            await anyio.sleep(3)  # so it finds its way while the first one waits over its second
            assert await agent.think(Answer).text("Go").run() == Answer(value=1)

        tasks.start_soon(begin_later)
        with pytest.raises(ToolsNotSeen):
            await stream.result
        await stream.wait()
        assert await agent.think(Answer).text("Go").run() == Answer(value=1)
    assert ways_of(handler)[-1] == "stdio"


@pytest.mark.fast_time(10)
async def test_a_session_that_is_replaced_for_another_way_stays_as_it_was_set() -> None:
    with anyio.fail_after(300):
        async with (
            deaf_agent(returns_one, ignores=(s.McpServerHttp,), modes=MODES) as (agent, handler),
            agent.session(output=Answer) as session,
        ):
            await session.set_mode("act")
            assert await session.think(Answer).text("Go").run() == Answer(value=1)
            assert session.mode == "act"
            assert session.id == "session-2"
    assert handler.asked.count("session/set_mode act") == 2


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_all_ways_are_tried_once_and_named() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Which tools?")

    async with deaf_agent(script, ignores=(s.McpServerHttp, s.McpServerStdio)) as (agent, handler):
        for seconds, tried in ((10, ("http", "stdio")), (5, ("http",))):
            began = anyio.current_time()
            with pytest.raises(ToolsNotSeen) as caught:
                await agent.think(Answer).text("Go").run()
            assert caught.value.via == tried
            assert anyio.current_time() - began == pytest.approx(seconds)
        assert len(handler.sent.prompts) == 2
        assert await agent.think().text("Go").run() == "Which tools?"


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_a_way_that_the_agent_refuses_is_not_gone() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Which tools?")

    async with deaf_agent(script, ignores=(s.McpServerHttp,), refuses=(s.McpServerStdio,)) as (
        agent,
        handler,
    ):
        began = anyio.current_time()
        with pytest.raises(ToolsNotSeen) as caught:
            await agent.think(Answer).text("Go").run()
        assert caught.value.via == ("http",)
        assert anyio.current_time() - began == pytest.approx(5)
        assert [prompt.session_id for prompt in handler.sent.prompts] == ["session-1"]


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_no_other_way_is_tried_where_one_was_chosen_or_none_is_needed() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Done.")

    async with deaf_agent(script, ignores=(s.McpServerHttp,), tools_via="http") as (agent, handler):
        with pytest.raises(ToolsNotSeen, match="over http"):
            await agent.think(Answer).text("Go").run()
        assert len(handler.sent.sessions) == 1
    async with deaf_agent(script, ignores=(s.McpServerHttp,)) as (agent, handler), agent.session() as session:
        assert await session.think().text("Go").run() == "Done."
        assert len(handler.sent.sessions) == 1


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_cancelled_while_another_way_is_tried() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Done.")

    opening = anyio.Event()

    class Slow(Deaf):
        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            if len(self.sent.sessions) > 1:
                opening.set()
                await anyio.sleep(1000)
            return await super().open_session(request, proceed)

    ours, theirs = memory_transport_pair()
    capabilities = s.AgentCapabilities(mcp_capabilities=CAPABILITIES["http"])
    async with anyio.create_task_group() as tasks:
        handler = Slow([script], tasks, capabilities)
        handler.ignores = (s.McpServerHttp,)
        async with (
            playing(theirs, handler),
            open_agent("slow", transport=ours) as agent,
            agent.session() as session,
        ):
            stream = session.think(Answer).text("Go").stream()
            await opening.wait()
            stream.cancel()
            await stream.wait()
            assert session.id == "session-1"
            assert await session.think().text("Go").run() == "Done."
            assert [prompt.session_id for prompt in handler.sent.prompts] == ["session-1"]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.05)})])
async def test_a_turn_that_is_cancelled_while_it_waits_does_not_spoil_the_next() -> None:
    async with (
        deaf_agent(returns_one, ignores=(s.McpServerHttp,)) as (agent, handler),
        agent.session() as session,
    ):
        stream = session.think(Answer).text("Go").stream(timeout=1)
        with pytest.raises(ThoughtTimeout):
            await stream.result
        await stream.wait()
        assert not handler.sent.prompts
        assert await session.think(Answer).text("Go").run() == Answer(value=1)


@pytest.mark.fast_time(10)
async def test_an_agent_that_has_one_session_only_keeps_it() -> None:
    class Single(Deaf):
        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            response = await super().open_session(request, proceed)
            if client := self.clients.pop(response.session_id, None):
                self.clients["session-1"] = client
            return replace(response, session_id="session-1")

    async def script(turn: Turn) -> None:
        assert handler.sent.closed == ()
        turn.say("Here it is.")
        await turn.returns(value=1)

    with anyio.fail_after(300):
        async with deaf_agent(script, ignores=(s.McpServerHttp,), kind=Single) as (agent, handler):
            stream = agent.think(Answer).text("Go").stream()
            assert await stream.result == Answer(value=1)
            await stream.wait()
            assert stream.view.text == "Here it is."
            assert len(handler.sent.sessions) == 2
            assert handler.sent.closed == ("session-1",)


@pytest.mark.parametrize("how", ["hangs", "in use"])
@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.05)})])
async def test_another_way_that_brings_no_session_of_its_own_is_not_gone(how: str) -> None:
    async def script(turn: Turn) -> None:
        turn.say("Which tools?")

    class Odd(Deaf):
        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            if any(isinstance(server, s.McpServerStdio) for server in request.mcp_servers):
                if how == "hangs":
                    await anyio.sleep_forever()
                return s.NewSessionResponse(session_id="session-1")
            return await super().open_session(request, proceed)

    ours, theirs = memory_transport_pair()
    capabilities = s.AgentCapabilities(mcp_capabilities=CAPABILITIES["http"])
    async with anyio.create_task_group() as tasks:
        handler = Odd([script], tasks, capabilities)
        handler.ignores = (s.McpServerHttp,)
        async with (
            playing(theirs, handler),
            open_agent("odd", transport=ours) as agent,
            agent.session() as other,
            agent.session() as session,
        ):
            with pytest.raises(ToolsNotSeen) as caught:
                await session.think(Answer).text("Go").run()
            assert caught.value.via == ("http",)
            assert [prompt.session_id for prompt in handler.sent.prompts] == ["session-2"]
            assert other.id == "session-1"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.05)})])
async def test_a_way_that_has_worked_is_not_left_for_a_session_that_is_slow() -> None:
    class Once(Deaf):
        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            if len(self.sent.sessions) > 1:
                self.ignores = (s.McpServerHttp,)
            return await super().open_session(request, proceed)

    async def script(turn: Turn) -> None:
        if len(handler.sent.sessions) == 1:
            await turn.returns(value=1)
        turn.say("Which tools?")

    ours, theirs = memory_transport_pair()
    capabilities = s.AgentCapabilities(mcp_capabilities=CAPABILITIES["http"])
    async with anyio.create_task_group() as tasks:
        handler = Once([script], tasks, capabilities)
        async with playing(theirs, handler), open_agent("once", transport=ours) as agent:
            assert await agent.think(Answer).text("Go").run() == Answer(value=1)
            with pytest.raises(ToolsNotSeen) as caught:
                await agent.think(Answer).text("Go").run()
            assert caught.value.via == ("http",)
        tasks.cancel_scope.cancel()
