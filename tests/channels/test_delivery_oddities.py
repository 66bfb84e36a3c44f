"""Deliveries in odd circumstances: they end, nothing is lost, and what went wrong is told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from kept_channels import (
    Asked,
    Drafted,
    Edited,
    Marked,
    Paced,
    Refused,
    Stopped,
    Streamed,
    Thinking,
    Whole,
    delivered,
)
from scripted import Turn, scripted

from thinkwell import replay
from thinkwell.channels import (
    ChannelCapabilities,
    DeliveryFailed,
    DeliverySettings,
    MessageRouter,
    deliver,
)
from thinkwell.testing import Script, ScriptedAgent, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.channels import ChannelQuestion

pytestmark = pytest.mark.virtual_time

ASKS = script.asks("rm -rf build", kind="execute", input={"command": "rm -rf build"})

FORM = {"type": "object", "properties": {"pick": {"type": "string", "enum": ["a", "b"]}}}


# The end


class SlowlyAsked(Streamed):
    """Takes its time for every piece, and has the answer to every question."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.answers = list(answers)
        self.questions: list[str] = []
        self.outcomes: list[str] = []

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        await super().on_stream_chunk(user_id, chunk)
        await anyio.sleep(100)

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        self.questions.append(question.id)
        return self.answers.pop(0)

    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
        self.outcomes.append(outcome)


async def test_a_run_that_falls_silent_while_a_slow_channel_writes_is_given_up() -> None:
    channel = SlowlyAsked("a")
    work = script.says("a").asks_form("Which?", FORM).hangs()
    delivery = await delivered(work, channel, DeliverySettings(stalled_after=30))
    assert delivery.status == "stalled"
    assert channel.outcomes == ["accepted by human: it was filled in"]


async def test_a_run_that_ends_before_the_first_look_is_over(tmp_path: Path) -> None:
    path = tmp_path / "run.ndjson"
    async with ScriptedAgent(script.says("a").pauses(10).says("b")).open(record=path) as agent:
        await agent.think().text("Go.").run()
    channel = Whole()
    began = anyio.current_time()
    stream = replay(path)

    async def cancel() -> None:
        stream.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(deliver, stream, channel, "ann")
        tasks.start_soon(cancel)
    assert channel.texts[0].endswith("⏹ Stopped.")
    assert anyio.current_time() - began < 1


@pytest.mark.parametrize("speed", [0, 1, 1000])
async def test_a_replay_is_delivered_at_its_speed(tmp_path: Path, speed: float) -> None:
    path = tmp_path / "run.ndjson"
    async with ScriptedAgent(script.says("a").pauses(10).says("b")).open(record=path) as agent:
        await agent.think().text("Go.").run()
    for channel in (Whole(), Streamed()):
        with anyio.fail_after(11):
            await deliver(
                replay(path, speed=speed), channel, "ann", settings=DeliverySettings(stalled_after=None)
            )
        assert channel.told[-1][1] == "ab"


async def test_a_result_that_is_there_is_delivered_though_the_turn_does_not_end() -> None:
    channel = Whole()
    async with ScriptedAgent(script.returns([1]).hangs()).open() as agent:
        stream = agent.think(list[int]).text("Go.").stream()
        delivery = await deliver(stream, channel, "ann", settings=DeliverySettings(stalled_after=30))
    assert delivery.status == "stalled"
    assert delivery.run_text == "[\n  1\n]"
    assert channel.texts[0].startswith("[\n  1\n]\n\n⏳ ")


async def test_a_run_that_does_not_stop_when_it_is_told_to_was_stopped() -> None:
    class Impatient(Stopped):
        async def wait_stop(self, user_id: str) -> None:
            await self.until("chunk")

    channel = Impatient()
    work = script.says("So far.").hangs(deaf=True)
    delivery = await delivered(work, channel, DeliverySettings(stalled_after=0.5))
    assert delivery.status == "cancelled"
    assert channel.ends == ["So far.\n\n⏹ Stopped."]
    assert delivery.metrics.total == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize("asks", [ASKS, script.asks_form("Which?", FORM)], ids=["permission", "form"])
async def test_an_answer_that_never_fits_is_not_asked_for_without_end(asks: Script) -> None:
    class Made(Asked):
        async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
            return "made up"

    delivery = await delivered(asks.says("Done."), Made())
    (error,) = delivery.channel_errors
    assert str(error).startswith(("'made up' is not one of the", "no valid answer for 'pick': "))
    assert delivery.text == "Done."


# What is shown, and in what order


async def test_two_statuses_come_in_their_order_where_texts_are_edited() -> None:
    channel = Edited()
    work = script.says("a").pauses(0.1).says("b")
    work = work.uses("one", kind="read", path="/p/1").uses("two", kind="read", path="/p/2").pauses(9)
    await delivered(work, channel)
    assert channel.statuses == ["Using: read /p/1", "Using: read /p/2"]


