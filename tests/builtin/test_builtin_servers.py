"""MCP servers that the built-in agent starts."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from builtin.tool_box import OpenBuiltin, ToolBox, new_session, talking, text_prompt

from thinkwell import Agent, McpStdio, open_agent
from thinkwell.testing import Backend, virtual_backend
from thinkwell_acp import ClientHandler, RpcError, connect, stdio_transport
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell import RunView, Session

pytestmark = pytest.mark.usefixtures("quick")

LIMIT = 60
ODD = str(Path(__file__).parent / "programs" / "odd_server.py")
USERS = str(Path(__file__).parents[1] / "mcp_servers" / "programs" / "user_server.py")
COMMAND = (sys.executable, "-m", "thinkwell.builtin")


class Odd:
    """The server with a fault, and what it leaves behind."""

    def __init__(self, folder: Path) -> None:
        self.pid_file = folder / "pid"
        self.heard_file = folder / "heard"
        self._go = folder / "go"

    def server(self, fault: str, name: str = "odd") -> McpStdio:
        env = {"PID": str(self.pid_file), "HEARD": str(self.heard_file), "GO": str(self._go)}
        return McpStdio(name, [sys.executable, ODD, fault], env=env)

    @property
    def pid(self) -> int:
        return int(self.pid_file.read_text())

    @property
    def heard(self) -> list[Any]:
        return [json.loads(line) for line in self.heard_file.read_text().splitlines()]

    def go(self, step: int) -> None:
        """Let the server go on behind a step."""
        Path(f"{self._go}{step}").touch()

    async def wait_gone(self, pid: int | None = None) -> None:
        """Wait until the process is gone: it is no child of this one, so nothing tells."""
        await self._until(lambda: not _runs(pid or self.pid))

    async def wait_heard(self, method: str) -> None:
        """Wait until the server has been asked something: another process writes it down."""
        await self._until(lambda: self.heard_file.exists() and f'"{method}"' in self.heard_file.read_text())

    async def wait_answered(self, number: int) -> None:
        """Wait until the server has the answer to what it has asked."""
        await self.wait_heard("tools/call")
        await self._until(
            lambda: any(message["id"] == number for message in self.heard if "result" in message)
        )

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a process, in real time."""
        until = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < until
            await anyio.to_thread.run_sync(time.sleep, 0.01)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return (
            stat.read_text().rpartition(")")[2].split()[0] != "Z"
        )  # nobody reaps orphans in some containers
    except OSError:
        return not Path("/proc/self").exists()


@pytest.fixture
def odd(tmp_path: Path) -> Odd:
    return Odd(tmp_path)


async def view_of(starter: Agent | Session, *tools: Callable[..., object]) -> RunView:
    """Run a turn that asks for nothing but text, and return what there was to see."""
    builder = starter.think().text("Go")
    for tool in tools:
        builder = builder.tool(tool)
    stream = builder.stream()
    await stream.result
    await stream.wait()
    return stream.view


async def turn_with(builtin: OpenBuiltin, server: McpStdio, *tools: Callable[..., object]) -> RunView:
    """Run one turn of an agent that has a server, and may call its tools."""
    with anyio.fail_after(LIMIT):
        async with builtin(mcp_servers=[server], permissions="allow") as agent:
            return await view_of(agent, *tools)


def calls(view: RunView) -> list[tuple[str, str]]:
    return [(tool.title, tool.status) for tool in view.tools.values() if tool.kind == "other"]


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


# What works


@pytest.mark.long
async def test_tools_of_a_server_of_the_official_package_are_called(builtin: OpenBuiltin) -> None:
    server = McpStdio("inventory", [sys.executable, USERS, "stdio"], env={"STOCK": "42"})
    with anyio.fail_after(LIMIT):
        async with builtin(mcp_servers=[server], permissions="allow") as agent:
            stream = agent.think(int).text("How many files?").tool(double).stream()
            assert await stream.result == 2
            await stream.wait()
    assert calls(stream.view) == [
        ("double", "completed"),
        ("mcp__inventory__stock", "completed"),
        ("return_result", "completed"),
    ]
    assert "stock answers: " in stream.view.thoughts
    assert ": 42" in stream.view.thoughts


