"""How view, log and span say that a run has ended whose result was there before its turn ended."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from msgspec.structs import replace
from observability.spans import Collected, attributes
from scripted import Played, Proceed, Turn, scripted

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from thinkwell import ThoughtStream

pytestmark = pytest.mark.virtual_time


class Talker(Played):
    """Returns its result, and goes on for some seconds before it ends its turn and tells what it has used."""

    def __init__(self, seconds: float) -> None:
        super().__init__([self.play], answers={"session/prompt": self.prompt})
        self.seconds = seconds

    async def play(self, turn: Turn) -> None:
        await turn.returns(value=7)
        await anyio.sleep(self.seconds)

    async def prompt(self, request: s.PromptRequest, proceed: Proceed) -> s.PromptResponse:
        response: s.PromptResponse = await proceed(request)
        return replace(response, usage=s.Usage(total_tokens=12, input_tokens=10, output_tokens=2))


Left: TypeAlias = "Callable[[Talker], AbstractAsyncContextManager[ThoughtStream[int]]]"


@asynccontextmanager
async def agents_block(talker: Talker) -> AsyncGenerator[ThoughtStream[int]]:
    async with scripted(agent=talker) as agent:
        yield agent.think(int).text("Go").stream()


@asynccontextmanager
async def sessions_block(talker: Talker) -> AsyncGenerator[ThoughtStream[int]]:
    async with scripted(agent=talker) as agent:
        async with agent.session() as session:
            yield session.think(int).text("Go").stream()
        await anyio.sleep(60)  # the block of the session has waited, and not that of the agent


@asynccontextmanager
async def streams_block(talker: Talker) -> AsyncGenerator[ThoughtStream[int]]:
    async with scripted(agent=talker) as agent:
        async with agent.think(int).text("Go").stream() as stream:
            yield stream
        await anyio.sleep(60)


BLOCKS = pytest.mark.parametrize("block", [agents_block, sessions_block, streams_block])


def told(caplog: pytest.LogCaptureFixture) -> str:
    """The line on the end of the only run."""
    (line,) = (text for text in caplog.messages if text.startswith("Run ") and " after " in text)
    return line.partition(" of agent scripted ")[2]


@BLOCKS
async def test_a_run_is_complete_whose_block_is_left_right_after_its_result(
    block: Left, spans: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "thinkwell")
    async with block(Talker(1)) as stream:
        assert await stream.result == 7
        assert stream.view.phase != "completed"  # the program goes on while the agent still talks
    view = stream.view
    assert (view.phase, view.cut, view.error, view.stop_reason) == ("completed", None, None, "end_turn")
    assert view.tokens is not None
    assert view.tokens.total == 12
    assert told(caplog) == "completed after 1.0 s"
    says = attributes(spans.one("invoke_agent scripted"))
    assert (says["thinkwell.outcome"], says["gen_ai.usage.input_tokens"]) == ("completed", 10)
    assert "thinkwell.cut" not in says


@pytest.mark.parametrize(
    ("block", "why"),
    [(agents_block, "AgentClosed"), (sessions_block, "SessionClosed"), (streams_block, "ThoughtCancelled")],
)
async def test_a_turn_that_goes_on_too_long_is_cut(
    block: Left, why: str, spans: Collected, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "thinkwell")
    async with block(Talker(3600)) as stream:
        assert await stream.result == 7
    view = stream.view
    assert (view.phase, view.cut, view.error) == ("completed", why, None)
    assert stream.elapsed == pytest.approx(2, abs=0.1)
    assert told(caplog) == f"completed, cut ({why}) after 2.0 s"
    root = spans.one("invoke_agent scripted")
    assert (attributes(root)["thinkwell.outcome"], attributes(root)["thinkwell.cut"]) == ("completed", why)
    assert root.status.is_unset


@BLOCKS
@pytest.mark.parametrize("how", ["exception", "cancellation"])
async def test_who_leaves_in_a_hurry_waits_for_nothing(block: Left, how: str) -> None:
    streams: list[ThoughtStream[int]] = []
    with anyio.CancelScope() as scope:
        try:
            async with block(Talker(1)) as stream:
                streams.append(stream)
                assert await stream.result == 7
                if how == "exception":
                    raise LookupError
                scope.cancel()
                await anyio.sleep_forever()
        except LookupError:
            pass
    (stream,) = streams
    assert (stream.view.phase, stream.view.cut is None) == ("completed", False)
    assert stream.elapsed < 0.1


@BLOCKS
async def test_a_cancellation_ends_the_wait(block: Left) -> None:
    streams: list[ThoughtStream[int]] = []
    with anyio.move_on_after(1):
        async with block(Talker(3600)) as stream:
            streams.append(stream)
            assert await stream.result == 7
    assert streams[0].view.phase == "completed"
    assert streams[0].elapsed == pytest.approx(1, abs=0.1)


async def test_a_run_without_a_result_is_cancelled_at_once() -> None:
    async def think(turn: Turn) -> None:
        turn.say("Well")
        await anyio.sleep_forever()

    async with scripted(think) as agent:
        stream = agent.think(int).text("Go").stream()
        await anext(aiter(stream))
    assert (stream.view.phase, stream.view.cut) == ("cancelled", None)
    assert stream.elapsed < 0.1
