"""The three ways by which an agent reaches our tools, with the official MCP client at its end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp_agent import CAPABILITIES, mcp_agent
from pydantic import BaseModel
from scripted import ScriptedAgent, Turn, scripted
from trio.testing import MockClock

from thinkwell import CapabilityMissing, ToolContext, ToolsNotSeen, events, open_agent
from thinkwell_acp import Transport, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

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
    (request,) = handler.sessions
    (server,) = request.mcp_servers
    kinds = {"acp": s.McpServerAcp, "http": s.McpServerHttp, "stdio": s.McpServerStdio}
    assert isinstance(server, kinds[way])


async def test_the_way_can_be_chosen() -> None:
    with anyio.fail_after(20):
        async with mcp_agent("acp", tools_via="http") as (agent, handler):
            async with agent.session():
                pass
            (server,) = handler.sessions[0].mcp_servers
            assert isinstance(server, s.McpServerHttp)


@pytest.mark.parametrize(
    ("chosen", "flag"), [("acp", "mcpCapabilities.acp"), ("http", "mcpCapabilities.http")]
)
async def test_a_way_that_is_not_advertised_is_refused_before_anything_is_sent(
    chosen: str, flag: str
) -> None:
    handler = ScriptedAgent([], capabilities=s.AgentCapabilities())
    async with scripted(agent=handler, tools_via=chosen) as agent:
        with pytest.raises(CapabilityMissing) as caught:
            await agent.think(Answer).text("Go").run()
    assert caught.value.capability == flag
    assert handler.sessions == []


async def test_two_runs_have_servers_of_their_own(way: str) -> None:
    async def script(turn: Turn) -> None:
        number = int(turn.text.split()[0])
        answer = await turn.call("double", {"x": number})
        await turn.returns(value=answer["content"][0]["text"])

    with anyio.fail_after(20):
        async with mcp_agent(way, script) as (agent, handler):
            streams = [agent.think(Answer).text(f"{n} ").tool(double).stream() for n in range(3)]
            assert [(await stream.result).value for stream in streams] == [0, 2, 4]
            for stream in streams:
                await stream.wait()
        names = {server.name for request in handler.sessions for server in request.mcp_servers}
        assert len(names) == 3


async def test_a_slow_tool_reports_and_arrives(way: str) -> None:
    started, go = anyio.Event(), anyio.Event()

    async def slow(context: ToolContext) -> str:
        context.progress(1, 2, "half")
        started.set()
        await go.wait()
        return "late"

    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        answers.append(await turn.call("slow", {}))
        await turn.returns(value=1)

    with anyio.fail_after(20):
        async with mcp_agent(way, script) as (agent, _):
            stream = agent.think(Answer).text("Go").tool(slow).stream()
            await started.wait()
            go.set()
            await stream.result
            await stream.wait()
    assert answers[0]["content"][0]["text"] == "late"


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
    class Lazy(ScriptedAgent):
        async def _connect_tools(self, session_id: str, servers: Any) -> None:
            await super()._connect_tools(session_id, servers)
            tasks.start_soon(self._later, session_id)

        async def _later(self, session_id: str) -> None:
            await anyio.wait_all_tasks_blocked()
            await self.list_tools(self.mcp[session_id])

    async def script(turn: Turn) -> None:
        await turn.returns(value=1)

    ours, theirs = memory_transport_pair()
    recorder = Recorder(ours)
    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as tasks,
            serve_agent(theirs, Lazy([script], lists_tools=False)),
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

    async with scripted(agent=ScriptedAgent([script], lists_tools=False)) as agent:
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


@pytest.mark.parametrize("chosen", WAYS)
@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.05)})])
async def test_the_error_names_the_way_that_was_tried(chosen: Any) -> None:
    async def script(turn: Turn) -> None:
        pass

    capabilities = s.AgentCapabilities(mcp_capabilities=CAPABILITIES["acp"])
    handler = ScriptedAgent([script], capabilities=capabilities, lists_tools=False)
    async with scripted(agent=handler, tools_via=chosen) as agent:
        with pytest.raises(ToolsNotSeen, match=f"over {chosen}") as caught:
            await agent.think(Answer).text("Go").run()
    assert caught.value.via == (chosen,)


async def test_a_text_without_tools_needs_no_server() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Text")

    handler = ScriptedAgent([script], capabilities=s.AgentCapabilities())
    async with scripted(agent=handler) as agent:
        assert await agent.think().text("Go").run() == "Text"
    assert handler.sessions[0].mcp_servers == ()


async def test_a_host_that_cannot_open_fails_the_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    handler = ScriptedAgent([], capabilities=s.AgentCapabilities())
    async with scripted(agent=handler) as agent:
        for _ in range(2):
            with anyio.fail_after(5), pytest.raises(FileNotFoundError):
                await agent.think(Answer).text("Go").run()
    assert handler.sessions == []
