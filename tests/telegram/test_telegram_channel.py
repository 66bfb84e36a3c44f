"""A Telegram channel while an answer is written: what people see of it, and when."""

from __future__ import annotations

import random
from itertools import pairwise

import anyio
import pytest
from bot_api.values import Trouble
from telegram_html import misnested, parse
from telegram_stage import CURSOR, Stage, delivered, same_text, staged

from thinkwell.channels import DeliverySettings
from thinkwell.testing import Script, script

pytestmark = pytest.mark.virtual_time

WORDS = "Lorem ipsum dolor sit amet, consectetur adipiscing elit. "


def history(stage: Stage) -> list[str]:
    """Return all that the last message ever said."""
    return [version.text for version in stage.post.history]


def written(text: str, size: int = 40, seconds: float = 0.2) -> Script:
    """Return an agent that writes a text piece by piece."""
    played = script.says("")
    for at in range(0, len(text), size):
        played = played.says(text[at : at + size], message_id="m").pauses(seconds)
    return played


async def test_an_answer_grows_and_ends_clean() -> None:
    async with staged() as stage:
        delivery = await delivered(
            stage, script.says("Hello").pauses(3).says(" there").pauses(3).says(", Ada.")
        )
        assert delivery.streamed
        assert stage.chat.texts == ["Hello there, Ada."]
        assert history(stage) == [f"Hello{CURSOR}", f"Hello there{CURSOR}", "Hello there, Ada."]
        assert stage.post.markup is None
        assert (delivery.metrics.edits, delivery.metrics.retries) == (2, 0)
        assert stage.idle
    assert stage.api.refused == []


async def test_what_is_thought_stands_in_a_quote_and_is_folded_up_at_the_end() -> None:
    thoughts = "".join(f"thought {number}, " for number in range(100))
    async with staged() as stage:
        await delivered(
            stage, script.thinks(thoughts).pauses(5).thinks("the last one").pauses(3).says("So.").pauses(3)
        )
        first, *_, last = stage.post.history
        assert first.text.startswith("thinking…\n…")
        assert len(first.text) < 450
        assert "thought 99," in first.text
        assert "thought 1," not in first.text
        assert "the last one" in stage.post.history[1].text
        head, _, rest = last.text.partition("\n")
        assert head == "thought for 8s"
        assert rest.endswith("the last one\nSo.")
        assert [entity["type"] for entity in last.entities] == ["expandable_blockquote", "bold"]


async def test_thinking_that_takes_little_is_not_shown() -> None:
    async with staged() as stage:
        await delivered(stage, script.thinks("Hm.").pauses(1.5).says("So.").pauses(3))
        assert history(stage) == [f"So.{CURSOR}", "So."]


async def test_what_the_agent_does_is_told_and_it_types_meanwhile() -> None:
    tool = script.uses("run the tests", kind="execute", status="in_progress", id="t")
    async with staged() as stage:
        await delivered(stage, script.says("Look:").pauses(2) + tool.pauses(10).says(" done.").pauses(20))
        assert history(stage) == [
            f"Look:{CURSOR}",
            "Look:\n\nUsing: run the tests",
            f"Look:\n\n done.{CURSOR}",
            "Look:\n\n done.",
        ]
        began = stage.post.history[0].at
        typed = [call.at - began for call in stage.api.typing]
        assert typed == pytest.approx([0.0, 4.5, 9.0], abs=0.3)
        assert {call.parameters["action"] for call in stage.api.typing} == {"typing"}


async def test_typing_goes_on_until_something_is_there() -> None:
    async with staged() as stage:
        await delivered(stage, script.pauses(10).says("So.").pauses(10))
        assert len(stage.api.typing) == 3


