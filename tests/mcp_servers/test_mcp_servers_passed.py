"""What the agent gets of the user's MCP servers, and what is refused before it gets anything."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted import EVERY_SESSION_CALL, Played, Proceed, Turn, scripted

from thinkwell import (
    AgentReported,
    CapabilityMissing,
    McpHttp,
    McpServerError,
    McpSse,
    McpStdio,
    open_agent,
)
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from thinkwell import McpServer

SECRET = "pl4in-s3cr3t-value"
WEB = McpHttp("web", "https://h.example/mcp", headers={"Authorization": f"Bearer {SECRET}"})
SSE = McpSse("old", "https://h.example/sse")
MINE = McpStdio("mine", [sys.executable, "-V"])
REMOTE = s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(acp=True, http=True, sse=True))


async def talk(turn: Turn) -> None:
    turn.say("Hello.")


def opened(*servers: object, **options: Any) -> object:
    """Call `open_agent`, which checks what it is given, and go no further."""
    ours, _ = memory_transport_pair()
    wrong: Any = servers
    return open_agent("scripted", transport=ours, mcp_servers=wrong, **options)


async def told(*servers: McpServer, **options: Any) -> Sequence[s.McpServer]:
    """Return what an agent that takes all of them gets."""
    handler = Played([talk], capabilities=REMOTE)
    async with scripted(agent=handler, mcp_servers=servers, **options) as agent, agent.session():
        pass
    told: tuple[s.McpServer, ...] = handler.requests("session/new")[0].mcp_servers
    return told[: len(servers)]


async def test_servers_are_told_as_the_protocol_has_them() -> None:
    files = McpStdio("files", [sys.executable, "-m", "files"], env={"ROOT": "/notes", "KEY": "a\nb"})
    assert await told(files, WEB, SSE) == (
        s.McpServerStdio(
            name="files",
            command=sys.executable,
            args=("-m", "files"),
            env=(s.EnvVariable(name="ROOT", value="/notes"), s.EnvVariable(name="KEY", value="a\nb")),
        ),
        s.McpServerHttp(
            name="web",
            url="https://h.example/mcp",
            headers=(s.HttpHeader(name="Authorization", value=f"Bearer {SECRET}"),),
        ),
        s.McpServerSse(name="old", url="https://h.example/sse", headers=()),
    )


async def test_ours_comes_last() -> None:
    handler = Played([talk], capabilities=REMOTE)
    async with scripted(agent=handler, mcp_servers=[MINE]) as agent:
        async with agent.session(mcp_servers=[WEB]):
            pass
        await agent.think().text("Hi").run()
    first, second = ([server["name"] for server in session.mcp_servers] for session in handler.sent.sessions)
    assert first[:2] == ["mine", "web"]
    assert first[2].startswith("thinkwell")
    assert second == ["mine"]


async def test_old_sessions_and_copies_get_them_too() -> None:
    handler = Played([talk], capabilities=EVERY_SESSION_CALL)
    async with scripted(agent=handler, mcp_servers=[MINE]) as agent:
        ways: list[dict[str, Any]] = [{"load": "a"}, {"resume": "b"}]
        for how in ways:
            async with agent.session(mcp_servers=[McpStdio("more", [sys.executable])], **how):
                pass
        async with (
            agent.session() as session,
            session.fork(mcp_servers=[McpStdio("more", [sys.executable])]),
        ):
            with pytest.raises(ValueError, match="'mine' is one of open_agent's already"):
                session.fork(mcp_servers=[MINE])
    opened = [request for request in handler.sent.sessions if request.method != "session/new"]
    assert [[server["name"] for server in request.mcp_servers][:2] for request in opened] == [
        ["mine", "more"]
    ] * 3


async def test_scripted_agents_tell_what_they_were_told() -> None:
    played = ScriptedAgent(script.says("Hello."))
    async with played.open(mcp_servers=[MINE]) as agent:
        await agent.think().text("Hi").run()
    (session,) = played.sent.sessions
    assert session.mcp_servers == ({"name": "mine", "command": sys.executable, "args": ["-V"], "env": []},)


# Programs


def program(folder: Path, name: str, *, mode: int = 0o755) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def command_of(server: s.McpServer) -> str:
    assert isinstance(server, s.McpServerStdio)
    return server.command


async def test_programs_are_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, agents, own = (program(tmp_path / name, "a-server") for name in ("ours", "agents", "own"))
    monkeypatch.setenv("PATH", str(ours.parent))
    monkeypatch.chdir(tmp_path)
    (first,) = await told(McpStdio("n", ["a-server"]))
    assert command_of(first) == str(ours)
    (second,) = await told(McpStdio("n", ["a-server"]), env={"PATH": str(agents.parent)})
    assert command_of(second) == str(agents)
    servers = McpStdio("n", ["a-server"], env={"PATH": str(own.parent)}), McpStdio("m", ["./own/a-server"])
    third, fourth = await told(*servers, env={"PATH": str(agents.parent)})
    assert (command_of(third), command_of(fourth)) == (str(own), str(own))


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-server", "there is no program 'no-such-server' on the PATH; install it, or give its whole"),
        ("/no/such/server", "there is no program /no/such/server; install it"),
        ("./plain", "./plain exists but is not an executable program"),
    ],
)
async def test_a_program_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "plain", mode=0o644)
    server = McpStdio("files", [command, "--key", SECRET], env={"TOKEN": SECRET})
    with pytest.raises(McpServerError, match="MCP server 'files': ") as caught:
        opened(server)
    assert reason in caught.value.problem
    assert (caught.value.server, caught.value.source) == ("files", None)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    handler = Played([talk])
    async with scripted(agent=handler) as agent:
        with pytest.raises(McpServerError, match="files"):
            agent.session(mcp_servers=[server])
    assert handler.asked == []


async def test_the_protocols_own_values_are_told_as_they_are() -> None:
    server = s.McpServerStdio(name="there", command="/opt/on/another/machine", args=("x",), env=())
    assert await told(server) == (server,)


# What is refused


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ([MINE, McpHttp("mine", "http://h")], "'mine' is there twice; agents know a server by its name"),
        ([WEB, s.McpServerSse(name="web", url="http://h", headers=())], "'web' is there twice"),
        (
            [McpStdio("thinkwell0123456789ab", [sys.executable])],
            "are kept for our own servers; choose another",
        ),
        ([s.McpServerHttp(name="", url="http://h", headers=())], "'': the name is empty"),
        ([s.McpServerHttp(name="n", url="h", headers=())], "'n': the url must begin with https"),
        ([s.McpServerAcp(name="a\n", server_id="1")], r"'a\\n': there is a character in the name"),
        (
            [s.McpServerSse(name="n", url="http://h", headers=(s.HttpHeader(name="A", value="b\r\n"),))],
            "a line end, or another character",
        ),
        ([s.McpServerStdio(name="n", command="", args=(), env=())], "'n': the command is empty"),
        (
            [s.McpServerStdio(name="n", command="x", args=(), env=(s.EnvVariable(name="=", value=""),))],
            "'=' is no name of a variable",
        ),
    ],
)
def test_what_agents_could_not_tell_apart_or_use(servers: Sequence[McpServer], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        opened(*servers)
    assert str(caught.value).startswith("open_agent(mcp_servers=…): ")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([MINE, {"url": SECRET}], "number 2 is a dict; give a list of McpStdio, McpHttp and McpSse"),
        (WEB, "it is a McpHttp; give a list"),
        ({"web": WEB}, "it is a dict; give a list"),
        ("/path/.mcp.json", r"it is a str; give a list .* or load_mcp_servers\(…\)"),
    ],
)
async def test_what_is_no_server(wrong: Any, message: str) -> None:
    ours, _ = memory_transport_pair()
    with pytest.raises(TypeError, match=message) as caught:
        open_agent("scripted", transport=ours, mcp_servers=wrong)
    assert SECRET not in str(caught.value)
    async with scripted(talk) as agent:
        with pytest.raises(TypeError, match=message):
            agent.session(mcp_servers=wrong)


async def test_a_name_that_open_agent_has_given() -> None:
    async with scripted(talk, mcp_servers=[MINE]) as agent:
        with pytest.raises(ValueError, match=r"session\(mcp_servers=…\): 'mine' is one of open_agent's"):
            agent.session(mcp_servers=[MINE])


@pytest.mark.parametrize(
    ("server", "flag", "flags", "takes"),
    [
        (WEB, "http", s.McpCapabilities(sse=True, acp=True), "stdio and sse and acp"),
        (SSE, "sse", s.McpCapabilities(http=True), "stdio and http"),
        (s.McpServerAcp(name="other", server_id="1"), "acp", s.McpCapabilities(), "stdio"),
    ],
)
async def test_capabilities_are_checked_first(
    server: McpServer, flag: str, flags: s.McpCapabilities, takes: str
) -> None:
    handler = Played([talk], capabilities=s.AgentCapabilities(mcp_capabilities=flags))
    message = f"mcpCapabilities.{flag}, which is needed for the MCP server '{server.name}'"
    with pytest.raises(CapabilityMissing, match=message) as caught:
        async with scripted(agent=handler, mcp_servers=[MINE, server]):
            raise AssertionError("it opened")
    assert caught.value.capability == f"mcpCapabilities.{flag}"
    assert str(caught.value).endswith(f"This agent takes MCP servers over {takes}")
    async with scripted(agent=handler) as agent:
        with pytest.raises(CapabilityMissing, match=message):
            agent.session(mcp_servers=[server])
        async with agent.session(mcp_servers=[MINE]):
            pass
    assert len(handler.sent.sessions) == 1
    assert SECRET not in str(caught.value)


# Secrets


async def fail(request: s.NewSessionRequest, proceed: Proceed) -> None:
    """As an agent does that cannot reach a server."""
    await proceed(request)
    raise LookupError("no connection to the server")


async def test_secrets_are_in_no_recording_log_or_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "r.ndjson"

    async def quote(turn: Turn) -> None:
        turn.say(f"The token is {SECRET}, the variable ")
        turn.say("an0ther-one-of-mine.")

    files = McpStdio(
        "files", [sys.executable, "--api-key", "th3-third-of-them"], env={"MY_KEY": "an0ther-one-of-mine"}
    )
    query = McpSse("query", "https://me:f0urth-of-them@h.example/?api_key=f1fth-of-them-all")
    handler = Played([quote], capabilities=REMOTE)
    async with scripted(agent=handler, mcp_servers=[WEB, files], record=path) as agent:
        said = await agent.think().text("Hi").run()
        async with agent.session(mcp_servers=[query]):
            pass
    assert SECRET in said
    recorded = await anyio.Path(path).read_text()
    secrets = (SECRET, "an0ther-one", "th3-third-of-them", "f0urth-of-them", "f1fth-of-them-all")
    for secret in secrets:
        assert secret not in recorded, f"{secret!r} is in the recording"
    for name in ("web", "files", "query", "Authorization", "MY_KEY", "api_key", "--api-key"):
        assert name in recorded
    handler = Played([talk], capabilities=REMOTE, answers={"session/new": fail})
    with pytest.raises(AgentReported) as caught:
        async with scripted(agent=handler, mcp_servers=[WEB, files]) as agent:
            await agent.think().text("Hi").run()
    for secret in secrets:
        assert secret not in caplog.text
        assert secret not in str(caught.value)
