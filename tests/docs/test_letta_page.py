"""The programs of the page about Letta's clients do what it says, against a real server."""

from __future__ import annotations

import runpy
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

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

Ran: TypeAlias = Callable[[str, dict[str, str]], Awaitable[str]]

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


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Runs a program of the page, and returns what it prints."""

    async def run(name: str, environment: dict[str, str]) -> str:
        script = tmp_path / name
        script.write_text(files(PAGE)[name], "utf-8")
        if script.suffix == ".mjs":
            return await node_answers(script, env=environment)
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        with anyio.fail_after(60):
            await anyio.to_thread.run_sync(partial(runpy.run_path, str(script), run_name="__main__"))
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", ["talk.py", pytest.param("talk.mjs", marks=pytest.mark.long)])
async def test_talk(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Ran) -> None:
    monkeypatch.setenv("THINKWELL_BUILTIN_PACE", "0")
    (tmp_path / "parser.py").write_text("# TODO: more\n", "utf-8")
    async with serving(served_agent("builtin", folders={"here": tmp_path})) as environment:
        assert "parser.py" in await ran(name, environment)


async def test_choose(tmp_path: Path, ran: Ran) -> None:
    async def hello(turn: Turn) -> None:
        turn.say("Hello.")

    wishes: dict[str, Any] = {"folders": {"api": tmp_path}, "permissions": {"ask": "ask", "careful": "deny"}}
    async with serving(scripted_agent(hello, **wishes)[0]) as environment:
        assert await ran("choose.py", environment) == ""


async def test_approve(ran: Ran) -> None:
    async def asks(turn: Turn) -> None:
        turn.say(f"I was told: {await allowed(turn)}.")

    async with serving(scripted_agent(asks)[0]) as environment:
        told = await ran("approve.py", environment)
    assert told == 'It wants to execute: {"command":"ls"}\nI was told: no.\n'


async def test_tools(ran: Ran) -> None:
    async def adds(turn: Turn) -> None:
        result = await turn.call("add", {"a": 1, "b": 2})
        turn.say(f"It is {result['content'][0]['text']}.")

    async with serving(scripted_agent(adds)[0]) as environment:
        assert await ran("tools.py", environment) == "It is 3.\n"


def test_all_programs_are_run() -> None:
    assert set(files(PAGE)) == {"talk.py", "talk.mjs", "choose.py", "approve.py", "tools.py"}