async def test_our_tools_are_reached_over_stdio(builtin: OpenBuiltin) -> None:
    with anyio.fail_after(LIMIT):
        async with builtin(tools_via="stdio") as agent, agent.session() as session:
            stream = session.think(int).text("How many files?").tool(double).stream()
            assert await stream.result == 2
            await stream.wait()
            assert [status for _, status in calls(stream.view)] == ["completed"] * 2
            assert "double answers: 4" in stream.view.thoughts

            def triple(number: int) -> int:
                """Triple a number."""
                return 3 * number

            view = await view_of(session, triple)  # the list has changed
            assert "triple answers: 6" in view.thoughts
            assert "double" not in view.thoughts


async def test_a_foreign_tool_is_not_called_without_permission(builtin: OpenBuiltin, odd: Odd) -> None:
    with anyio.fail_after(LIMIT):
        async with builtin(mcp_servers=[odd.server("none")]) as agent:
            view = await view_of(agent, double)
    assert calls(view) == [("double", "completed"), ("mcp__odd__weigh", "failed")]
    assert "weigh does not help: I was not given the permission to call it" in view.thoughts
    assert "tools/call" not in [message.get("method") for message in odd.heard]


async def test_a_client_that_answers_no_questions_permits_nothing(project: Path, odd: Odd) -> None:
    class Mute(ToolBox):
        async def request_permission(
            self, request: s.RequestPermissionRequest, /
        ) -> s.RequestPermissionResponse:
            raise RpcError.method_not_found("session/request_permission")

    handler = Mute()
    async with talking(handler) as client:
        session_id = await new_session(client, project, wire(odd.server("none")))
        await client.prompt(text_prompt(session_id, "Go"))
    assert "I was not given the permission" in handler.thoughts


async def test_a_server_gets_few_variables_and_the_folder_of_the_session(
    builtin: OpenBuiltin, project: Path, odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("SOME_API_KEY", "secret")
    show = "import json, os, sys; json.dump([dict(os.environ), os.getcwd()], open(sys.argv[1], 'w'))"
    shown = odd.heard_file
    server = McpStdio("shows", [sys.executable, "-c", show, str(shown)], env={"OWN": "1"})
    view = await turn_with(builtin, server)
    env, folder = json.loads(shown.read_text())
    assert "SOME_API_KEY" not in env
    assert (env["OWN"], env["LC_ALL"], env["PATH"]) == ("1", "C.UTF-8", os.environ["PATH"])
    assert Path(folder) == project.resolve()
    assert "I do without the MCP server shows: it ended with exit code 0" in view.thoughts


async def test_changed_tools_of_a_server_are_there_in_the_next_turn(builtin: OpenBuiltin, odd: Odd) -> None:
    with anyio.fail_after(LIMIT):
        async with (
            builtin(mcp_servers=[odd.server("changes")], permissions="allow") as agent,
            agent.session() as session,
        ):
            assert "weigh answers: 7 kilos" in (await view_of(session)).thoughts
            while "measure answers: 7 kilos" not in (await view_of(session)).thoughts:
                pass


async def test_what_a_server_asks_is_answered(builtin: OpenBuiltin, odd: Odd) -> None:
    view = await turn_with(builtin, odd.server("asks"))
    assert "weigh answers: 7 kilos" in view.thoughts
    answers = {message["id"]: message for message in odd.heard if "method" not in message}
    assert answers["p"]["result"] == {}
    assert answers["r"]["error"]["code"] == -32601


# What does not


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("dies at once", "it ended with exit code 3: no \ufffd[31mlicense."),
        ("closes its output", "it closed its output."),
        ("wrong answer", "its answer to initialize is malformed (Expected `object`, got `array`)."),
        ("future", "it speaks MCP 2099-01-01\ufffd, and this client does not."),
        ("no list", "it refused tools/list."),
        pytest.param(
            "prints for ever",
            "it prints malformed output, such as no\ufffd[31mthing.",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "asks for ever", "it sends requests, and does not read the answers.", marks=pytest.mark.long
        ),
    ],
)
async def test_a_server_that_cannot_be_used_is_reported(
    builtin: OpenBuiltin, odd: Odd, fault: str, told: str
) -> None:
    view = await turn_with(builtin, odd.server(fault), double)
    assert f"I do without the MCP server odd: {told}\n" in view.thoughts
    assert "double answers: 4" in view.thoughts
    await odd.wait_gone()


