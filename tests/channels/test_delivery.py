"""A run is delivered: whole, in pieces, with its thoughts, by drafts, and with what went wrong."""

from __future__ import annotations

import itertools

import anyio
import pytest
from kept_channels import Drafted, Edited, Marked, Paced, Stopped, Streamed, Thinking, Whole, delivered
from telegram_html import parse

from thinkwell import AgentExited, AgentReported, ThoughtCancelled
from thinkwell.channels import DeliverySettings, deliver
from thinkwell.testing import ScriptedAgent, script

pytestmark = pytest.mark.virtual_time

LONG_THOUGHT = script.thinks("First, ").pauses(3).thinks("then.")


# A channel that only sends


async def test_a_channel_that_only_sends_gets_the_whole_text() -> None:
    channel = Whole()
    delivery = await delivered(script.thinks("Hm.").says("Two ").says("files."), channel)
    assert channel.told == [("send", "Two files.")]
    assert channel.sent == [("ann", "Two files.")]
    assert (delivery.text, delivery.run_text, delivery.status) == ("Two files.", "Two files.", "completed")
    assert (delivery.user_id, delivery.error, delivery.channel_errors) == ("ann", None, ())
    assert not delivery.streamed


async def test_messages_of_one_run_are_told_apart() -> None:
    channel = Whole()
    await delivered(
        script.says("I look.").uses("read a.py").says(" \n").uses("read b.py").says("Done."), channel
    )
    assert channel.texts == ["I look.\n\nDone."]


async def test_messages_that_end_with_empty_lines_are_told_apart_by_one() -> None:
    channel = Streamed()
    work = (
        script.says("One.\n")
        .pauses(1)
        .uses("look")
        .says("Two.\n\n\n")
        .pauses(1)
        .uses("look")
        .says("\n- Three")
    )
    delivery = await delivered(work, channel)
    assert delivery.text == "One.\n\nTwo.\n\n\n\n- Three" == "".join(channel.chunks)


async def test_what_is_said_of_an_error_begins_a_paragraph() -> None:
    delivery = await delivered(script.says("So far.\n").fails(message="overloaded"), Whole())
    assert delivery.text.startswith("So far.\n\n⚠ ")


async def test_a_run_that_says_nothing_is_delivered_too() -> None:
    channel = Whole()
    delivery = await delivered(script.thinks("Hm."), channel)
    assert channel.texts == ["(The agent said nothing.)"]
    assert delivery.run_text == ""


async def test_what_is_no_channel_is_refused() -> None:
    async with ScriptedAgent(script.says("Hi.")).open() as agent:
        stream = agent.think().text("Go.").stream()
        with pytest.raises(TypeError, match=r"a channel has a method: async def send\(self, user_id, text\)"):
            await deliver(stream, object(), "ann")  # type: ignore[arg-type]
        assert await stream.result == "Hi."


# Results


async def test_a_typed_result_is_delivered_where_the_agent_says_nothing() -> None:
    channel = Whole()
    async with ScriptedAgent(script.returns([1, 2])).open() as agent:
        await deliver(agent.think(list[int]).text("Go.").stream(), channel, "ann")
    assert channel.texts == ["[\n  1,\n  2\n]"]


async def test_the_text_may_be_made_from_the_result() -> None:
    channel = Whole()
    async with ScriptedAgent(script.says("Look.").returns([1, 2])).open() as agent:
        stream = agent.think(list[int]).text("Go.").stream()
        delivery = await deliver(stream, channel, "ann", text=lambda numbers: f"{sum(numbers)} in all")
    assert channel.texts == ["3 in all"]
    assert delivery.run_text == "3 in all"


async def test_a_text_that_shows_nothing_is_none() -> None:
    channel = Whole()
    await delivered(script.says("Look."), channel, text=lambda _: " \n")
    assert channel.texts == ["(The agent said nothing.)"]


# Streaming


