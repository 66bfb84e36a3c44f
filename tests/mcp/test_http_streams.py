"""Answers that become streams, the stream opened by GET, and clients that go away, over loopback HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
import trio
from mcp_raw import HANDSHAKE, RawHttp, Target, raw_http, rpc
from mcp_support import ADD, OTHER, Workbench
from trio.testing import MockClock

from thinkwell_acp.mcp import HttpToolHost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell_acp.schema import JsonObject, JsonValue

WAIT = rpc("tools/call", {"name": "wait"})
LIST_CHANGED = rpc("notifications/tools/list_changed", {}, id_=None)
VIRTUAL = pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0.05)})])
"""Time passes where nothing else happens. The threshold leaves the loopback interface time to deliver."""


@pytest.fixture
def workbench() -> Workbench:
    return Workbench(keepalive=0.01)


@pytest.fixture
async def host() -> AsyncGenerator[HttpToolHost]:
    async with HttpToolHost(patience=0.01, keepalive=0.01) as opened:
        yield opened


@pytest.fixture
def target(host: HttpToolHost, workbench: Workbench) -> Target:
    return Target.of(host, workbench.server)


@pytest.fixture
async def raw(target: Target) -> AsyncGenerator[RawHttp]:
    async with raw_http(target) as connection:
        yield connection


async def test_a_slow_answer_becomes_a_stream(raw: RawHttp, workbench: Workbench) -> None:
    await raw.send(body=WAIT)
    with anyio.fail_after(30):
        head = await raw.response_head()
    assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
    assert await raw.event() == "still here"
    workbench.go.set()
    while isinstance(last := await raw.event(), str):
        pass
    assert last is not None
    assert last["result"]["content"][0]["text"] == "waited"
    assert await raw.event() is None
    assert (await raw.ask(body=rpc("ping"))).status == 200, "on the same connection"


async def test_signs_of_life_are_progress_where_it_is_wanted(raw: RawHttp, workbench: Workbench) -> None:
    await raw.send(body=rpc("tools/call", {"name": "wait", "_meta": {"progressToken": "t"}}))
    await raw.response_head()
    seen: list[JsonValue] = []
    while len(seen) < 3:
        match await raw.event():
            case {"method": "notifications/progress", "params": {"progressToken": "t", "progress": progress}}:
                seen.append(progress)
            case other:
                assert other == "still here"
    assert 0 < seen[0] < seen[1] < seen[2] < 0.01
    workbench.contexts[0].report(7, 10, "most of it")
    while not isinstance(event := await raw.event(), dict) or event["params"]["progress"] < 7:
        pass
    assert event["params"] == {"progressToken": "t", "progress": 7, "total": 10, "message": "most of it"}
    workbench.go.set()
    while not isinstance(event := await raw.event(), dict) or "result" not in event:
        pass
    workbench.contexts[0].report(8)
    assert await raw.event() is None, "no progress after the result"


async def test_a_client_that_takes_no_stream_gets_none(raw: RawHttp, workbench: Workbench) -> None:
    await raw.send(
        body=rpc("tools/call", {"name": "step", "_meta": {"progressToken": 1}}), accept="application/json"
    )
    with anyio.fail_after(30):
        assert (await raw.response()).json["result"]["content"][0]["text"] == "stepped"
        await raw.send(body=WAIT, accept="application/json")
        await workbench.until(waiting=1)
        async with raw_http(raw.target) as other:
            await other.send(body=WAIT)
            await other.response_head()
        workbench.go.set()
        assert (await raw.response()).json["result"]["content"][0]["text"] == "waited"


async def test_a_client_that_takes_only_a_stream_gets_one(raw: RawHttp) -> None:
    await raw.send(body=rpc("initialize", HANDSHAKE), accept="text/event-stream")
    head = await raw.response_head()
    assert head.headers["content-type"] == "text/event-stream"
    assert head.headers["mcp-session-id"]
    event = await raw.event()
    assert isinstance(event, dict)
    assert event["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_client_that_goes_away_cancels_its_call(
    target: Target, workbench: Workbench, streaming: bool
) -> None:
    accept = "text/event-stream" if streaming else "application/json"
    async with raw_http(target) as leaving:
        await leaving.send(body=WAIT, accept=accept)
        await workbench.until(waiting=1)
    await workbench.until(cancelled=1)
    async with raw_http(target) as other:
        assert (await other.ask(body=rpc("ping"))).status == 200


async def test_a_request_sent_ahead_of_a_slow_answer(raw: RawHttp, workbench: Workbench) -> None:
    await raw.send(body=WAIT, accept="application/json")
    await workbench.until(waiting=1)
    request = raw.posted(b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    await raw.stream.send(request)
    await raw.stream.send(request[:-30])
    workbench.go.set()
    received = b""
    with anyio.fail_after(30):
        while received.count(b'"result"') < 2:
            received += await raw.stream.receive()
    assert received.index(b"waited") < received.index(b'"id":2')


async def test_a_client_that_sends_too_much_ahead_still_gets_its_answer(
    raw: RawHttp, workbench: Workbench
) -> None:
    await raw.send(body=WAIT, accept="application/json")
    await workbench.until(waiting=1)
    await raw.stream.send(b"x" * 100_000)
    workbench.go.set()
    received = b""
    with anyio.fail_after(30):
        while b"waited" not in received:
            received += await raw.stream.receive()


async def test_a_call_is_taken_back_by_notification(
    raw: RawHttp, target: Target, workbench: Workbench
) -> None:
    session = await raw.shake_hands()
    await raw.send(body=WAIT, mcp_session_id=session, accept="application/json")
    await workbench.until(waiting=1)
    async with raw_http(target) as other:
        cancelled = rpc("notifications/cancelled", {"requestId": 1}, id_=None)
        assert (await other.ask(body=cancelled, mcp_session_id=session)).status == 202
    with anyio.fail_after(30):
        assert (await raw.response()).json["error"]["code"] == -32800
    assert workbench.cancelled == 1
    assert (await raw.ask(body=cancelled, mcp_session_id=session)).status == 202, (
        "some agents cancel what is over"
    )


class TestGet:
    """The stream that a client opens by GET."""

    async def test_hears_of_changes(self, raw: RawHttp, target: Target, workbench: Workbench) -> None:
        session = await raw.shake_hands()
        await raw.send("GET", mcp_session_id=session)
        head = await raw.response_head()
        assert head.headers["content-type"] == "text/event-stream"
        assert await raw.event() == "still here"
        workbench.server.set_tools([OTHER])
        assert await next_message(raw) == LIST_CHANGED

    async def test_a_change_that_came_before_it_is_not_lost(
        self, target: Target, workbench: Workbench
    ) -> None:
        async with raw_http(target) as raw, raw_http(target) as stream:
            session = await raw.shake_hands()
            await raw.ask(body=rpc("tools/list"), mcp_session_id=session)
            workbench.server.set_tools([OTHER])
            await stream.send("GET", mcp_session_id=session)
            await stream.response_head()
            assert await next_message(stream) == LIST_CHANGED

    async def test_a_change_that_came_before_the_client_was_ready(
        self, target: Target, workbench: Workbench
    ) -> None:
        async with raw_http(target) as raw, raw_http(target) as stream:
            session = (await raw.ask(body=rpc("initialize", HANDSHAKE))).headers["mcp-session-id"]
            await raw.ask(body=rpc("tools/list"), mcp_session_id=session)
            await stream.send("GET", mcp_session_id=session)
            await stream.response_head()
            assert await stream.event() == "still here"
            workbench.server.set_tools([OTHER])
            await raw.ask(body=rpc("notifications/initialized", id_=None), mcp_session_id=session)
            assert await next_message(stream) == LIST_CHANGED

    async def test_a_second_one_takes_over(self, target: Target, workbench: Workbench) -> None:
        async with raw_http(target) as raw, raw_http(target) as first, raw_http(target) as second:
            session = await raw.shake_hands()
            await first.send("GET", mcp_session_id=session)
            await first.response_head()
            await second.send("GET", mcp_session_id=session)
            await second.response_head()
            assert await next_message(first) is None
            workbench.server.set_tools([OTHER])
            assert await next_message(second) == LIST_CHANGED
            assert (await first.ask(body=rpc("ping"))).status == 200, "the connection is kept"

    async def test_it_ends_with_the_session(self, target: Target, raw: RawHttp) -> None:
        session = await raw.shake_hands()
        async with raw_http(target) as stream:
            await stream.send("GET", mcp_session_id=session)
            await stream.response_head()
            await raw.ask("DELETE", mcp_session_id=session)
            assert await next_message(stream) is None

    async def test_it_has_to_be_wanted(self, raw: RawHttp) -> None:
        session = await raw.shake_hands()
        assert (await raw.ask("GET", mcp_session_id=session, accept="application/json")).status == 406
        assert (await raw.ask("GET", mcp_session_id="unknown")).status == 404

    async def test_a_client_that_goes_away(self, target: Target, raw: RawHttp, workbench: Workbench) -> None:
        session = await raw.shake_hands()
        async with raw_http(target) as leaving:
            await leaving.send("GET", mcp_session_id=session)
            await leaving.response_head()
        workbench.server.set_tools([OTHER])
        assert (await raw.ask(body=rpc("ping"), mcp_session_id=session)).status == 200


@VIRTUAL
class TestTime:
    """The times that are set without saying so."""

    async def test_an_answer_within_five_seconds_is_plain(self) -> None:
        async with HttpToolHost() as host, raw_http(Target.of(host, Workbench().server)) as raw:
            await raw.send(body=rpc("tools/call", {"name": "sleep", "arguments": {"seconds": 4.5}}))
            assert (await raw.response()).headers["content-type"] == "application/json"

    @pytest.mark.parametrize(
        ("meta", "times"), [({}, [5, 20, 35, 40]), ({"progressToken": 1}, [5, 15, 30, 40])]
    )
    async def test_a_later_one_is_a_stream_with_signs_of_life(
        self, meta: JsonObject, times: list[float]
    ) -> None:
        async with HttpToolHost() as host, raw_http(Target.of(host, Workbench().server)) as raw:
            call = {"name": "sleep", "arguments": {"seconds": 40}, "_meta": meta}
            began = trio.current_time()
            await raw.send(body=rpc("tools/call", call))
            await raw.response_head()
            seen = {trio.current_time() - began}
            while await raw.patient_event() is not None:
                seen.add(trio.current_time() - began)
            assert sorted(seen) == pytest.approx(times, abs=0.5)


async def next_message(raw: RawHttp) -> JsonObject | None:
    """Return the next event that is not only a sign of life."""
    while isinstance(event := await raw.event(), str):
        pass
    return event


def test_a_tool_is_told_as_it_is() -> None:
    assert set(ADD.wire()) == {"name", "title", "description", "inputSchema", "outputSchema"}
    assert set(OTHER.wire()) == {"name", "description", "inputSchema"}
