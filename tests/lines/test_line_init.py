"""Parameters that a program acknowledges before anything else."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from lines.program import Program, played, started

from thinkwell import AgentStartFailed, open_agent
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from thinkwell import Agent

pytestmark = pytest.mark.anyio

PARAMETERS = {"style": "kurz & gut", "limits": {"files": [1, 2.5, None]}, "\u00e4": True}
FIRST = '{"type":"init","params":{"style":"kurz & gut","limits":{"files":[1,2.5,null]},"\u00e4":true}}'


@asynccontextmanager
async def answered(*lines: bytes, **options: Any) -> AsyncGenerator[tuple[Agent, Program]]:
    """Open an agent whose program answers the first line with these."""
    ours, theirs = memory_transport_pair()
    program = Program(theirs)

    async def greet() -> None:
        heard.append(await program.hear())
        for line in lines:
            await program.write(line)

    heard: list[str] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(greet)
            options = {"init": PARAMETERS, **options}
            async with open_agent(transport=ours, protocol="ndjson", **options) as agent:
                assert heard == [FIRST]
                yield agent, program


async def refusal(*lines: bytes) -> str:
    with pytest.raises((AgentStartFailed, ExceptionGroup)) as caught:
        async with answered(*lines):
            raise AssertionError("it started")
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, AgentStartFailed)
    return str(error)


async def test_it_is_written_before_anything_else_and_once() -> None:
    async with answered(b'{"type":"init_ack"}\n') as (agent, program):
        for number in range(2):
            stream = agent.think().text(str(number)).stream()
            assert await program.hear() == str(number)
            await program.say("result", text="done")
            assert await stream.result == "done"
        assert agent.info is not None
        assert (agent.info.name, agent.info.version) == ("agent", "")


async def test_no_parameters_are_parameters_too(tmp_path: Path) -> None:
    source = 'assert json.loads(hear()) == {"type": "init", "params": {}}; say("init_ack")\n'
    async with started(tmp_path, source + 'say("result", text=hear())', init={}) as agent:
        assert await agent.think().text("Go").run() == "Go"


async def test_a_program_may_say_what_it_is() -> None:
    hello = b'\n \r\n{"type":"init_ack","name":"worker","version":"1.2","more":[]}\n'
    async with answered(hello) as (agent, _):
        assert agent.info is not None
        assert (agent.info.name, agent.info.version) == ("worker", "1.2")


async def test_names_that_are_none_are_left_out() -> None:
    async with answered(b'{"type":"init_ack","name":["worker"],"version":2}\n') as (agent, _):
        assert agent.info is not None
        assert (agent.info.name, agent.info.version) == ("agent", "")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"type":"error","message":"no such style"}', "no such style"),
        (b'{"type":"error","error":"no such style","code":7}', "no such style [7]"),
        (b'{"type":"error"}', "it does not say what is wrong"),
        (b'{"type":"progress","message":"Loading"}', "it sent 'progress' before `init_ack`"),
        (b'{"type":"question","question":"Why?"}', "it sent 'question' before `init_ack`"),
        (b'{"type":"result","text":"a","more":1}', "it sent 'result' before `init_ack`"),
        (b"Welcome to \x1b[31mworker!", r"it sent 'Welcome to \x1b[31mworker!' before `init_ack`"),
        (b'{"type":"init_ack"', """it sent '{"type":"init_ack"' before `init_ack`"""),
    ],
)
async def test_anything_else_is_a_refusal(line: bytes, why: str) -> None:
    assert why in await refusal(line + b"\n")


async def test_only_the_first_line_counts() -> None:
    why = await refusal(b'{"type":"error","message":"no"}\n{"type":"init_ack"}\n{"type":"error"}\n')
    assert "no" in why


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"protocol": "json"}, ValueError, 'choose "acp" or "ndjson"'),
        ({"protocol": "ndjson", "prompt_format": "xml"}, ValueError, 'choose "text" or "json"'),
        ({"protocol": "ndjson", "init": "fast"}, TypeError, "a mapping of parameters"),
        ({"protocol": "ndjson", "init": {"at": object()}}, TypeError, "cannot be written as JSON"),
        ({"protocol": "ndjson", "model": "m"}, ValueError, "such an agent does not support that"),
        ({"init": {}}, ValueError, 'init=…): only protocol="ndjson" supports that'),
        ({"prompt_format": "json"}, ValueError, 'prompt_format=…): only protocol="ndjson" supports that'),
        ({"protocol": "ndjson", "login": "key"}, ValueError, "does not support that"),
    ],
)
async def test_what_does_not_go_together(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=re.escape(says)):
        async with open_agent(command="nothing", **options):
            raise AssertionError("it started")


async def test_a_name_says_no_program_that_speaks_lines() -> None:
    with pytest.raises(ValueError, match=re.escape("give the command=… of the program")):
        async with open_agent("claude", protocol="ndjson"):
            raise AssertionError("it started")


async def test_a_program_that_ends_before_it_answers(tmp_path: Path) -> None:
    source = 'hear(); sys.stderr.write("no licence"); sys.exit(4)'
    with pytest.raises(AgentStartFailed, match="no licence") as caught:
        async with started(tmp_path, source, init={}):
            raise AssertionError("it started")
    assert caught.value.exit_code == 4


async def test_last_words_count_before_the_end(tmp_path: Path) -> None:
    source = """hear(); sys.stdout.write('{"type":"error","message":"no licence"}'); sys.exit(4)"""
    with pytest.raises(AgentStartFailed, match="no licence"):
        async with started(tmp_path, source, init={}):
            raise AssertionError("it started")


async def test_a_program_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(AgentStartFailed, match=r"did not answer `init` within 0\.2 seconds"):
        async with started(tmp_path, "sys.stdin.read()", init={}, startup_timeout=0.2):
            raise AssertionError("it started")


async def test_an_acknowledgement_of_nothing_is_nothing() -> None:
    async with played() as (agent, program):
        await program.say("init_ack")
        stream = agent.think().text("Go").stream(include="all")
        await program.hear()
        await program.say("init_ack")
        await program.say("result", text="done")
        assert await stream.result == "done"
        assert not [event async for event in stream if event.type == "report"]
