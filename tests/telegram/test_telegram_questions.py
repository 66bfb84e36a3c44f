"""Questions in Telegram: buttons, texts, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from bot_api.values import Trouble
from limits.virtual import Stopwatch
from telegram_html import parse
from telegram_stage import Stage, delivered, staged

from thinkwell.channels import ChannelChoice, ChannelQuestion, Delivery, deliver
from thinkwell.channels.telegram import TelegramNetworkError
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from bot_api.values import Post

pytestmark = pytest.mark.virtual_time

ALLOW = ChannelChoice(id="y", label="once", style="accept")
DENY = ChannelChoice(id="n", label="no", style="reject")


def question(
    text: str = "May it?",
    *,
    id: str = "1",  # noqa: A002 - the field's name
    code: str = "",
    url: str | None = None,
    choices: tuple[ChannelChoice, ...] = (ALLOW, DENY),
    takes_text: bool = False,
    hint: str = "",
    deadline: float | None = None,
) -> ChannelQuestion:
    return ChannelQuestion(
        id=id,
        text=text,
        code=code,
        url=url,
        choices=choices,
        takes_text=takes_text,
        hint=hint,
        deadline=deadline,
    )


class Asking:
    """A question that is put, and its answer."""

    def __init__(self, stage: Stage, put: ChannelQuestion, user_id: str = "7") -> None:
        self.stage = stage
        self.put = put
        self.user_id = user_id
        self.answer: str | None = "not yet"
        self.scope = anyio.CancelScope()
        stage.tasks.start_soon(self._ask)

    async def _ask(self) -> None:
        with self.scope:
            self.answer = await self.stage.channel.ask(self.user_id, self.put)
            self.stage.api.bell.ring()

    async def answered(self) -> str | None:
        await self.stage.until(lambda: self.answer != "not yet")
        return self.answer

    async def end(self, outcome: str) -> None:
        await self.stage.channel.on_question_end(self.user_id, self.put, outcome)


async def asked(stage: Stage, put: ChannelQuestion, user_id: str = "7") -> Asking:
    """Put a question, and wait until all of it is there."""
    asking = Asking(stage, put, user_id)
    chat = stage.api.chat(int(user_id.partition(":")[0]))
    before = len(chat.messages)
    await stage.until(
        lambda: len(chat.messages) > before and (bool(chat.messages[-1].markup) or not put.choices)
    )
    return asking


def codes(posts: list[Post]) -> list[str]:
    """Return what the code blocks of messages hold, as they were sent."""
    found: list[str] = []
    for post in posts:
        parsed = parse(post.html)
        found += [parsed.of(entity) for entity in parsed.entities if entity.type == "pre"]
    return found


# A permission


async def test_a_permission_is_asked_with_buttons_and_the_whole_command() -> None:
    async with staged() as stage:
        stage.listen()
        result: list[Delivery] = []

        async def run() -> None:
            played = script.says("Hi.").asks("Clean up", kind="execute", input={"command": "rm -rf <b> && x"})
            result.append(await delivered(stage, played.says("Done.")))
            stage.api.bell.ring()

        stage.tasks.start_soon(run)
        await stage.until(lambda: len(stage.chat.messages) == 2)
        ask, answer = sorted(stage.chat.messages, key=lambda post: "⏹ Stop" in str(post.buttons))
        assert ask.text.startswith("scripted asks for permission: Clean up")
        assert codes([ask]) == ["rm -rf <b> && x"]
        assert ask.buttons == [["once", "no"]]
        query = stage.api.press(ask, "once")
        await stage.until(lambda: bool(result))
        assert (stage.api.query_answer(query) or {})["text"] == "once"
        await stage.settled()
        assert ask.buttons == []
        assert ask.text.endswith("\n\n→ allowed by human: it was chosen")
        assert codes([ask]) == ["rm -rf <b> && x"]
        assert answer.text == "Hi.\n\nDone."
    assert stage.api.refused == []


async def test_buttons_are_short_and_tell_nothing() -> None:
    async with staged() as stage:
        await asked(stage, question(choices=(ChannelChoice(id="x" * 5_000, label="Yes"), DENY)))
        rows = (stage.post.markup or {})["inline_keyboard"]
        data = [button["callback_data"] for row in rows for button in row]
        assert all(len(each) < 64 and "x" not in each.partition(":")[0] for each in data)
        assert [button.get("style") for row in rows for button in row] == [None, "danger"]
        token = data[0].split(":")[1]
        assert len(token) == 16


async def test_no_typing_is_shown_while_a_question_waits() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await anyio.sleep(10)
        typed = len(stage.api.typing)
        assert typed == 3
        asking = await asked(stage, question())
        await anyio.sleep(20)
        assert len(stage.api.typing) <= typed + 1
        asking.scope.cancel()
        await anyio.sleep(10)
        assert len(stage.api.typing) >= typed + 2


async def test_the_deadline_and_the_page_are_shown() -> None:
    async with staged() as stage:
        await asked(stage, question(url="https://a.example/?x=1&y=2", deadline=90.0))
        assert stage.post.text == (
            "May it?\n\nhttps://a.example/?x=1&y=2\n\nWithout an answer within 1:30, it is denied."
        )


# Long ones


async def test_a_command_longer_than_a_message_is_sent_whole_with_the_buttons_on_the_last() -> None:
    code = "\n".join(f"  step {number} <&>" for number in range(900)) + "x" * 9_000 + "\n"
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question(code=code))
        posts = stage.chat.messages
        assert len(posts) > 5
        assert "".join(codes(posts)) == code
        assert [bool(post.buttons) for post in posts] == [False] * (len(posts) - 1) + [True]
        assert posts[0].text.startswith("May it?")
        assert f"Part {len(codes(posts))} of {len(codes(posts))}:" in posts[-1].text
        stage.api.press(stage.post, "once")
        assert await asking.answered() == "y"
        await asking.end("o" * 1_000)
        await stage.settled()
        assert stage.post.text.endswith("o…")
    assert stage.api.refused == []


async def test_where_it_can_only_be_denied_long_choices_are_on_their_buttons() -> None:
    choices = tuple(ChannelChoice(id=id_, label=f"{id_}: " + "no " * 600, style="reject") for id_ in "xyz")
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question(code="x\n" * 50_000, choices=choices))
        assert len(stage.chat.messages) == 16
        assert [row[0][:5] for row in stage.post.buttons] == ["1. x:", "2. y:", "3. z:"]
        stage.api.press(stage.post, stage.post.buttons[1][0])
        assert await asking.answered() == "y"
        await asking.end("denied")
        await stage.settled()
    assert stage.api.refused == []


async def test_what_cannot_be_shown_whole_can_only_be_denied() -> None:
    choices = (ALLOW, ChannelChoice(id="a", label="always", style="accept"), DENY)
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question(code="x\n" * 50_000, choices=choices))
        assert len(stage.chat.messages) == 16
        assert "too long to be shown" in stage.post.text
        assert stage.post.buttons == [["no"]]
        stage.api.press(stage.post, "no")
        assert await asking.answered() == "n"


async def test_a_long_question_is_several_messages() -> None:
    text = "Really? " * 1_000
    async with staged() as stage:
        await asked(stage, question(text, code="rm"))
        assert "".join(" ".join(stage.chat.texts).split()) == "".join(text.split()) + "rm"
    assert stage.api.refused == []


async def test_long_labels_are_written_out() -> None:
    choices = tuple(ChannelChoice(id=f"{n}", label=f"Choice {n} " + "of many " * 20) for n in range(3))
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question(choices=choices))
        assert "2. Choice 1 of many of many" in stage.post.text
        assert [row[0][:11] for row in stage.post.buttons] == ["1. Choice 0", "2. Choice 1", "3. Choice 2"]
        stage.api.press(stage.post, stage.post.buttons[1][0])
        assert await asking.answered() == "1"


async def test_more_choices_than_buttons() -> None:
    choices = tuple(ChannelChoice(id=f"{number}", label=f"{number}") for number in range(150))
    async with staged() as stage:
        await asked(stage, question(choices=choices))
        assert sum(map(len, stage.post.buttons)) == 96
        assert "Only 96 of 150 choices have a button here." in stage.post.text
    assert stage.api.refused == []


async def test_strange_questions_are_valid_messages() -> None:
    blank = ChannelChoice(id="b", label=" ")
    async with staged() as stage:
        await asked(stage, question("", choices=(blank,)))
        assert (stage.post.text, stage.post.buttons) == ("❓", [["•"]])
        asking = Asking(stage, question("Look at this.", code=" \n", choices=()))
        assert await asking.answered() is None
        assert stage.post.text == "Look at this."
    assert stage.api.refused == []


# Texts


async def test_a_text_is_asked_for_and_taken() -> None:
    skip = ChannelChoice(id=":skip", label="skip the form", style="reject")
    async with staged() as stage:
        stage.listen()
        put = question("How many?", choices=(skip,), takes_text=True, hint="whole number, 1 to 10, required")
        asking = await asked(stage, put)
        await stage.until(lambda: len(stage.chat.messages) == 2)
        ask, prompt = stage.chat.messages
        assert ask.buttons == [["skip the form"]]
        assert prompt.text == "✎ Write your answer: whole number, 1 to 10, required"
        assert prompt.markup == {
            "force_reply": True,
            "input_field_placeholder": "whole number, 1 to 10, required",
        }
        stage.ada.says("7", reply_to=prompt)
        assert await asking.answered() == "7"
        await asking.end("filled in")
        await stage.settled()
        assert stage.chat.texts == ["How many?\n\n→ filled in"]
        assert stage.heard == []
    assert stage.api.refused == []


async def test_in_a_private_chat_any_text_is_the_answer_but_a_command() -> None:
    async with staged() as stage:
        stage.listen()
        put = question("Name?", choices=(), takes_text=True)
        asking = Asking(stage, put)
        await stage.until(lambda: len(stage.chat.messages) == 2)
        assert (
            "input_field_placeholder" not in (stage.post.markup or {})
            or not (stage.post.markup or {})["input_field_placeholder"]
        )
        stage.ada.says("/stop")
        await stage.until(lambda: len(stage.heard) == 1)
        assert asking.answer == "not yet"
        stage.ada.says("Ada")
        assert await asking.answered() == "Ada"
        stage.ada.says("Something new")
        await stage.until(lambda: len(stage.heard) == 2)
        assert [message.text for message in stage.heard] == ["/stop", "Something new"]


async def test_the_newest_question_for_a_text_gets_it() -> None:
    async with staged() as stage:
        stage.listen()
        first = Asking(stage, question("A?", id="a", choices=(), takes_text=True))
        await stage.until(lambda: len(stage.chat.messages) == 2)
        buttons = await asked(stage, question("B?", id="b"))
        second = Asking(stage, question("C?", id="c", choices=(), takes_text=True))
        await stage.until(lambda: len(stage.chat.messages) == 5)
        stage.ada.says("c")
        assert await second.answered() == "c"
        stage.ada.says("a", reply_to=stage.chat.messages[0])
        assert await first.answered() == "a"
        assert buttons.answer == "not yet"


async def test_a_text_is_no_answer_where_only_buttons_are() -> None:
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question())
        stage.ada.says("yes", reply_to=stage.post)
        await stage.until(lambda: stage.chat.texts[-1].startswith("Please press one of the buttons"))
        stage.ada.says("yes")
        await stage.until(lambda: [message.text for message in stage.heard] == ["yes"])
        assert asking.answer == "not yet"


async def test_a_text_comes_while_the_prompt_is_on_its_way() -> None:
    async with staged() as stage:
        stage.listen()
        asking = Asking(stage, question("Name?", choices=(), takes_text=True))
        await stage.until(lambda: len(stage.chat.messages) == 1)
        stage.ada.says("Ada")
        assert await asking.answered() == "Ada"
        await asking.end("filled in")
        await stage.settled()
        assert stage.chat.texts == ["Name?\n\n→ filled in"]


async def test_a_form_is_filled_in() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name"},
            "sure": {"type": "boolean", "title": "Sure"},
        },
        "required": ["name", "sure"],
    }
    async with staged() as stage:
        stage.listen()
        played = script.asks_form("Who?", schema, expect={"name": "Ada", "sure": True}).says("Thanks.")

        async def run() -> None:
            await delivered(stage, played)
            stage.api.bell.ring()

        stage.tasks.start_soon(run)
        await stage.until(lambda: len(stage.chat.messages) == 2)
        stage.ada.says("Ada")
        await stage.until(lambda: bool(stage.post.buttons) and "Sure" in stage.post.text)
        stage.api.press(stage.post, "yes")
        await stage.until(lambda: "Thanks." in stage.chat.texts)
        await stage.settled()
        first, second, _ = stage.chat.texts
        assert "\n\n→ " in first
        assert "\n\n→ " in second
    assert stage.api.refused == []


# Groups, and who may


async def test_a_group_sees_who_has_answered() -> None:
    async with staged() as stage:
        stage.listen()
        group = stage.api.group(-5)
        asking = await asked(stage, question(), "-5")
        stage.api.press(group.messages[-1], "no", by=stage.ada)
        assert await asking.answered() == "n"
        await asking.end("denied by human")
        await stage.settled()
        assert group.texts == ["May it?\n\n→ denied by human (Ada)"]


async def test_in_a_group_only_a_reply_is_an_answer() -> None:
    async with staged() as stage:
        stage.listen()
        group = stage.api.group(-5)
        asking = Asking(stage, question("Name?", choices=(), takes_text=True), "-5")
        await stage.until(lambda: len(group.messages) == 2)
        stage.ada.says("@test_bot hello", chat=group)
        await stage.until(lambda: len(stage.heard) == 1)
        stage.bob.says("Bob", chat=group, reply_to=group.messages[-1])
        await stage.until(lambda: len(group.messages) == 3)
        assert asking.answer == "not yet"
        stage.ada.says("Ada", chat=group, reply_to=group.messages[1])
        assert await asking.answered() == "Ada"


async def test_other_people_cannot_press_a_button() -> None:
    async with staged() as stage:
        stage.listen()
        group = stage.api.group(-5)
        asking = await asked(stage, question(), "-5")
        query = stage.api.press(group.messages[-1], "once", by=stage.bob)
        await stage.until(lambda: stage.api.query_answer(query) is not None)
        told = stage.api.query_answer(query) or {}
        assert told["text"].endswith("Your number is 8.")
        assert told["show_alert"] == "true"
        assert asking.answer == "not yet"


# Buttons that are old


async def test_a_button_counts_once() -> None:
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question())
        first, second = (stage.api.press(stage.post, label) for label in ("no", "once"))
        assert await asking.answered() == "n"
        await stage.until(lambda: stage.api.query_answer(second) is not None)
        assert (stage.api.query_answer(first) or {})["text"] == "no"
        assert (stage.api.query_answer(second) or {})["text"] == "This question is no longer open."


async def test_buttons_of_questions_that_are_gone_do_nothing() -> None:
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question())
        ask = stage.post
        old = ask.history[0]
        asking.scope.cancel()
        await stage.settled()
        assert ask.text == "May it?\n\n→ no longer open"
        other = await asked(stage, question("And this?"))
        ask.history.append(old)
        query = stage.api.press(ask, "once")
        await stage.until(lambda: stage.api.query_answer(query) is not None)
        assert other.answer == "not yet"


@pytest.mark.parametrize("number", ["2", "-1", "x", "", "٣"])
async def test_a_made_up_button_is_refused(number: str) -> None:
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question())
        rows = (stage.post.markup or {})["inline_keyboard"]
        data: str = rows[0][0]["callback_data"]
        rows[0][0]["callback_data"] = f"{data.rpartition(':')[0]}:{number}"
        query = stage.api.press(stage.post, "once")
        await stage.until(lambda: stage.api.query_answer(query) is not None)
        assert asking.answer == "not yet"
        rows[0][0]["callback_data"] = data
        stage.api.press(stage.post, "once")
        assert await asking.answered() == "y"


async def test_a_button_is_pressed_where_it_was_put() -> None:
    async with staged(allowed=(7, 8)) as stage:
        stage.listen()
        asking = await asked(stage, question())
        data: str = (stage.post.markup or {})["inline_keyboard"][0][0]["callback_data"]
        elsewhere = await asked(stage, question(), str(stage.bob.id))
        rows = (stage.bob.chat.messages[0].markup or {})["inline_keyboard"]
        rows[0][0]["callback_data"] = data
        query = stage.api.press(stage.bob.chat.messages[0], "once")
        await stage.until(lambda: stage.api.query_answer(query) is not None)
        assert (asking.answer, elsewhere.answer) == ("not yet", "not yet")


async def test_other_buttons_are_answered_too() -> None:
    async with staged() as stage:
        stage.listen()
        await asked(stage, question())
        rows = (stage.post.markup or {})["inline_keyboard"]
        for data in ("s:", "x", "q:", "q::"):
            rows[0][0]["callback_data"] = data
            query = stage.api.press(stage.post, "once")
            await stage.until(lambda query=query: stage.api.query_answer(query) is not None)  # type: ignore[misc]


# What becomes of them


async def test_several_are_asked_at_once() -> None:
    async with staged() as stage:
        stage.listen()
        first = await asked(stage, question("A?", id="a"))
        second = await asked(stage, question("B?", id="b"))
        one, two = stage.chat.messages
        stage.api.press(two, "no")
        assert await second.answered() == "n"
        stage.api.press(one, "once")
        assert await first.answered() == "y"
        await first.end("allowed")
        await second.end("denied")
        await stage.settled()
        assert stage.chat.texts == ["A?\n\n→ allowed", "B?\n\n→ denied"]


async def test_without_any_outcome_the_message_says_what_was_chosen() -> None:
    async with staged() as stage:
        stage.listen()
        await asked(stage, question())
        stage.api.press(stage.post, "once")
        await stage.settled()
        assert stage.chat.texts == ["May it?\n\n→ once"]


async def test_a_deadline_that_passes_takes_the_buttons_away() -> None:
    async with staged() as stage:
        await delivered(stage, script.asks("rm").says("Well."), seconds=30)
        await stage.settled()
        ask = stage.chat.messages[0]
        assert ask.buttons == []
        assert "→ denied" in ask.text or "→ no" in ask.text


async def test_the_end_of_the_run_withdraws_its_questions() -> None:
    async with staged() as stage, anyio.create_task_group() as tasks:
        stage.listen()
        async with ScriptedAgent(script.asks("rm"), complete=False).open(permissions="ask") as agent:
            stream = agent.think().text("Go.").stream()
            tasks.start_soon(deliver, stream, stage.channel, "7")
            await stage.until(lambda: bool(stage.chat.messages) and bool(stage.post.buttons))
            ask = stage.post
            stream.cancel()
            await stream.wait()
        await stage.settled()
        assert ask.buttons == []
        assert "→ " in ask.text


@pytest.mark.parametrize("tenth", range(0, 60, 4))
async def test_a_question_can_be_withdrawn_at_any_time(tenth: int) -> None:
    """No button stays that looks as if it did something, whatever was on its way."""
    put = question("Name?", code="y\n" * 5_000, takes_text=True)
    async with staged() as stage:
        stage.api.chaos(1, [(Trouble.slow(0.5), 1.0)])
        asking = Asking(stage, put)
        await anyio.sleep(tenth / 10)
        asking.scope.cancel()
        await stage.settled()
        assert all(post.markup is None for post in stage.chat.messages)
        await stage.channel.send("7", "And then?")
        assert stage.chat.texts[-1] == "And then?"
        assert len(stage.channel._questions or ()) == 0


async def test_a_question_that_cannot_be_sent_raises() -> None:
    async with staged() as stage:
        stage.api.trouble("sendMessage", *[Trouble.unreachable()] * 6)
        with pytest.raises(TelegramNetworkError):
            await stage.channel.ask("7", question())
        await stage.settled()
        assert stage.chat.texts == []


async def test_an_outcome_that_cannot_be_shown_is_no_fault() -> None:
    async with staged() as stage:
        stage.listen()
        asking = await asked(stage, question())
        stage.ada.deletes(stage.post)
        asking.scope.cancel()
        await stage.settled()
    assert [call.description for call in stage.api.refused] == ["Bad Request: message to edit not found"]


async def test_closing_does_not_wait_for_a_question_that_is_on_its_way() -> None:
    async with anyio.create_task_group() as tasks:
        async with staged() as stage:
            stage.api.trouble("sendMessage", Trouble.slow(15))

            async def ask() -> None:
                with pytest.raises(RuntimeError, match="the channel is closed"):
                    await stage.channel.ask("7", question())

            tasks.start_soon(ask)
            await anyio.sleep(1)
            watch = Stopwatch()
        assert watch.seconds < 8


async def test_characters_that_telegram_leaves_out_are_written_as_escapes() -> None:
    async with staged() as stage:
        await asked(stage, question(code="a\u0333b\u202ec\td", url="https://a.example/\u200b"))
        assert codes([stage.post]) == ["a\\u0333b\\u202ec\\u0009d"]
        assert "https://a.example/\\u200b" in stage.post.text


async def test_what_is_one_character_is_not_cut() -> None:
    code = "e\u0301" * 3_000
    async with staged() as stage:
        await asked(stage, question(code=code))
        assert "".join(codes(stage.chat.messages)) == code
        assert all(part[0] == "e" for part in codes(stage.chat.messages))


async def test_closing_the_channel_withdraws_what_is_asked() -> None:
    stages: list[Stage] = []
    answers: list[str | None] = []
    watch = Stopwatch()
    async with anyio.create_task_group() as tasks, staged() as stage:
        stages.append(stage)

        async def ask() -> None:
            answers.append(await stage.channel.ask("7", question()))

        tasks.start_soon(ask)
        await stage.until(lambda: bool(stage.chat.messages) and bool(stage.post.buttons))
        watch = Stopwatch()
    assert answers == [None]
    assert watch.seconds < 5
    assert stages[0].chat.texts == ["May it?\n\n→ no longer open"]
    assert stages[0].post.buttons == []
    with pytest.raises(RuntimeError, match="the channel is closed"):
        await stages[0].channel.ask("7", question())
    await stages[0].channel.on_question_end("7", question(), "too late")
