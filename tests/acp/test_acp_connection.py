"""The asynchronous skin of the peer: order, concurrency, failing handlers, and every way to end."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import msgspec
import pytest
from acp_support import (
    LIMIT,
    Faulty,
    Json,
    Log,
    Wire,
    chunk,
    failure,
    notification,
    request,
    result,
    to_bytes,
)

from thinkwell_acp import (
    ConnectionBroken,
    ConnectionClosed,
    FrameTooLong,
    RpcError,
    memory_transport_pair,
)
from thinkwell_acp.connection import SEND_HIGH_WATER, Connection, Outcome, open_connection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell_acp.transport import Transport


@asynccontextmanager
async def connection(
    *, max_line: int = 64 * 1024 * 1024, fail_on: str | None = None
) -> AsyncGenerator[tuple[Connection, Wire, Log]]:
    ours, theirs = memory_transport_pair()
    log = Log()
    log.fail_on = fail_on
    with anyio.fail_after(LIMIT):
        async with open_connection(ours, log, max_line=max_line) as running:
            yield running, Wire(theirs), log


async def forever() -> object:
    await anyio.sleep_forever()
    return None


async def sync(wire: Wire) -> None:
    """Have a request answered, so that everything before it has been read."""
    await wire.send(request("sync", "sync", {}))
    while (await wire.read()).get("id") != "sync":
        pass


async def test_everything_comes_in_the_order_of_the_wire_and_updates_in_batches() -> None:
    async with connection() as (ours, wire, log):
        ours.call("m", {}, log.entries.append)
        asked = await wire.read()
        await wire.send(
            chunk("1"), chunk("2"), result(asked["id"], 7), chunk("3"), notification("n", {}), chunk("4")
        )
        await sync(wire)
        answer = log.entries[1]
        assert isinstance(answer, msgspec.Raw)
        assert bytes(answer) == b"7"
        assert log.entries[:1] + log.entries[2:] == [
            ["1", "2"],
            ["3"],
            "n",
            ["4"],
            "arrived sync",
            "request sync",
        ]


async def test_a_request_is_announced_at_its_place_before_its_task_runs() -> None:
    async with connection() as (_, wire, log):
        await wire.send(request(1, "m", {}), notification("n", {}))
        await wire.read()
        assert log.entries == ["arrived m", "n", "request m"]


async def test_what_is_being_served_is_in_one_table_until_it_is_answered() -> None:
    async with connection() as (ours, wire, log):
        release = anyio.Event()

        async def serve(method: str) -> object:
            assert method in [served.request.method for served in ours.serving.values()]
            await release.wait()
            return {}

        log.serve = serve
        await wire.send(request("x", "m", {}), request("y", "n", {}))
        await anyio.wait_all_tasks_blocked()
        assert list(ours.serving) == ["x", "y"]
        ours.answer("x", {})
        assert list(ours.serving) == ["y"]
        release.set()
        assert [(await wire.read())["id"] for _ in range(2)] == ["x", "y"]
        assert not ours.serving


async def test_a_handler_that_waits_holds_up_nothing() -> None:
    async with connection() as (ours, wire, log):
        release = anyio.Event()

        async def serve(method: str) -> object:
            if method == "slow":
                await release.wait()
            return {"served": method}

        log.serve = serve
        await wire.send(request(1, "slow", {}), request(2, "quick", {}), chunk("x"))
        assert await wire.read() == {"jsonrpc": "2.0", "id": 2, "result": {"served": "quick"}}
        assert ["x"] in log.entries
        release.set()
        assert await wire.read() == {"jsonrpc": "2.0", "id": 1, "result": {"served": "slow"}}
        assert ours.error is None


async def test_a_handler_may_ask_the_other_side_itself() -> None:
    async with connection() as (ours, wire, log):

        async def serve(method: str) -> object:
            return {"told": bytes(await ours.request("back", {"for": method})).decode()}

        log.serve = serve
        await wire.send(request("a", "m", {}))
        asked = await wire.expect("back")
        await wire.send(result(asked["id"], "yes"))
        assert await wire.read() == {"jsonrpc": "2.0", "id": "a", "result": {"told": '"yes"'}}


async def test_an_error_is_raised_with_its_data() -> None:
    async with connection() as (ours, wire, _), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(RpcError) as caught:
                await ours.request("m", {})
            assert (caught.value.code, caught.value.message, caught.value.data) == (-32000, "no", [1])

        tasks.start_soon(ask)
        asked = await wire.read()
        await wire.send(failure(asked["id"], -32000, data=[1]))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (RpcError(5, "five", {"x": 1}), 5, "five"),
        (ValueError("bad"), -32603, "ValueError: bad"),
        (FileNotFoundError("caf\udce9"), -32603, "FileNotFoundError: caf?"),
        (RpcError(6, "six", object()), 6, "six"),
    ],
)
async def test_a_handler_that_raises_costs_its_request_only(
    error: Exception, code: int, message: str
) -> None:
    async with connection() as (ours, wire, log):

        async def serve(method: str) -> object:
            raise error

        log.serve = serve
        await wire.send(request(1, "m", {}))
        answer = await wire.read()
        assert answer["error"]["code"] == code
        assert answer["error"]["message"] == message
        log.serve = None
        await wire.send(request(2, "m", {}))
        assert (await wire.read())["result"] == {}
        assert ours.error is None


@pytest.mark.parametrize("value", [object(), "\ud800"])
async def test_a_handler_that_returns_what_is_no_json_costs_its_request_only(value: object) -> None:
    async with connection() as (ours, wire, log):

        async def serve(method: str) -> object:
            return value

        log.serve = serve
        await wire.send(request(1, "m", {}))
        assert (await wire.read())["error"]["code"] == -32603
        assert ours.error is None


async def test_an_id_beyond_64_bits_is_echoed() -> None:
    async with connection() as (_, wire, _log):
        await wire.send(request(2**70, "m", {}))
        assert (await wire.read())["id"] == 2**70


@pytest.mark.parametrize("kind", ["updates", "arrived", "notification", "malformed", "closed"])
async def test_a_listener_that_raises_costs_its_message_only(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connection(fail_on=kind) as (ours, wire, log):
        await wire.send(chunk("x"), request(1, "m", {}), notification("n", {}), {"nothing": 1})
        await wire.read()
        await sync(wire)
        assert ours.error is None
        assert "request m" in log.entries
    assert "fails" in caplog.text


async def test_a_settle_that_raises_harms_no_other() -> None:
    outcomes: list[Outcome] = []

    def fail(outcome: Outcome) -> None:
        raise ValueError("settle fails")

    async with connection() as (ours, wire, _):
        ours.call("a", {}, fail)
        ours.call("b", {}, fail)
        ours.call("c", {}, outcomes.append)
        await wire.send(result(0, {}))
        await sync(wire)
        assert ours.error is None
    assert isinstance(outcomes[0], ConnectionClosed)


async def test_an_abandoned_request_is_cancelled_at_the_peer_and_its_answer_swallowed() -> None:
    async with connection() as (ours, wire, log):
        asked: Json = {}
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ours.request, "m", None)
                asked = await wire.expect("m")
                scope.cancel()
        cancel = await wire.expect("$/cancel_request")
        assert cancel["params"] == {"requestId": asked["id"]}
        assert "id" not in cancel
        await wire.send(result(asked["id"], {}))
        await sync(wire)
        assert log.entries == ["arrived sync", "request sync"]
        await wire.send(result(asked["id"], {}))
        await sync(wire)
        assert "not an open request's" in str(log.entries[2])
        ours.abandon(asked["id"])
        ours.notify("last", {})
        await wire.expect("last")


async def test_a_cancelled_caller_sends_nothing() -> None:
    async with connection() as (ours, wire, _):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await ours.request("never", {})
        ours.notify("after", {})
        await wire.expect("after")


async def test_a_request_of_the_peer_can_be_cancelled_by_it() -> None:
    async with connection() as (_, wire, log):
        log.serve = lambda method: forever()
        await wire.send(request("x", "m", {}), notification("$/cancel_request", {"requestId": "x"}))
        answer = await wire.read()
        assert answer["id"] == "x"
        assert answer["error"]["code"] == -32800
        for unknown in ("x", 99, None):
            await wire.send(notification("$/cancel_request", {"requestId": unknown}))
        await wire.send(notification("$/cancel_request", {}))
        await wire.send(request("y", "n", {}), notification("$/cancel_request", {"requestId": "y"}))
        assert (await wire.read())["id"] == "y"
        assert [entry for entry in log.entries if "CancelRequest" in str(entry)]


async def test_a_handler_that_ends_well_when_cancelled_is_answered_well() -> None:
    async with connection() as (_, wire, log):

        async def serve(method: str) -> object:
            try:
                return await forever()
            except anyio.get_cancelled_exc_class():
                raise RpcError(1, "partial") from None

        log.serve = serve
        await wire.send(request("x", "m", {}), notification("$/cancel_request", {"requestId": "x"}))
        assert (await wire.read())["error"]["code"] == 1


async def test_an_answer_from_elsewhere_stops_the_handler_and_counts_alone() -> None:
    async with connection() as (ours, wire, log):
        ended = anyio.Event()

        async def serve(method: str) -> object:
            try:
                return await forever()
            finally:
                ended.set()

        log.serve = serve
        await wire.send(request("x", "m", {}))
        await anyio.wait_all_tasks_blocked()
        ours.answer("x", {"early": True})
        ours.answer("x", {"again": True})
        await ended.wait()
        ours.answer("unknown", {})
        assert (await wire.read())["result"] == {"early": True}
        log.serve = None
        await sync(wire)


@pytest.mark.parametrize("end", ["cancelled", "a result", "an error"])
async def test_an_id_may_come_again_while_the_old_handler_still_ends(end: str) -> None:
    async with connection() as (ours, wire, log):
        linger, lingering = anyio.Event(), anyio.Event()

        async def serve(method: str) -> object:
            try:
                return await forever()
            except anyio.get_cancelled_exc_class():
                if method == "old":
                    lingering.set()
                    with anyio.CancelScope(shield=True):
                        await linger.wait()
                    if end == "a result":
                        return {"old": True}
                    if end == "an error":
                        raise RpcError(1, "old") from None
                raise

        log.serve = serve
        await wire.send(request("x", "old", {}))
        await anyio.wait_all_tasks_blocked()
        ours.answer("x", {})
        await lingering.wait()
        assert (await wire.read())["id"] == "x"
        await wire.send(request("x", "new", {}))
        await anyio.wait_all_tasks_blocked()
        linger.set()
        await anyio.wait_all_tasks_blocked()
        ours.notify("nothing_was_answered", {})
        await wire.expect("nothing_was_answered")
        await wire.send(notification("$/cancel_request", {"requestId": "x"}))
        assert (await wire.read())["error"]["code"] == -32800


async def test_what_cannot_be_written_as_json_is_refused_before_it_is_sent() -> None:
    async with connection() as (ours, wire, _):
        for params, error in (({"x": "\ud800"}, ValueError), ({"x": object()}, TypeError)):
            with pytest.raises(error):
                await ours.request("m", params)
        ours.notify("fine", {})
        await wire.expect("fine")


# Writing


async def test_draining_waits_for_a_slow_reader_however_many_wait() -> None:
    async with connection() as (ours, wire, _), anyio.create_task_group() as tasks:
        passed: list[int] = []

        async def drain(number: int) -> None:
            await ours.drain()
            passed.append(number)

        for _number in range(8):
            ours.notify("big", {"x": "y" * SEND_HIGH_WATER})
            await anyio.wait_all_tasks_blocked()
        for number in range(3):
            tasks.start_soon(drain, number)
        await anyio.wait_all_tasks_blocked()
        assert passed == []
        for _number in range(8):
            await wire.expect("big")
        while len(passed) < 3:
            await anyio.wait_all_tasks_blocked()


async def test_draining_fails_when_the_connection_ends() -> None:
    async with connection() as (ours, wire, _), anyio.create_task_group() as tasks:

        async def drain() -> None:
            with pytest.raises(ConnectionBroken):
                await ours.drain()

        for _number in range(8):
            ours.notify("big", {"x": "y" * SEND_HIGH_WATER})
            await anyio.wait_all_tasks_blocked()
        tasks.start_soon(drain)
        await anyio.wait_all_tasks_blocked()
        await wire.transport.aclose()


async def test_what_was_sent_last_is_written_before_the_end() -> None:
    async with connection() as (ours, wire, _):
        for number in range(100):
            ours.notify("n", {"number": number})
    assert [message["params"]["number"] for message in await wire.rest()] == list(range(100))


# Ending


async def test_the_end_of_the_peer_fails_every_request() -> None:
    async with connection() as (ours, wire, log), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(ConnectionBroken, match="the other side closed the connection"):
                await ours.request("m", {})

        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await wire.read()
        await wire.transport.send(to_bytes(chunk("last"))[:-1])
        await wire.transport.aclose()
        await ours.wait_closed()
        assert isinstance(ours.error, ConnectionBroken)
        assert log.entries == [["last"], ours.error]


async def test_after_the_end_nothing_is_sent_and_everything_fails() -> None:
    async with connection() as (ours, wire, _):
        pass
    outcomes: list[Outcome] = []
    assert ours.call("m", {}, outcomes.append) == -1
    assert isinstance(outcomes[0], ConnectionClosed)
    with pytest.raises(ConnectionClosed):
        await ours.request("m", {})
    with pytest.raises(ConnectionClosed):
        await ours.drain()
    ours.notify("m", {})
    ours.end(ConnectionBroken("too late"))
    assert isinstance(ours.error, ConnectionClosed)
    assert await wire.rest() == []


async def test_each_waiter_gets_an_error_of_its_own() -> None:
    outcomes: list[Outcome] = []
    async with connection() as (ours, _, _log):
        ours.call("a", {}, outcomes.append)
        ours.call("b", {}, outcomes.append)
    first, second = outcomes
    assert type(first) is type(second) is ConnectionClosed
    assert first is not second


async def test_the_end_cancels_handlers_quietly(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    ends: list[str] = []
    async with connection() as (ours, wire, log):

        async def serve(method: str) -> object:
            try:
                return await (ours.request("back", {}) if method == "asks" else forever())
            except BaseException as exc:
                ends.append(type(exc).__name__)
                if method == "raises":
                    raise ValueError("because of the end") from exc
                raise

        log.serve = serve
        await wire.send(request(1, "asks", {}), request(2, "waits", {}), request(3, "raises", {}))
        await wire.expect("back")
        await wire.transport.aclose()
        await ours.wait_closed()
        await anyio.wait_all_tasks_blocked()
        assert len(ends) == 3
    assert caplog.text == ""


async def test_a_line_beyond_the_limit_ends_the_connection_after_what_stands_before_it() -> None:
    async with connection(max_line=1000) as (ours, wire, log):
        await wire.send(chunk("fine"), chunk("x" * 1000), chunk("lost"))
        await ours.wait_closed()
        assert isinstance(ours.error, FrameTooLong)
        assert log.entries == [["fine"], ours.error]


@pytest.mark.parametrize(
    "error",
    [OSError("reset"), anyio.BrokenResourceError(), anyio.ClosedResourceError(), ConnectionBroken("why")],
)
async def test_a_transport_that_cannot_read_ends_the_connection(error: Exception) -> None:
    transport = Faulty(on_receive=error)
    log = Log()
    with anyio.fail_after(LIMIT):
        async with open_connection(transport, log) as ours:
            await ours.wait_closed()
            assert isinstance(ours.error, ConnectionBroken)
            if isinstance(error, ConnectionBroken):
                assert ours.error is error
    assert transport.closed


async def test_the_transport_is_closed_even_in_a_cancelled_scope() -> None:
    transport = Faulty()
    with anyio.CancelScope() as scope:
        async with open_connection(transport, Log()):
            scope.cancel()
            await anyio.sleep_forever()
    assert transport.closed


def a_transport(transport: Transport) -> Transport:
    return transport


async def test_any_byte_stream_is_a_transport() -> None:
    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            assert b'"method":"m"' in await stream.receive()
            await stream.send(to_bytes(result(0, {"over": "tcp"})))

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        stream = a_transport(await anyio.connect_tcp("127.0.0.1", port))
        with anyio.fail_after(LIMIT):
            async with open_connection(stream, Log()) as ours:
                assert bytes(await ours.request("m", {})) == b'{"over": "tcp"}'
        tasks.cancel_scope.cancel()
