"""Whatever comes in, the next client is served."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_raw import Target, raw_http, rpc
from mcp_support import Workbench
from suite.tiers import few

from thinkwell_acp.mcp import HttpLimits, HttpToolHost, ShimToolHost

if TYPE_CHECKING:
    import pytest

HTTP_PIECES = st.sampled_from(
    [
        b"POST {path} HTTP/1.1\r\n",
        b"GET {path} HTTP/1.1\r\n",
        b"host: 127.0.0.1:{port}\r\n",
        b"authorization: {authorization}\r\n",
        b"content-type: application/json\r\n",
        b"content-length: 5\r\n",
        b"content-length: 99999999999999999999\r\n",
        b"transfer-encoding: chunked\r\n",
        b"mcp-session-id: 1\r\n",
        b"expect: 100-continue\r\n",
        b"upgrade: h2c\r\nconnection: upgrade\r\n",
        b"\r\n",
        b"5\r\n",
        b"0\r\n\r\n",
        b'{"id"',
    ]
)
LINE_PIECES = st.sampled_from(
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":',
        b'{"name":"echo","arguments":{}}}',
        b'{"requestId":1}}',
        b"[" * 2000,
        b"null",
        b"\n",
    ]
)
limits = settings(
    max_examples=few(40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
gone = (anyio.EndOfStream, anyio.BrokenResourceError, OSError)


async def throw(stream: anyio.abc.SocketStream, pieces: list[bytes]) -> None:
    """Send it all, and read until the other side has had enough or says nothing for a moment."""
    async with stream:
        with suppress(*gone), anyio.move_on_after(0.02):
            for piece in pieces:
                await stream.send(piece)
            await stream.send_eof()
            while True:
                await stream.receive()


@limits
@given(pieces=st.lists(HTTP_PIECES | st.binary(max_size=50), min_size=1, max_size=12))
async def test_bytes_on_the_http_port(pieces: list[bytes], caplog: pytest.LogCaptureFixture) -> None:
    async with HttpToolHost(limits=HttpLimits(request_time=0.5)) as host:
        target = Target.of(host, Workbench().server)
        known = {"path": target.path, "port": str(target.port), "authorization": target.authorization}
        for name, value in known.items():
            pieces = [piece.replace(b"{%b}" % name.encode(), value.encode()) for piece in pieces]
        await throw(await anyio.connect_tcp("127.0.0.1", target.port), pieces)
        async with raw_http(target) as raw:
            assert (await raw.ask(body=rpc("ping"))).status == 200
    assert "failed" not in caplog.text


@limits
@given(pieces=st.lists(LINE_PIECES | st.binary(max_size=50), min_size=1, max_size=12), greets=st.booleans())
async def test_bytes_on_the_shims_socket(
    pieces: list[bytes], greets: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with ShimToolHost(unix=False) as host:
        told = host.add(Workbench().server)
        greeting = told.env[0].value.encode() + b"\n"
        port = int(told.args[-1])
        await throw(await anyio.connect_tcp("127.0.0.1", port), [greeting, *pieces] if greets else pieces)
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(greeting + b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            with anyio.fail_after(30):
                assert await stream.receive() == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert "failed" not in caplog.text
