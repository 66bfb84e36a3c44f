"""The tool server: HTTP requests and messages over ACP, as a hostile MCP client sends them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from fuzz.hostile import CUTS, LEAVES, LONG_RUN, blocks_of, damaged
from fuzz.target import Target, on_both
from hypothesis import strategies as st
from mcp_support import Workbench

from thinkwell_acp.mcp import AcpToolHost, HttpToolHost, McpError
from thinkwell_acp.schema import (
    ConnectMcpRequest,
    DecodeError,
    DisconnectMcpRequest,
    MessageMcpNotification,
    MessageMcpRequest,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

METHODS = (
    *("initialize", "ping", "tools/list", "tools/call", "server/discover", "subscriptions/listen"),
    *("notifications/initialized", "notifications/cancelled", "resources/list", ""),
)
REVISIONS = ("2024-11-05", "2025-11-25", "2026-07-28", "1999-01-01")
_REVISION = "io.modelcontextprotocol/protocolVersion"

_META = st.fixed_dictionaries(
    {},
    optional={_REVISION: st.sampled_from(REVISIONS) | LEAVES, "progressToken": LEAVES, "traceparent": LEAVES},
)
_PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": _META | LEAVES,
        "protocolVersion": st.sampled_from(REVISIONS) | LEAVES,
        "name": st.sampled_from(["echo", "add", "fail", "refuse", "garbage", "step", "wait", "none"])
        | LEAVES,
        "arguments": st.dictionaries(st.sampled_from("ab"), LEAVES, max_size=2) | LEAVES,
        "notifications": st.fixed_dictionaries({"toolsListChanged": st.booleans() | LEAVES}) | LEAVES,
        "requestId": st.sampled_from([1, 2, "1"]) | LEAVES,
    },
)
_MESSAGES = st.fixed_dictionaries(
    {"method": st.sampled_from(METHODS)},
    optional={
        "jsonrpc": st.just("2.0") | LEAVES,
        "id": st.sampled_from([1, 2, "1", None]) | LEAVES,
        "params": _PARAMS | _PARAMS | LEAVES,
    },
).map(msgspec.json.encode)
MCP_LINES = st.lists(damaged(_MESSAGES), min_size=1, max_size=5)


class Pipe(anyio.abc.ByteStream):
    """A connection on which everything was said already, and that keeps what is answered."""

    def __init__(self, blocks: list[bytes], *, hears_until: bytes = b"") -> None:
        self._blocks = [block for block in blocks if block]
        self._until = hears_until
        self.answers = b""
        self._heard = anyio.Event()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        if not self._blocks:
            if self._until:
                await self._heard.wait()
            raise anyio.EndOfStream
        block = self._blocks.pop(0)
        if len(block) > max_bytes:
            self._blocks.insert(0, block[max_bytes:])
        return block[:max_bytes]

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        self.answers += item
        if self._until in self.answers:
            self._heard.set()

    async def send_eof(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()


_HEADERS: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(["application/json", "text/event-stream", "*/*;q=0", ",", "\xff"]),
        "content-type": st.sampled_from(["application/json; charset=utf-8", "text/plain", ";"]),
        "mcp-session-id": st.sampled_from(["x", "\xe4"]),
        "origin": st.sampled_from(["null", "http://evil.example"]),
        "authorization": st.sampled_from(["Bearer", "Bearer \xff", "basic x"]),
        "host": st.sampled_from(["", "evil.example"]),
        "expect": st.just("100-continue"),
        "content-length": st.sampled_from(["-1", "0", "7", "99999999999", "1, 1"]),
        "transfer-encoding": st.sampled_from(["chunked", "gzip"]),
        "connection": st.sampled_from(["close", "upgrade"]),
        "x": st.just("y" * 40_000),
    },
)
_NO_HEADERS: st.SearchStrategy[dict[str, str]] = st.just({})
_VERBS = st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "HEAD", "OPTIONS"])
_REQUESTS = st.lists(
    st.tuples(_VERBS, st.one_of(_NO_HEADERS, _NO_HEADERS, _HEADERS), damaged(_MESSAGES)),
    min_size=1,
    max_size=3,
)


async def check_http(given: tuple[list[tuple[str, Mapping[str, str], bytes]], list[int]]) -> None:
    """Whatever is said on a connection, its serving ends as one does whose client is gone."""
    requests, cuts = given
    host = HttpToolHost()
    told = host.add(Workbench().server)
    usual = {
        "host": "127.0.0.1:0",
        "authorization": told.headers[0].value,
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    stream = b""
    for verb, headers, body in requests:
        fields = {"content-length": str(len(body)), **usual, **headers}
        lines = [f"{verb} /1/mcp HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        stream += "\r\n".join(lines).encode("latin-1") + body
    pipe = Pipe(blocks_of(stream, cuts))
    with anyio.fail_after(600), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        await host._serve(pipe)  # type: ignore[arg-type]
    assert not pipe.answers or pipe.answers.startswith(b"HTTP/1.1 ")


async def check_acp(lines: list[bytes]) -> None:
    """Requests over ACP are answered or fail as requests do, and the session goes on."""

    async def hear(_message: MessageMcpNotification) -> None:
        await anyio.lowlevel.checkpoint()

    async with AcpToolHost(hear) as host:
        told = host.add(Workbench().server)
        connection_id = (await host.connect(ConnectMcpRequest(server_id=told.server_id))).connection_id
        for line in lines:
            with suppress(DecodeError, McpError), anyio.move_on_after(1):
                await _say(host, line, connection_id)
        ping = MessageMcpRequest(connection_id=connection_id, method="ping")
        assert await host.message(ping, 1) == {}
        await host.disconnect(DisconnectMcpRequest(connection_id=connection_id))


async def _say(host: AcpToolHost, line: bytes, connection_id: str) -> None:
    raw: Any = decode(object, line)
    if not isinstance(raw, dict):
        return
    body = msgspec.json.encode({**raw, "connectionId": connection_id})
    if "id" in raw:
        id_ = raw["id"] if isinstance(raw["id"], int | str) else None
        await host.message(decode(MessageMcpRequest, body), id_)
    else:
        await host.notification(decode(MessageMcpNotification, body))


FEW = 60 if LONG_RUN else 20

TARGETS = (
    Target(name="mcp over http", inputs=st.tuples(_REQUESTS, CUTS), check=on_both(check_http), weight=FEW),
    Target(name="mcp over acp", inputs=MCP_LINES, check=on_both(check_acp), weight=FEW),
)
