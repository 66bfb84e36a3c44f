"""What the doctor says of agents that work, and of what they do with sessions and tools."""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from doctor.patients import (
    NAMES,
    ODD,
    UNKNOWN,
    Picky,
    check,
    examined,
    examined_process,
    examined_with_tasks,
    failed,
    sick,
    statuses,
)
from login.login_agent import LoginAgent
from mcp_agent import McpAgent
from msgspec.structs import replace
from scripted import EVERY_SESSION_CALL, Played, Proceed, never
from trio.testing import MockClock

from thinkwell import McpHttp, McpStdio
from thinkwell.agents import AgentProfile, KnownError, Program, Quirk
from thinkwell.doctor import Check, diagnose
from thinkwell_acp import ConnectionClosed, RpcError, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

VIRTUAL = pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.05)})])

# The client of the test agent leaves its HTTP library's generators to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http:ResourceWarning")


@pytest.fixture(autouse=True)
def no_choice_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THINKWELL_AGENT_CMD", raising=False)
    monkeypatch.delenv("THINKWELL_AGENT", raising=False)


async def test_the_built_in_agent_is_well() -> None:
    told: list[Check] = []
    diagnosis = await examined_process(on_check=told.append)
    assert diagnosis.ok
    assert not diagnosis.login_wanted
    assert diagnosis.exit_code == 0
    assert diagnosis.agent == "builtin"
    assert diagnosis.title == "The built-in agent"
    assert diagnosis.command[1:] == ("-P", "-m", "thinkwell.builtin")
    assert diagnosis.version is not None
    assert diagnosis.capabilities is not None
    assert diagnosis.capabilities["mcpCapabilities"] == {"acp": True}
    assert diagnosis.ways == ("acp", "stdio")
    assert [each.name for each in told] == NAMES
    assert told == list(diagnosis.checks)
    assert statuses(diagnosis) == dict.fromkeys(NAMES, "ok") | UNKNOWN | {"tools over http": "skipped"}
    assert json.loads(diagnosis.to_json())["ok"] is True
    assert json.loads(diagnosis.to_json())["verdict"] == "unknown"


async def test_every_way_to_our_tools_is_tried() -> None:
    flags = s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(acp=True, http=True))
    agents: list[McpAgent] = []

    def agent(tasks: TaskGroup) -> McpAgent:
        agents.append(McpAgent([], tasks, flags))
        return agents[0]

    with anyio.fail_after(20):
        diagnosis = await examined_with_tasks(agent)
    (handler,) = agents
    assert diagnosis.ok
    assert diagnosis.ways == ("acp", "http", "stdio")
    assert check(diagnosis, "tools over acp").detail.endswith("runs go this way")
    kinds: list[list[type[object]]] = [
        [type(server) for server in request.mcp_servers] for request in handler.requests("session/new")
    ]
    assert kinds == [[], [s.McpServerAcp], [s.McpServerHttp], [s.McpServerStdio]]
    assert handler.lists == [["return_result"], ["return_result"]]


@VIRTUAL
async def test_nothing_is_prompted_and_no_session_is_left() -> None:
    handler = Played([], capabilities=EVERY_SESSION_CALL)
    diagnosis = await examined(handler)
    assert diagnosis.ok
    assert diagnosis.verdict == "unknown"
    offer = check(diagnosis, "typed result").hint
    assert offer.startswith("diagnose(…, prompt=True) sends one, which costs one turn of the agent's model")
    assert not handler.sent.prompts
    assert handler.asked == ["session/new", "session/close", "session/delete"] * 3
    assert check(diagnosis, "capabilities").detail == (
        "sessions: load, resume, list, fork, close, delete; prompts: text; MCP: acp, stdio"
    )


@VIRTUAL
async def test_an_agent_that_forgets_no_session_is_well_all_the_same() -> None:
    fails = {"session/delete": RpcError(-32603, "never")}
    assert (await examined(Played(capabilities=EVERY_SESSION_CALL, fails_at=fails))).ok


