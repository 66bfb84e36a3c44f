"""Which agent is started, and what is said when that does not work."""

from __future__ import annotations

import json
import subprocess
import sys
from codecs import BOM_UTF8
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from drawing import drawn
from hypothesis import strategies as st
from pydantic import BaseModel
from scripted import Played, Turn, scripted
from trio.testing import MockClock

from thinkwell import (
    AgentClosed,
    AgentExited,
    AgentNotFound,
    AgentReported,
    AgentStartFailed,
    CapabilityMissing,
    LoginRequired,
    Workspace,
    open_agent,
)
from thinkwell.agents import AgentProfile, Program, find_agent
from thinkwell.journal import SqliteJournal
from thinkwell.testing import ScriptedAgent as ScriptedPlay
from thinkwell.testing import script
from thinkwell.web import served_agent
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from thinkwell import Agent
    from thinkwell_acp import Transport

PROGRAM = str(Path(__file__).parent / "programs" / "odd_agent.py")


def odd(mode: str, *args: str) -> list[str]:
    return [sys.executable, PROGRAM, mode, *args]


@pytest.fixture(autouse=True)
def no_choice_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THINKWELL_AGENT_CMD", raising=False)
    monkeypatch.delenv("THINKWELL_AGENT", raising=False)


@asynccontextmanager
async def opened(mode: str, *args: str, **options: Any) -> AsyncGenerator[Agent]:
    with anyio.fail_after(30):
        async with open_agent(command=odd(mode, *args), **options) as agent:
            yield agent


@pytest.mark.usefixtures("deleted_folder")
async def test_a_current_folder_that_was_deleted(tmp_path: Path) -> None:
    needed: list[Callable[[], object]] = [
        lambda: open_agent(command=odd("fine")),
        lambda: open_agent(command=odd("fine"), cwd="sub"),
        lambda: Workspace(".", write=True),
        lambda: served_agent(command=odd("fine")),
        lambda: SqliteJournal("runs.db"),
    ]
    for call in needed:
        with pytest.raises(NotADirectoryError, match=r"\): the current folder .* has been deleted"):
            call()
    async with ScriptedPlay(script.says("Hi.")).open(cwd=tmp_path) as agent:
        assert await agent.think().text("Go").run() == "Hi."
        with pytest.raises(NotADirectoryError, match="has been deleted"):
            await agent.list_sessions("sub")


@pytest.mark.usefixtures("deleted_folder")
@pytest.mark.parametrize("program", ["agents", "doctor"])
def test_programs_in_a_folder_that_was_deleted(program: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", f"thinkwell.{program}"], capture_output=True, timeout=60, check=False
    )
    assert ran.returncode == 1
    assert b"has been deleted" in ran.stderr


class Marked:
    """A transport on which the agent begins lines with a byte order mark."""

    def __init__(self, transport: Transport, marks: Iterator[bool]) -> None:
        self.send, self.aclose = transport.send, transport.aclose
        self._receive = transport.receive
        self._marks = marks

    async def receive(self) -> bytes:
        lines = (await self._receive()).splitlines(keepends=True)  # the other end sends whole lines
        return b"".join(BOM_UTF8 + line if next(self._marks) else line for line in lines)


@pytest.mark.draws
async def test_a_byte_order_mark_before_a_line_is_no_part_of_it() -> None:
    says_all = script.says("Hi. ").uses("look").asks("rm", expect="reject_once").says("Bye.")
    for marks in [[True], *drawn(st.lists(st.booleans(), min_size=1, max_size=9), 20)]:
        async with ScriptedPlay(says_all.returns({"result": 7})).connect() as pipe:
            with anyio.fail_after(30):
                async with open_agent("marked", transport=Marked(pipe, cycle(marks))) as agent:
                    stream = agent.think(int).text("Go").stream()
                    assert await stream.result == 7
                    await stream.wait()
        assert stream.view.text == "Hi. Bye."
        assert [tool.title for tool in stream.view.tools.values()] == ["look", "rm"]


async def facts(agent: Agent) -> dict[str, Any]:
    """Ask a working agent what it is."""
    told: dict[str, Any] = json.loads(await agent.think().text("Who are you?").run())
    return told


async def failure(mode: str, **options: Any) -> AgentStartFailed:
    """Return why an agent did not start."""
    with pytest.raises(AgentStartFailed) as caught:
        async with opened(mode, **options):
            raise AssertionError("it started")
    assert str(caught.value).startswith("Agent 'odd_agent.py'")
    return caught.value