async def test_a_streaming_channel_gets_the_text_while_it_is_written() -> None:
    channel = Streamed()
    work = script.says("I look.").pauses(1).uses("look", kind="read", path="/p/a.py").pauses(1).says("Fine.")
    delivery = await delivered(work, channel)
    assert channel.told == [
        ("start", "ann"),
        ("chunk", "I look."),
        ("status", "Using: read /p/a.py"),
        ("chunk", "\n\nFine."),
        ("end", "I look.\n\nFine."),
    ]
    assert delivery.streamed
    assert (delivery.metrics.chunks, delivery.metrics.attempts, delivery.metrics.retries) == (2, 1, 0)
    assert delivery.metrics.first_delivery == pytest.approx(0, abs=0.1)
    assert delivery.metrics.total == pytest.approx(2, abs=0.1)


async def test_pieces_add_up_to_the_text_where_nothing_can_be_edited() -> None:
    channel = Streamed()
    work = script.says("a", message_id="1").says("b", message_id="2").pauses(1).says("c", message_id="2")
    delivery = await delivered(work, channel)
    assert "".join(channel.chunks) == delivery.text == "a\n\nbc"


@pytest.mark.parametrize(
    "title", ["mcp__thinkwell__return_result", "thinkwellc1b50d97ab12_return_result", "return_result"]
)
async def test_giving_the_result_is_not_reported(title: str) -> None:
    channel = Streamed()
    await delivered(script.uses(title).says("Done."), channel)
    assert channel.statuses == []


async def test_what_an_agent_adds_to_an_earlier_message_comes_later_and_stands_right_at_the_end() -> None:
    channel = Streamed()
    work = script.says("a", message_id="1").says("b", message_id="2").pauses(1).says("c", message_id="1")
    delivery = await delivered(work, channel)
    assert "".join(channel.chunks) == "a\n\nbc"
    assert channel.ends == [delivery.text] == ["ac\n\nb"]


async def test_streaming_can_be_turned_off() -> None:
    channel = Streamed()
    delivery = await delivered(script.says("Hi."), channel, DeliverySettings(streaming=False))
    assert channel.told == [("send", "Hi.")]
    assert not delivery.streamed


async def test_edits_come_at_intervals() -> None:
    channel = Edited()
    work = script.says("a")
    for _ in range(10):
        work = work.pauses(0.31).says("b")
    await delivered(work, channel)
    times = [at for at, (method, _) in zip(channel.at, channel.told, strict=True) if method == "chunk"]
    assert channel.chunks == ["a", "bbb", "bbb", "bbb"]  # the rest comes with the end
    assert [round(later - at, 3) for at, later in itertools.pairwise(times)] == [1.0] * 3
    assert channel.ends == ["abbbbbbbbbb"]


async def test_the_interval_and_the_least_characters_can_be_set() -> None:
    channel = Edited()
    work = script.says("a")
    for _ in range(10):
        work = work.pauses(1).says("bb")
    await delivered(work, channel, DeliverySettings(edit_interval=2.5, least_characters=6))
    assert channel.chunks == ["abbbbbb", "bbbbbb", "bbbbbb"]


async def test_statuses_do_not_wait_for_text_that_is_edited() -> None:
    channel = Edited()
    work = script.says("a").pauses(0.1).says("b").uses("look", kind="read", path="/p/a.py").pauses(9)
    await delivered(work, channel)
    assert [method for method, _ in channel.told] == ["start", "chunk", "status", "chunk", "end"]


async def test_a_status_comes_behind_the_text_before_it_where_text_is_added() -> None:
    channel = Streamed()
    work = script.says("a").pauses(0.1).says("b").uses("look", kind="read", path="/p/a.py").pauses(9)
    await delivered(work, channel, DeliverySettings(edit_interval=5))
    assert channel.told[1:4] == [("chunk", "a"), ("chunk", "b"), ("status", "Using: read /p/a.py")]


async def test_a_channel_that_paces_itself_gets_everything_at_once_and_its_counts_are_told() -> None:
    channel = Paced()
    delivery = await delivered(script.says("a").pauses(0.1).says("b"), channel)
    assert channel.chunks == ["a", "b"]
    assert (delivery.metrics.edits, delivery.metrics.retries) == (3, 2)


