"""What the doctor says of the caller's MCP servers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
from doctor.patients import Picky, check, examined, examined_process, failed, sick, statuses
from doctor.test_doctor_starting import running

from thinkwell import CapabilityMissing, McpHttp, McpStdio
from thinkwell_acp import schema as s

SICK = str(Path(__file__).parent / "programs" / "sick_server.py")


def server(mode: str, *more: str, **env: str) -> McpStdio:
    return McpStdio(mode, [sys.executable, SICK, mode, *more], env=env)


async def test_servers_are_started_once_and_handed_over() -> None:
    handler = Picky([])
    mark = f"mark-{os.getpid()}"
    with anyio.fail_after(30):
        diagnosis = await examined(
            handler, mcp_servers=[server("two", mark), server("one", mark), server("none", mark)]
        )
    assert not running(mark)
    assert diagnosis.ok
    assert [server["name"] for server in handler.sent.sessions[-1].mcp_servers] == ["two", "one", "none"]
    assert [each.name for each in diagnosis.checks][-5:] == [
        "server two",
        "server one",
        "server none",
        "mcp servers",
        "ends",
    ]
    two, one, none = (check(diagnosis, f"server {name}") for name in ("two", "one", "none"))
    assert (two.status, two.detail) == ("ok", "it starts, and offers 2 tools")
    assert (one.status, one.detail) == ("ok", "it starts, and offers 1 tool")
    assert (none.status, none.detail) == ("warning", "it starts, and offers no tools")
    assert two.seconds is not None
    taken = check(diagnosis, "mcp servers")
    assert (taken.status, taken.detail) == (
        "ok",
        "it takes two, one, none; whether it reaches them, no agent tells",
    )


async def test_a_server_that_crashes() -> None:
    with anyio.fail_after(30):
        diagnosis = await examined(Picky([]), mcp_servers=[server("crashes", TOKEN="a-very-secret-value-3")])
    assert failed(diagnosis) == ["server crashes"]
    assert diagnosis.exit_code == 1
    crashes = check(diagnosis, "server crashes")
    assert crashes.detail.startswith("it ended with exit code 1: ")
    assert "KeyError: 'TOKEN' is not" in crashes.detail
    assert crashes.stderr.startswith("Traceback\n")
    assert "a-very-secret-value-3" not in diagnosis.to_json()
    assert "\x1b" not in diagnosis.table()
    assert diagnosis.table().splitlines()[-1] == (
        "mine starts and opens a session, with 1 warning. Whether it works cannot be known without a prompt. "
        "Not all of your MCP servers work with it: server crashes."
    )


async def test_a_server_that_hangs() -> None:
    mark = f"mark-{os.getpid()}-hangs"
    diagnosis = await examined_process(
        command=sick("well"), mcp_servers=[server("hangs", mark)], startup_timeout=4
    )
    hangs = check(diagnosis, "server hangs")
    assert hangs.status == "failed"
    assert hangs.detail == "it starts, but does not list its tools within 4 seconds"
    assert hangs.hint == "raise startup_timeout= if it needs longer"
    assert not running(mark)


async def test_a_server_that_is_not_there() -> None:
    handler = Picky([])
    missing = McpStdio("gone", ["no-such-program", "key"])
    diagnosis = await examined(handler, mcp_servers=[missing])
    gone = check(diagnosis, "server gone")
    assert (gone.status, gone.detail) == ("failed", "there is no program 'no-such-program' on the PATH")
    assert gone.hint == "install it, or give its whole path"
    assert "mcp servers" not in statuses(diagnosis)
    diagnosis = await examined(handler, mcp_servers=[McpHttp("web", "http://h.example/"), missing])
    assert [each.name for each in diagnosis.checks][-4:] == [
        "server web",
        "server gone",
        "mcp servers",
        "ends",
    ]
    assert failed(diagnosis) == ["server gone", "mcp servers"]
    assert "mcpCapabilities.http" in check(diagnosis, "mcp servers").detail


async def test_servers_that_are_not_started() -> None:
    elsewhere = s.McpServerStdio(name="there", command="/no/such/program", args=(), env=())
    diagnosis = await examined(Picky([]), mcp_servers=[McpHttp("web", "http://127.0.0.1:1/"), elsewhere])
    web, there = check(diagnosis, "server web"), check(diagnosis, "server there")
    assert (web.status, there.status) == ("skipped", "skipped")
    assert web.detail == "an agent is given its address; whether anything answers there was not tried"
    assert there.detail.startswith("given in the protocol's form, for an agent that may run elsewhere")
    told = check(diagnosis, "mcp servers")
    assert told.status == "failed"
    assert "mcpCapabilities.http" in told.detail
    assert CapabilityMissing.__name__ not in told.detail


async def test_servers_are_tried_whatever_the_agent_does() -> None:
    diagnosis = await examined_process("no-such-agent", mcp_servers=[server("one")])
    assert check(diagnosis, "server one").status == "ok"
    diagnosis = await examined_process(command=["no-such-program"], mcp_servers=[server("one")])
    assert check(diagnosis, "server one").status == "ok"
    assert diagnosis.table().splitlines()[-1] == "no-such-program does not work: found."


async def test_programs_are_those_of_the_agents_path(tmp_path: Path) -> None:
    program = tmp_path / "words"
    program.write_text(f"#!/bin/sh\nexec interpreter {SICK} one\n", "utf-8")
    program.chmod(0o755)
    (tmp_path / "interpreter").symlink_to(sys.executable)
    words = McpStdio("words", ["words"])
    diagnosis = await examined_process(command=sick("well"), env={"PATH": str(tmp_path)}, mcp_servers=[words])
    assert check(diagnosis, "server words").status == "ok"
    own = McpStdio("words", ["words"], env={"PATH": str(tmp_path)})
    diagnosis = await examined_process(
        command=sick("well"), env={"PATH": str(tmp_path / "none")}, mcp_servers=[own]
    )
    assert check(diagnosis, "server words").status == "ok"
