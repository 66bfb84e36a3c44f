"""The server of the Bot API that the tests use: requests, and what a bot may send, edit and delete."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import pytest
from bot_api.asking import answer, refusal, result
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell.events import JsonValue

pytestmark = pytest.mark.virtual_time

BUTTONS: JsonValue = {"inline_keyboard": [[{"text": "Allow", "callback_data": "y"}], []]}
LETTER = "\N{GRINNING FACE}"
"""One character (code point), of two UTF-16 units and four bytes."""


async def test_parameters_come_in_any_form() -> None:
    api = BotApi(limits=False)
    ada = api.user(7)
    text = "a&b=c\r\nd\N{SNOWMAN}"
    given = {"chat_id": "7", "text": text, "reply_markup": json.dumps(BUTTONS)}
    async with client(api) as http:
        url = f"/bot{TOKEN}/sendMessage"
        await http.get(url, params=given)
        await http.post(url, params=given)
        await http.post(url, data=given)
        await http.post(url, files={name: (None, value) for name, value in given.items()})
        await http.post(
            f"/bot{TOKEN}/SENDMESSAGE", json={"chat_id": 7, "text": text, "reply_markup": BUTTONS}
        )
    assert ada.chat.texts == ["a&b=c\nd\N{SNOWMAN}"] * 5
    assert all(post.buttons == [["Allow"]] for post in ada.chat.messages)
    assert [dict(call.parameters) for call in api.calls[:4]] == [given] * 4
    assert [call.method for call in api.calls] == ["sendMessage"] * 5
    assert api.calls[4].json("reply_markup") == BUTTONS
    assert api.calls[4].json("entities") is None
    assert api.calls[4].chat_id == 7
    assert api.calls[4].description is None
    assert api.refused == []


@pytest.mark.parametrize("body", ["{", '["chat_id"]', "7"])
async def test_a_body_that_cannot_be_read_says_nothing(body: str) -> None:
    api = BotApi()
    async with client(api) as http:
        await http.post(
            f"/bot{TOKEN}/deleteMessage", content=body, headers={"Content-Type": "application/json"}
        )
        await http.post(f"/bot{TOKEN}/deleteMessage", content=body, headers={"Content-Type": "text/plain"})
        nameless = b"--b\r\nContent-Disposition: form-data\r\n\r\n7\r\n--b--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        await http.post(f"/bot{TOKEN}/deleteMessage", content=nameless, headers=headers)
    assert [call.description for call in api.calls] == ["Bad Request: chat identifier is not specified"] * 3
    assert {call.chat_id for call in api.calls} == {None}


async def test_requests_that_are_not_for_this_bot() -> None:
    api = BotApi()
    async with client(api) as http:
        answers = [
            (await http.get(path)).json()["description"]
            for path in (
                "/",
                "/getMe",
                f"/file/bot{TOKEN}/getMe",
                f"/bot{TOKEN}",
                f"/bot{TOKEN}/getThem",
                f"/bot{TOKEN}x/getMe",
                "/bot12/getMe",
            )
        ]
        wrong = await http.get(f"/bot{TOKEN}x/getMe")
    assert answers == [
        "Not Found",
        "Not Found",
        "Not Found",
        "Not Found",
        "Not Found: method not found",
        "Unauthorized",
        "Unauthorized: invalid token specified",
    ]
    assert wrong.status_code == 401
    assert wrong.json() == {"ok": False, "error_code": 401, "description": "Unauthorized"}
    assert [call.status for call in api.refused] == [404, 401, 401, 401]


async def test_who_the_bot_is_and_its_menu() -> None:
    api = BotApi("99:x", name="Helper", username="helper_bot", reads_all=False)
    async with client(api) as http:
        me = (await http.get("/bot99:x/getMe")).json()["result"]
    assert me["id"] == 99
    assert me["is_bot"]
    assert (me["first_name"], me["username"]) == ("Helper", "helper_bot")
    assert not me["can_read_all_group_messages"]
    api = BotApi()
    async with client(api) as http:
        menu = [{"command": "stop", "description": "Stop it"}]
        assert await result(http, "setMyCommands", commands=menu)
        assert await result(http, "getMyCommands") == menu
        assert api.commands == menu
        assert await result(http, "setMyCommands")
        assert api.commands == []


async def test_a_message_is_what_is_left_of_its_text() -> None:
    api = BotApi()
    ada = api.user(7, "Ada", username="ada")
    async with client(api) as http:
        await anyio.sleep(2)
        sent = await result(
            http,
            "sendMessage",
            chat_id=7,
            text=f" {LETTER}\tx <b>bold\r</b> <a href='http://x.y/'>&lt;</a>\n <i> </i>\n",
            parse_mode="HTML",
        )
        plain = await result(
            http,
            "sendMessage",
            chat_id=7,
            text="a <b> & c",
            entities=[{"type": "bold", "offset": 2, "length": 3}],
        )
    post = ada.chat.messages[0]
    assert post.text == f"{LETTER} x bold <"
    assert post.entities == (
        {"type": "bold", "offset": 5, "length": 4},
        {"type": "text_link", "offset": 10, "length": 1, "url": "http://x.y/"},
    )
    assert post.html.startswith(f" {LETTER}\tx <b>")
    assert sent == {
        "message_id": post.id,
        "from": {"id": 42, "is_bot": True, "first_name": "Test bot", "username": "test_bot"},
        "chat": {"id": 7, "first_name": "Ada", "username": "ada", "type": "private"},
        "date": sent["date"],
        "text": post.text,
        "entities": list(post.entities),
    }
    assert post.sent_at == api.calls[0].at == api.calls[0].ended == anyio.current_time()
    assert post.edited_at is None
    assert (post.edits, post.markup, post.buttons) == (0, None, [])
    assert plain["entities"] == [{"type": "bold", "offset": 2, "length": 3}]
    assert ada.chat.messages[1].html == "a &lt;b&gt; &amp; c"
    assert ada.chat.message(post.id) is post
    assert api.sent == ada.chat.messages


async def test_the_longest_message() -> None:
    api = BotApi()
    ada = api.user(7)
    async with client(api) as http:
        await result(http, "sendMessage", chat_id=7, text=f" <b>{LETTER * 4096}</b>\n", parse_mode="HTML")
    assert ada.chat.texts == [LETTER * 4096]
    assert ada.chat.messages[0].entities == ({"type": "bold", "offset": 0, "length": 8192},)


async def test_a_message_keeps_a_hundred_entities() -> None:
    api = BotApi()
    ada = api.user(7)
    async with client(api) as http:
        sent = await result(http, "sendMessage", chat_id=7, text="<b>a</b> " * 101, parse_mode="HTML")
    assert len(sent["entities"]) == 100
    assert len(ada.chat.messages[0].text) == 201


@pytest.mark.parametrize(
    "button",
    [
        {"text": "a", "callback_data": "\N{SNOWMAN}" * 21 + "y"},
        {"text": "a", "style": "danger", "url": "https://a.b/x?y#z"},
    ],
)
async def test_buttons_that_are_taken(button: JsonValue) -> None:
    api = BotApi()
    ada = api.user(7)
    async with client(api) as http:
        markup = {"inline_keyboard": [[button] * 10] * 10}
        sent = await result(http, "sendMessage", chat_id=7, text="a", reply_markup=markup)
        assert sent["reply_markup"] == markup
        assert ada.chat.messages[0].markup == markup
        markup = {"inline_keyboard": [[button] * 101]}
        assert "too long" in await refusal(http, "sendMessage", chat_id=7, text="a", reply_markup=markup)


async def test_a_message_that_is_edited() -> None:
    api = BotApi()
    ada = api.user(7)
    async with client(api) as http:
        sent = await result(http, "sendMessage", chat_id=7, text="one", reply_markup=BUTTONS)
        which = {"chat_id": 7, "message_id": sent["message_id"]}
        await anyio.sleep(5)
        edited = await result(
            http, "editMessageText", **which, text="<b>two</b>", parse_mode="HTML", reply_markup=BUTTONS
        )
        assert await result(http, "editMessageText", **which, text="<b>two</b>", parse_mode="HTML")
        await anyio.sleep(5)
        await result(http, "editMessageReplyMarkup", **which, reply_markup=BUTTONS)
    assert edited["edit_date"] == sent["date"] + 5
    assert edited["reply_markup"] == {"inline_keyboard": [[{"text": "Allow", "callback_data": "y"}]]}
    (post,) = ada.chat.messages
    assert [(said.html, said.text, said.markup is None) for said in post.history] == [
        ("one", "one", False),
        ("<b>two</b>", "two", False),
        ("<b>two</b>", "two", True),  # an edit without a keyboard takes it away
        ("<b>two</b>", "two", False),
    ]
    assert post.edits == 3
    assert post.edited_at == post.sent_at + 10
    assert len(api.sent) == 1


async def test_edits_that_change_nothing() -> None:
    api = BotApi(limits=False)
    api.user(7)
    async with client(api) as http:
        given = {"text": "<b>a</b> b", "parse_mode": "HTML", "reply_markup": BUTTONS}
        sent = await result(http, "sendMessage", chat_id=7, **given)
        which = {"chat_id": 7, "message_id": sent["message_id"]}
        for method, same in (
            ("editMessageText", given),
            ("editMessageText", given | {"text": "\n<strong>a</strong>\tb  "}),
            ("editMessageReplyMarkup", {"reply_markup": BUTTONS}),
        ):
            assert (await refusal(http, method, **which, **same)).startswith(
                "Bad Request: message is not modified: specified new message content and reply markup are"
            )
        for other in ({"text": "<i>a</i> b"}, {"reply_markup": ""}, {"text": "a b"}):
            await result(http, "editMessageText", **which, **(given | other))


async def test_what_can_be_deleted() -> None:
    api = BotApi()
    ada, group = api.user(7), api.group(-5)
    said = ada.says("psst")
    foreign = ada.says("hello all", chat=group)
    async with client(api) as http:
        assert await result(http, "deleteMessage", chat_id=7, message_id=said.id)
        assert said.deleted
        sent = (await result(http, "sendMessage", chat_id=7, text="a"))["message_id"]
        for _ in range(4):
            await anyio.sleep(12 * 3600 + 1)  # the clock jumps no further than a day at once
        for given, wrong in (
            ({}, "chat identifier is not specified"),
            ({"chat_id": 7}, "message identifier is not specified"),
            ({"chat_id": 7, "message_id": said.id}, "message to delete not found"),
            ({"chat_id": -5, "message_id": foreign.id}, "message can't be deleted"),
            ({"chat_id": 7, "message_id": sent}, "message can't be deleted"),
        ):
            assert await refusal(http, "deleteMessage", **given) == f"Bad Request: {wrong}"


async def test_answers_to_messages() -> None:
    api = BotApi()
    ada = api.user(7)
    said = ada.says("hello")
    async with client(api) as http:
        sent = await result(
            http, "sendMessage", chat_id=7, text="a", reply_parameters={"message_id": said.id}
        )
        assert sent["reply_to_message"]["text"] == "hello"
        assert ada.chat.messages[0].reply_to is said
        ada.deletes(said)
        maybe = {"message_id": said.id, "allow_sending_without_reply": True}
        sent = await result(http, "sendMessage", chat_id=7, text="b", reply_parameters=maybe)
        assert "reply_to_message" not in sent
        question = {"force_reply": True, "input_field_placeholder": "a name"}
        await result(http, "sendMessage", chat_id=7, text="Who?", reply_markup=question)
    assert ada.chat.messages[2].markup == question
    assert ada.chat.messages[2].buttons == []


@pytest.mark.parametrize(
    ("interval", "chat_id", "refused"),
    [
        (0.5, 7, 86),
        (0.9, 7, 70),
        (1.0, 7, 0),
        (1.1, 7, 0),
        (2.0, -5, 11),
        (3.0, -5, 0),
        (3.1, -5, 0),
    ],
)
async def test_as_many_edits_are_too_many_as_were_counted(
    interval: float, chat_id: int, refused: int
) -> None:
    api = BotApi()
    chat = api.group(chat_id) if chat_id < 0 else api.user(chat_id).chat
    async with client(api) as http:
        sent = await result(http, "sendMessage", chat_id=chat_id, text="0")
        for number in range(1, 91):
            await anyio.sleep(interval)
            edit = {"chat_id": chat_id, "message_id": sent["message_id"], "text": f"{number}"}
            await answer(http, "editMessageText", **edit)
    assert api.throttled == refused
    assert chat.messages[0].edits == 90 - refused
    assert api.refused == []


async def test_who_waits_as_long_as_is_said_is_not_refused_again() -> None:
    api = BotApi()
    api.group(-5)
    async with client(api) as http:
        for _ in range(60):
            response = await http.post(f"/bot{TOKEN}/sendMessage", json={"chat_id": -5, "text": "a"})
            if response.status_code == 429:
                seconds = response.json()["parameters"]["retry_after"]
                assert response.headers["retry-after"] == str(seconds)
                assert response.json()["description"] == f"Too Many Requests: retry after {seconds}"
                await anyio.sleep(seconds - 0.5)
                early = await answer(http, "sendMessage", chat_id=-5, text="a")
                assert early["error_code"] == 429
                await anyio.sleep(early["parameters"]["retry_after"])
                await result(http, "sendMessage", chat_id=-5, text="a")


async def test_thirty_messages_a_second_over_all_chats() -> None:
    api = BotApi()
    for number in range(1, 41):
        api.user(number)
    async with client(api) as http:
        for number in range(1, 41):
            await answer(http, "sendMessage", chat_id=number, text="a")
        assert api.throttled == 10
        await anyio.sleep(1)
        for number in range(1, 31):
            await result(http, "sendMessage", chat_id=number, text="b")


async def test_without_limits() -> None:
    api = BotApi(limits=False)
    ada = api.user(7)
    async with client(api) as http:
        for number in range(200):
            await result(http, "sendMessage", chat_id=7, text=f"{number}")
    assert len(ada.chat.texts) == 200


# What is refused

MENUS: list[tuple[JsonValue, str]] = [
    ("{", "can't parse commands JSON object"),
    ("{}", "expected an Array of BotCommand"),
    (["stop"], "can't parse BotCommand: expected an Object"),
    ([{"description": "x"}], "can't parse BotCommand: Can't find field \"command\""),
    ([{"command": "a"}], "can't parse BotCommand: Can't find field \"description\""),
    ([{"command": "/ ", "description": "x"}], "command must be non-empty"),
    ([{"command": "a" * 33, "description": "x"}], "command length must not exceed 32"),
    ([{"command": "a", "description": " "}], "command description must be non-empty"),
    ([{"command": "a", "description": "x" * 257}], "command description length must not exceed 256"),
    ([{"command": "Stop", "description": "x"}], "BOT_COMMAND_INVALID"),
    ([{"command": "a", "description": "x"}] * 101, "BOT_COMMANDS_TOO_MUCH"),
]
MESSAGES: list[tuple[dict[str, JsonValue], str]] = [
    ({"text": ""}, "message text is empty"),
    ({"text": " \n\t"}, "text must be non-empty"),
    ({"text": "<b></b>", "parse_mode": "HTML"}, "text must be non-empty"),
    ({"text": "a" * 4097}, "message is too long"),
    ({"text": f"<b>{LETTER * 4097}</b>", "parse_mode": "HTML"}, "message is too long"),
    ({"text": "a" * 32769}, "text is too long"),
    ({"text": "<b>a</b>" * 4097, "parse_mode": "html"}, "text is too long"),
    ({"text": "\ud800"}, "strings must be encoded in UTF-8"),
    ({"text": "a", "parse_mode": "BBCode"}, "unsupported parse_mode"),
    ({"text": "*a*", "parse_mode": "MarkdownV2"}, "this server does not read Markdown"),
    ({"text": "a", "entities": "["}, "can't parse entities JSON object"),
    ({"text": "a", "entities": ["bold"]}, "can't parse MessageEntity: expected an Object"),
    ({"text": "a", "entities": [{"type": "bold"}]}, "can't parse MessageEntity: expected an Object"),
    (
        {"text": "a <b", "parse_mode": "HTML"},
        "can't parse entities: Unclosed start tag at byte offset 2",
    ),
    (
        {"text": "a &lt; <x>b</x>", "parse_mode": "HTML"},
        'can\'t parse entities: Unsupported start tag "x" at byte offset 7',
    ),
    (
        {"text": "<b>a", "parse_mode": "HTML"},
        "can't parse entities: Can't find end tag corresponding to start tag \"b\"",
    ),
    ({"text": "a", "chat_id": ""}, "chat_id is empty"),
    ({"text": "a", "chat_id": 8}, "chat not found"),
    ({"text": "a", "chat_id": "@ada"}, "chat not found"),
    ({"text": "a", "message_thread_id": 3}, "message thread not found"),
    ({"text": "a", "reply_parameters": {"message_id": 99}}, "message to be replied not found"),
    ({"text": "a", "reply_to_message_id": 99}, "message to be replied not found"),
]
KEYBOARDS: list[tuple[JsonValue, str]] = [
    ("{", "can't parse reply keyboard markup JSON object"),
    ("null", "object expected as reply markup"),
    ([], "object expected as reply markup"),
    (
        {"inline_keyboard": {"a": 1}},
        'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays',
    ),
    (
        {"inline_keyboard": [1]},
        'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays',
    ),
]
BUTTONS_REFUSED: list[tuple[JsonValue, str]] = [
    ("a", "can't parse inline keyboard button: InlineKeyboardButton must be an Object"),
    ({"url": "http://a.b"}, "can't parse inline keyboard button: Can't find field \"text\""),
    ({"text": 1}, 'can\'t parse inline keyboard button: Field "text" must be of type String'),
    ({"text": "a", "url": 1}, 'can\'t parse inline keyboard button: Field "url" must be of type String'),
    (
        {"text": "a", "style": "pink"},
        "can't parse inline keyboard button: invalid button style specified",
    ),
    (
        {"text": "a"},
        "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
    ),
    (
        {"text": "a", "callback_data": ""},
        "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
    ),
    ({"text": " ", "callback_data": "y"}, "inline keyboard button text must be non-empty"),
    ({"text": "a", "callback_data": "\N{SNOWMAN}" * 22}, "BUTTON_DATA_INVALID"),
]
EDITS: list[tuple[dict[str, JsonValue], str]] = [
    ({"text": ""}, "message text is empty"),
    ({"text": "a" * 4097}, "MESSAGE_TOO_LONG"),
    ({"chat_id": "", "message_id": ""}, "message identifier is not specified"),
    ({"chat_id": 8}, "chat not found"),
    ({"message_id": 99}, "message to edit not found"),
    ({"message_id": 1}, "message can't be edited"),
    ({"message_id": 3}, "message can't be edited"),
    ({"message_id": 4}, "message to edit not found"),
    ({"reply_markup": {"force_reply": True}}, "inline keyboard expected"),
    ({"reply_markup": {"remove_keyboard": True}}, "inline keyboard expected"),
    ({"reply_markup": {"keyboard": [["a"]]}}, "inline keyboard expected"),
    (
        {"reply_markup": {"inline_keyboard": [[{"text": "a"}]]}},
        "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
    ),
]


def _refusals() -> Iterator[tuple[str, dict[str, JsonValue], str]]:
    """Yield requests that are refused: the method, what differs from a good one, and why."""
    for commands, wrong in MENUS:
        yield "setMyCommands", {"commands": commands}, wrong
    for given, wrong in MESSAGES:
        yield "sendMessage", given, wrong
    for markup, wrong in KEYBOARDS:
        yield "sendMessage", {"reply_markup": markup}, wrong
    for button, wrong in BUTTONS_REFUSED:
        yield "sendMessage", {"reply_markup": {"inline_keyboard": [[button]]}}, wrong
    for given, wrong in EDITS:
        yield "editMessageText", given, wrong


async def test_what_is_refused() -> None:
    api = BotApi(limits=False)
    ada = api.user(7)
    ada.says("hello")
    good: dict[str, dict[str, JsonValue]] = {
        "setMyCommands": {},
        "sendMessage": {"chat_id": 7, "text": "a"},
        "editMessageText": {"chat_id": 7, "message_id": 2, "text": "x"},
    }
    async with client(api) as http:
        await result(http, "sendMessage", chat_id=7, text="one", reply_markup={})
        await result(http, "sendMessage", chat_id=7, text="two", reply_markup={"force_reply": True})
        await result(http, "sendMessage", chat_id=7, text="three")
        assert await result(http, "deleteMessage", chat_id=7, message_id=4)
        for method, given, wrong in _refusals():
            said = await refusal(http, method, **{**good[method], **given})
            assert said == f"Bad Request: {wrong}", (method, given)
    assert [call.status for call in api.refused] == [400] * len(list(_refusals()))
    assert ada.chat.texts == ["one", "two"]
    assert [post.text for post in ada.chat.everything] == ["hello", "one", "two", "three"]