@pytest.mark.parametrize("markdown", [False, True])
async def test_a_text_that_outgrows_a_message_goes_on_in_the_next(markdown: bool) -> None:
    text = "\n\n".join(f"{number}. {WORDS * 6}".strip() for number in range(40))
    async with staged(markdown=markdown) as stage:
        await delivered(stage, written(text))
        posts = stage.chat.messages
        assert len(posts) == 4
        assert all(len(post.text) > 2_048 for post in posts[:-1])
        assert same_text(posts, text)
        assert text == "\n\n".join(post.text for post in posts)
        for post, following in pairwise(posts):
            assert post.edited_at is not None
            assert post.edited_at < following.sent_at, "it is finished before the next one begins"
            assert CURSOR not in post.text
    assert stage.api.refused == []
    assert stage.api.throttled == 0


async def test_messages_that_are_finished_stay_as_they_are_though_the_agent_thinks_on() -> None:
    text = WORDS * 100
    played = script.thinks("First.").pauses(3) + written(text) + script.thinks("Second.").pauses(5)
    async with staged() as stage:
        await delivered(stage, played.says(" The end.").pauses(3))
        first, second = stage.chat.messages
        assert first.text.startswith("thought for 3s\nFirst.\nLorem")
        assert first.edited_at is not None
        assert first.edited_at < second.sent_at
        assert any(version.text.endswith("\n\nThinking…") for version in second.history)
        assert second.text.endswith("The end.")


async def test_a_status_without_room_is_left_out() -> None:
    text = "x" * 4_090
    tool = script.uses("pytest", kind="execute", status="in_progress", id="t")
    async with staged() as stage:
        await delivered(stage, script.says(text).pauses(2) + tool.pauses(2))
        assert set(history(stage)) == {text + CURSOR, text}


async def test_a_status_comes_before_all_text() -> None:
    tool = script.uses("pytest", kind="execute", status="in_progress", id="t")
    async with staged() as stage:
        await delivered(stage, tool.pauses(3).says("So."))
        assert history(stage)[0] == "Using: run pytest"
        assert stage.chat.texts == ["So."]


@pytest.mark.parametrize("markdown", [False, True])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
async def test_any_text_is_valid_html_at_any_time(seed: int, markdown: bool) -> None:
    dice = random.Random(seed)
    bits = [
        "<",
        "&",
        ">",
        "&amp;",
        "</b>",
        "**",
        "`",
        "```\n",
        "\n",
        " ",
        "*",
        "# ",
        "😀",
        "a",
        "é",
        '"',
        "[x](y)",
    ]
    text = "".join(dice.choice(bits) * dice.randint(1, 4) for _ in range(4_000))
    played = script.thinks(text[:500]).pauses(3) + written(text, size=300)
    async with staged(markdown=markdown) as stage:
        delivery = await delivered(stage, played)
        assert delivery.status == "completed"
        for post in stage.api.sent:
            for version in post.history:
                assert misnested(parse(version.html)) == ""
        if not markdown:
            whole = "".join(post.text for post in stage.chat.messages)
            assert "".join(whole.split()).endswith("".join(text.split()))
    assert stage.api.refused == []


@pytest.mark.parametrize(("chat_id", "interval"), [(7, 1.1), (-5, 3.1)])
async def test_edits_keep_the_pace_of_the_chat(chat_id: int, interval: float) -> None:
    async with staged() as stage:
        stage.api.group(-5)
        await delivered(stage, written(WORDS * 20, size=10), str(chat_id))
        at = [call.at for call in stage.api.calls_of("sendMessage", "editMessageText")]
        assert len(at) > 5
        assert min(after - before for before, after in pairwise(at)) > interval - 0.01
        assert stage.api.chat(chat_id).texts == [(WORDS * 20).strip()]
    assert stage.api.throttled == 0


async def test_nothing_is_kept_of_chats_in_which_nothing_goes_on() -> None:
    async with staged(limits=False) as stage:
        for id_ in range(1, 51):
            stage.api.user(id_)
            await delivered(stage, script.says("Hello."), str(id_))
        assert stage.idle
        assert all(stage.api.chat(id_).texts == ["Hello."] for id_ in range(1, 51))


