"""The programs of the page about Letta's clients do what it says, against a real server."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from docs.pages import DOCS, files
from letta_stage import allowed
from node_packages import node_answers
from real_servers import listening
from web_stage import scripted_agent

from thinkwell.web import Access, RunServer, ServedAgent, served_agent, web_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from scripted import Turn

PAGE = DOCS / "howto" / "letta.md"
TOKEN = "a-token-for-ada-0123456789"


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of uvicorn."""
    return "asyncio"


@asynccontextmanager
async def serving(agent: ServedAgent) -> AsyncGenerator[dict[str, str]]:
    """Serve an agent; yield the environment of its clients."""
    server = RunServer({"agent": agent})
    async with listening(web_app(server, access=Access({TOKEN: "ada"})), "uvicorn") as at:
        yield {"LETTA_BASE_URL": at.url, "LETTA_API_KEY": TOKEN}


async def ran(name: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a program of the page, and return what it prints."""
    script = folder / name
    script.write_text(files(PAGE)[name], "utf-8")
    if script.suffix == ".mjs":
        return await node_answers(script, env=environment)
    with anyio.fail_after(60):
        done = await anyio.run_process(
            [sys.executable, "-W", "error", str(script)], env={**os.environ, **environment}, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("name", ["talk.py", "talk.mjs"])
async def test_talk(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    (tmp_path / "parser.py").write_text("# TODO: more\n", "utf-8")
    async with serving(served_agent("builtin", folders={"here": tmp_path})) as environment:
        assert "parser.py" in await ran(name, tmp_path, environment)


async def test_choose(tmp_path: Path) -> None:
    async def hello(turn: Turn) -> None:
        turn.say("Hello.")

    wishes: dict[str, Any] = {"folders": {"api": tmp_path}, "permissions": {"ask": "ask", "careful": "deny"}}
    async with serving(scripted_agent(hello, **wishes)[0]) as environment:
        assert await ran("choose.py", tmp_path, environment) == ""


async def test_approve(tmp_path: Path) -> None:
    async def asks(turn: Turn) -> None:
        turn.say(f"I was told: {await allowed(turn)}.")

    async with serving(scripted_agent(asks)[0]) as environment:
        told = await ran("approve.py", tmp_path, environment)
    assert told == 'It wants to execute: {"command":"ls"}\nI was told: no.\n'


async def test_tools(tmp_path: Path) -> None:
    async def adds(turn: Turn) -> None:
        result = await turn.call("add", {"a": 1, "b": 2})
        turn.say(f"It is {result['content'][0]['text']}.")

    async with serving(scripted_agent(adds)[0]) as environment:
        assert await ran("tools.py", tmp_path, environment) == "It is 3.\n"


def test_all_programs_are_run() -> None:
    assert set(files(PAGE)) == {"talk.py", "talk.mjs", "choose.py", "approve.py", "tools.py"}
