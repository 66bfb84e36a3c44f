"""The loopback HTTP way, spoken to byte by byte: who is let in, what is refused, what is survived."""

from __future__ import annotations

import resource
import socket
from codecs import BOM_UTF8
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import anyio
import h11
import msgspec
import pytest
from anyio.abc import SocketStream
from mcp_raw import RawHttp, Target, raw_http, rpc
from mcp_support import Workbench

from thinkwell_acp.mcp import HttpLimits, HttpToolHost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell_acp.schema import JsonObject

PING = rpc("ping")
PONG: JsonObject = {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.fixture
async def host() -> AsyncGenerator[HttpToolHost]:
    async with HttpToolHost() as opened:
        yield opened


@pytest.fixture
async def raw(host: HttpToolHost) -> AsyncGenerator[RawHttp]:
    async with raw_http(Target.of(host, Workbench().server)) as connection:
        yield connection


async def test_it_listens_before_its_address_is_known(raw: RawHttp) -> None:
    assert (await raw.ask(body=PING)).json == PONG


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, {"authorization": None}),
        (401, {"authorization": "Bearer wrong"}),
        (401, {"authorization": "Bearer \xe4"}),
        (401, {"authorization": "Basic abc"}),
        (403, {"host": "evil.example"}),
        (403, {"host": "127.0.0.1"}),
        (403, {"origin": "http://evil.example"}),
        (403, {"origin": "null"}),
        (404, {"mcp_session_id": "unknown"}),
        (406, {"accept": "text/html"}),
        (415, {"content_type": "text/plain"}),
        (415, {"content_type": None}),
    ],
)
async def test_is_refused(raw: RawHttp, status: int, headers: JsonObject) -> None:
    answer = await raw.ask(body=PING, **headers)
    assert answer.status == status
    assert ("www-authenticate" in answer.headers) == (status == 401)
    assert await raw.closed()


@pytest.mark.parametrize(
    "headers",
    [
        {"accept": None},
        {"accept": "*/*"},
        {"accept": "application/*;q=0.5"},
        {"content_type": "application/json; charset=utf-8"},
        {"origin": "http://localhost:{port}", "host": "localhost:{port}"},
        {"authorization": "bearer {secret}"},
    ],
)
async def test_is_let_in(raw: RawHttp, headers: JsonObject) -> None:
    secret = raw.target.authorization.removeprefix("Bearer ")
    filled = {
        name: value and value.format(port=raw.target.port, secret=secret) for name, value in headers.items()
    }
    assert (await raw.ask(body=PING, **filled)).json == PONG


async def test_each_server_has_its_own_path_and_secret(host: HttpToolHost) -> None:
    one, two = Target.of(host, Workbench().server), Target.of(host, Workbench().server)
    assert one.path != two.path
    assert one.authorization != two.authorization
    async with raw_http(one) as raw:
        assert (await raw.ask(body=PING, authorization=two.authorization)).status == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS", "DELETE"])
async def test_probes_are_harmless(raw: RawHttp, method: str) -> None:
    probe = await raw.ask(method)
    assert probe.status == 405
    assert probe.headers["allow"] == "POST, GET, DELETE"
    assert (await raw.ask(body=PING)).json == PONG, "on the same connection"


async def test_a_path_that_is_not_there(raw: RawHttp) -> None:
    await raw.send("GET", path="/.well-known/oauth-protected-resource")
    assert (await raw.response()).status == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"7",
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"jsonrpc":"2.0"}',
        b"\xff\xfe",
    ],
)
async def test_a_body_that_is_no_message(raw: RawHttp, body: bytes) -> None:
    answer = await raw.ask(body=body)
    assert answer.status == 400
    assert (answer.json["id"], answer.json["error"]["code"]) == (None, -32700)
    assert (await raw.ask(body=PING)).json == PONG


async def test_a_byte_order_mark_is_no_part_of_a_body(raw: RawHttp) -> None:
    assert (await raw.ask(body=BOM_UTF8 + msgspec.json.encode(PING))).json == PONG


@pytest.mark.parametrize("params", ["[1]", "7", '"x"'])
async def test_parameters_that_are_no_object(raw: RawHttp, params: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":%b}' % params.encode()
    assert (await raw.ask(body=body)).json["error"]["code"] == -32602
    session = await raw.shake_hands()
    body = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}' % params.encode()
    assert (await raw.ask(body=body, mcp_session_id=session)).status == 202


async def test_an_id_that_is_null(raw: RawHttp) -> None:
    answer = await raw.ask(body=b'{"jsonrpc":"2.0","id":null,"method":"ping","params":null}')
    assert answer.json["error"]["code"] == -32600


