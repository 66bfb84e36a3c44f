"""The way over pipes: the program that the agent starts, and the private socket behind it."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.stapled import StapledByteStream
from mcp_raw import HANDSHAKE, rpc
from mcp_support import OTHER, Workbench

from thinkwell_acp.mcp import ShimToolHost, shim

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import ByteStream, Process

    from thinkwell_acp.schema import JsonObject, McpServerStdio

PING = rpc("ping")
PONG: JsonObject = {"jsonrpc": "2.0", "id": 1, "result": {}}
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")


class Lines:
    """An agent's end: lines of JSON over a stream."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._received = BufferedByteReceiveStream(stream)

    async def say(self, *messages: JsonObject | bytes) -> None:
        lines = [item if isinstance(item, bytes) else msgspec.json.encode(item) + b"\n" for item in messages]
        await self.stream.send(b"".join(lines))

    async def hear(self) -> JsonObject:
        with anyio.fail_after(30):
            line = await self._received.receive_until(b"\n", 64 * 1024 * 1024)
        message: JsonObject = msgspec.json.decode(line)
        return message

    async def closed(self) -> bool:
        """Whether the server closes without saying more."""
        with anyio.fail_after(30):
            try:
                await self.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return True
        return False


async def dial(told: McpServerStdio, greeting: bytes | None = None) -> Lines:
    """Do what the shim does first, or send another greeting."""
    address = told.args[-1]
    stream = await (
        anyio.connect_tcp("127.0.0.1", int(address)) if address.isdecimal() else anyio.connect_unix(address)
    )
    (variable,) = told.env
    await stream.send(variable.value.encode() + b"\n" if greeting is None else greeting)
    return Lines(stream)


@pytest.fixture
def workbench() -> Workbench:
    return Workbench()


@pytest.fixture(params=[pytest.param(True, marks=unix_only), False], ids=["unix", "tcp"])
async def host(request: pytest.FixtureRequest) -> AsyncGenerator[ShimToolHost]:
    unix: bool = request.param
    async with ShimToolHost(unix=unix, greeting_time=0.2) as opened:
        yield opened


@pytest.fixture
async def lines(host: ShimToolHost, workbench: Workbench) -> AsyncGenerator[Lines]:
    dialled = await dial(host.add(workbench.server))
    async with dialled.stream:
        yield dialled


async def start(told: McpServerStdio) -> Process:
    env = {variable.name: variable.value for variable in told.env}
    return await anyio.open_process([told.command, *told.args], env=os.environ | env, stderr=None)


def ends(program: Process) -> StapledByteStream:
    assert program.stdin is not None
    assert program.stdout is not None
    return StapledByteStream(program.stdin, program.stdout)


class TestProgram:
    """The shim itself, as a process."""

    async def test_carries_both_ways(self, host: ShimToolHost, workbench: Workbench) -> None:
        async with await start(host.add(workbench.server)) as program:
            agent = Lines(ends(program))
            big = "x" * 3_000_000
            await agent.say(PING, rpc("tools/call", {"name": "echo", "arguments": {"text": big}}, id_=2))
            heard = {message["id"]: message["result"] for message in (await agent.hear(), await agent.hear())}
            assert heard[1] == {}
            assert heard[2]["content"][0]["text"] == '{"text":"' + big + '"}'
            await agent.stream.send_eof()
            with anyio.fail_after(30):
                assert await program.wait() == 0

    async def test_ends_when_the_server_is_gone(self, host: ShimToolHost, workbench: Workbench) -> None:
        async with await start(host.add(workbench.server)) as program:
            agent = Lines(ends(program))
            await agent.say(PING)
            assert await agent.hear() == PONG
            host.remove(workbench.server)
            with anyio.fail_after(30):
                assert await program.wait() == 0

    async def test_says_why_it_cannot_start(self, workbench: Workbench) -> None:
        async with ShimToolHost() as host:
            told = host.add(workbench.server)
        env = {variable.name: variable.value for variable in told.env}
        with anyio.fail_after(30):
            done = await anyio.run_process(
                [told.command, *told.args], env=env, check=False, stderr=subprocess.PIPE
            )
        assert done.returncode == 1
        assert done.stderr.startswith(b"cannot reach the tool server: ")

    def test_needs_nothing_but_the_bare_interpreter(self) -> None:
        code = f"import runpy, sys; runpy.run_path({shim.__file__!r}); print(*sys.modules)"
        bare = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, timeout=10
        )
        assert not {"socket", "selectors", "threading", "site", "json", "asyncio"} & set(bare.stdout.split())

    async def test_its_secret_is_not_in_the_arguments(self, host: ShimToolHost, workbench: Workbench) -> None:
        told = host.add(workbench.server)
        assert told.args[:2] == ("-I", "-S")
        assert Path(told.command).is_absolute()
        (variable,) = told.env
        assert variable.name == "THINKWELL_MCP_SECRET"
        assert variable.value not in " ".join(told.args)