# Which one


async def tried(agent: str | None = None, command: str | list[str] | None = None) -> tuple[str, ...]:
    """Return the command that is started where it ends at once, or else the agent that there is not."""
    with pytest.raises((AgentStartFailed, AgentNotFound)) as caught:
        async with open_agent(agent, command=command, cwd="/"):
            raise AssertionError("it started")
    if isinstance(caught.value, AgentStartFailed):
        return caught.value.command
    assert isinstance(caught.value, AgentNotFound)
    return (caught.value.agent,)


async def test_the_argument_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no/programs")
    monkeypatch.setenv("THINKWELL_AGENT_CMD", "from-env --acp")
    monkeypatch.setenv("THINKWELL_AGENT", "codex")
    assert await tried("claude") == ("claude",)
    assert await tried(command=["mine", "--acp"]) == ("mine",)
    assert await tried() == ("from-env",)
    monkeypatch.setenv("THINKWELL_AGENT_CMD", "")
    assert await tried() == ("codex",)


@pytest.mark.parametrize("name", ["", None])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_without_a_choice_it_is_the_built_in_one(
    name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name is not None:
        monkeypatch.setenv("THINKWELL_AGENT", name)
    async with open_agent() as agent:
        assert agent.name == "builtin"


@pytest.fixture
def ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program in the user's home."""
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    return str(program)


async def test_a_command_may_be_a_line(ends_at_once: str) -> None:
    assert await tried(command=f"{ends_at_once} --model 'big one'") == (ends_at_once, "--model", "big one")


async def test_a_line_knows_where_home_is(ends_at_once: str) -> None:
    home = str(Path.home())
    assert await tried(command="~/agent ~/rules ~ a~/b") == (ends_at_once, f"{home}/rules", "~", "a~/b")
    with pytest.raises(AgentNotFound, match="~/agent"):
        async with open_agent(command=["~/agent"]):
            pass


async def test_a_line_of_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError  # as in a container with a user of a number alone

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(AgentNotFound, match="~/agent"):
        async with open_agent(command="~/agent --acp"):
            pass


@pytest.mark.parametrize("command", ["", "  ", []])
async def test_an_empty_command_is_refused(command: Any) -> None:
    with pytest.raises(ValueError, match="the command is empty"):
        async with open_agent(command=command):
            pass


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("claude@latest",), {"command": "x"}, "the command says which version; leave @… out"),
        ((), {"command": "x", "transport": memory_transport_pair()[0]}, "give a command or a connection"),
        (("claude",), {"permissions": "yes"}, 'choose "deny", "ask" or "allow"'),
        (("claude",), {"tools_via": "smoke"}, 'choose "acp", "http" or "stdio"'),
    ],
)
async def test_what_contradicts_itself_is_refused_at_once(
    arguments: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        async with open_agent(*arguments, **options):
            pass


async def test_the_command_in_the_environment_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_AGENT_CMD", " ".join(odd("works", "--from-env")))
    with anyio.fail_after(30):
        async with open_agent(None) as agent:
            assert (await facts(agent))["args"] == ["--from-env"]
            assert agent.name == "odd_agent.py"
            assert agent.info is not None
            assert agent.info.name == "odd"


async def test_the_environment_is_the_callers_without_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("COLOUR", "red")
    async with opened("works", env={"COLOUR": "blue", "MORE": "1"}) as agent:
        env = (await facts(agent))["env"]
    assert "CLAUDECODE" not in env
    assert (env["ANTHROPIC_API_KEY"], env["COLOUR"], env["MORE"]) == ("secret", "blue", "1")


@pytest.mark.parametrize(("env", "found"), [(None, "0"), ({"ENABLE_TOOL_SEARCH": "1"}, "1")])
async def test_an_agent_gets_what_it_needs_unless_the_caller_says_otherwise(
    env: dict[str, str] | None, found: str
) -> None:
    program = Program(command=tuple(odd("works")))
    profile = AgentProfile(name="odd", program=program, env=find_agent("claude").env)
    with anyio.fail_after(30):
        async with open_agent(profile, env=env) as agent:
            assert (await facts(agent))["env"]["ENABLE_TOOL_SEARCH"] == found


async def test_the_agent_works_in_the_folder_that_was_named(tmp_path: Path) -> None:
    async with opened("works", cwd=tmp_path) as agent:
        assert (await facts(agent))["cwd"] == str(tmp_path)
    handler = Played([talk])
    inner = tmp_path / "inner"
    inner.mkdir()
    async with scripted(agent=handler, cwd=tmp_path) as agent:
        await agent.think().text("Go").run()
        await agent.think().text("Go").cwd(inner).run()
        async with agent.session(cwd=inner) as session:
            with pytest.raises(ValueError, match="a session keeps the folder"):
                session.think().text("Go").cwd(tmp_path).stream()
        async with agent.session():
            pass
    assert [session.cwd for session in handler.sent.sessions] == [
        str(path) for path in (tmp_path, inner, inner, tmp_path)
    ]


async def talk(turn: Turn) -> None:
    turn.say("Text")


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(NotADirectoryError, match="missing"):
        async with open_agent("claude", cwd=missing):
            pass
    async with scripted() as agent:
        with pytest.raises(NotADirectoryError, match=r"cwd\(\)"):
            agent.think().cwd(missing)
        with pytest.raises(NotADirectoryError, match="session"):
            async with agent.session(cwd=missing):
                pass


# What goes wrong


async def test_no_agent_of_that_name() -> None:
    with pytest.raises(AgentNotFound, match=r"mean 'claude'\?.*command=") as caught:
        async with open_agent("cloud"):
            pass
    assert caught.value.agent == "cloud"
    with pytest.raises(AgentNotFound, match=r"known: .*builtin, .*claude, .*codex, .*command="):
        async with open_agent("zzz"):
            pass


async def test_no_such_program() -> None:
    with pytest.raises(AgentNotFound, match="no program 'no-such-agent' on the PATH"):
        async with open_agent(command="no-such-agent --acp"):
            pass


async def test_a_known_agent_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(AgentNotFound, match=r"'npx'.*Node\.js"):
        async with open_agent("claude", env={"PATH": str(tmp_path)}):
            pass


async def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("no program\n")
    with pytest.raises(AgentStartFailed, match="not an executable") as caught:
        async with open_agent(command=[str(program)]):
            pass
    assert caught.value.agent == "agent"


STARTS: list[tuple[str, int | None, list[str]]] = [
    (
        "exit",
        3,
        [
            "it exited with code 3 before it answered. Run its command by hand",
            "The end of its standard error:",
            "no key was found",
        ],
    ),
    ("killed", -9, ["was killed by signal 9"]),
    ("garbage", 2, ["'Usage: odd [--acp]'", "is it started in its ACP mode?"]),
    ("closes", None, ["it closed the connection before it answered"]),
    ("version", None, ["speaks version 7", "Install a version of it that speaks 1"]),
    ("refuses", None, ["This is not for you [-32600]"]),
    ("nonsense", None, ["protocolVersion"]),
]


@pytest.mark.parametrize(("mode", "exit_code", "words"), STARTS, ids=[mode for mode, _, _ in STARTS])
async def test_an_agent_that_does_not_start(mode: str, exit_code: int | None, words: list[str]) -> None:
    error = await failure(mode)
    assert error.exit_code == exit_code
    assert [word for word in words if word not in str(error)] == []


async def test_an_agent_that_never_answers() -> None:
    error = await failure("garbage_and_wait", startup_timeout=4)
    assert "did not answer `initialize` within 4 seconds" in str(error)
    assert "What can I do for you" in str(error)
    assert "odd agent in mode" in error.stderr_tail


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
async def test_the_time_for_the_start_is_a_minute() -> None:
    ours, theirs = memory_transport_pair()
    began = anyio.current_time()
    with pytest.raises(AgentStartFailed, match="within 60 seconds"):
        async with open_agent("silent", transport=ours):
            pass
    assert anyio.current_time() - began == pytest.approx(60, abs=2)
    await theirs.aclose()


async def test_a_login_wanted_at_the_start() -> None:
    with pytest.raises(LoginRequired) as caught:
        async with opened("login_at_once"):
            pass
    assert caught.value.methods == ()


async def test_a_login_wanted_for_a_session() -> None:
    async with opened("login") as agent:
        with pytest.raises(LoginRequired):
            await agent.think().text("Go").run()
        with pytest.raises(LoginRequired) as caught:
            async with agent.session():
                pass
        assert [method.id for method in caught.value.methods] == ["browser", "console"]
        assert caught.value.methods[1].command == (sys.executable, PROGRAM, "login", "login")
        with pytest.raises(CapabilityMissing):
            await agent.authenticate("console")
        await agent.authenticate("browser")
        assert "pid" in await facts(agent)


async def test_an_agent_that_dies_in_mid_turn() -> None:
    async with opened("dies") as agent, opened("works") as other:
        stream = agent.think().text("Go").stream()
        with pytest.raises(AgentExited) as caught:
            await stream.result
        assert caught.value.exit_code == 70
        assert "out of memory" in caught.value.stderr_tail
        assert [event.type async for event in stream] == ["message"]
        assert stream.view.text == "I am"
        with pytest.raises(AgentExited):
            await agent.think().text("Again").run()
        assert "pid" in await facts(other)


@pytest.mark.parametrize("whose", ["agent", "stream"])
async def test_an_agent_that_we_kill_says_so(whose: str) -> None:
    async with opened("works") as agent:
        stream = agent.think().text("Stay").stream()
        kills: dict[str, Callable[[], None]] = {"agent": agent.kill, "stream": stream.kill}
        kills[whose]()
        with pytest.raises(
            AgentExited, match=rf"was ended by thinkwell, because {whose}\.kill\(\) was called;"
        ) as caught:
            await stream.result
        assert caught.value.exit_code == -9


async def test_an_agent_that_had_ended_before_we_kill_it_ended_by_itself() -> None:
    async with opened("dies") as agent:
        with pytest.raises(AgentExited):
            await agent.think().text("Go").run()
        agent.kill()
        with pytest.raises(AgentExited, match="exited with code 70"):
            await agent.think().text("Again").run()


async def test_a_closed_agent_starts_nothing() -> None:
    async with scripted(talk) as agent:
        async with agent.session() as session:
            pass
        with pytest.raises(AgentClosed):
            session.think().text("Go").stream()
    with pytest.raises(AgentClosed):
        agent.think().text("Go").stream()
    with pytest.raises(AgentClosed):
        async with agent.session():
            pass
    for call in (agent.list_sessions(), agent.delete_session("old"), agent.authenticate("browser")):
        with pytest.raises(AgentClosed):
            await call
    assert agent.capabilities.mcp_capabilities.acp


async def test_an_error_of_the_agents_is_passed_on() -> None:
    async with scripted(agent=Played(answers={"session/new": fail})) as agent:
        with pytest.raises(AgentReported) as caught:
            await agent.think().text("Go").run()
        assert (caught.value.code, caught.value.message, caught.value.data) == (
            -32603,
            "LookupError: no model",
            None,
        )
        with pytest.raises(AgentReported):
            async with agent.session():
                raise AssertionError("it opened")


async def fail(_request: object, _proceed: object) -> None:
    raise LookupError("no model")


# MCP servers of the user's


class Answer(BaseModel):
    value: int


FILES = s.McpServerStdio(name="files", command="/bin/files", args=("--all",), env=())
WEB = s.McpServerHttp(name="web", url="https://example.com/mcp", headers=())
SSE = s.McpServerSse(name="old", url="https://example.com/sse", headers=())


async def test_mcp_servers_are_passed_on_beside_ours() -> None:
    capabilities = s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(acp=True, http=True))

    async def script(turn: Turn) -> None:
        await turn.returns(value=1, result={"value": 1})

    handler = Played([script], capabilities=capabilities)
    async with scripted(agent=handler, mcp_servers=[FILES]) as agent:
        await agent.think(Answer).text("Go").run()
        async with agent.session(mcp_servers=[WEB]):
            pass
    first, second = (session.mcp_servers for session in handler.requests("session/new"))
    assert first[0] == FILES
    assert isinstance(first[1], s.McpServerAcp)
    assert second[:2] == (FILES, WEB)


@pytest.mark.parametrize(("server", "flag"), [(WEB, "http"), (SSE, "sse")])
async def test_mcp_servers_that_the_agent_cannot_reach_are_refused(server: s.McpServer, flag: str) -> None:
    handler = Played([talk])
    async with scripted(agent=handler) as agent:
        with pytest.raises(CapabilityMissing, match=server.name) as caught:
            async with agent.session(mcp_servers=[server]):
                pass
        assert caught.value.capability == f"mcpCapabilities.{flag}"
    assert not handler.sent.sessions