async def test_a_missing_program_is_reported(builtin: OpenBuiltin, tmp_path: Path) -> None:
    missing = s.McpServerStdio(name="missing", command=str(tmp_path / "none"), args=(), env=())
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    broken = s.McpServerStdio(name="broken", command=str(text), args=(), env=())
    with anyio.fail_after(LIMIT):
        async with builtin(mcp_servers=[missing, broken]) as agent:
            view = await view_of(agent)
    assert f"the MCP server missing: there is no program {tmp_path}/none." in view.thoughts
    assert f"the MCP server broken: it ended with exit code 1: {text} cannot be started" in view.thoughts


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("floods stderr", ["weigh answers: 7 kilos"]),
        ("prints", ["weigh answers: 7 kilos"]),
        ("names", ["weigh answers: 7 kilos"]),
        ("many", ["tool6 answers: 7 kilos"]),
        ("endless pages", ["tool6 answers: 7 kilos"]),
        (
            "dies in a call",
            [
                "measure does not help: it ended with exit code 4: ValueError: no \ufffd[31mscales",
                "weigh does not help: it ended with exit code 4: ValueError: no \ufffd[31mscales",
            ],
        ),
        ("refuses", ["weigh does not help: not \ufffd[31mtoday"]),
        ("wrong result", ["weigh does not help: its answer to tools/call is malformed"]),
        ("long text", ["weigh answers: \ufffd[2Jxxxx"]),
        ("long line", ["weigh does not help: the other side sent a line of more than 16777216 bytes"]),
        (
            "schemas",
            [
                "I cannot call tool0: its schema makes no sense (",
                "I cannot call tool1: a: I have no fact that fits 1000000000000 characters.",
                "I cannot call tool2: a: I have no fact that fits 1000000000 values.",
                "I cannot call tool3: a.0",
                "I cannot call tool4: a\ufffd[2J: I have no fact that fits the pattern \ufffd{9}.",
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_server_with_a_fault_costs_its_own_tools_at_most(
    builtin: OpenBuiltin, odd: Odd, fault: str, told: Sequence[str]
) -> None:
    view = await turn_with(builtin, odd.server(fault), double)
    for each in told:
        assert each in view.thoughts
    assert "double answers: 4" in view.thoughts
    assert len(view.thoughts) < 10_000
    assert "\x1b" not in view.thoughts + view.text + "".join(tool.title for tool in view.tools.values())
    await odd.wait_gone()


async def test_a_server_without_tools_is_not_asked_for_them(builtin: OpenBuiltin, odd: Odd) -> None:
    view = await turn_with(builtin, odd.server("no tools"))
    assert "without" not in view.thoughts
    assert "tools/list" not in [message.get("method") for message in odd.heard]


async def test_tools_that_are_called_like_ours_are_told_apart(builtin: OpenBuiltin, odd: Odd) -> None:
    with anyio.fail_after(LIMIT):
        async with builtin(
            mcp_servers=[odd.server("clash")], tools_via="stdio", permissions="allow"
        ) as agent:
            stream = agent.think(int).text("How many files?").tool(double).stream()
            assert await stream.result == 2
            await stream.wait()
    titles = [title for title, _ in calls(stream.view)]
    assert len(set(titles)) == len(titles) == 4
    assert {"mcp__odd__double", "mcp__odd__return_result"} < set(titles)
    assert "mcp__odd__double answers: 7 kilos" in stream.view.thoughts
    assert "__double answers: 4" in stream.view.thoughts


# Waiting


class Clock:
    """Lets virtual time pass, or not: processes have a time of their own."""

    def __init__(self) -> None:
        self._goes = anyio.Event()
        self._goes.set()

    async def stand_still(self) -> None:
        """Let no time pass until `go`."""
        self._goes = anyio.Event()
        while not self._goes.is_set():
            await anyio.to_thread.run_sync(time.sleep, 0.02)  # while a thread works, the clock stands still

    def go(self) -> None:
        """Let time pass again."""
        self._goes.set()


class TestTheTimeOfACall:
    """Its limits, in virtual time."""

    @pytest.fixture
    def anyio_backend(self, anyio_backend: str) -> Backend:
        """The event loop."""
        return virtual_backend(anyio_backend)

    async def test_a_call_that_hangs_is_given_up(self, odd: Odd, builtin: OpenBuiltin) -> None:
        clock = Clock()
        servers = [odd.server("hangs in a call")]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.stand_still)
            async with builtin(mcp_servers=servers, permissions="allow") as agent:
                stream = agent.think().text("Go").stream()
                await odd.wait_heard("tools/call")
                began = anyio.current_time()
                clock.go()
                await stream.result
                assert anyio.current_time() - began == pytest.approx(120)
                told = "weigh does not help: the call was silent for 120 seconds"
                assert told in stream.view.thoughts
                tasks.start_soon(clock.stand_still)
                os.kill(odd.pid, signal.SIGKILL)
                await odd.wait_gone()
            clock.go()

    async def test_a_slow_tool_that_shows_progress_has_its_time(self, odd: Odd, builtin: OpenBuiltin) -> None:
        clock = Clock()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.stand_still)
            async with builtin(mcp_servers=[odd.server("is slow")], permissions="allow") as agent:
                stream = agent.think().text("Go").stream()
                for step in range(3):
                    await odd.wait_answered(step)  # it asks behind each sign of life
                    clock.go()
                    await anyio.sleep(100)
                    tasks.start_soon(clock.stand_still)
                    odd.go(step)
                await stream.result
                assert "weigh answers: 7 kilos" in stream.view.thoughts
            clock.go()