class TestSocket:
    """The socket behind it."""

    @unix_only
    async def test_is_private_and_gone_afterwards(self, workbench: Workbench) -> None:
        async with ShimToolHost() as host:
            path = Path(host.add(workbench.server).args[-1])
            assert stat.S_ISSOCK(path.stat().st_mode)
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert len(bytes(path)) < 104
        assert not path.parent.exists()

    @unix_only
    async def test_is_a_port_where_the_path_would_be_too_long(
        self, workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deep = tmp_path / ("d" * 100)
        deep.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(deep))
        async with ShimToolHost() as host:
            told = host.add(workbench.server)
            assert told.args[-1].isdecimal()
            dialled = await dial(told)
            async with dialled.stream:
                await dialled.say(PING)
                assert await dialled.hear() == PONG
        assert list(deep.iterdir()) == []

    @pytest.mark.parametrize("greeting", [b"wrong\n", b"x" * 1000, b"no end", b""])
    async def test_wants_the_secret_first(
        self, host: ShimToolHost, workbench: Workbench, greeting: bytes
    ) -> None:
        told = host.add(workbench.server)
        stranger = await dial(told, greeting)
        async with stranger.stream:
            assert await stranger.closed()
        friend = await dial(told)
        async with friend.stream:
            await friend.say(PING)
            assert await friend.hear() == PONG

    async def test_a_server_that_was_removed(
        self, host: ShimToolHost, lines: Lines, workbench: Workbench
    ) -> None:
        kept = Workbench()
        told, told_kept = host.add(workbench.server), host.add(kept.server)
        other = await dial(told_kept)
        async with other.stream:
            await other.say(PING)
            assert await other.hear() == PONG
            await lines.say(rpc("tools/call", {"name": "wait"}))
            await workbench.until(waiting=1)
            host.remove(workbench.server)
            assert (await lines.hear())["error"]["code"] == -32800
            assert await lines.closed()
            late = await dial(told)
            async with late.stream:
                assert await late.closed()
            await other.say(PING)
            assert await other.hear() == PONG


