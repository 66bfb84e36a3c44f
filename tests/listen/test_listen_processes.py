"""Programs that end, and callers that go, while handlers run: with processes of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from listen.talkers import LIMIT, ON_PATH, Protocol, hanging

from thinkwell import AgentExited, open_agent
from thinkwell import events as ev
from thinkwell.errors import ThoughtCancelled
from thinkwell.listen import Handlers, Transcript, listen

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent

if sys.platform == "win32":
    pytest.skip("signals and pipes of POSIX systems", allow_module_level=True)

pytestmark = pytest.mark.anyio

AGENT = Path(__file__).parent / "programs" / "talking_agent.py"


def program(protocol: Protocol, *words: str) -> AbstractAsyncContextManager[Agent]:
    """Open such an agent."""
    command = [sys.executable, "-W", "error", str(AGENT), protocol, *words]
    return open_agent(command=command, protocol=protocol, permissions="ask", env=ON_PATH)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(
    ("scene", "exit_code", "protocol"),
    [
        ("exits", 3, "acp"),
        ("killed", -9, "ndjson"),
        pytest.param("exits", 3, "ndjson", marks=pytest.mark.long),
        pytest.param("killed", -9, "acp", marks=pytest.mark.long),
    ],
)
async def test_the_process_ends_while_handlers_run(
    scene: str, exit_code: int, protocol: Protocol, tmp_path: Path
) -> None:
    """Its questions are withdrawn; what came before them is handled; the error tells how it ended."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thinking, asked = anyio.Event(), anyio.Event()
    release = anyio.Event()
    log: list[str] = []
    handlers = Handlers(transcript=(transcript := Transcript()))

    async def think(event: anyio.Event, what: str) -> None:
        try:
            await hanging(event, log, f"{what} cancelled")
        finally:
            if len(log) == 2:
                release.set()

    @handlers.on("question", concurrency=1)
    async def _(_question: object) -> None:
        await think(thinking, "question")

    @handlers.on("approval", concurrency=1)
    async def _(_approval: object) -> None:
        await think(asked, "approval")

    @handlers.on("progress", concurrency=1)
    async def _(progress: dict[str, Any]) -> None:
        await release.wait()
        log.append(progress["message"])

    async def let_go() -> None:
        await thinking.wait()
        await asked.wait()
        async with await anyio.open_file(pipe, "wb"):
            pass

    with anyio.fail_after(LIMIT):
        async with program(protocol, scene, str(pipe)) as agent, anyio.create_task_group() as tasks:
            tasks.start_soon(let_go)
            stream = agent.think().text("Go").stream()
            with pytest.raises(AgentExited):
                await listen(stream, handlers)
            log.append("returned")
            error = stream.result.exception()
            assert isinstance(error, AgentExited)
            assert error.exit_code == exit_code
            assert "the disk is full" in error.stderr_tail
    assert sorted(log[:2]) == ["approval cancelled", "question cancelled"]
    # Over ACP, what it wants to do is a tool call, and so is progress too.
    shown = dict.fromkeys(message for message in log[2:] if message != "Write it")
    assert list(shown) == ["one", "two", "returned"]
    assert sorted((record.kind, record.answer, record.by) for record in transcript) == [
        ("approval", None, "cancel"),
        ("question", None, "cancel"),
    ]


async def test_the_callers_task_is_cancelled_while_a_handler_runs(protocol: Protocol) -> None:
    """The run is cancelled. A program that speaks lines is ended by that, another lives on."""
    thinking = anyio.Event()
    ended: list[str] = []
    pids: list[int] = []
    handlers, quick = Handlers(), Handlers()

    @handlers.on("progress")
    async def _(progress: dict[str, Any]) -> None:
        pids.append(int(progress["message"].removeprefix("I am ")))

    @handlers.on("question")
    async def _(_question: object) -> None:
        await hanging(thinking, ended)

    @quick.on("question")
    async def _(_question: object) -> str:
        return "Files"

    with anyio.fail_after(LIMIT):
        async with program(protocol, "waits") as agent:
            stream = agent.think().text("Go").stream(include="all")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen, stream, handlers)
                await thinking.wait()
                assert pids
                assert not gone(pids[0])
                tasks.cancel_scope.cancel()
            assert ended == ["cancelled"]
            assert isinstance(stream.result.exception(), ThoughtCancelled)
            answers = [event.by async for event in stream if isinstance(event, ev.QuestionAnswered)]
            assert answers == ["cancel"]
            if protocol == "acp":
                assert await agent.think().text("Go").listen(quick) == "Files"
            else:
                with pytest.raises(AgentExited, match="a prompt was cancelled"):
                    await agent.think().text("Go").listen(quick)
                assert gone(pids[0])
    assert gone(pids[0])
