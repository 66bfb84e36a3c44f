"""A process that is forked while an agent is open leaves it to its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

BACKENDS = ("asyncio", "trio")

PROGRAM = """
    import os, sys, anyio
    from thinkwell import WrongEventLoop, open_agent

    backend, ending, record, *command = sys.argv[1:]

    async def main() -> None:
        begun, go = anyio.Event(), anyio.Event()

        async def wait() -> str:
            begun.set()
            await go.wait()
            return "done"

        async with (
            open_agent(command=command, record=record) as agent,
            agent.session() as session,
            session.think(int).text("Go.").tool(wait).stream() as stream,
        ):
            await begun.wait()
            child = os.fork()
            if not child:
                try:
                    agent.think().text("Go.").stream()
                except WrongEventLoop:
                    print("not in a fork", flush=True)
                if ending == "exit":
                    raise SystemExit(7)
                return
            _, status = await anyio.to_thread.run_sync(os.waitpid, child, 0)
            print("the child's exit code:", os.waitstatus_to_exitcode(status), flush=True)
            go.set()
            print("the result:", await stream.result, flush=True)
            await stream.wait()
            print("another:", await session.think(int).text("Go on.").tool(wait).run(), flush=True)

    anyio.run(main, backend=backend)
"""


BETWEEN = """
    import os, sys, anyio
    from thinkwell import open_agent

    async def main() -> None:
        async with open_agent("builtin", tools_via="stdio") as agent, agent.session(output=int) as session:
            for number in range(3):
                print("result:", await session.think(int).text("How many files?").run(), flush=True)
                child = os.fork()
                if not child:
                    raise SystemExit(number)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

    anyio.run(main, backend=sys.argv[1])
"""


def run(program: str, *arguments: str) -> list[str]:
    """Return the lines that a program prints, which must say nothing on standard error."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "THINKWELL_BUILTIN_PACE": "0"},
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert err == ""
    return out.splitlines()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("ending", ["exit", pytest.param("return", marks=pytest.mark.long)])
def test_a_fork_that_leaves_the_block_in_a_run_ends_nothing(
    tmp_path: Path, backend: str, ending: str
) -> None:
    played = ScriptedAgent(
        script.calls("wait").returns({"result": 1}).stops().calls("wait").returns({"result": 2})
    )
    record = tmp_path / "record.ndjson"
    assert run(PROGRAM, backend, ending, str(record), *played.program(tmp_path)) == [
        "not in a fork",
        f"the child's exit code: {7 if ending == 'exit' else 0}",
        "the result: 1",
        "another: 2",
    ]
    played.check()
    lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    assert [line["type"] for line in lines].count("end") == 1
    assert lines[-1]["type"] == "end"


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_our_tools_can_be_reached_after_a_fork(backend: str) -> None:
    first, *rest = run(BETWEEN, backend)
    assert rest == ["0", first, "1", first, "2"]