class TestLines:
    """What is said over it."""

    async def test_a_subscription_to_nothing_is_quiet_until_taken_back(
        self, lines: Lines, workbench: Workbench
    ) -> None:
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        await lines.say(rpc("subscriptions/listen", {"notifications": {}, "_meta": meta}, id_="s"))
        acknowledged = await lines.hear()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {}
        workbench.server.set_tools([OTHER])
        await lines.say(rpc("notifications/cancelled", {"requestId": "s"}, id_=None), PING)
        assert await lines.hear() == PONG

    async def test_noise_costs_only_itself(self, lines: Lines) -> None:
        await lines.say(
            b"\n",
            BOM_UTF8 + b"  \r\n",
            BOM_UTF8 + b"{}\n",
            b"\xff\n",
            b'{"jsonrpc":"2.0","id":9,"result":{}}\n',
        )
        for _ in range(2):
            assert (await lines.hear())["error"]["code"] == -32700
        await lines.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}\n')
        await lines.say(rpc("notifications/unheard_of", id_=None), BOM_UTF8, PING)
        assert await lines.hear() == PONG

    async def test_a_call_that_is_taken_back_is_not_answered(
        self, lines: Lines, workbench: Workbench
    ) -> None:
        await lines.say(rpc("tools/call", {"name": "wait"}, id_="w"))
        await workbench.until(waiting=1)
        await lines.say(rpc("notifications/cancelled", {"requestId": "w"}, id_=None))
        await workbench.until(cancelled=1)
        await lines.say(PING)
        assert await lines.hear() == PONG

    async def test_a_call_may_be_taken_back_in_the_write_that_makes_it(
        self, lines: Lines, workbench: Workbench
    ) -> None:
        call = rpc("tools/call", {"name": "wait", "arguments": {}}, id_="w")
        await lines.say(call, rpc("notifications/cancelled", {"requestId": "w"}, id_=None), PING)
        assert await lines.hear() == PONG
        await workbench.until(cancelled=1)

    async def test_an_id_that_is_used_twice(self, lines: Lines, workbench: Workbench) -> None:
        await lines.say(rpc("tools/call", {"name": "wait"}), rpc("tools/call", {"name": "wait"}))
        await workbench.until(waiting=2)
        await lines.say(rpc("notifications/cancelled", {"requestId": 1}, id_=None))
        await workbench.until(waiting=1, cancelled=1)
        workbench.go.set()
        assert (await lines.hear())["result"]["content"][0]["text"] == "waited"

    async def test_hears_of_changes_when_ready(self, lines: Lines, workbench: Workbench) -> None:
        await lines.say(rpc("initialize", HANDSHAKE))
        await lines.hear()
        workbench.server.set_tools([OTHER])
        await lines.say(rpc("notifications/initialized", id_=None), PING)
        assert await lines.hear() == PONG, "who has no list has no old one"
        workbench.server.set_tools([])
        assert await lines.hear() == rpc("notifications/tools/list_changed", {}, id_=None)

    async def test_an_agent_that_goes_away_cancels_its_calls(
        self, lines: Lines, workbench: Workbench
    ) -> None:
        await lines.say(rpc("tools/call", {"name": "wait"}))
        await workbench.until(waiting=1)
        await lines.stream.aclose()
        await workbench.until(cancelled=1)

    async def test_an_agent_that_goes_away_in_the_middle_of_an_answer(
        self, lines: Lines, host: ShimToolHost
    ) -> None:
        await lines.say(rpc("tools/call", {"name": "echo", "arguments": {"text": "x" * 10_000_000}}))
        with anyio.fail_after(30):
            await lines.stream.receive(1)
        await lines.stream.aclose()
        again = await dial(host.add(Workbench().server))
        async with again.stream:
            await again.say(PING)
            assert await again.hear() == PONG

    @pytest.mark.long
    async def test_a_line_without_end(self, lines: Lines) -> None:
        block = b"x" * 1024 * 1024

        async def send() -> None:
            for _ in range(70):
                await lines.stream.send(block)
            await lines.stream.receive()

        with anyio.fail_after(30), pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):
            await send()


@unix_only
async def test_a_program_that_ends_together_with_its_session_leaves_no_error(workbench: Workbench) -> None:
    async with ShimToolHost() as host:
        told = host.add(workbench.server)
        with socket.socket(socket.AF_UNIX) as program:
            program.connect(told.args[-1])
            program.setblocking(False)
            program.sendall(told.env[0].value.encode() + b"\n" + msgspec.json.encode(PING) + b"\n")
            with anyio.fail_after(30):
                await anyio.wait_readable(program)
            assert msgspec.json.decode(program.recv(1000)) == PONG
            await anyio.wait_all_tasks_blocked()
        host.remove(workbench.server)
        await anyio.wait_all_tasks_blocked()