async def test_the_settings_of_the_caller_win_over_those_of_the_channel() -> None:
    channel = Paced()
    await delivered(script.says("a"), channel, DeliverySettings(streaming=False))
    assert channel.told == [("send", "a")]


# Thinking


async def test_thinking_is_shown_once_it_has_taken_long_enough() -> None:
    channel = Thinking()
    delivery = await delivered(LONG_THOUGHT.pauses(1).says("Done."), channel)
    began = channel.at[0]
    assert [
        (method, given, round(at - began, 1))
        for at, (method, given) in zip(channel.at, channel.told, strict=True)
    ] == [
        ("start", "ann", 0.0),
        ("thinking", "First, ", 2.0),
        ("thinking", "then.", 3.0),
        ("thought", pytest.approx(4.0, abs=0.1), 4.0),
        ("chunk", "Done.", 4.0),
        ("end", "Done.", 4.0),
    ]
    assert delivery.metrics.thinking == pytest.approx(4.0, abs=0.1)
    assert delivery.metrics.first_delivery == pytest.approx(2.0, abs=0.1)


async def test_short_thinking_is_not_shown() -> None:
    channel = Thinking()
    delivery = await delivered(script.thinks("Hm.").pauses(1.9).says("Done.").pauses(60), channel)
    assert channel.thoughts == []
    assert delivery.metrics.thinking == pytest.approx(1.9, abs=0.1)


async def test_short_thoughts_add_up() -> None:
    channel = Thinking()
    await delivered(script.thinks("a").pauses(1.5).says("A").thinks("b").pauses(1.5).says("B"), channel)
    assert "".join(channel.thoughts) == "a\n\nb"
    assert [method for method, _ in channel.told] == ["start", "chunk", "thinking", "thought", "chunk", "end"]


async def test_thinking_to_the_end_of_the_run_ends() -> None:
    channel = Thinking()
    await delivered(script.says("Hm.").thinks("a").pauses(5), channel)
    assert [method for method, _ in channel.told[-3:]] == ["thinking", "thought", "end"]


@pytest.mark.parametrize(
    ("settings", "shown"),
    [(DeliverySettings(thinking=False), []), (DeliverySettings(least_thinking=0), ["First, ", "then."])],
)
async def test_thinking_can_be_left_out_or_shown_at_once(
    settings: DeliverySettings, shown: list[str]
) -> None:
    channel = Thinking()
    await delivered(LONG_THOUGHT.says("Done."), channel, settings)
    assert channel.thoughts == shown


# Drafts, and HTML


async def test_a_channel_with_drafts_shows_the_text_so_far_and_sends_the_message() -> None:
    channel = Drafted(fails={"draft": 1})
    work = script.says("a").pauses(0.5).says("b").pauses(0.6).says("c").pauses(3)
    delivery = await delivered(work, channel)
    assert channel.drafts == ["a", "ab", "abc"]
    assert channel.texts == ["abc"]
    assert len(delivery.channel_errors) == 1
    assert delivery.metrics.chunks == 2


async def test_a_channel_with_html_gets_the_thinking_above_the_text() -> None:
    channel = Marked()
    text = "Is a < b & c?\n\n" + "One more sentence. " * 20
    await delivered(LONG_THOUGHT.says(text), channel)
    parsed = [parse(html) for _, html in channel.told]
    assert all(len(each.text) <= 200 for each in parsed)
    assert "First, then." in parsed[0].text
    assert "".join(each.text for each in parsed).endswith("sentence.")
    assert channel.told[0][1].startswith("<blockquote expandable>")
    assert not channel.sent


async def test_a_long_text_is_sent_in_pieces() -> None:
    class Short(Whole):
        capabilities = type(Marked.capabilities)(max_length=20)

    channel = Short()
    await delivered(script.says("One sentence. Another sentence. A third one."), channel)
    assert channel.texts == ["One sentence.", "Another sentence.", "A third one."]


# What goes wrong with the run


async def test_an_error_comes_with_what_was_written() -> None:
    channel = Streamed()
    delivery = await delivered(script.says("So far.").pauses(1).fails(message="overloaded"), channel)
    assert delivery.status == "failed"
    assert isinstance(delivery.error, AgentReported)
    assert delivery.run_text == "So far."
    assert channel.ends == [delivery.text]
    assert delivery.text.startswith("So far.\n\n⚠ ")
    assert "overloaded" in delivery.text
    assert "".join(channel.chunks) == delivery.text


