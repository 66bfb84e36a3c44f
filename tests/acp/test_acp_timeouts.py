"""What is bounded by time. The clock is virtual, so nothing here takes any."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio.testing
from acp_support import Faulty, Log, result, talk

from thinkwell_acp import ClientHandler, ConnectionBroken, connect, memory_transport_pair
from thinkwell_acp.client import CANCEL_DRAIN_TIMEOUT
from thinkwell_acp.connection import CLOSE_FLUSH_TIMEOUT, WRITE_FAILURE_GRACE, open_connection
from thinkwell_acp.transport import MEMORY_PIPE_SIZE


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """Trio with a clock that jumps whenever nothing else happens."""
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


@pytest.mark.parametrize("error", [OSError("gone"), anyio.BrokenResourceError(), anyio.ClosedResourceError()])
async def test_a_peer_that_reads_no_more_has_a_while_to_say_why(error: Exception) -> None:
    transport = Faulty(on_send=error)
    log = Log()
    start = anyio.current_time()
    async with open_connection(transport, log) as ours:
        with pytest.raises(ConnectionBroken, match="has stopped reading"):
            await ours.request("m", {})
        assert anyio.current_time() - start == pytest.approx(WRITE_FAILURE_GRACE)
    assert anyio.current_time() - start == pytest.approx(WRITE_FAILURE_GRACE)


async def test_a_writer_that_has_failed_holds_nothing_up() -> None:
    start = anyio.current_time()
    async with open_connection(Faulty(on_send=OSError("gone")), Log()) as ours:
        for _ in range(10):
            ours.notify("m", {"x": "y" * 100_000})
        await ours.drain()
        ours.notify("m", {})
    assert anyio.current_time() == start


async def test_closing_does_not_wait_long_for_a_peer_that_does_not_read() -> None:
    ours, theirs = memory_transport_pair()
    start = anyio.current_time()
    async with connect(ours) as client:
        client.ext_notify("_a", {"x": "y" * MEMORY_PIPE_SIZE})
        await anyio.wait_all_tasks_blocked()
        client.ext_notify("_b")
    assert anyio.current_time() - start == pytest.approx(CLOSE_FLUSH_TIMEOUT)
    await theirs.aclose()


async def test_a_cancelled_prompt_does_not_wait_for_ever() -> None:
    async with talk(ClientHandler()) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        start = anyio.current_time()
        with anyio.CancelScope(shield=True), anyio.fail_after(100):
            turn.scope.cancel()
            await turn.wait_ended()
        assert anyio.current_time() - start == pytest.approx(CANCEL_DRAIN_TIMEOUT)
        await t.wire.expect("session/cancel")
        later = t.prompt("next")
        await anyio.wait_all_tasks_blocked()
        await t.wire.send(result(asked["id"], {"stopReason": "cancelled"}))
        assert (await t.wire.expect("session/prompt"))["params"]["prompt"][0]["text"] == "next"
        later.scope.cancel()
