"""The button that stops a run, and answers that are shown as drafts while they are written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import MemoryTransport
from bot_api.values import Trouble
from telegram_stage import CURSOR, Stage, delivered, same_text, staged

from thinkwell.channels.telegram import TelegramChannel
from thinkwell.testing import Script, script

if TYPE_CHECKING:
    from thinkwell.channels import Delivery

pytestmark = pytest.mark.virtual_time

STOP = [["⏹ Stop"]]

LONG = "\n\n".join(f"{number}. " + "Lorem ipsum dolor sit amet. " * 20 for number in range(20)).strip()
"""A text of three messages."""


unfinished = partial(delivered, complete=False)
"""Delivers a run that may be stopped before the end of its script."""


def written(text: str, size: int = 200) -> Script:
    played = script.says("")
    for at in range(0, len(text), size):
        played = played.says(text[at : at + size], message_id="m").pauses(0.3)
    return played


# Stopping


async def test_a_button_stops_the_run_and_is_gone_at_the_end() -> None:
    async with staged() as stage:
        stage.listen()
        result: list[Delivery] = []

        async def run() -> None:
            result.append(await unfinished(stage, script.says("One.").pauses(1_000).says("Two.")))
            stage.api.bell.ring()

        stage.tasks.start_soon(run)
        await stage.until(lambda: bool(stage.chat.messages) and stage.post.buttons == STOP)
        query = stage.api.press(stage.post, "⏹ Stop")
        await stage.until(lambda: bool(result))
        assert result[0].status == "cancelled"
        assert (stage.api.query_answer(query) or {})["text"] == "Stopping…"
        assert stage.chat.texts == ["One.\n\n⏹ Stopped."]
        assert stage.post.buttons == []
        assert stage.idle


async def test_only_the_last_message_has_the_button() -> None:
    async with staged() as stage:
        await unfinished(stage, written(LONG))
        assert len(stage.chat.messages) == 3
        for post in stage.chat.messages:
            assert any(version.markup for version in post.history)
            assert post.markup is None
        for post in stage.chat.messages[:-1]:
            assert all(version.markup for version in post.history[:-1])


async def test_the_stop_button_is_there_while_a_stop_is_waited_for() -> None:
    async with staged() as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        await stage.until(lambda: bool(stage.chat.messages))
        assert stage.post.buttons == []
        with anyio.move_on_after(5):
            await stage.channel.wait_stop("7")
        assert [bool(version.markup) for version in stage.post.history] == [False, True]
        await stage.until(lambda: stage.post.buttons == [])


async def test_a_button_that_was_pressed_goes_before_the_end() -> None:
    async with staged() as stage:
        stage.listen()
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_chunk("7", "One.")
        stage.tasks.start_soon(stage.channel.wait_stop, "7")
        await stage.until(lambda: bool(stage.chat.messages) and stage.post.buttons == STOP)
        first, second = (stage.api.press(stage.post, "⏹ Stop") for _ in range(2))
        await stage.until(lambda: stage.post.buttons == [])
        await stage.until(lambda: stage.api.query_answer(second) is not None)
        assert (stage.api.query_answer(first) or {})["text"] == "Stopping…"
        assert (stage.api.query_answer(second) or {})["text"] == "This has already ended."
        with anyio.fail_after(1):
            await stage.channel.wait_stop("7")  # for that run, it is so


async def test_a_stop_is_for_one_run() -> None:
    async with staged() as stage:
        stage.listen()
        for _ in range(2):
            await stage.channel.on_stream_start("7")
            await stage.channel.on_stream_chunk("7", "One.")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.channel.wait_stop, "7")
                count = len(stage.chat.messages)
                await stage.until(lambda count=count: len(stage.chat.messages) > count)  # type: ignore[misc]
                await stage.until(lambda: stage.post.buttons == STOP)
                stage.api.press(stage.post, "⏹ Stop")
            await stage.channel.on_stream_end("7", "One.")
        assert stage.idle


async def test_an_old_button_and_a_strangers_press_stop_nothing() -> None:
    async with staged() as stage:
        stage.listen()
        await unfinished(stage, script.says("One.").pauses(5))
        old = stage.post
        old.history.append(old.history[0])
        stage.tasks.start_soon(unfinished, stage, script.says("Two.").pauses(30))
        await stage.until(lambda: len(stage.chat.messages) == 2)
        stage.tasks.start_soon(unfinished, stage, script.says("Group.").pauses(30), "-5")
        group = stage.api.group(-5)
        await stage.until(lambda: bool(group.messages) and group.messages[-1].buttons == STOP)
        queries = [
            stage.api.press(old, "⏹ Stop"),
            stage.api.press(group.messages[-1], "⏹ Stop", by=stage.bob),
        ]
        await stage.until(lambda: all(stage.api.query_answer(query) for query in queries))
        await stage.until(lambda: stage.chat.texts[-1] == "Two." and group.texts == ["Group."])


async def test_every_allowed_person_can_stop_a_run_in_a_group() -> None:
    async with staged(allowed=(7, 8)) as stage:
        stage.listen()
        group = stage.api.group(-5)
        stage.tasks.start_soon(unfinished, stage, script.says("One.").pauses(1_000), "-5")
        await stage.until(lambda: bool(group.messages) and group.messages[-1].buttons == STOP)
        stage.api.press(group.messages[-1], "⏹ Stop", by=stage.bob)
        await stage.until(lambda: group.texts == ["One.\n\n⏹ Stopped."])


# Drafts


async def test_drafts_show_what_is_written_and_a_message_ends_them() -> None:
    async with staged(drafts=True) as stage:
        delivery = await unfinished(
            stage, script.says("One.").pauses(3).says(" Two.").pauses(3).says(" Three.")
        )
        assert delivery.streamed
        assert [draft.text for draft in stage.api.drafts] == [f"One.{CURSOR}", f"One. Two.{CURSOR}"]
        assert len({draft.id for draft in stage.api.drafts}) == 1
        assert stage.chat.texts == ["One. Two. Three."]
        assert stage.post.edits == 0
        assert stage.chat.draft is None
        assert stage.idle
    assert stage.api.refused == []
    assert stage.api.throttled == 0


async def test_a_draft_is_shown_again_before_it_goes() -> None:
    async with staged(drafts=True) as stage:
        stage.tasks.start_soon(unfinished, stage, script.says("One.").pauses(100))
        await stage.until(lambda: bool(stage.api.drafts))
        for _ in range(9):
            await anyio.sleep(10)
            assert stage.chat.draft is not None
        await stage.until(lambda: stage.chat.texts == ["One."])
        assert 4 <= len(stage.api.drafts) <= 6


async def test_a_long_answer_is_finished_messages_and_a_draft() -> None:
    async with staged(drafts=True) as stage:
        await unfinished(stage, written(LONG))
        assert same_text(stage.chat.messages, LONG)
        assert [post.edits for post in stage.chat.messages] == [0, 0, 0]
        assert len({draft.id for draft in stage.api.drafts}) == 3
    assert stage.api.refused == []
    assert stage.api.throttled == 0


async def test_a_draft_can_be_stopped() -> None:
    async with staged(drafts=True) as stage:
        stage.listen()
        await stage.until(lambda: stage.api.polled)
        stage.tasks.start_soon(unfinished, stage, script.says("One.").pauses(1_000))
        await stage.until(lambda: bool(stage.api.drafts))
        draft = stage.api.drafts[-1]
        assert stage.api.calls_of("sendMessageDraft")[-1].parameters["can_stop"] == "true"
        chat = {"id": 7, "type": "private", "first_name": "Ada"}
        for id_, where in ((draft.id + 5, chat), (draft.id, {**chat, "id": 8}), (draft.id, chat)):
            assert stage.chat.texts == []
            stage.api.update({"stopped_message_generation": {"chat": where, "draft_id": id_}})
        await stage.until(lambda: stage.chat.texts == ["One.\n\n⏹ Stopped."])
        stage.api.update({"stopped_message_generation": {"chat": chat, "draft_id": draft.id}})
        stage.api.update({"poll": {"id": "1"}})


async def test_in_groups_messages_are_edited() -> None:
    async with staged(drafts=True) as stage:
        group = stage.api.group(-5)
        await unfinished(stage, script.says("One.").pauses(5).says(" Two."), "-5")
        assert stage.api.drafts == []
        assert group.messages[0].edits == 1


class WithoutDrafts(MemoryTransport):
    """An older server."""

    def __init__(self, api: BotApi, status: int, description: str) -> None:
        super().__init__(api)
        self._status = status
        self._description = description

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/sendMessageDraft"):
            body = {"ok": False, "error_code": self._status, "description": self._description}
            return httpx.Response(self._status, json=body)
        return await super().handle_async_request(request)


@pytest.mark.parametrize(
    ("status", "description"),
    [(404, "Not Found: method not found"), (400, "Bad Request: TEXTDRAFT_PEER_INVALID")],
)
async def test_messages_are_edited_where_there_are_no_drafts(status: int, description: str) -> None:
    api = BotApi()
    api.user(7)
    async with (
        httpx.AsyncClient(transport=WithoutDrafts(api, status, description)) as http,
        TelegramChannel(TOKEN, allowed=[7], drafts=True, client=http) as channel,
        anyio.create_task_group() as tasks,
    ):
        await unfinished(Stage(api, channel, tasks, http), script.says("One.").pauses(5).says(" Two."))
    assert api.chat(7).texts == ["One. Two."]
    assert api.chat(7).messages[0].edits == 1


async def test_there_is_no_draft_without_a_text() -> None:
    async with staged(drafts=True) as stage:
        await stage.channel.on_stream_start("7")
        await stage.channel.on_stream_thinking_end("7", 3.0)
        await anyio.sleep(100)
        assert stage.api.drafts == []


async def test_a_draft_that_fails_is_made_good_by_the_next() -> None:
    async with staged(drafts=True) as stage:
        stage.api.trouble("sendMessageDraft", Trouble.unreachable(), Trouble.throttled(3))
        await unfinished(stage, script.says("One.").pauses(10).says(" Two."))
        assert [draft.text for draft in stage.api.drafts] == [f"One.{CURSOR}"]
        assert stage.chat.texts == ["One. Two."]


async def test_a_draft_to_a_person_who_has_blocked_the_bot_is_the_last() -> None:
    async with staged(drafts=True) as stage:
        await stage.channel.on_stream_start("7")
        stage.ada.blocks()
        await stage.channel.on_stream_chunk("7", "One.")
        await anyio.sleep(60)
        assert len(stage.api.calls_of("sendMessageDraft")) == 1


async def test_a_draft_is_plain_where_its_marks_cannot_be_read() -> None:
    api = BotApi()
    api.user(7)
    description = "Bad Request: can't parse entities: Unsupported start tag"
    async with (
        httpx.AsyncClient(transport=WithoutDrafts(api, 400, description)) as http,
        TelegramChannel(TOKEN, allowed=[7], drafts=True, client=http) as channel,
        anyio.create_task_group() as tasks,
    ):
        await unfinished(Stage(api, channel, tasks, http), script.says("One.").pauses(5).says(" Two."))
    assert api.chat(7).texts == ["One. Two."]