@VIRTUAL
async def test_an_agent_that_runs_already() -> None:
    diagnosis = await examined(Played([], capabilities=EVERY_SESSION_CALL))
    assert diagnosis.agent == "mine"
    assert diagnosis.command == ()
    expected = dict.fromkeys(NAMES, "ok") | UNKNOWN | dict.fromkeys(("found", "installed", "ends"), "skipped")
    expected |= {"tools over http": "skipped", "tools over stdio": "warning"}
    assert statuses(diagnosis) == expected


# Login


@VIRTUAL
async def test_an_agent_that_wants_a_login() -> None:
    handler = LoginAgent("session/new")
    diagnosis = await examined(handler, mcp_servers=[McpHttp("web", "http://127.0.0.1:1/")])
    assert not diagnosis.ok
    assert diagnosis.login_wanted
    assert diagnosis.exit_code == 3
    assert [method.id for method in diagnosis.auth_methods] == ["browser", "console"]
    login = check(diagnosis, "login")
    assert login.status == "failed"
    assert login.detail == "it wants a login first (Authentication required)"
    assert "browser (Browser)" in login.hint
    assert statuses(diagnosis)["session"] == statuses(diagnosis)["mcp servers"] == "skipped"
    assert handler.calls == ["session/new"]
    assert diagnosis.table().endswith("mine wants a login; whether it works cannot be known before that.\n")
    assert diagnosis.verdict == "unknown"


async def test_how_to_log_in_is_said() -> None:
    profile = AgentProfile(
        name="mine", program=Program(command=(sys.executable, ODD, "login")), login="mine login"
    )
    diagnosis = await examined_process(profile)
    assert diagnosis.login_wanted
    own, typed, console, line, rest = check(diagnosis, "login").hint.splitlines()
    assert (own, typed) == ("with its own program:", "$ mine login")
    assert console == "console (Console), in a terminal:"
    assert line.startswith("$ ")
    assert line.endswith("odd_agent.py login login")
    assert rest == "by open_agent(…, login=ID), or thinkwell.login(…, ID), with ID = browser (Browser)"


async def test_a_login_before_anything_else() -> None:
    diagnosis = await examined_process(command=[sys.executable, ODD, "login_at_once"])
    assert diagnosis.login_wanted
    assert check(diagnosis, "starts").status == "ok"
    assert check(diagnosis, "login").hint == "it offers no way to log in: do that with its own program"
    assert check(diagnosis, "version").status == "skipped"
    assert check(diagnosis, "ends").detail == "it does not run"


@VIRTUAL
async def test_a_login_that_is_not_wanted_for_a_session() -> None:
    handler = LoginAgent()
    handler.methods = tuple(s.AuthMethodAgent(id=f"way{n}", name="Way") for n in range(10))
    diagnosis = await examined(handler)
    assert diagnosis.ok
    assert check(diagnosis, "login").detail == (
        "not wanted for a session; the model may still want one. It offers: way0, way1, way2, way3, way4, "
        "way5, way6, way7, 2 more"
    )
    handler.refuses = ("session/new",)
    hint = check(await examined(handler), "login").hint
    assert hint.splitlines()[-1] == "or by one of 2 more ways"


# Sessions


@VIRTUAL
async def test_what_a_session_has() -> None:
    def choice(value: str) -> s.SessionConfigSelectOption:
        return s.SessionConfigSelectOption(value=value, name=value)

    handler = Played([])
    handler.modes = s.SessionModeState(
        current_mode_id="ask", available_modes=(s.SessionMode(id="ask", name="Ask"),)
    )
    handler.options = [
        s.SessionConfigSelect(
            id="model",
            name="Model",
            category="model",
            current_value="big",
            options=(choice("big"), choice("small")),
        ),
        *(s.SessionConfigBoolean(id=f"b{n}", name=f"B{n}", current_value=True) for n in range(8)),
    ]
    detail = check(await examined(handler), "session").detail
    assert detail.startswith("modes: ask (now ask); Model: big (of 2); B0: true; ")
    assert detail.endswith("B6: true; 1 more options")


