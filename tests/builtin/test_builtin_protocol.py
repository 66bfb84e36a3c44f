"""The built-in agent as a client of the bare protocol sees it."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from thinkwell.builtin._agent import BuiltinAgent
from thinkwell.builtin._speech import PACE, pace_of
from thinkwell_acp import Client, ClientHandler, RpcError, connect, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s
from thinkwell_acp.mcp._client import MAX_PAGES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("quick")

LIMIT = 20


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")


class ToolBox(ClientHandler):
    """A client with MCP servers: `pages` of tools, and what calling one does."""

    def __init__(self, pages: Sequence[Sequence[str]] = ((),), *, lists: bool = True) -> None:
        self.pages = pages
        self.lists = lists
        self.details: dict[str, Any] = {}
        self.updates: list[s.SessionUpdate] = []
        self.listed = 0
        self.relisted = anyio.Event()
        self.disconnected: list[str] = []
        self.refuses_disconnect = False

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        self.updates += [notification.update for notification in batch]

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        return s.ConnectMcpResponse(connection_id=secrets.token_hex(4))

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> s.DisconnectMcpResponse:
        self.disconnected.append(request.connection_id)
        if self.refuses_disconnect:
            raise RpcError.method_not_found("mcp/disconnect")
        return s.DisconnectMcpResponse()

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        match request.method:
            case "initialize":
                return {}
            case "tools/list" if self.lists:
                self.listed += 1
                if self.listed > len(self.pages):
                    self.relisted.set()
                page = int((request.params or {}).get("cursor", 0))
                more = {"nextCursor": str(page + 1)} if page + 1 < len(self.pages) else {}
                return {"tools": [{"name": name, **self.details} for name in self.pages[page]], **more}
            case "tools/call":
                assert request.params is not None
                if request.params["name"] == "gone":
                    raise RpcError.method_not_found("gone")
                return {
                    "content": [{"type": "text", "text": "fine"}, {"type": "image"}],
                    "structuredContent": {"result": 7},
                }
            case _:
                raise RpcError.method_not_found(request.method)

    @property
    def thoughts(self) -> str:
        chunks = [update for update in self.updates if isinstance(update, s.AgentThoughtChunk)]
        return "".join(chunk.content.text for chunk in chunks if isinstance(chunk.content, s.TextContent))


@asynccontextmanager
async def talking(handler: ClientHandler) -> AsyncGenerator[Client]:
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(LIMIT):
        async with BuiltinAgent() as agent, serve_agent(theirs, agent), connect(ours, handler) as client:
            await client.initialize()
            yield client


def server(name: str = "box") -> s.McpServerAcp:
    return s.McpServerAcp(name=name, server_id="1")


async def new_session(client: Client, project: Path, *servers: s.McpServer) -> str:
    request = s.NewSessionRequest(cwd=str(project), mcp_servers=servers)
    return (await client.new_session(request)).session_id


def text_prompt(session_id: str, text: str, **fields: Any) -> s.PromptRequest:
    return s.PromptRequest(session_id=session_id, prompt=(s.TextContent(text=text),), **fields)


async def test_it_says_what_it_can_do() -> None:
    async with talking(ClientHandler()) as client:
        assert client.capabilities.mcp_capabilities == s.McpCapabilities(acp=True)
        assert client.capabilities.session_capabilities.close is not None
        assert client.capabilities.prompt_capabilities.embedded_context
        assert not client.capabilities.load_session


def test_a_pace_that_is_no_number_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pace_of({"thinkwell.builtin/pace": "soon"}) == 0
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "2")
    assert pace_of(None) == 2
    assert pace_of({"thinkwell.builtin/pace": -1}) == 0
    monkeypatch.delenv("THINKWELL_BUILTIN_PACE")
    assert pace_of(None) == PACE


async def test_a_folder_that_is_not_there_is_refused(project: Path) -> None:
    async with talking(ClientHandler()) as client:
        with pytest.raises(RpcError, match="there is no folder"):
            await new_session(client, project / "missing")


async def test_tools_on_several_pages_are_all_asked(project: Path) -> None:
    box = ToolBox([["one"], ["two", "gone"]])
    async with talking(box) as client:
        session_id = await new_session(client, project, server())
        assert (await client.prompt(text_prompt(session_id, "Go"))).stop_reason == "end_turn"
    assert "one answers: fine" in box.thoughts
    assert "two answers: fine" in box.thoughts
    assert "gone does not help: Method not found: gone" in box.thoughts
    calls = [update for update in box.updates if isinstance(update, s.ToolCallProgress) and update.raw_output]
    assert {"result": 7} in [call.raw_output for call in calls]


async def test_a_list_without_an_end_is_cut_off(project: Path) -> None:
    box = ToolBox([["one"]] * 100)
    async with talking(box) as client:
        await new_session(client, project, server())
    assert box.listed == MAX_PAGES


async def test_servers_that_cannot_be_reached_are_told_of(project: Path) -> None:
    box = ToolBox(lists=False)
    remote = s.McpServerHttp(name="far", url="http://127.0.0.1:1/", headers=())
    async with talking(box) as client:
        request = s.NewSessionRequest(cwd=str(project), mcp_servers=(server("broken"), remote))
        # Not by `client.new_session`, which looks at what the agent advertises.
        answer = await client.connection.request("session/new", request)
        session_id = s.decode(s.NewSessionResponse, answer).session_id
        await client.prompt(text_prompt(session_id, "Go"))
    assert "I do without the MCP server broken: Method not found: tools/list." in box.thoughts
    assert "I do without the MCP server far: I take MCP servers over stdio and over ACP only." in box.thoughts


async def test_changed_tools_are_listed_again(project: Path) -> None:
    box = ToolBox([["one"]])
    async with talking(box) as client:
        await new_session(client, project, server())
        connection = "unknown"
        client.notify_mcp(
            s.MessageMcpNotification(connection_id=connection, method="notifications/tools/list_changed")
        )
        client.notify_mcp(s.MessageMcpNotification(connection_id=connection, method="notifications/progress"))
        assert box.listed == 1


async def test_a_list_that_fails_to_come_again_costs_nothing(project: Path) -> None:
    box = Remembering([["one"]])
    async with talking(box) as client:
        session_id = await new_session(client, project, server())
        box.lists = False
        client.notify_mcp(
            s.MessageMcpNotification(
                connection_id=box.connections[0], method="notifications/tools/list_changed"
            )
        )
        await box.asked.wait()
        await client.prompt(text_prompt(session_id, "Go"))
    assert "one answers: fine" in box.thoughts


class Remembering(ToolBox):
    """Remembers the connections, and says when it is asked for a list that it does not give."""

    def __init__(self, pages: Sequence[Sequence[str]]) -> None:
        super().__init__(pages)
        self.connections: list[str] = []
        self.asked = anyio.Event()

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        response = await super().connect_mcp(request)
        self.connections.append(response.connection_id)
        return response

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        if request.method == "tools/list" and not self.lists:
            self.asked.set()
        return await super().message_mcp(request)


class Waiting(ToolBox):
    """A client whose tool never answers."""

    def __init__(self) -> None:
        super().__init__([["wait"]])
        self.called = anyio.Event()

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        if request.method == "tools/call":
            self.called.set()
            await anyio.sleep_forever()
        return await super().message_mcp(request)


async def test_closing_a_session_ends_its_turns_and_its_connections(project: Path) -> None:
    box = Waiting()
    box.refuses_disconnect = True
    reasons: list[str] = []
    async with talking(box) as client:
        session_id = await new_session(client, project, server())

        async def prompt() -> None:
            # Not by `client.prompt`, which keeps the turns of a session apart by itself.
            answer = await client.connection.request("session/prompt", text_prompt(session_id, "Go"))
            reasons.append(s.decode(s.PromptResponse, answer).stop_reason)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt)
            tasks.start_soon(prompt)
            await box.called.wait()
            await anyio.wait_all_tasks_blocked()
            await client.close_session(s.CloseSessionRequest(session_id=session_id))
        with pytest.raises(RpcError, match="There is no session"):
            await client.prompt(text_prompt(session_id, "Go"))
    assert reasons == ["cancelled"] * 2
    assert len(box.disconnected) == 1


async def test_what_is_no_text_and_no_file_is_told_of(project: Path) -> None:
    box = ToolBox()
    async with talking(box) as client:
        session_id = await new_session(client, project)
        image = {"type": "image", "data": "", "mimeType": "image/png"}
        params = {"sessionId": session_id, "prompt": [image], "_meta": {"thinkwell.builtin/pace": "soon"}}
        await client.connection.request("session/prompt", params)
    assert "I cannot look at content of type image" in box.thoughts


async def test_a_result_stated_in_words_counts_where_the_tool_leaves_it_open(project: Path) -> None:
    box = ToolBox([["return_result"]])
    box.details = {"inputSchema": {"type": "object", "properties": {"result": {}}, "required": ["result"]}}
    async with talking(box) as client:
        session_id = await new_session(client, project, server())
        words = 'Call return_result with JSON Schema: {"broken" and JSON Schema: {"type": "integer"}'
        await client.prompt(text_prompt(session_id, words))
    starts = [
        update
        for update in box.updates
        if isinstance(update, s.ToolCallStart) and update.title == "return_result"
    ]
    assert [start.raw_input for start in starts] == [{"result": 20}]
