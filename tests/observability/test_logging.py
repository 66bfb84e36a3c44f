"""What is logged, at which level, and that nothing secret is among it."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest
from asking import permission
from scripted import Played, Turn, never, scripted

from thinkwell import AgentError, ResultError
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"


def look(secret: str) -> str:
    """Look."""
    return secret


async def busy(turn: Turn) -> None:
    turn.say(SECRET)
    turn.update(
        s.ToolCallStart(tool_call_id="t1", title=SECRET, kind="execute", raw_input={"command": SECRET})
    )
    await turn.client.request_permission(
        permission(turn.session_id, s.ToolCallUpdate(tool_call_id="t1", title=SECRET))
    )
    turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed"))
    await turn.call("look", {"secret": SECRET})
    await turn.returns(value=SECRET)


async def fail(turn: Turn) -> None:
    raise RpcError(-32603, SECRET)


async def silent(turn: Turn) -> None:
    turn.say(SECRET)


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """The messages of a level, without the numbers that differ from run to run."""
    return [
        re.sub(r"run-\d+", "run-N", re.sub(r"\d+\.\d s", "N s", record.getMessage()))
        for record in caplog.records
        if record.name == "thinkwell" and record.levelno == level
    ]


async def play(*scripts: Any) -> None:
    async with scripted(*scripts) as agent:
        stream = agent.think(int).text(SECRET).tool(look).stream()
        with pytest.raises((ResultError, AgentError)):
            await stream.result
        await stream.wait()


async def test_runs_and_sessions_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "thinkwell")
    await play(fail)
    async with scripted(silent) as agent:
        await agent.think().text("Go").run()
        stream = agent.think().text("Go").stream()
        stream.cancel()
        await stream.wait()
    told = lines(caplog, logging.INFO)
    assert [line for line in told if "is ready" not in line] == [
        "Session session-1 of agent scripted is open (new)",
        "Run run-N of agent scripted failed (AgentReported) after N s",
        "Session session-1 of agent scripted is open (new)",
        "Run run-N of agent scripted completed after N s",
        "Run run-N of agent scripted cancelled after N s",
    ]
    assert lines(caplog, logging.DEBUG) == []
    assert SECRET not in caplog.text


async def test_what_they_do_is_told_in_detail(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    await play(busy, silent)
    run = "Run run-N of agent scripted "
    told = [line.removeprefix(run) for line in lines(caplog, logging.DEBUG) if line.startswith(run)]
    assert told == [
        "begins",
        "shows its 2 tools by way of acp",
        "is in session session-1",
        "begins turn 1",
        "shows tool call t1 (execute)",
        "asks question q1 (permission)",
        "has an answer to question q1: reject_once, by policy",
        "shows the end of tool call t1: completed",
        "has a result that does not fit",
        "has ended turn 1: end_turn",
        "begins turn 2, a reminder",
        "has ended turn 2: end_turn",
    ]
    assert "Session session-1 of agent scripted is closed" in lines(caplog, logging.DEBUG)
    assert SECRET not in caplog.text


async def test_a_cancelled_question_and_a_good_result(caplog: pytest.LogCaptureFixture) -> None:
    asked = anyio.Event()

    async def script(turn: Turn) -> None:
        await turn.returns(value=7)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.client.request_permission, permission(turn.session_id))
            await anyio.wait_all_tasks_blocked()
            asked.set()

    caplog.set_level(logging.DEBUG, "thinkwell")
    async with scripted(script, permissions="ask") as agent:
        stream = agent.think(int).text("Go").stream()
        assert await stream.result == 7
        await asked.wait()
        stream.cancel()
        await stream.wait()
    told = "\n".join(lines(caplog, logging.DEBUG))
    assert "has a result that fits" in told
    assert "has an answer to question q1: cancelled, by cancel" in told


async def test_a_session_that_is_not_opened(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "thinkwell")
    async with scripted(agent=Played(fails_at={"session/new": RpcError(-32603, SECRET)})) as agent:
        with pytest.raises(AgentError):
            async with agent.session():
                pass
    assert "A session of agent scripted was not opened (new): AgentReported" in lines(caplog, logging.INFO)
    assert SECRET not in caplog.text


async def test_a_session_whose_opening_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "thinkwell")
    async with scripted(agent=Played(answers={"session/new": never})) as agent:
        with pytest.raises(AgentError):
            async with agent.session(open_timeout=0.01):
                pass
    assert "A session of agent scripted was not opened (new): cancelled" in lines(caplog, logging.INFO)


async def test_an_abandoned_session(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    async with scripted(silent) as agent:
        stream = agent.think().text("Go").stream()
        stream.cancel()
        await stream.wait()
    assert "ession" not in "\n".join(lines(caplog, logging.DEBUG) + lines(caplog, logging.INFO))


PROGRAM = """
    import logging, sys
    import anyio, thinkwell

    async def main():
        async with thinkwell.open_agent("builtin") as agent:
            await agent.think().text("Say hello.").run()
            agent.think().text("Say hello.").stream().cancel()

    anyio.run(main)
    print(sorted(
        name for name, logger in logging.Logger.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.startswith("thinkwell")
    ))
    print(logging.getLogger("thinkwell").handlers, logging.getLogger("thinkwell").propagate)
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s")
    anyio.run(main)
"""


def test_logging_is_the_programs_to_set_up() -> None:
    """Nothing is printed before, and then a root logger shows our names."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "THINKWELL_BUILTIN_PACE": "0"},
    )
    names, handlers = result.stdout.splitlines()[-2:]
    assert handlers == "[] True"
    assert [name for name in eval(names) if name.partition(".")[0] != "thinkwell"] == []
    loud = result.stderr.splitlines()
    assert "INFO thinkwell" in loud
    assert [line for line in loud if not re.fullmatch(r"[A-Z]+ [\w.]+", line)] == []
    assert {line.split()[1].partition(".")[0] for line in loud if "thinkwell" in line} == {"thinkwell"}


GET_LOGGER = re.compile(r"\blogger = logging\.getLogger\(([^)]*)\)")
LOGGERS = {'"thinkwell"', '"thinkwell.acp"', '"thinkwell.builtin"', '"thinkwell.testing"'}


def test_only_these_loggers_are_used() -> None:
    """Every logger is one that the docs name, and nobody logs by way of the root logger."""
    found: dict[str, set[str]] = {}
    for folder in ("thinkwell/thinkwell", "acp/thinkwell_acp"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            names = set(GET_LOGGER.findall(text))
            assert not re.search(r"\blogging\.(debug|info|warning|error|exception|log)\(", text), path
            if names:
                found[str(path.relative_to(ROOT))] = names
    assert set().union(*found.values()) == LOGGERS, found
    page = (ROOT / "docs" / "topics" / "logging.md").read_text("utf-8")
    assert [name for name in LOGGERS if f"`{name.strip(chr(34))}`" not in page] == []