@VIRTUAL
async def test_an_agent_that_hangs_when_a_session_is_opened() -> None:
    hangs = Played(answers={"session/new": never})
    diagnosis = await examined(hangs)
    session = check(diagnosis, "session")
    assert session.detail == "session/new was not answered within 90 seconds"
    assert session.seconds == pytest.approx(90, abs=1)
    assert session.hint == "raise open_timeout= if it needs longer"
    assert failed(diagnosis) == ["session"]
    assert check(diagnosis, "login").status == "skipped"
    assert check(diagnosis, "tools over stdio").detail == "no session was opened"
    assert diagnosis.exit_code == 1
    session = check(await examined(hangs, open_timeout=7), "session")
    assert session.detail == "session/new was not answered within 7 seconds"


async def test_an_agent_that_opens_no_session() -> None:
    diagnosis = await examined_process(command=sick("refuses"))
    assert failed(diagnosis) == ["session"]
    assert check(diagnosis, "session").detail == "it answered with error -32603: no\nroom ({'left': 0})"
    assert check(diagnosis, "ends").status == "ok"


async def test_an_agent_that_exits_before_a_session_is_opened() -> None:
    diagnosis = await examined_process(command=sick("exits"))
    session = check(diagnosis, "session")
    assert failed(diagnosis) == ["session"]
    assert session.detail == "the agent exited with code 3"
    assert session.stderr.startswith("a license\n")
    assert "abcdefghijklmnop123456" not in diagnosis.to_json()
    assert check(diagnosis, "ends").detail == "it had ended before"
    assert diagnosis.version == "1.0"
    assert "         | a license\n         | \\x1b[2Jis missing" in diagnosis.table()


# Tools


@VIRTUAL
async def test_an_agent_that_never_lists_tools() -> None:
    """Some do so in a turn, and not before."""
    diagnosis = await examined(Played([], lists_tools=False))
    assert failed(diagnosis) == []
    assert statuses(diagnosis)["tools over acp"] == statuses(diagnosis)["tools over stdio"] == "unknown"
    assert diagnosis.verdict == "unknown"
    assert diagnosis.ways == ()
    acp = check(diagnosis, "tools over acp")
    assert acp.detail == "it has come, but not fetched the list of tools, within 15 seconds"
    assert check(diagnosis, "tools over stdio").detail == "it has not come for our tools within 15 seconds"
    assert acp.seconds == pytest.approx(15, abs=1)


@pytest.mark.fast_time(30)
async def test_the_advice_of_the_profile_is_given() -> None:
    seen = dt.date(2026, 11, 22)
    profile = AgentProfile(
        name="mine",
        program=Program(command=tuple(sick("blind"))),
        quirks=(Quirk(about="It does not look.", version="1", seen=seen),),
        errors=(KnownError(said="^over stdio$", hint="Ask it nicely.", version="1", seen=seen),),
    )
    diagnosis = await examined_process(profile, startup_timeout=1000, open_timeout=1000)
    first, second = check(diagnosis, "tools over stdio").hint.splitlines()
    assert first == "Ask it nicely."
    assert second.startswith("agents were seen to leave MCP servers out in folders that they do not trust")
    assert diagnosis.quirks == profile.quirks
    assert diagnosis.table().endswith(
        "\nKnown of it:\n- It does not look. (seen with 1, 2026-11-22)\n\n"
        "mine starts and opens a session. Whether it works cannot be known without a prompt.\n"
    )