async def test_a_piece_that_is_complete_need_not_be_long() -> None:
    channel = Edited()
    settings = DeliverySettings(least_characters=5, least_thinking=0)
    work = script.thinks("Hm.").pauses(1).says("A long text.").pauses(9).says("More of it.").pauses(9)
    await delivered(work, channel, settings)
    assert channel.thoughts == ["Hm."]
    assert channel.chunks == ["A long text.", "More of it."]


async def test_no_thought_is_lost_at_the_end_where_texts_are_edited() -> None:
    channel = Edited()
    await delivered(script.thinks("First, ").pauses(3).thinks("then.").pauses(0.1).says("Done."), channel)
    assert "".join(channel.thoughts) == "First, then."
    assert [method for method, _ in channel.told] == ["start", "thinking", "thinking", "thought", "end"]


async def test_thinking_ends_where_the_run_is_given_up() -> None:
    channel = Thinking()
    delivery = await delivered(script.thinks("Hm.").hangs(), channel, DeliverySettings(stalled_after=30))
    assert [method for method, _ in channel.told] == ["start", "thinking", "thought", "chunk", "end"]
    assert delivery.metrics.thinking == pytest.approx(30, abs=0.5)


async def test_a_text_of_which_nothing_shows_is_delivered_as_none() -> None:
    channel = Marked()
    await delivered(script.says("\u200b"), channel)
    assert channel.told == [("html", "(The agent said nothing.)")]


async def test_a_draft_has_the_text_and_nothing_else() -> None:
    channel = Drafted()
    await delivered(script.thinks("Hm.").pauses(3).says("a").uses("look").pauses(3), channel)
    assert channel.told == [("draft", "a"), ("send", "a")]


# Begun at any moment


async def test_what_is_said_while_a_delivery_begins_is_delivered_before_the_run_ends() -> None:
    for moment in range(60):  # up to long after it was said
        channel = Streamed()
        async with ScriptedAgent(script.says("Hm.").hangs()).open() as agent:
            stream = agent.think().text("Go.").stream()
            for _ in range(moment):
                await checkpoint()
            waiting = anyio.move_on_after(10)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(deliver, stream, channel, "ann")
                with waiting:
                    await channel.until("chunk")
                tasks.cancel_scope.cancel()
        assert not waiting.cancelled_caught, moment


# Cancelled at any moment


class Careful(Thinking):
    """Knows whether it was left in the middle of a stream."""

    def __init__(self) -> None:
        super().__init__()
        self.open = False

    async def call(self, method: str, given: Any = None) -> None:
        if method == "start":
            self.open = True
        elif method in ("end", "send"):
            self.open = False
        await super().call(method, given)
        await anyio.sleep(0.4)


BUSY = (
    script.thinks("Hm.")
    .pauses(2.5)
    .says("a")
    .uses("look")
    .pauses(0.1)
    .says("b")
    .pauses(0.3)
    .says("c")
    .pauses(0.1)
)


async def test_no_stream_stays_open_whenever_a_delivery_is_cancelled() -> None:
    for tenths in range(75):
        channel = Careful()
        async with ScriptedAgent(BUSY).open() as agent:
            stream = agent.think().text("Go.").stream()
            with anyio.fail_after(100):
                with anyio.move_on_after(tenths / 10 - 0.05) as scope:
                    await deliver(stream, channel, "ann")
                assert await stream.result == "bc"
        assert not channel.open
        assert channel.calls["start"] == channel.calls["end"] == 1, tenths
        if not scope.cancelled_caught:
            break
    else:
        pytest.fail("the delivery took too long")
    assert channel.ends == ["a\n\nbc"]


async def test_a_delivery_that_is_cancelled_behind_the_run_ends_with_all_of_its_text() -> None:
    class Slow(Streamed):
        async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
            await super().on_stream_chunk(user_id, chunk)
            await anyio.sleep(3)

    channel = Slow()
    async with ScriptedAgent(script.says("a").pauses(1).says("b")).open() as agent:
        with anyio.move_on_after(4):
            await deliver(agent.think().text("Go.").stream(), channel, "ann")
    assert channel.ends == ["ab"]


# What users' own code does


@pytest.mark.parametrize("made", [None, 5, b"bytes"])
async def test_a_text_that_is_none_is_told_of(made: Any) -> None:
    channel = Whole()
    delivery = await delivered(script.says("Look."), channel, text=lambda _: made)
    assert delivery.status == "failed"
    assert isinstance(delivery.error, TypeError)
    assert f"text= returned a {type(made).__name__};" in str(delivery.error)
    assert channel.texts[0].startswith("Look.\n\n⚠ ")


class Unspeakable(Exception):  # noqa: N818 - what the channel says
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("not even that")


