"""A channel fails, hangs or is cancelled: the text gets there all the same, or it is said that it did not."""

from __future__ import annotations

import anyio
import pytest
from kept_channels import Edited, Refused, Streamed, Thinking, Whole, delivered

from thinkwell import ThinkwellError
from thinkwell.channels import DeliveryFailed, DeliverySettings, deliver
from thinkwell.testing import ScriptedAgent, script

pytestmark = pytest.mark.virtual_time

TALK = script.says("a").pauses(3).says("b").pauses(3).says("c")


@pytest.mark.parametrize("method", ["start", "chunk", "end"])
async def test_a_streaming_channel_that_fails_gets_the_whole_text_by_send(method: str) -> None:
    channel = Streamed(fails={method: 1})
    delivery = await delivered(TALK, channel)
    assert channel.texts == ["abc"]
    assert channel.told[-1] == ("send", "abc")
    assert channel.calls[method] == 1  # and no other call of the stream after it
    assert delivery.status == "completed"
    assert not delivery.streamed
    assert [str(error) for error in delivery.channel_errors] == [method]


@pytest.mark.parametrize("fails", [1, 2])
async def test_a_stream_whose_start_is_to_wait_is_started_then(fails: int) -> None:
    channel = Streamed(fails={"start": fails}, error=Refused("flood", retry_after=2))
    delivery = await delivered(TALK, channel)
    began, *again = (round(at - channel.at[0], 1) for at in channel.at[: fails + 1])
    assert (began, again) == (0, [2, 4][:fails])
    assert [method for method, _ in channel.told[fails:]] == ["start", *["chunk"] * (3 - fails + 1), "end"]
    assert "".join(channel.chunks) == channel.ends[0] == "abc"
    assert delivery.streamed
    assert len(delivery.channel_errors) == fails


@pytest.mark.parametrize("error", [Refused("flood", retry_after=7), Refused("flood", retry_after=-1)])
async def test_a_stream_that_cannot_be_started_in_time_is_one_text(error: Refused) -> None:
    channel = Streamed(fails={"start": 1}, error=error)
    delivery = await delivered(TALK, channel)
    assert channel.texts == ["abc"]
    assert [method for method, _ in channel.told] == ["start", "send"]
    assert not delivery.streamed


async def test_so_does_one_that_fails_to_tell_a_status() -> None:
    channel = Streamed(fails={"status": 1})
    await delivered(script.says("a").uses("look").pauses(1).says("b"), channel)
    assert [method for method, _ in channel.told] == ["start", "chunk", "status", "send"]
    assert channel.texts == ["a\n\nb"]


@pytest.mark.parametrize("method", ["thinking", "thought"])
async def test_so_does_one_that_fails_to_show_thinking(method: str) -> None:
    channel = Thinking(fails={method: 1})
    await delivered(script.thinks("Hm.").pauses(5).says("Done."), channel)
    assert channel.texts == ["Done."]


async def test_a_channel_that_hangs_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    channel = Streamed()
    channel.hangs = {"chunk"}
    delivery = await delivered(TALK, channel, DeliverySettings(timeout=60))
    assert channel.texts == ["abc"]
    assert delivery.metrics.total == pytest.approx(60, abs=1)
    assert isinstance(delivery.channel_errors[0], TimeoutError)
    assert caplog.messages == ["Channel Streamed failed: TimeoutError: on_stream_chunk took more than 1:00"]


async def test_a_slow_channel_gets_larger_pieces_and_holds_up_nothing() -> None:
    class Slow(Streamed):
        async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
            await super().on_stream_chunk(user_id, chunk)
            await anyio.sleep(5)

    channel = Slow()
    async with ScriptedAgent(TALK).open() as agent, anyio.create_task_group() as tasks:
        stream = agent.think().text("Go.").stream()
        tasks.start_soon(deliver, stream, channel, "ann")
        began = anyio.current_time()
        await stream.wait()
        assert anyio.current_time() - began == pytest.approx(6, abs=0.5)
    assert channel.chunks == ["a", "b", "c"] or "".join(channel.chunks) == "abc"
    assert channel.ends == ["abc"]


async def test_the_final_text_is_tried_again_with_growing_pauses() -> None:
    channel = Whole(fails={"send": 3})
    delivery = await delivered(script.says("a"), channel)
    assert channel.texts == ["a"]
    assert [round(at - channel.at[0], 1) for at in channel.at] == [0, 1, 3, 7]
    assert (delivery.metrics.attempts, delivery.metrics.retries) == (4, 3)
    assert len(delivery.channel_errors) == 3


@pytest.mark.parametrize(("said", "waited"), [(17, 17), (1e9, 300)])
async def test_the_channel_may_say_when_to_try_again(said: float, waited: float) -> None:
    channel = Whole(fails={"send": 1}, error=Refused("flood", retry_after=said))
    await delivered(script.says("a"), channel)
    assert channel.at[1] - channel.at[0] == pytest.approx(waited)


async def test_of_several_messages_those_that_were_sent_are_not_sent_again() -> None:
    class Short(Whole):
        capabilities = type(Edited.capabilities)(max_length=5)

    channel = Short(fails={"send": 2})
    await delivered(script.says("one two three"), channel)
    assert channel.texts == ["one", "two", "three"]
    assert [given for _, given in channel.told] == ["one", "one", "one", "two", "three"]


async def test_a_text_that_cannot_be_delivered_is_in_the_error() -> None:
    channel = Streamed(fails={"chunk": 1, "send": 9})
    with pytest.raises(
        DeliveryFailed, match=r"to 'ann' in 2 attempts: send; its text is in \.text"
    ) as failed:
        await delivered(TALK, channel, DeliverySettings(attempts=2))
    error = failed.value
    assert isinstance(error, ThinkwellError)
    assert (error.user_id, error.text, error.delivery.run_text) == ("ann", "abc", "abc")
    assert error.delivery.status == "completed"
    assert error.delivery.metrics.attempts == 2
    assert isinstance(error.__cause__, Refused)
    assert [str(each) for each in error.delivery.channel_errors] == ["chunk", "send", "send"]


async def test_a_delivery_that_is_cancelled_says_so_and_leaves_the_run_alone() -> None:
    channel = Streamed()
    async with ScriptedAgent(TALK).open() as agent:
        stream = agent.think().text("Go.").stream()
        with anyio.move_on_after(4):
            await deliver(stream, channel, "ann")
        assert channel.ends == ["ab\n\n⏹ The delivery was cancelled."]
        assert await stream.result == "abc"


async def test_a_cancelled_delivery_does_not_wait_for_long() -> None:
    channel = Streamed()
    channel.hangs = {"end"}
    began = anyio.current_time()
    async with ScriptedAgent(TALK).open() as agent:
        with anyio.move_on_after(4):
            await deliver(agent.think().text("Go.").stream(), channel, "ann")
        assert anyio.current_time() - began == pytest.approx(9, abs=0.5)


async def test_a_final_text_on_its_way_is_not_ended_twice() -> None:
    channel = Streamed()
    channel.hangs = {"end"}
    async with ScriptedAgent(TALK).open() as agent:
        with anyio.move_on_after(20):
            await deliver(agent.think().text("Go.").stream(), channel, "ann")
    assert channel.calls["end"] == 1
