"""Agents as processes: whatever they do, nothing hangs, nothing is lost, and nothing of theirs is left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from acp_support import LIMIT, Recorder, chunk

from thinkwell_acp import (
    ProcessExited,
    ProgramNotFound,
    ProgramNotStarted,
    StdioTransport,
    connect,
    stdio_transport,
)
from thinkwell_acp.stdio import STDERR_TAIL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and process groups")

PROGRAMS = Path(__file__).parent / "programs"

STUBBORN = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
)
FOREVER = "while True: time.sleep(60)\n"


def python(code: str, *arguments: str) -> list[str]:
    """A command that runs some Python, fast to start."""
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


@asynccontextmanager
async def running(
    code: str, *arguments: str, exit_grace: float = 0.1, terminate_grace: float = 0.1, kill_grace: float = 5
) -> AsyncGenerator[StdioTransport]:
    """A program with little patience for its end."""
    with anyio.fail_after(LIMIT):
        async with stdio_transport(
            python(code, *arguments),
            exit_grace=exit_grace,
            terminate_grace=terminate_grace,
            kill_grace=kill_grace,
        ) as transport:
            yield transport


async def read_until(transport: StdioTransport, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += await transport.receive()
    return data


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return not Path("/proc/self").exists()


async def wait_gone(*pids: int) -> None:
    """Wait until the system has ended processes that were killed."""
    with anyio.fail_after(30):
        while any(map(is_alive, pids)):  # noqa: ASYNC110 - no child of ours, so nothing tells
            await anyio.sleep(0.01)


def assert_reaped(pid: int) -> None:
    """A process of ours is neither running nor a zombie."""
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# Talking


async def test_bytes_go_both_ways() -> None:
    async with running(
        "import sys; [print(line.upper(), end='', flush=True) for line in sys.stdin]", exit_grace=5
    ) as t:
        await t.send(b"hello\n")
        assert await read_until(t, b"\n") == b"HELLO\n"
    assert t.exit_code == 0
    assert t.command[0] == sys.executable
    assert_reaped(t.pid)


async def test_what_is_sent_now_is_what_the_pipe_takes() -> None:
    async with running("import sys; print(len(sys.stdin.buffer.read()))", exit_grace=5) as t:
        sent = 0
        while size := t.send_now(b"x" * 10_000):
            sent += size
        assert sent >= 4096  # POSIX: no pipe takes less


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_is_read_for_a_task_that_is_cancelled_then_is_there_for_the_next(tmp_path: Path) -> None:
    os.mkfifo(written := tmp_path / "written")
    code = "import sys; sys.stdin.readline(); print('hello', flush=True); open(sys.argv[1], 'w').close()"
    async with running(code, str(written), exit_grace=5) as t:
        reading = asyncio.create_task(t.receive())
        await anyio.wait_all_tasks_blocked()
        t.send_now(b"\n")
        written.read_bytes()  # it holds the event loop up, until there is something to read
        asyncio.get_running_loop().call_later(0, reading.cancel)  # behind the look at what can be read
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await t.receive() == b"hello\n"


async def test_a_flood_on_standard_error_holds_up_nothing_and_its_end_is_kept() -> None:
    code = (
        "import sys; [sys.stderr.write(f'{n:9}\\n') for n in range(30_000)];"
        "print('done', flush=True); sys.stdin.read()"
    )
    async with running(code, exit_grace=5) as t:
        assert await t.receive() == b"done\n"
    assert STDERR_TAIL - 10 < len(t.stderr_tail) <= STDERR_TAIL
    assert {len(line) for line in t.stderr_tail.splitlines()} == {9}, (
        "no half line, which may be half a secret"
    )
    assert t.stderr_tail.endswith("    29999\n")


async def test_a_line_of_eight_megabytes_goes_both_ways() -> None:
    size = 8 * 1024 * 1024
    handler = Recorder()
    code = (
        "import sys; line = sys.stdin.buffer.readline();"
        "sys.stdout.buffer.write(line); sys.stdout.flush(); sys.stdin.read()"
    )
    async with running(code, exit_grace=5) as transport, connect(transport, handler) as client:
        update = chunk("x" * size)
        client.connection.notify(update["method"], update["params"])
        await handler.wait_until(lambda: len(handler.updates) > 0)
        assert len(handler.texts[0]) == size


async def test_the_environment_and_the_folder_are_as_asked(tmp_path: Path) -> None:
    code = "import os; print(os.environ.get('A'), os.environ.get('THINKWELL_TEST'), os.getcwd(), flush=True)"
    with anyio.fail_after(LIMIT):
        async with stdio_transport(python(code), env={"A": "b"}, cwd=tmp_path) as t:
            assert await t.receive() == f"b None {tmp_path.resolve()}\n".encode()


async def test_a_program_is_found_on_the_path_of_its_environment(tmp_path: Path) -> None:
    program = tmp_path / "agent-of-ours"
    program.write_text("#!/bin/sh\necho found $1\n")
    program.chmod(0o755)
    with anyio.fail_after(LIMIT):
        async with stdio_transport(["agent-of-ours", "it"], env={"PATH": str(tmp_path)}) as t:
            assert await t.receive() == b"found it\n"
        assert t.command == (str(program), "it")


# Ending by itself


async def test_an_agent_that_exits_at_start_says_so() -> None:
    async with running("import sys; sys.exit('no key')") as t:
        with pytest.raises(ProcessExited) as caught:
            await t.receive()
        assert (caught.value.exit_code, caught.value.stderr_tail) == (1, "no key\n")
        with pytest.raises(ProcessExited):
            await t.receive()
    assert_reaped(t.pid)


async def test_an_agent_that_is_killed_says_so() -> None:
    async with running("import os; os.kill(os.getpid(), 9)") as t:
        with pytest.raises(ProcessExited) as caught:
            await t.receive()
        assert caught.value.exit_code == -9
    assert t.exit_code == -9


async def test_an_agent_that_closes_its_output_and_lives_on_says_so() -> None:
    async with running("import os, time; os.write(2, b'hm'); os.close(1); time.sleep(60)") as t:
        with pytest.raises(ProcessExited) as caught:
            await t.receive()
        assert (caught.value.exit_code, caught.value.stderr_tail) == (None, "hm")
    assert t.exit_code == -signal.SIGTERM


async def test_the_last_words_of_an_agent_are_read() -> None:
    async with running("import os; os.write(1, b'x' * 500_000 + b'\\n'); os._exit(7)") as t:
        assert len(await read_until(t, b"\n")) == 500_001
        with pytest.raises(ProcessExited) as caught:
            await t.receive()
        assert caught.value.exit_code == 7


HOLDER = (
    "import os, signal, sys, time\n"
    "pid = os.fork()\n"
    "if pid == 0:\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "    os.close(0)\n"
    "    print(os.getpid(), flush=True)\n"
    "    time.sleep(60)\n"
)


async def test_an_end_is_noticed_although_a_grandchild_holds_every_pipe() -> None:
    async with running(HOLDER + "else: time.sleep(0.3); os._exit(5)") as t:
        grandchild = int(await t.receive())
        with pytest.raises(ProcessExited) as caught:
            await t.receive()
        assert caught.value.exit_code == 5
        assert is_alive(grandchild)
    await wait_gone(grandchild)
    assert_reaped(t.pid)


async def test_a_connection_tells_of_the_exit_although_its_writes_failed_first() -> None:
    async with running(HOLDER + "else: sys.stdin.readline(); os._exit(5)") as t, connect(t) as client:
        client.ext_notify("_go", {"x": "y" * 2_000_000})
        with pytest.raises(ProcessExited) as caught:
            await client.ext_call("_x")
        assert caught.value.exit_code == 5


# Being ended


@pytest.mark.parametrize("where", ["ending", "listening", "reading"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_ctrl_c_ends_an_agent_and_comes_out_as_it_is(backend: str, where: str) -> None:
    result = subprocess.run(
        [sys.executable, PROGRAMS / "interrupted.py", backend, where],
        capture_output=True,
        text=True,
        timeout=60,  # less than the agent would have got
        check=False,
    )
    assert "interrupted" in result.stdout, result.stderr
    pid, _ = result.stdout.split()
    assert not is_alive(int(pid))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_asyncio_cancels_while_it_ends_an_agent_ends() -> None:
    transports: list[StdioTransport] = []

    async def leave() -> None:
        async with running(STUBBORN + FOREVER, exit_grace=300) as transport:
            await transport.receive()
            transports.append(transport)
            asyncio.get_running_loop().call_soon(task.cancel)
            # Nothing waits from here to where the agent is given its time.

    task = asyncio.create_task(leave())
    with anyio.fail_after(LIMIT):
        await asyncio.wait([task])
    assert task.cancelled()
    (transport,) = transports
    await transport.aclose()  # it has been done
    assert transport.exit_code == -signal.SIGKILL
    assert_reaped(transport.pid)


@pytest.mark.parametrize("parent", ["else: os.wait()", "else: sys.stdin.read()"])
async def test_a_grandchild_that_ignores_everything_is_killed_too(parent: str) -> None:
    async with running(HOLDER + parent, exit_grace=1) as t:
        grandchild = int(await t.receive())
        assert is_alive(grandchild)
    assert_reaped(t.pid)
    await wait_gone(grandchild)


async def test_what_an_agent_writes_while_it_is_ended_holds_up_nothing() -> None:
    code = (
        "import os, sys; print('up', flush=True); sys.stdin.read();"
        "sys.stdout.write('x' * 3_000_000); sys.stdout.flush(); os._exit(4)"
    )
    async with running(code, exit_grace=5) as t:
        await t.receive()
    assert t.exit_code == 4


async def test_killing_is_immediate_and_harmless_afterwards() -> None:
    async with running(STUBBORN + FOREVER) as t:
        await t.receive()
        t.kill()
        with pytest.raises(ProcessExited) as caught:
            await t.receive()
        assert caught.value.exit_code == -9
    t.kill()


async def test_a_process_that_does_not_die_is_left_with_a_word_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(STUBBORN + FOREVER, exit_grace=0, terminate_grace=0, kill_grace=0) as t:
        await t.receive()
    assert "does not die" in caplog.text
    with contextlib.suppress(ChildProcessError):  # it may have died just then
        os.waitpid(t.pid, 0)  # noqa: ASYNC222 - it was killed


async def test_a_closed_transport_is_of_no_more_use() -> None:
    async with running("import sys; sys.stdin.read()", exit_grace=5) as t:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(t.aclose)
            tasks.start_soon(t.aclose)
        assert t.exit_code == 0
        with pytest.raises(anyio.ClosedResourceError):
            await t.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await t.send(b"x")
    assert t.ended_by == "eof"


@pytest.mark.parametrize(
    ("code", "rung", "number"),
    [
        ("import time; print('up', flush=True)\n" + FOREVER, "terminate", signal.SIGTERM),
        (STUBBORN + FOREVER, "kill", signal.SIGKILL),
    ],
    ids=["terminate", "kill"],
)
async def test_what_ignores_the_end_of_its_input_takes_a_signal_to_end(
    code: str, rung: str, number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "thinkwell.acp")
    async with running(code) as t:
        await t.receive()
        before = t.ended_by
    assert (before, t.ended_by, t.exit_code) == (None, rung, -number)
    assert f"did not end by itself within 0.1 s; it took {number.name}" in caplog.text
    assert_reaped(t.pid)


async def test_closing_wakes_a_reader_and_a_writer() -> None:
    async with running("import time; time.sleep(60)", exit_grace=0) as t, anyio.create_task_group() as tasks:

        async def receive() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await t.receive()

        async def send() -> None:
            with pytest.raises((anyio.ClosedResourceError, anyio.BrokenResourceError)):
                await t.send(b"x" * 10_000_000)

        tasks.start_soon(receive)
        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        await t.aclose()


async def test_writing_to_an_agent_that_has_ended_fails() -> None:
    async with running("pass") as t:
        with pytest.raises(ProcessExited):
            await t.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await t.send(b"x" * 1_000_000)


async def test_reading_can_be_cancelled_and_goes_on_later() -> None:
    async with running(
        "import sys; [print(line, end='', flush=True) for line in sys.stdin]", exit_grace=5
    ) as t:
        with anyio.move_on_after(0.05):
            await t.receive()
        await t.send(b"later\n")
        assert await read_until(t, b"\n") == b"later\n"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_read_that_asyncio_cancels_when_it_was_done_loses_nothing() -> None:
    code = "import sys\nfor n in range(20_000): sys.stdout.write(f'{n}\\n'); n % 10 or sys.stdout.flush()\n"
    read: list[bytes] = []
    async with running(code) as transport:
        with contextlib.suppress(ProcessExited):
            for attempt in count():
                task = asyncio.create_task(transport.receive())
                for _ in range(attempt % 20):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    read.append(await task)
    assert b"".join(read) == b"".join(b"%d\n" % number for number in range(20_000))


async def test_reading_without_an_end_can_be_cancelled_by_the_reader_itself() -> None:
    reads = 0
    async with running("import os\nwhile True: os.write(1, b'y' * 100_000)") as transport:
        space = memoryview(bytearray(1_000))  # so there is always more to read
        with anyio.CancelScope() as scope:
            for reads in range(1_000):
                await transport.receive_into(space)
                if reads == 10:
                    scope.cancel()
        assert reads < 20


async def test_what_wraps_a_transport_sees_all_that_goes_through() -> None:
    class Watching:
        """Passes on what it does not know."""

        def __init__(self, inner: StdioTransport) -> None:
            self.inner = inner
            self.seen = b""

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def receive(self) -> bytes:
            data = await self.inner.receive()
            self.seen += data
            return data

        async def send(self, item: bytes, /) -> None:
            self.seen += item
            await self.inner.send(item)

        async def aclose(self) -> None:
            await self.inner.aclose()

    echo = 'import sys; sys.stdin.readline(); print(\'{"jsonrpc":"2.0","id":0,"result":{}}\', flush=True)'
    async with running(echo) as transport:
        watching = Watching(transport)
        async with connect(watching) as client:
            await client.connection.request("session/set_mode", {})
    assert b"session/set_mode" in watching.seen
    assert b"result" in watching.seen


async def test_one_task_reads_at_a_time() -> None:
    async with running("import time; print('up', flush=True)\n" + FOREVER) as transport:
        assert await transport.receive() == b"up\n"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(transport.receive)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(anyio.BusyResourceError):
                await transport.receive()
            tasks.cancel_scope.cancel()


async def test_cancelling_the_surrounding_scope_still_ends_everything() -> None:
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        async with running(HOLDER + "else: time.sleep(60)") as transport, connect(transport) as client:
            pids.append(transport.pid)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await client.initialize()
    assert scope.cancelled_caught
    assert_reaped(pids[0])


async def test_a_scope_that_is_cancelled_already_leaves_nothing() -> None:
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with running(STUBBORN + FOREVER) as t:
            pids.append(t.pid)
            await t.receive()
    assert scope.cancelled_caught
    assert_reaped(pids[0])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_cancelled_by_asyncio_itself_still_ends_everything() -> None:
    pids: list[int] = []

    async def run() -> None:
        async with running(STUBBORN + FOREVER) as transport, connect(transport) as client:
            pids.append(transport.pid)
            await client.initialize()

    task = asyncio.create_task(run())
    while not pids:
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_reaped(pids[0])


async def test_an_error_in_the_block_passes_as_it_is_and_ends_the_process() -> None:
    pids: list[int] = []
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what is tested
        async with running("import sys; sys.stdin.read()", exit_grace=5) as t:
            pids.append(t.pid)
            raise ZeroDivisionError
    assert_reaped(pids[0])


async def test_several_agents_do_not_hold_one_anothers_pipes() -> None:
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    async with running(code, exit_grace=5) as one, running(code, exit_grace=5) as two:
        await one.receive()
        await two.receive()
        await one.aclose()
        assert one.exit_code == 0
        assert two.exit_code is None


async def test_what_an_agent_logs_is_logged_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell.acp")
    async with running(
        "import sys; sys.stderr.write('a note'); sys.stderr.flush(); print('up'); sys.stdin.read()"
    ) as t:
        while "a note" not in t.stderr_tail:  # noqa: ASYNC110 - nothing tells
            await anyio.sleep(0.01)
    assert "a note" in caplog.text


# Not starting


@pytest.mark.parametrize("command", [["no-such-agent-anywhere"], ["/no/such/agent"], ["./no-such-agent"]])
async def test_a_program_that_does_not_exist_is_named(command: list[str]) -> None:
    with pytest.raises(ProgramNotFound, match=r"there is no program .*no.such.agent") as caught:
        async with stdio_transport(command):
            pass
    assert not isinstance(caught.value, ProgramNotStarted)
    assert caught.value.command == tuple(command)


async def test_an_empty_command_is_refused() -> None:
    with pytest.raises(ProgramNotFound, match="name a program"):
        async with stdio_transport([]):
            pass


@pytest.mark.parametrize("mode", [0o644, 0o755])
async def test_a_file_that_is_no_program_is_not_started(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(b"\x7fELF is what programs begin with")
    file.chmod(mode)
    with pytest.raises(ProgramNotStarted, match=r"notes\.txt"):
        async with stdio_transport([str(file)]):
            pass


async def test_a_folder_named_like_the_program_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-such-agent-anywhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProgramNotFound, match="on the PATH"):
        async with stdio_transport(["no-such-agent-anywhere"]):
            pass


@pytest.mark.parametrize("name", ["missing", "file"])
async def test_a_folder_that_is_none_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProgramNotFound, match=f"the folder .*{name} to start"):
        async with stdio_transport(python("pass"), cwd=tmp_path / name):
            pass


@pytest.mark.parametrize(("arguments", "env"), [(["a\0b"], None), ([], {"a=b": "c"})])
async def test_what_no_system_can_pass_on_is_refused(
    arguments: list[str], env: dict[str, str] | None
) -> None:
    with pytest.raises(ProgramNotStarted):
        async with stdio_transport([sys.executable, *arguments], env=env):
            pass


# Other systems


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("quirk", ["no-pidfd", "no-waitid", "sigchld-ignored"])
def test_systems_without_one_thing_or_the_other(quirk: str, backend: str) -> None:
    command = [sys.executable, "-W", "error", str(PROGRAMS / "quirky_system.py"), quirk, backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    codes = ["0", "0"] if quirk == "sigchld-ignored" else ["7", "-15"]
    assert done.stdout.split() == codes