async def test_an_error_that_cannot_be_shown_is_reported_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = Whole(fails={"send": 9}, error=Unspeakable())
    with pytest.raises(DeliveryFailed, match="in 4 attempts: Unspeakable; its text is in") as failed:
        await delivered(script.says("a"), channel)
    assert isinstance(failed.value.__cause__, Unspeakable)
    assert caplog.messages[0] == "Channel Whole failed (attempt 1 of 4): Unspeakable"


async def test_the_answer_comes_though_a_notice_fails_with_such_an_error() -> None:
    chat = Whole(error=Unspeakable())
    async with MessageRouter(ScriptedAgent(script.crashes().says("Fine.")).open) as router:
        await router.handle_user_message("Go.", "ada", chat)
        chat.fails["send"] = 4
        await router.handle_user_message("Go.", "ada", chat)
    assert chat.texts[1:] == ["Fine."]


async def test_an_error_is_told_in_a_line_of_bounded_length(caplog: pytest.LogCaptureFixture) -> None:
    channel = Whole(fails={"send": 9}, error=Refused("no\n\x1b[31mroot: all is well" + "x" * 1_000_000))
    with pytest.raises(DeliveryFailed) as failed:
        await delivered(script.says("a"), channel)
    for told in (*caplog.messages, str(failed.value)):
        assert len(told) < 1000
        assert "no root: all is well" in told
        assert "\x1b" not in told


async def test_a_text_maker_whose_error_cannot_be_shown_is_told_of() -> None:
    def make(result: str) -> str:
        raise Unspeakable

    channel = Whole()
    await delivered(script.says("Look."), channel, text=make)
    assert channel.texts == ["Look.\n\n⚠ The answer could not be made from the agent's result."]


async def test_counts_that_fail_are_none() -> None:
    class Uncounted(Paced):
        def counts(self, user_id: str) -> Any:
            raise Refused("counts")

    delivery = await delivered(script.says("a"), Uncounted())
    assert (delivery.status, delivery.text) == ("completed", "a")
    assert (delivery.metrics.edits, delivery.metrics.retries) == (0, 0)
    assert [str(error) for error in delivery.channel_errors] == ["counts"]


async def test_a_streaming_method_that_turns_out_not_to_be_asynchronous_is_told_of() -> None:
    class Half(Streamed):
        def on_stream_chunk(self, user_id: str, chunk: str) -> Any:
            return str(chunk)

    channel = Half()
    delivery = await delivered(script.says("a"), channel)
    assert channel.texts == ["a"]
    assert "on_stream_chunk is not asynchronous" in str(delivery.channel_errors[0])


@pytest.mark.parametrize(
    ("name", "wanted"), [("settings", "DeliverySettings"), ("capabilities", "ChannelCapabilities")]
)
async def test_an_attribute_of_another_kind_is_refused(name: str, wanted: str) -> None:
    channel = Whole()
    setattr(channel, name, {"host": "example"})
    with pytest.raises(TypeError, match=rf"^Whole\.{name} is a dict; deliver takes it for {wanted}"):
        await delivered(script.says("a"), channel)


@pytest.mark.parametrize("length", [0, -5])
def test_messages_have_a_length(length: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^ChannelCapabilities\(max_length={length}\): it must be at least 1$"
    ):
        ChannelCapabilities(max_length=length)


async def test_a_stop_that_comes_at_the_very_end_harms_nothing() -> None:
    channel = Stopped()
    channel.stop.set()
    async with ScriptedAgent(script.says("a")).open() as agent:
        stream = agent.think().text("Go.").stream()
        await stream.wait()
        delivery = await deliver(stream, channel, "ann")
    assert (delivery.status, channel.ends) == ("completed", ["a"])


class Thoughtful(SlowlyAsked):
    """Thinks about a question."""

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        await anyio.sleep(20)
        return await super().ask(user_id, question)


async def speaks_while_it_asks(turn: Turn) -> None:
    async with anyio.create_task_group() as tasks:
        page = s.ElicitationUrlMode(
            session_id=turn.session_id, message="Log in", elicitation_id="e1", url="https://login.example/"
        )
        tasks.start_soon(turn.client.create_elicitation, page)
        await anyio.sleep(10)
        turn.say("a")
        await anyio.sleep(10_000)


async def test_a_question_that_is_answered_while_a_slow_channel_writes_is_over() -> None:
    channel = Thoughtful("y")
    async with scripted(speaks_while_it_asks, permissions="ask") as agent:
        stream = agent.think().text("Go.").stream()
        with anyio.fail_after(5_000):
            delivery = await deliver(stream, channel, "ann", settings=DeliverySettings(stalled_after=30))
    assert delivery.status == "stalled"
    assert channel.outcomes == ["accepted by human: it was chosen"]