@pytest.mark.fast_time(15)
async def test_a_way_that_works_is_named_where_the_usual_one_does_not() -> None:
    flags = s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(http=True))

    class BlindToHttp(McpAgent):
        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            blind = any(isinstance(server, s.McpServerHttp) for server in request.mcp_servers)
            return await super().open_session(replace(request, mcp_servers=()) if blind else request, proceed)

    with anyio.fail_after(300):
        diagnosis = await examined_with_tasks(lambda tasks: BlindToHttp([], tasks, flags))
    assert diagnosis.ok
    assert diagnosis.ways == ("stdio",)
    http = check(diagnosis, "tools over http")
    assert http.status == "warning"
    assert http.hint.startswith("runs find that out, and lose ")
    assert http.hint.endswith('seconds; open_agent(…, tools_via="stdio") does not')


@VIRTUAL
async def test_an_agent_that_lists_tools_late() -> None:
    class Late(Played):
        def __init__(self, tasks: TaskGroup) -> None:
            super().__init__()
            self._tasks = tasks

        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            self._tasks.start_soon(self._look_later, request, proceed)
            return await super().open_session(replace(request, mcp_servers=()), proceed)

        async def _look_later(self, request: Any, proceed: Proceed) -> None:
            await anyio.sleep(7)
            await proceed(request)

    diagnosis = await examined_with_tasks(Late)
    acp = check(diagnosis, "tools over acp")
    assert acp.status == "warning"
    assert acp.hint == "late: a run waits 5 seconds before it prompts"
    assert diagnosis.ways == ("acp",)


@VIRTUAL
async def test_a_session_that_is_refused_with_our_tools() -> None:
    diagnosis = await examined(Picky([]))
    stdio = check(diagnosis, "tools over stdio")
    assert (stdio.status, stdio.detail) == ("warning", "it answered with error -32602: no programs")
    assert stdio.hint == ""


async def test_an_agent_that_dies_when_it_is_given_tools() -> None:
    diagnosis = await examined_process(
        command=sick("dies"), mcp_servers=[McpHttp("web", "http://127.0.0.1:1/")]
    )
    assert failed(diagnosis) == ["tools over stdio"]
    assert check(diagnosis, "tools over stdio").detail == "the agent exited with code 4"
    servers = check(diagnosis, "mcp servers")
    assert (servers.status, servers.detail) == ("skipped", "the agent exited with code 4")
    assert check(diagnosis, "ends").status == "skipped"


async def test_what_comes_after_the_end_is_skipped() -> None:
    class Dies(Played):
        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            if request.mcp_servers:
                self.client.connection.end(ConnectionClosed())
            return await super().open_session(request, proceed)

    with anyio.fail_after(10):
        diagnosis = await examined(Dies())
    assert failed(diagnosis) == ["tools over acp"]
    assert check(diagnosis, "tools over stdio").detail == "the agent closed the connection"


async def test_wrong_arguments_are_refused() -> None:
    wrong: Any
    for wrong in (5, b"claude"):
        with pytest.raises(TypeError, match="give the name of an agent"):
            await diagnose(wrong)
    wrong = "no function"
    with pytest.raises(TypeError, match="on_check"):
        await diagnose(on_check=wrong)
    wrong = 5
    with pytest.raises(TypeError, match="command"):
        await diagnose(command=wrong)
    with pytest.raises(ValueError, match="startup_timeout"):
        await diagnose(startup_timeout=0)
    with pytest.raises(ValueError, match="open_timeout"):
        await diagnose(open_timeout=0)
    with pytest.raises(NotADirectoryError):
        await diagnose(cwd="/nowhere/at/all")
    with pytest.raises(ValueError, match="the command says which version"):
        await diagnose("claude@1", command="claude")
    with pytest.raises(ValueError, match="a command or a connection"):
        await diagnose(command="claude", transport=memory_transport_pair()[0])
    with pytest.raises(ValueError, match=r"diagnose\(mcp_servers=…\): 'words' is there twice"):
        await diagnose(mcp_servers=[McpHttp("words", "http://h.example/")] * 2)
    for wrong in (5, [5], [McpStdio("words", ["no-such-program"]), 5]):
        with pytest.raises(TypeError, match=r"diagnose\(mcp_servers=…\): "):
            await diagnose(mcp_servers=wrong)