@pytest.mark.parametrize(
    "message",
    [
        rpc("notifications/cancelled", {"requestId": 99}, id_=None),
        rpc("notifications/cancelled", {"requestId": None}, id_=None),
        rpc("notifications/roots/list_changed", id_=None),
        {"jsonrpc": "2.0", "id": 5, "result": {}},
    ],
)
async def test_what_wants_no_answer_is_accepted(raw: RawHttp, message: dict[str, object]) -> None:
    session = await raw.shake_hands()
    for headers in ({"mcp_session_id": session}, {}):
        answer = await raw.ask(body=message, **headers)
        assert (answer.status, answer.body) == (202, b"")


async def test_half_a_character_costs_only_itself(raw: RawHttp) -> None:
    params = rb'{"name":"echo","arguments":{"text":"a\ud83db"}}'
    answer = await raw.ask(body=b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params)
    assert answer.json["result"]["content"][0]["text"] == '{"text":"a\ufffdb"}'


async def test_a_client_that_waits_to_be_told_to_go_on(raw: RawHttp) -> None:
    body = msgspec.json.encode(PING)
    with anyio.fail_after(30):
        await raw.stream.send(raw.posted(body, expect="100-continue").removesuffix(body))
        assert await raw.stream.receive() == b"HTTP/1.1 100 \r\n\r\n"
        await raw.stream.send(body)
        assert (await raw.stream.receive()).startswith(b"HTTP/1.1 200 ")


async def test_a_body_in_chunks(raw: RawHttp) -> None:
    assert (await raw.ask(body=PING, transfer_encoding="chunked")).json == PONG


async def test_requests_sent_ahead_are_answered_in_order(raw: RawHttp) -> None:
    requests = [raw.posted(msgspec.json.encode(rpc("ping", id_=id_))) for id_ in range(20)]
    await raw.stream.send(b"".join(requests))
    received = b""
    with anyio.fail_after(30):
        while received.count(b'"result"') < 20:
            received += await raw.stream.receive()
    places = [received.index(b'"id":%d,' % id_) for id_ in range(20)]
    assert places == sorted(places)


async def test_an_old_client(raw: RawHttp) -> None:
    await raw.stream.send(raw.posted(msgspec.json.encode(PING), "1.0"))
    received = b""
    with anyio.fail_after(30):
        while b"result" not in received:
            received += await raw.stream.receive()
    assert received.startswith(b"HTTP/1.1 200 ")
    assert await raw.closed()


@pytest.mark.parametrize(
    "junk",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000,
    ],
)
async def test_what_is_no_http(raw: RawHttp, junk: bytes) -> None:
    await raw.stream.send(junk)
    with anyio.fail_after(30):
        assert (await raw.stream.receive()).startswith(b"HTTP/1.1 4")
    assert await raw.closed()
    async with raw_http(raw.target) as again:
        assert (await again.ask(body=PING)).json == PONG


async def test_a_chunk_that_is_none(raw: RawHttp) -> None:
    await raw.stream.send(raw.posted(b"zz\r\n", transfer_encoding="chunked", content_length=None))
    with anyio.fail_after(30):
        assert (await raw.stream.receive()).startswith(b"HTTP/1.1 400 ")
    assert await raw.closed()