async def test_streaming_can_be_switched_off() -> None:
    text = (WORDS * 100).strip()
    async with staged(settings=DeliverySettings(streaming=False)) as stage:
        delivery = await delivered(stage, script.thinks("Hm.").pauses(5) + written(text))
        assert not delivery.streamed
        assert [post.edits for post in stage.chat.messages] == [0, 0]
        assert stage.chat.texts[0].startswith("thought for 5s\nHm.\n")
        assert "\n".join(stage.chat.texts).split()[4:] == text.split()
        assert stage.idle


async def test_edits_can_be_rarer_than_they_have_to_be() -> None:
    text = WORDS * 20
    for settings in (DeliverySettings(edit_interval=20.0), DeliverySettings(least_characters=500)):
        async with staged(settings=settings) as stage:
            await delivered(stage, written(text))
            assert stage.post.edits <= 3
            assert stage.chat.texts == [text.strip()]


async def test_markdown_is_shown_as_what_it_means_with_and_without_streaming() -> None:
    for streaming in (True, False):
        async with staged(markdown=True, settings=DeliverySettings(streaming=streaming)) as stage:
            await delivered(stage, script.says("This is **bold**.").pauses(3))
            assert stage.chat.texts == ["This is bold."]
            assert [entity["type"] for entity in stage.post.entities] == ["bold"]


async def test_texts_stay_as_they_were_written_unless_they_are_markdown() -> None:
    async with staged() as stage:
        await delivered(stage, script.says("This is **bold**, `x < y`."))
        assert stage.chat.texts == ["This is **bold**, `x < y`."]


async def test_an_error_in_mid_stream_is_told_below_what_was_written() -> None:
    async with staged() as stage:
        delivery = await delivered(stage, script.says("Hello").pauses(3).fails(message="Out of order"))
        assert delivery.status == "failed"
        (text,) = stage.chat.texts
        assert text.startswith("Hello\n\n⚠ ")
        assert "Out of order" in text
        assert stage.post.markup is None


async def test_a_topic_of_a_forum_is_a_chat_of_its_own() -> None:
    async with staged() as stage:
        forum = stage.api.group(-1_000_000_000_005, forum=True)
        one, two = forum.topic("One"), forum.topic("Two")
        async with anyio.create_task_group() as tasks:
            for topic in (one, two):
                user_id = f"{forum.id}:{topic}"
                tasks.start_soon(delivered, stage, written(f"{topic} " * 100), user_id)
        assert {post.thread for post in forum.messages} == {one, two}
        for post in forum.messages:
            assert post.text == (f"{post.thread} " * 100).strip()
    assert stage.api.throttled == 0


async def test_what_is_no_chat_is_refused() -> None:
    async with staged() as stage:
        for user_id in ("ada", "", "7:", "7:x"):
            with pytest.raises(ValueError, match="is not a chat"):
                await stage.channel.on_stream_start(user_id)
            with pytest.raises(ValueError, match="is not a chat"):
                await stage.channel.send(user_id, "x")
        assert stage.idle


# Times: those at which people could read something


@pytest.mark.parametrize(("drafts", "method"), [(False, "sendMessage"), (True, "sendMessageDraft")])
async def test_the_first_delivery_is_when_telegram_has_the_first_message(drafts: bool, method: str) -> None:
    async with staged(drafts=drafts) as stage:
        stage.api.trouble(method, Trouble.unreachable(), Trouble.slow(4))
        delivery = await delivered(stage, script.says("Hello").pauses(30))
        assert delivery.metrics.first_delivery is not None
        assert 5 < delivery.metrics.first_delivery < 8
        assert delivery.metrics.total == pytest.approx(30, abs=2)


async def test_a_message_at_the_end_counts_too() -> None:
    async with staged() as stage:
        await stage.channel.send("7", "Hello")
        first = stage.channel.counts("7").first_delivery
        assert first is not None
        assert first < 1


async def test_the_bot_types_until_there_is_an_answer() -> None:
    async with staged() as stage:
        stage.api.trouble("sendChatAction", Trouble.throttled(9))
        with anyio.move_on_after(20):
            await stage.channel.show_typing("7")
        began = stage.api.typing[0].at
        assert [round(call.at - began, 1) for call in stage.api.typing] == [0, 9, 13.5, 18]
        await stage.settled()
