"""The server of the Bot API that the tests use: what people do, and how a bot gets to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from bot_api.asking import answer, refusal, result
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client
from limits.virtual import Stopwatch

if TYPE_CHECKING:
    import httpx
    from bot_api.rules import JsonObject
    from bot_api.values import Chat

    from thinkwell.events import JsonValue

pytestmark = pytest.mark.virtual_time

SUPERGROUP = -1_000_000_000_123
BUTTONS: JsonValue = {
    "inline_keyboard": [
        [{"text": "Allow", "callback_data": "y"}, {"text": "Deny", "callback_data": "n"}],
        [{"text": "Open", "url": "http://a.b/"}],
    ]
}


async def updates(http: httpx.AsyncClient, **parameters: JsonValue) -> list[JsonObject]:
    found: list[JsonObject] = await result(http, "getUpdates", **parameters)
    return found


async def test_a_message_of_a_person_is_an_update() -> None:
    api = BotApi()
    ada = api.user(7, "Ada", username="ada")
    ada.says("hi /stop@test_bot \N{GRINNING FACE} /go a/b")
    async with client(api) as http:
        (update,) = await updates(http)
    message = update["message"]
    assert message["chat"] == {"id": 7, "first_name": "Ada", "username": "ada", "type": "private"}
    assert message["from"] == {
        "id": 7,
        "is_bot": False,
        "first_name": "Ada",
        "language_code": "en",
        "username": "ada",
    }
    assert message["entities"] == [
        {"type": "bot_command", "offset": 3, "length": 14},
        {"type": "bot_command", "offset": 21, "length": 3},
    ]
    assert message["text"] == "hi /stop@test_bot \N{GRINNING FACE} /go a/b"


async def test_updates_come_until_they_are_acknowledged() -> None:
    api = BotApi()
    ada = api.user(7)
    for text in "abc":
        ada.says(text)
    async with client(api) as http:
        first = await updates(http, limit=2)
        assert [update["message"]["text"] for update in first] == ["a", "b"]
        assert await updates(http, limit=1) == first[:1]
        last = first[-1]["update_id"]
        (third,) = await updates(http, offset=last + 1)
        assert third["message"]["text"] == "c"
        assert third["update_id"] == last + 1
        assert api.pending == 1
        await anyio.sleep(1)
        assert await updates(http, offset=last + 1000) == [third]  # an offset of another bot, perhaps
        assert await updates(http, offset=last + 2) == []
        assert api.pending == 0
        ada.says("d")
        ada.says("e")
        assert [update["message"]["text"] for update in await updates(http, offset=-1)] == ["e"]
        assert api.pending == 1


async def test_a_poll_waits_for_news() -> None:
    api = BotApi()
    ada = api.user(7)
    watch = Stopwatch()
    async with client(api) as http, anyio.create_task_group() as tasks:

        async def write() -> None:
            await api.until(lambda: api.polled)
            await anyio.sleep(20)
            ada.says("hello")

        tasks.start_soon(write)
        (update,) = await updates(http, timeout=50)
        assert watch.seconds == 20
        assert update["message"]["text"] == "hello"
        assert not api.polled
        assert await updates(http, offset=update["update_id"] + 1, timeout=1000) == []
        assert watch.seconds == 70  # 50 s at most
        assert await updates(http, timeout=0) == []
        assert watch.seconds == 70


async def test_a_poll_for_the_last_update_loses_none_of_those_that_come() -> None:
    api = BotApi()
    ada = api.user(7)
    async with client(api) as http, anyio.create_task_group() as tasks:

        async def write() -> None:
            await api.until(lambda: api.polled)
            ada.says("a")
            ada.says("b")

        tasks.start_soon(write)
        assert len(await updates(http, offset=-1, timeout=50)) == 2


async def test_polls_in_a_row_are_slowed_down() -> None:
    api = BotApi()
    ada = api.user(7)
    watch = Stopwatch()
    async with client(api) as http:
        assert await updates(http, offset=1) == []
        assert await updates(http, offset=1) == []
        assert watch.seconds == 3
        ada.says("a")
        ada.says("b")
        assert len(await updates(http, offset=1)) == 2
        assert len(await updates(http, offset=1)) == 1


async def test_the_poll_that_waits_ends_when_another_comes() -> None:
    api = BotApi()
    ended: list[tuple[str, float]] = []
    watch = Stopwatch()
    async with client(api) as http, anyio.create_task_group() as tasks:

        async def poll(name: str) -> None:
            body = await answer(http, "getUpdates", timeout=40)
            assert body["ok"] or body == {
                "ok": False,
                "error_code": 409,
                "description": "Conflict: terminated by other getUpdates request; "
                "make sure that only one bot instance is running",
            }
            ended.append((name, watch.seconds))

        for number, name in enumerate(("first", "second", "third")):
            tasks.start_soon(poll, name)
            with anyio.fail_after(10):
                while len(api.calls) <= number or not api.polled:
                    await api.changed()
            await anyio.sleep(1)
    assert ended == [("first", 1), ("second", 5), ("third", 42)]  # the second conflict so soon comes later
    assert [call.status for call in api.calls] == [409, 409, 200]


async def test_a_poll_that_is_cancelled_has_gone() -> None:
    api = BotApi()
    async with client(api) as http:
        with anyio.move_on_after(10):
            await updates(http, timeout=40)
        assert not api.polled
        assert [(call.status, call.ended) for call in api.calls] == [(None, None)]
        await anyio.sleep(1)
        assert await updates(http, timeout=40) == []
        assert api.refused == []


async def test_only_updates_that_are_wanted() -> None:
    api = BotApi()
    ada = api.user(7)
    assert api.update({"chat_member": {}}) is None
    assert api.update({"poll": {"id": "1"}}) is not None
    async with client(api) as http:
        assert [update["poll"] for update in await updates(http, allowed_updates=["callback_query"])] == [
            {"id": "1"}
        ]
        ada.says("a")
        await updates(http, limit=100)  # remembers what is wanted
        ada.says("b")
        assert api.pending == 1
        await updates(http, allowed_updates=[])
        ada.says("c")
        assert api.pending == 2


async def test_while_there_is_a_webhook_nothing_can_be_fetched() -> None:
    api = BotApi()
    api.webhook = "https://a.b/"
    ada = api.user(7)
    ada.says("a")
    async with client(api) as http:
        assert (await refusal(http, "getUpdates")).startswith(
            "Conflict: can't use getUpdates method while webhook"
        )
        info = await result(http, "getWebhookInfo")
        assert (info["url"], info["pending_update_count"]) == ("https://a.b/", 1)
        assert await result(http, "deleteWebhook")
        assert len(await updates(http)) == 1
        assert await result(http, "deleteWebhook", drop_pending_updates=True)
        assert api.pending == 0


async def test_people_edit_send_photos_and_answer() -> None:
    api = BotApi()
    ada = api.user(7)
    said = ada.says("a")
    ada.edits(said, "b /x")
    photo = ada.sends_photo("look", chat=ada.chat)
    ada.says("so", reply_to=photo)
    ada.sends_photo()
    async with client(api) as http:
        _, edited, pictured, answered, bare = await updates(http)
    assert edited["edited_message"]["text"] == "b /x"
    assert edited["edited_message"]["message_id"] == said.id
    assert "edit_date" in edited["edited_message"]
    assert edited["edited_message"]["entities"][0]["type"] == "bot_command"
    assert pictured["message"]["caption"] == "look"
    assert pictured["message"]["photo"]
    assert "text" not in pictured["message"]
    assert answered["message"]["reply_to_message"]["message_id"] == photo.id
    assert "caption" not in bare["message"]


async def test_a_button_is_pressed_and_answered_once() -> None:
    api = BotApi()
    ada = api.user(7)
    async with client(api) as http:
        sent = await result(http, "sendMessage", chat_id=7, text="May I?", reply_markup=BUTTONS)
        query = api.press(ada.chat.messages[0], "Deny")
        (update,) = await updates(http)
        assert update["callback_query"] == {
            "id": query,
            "from": {"id": 7, "is_bot": False, "first_name": "Ada", "language_code": "en"},
            "message": sent,
            "chat_instance": update["callback_query"]["chat_instance"],
            "data": "n",
        }
        assert api.query_answer(query) is None
        answered = {"callback_query_id": query, "text": "no"}
        assert await result(http, "answerCallbackQuery", **answered)
        assert api.query_answer(query) == answered
        late = "Bad Request: query is too old and response timeout expired or query ID is invalid"
        assert await refusal(http, "answerCallbackQuery", **answered) == late
        assert await refusal(http, "answerCallbackQuery", callback_query_id="1") == late
        again = api.press(ada.chat.messages[0], "y")
        assert "MESSAGE_TOO_LONG" in await refusal(
            http, "answerCallbackQuery", callback_query_id=again, text="a" * 201
        )
        await anyio.sleep(16)
        assert await refusal(http, "answerCallbackQuery", callback_query_id=again) == late
        assert api.query_answer(again) is None


async def test_a_keyboard_that_is_gone_can_be_pressed_still() -> None:
    api = BotApi()
    bob, group = api.user(8, "Bob"), api.group(-5)
    async with client(api) as http:
        sent = await result(http, "sendMessage", chat_id=-5, text="May I?", reply_markup=BUTTONS)
        await result(http, "editMessageText", chat_id=-5, message_id=sent["message_id"], text="Allowed")
        (post,) = group.messages
        api.press(post, "Allow", by=bob)
        bob.deletes(post)
        api.press(post, "Allow", by=bob)
        pressed, gone = (update["callback_query"] for update in await updates(http))
    assert pressed["message"]["text"] == "Allowed"
    assert pressed["from"]["first_name"] == "Bob"
    assert gone["message"] == {"chat": pressed["message"]["chat"], "message_id": post.id, "date": 0}
    with pytest.raises(ValueError, match="sends no data"):
        api.press(post, "Open", by=bob)
    with pytest.raises(ValueError, match="no button 'Maybe'"):
        api.press(post, "Maybe", by=bob)


async def test_groups_and_their_topics() -> None:
    api = BotApi()
    ada = api.user(7)
    small, large = api.group(-5, "Small"), api.group(SUPERGROUP, "Large", forum=True)
    assert api.group(-5) is small
    assert api.user(7) is ada
    topic = large.topic("Bugs")
    ada.says("a", chat=small)
    ada.says("b", chat=large, thread=topic)
    async with client(api) as http:
        first, second = (update["message"] for update in await updates(http))
        assert first["chat"] == {"id": -5, "title": "Small", "type": "group"}
        assert second["chat"] == {"id": SUPERGROUP, "title": "Large", "type": "supergroup", "is_forum": True}
        assert (second["message_thread_id"], second["is_topic_message"]) == (topic, True)
        assert (first["message_id"], second["message_id"]) == (
            1,
            2,
        )  # a supergroup counts its own: topic, message
        sent = await result(http, "sendMessage", chat_id=SUPERGROUP, message_thread_id=topic, text="c")
        assert sent["message_thread_id"] == topic
        assert large.messages[0].thread == topic
        assert await result(
            http, "sendChatAction", chat_id=SUPERGROUP, message_thread_id=topic, action="typing"
        )
        gone = await refusal(http, "sendChatAction", chat_id=SUPERGROUP, message_thread_id=9, action="typing")
        assert gone == "Bad Request: message thread not found"


async def test_the_privacy_mode_of_a_bot() -> None:
    api = BotApi(reads_all=False)
    ada, group = api.user(7), api.group(-5)
    async with client(api) as http:
        await result(http, "sendMessage", chat_id=-5, text="Hello")
        ada.says("not for the bot", chat=group)
        ada.says("/for the bot", chat=group)
        ada.says("for you, @Test_Bot", chat=group)
        ada.says("as well", chat=group, reply_to=group.messages[0])
        ada.says("this too")
        assert [update["message"]["text"] for update in await updates(http)] == [
            "/for the bot",
            "for you, @Test_Bot",
            "as well",
            "this too",
        ]


async def test_people_that_a_bot_cannot_write_to() -> None:
    api = BotApi()
    ada, eve = api.user(7, "Ada"), api.user(9, "Eve", started=False)
    small, large = api.group(-5), api.group(SUPERGROUP)
    blocked = "Forbidden: bot was blocked by the user"
    async with client(api) as http:
        sent = await result(http, "sendMessage", chat_id=7, text="a")
        ada.blocks()
        assert await refusal(http, "sendMessage", chat_id=7, text="b") == blocked
        assert await refusal(http, "sendChatAction", chat_id=7, action="typing") == blocked
        edit = {"chat_id": 7, "message_id": sent["message_id"], "text": "c"}
        assert await refusal(http, "editMessageText", **edit) == blocked
        assert [call.status for call in api.refused] == [403] * 3
        with pytest.raises(AssertionError, match="has blocked"):
            ada.says("?")
        await anyio.sleep(3)
        ada.unblocks()
        await result(http, "sendMessage", chat_id=7, text="d")
        assert "can't initiate" in await refusal(http, "sendMessage", chat_id=9, text="a")
        eve.says("/start")
        await result(http, "sendMessage", chat_id=9, text="a")
        small.throws_out()
        large.throws_out()
        for chat, kind in ((small, "group"), (large, "supergroup")):
            gone = f"Forbidden: bot was kicked from the {kind} chat"
            assert await refusal(http, "sendMessage", chat_id=chat.id, text="a") == gone
        told = [update["my_chat_member"] for update in await updates(http) if "my_chat_member" in update]
    assert [(change["chat"]["id"], change["new_chat_member"]["status"]) for change in told] == [
        (7, "kicked"),
        (7, "member"),
        (-5, "kicked"),
        (SUPERGROUP, "kicked"),
    ]
    assert [change["old_chat_member"]["status"] for change in told][:2] == ["member", "kicked"]


async def test_what_a_bot_shows_while_it_works() -> None:
    api = BotApi()
    ada = api.user(7)
    async with client(api) as http:
        assert await result(http, "sendChatAction", chat_id=7, action="Typing")
        assert "wrong parameter action" in await refusal(http, "sendChatAction", chat_id=7, action="sleeping")
        assert (
            await refusal(http, "sendChatAction", chat_id=8, action="typing") == "Bad Request: chat not found"
        )
    assert [call.status for call in api.typing] == [200, 400, 400]
    assert ada.chat.messages == []


def shown(chat: Chat) -> tuple[int, str, str] | None:
    return None if chat.draft is None else (chat.draft.id, chat.draft.text, chat.draft.html)


async def test_drafts() -> None:
    api = BotApi()
    ada, group = api.user(7), api.group(-5)
    async with client(api) as http:
        draft = {"chat_id": 7, "draft_id": 3, "parse_mode": "HTML"}
        assert shown(ada.chat) is None
        assert await result(http, "sendMessageDraft", **draft, text="<b>a</b>")
        assert shown(ada.chat) == (3, "a", "<b>a</b>")
        assert await result(http, "sendMessageDraft", **draft, text="")
        assert shown(ada.chat) == (3, "", "")
        await result(http, "sendMessage", chat_id=7, text="a")
        assert shown(ada.chat) is None
        await anyio.sleep(5)
        await result(http, "sendMessageDraft", **draft, text="b")
        await anyio.sleep(29)
        assert shown(ada.chat) == (3, "b", "b")
        await anyio.sleep(1)
        assert shown(ada.chat) is None
        assert [one.text for one in api.drafts] == ["a", "", "b"]
        wrong = await refusal(http, "sendMessageDraft", chat_id=group.id, draft_id=3, text="a")
        assert wrong == "Bad Request: TEXTDRAFT_PEER_INVALID"
        assert "DRAFT_ID" in await refusal(http, "sendMessageDraft", chat_id=7, draft_id=0, text="a")


async def test_waiting_for_what_the_bot_does() -> None:
    api = BotApi()
    ada = api.user(7)
    seen: list[int] = []
    async with client(api) as http, anyio.create_task_group() as tasks:

        async def watch() -> None:
            while len(seen) < 3:
                await api.changed()
                seen.append(len(api.calls))

        tasks.start_soon(watch)
        await anyio.wait_all_tasks_blocked()
        assert seen == []
        await http.get(f"/bot{TOKEN}/getMe")
        await anyio.wait_all_tasks_blocked()
        await http.get(f"/bot{TOKEN}/getMe")
        await anyio.wait_all_tasks_blocked()
        ada.deletes(ada.says("a"))
        await anyio.wait_all_tasks_blocked()
    assert seen == [1, 2, 2]


def test_people_act_without_an_event_loop_too() -> None:
    api = BotApi()
    assert api.user(7).says("a").sent_at > 0
    assert api.pending == 1
