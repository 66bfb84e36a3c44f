"""A program that is an agent itself, over its own standard input and output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from acp_support import LIMIT, Recorder, request, to_bytes

from thinkwell_acp import connect, stdio_transport

AGENT = str(Path(__file__).parent / "programs" / "our_agent.py")
HELLO = to_bytes(request(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}}))


@pytest.fixture
def anyio_backend() -> str:
    """Return the client's loop, which makes no difference here."""
    return "asyncio"


@pytest.fixture(params=["asyncio", "trio"])
def command(request: pytest.FixtureRequest) -> list[str]:
    """The agent, on one backend or the other."""
    return [sys.executable, "-u", "-W", "error", AGENT, str(request.param)]


async def test_what_the_program_prints_goes_to_standard_error(command: list[str]) -> None:
    handler = Recorder()
    with anyio.fail_after(LIMIT):
        async with (
            stdio_transport(command, exit_grace=20) as transport,
            connect(transport, handler) as client,
        ):
            await client.initialize()
            await client.ext_call("_x")
    assert transport.exit_code == 0
    assert transport.stderr_tail == "this line must not reach the client\nleft\n"
    assert handler.reports == []


@pytest.mark.long
async def test_a_large_answer_and_a_large_question_pass(command: list[str]) -> None:
    with anyio.fail_after(LIMIT):
        async with stdio_transport(command, exit_grace=20) as transport, connect(transport) as client:
            big = "x" * 3_000_000
            assert await client.ext_call("_x", big) == {"method": "_x", "params": big}


def run(command: list[str], stdin: int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, stdin=stdin, capture_output=True, timeout=LIMIT, check=False)


def test_input_may_be_a_file_whose_end_is_the_end(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"\n" * 10 + HELLO)
    with file.open() as stdin:
        done = run(command, stdin.fileno())
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, b"left")


def test_input_that_cannot_be_read_ends_the_agent(command: list[str]) -> None:
    only_for_writing = os.open(os.devnull, os.O_WRONLY)
    try:
        done = run(command, only_for_writing)
    finally:
        os.close(only_for_writing)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"left\n")


def test_a_client_that_reads_no_more_ends_the_agent(command: list[str]) -> None:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert agent.stderr is not None
        agent.stdout.close()
        agent.stdin.write(HELLO)
        agent.stdin.flush()
        assert agent.wait(LIMIT) == 0
        assert agent.stderr.read().endswith(b"left\n")