async def test_an_agent_that_dies_is_told_of() -> None:
    channel = Whole()
    delivery = await delivered(script.says("So far.").pauses(1).hangs_up(), channel)
    assert isinstance(delivery.error, AgentExited)
    assert channel.texts[0].startswith("So far.\n\n⚠ ")


async def test_a_run_that_is_cancelled_elsewhere_is_told_of() -> None:
    channel = Streamed()
    async with (
        ScriptedAgent(script.says("So far.").hangs()).open() as agent,
        anyio.create_task_group() as tasks,
    ):
        stream = agent.think().text("Go.").stream()

        async def cancel() -> None:
            await channel.until("chunk")
            stream.cancel()

        tasks.start_soon(cancel)
        delivery = await deliver(stream, channel, "ann")
        assert (delivery.status, delivery.text) == ("cancelled", "So far.\n\n⏹ Stopped.")
        assert isinstance(delivery.error, ThoughtCancelled)


async def test_a_person_can_stop_a_run() -> None:
    channel = Stopped()
    async with (
        ScriptedAgent(script.says("So far.").hangs()).open() as agent,
        anyio.create_task_group() as tasks,
    ):

        async def press() -> None:
            await channel.until("chunk")
            channel.stop.set()

        tasks.start_soon(press)
        delivery = await deliver(agent.think().text("Go.").stream(), channel, "ann")
        assert (delivery.status, delivery.text) == ("cancelled", "So far.\n\n⏹ Stopped.")


async def test_a_stop_button_that_fails_stops_nothing() -> None:
    channel = Stopped()
    channel.fails = {"stopped": 1}
    channel.stop.set()
    delivery = await delivered(script.pauses(1).says("Done."), channel)
    assert (delivery.status, delivery.text) == ("completed", "Done.")
    assert len(delivery.channel_errors) == 1


# Silence


async def test_a_silent_run_is_given_up_and_marked() -> None:
    channel = Streamed()
    delivery = await delivered(script.says("So far.").hangs(), channel, DeliverySettings(stalled_after=30))
    assert delivery.status == "stalled"
    assert channel.ends == [delivery.text]
    assert delivery.text.startswith("So far.\n\n⏳ The agent was silent for 30s")
    assert delivery.metrics.total == pytest.approx(30, abs=0.5)


async def test_a_run_is_not_silent_while_a_tool_runs() -> None:
    channel = Whole()
    work = script.says("a").uses("make", status="in_progress", id="t").pauses(500)
    work = work.uses("make", id="t").pauses(119).says("Built.")
    assert (await delivered(work, channel)).status == "completed"
    assert channel.texts == ["a\n\nBuilt."]


async def test_silence_can_be_allowed() -> None:
    delivery = await delivered(
        script.says("a").pauses(10_000).says("b"), Whole(), DeliverySettings(stalled_after=None)
    )
    assert delivery.status == "completed"


async def test_every_sign_of_life_counts() -> None:
    work = script.says("a")
    for _ in range(5):
        work = work.pauses(100).thinks(".")
    assert (await delivered(work, Whole())).status == "completed"


# Several at once


async def test_one_run_can_be_delivered_to_several() -> None:
    whole, streamed = Whole(), Streamed()
    async with ScriptedAgent(script.says("a").pauses(1).says("b")).open() as agent:
        stream = agent.think().text("Go.").stream()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliver, stream, whole, "ann")
            tasks.start_soon(deliver, stream, streamed, "bob")
    assert whole.texts == streamed.ends == ["ab"]


async def test_a_run_that_is_over_is_delivered_too() -> None:
    channel = Streamed()
    async with ScriptedAgent(script.says("a")).open() as agent:
        stream = agent.think().text("Go.").stream()
        await stream.wait()
        await deliver(stream, channel, "ann")
    assert channel.told == [("start", "ann"), ("chunk", "a"), ("end", "a")]