# Ending


async def test_a_server_that_dies_between_turns_is_reported(builtin: OpenBuiltin, odd: Odd) -> None:
    with anyio.fail_after(LIMIT):
        async with (
            builtin(mcp_servers=[odd.server("none")], permissions="allow") as agent,
            agent.session() as session,
        ):
            assert "weigh answers" in (await view_of(session)).thoughts
            os.kill(odd.pid, signal.SIGKILL)
            await odd.wait_gone()
            told = "I do without the MCP server odd: it ended with exit code 137."
            while told not in (await view_of(session)).thoughts:  # the guard has to see it too
                pass


@pytest.mark.parametrize("fault", ["none", "has a child", "hangs in a call"])
async def test_servers_end_with_their_session(builtin: OpenBuiltin, odd: Odd, fault: str) -> None:
    with anyio.fail_after(LIMIT):
        async with builtin(mcp_servers=[odd.server(fault)], permissions="allow") as agent:
            async with agent.session() as session:
                stream = session.think().text("Go").stream()
                if fault == "hangs in a call":
                    await odd.wait_heard("tools/call")
                else:
                    await stream.result
                pid = odd.pid
                assert _runs(pid)
            await odd.wait_gone(pid)


async def test_servers_end_with_the_agent(project: Path, odd: Odd) -> None:
    with anyio.fail_after(LIMIT):
        async with open_agent(
            "builtin", cwd=project, mcp_servers=[odd.server("hangs in a call")], permissions="allow"
        ) as agent:
            agent.think().text("Go").stream()
            await odd.wait_heard("tools/call")
        await odd.wait_gone()


def wire(server: McpStdio) -> s.McpServerStdio:
    return s.McpServerStdio(
        name=server.name,
        command=server.command[0],
        args=server.command[1:],
        env=tuple(s.EnvVariable(name=name, value=value) for name, value in server.env.items()),
    )


@pytest.mark.parametrize("fault", ["none", "hangs in a call", "has a child"])
async def test_no_server_outlives_an_agent_that_is_killed(project: Path, odd: Odd, fault: str) -> None:
    with anyio.fail_after(LIMIT):
        async with stdio_transport(COMMAND) as transport, connect(transport, ClientHandler()) as client:
            await client.initialize()
            await new_session(client, project, wire(odd.server(fault)))
            assert _runs(odd.pid)
            os.kill(transport.pid, signal.SIGKILL)
            await odd.wait_gone()


async def test_a_session_that_is_taken_back_leaves_no_server(project: Path, odd: Odd) -> None:
    async with talking(ToolBox()) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(new_session, client, project, wire(odd.server("hangs")))
            await odd.wait_heard("initialize")
            tasks.cancel_scope.cancel()
        await odd.wait_gone()
