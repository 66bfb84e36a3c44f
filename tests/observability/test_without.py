"""Without OpenTelemetry, all is as if there were no such thing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = str(Path(__file__).parents[1])

PROGRAM = """
    import sys
    {before}
    import anyio
    from scripted import Played, scripted

    async def hello(turn):
        turn.say("Hello")

    async def main():
        handler = Played([hello])
        async with scripted(agent=handler) as agent:
            async with agent.session() as session:
                await session.think().text("Say hello.").run()
            await agent.think().text("Say hello.").run()
        return tuple(handler.requests(method)[-1].meta for method in ("session/new", "session/prompt"))

    meta = anyio.run(main, backend={backend!r})
    {after}
"""


def run(before: str, after: str, backend: str) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(PROGRAM).format(before=before, after=after, backend=backend)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([TESTS, *sys.path])},
    )


def test_it_is_not_imported(anyio_backend: str) -> None:
    """So it need not be installed."""
    found = "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    result = run("", found, anyio_backend)
    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\n", "")


def test_without_a_collector_the_agent_receives_no_trace(anyio_backend: str) -> None:
    """A library of the program's may have imported the API."""
    result = run("import opentelemetry.trace, opentelemetry.metrics", "print(*meta)", anyio_backend)
    assert (result.returncode, result.stdout, result.stderr) == (0, "None None\n", "")


def test_an_api_that_is_too_old_costs_the_spans_alone(anyio_backend: str) -> None:
    before = "import opentelemetry.trace; sys.modules['opentelemetry.propagate'] = None"
    result = run(before, "", anyio_backend)
    assert result.returncode == 0
    assert result.stderr.count("spans are lost") == 1
