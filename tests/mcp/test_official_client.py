"""The tool server as the official MCP client sees it: every way, every revision it speaks, both backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import mcp_types as types
import pytest
from mcp.client.subscriptions import ToolsListChanged, listen
from mcp.shared.exceptions import MCPError
from mcp_support import OTHER, REVISIONS, WAYS, Bench, Inbox, Way, Workbench, bench
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.client.session import ClientSession

SECOND_LOOK = ("2024-11-05", "2025-03-26", "2025-11-25")
"""Revisions that `make test` tries over ACP only: the other ways carry whatever is said."""

# The client leaves its HTTP library's generators to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")


def in_all_revisions(*ways: Way) -> pytest.MarkDecorator:
    """Repeat a test for each way and revision."""
    return pytest.mark.parametrize(
        ("way", "revision"),
        [
            pytest.param(
                way, revision, marks=pytest.mark.long if way != "acp" and revision in SECOND_LOOK else ()
            )
            for way in ways
            for revision in REVISIONS
        ],
        indirect=["way"],
    )


LIST_CHANGED = "notifications/tools/list_changed"


@pytest.fixture
async def way(request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    name: Way = request.param
    async with bench(name) as opened:
        yield opened


@pytest.fixture
def workbench() -> Workbench:
    return Workbench()


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def call(session: ClientSession, name: str, **arguments: object) -> types.CallToolResult:
    with anyio.fail_after(30):
        result = await session.call_tool(name, arguments)
    assert isinstance(result, types.CallToolResult)
    return result


def test_all_revisions_of_the_client_are_tried() -> None:
    assert set(REVISIONS) == set(KNOWN_PROTOCOL_VERSIONS)


@in_all_revisions(*WAYS)
async def test_lists_and_calls_the_tools(way: Bench, workbench: Workbench, revision: str) -> None:
    async with way.connect(workbench.server, revision) as session:
        with anyio.fail_after(30):
            listing = await session.list_tools()
            await workbench.server.wait_listed()
        assert [tool.name for tool in listing.tools] == [tool.name for tool in workbench.server.tools]
        assert listing.tools[0].description == "Adds two numbers."
        assert listing.tools[0].input_schema["required"] == ["a", "b"]
        assert workbench.server.list_count == 1
        result = await call(session, "add", a=2, b=3)
        assert (text(result), result.is_error, result.structured_content) == ('{"sum":5}', False, {"sum": 5})
        for name, arguments, said in (
            ("fail", {"why": "no such shelf"}, "no such shelf"),
            ("fail", {}, "LookupError"),
            ("garbage", {}, None),
        ):
            failed = await call(session, name, **arguments)
            assert failed.is_error, name
            assert said in (None, text(failed))
        assert text(await call(session, "echo", still="here")) == '{"still":"here"}'


@in_all_revisions(*WAYS)
async def test_requests_that_cannot_be_served(way: Bench, workbench: Workbench, revision: str) -> None:
    async with way.connect(workbench.server, revision) as session:
        with pytest.raises(MCPError, match=r"sub.*add, echo") as unknown:
            await call(session, "sub", a=1)
        with pytest.raises(MCPError) as refused:
            await call(session, "refuse")
        with pytest.raises(MCPError) as prompts:
            await session.list_prompts()
        await call(session, "echo")
    errors = [(caught.value.error.code, caught.value.error.data) for caught in (unknown, refused, prompts)]
    assert errors[:2] == [(-32602, {"tool": "sub"}), (-32042, {"why": "busy"})]
    assert errors[2][0] == -32601


@in_all_revisions(*WAYS)
async def test_calls_run_at_once(way: Bench, workbench: Workbench, revision: str) -> None:
    async with way.connect(workbench.server, revision) as session, anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(call, session, "wait")
        await workbench.until(waiting=3)
        assert text(await call(session, "echo", n=1)) == '{"n":1}'
        workbench.go.set()


@in_all_revisions("http", "shim")  # no ids travel over ACP: see test_acp.py
async def test_a_call_is_taken_back(way: Bench, workbench: Workbench, revision: str) -> None:
    async with way.connect(workbench.server, revision) as session:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, session, "wait")
            await workbench.until(waiting=1)
            tasks.cancel_scope.cancel()
        await workbench.until(cancelled=1)
        assert text(await call(session, "echo", n=1)) == '{"n":1}'


@in_all_revisions(*WAYS)
async def test_reports_progress_before_the_result(way: Bench, workbench: Workbench, revision: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with way.connect(workbench.server, revision) as session:
        with anyio.fail_after(30):
            result = await session.call_tool("step", {}, progress_callback=on_progress)
        await call(session, "echo")
    assert isinstance(result, types.CallToolResult)
    assert text(result) == "stepped"
    assert [(round(progress, 3), total, message) for progress, total, message in heard] == [
        (1, 3, "step 1"),
        (2, 3, "step 2"),
        (2, 3, "step 2"),
    ]
    assert heard[2][0] > heard[1][0]


@in_all_revisions(*WAYS)
async def test_hears_that_the_tools_changed(way: Bench, workbench: Workbench, revision: str) -> None:
    inbox = Inbox()
    async with way.connect(workbench.server, revision, inbox) as session:
        await session.list_tools()
        if revision == "2026-07-28":
            with anyio.fail_after(30):
                async with listen(session, tools_list_changed=True) as subscription:
                    workbench.server.set_tools([OTHER])
                    assert await anext(subscription) == ToolsListChanged()
                    workbench.server.close()
                    with pytest.raises(StopAsyncIteration):
                        await anext(subscription)
            return
        workbench.server.set_tools([OTHER])
        await inbox.until(LIST_CHANGED)
        listing = await session.list_tools()
        assert [tool.name for tool in listing.tools] == ["other"]
        with pytest.raises(MCPError, match="other"):
            await call(session, "add", a=1, b=2)
        with anyio.fail_after(30):
            await workbench.server.wait_listed()