async def test_a_client_that_leaves_in_the_middle(raw: RawHttp) -> None:
    for begun in (b"", b"POST / HT", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc"):
        async with raw_http(raw.target) as leaving:
            await leaving.stream.send(begun)
    assert (await raw.ask(body=PING)).json == PONG


class TestLimits:
    """What a client may cost."""

    @pytest.mark.parametrize("headers", [{}, {"transfer_encoding": "chunked"}])
    async def test_a_body_that_is_too_long(self, headers: JsonObject) -> None:
        async with (
            HttpToolHost(limits=HttpLimits(max_body=1000)) as host,
            raw_http(Target.of(host, Workbench().server)) as raw,
        ):
            answer = await raw.ask(body=b" " * 100_000, **headers)
            assert answer.status == 413
            assert await raw.closed()

    @pytest.mark.parametrize("end", [9, -6])
    async def test_a_request_that_does_not_arrive(self, end: int) -> None:
        async with (
            HttpToolHost(limits=HttpLimits(request_time=0.5)) as host,
            raw_http(Target.of(host, Workbench().server)) as raw,
        ):
            await raw.stream.send(raw.posted(b"abcdefghi")[:end])
            with anyio.fail_after(30):
                assert (await raw.stream.receive()).startswith(b"HTTP/1.1 408 ")
            assert await raw.closed()

    async def test_a_connection_that_says_nothing(self) -> None:
        async with (
            HttpToolHost(limits=HttpLimits(request_time=0.05)) as host,
            raw_http(Target.of(host, Workbench().server)) as raw,
        ):
            assert await raw.closed()

    async def test_who_was_let_in_may_be_silent(self) -> None:
        async with HttpToolHost(limits=HttpLimits(request_time=0.05)) as host:
            target = Target.of(host, Workbench().server)
            async with raw_http(target) as known, raw_http(target) as stranger:
                await known.ask(body=PING)
                assert await stranger.closed()
                assert (await known.ask(body=PING)).json == PONG

    async def test_a_client_that_does_not_read(self) -> None:
        async with HttpToolHost(limits=HttpLimits(write_time=0.05, max_connections=1)) as host:
            target = Target.of(host, Workbench().server)
            async with raw_http(target) as deaf:
                await deaf.send(
                    body=rpc("tools/call", {"name": "echo", "arguments": {"x": "x" * 20_000_000}})
                )
                with anyio.fail_after(30):
                    while not await is_served(target):
                        pass

    async def test_too_many_connections(self) -> None:
        async with HttpToolHost(limits=HttpLimits(max_connections=2)) as host:
            target = Target.of(host, Workbench().server)
            async with raw_http(target) as one, raw_http(target) as two:
                await one.ask(body=PING)
                await two.ask(body=PING)
                async with raw_http(target) as three:
                    assert await three.closed()
                assert (await one.ask(body=PING)).json == PONG

    async def test_no_file_descriptor_is_left(self, raw: RawHttp) -> None:
        await raw.ask(body=PING)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        late = socket.socket()
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
        try:
            late.connect(("127.0.0.1", raw.target.port))
            assert (await raw.ask(body=PING)).json == PONG
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        late.setblocking(False)
        async with await SocketStream.from_socket(late) as stream:
            assert (await RawHttp(stream, raw.target).ask(body=PING)).json == PONG


async def is_served(target: Target) -> bool:
    """Whether a new connection gets an answer."""
    try:
        async with raw_http(target) as raw:
            return (await raw.ask(body=PING)).json == PONG
    except (anyio.BrokenResourceError, h11.RemoteProtocolError):
        return False


async def test_sessions_are_opened_and_ended(raw: RawHttp) -> None:
    session = await raw.shake_hands()
    assert (await raw.ask(body=PING, mcp_session_id=session)).json == PONG
    assert (await raw.ask("DELETE", mcp_session_id=session)).status == 200
    assert (await raw.ask(body=PING, mcp_session_id=session)).status == 404


async def test_tools_need_no_session(raw: RawHttp) -> None:
    listing = await raw.ask(body=rpc("tools/list"))
    assert listing.json["result"]["tools"][0]["name"] == "add"
    added = await raw.ask(body=rpc("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
    assert added.json["result"]["structuredContent"] == {"sum": 3}


async def test_a_server_that_was_removed(host: HttpToolHost) -> None:
    workbench = Workbench()
    target, kept = Target.of(host, workbench.server), Target.of(host, Workbench().server)
    async with raw_http(target) as stateless, raw_http(target) as stateful, raw_http(target) as stream:
        session = await stateful.shake_hands()
        await stateless.send(body=rpc("tools/call", {"name": "wait"}))
        await stateful.send(body=rpc("tools/call", {"name": "wait"}), mcp_session_id=session)
        await stream.send("GET", mcp_session_id=session)
        assert (await stream.response_head()).status == 200
        await workbench.until(waiting=2)
        host.remove(workbench.server)
        host.remove(workbench.server)
        for raw in (stateless, stateful):
            assert (await raw.response()).json["error"]["code"] == -32800
        assert await stream.event() is None
        assert (await stateful.ask(body=PING)).status == 404
    assert workbench.cancelled == 2
    async with raw_http(kept) as raw:
        assert (await raw.ask(body=PING)).json == PONG


async def test_leaving_the_host_cancels_what_runs() -> None:
    workbench = Workbench()
    async with AsyncExitStack() as stack:
        async with HttpToolHost() as host:
            raw = await stack.enter_async_context(raw_http(Target.of(host, workbench.server)))
            await raw.send(body=rpc("tools/call", {"name": "wait"}))
            await workbench.until(waiting=1)
        assert (workbench.waiting, workbench.cancelled) == (0, 1)


async def test_the_port_is_free_again_after_the_block() -> None:
    async with HttpToolHost() as host:
        target = Target.of(host, Workbench().server)
    with pytest.raises(OSError):  # noqa: PT011 - refused is said differently by both backends
        await anyio.connect_tcp("127.0.0.1", target.port)
