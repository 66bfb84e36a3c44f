"""An agent belongs to its event loop, and to no task: any task there may close what another has opened."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from warm import TRUE

from thinkwell import AgentClosed, SessionClosed, ThoughtCancelled, ThoughtStream, WrongEventLoop, open_agent
from thinkwell.testing import ScriptedAgent, ScriptedTurn, script
from thinkwell.web import RunServer, ServedAgent, web_app

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LOOPS = ("asyncio", "trio")

PROGRAM = Path(__file__).parent / "programs" / "odd_agent.py"


async def in_a_task(function: Callable[[], Awaitable[object]]) -> None:
    """Run a function in another task."""

    async def run() -> None:
        await function()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)


async def waits(turn: ScriptedTurn) -> None:
    await anyio.sleep_forever()


async def test_blocks_are_left_by_another_task() -> None:
    opening = ScriptedAgent(script.says("Hello.")).open()
    agent = await opening.__aenter__()
    session = agent.session()
    turns = await session.__aenter__()
    assert await turns.think().text("Go.").run() == "Hello."
    await in_a_task(lambda: session.__aexit__(None, None, None))
    with pytest.raises(SessionClosed):
        turns.think().text("Go on.").stream()
    await in_a_task(lambda: opening.__aexit__(None, None, None))
    with pytest.raises(AgentClosed):
        agent.think().text("Go on.").stream()


async def test_what_was_started_is_open_until_it_is_closed() -> None:
    agent = await ScriptedAgent(script.does(waits)).open().start()
    session = await agent.session().start()
    stream = session.think().text("Go.").stream()
    await in_a_task(session.close)
    with pytest.raises(ThoughtCancelled):
        await stream.result
    await in_a_task(agent.close)
    await agent.close()  # it is closed
    await session.close()


@pytest.mark.virtual_time
async def test_a_deadline_cuts_the_wait_for_the_end_of_a_turn() -> None:
    streams: list[ThoughtStream[int]] = []
    began = anyio.current_time()
    with anyio.move_on_after(0.5):
        async with ScriptedAgent(script.returns(3).hangs()).open() as agent:
            streams.append(agent.think(int).text("Go.").stream())
            assert await streams[0].result == 3
    assert anyio.current_time() == began + 0.5
    assert (streams[0].view.phase, streams[0].view.cut) == ("completed", "AgentClosed")


@pytest.mark.virtual_time
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_is_cancelled_twice_waits_no_longer() -> None:
    """asyncio's own way to cancel a task knows no shields. The second time, the agent is killed."""
    agent = await ScriptedAgent(script.hangs(deaf=True)).open().start()
    stream = agent.think().text("Go.").stream()
    await anyio.wait_all_tasks_blocked()
    began = anyio.current_time()
    closing = asyncio.create_task(agent.close())
    for _ in range(2):
        await anyio.wait_all_tasks_blocked()
        closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert anyio.current_time() - began < 1  # else the turn gets two seconds to end
    assert isinstance(stream.result.exception(), ThoughtCancelled)


async def test_closing_within_the_block() -> None:
    async with ScriptedAgent(script.says("Hello.")).open() as agent:
        assert await agent.think().text("Go.").run() == "Hello."
        await agent.close()
        with pytest.raises(AgentClosed):
            agent.think().text("Go.").stream()


async def test_it_is_opened_once() -> None:
    opening = ScriptedAgent(script.says("Hello.")).open()
    async with opening as agent:
        assert await agent.think().text("Go.").run() == "Hello."
        with pytest.raises(RuntimeError, match="opens scripted only once"):
            await opening.start()


async def test_it_is_not_closed_from_another_event_loop() -> None:
    async with ScriptedAgent(script.says("Hello.")).open() as agent:
        with pytest.raises(WrongEventLoop):
            await anyio.to_thread.run_sync(anyio.run, agent.close)
        assert await agent.think().text("Go.").run() == "Hello."


async def test_a_server_is_left_by_another_task() -> None:
    app = web_app(
        RunServer({"scripted": ServedAgent(open=lambda policy: open_agent("builtin", permissions=policy))})
    )
    lifespan = app.router.lifespan_context(app)
    await lifespan.__aenter__()
    await in_a_task(lambda: lifespan.__aexit__(None, None, None))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_run_ends_with_the_event_loop(loop: str) -> None:
    async def main() -> ThoughtStream[str]:
        agent = await ScriptedAgent(script.does(waits)).open().start()
        return agent.think().text("Go.").stream()

    stream = anyio.run(main, backend=loop)
    assert isinstance(stream.result.exception(), ThoughtCancelled)


NEVER_CLOSED = """
    import sys, anyio
    from thinkwell import open_agent

    async def main() -> None:
        agent = await open_agent(command=sys.argv[2:]).start()
        stream = agent.think().text("Go").stream()
        await anext(aiter(stream))

    anyio.run(main, backend=sys.argv[1])
"""

CTRL_C = """
    import signal, sys, anyio
    from thinkwell import open_agent

    async def stop() -> None:
        signal.raise_signal(signal.SIGINT)
        await anyio.sleep(0)

    async def main() -> None:
        async with open_agent(command=sys.argv[2:]) as agent:
            agent.think(int).text("How many files are here?").tool(stop).stream()
            await anyio.sleep_forever()

    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it is ignored
    try:
        anyio.run(main, backend=sys.argv[1])
    except KeyboardInterrupt:
        pass
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the agent's number comes by way of a shell")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("program", "runs"),
    [(NEVER_CLOSED, f"-I -S {PROGRAM} works"), (CTRL_C, "-m thinkwell.builtin")],
    ids=["never closed", "Ctrl-C"],
)
def test_the_agent_ends_with_the_event_loop(
    program: str, runs: str, loop: str, tmp_path: Path, warm_python: str
) -> None:
    """That it is a process is the point. Ctrl-C comes while a task runs that the program does not know."""
    agent = ("sh", "-c", f"echo $$ > pid; exec {warm_python} {runs}")
    ended = subprocess.run(
        (TRUE, "-W", "error", "-c", textwrap.dedent(program), loop, *agent),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
