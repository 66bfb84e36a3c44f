"""The built-in agent as a client of the bare protocol sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from builtin.tool_box import ToolBox, asked, new_session, server, talking, text_prompt

from thinkwell.testing import Backend, virtual_backend
from thinkwell_acp import ClientHandler, RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def anyio_backend(anyio_backend: str) -> Backend:
    """An event loop with virtual time: some of it is about limits in time."""
    return virtual_backend(anyio_backend)


async def test_it_says_what_it_can_do() -> None:
    async with talking(ClientHandler()) as client:
        assert client.agent.agent_info is not None
        assert "no model" in (client.agent.agent_info.title or "")
        assert client.capabilities.mcp_capabilities == s.McpCapabilities(acp=True)
        assert client.capabilities.session_capabilities.close is not None
        assert client.capabilities.prompt_capabilities.embedded_context
        assert not client.capabilities.load_session


def test_the_pace_is_that_of_the_prompt_or_of_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def seconds(meta: dict[str, object] | None = None) -> float:
        async with talking(ToolBox()) as client:
            session_id = await new_session(client, project)
            began = anyio.current_time()
            await client.prompt(text_prompt(session_id, "Go", meta=meta))
            return anyio.current_time() - began

    def taken(meta: dict[str, object] | None = None) -> float:
        backend, options = virtual_backend("asyncio")
        return anyio.run(seconds, meta, backend=backend, backend_options=options)

    assert taken() == taken({"thinkwell.builtin/pace": "soon"}) == 0
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0.02")
    slow = taken()
    assert slow > 0.1
    assert taken({"thinkwell.builtin/pace": "soon"}) == pytest.approx(slow)
    assert taken({"thinkwell.builtin/pace": 0.04}) == pytest.approx(2 * slow)
    assert taken({"thinkwell.builtin/pace": -1}) == 0
    monkeypatch.delenv("THINKWELL_BUILTIN_PACE")
    assert taken() == pytest.approx(slow / 2)


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
    assert box.listed == 20


async def test_unreachable_servers_are_reported(project: Path) -> None:
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


@pytest.mark.parametrize(
    ("answered", "told"),
    [
        (None, "Method not found: mcp/connect"),
        (["what?"], "ConnectMcpResponse: Expected `object`, got `array`"),
    ],
)
async def test_a_client_that_cannot_connect_its_server_is_reported(
    project: Path, answered: object, told: str
) -> None:
    class Deaf(ToolBox):
        async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> Any:
            if answered is None:
                raise RpcError.method_not_found("mcp/connect")
            return answered

    box = await asked(project, box=Deaf())
    assert f"I do without the MCP server box: {told}" in box.thoughts, box.thoughts


async def test_a_client_may_leave_in_the_middle_of_a_call(project: Path) -> None:
    box = Waiting()
    async with talking(box) as client:
        session_id = await new_session(client, project, server())
        client.connection.call("session/prompt", text_prompt(session_id, "Go"), lambda _: None)
        await box.waits.wait()
    assert "wait answers" not in box.thoughts


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
        self.waits = anyio.Event()

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        if request.method == "tools/call":
            self.waits.set()
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
            await box.waits.wait()
            await anyio.wait_all_tasks_blocked()
            await client.close_session(s.CloseSessionRequest(session_id=session_id))
        with pytest.raises(RpcError, match="There is no session"):
            await client.prompt(text_prompt(session_id, "Go"))
    assert reasons == ["cancelled"] * 2
    assert len(box.disconnected) == 1


async def test_content_that_is_no_text_and_no_file_is_reported(project: Path) -> None:
    box = ToolBox()
    async with talking(box) as client:
        session_id = await new_session(client, project)
        image = {"type": "image", "data": "", "mimeType": "image/png"}
        params = {"sessionId": session_id, "prompt": [image], "_meta": {"thinkwell.builtin/pace": "soon"}}
        await client.connection.request("session/prompt", params)
    assert "I cannot look at content of type image" in box.thoughts


async def test_a_result_stated_in_words_counts_where_the_tool_leaves_it_open(project: Path) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"result": {}}, "required": ["result"]}
    box = ToolBox([["return_result"]], schemas={"return_result": schema})
    words = 'Call return_result with JSON Schema: {"broken" and JSON Schema: {"type": "integer"}'
    await asked(project, words, box=box)
    assert box.results() == [{"result": 20}]


async def test_a_server_that_never_answers_is_given_up(project: Path) -> None:
    """As are those that are programs: what waits is the same."""

    class Silent(ToolBox):
        async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
            await anyio.sleep_forever()

    box = Silent()
    async with talking(box) as client:
        session_id = await new_session(client, project, server())
        await anyio.sleep(60)
        await client.prompt(text_prompt(session_id, "Go"))
    assert "box: it did not answer initialize within 60 seconds." in box.thoughts


async def test_a_server_that_starts_late_delays_nothing(project: Path) -> None:
    go = anyio.Event()

    class Late(ToolBox):
        async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
            await go.wait()
            return await super().message_mcp(request)

    box = Late([["one"]])
    began = anyio.current_time()
    async with talking(box) as client:
        session_id = await new_session(client, project, server())
        assert anyio.current_time() - began == pytest.approx(10)
        await client.prompt(text_prompt(session_id, "Go"))
        assert "box: it is still starting." in box.thoughts
        go.set()
        while "one answers: fine" not in box.thoughts:
            await client.prompt(text_prompt(session_id, "Go"))
