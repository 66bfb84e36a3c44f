"""Requests to the Bot API: what goes out, what comes back, and what of it may be believed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from bot_api.canned_answers import TOKEN, Canned, done, failed, http, listening, repeated, request_of
from bot_api.server import BotApi
from bot_api.serving import serving

from thinkwell.channels.telegram import (
    BotCommand,
    CallbackQuery,
    Chat,
    ChatAddress,
    ForceReply,
    InlineButton,
    InlineKeyboard,
    Message,
    MessageGenerationStopped,
    Person,
    RepliedMessage,
    TelegramAnswerInvalid,
    TelegramApi,
    TelegramChannel,
    TelegramConflict,
    TelegramError,
    TelegramForbidden,
    TelegramNetworkError,
    TelegramRefused,
    TelegramServerError,
    TelegramThrottled,
    TelegramUnauthorized,
    Update,
)
from thinkwell.errors import ThinkwellError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from anyio.abc import SocketStream

    Ask: TypeAlias = Callable[[TelegramApi], Awaitable[object]]

CHAT = ChatAddress(77)
TOPIC = ChatAddress(-1001, 5)
BUTTONS = InlineKeyboard(
    ((InlineButton("Yes", "q1:yes", style="success"),), (InlineButton("Page", url="https://a"),))
)
WRITTEN_BUTTONS = {
    "inline_keyboard": [
        [{"text": "Yes", "callback_data": "q1:yes", "style": "success"}],
        [{"text": "Page", "url": "https://a"}],
    ]
}
NO_PREVIEW = {"is_disabled": True}


METHODS: list[tuple[Ask, str, object, object, object]] = [
    (
        lambda api: api.send_message(CHAT, "Hi"),
        "sendMessage",
        {"chat_id": 77, "text": "Hi", "link_preview_options": NO_PREVIEW},
        {"message_id": 9},
        9,
    ),
    (
        lambda api: api.send_message(
            TOPIC, "<b>Hi</b>", parse_mode="HTML", reply_markup=BUTTONS, reply_to=3, quiet=True
        ),
        "sendMessage",
        {
            "chat_id": -1001,
            "message_thread_id": 5,
            "text": "<b>Hi</b>",
            "parse_mode": "HTML",
            "reply_markup": WRITTEN_BUTTONS,
            "disable_notification": True,
            "link_preview_options": NO_PREVIEW,
            "reply_parameters": {"message_id": 3, "allow_sending_without_reply": True},
        },
        {"message_id": 10},
        10,
    ),
    (
        lambda api: api.send_message(
            CHAT, "Name?", reply_markup=ForceReply(force_reply=True, input_field_placeholder="a name")
        ),
        "sendMessage",
        {
            "chat_id": 77,
            "text": "Name?",
            "link_preview_options": NO_PREVIEW,
            "reply_markup": {"force_reply": True, "input_field_placeholder": "a name"},
        },
        {"message_id": 11},
        11,
    ),
    (
        lambda api: api.edit_message_text(TOPIC, 9, "<b>Ho</b>", parse_mode="HTML", reply_markup=BUTTONS),
        "editMessageText",
        {
            "chat_id": -1001,
            "message_id": 9,
            "text": "<b>Ho</b>",
            "parse_mode": "HTML",
            "reply_markup": WRITTEN_BUTTONS,
            "link_preview_options": NO_PREVIEW,
        },
        {"message_id": 9},
        True,
    ),
    (
        lambda api: api.edit_reply_markup(CHAT, 9),
        "editMessageReplyMarkup",
        {"chat_id": 77, "message_id": 9},
        {"message_id": 9},
        True,
    ),
    (
        lambda api: api.edit_reply_markup(CHAT, 9, InlineKeyboard()),
        "editMessageReplyMarkup",
        {"chat_id": 77, "message_id": 9, "reply_markup": {"inline_keyboard": []}},
        True,
        True,
    ),
    (
        lambda api: api.delete_message(CHAT, 9),
        "deleteMessage",
        {"chat_id": 77, "message_id": 9},
        True,
        True,
    ),
    (
        lambda api: api.answer_callback_query("q"),
        "answerCallbackQuery",
        {"callback_query_id": "q"},
        True,
        True,
    ),
    (
        lambda api: api.answer_callback_query("q", "Done", alert=True),
        "answerCallbackQuery",
        {"callback_query_id": "q", "text": "Done", "show_alert": True},
        True,
        True,
    ),
    (
        lambda api: api.send_chat_action(TOPIC),
        "sendChatAction",
        {"chat_id": -1001, "message_thread_id": 5, "action": "typing"},
        True,
        None,
    ),
    (
        lambda api: api.set_my_commands([BotCommand("stop", "Stop it")]),
        "setMyCommands",
        {"commands": [{"command": "stop", "description": "Stop it"}]},
        True,
        None,
    ),
    (
        lambda api: api.send_message_draft(CHAT, 4, "So far", parse_mode="HTML", can_stop=True),
        "sendMessageDraft",
        {"chat_id": 77, "draft_id": 4, "text": "So far", "parse_mode": "HTML", "can_stop": True},
        True,
        None,
    ),
    (lambda api: api.delete_webhook(), "deleteWebhook", {}, True, None),
    (lambda api: api.get_updates(), "getUpdates", {"timeout": 0, "limit": 100}, [], []),
    (
        lambda api: api.get_updates(8, wait=50, limit=10, allowed=["message"]),
        "getUpdates",
        {"offset": 8, "timeout": 50, "limit": 10, "allowed_updates": ["message"]},
        [],
        [],
    ),
]


@pytest.mark.parametrize(("ask", "method", "parameters", "answer", "result"), METHODS)
async def test_a_method_asks_for_what_the_bot_api_has(
    ask: Callable[[TelegramApi], Awaitable[object]],
    method: str,
    parameters: object,
    answer: object,
    result: object,
) -> None:
    canned = Canned(done(answer))
    async with canned.api() as api:
        assert await ask(api) == result
    assert canned.asked == [(method, parameters)]
    assert canned.paths == [f"/bot{TOKEN}/{method}"]


async def test_what_the_bot_is_called() -> None:
    canned = Canned(
        done({"id": 5, "is_bot": True, "first_name": "Think", "username": "think_bot", "new": [1]})
    )
    async with canned.api() as api:
        me = await api.get_me()
    assert (me.id, me.first_name, me.username) == (5, "Think", "think_bot")
    assert api.bot_id == 4839574812


UPDATES: list[object] = [
    {
        "update_id": 1,
        "message": {
            "message_id": 2,
            "date": 1700000000,
            "chat": {"id": 77, "type": "private", "first_name": "Ann"},
            "from": {"id": 77, "is_bot": False, "first_name": "Ann", "last_name": "B", "username": "ann"},
            "text": "hello",
            "entities": [{"type": "bold", "offset": 0, "length": 5}],
            "reply_to_message": {"message_id": 1, "from": {"id": 5, "is_bot": True, "first_name": "Think"}},
        },
    },
    {
        "update_id": 2,
        "callback_query": {
            "id": "q7",
            "from": {"id": 77, "first_name": "Ann"},
            "chat_instance": "x",
            "data": "q1:yes",
            "message": {"message_id": 2, "date": 0, "chat": {"id": 77, "type": "private"}},
        },
    },
    {
        "update_id": 3,
        "stopped_message_generation": {
            "chat": {"id": 77, "type": "private"},
            "draft_id": 4,
            "message_thread_id": 6,
        },
    },
    {"update_id": 4, "chat_boost": {"anything": None}},
    {"update_id": 5, "message": {"message_id": "two", "chat": {"id": 77}}},
    {"update_id": "six"},
    {"update_id": -7},
    "eight",
]


async def test_updates_are_read_and_what_cannot_be_read_has_a_fault() -> None:
    async with Canned(done(UPDATES)).api() as api:
        updates = await api.get_updates()
    ann = Person(id=77, first_name="Ann", last_name="B", username="ann")
    private = Chat(id=77, type="private")
    think = Person(id=5, is_bot=True, first_name="Think")
    assert updates[:4] == [
        Update(
            update_id=1,
            message=Message(
                message_id=2,
                date=1700000000,
                chat=private,
                from_=ann,
                text="hello",
                reply_to_message=RepliedMessage(message_id=1, from_=think),
            ),
        ),
        Update(
            update_id=2,
            callback_query=CallbackQuery(
                id="q7",
                from_=Person(id=77, first_name="Ann"),
                data="q1:yes",
                message=Message(message_id=2, chat=private),
            ),
        ),
        Update(
            update_id=3,
            stopped_message_generation=MessageGenerationStopped(
                chat=private, draft_id=4, message_thread_id=6
            ),
        ),
        Update(update_id=4),
    ]
    assert [(update.update_id, update.fault) for update in updates[4:]] == [
        (5, "Expected `int`, got `str` - at `$.message.message_id`")
    ]
    stopped = updates[2].stopped_message_generation
    assert stopped is not None
    assert stopped.address == ChatAddress(77, 6)


def test_only_topics_are_a_part_of_the_address() -> None:
    group = Chat(id=-1001, type="supergroup", is_forum=True)
    in_topic = Message(message_id=1, chat=group, message_thread_id=5, is_topic_message=True)
    in_thread = Message(message_id=1, chat=group, message_thread_id=5)
    assert in_topic.address == ChatAddress(-1001, 5)
    assert in_thread.address == ChatAddress(-1001)


@pytest.mark.parametrize("text", ["77", "-100123", "-100123:5"])
def test_an_address_is_what_it_is_written_as(text: str) -> None:
    assert str(ChatAddress.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "x", "0", "07", "1:", "1:-2", "1:2:3", " 1", "1\n", "+1", "١", "9" * 20]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a chat"):
        ChatAddress.parse(text)


# What Telegram refuses


async def test_an_edit_that_changes_nothing_is_none() -> None:
    same = "Bad Request: message is not modified: specified new message content and reply markup are the same"
    canned = Canned(failed(400, same), failed(400, same))
    async with canned.api() as api:
        assert not await api.edit_message_text(CHAT, 9, "Same")
        assert not await api.edit_reply_markup(CHAT, 9, BUTTONS)


async def test_what_is_gone_cannot_be_deleted() -> None:
    async with Canned(failed(400, "Bad Request: message to delete not found")).api() as api:
        assert not await api.delete_message(CHAT, 9)


async def test_a_press_may_be_too_old_to_be_answered() -> None:
    old = "Bad Request: query is too old and response timeout expired or query ID is invalid"
    async with Canned(failed(400, old)).api() as api:
        assert not await api.answer_callback_query("q")


REFUSED: list[Ask] = [
    lambda api: api.edit_message_text(CHAT, 9, "Other"),
    lambda api: api.delete_message(CHAT, 9),
    lambda api: api.answer_callback_query("q"),
]


@pytest.mark.parametrize("ask", REFUSED)
async def test_other_refusals_are_errors(ask: Ask) -> None:
    async with Canned(failed(400, "Bad Request: BUTTON_DATA_INVALID")).api() as api:
        with pytest.raises(TelegramRefused, match="BUTTON_DATA_INVALID") as caught:
            await ask(api)
    assert caught.value.reason == "other"


@pytest.mark.parametrize(
    ("answer", "kind", "attributes", "says"),
    [
        (failed(401, "Unauthorized"), TelegramUnauthorized, {"code": 401}, "BotFather"),
        (failed(404, "Not Found"), TelegramUnauthorized, {"code": 404}, "BotFather"),
        (
            failed(421, "Misdirected Request: unallowed token specified"),
            TelegramUnauthorized,
            {},
            "BotFather",
        ),
        (
            failed(404, "Not Found: method not found"),
            TelegramRefused,
            {"reason": "other"},
            "method not found",
        ),
        (
            failed(403, "Forbidden: bot was blocked by the user"),
            TelegramForbidden,
            {"code": 403},
            "has to start",
        ),
        (
            failed(409, "Conflict: terminated by other getUpdates request; make sure that only one"),
            TelegramConflict,
            {"webhook": False},
            "end the other program",
        ),
        (
            failed(409, "Conflict: can't use getUpdates method while webhook is active; use"),
            TelegramConflict,
            {"webhook": True},
            "delete_webhook()",
        ),
        (
            failed(429, "Too Many Requests: retry after 7", retry_after=7),
            TelegramThrottled,
            {"retry_after": 7.0},
            "wait 7 s",
        ),
        (failed(429, "Too Many Requests"), TelegramThrottled, {"retry_after": None}, "; wait"),
        (failed(500, "Internal Server Error: restart"), TelegramServerError, {"code": 500}, "later"),
        (failed(413, "Request Entity Too Large"), TelegramRefused, {"code": 413}, "Too Large (413)"),
        (
            failed(400, "Bad Request: can't parse entities: Unsupported start tag"),
            TelegramRefused,
            {"reason": "entities"},
            "tag",
        ),
        (
            failed(400, "Bad Request: message is too long"),
            TelegramRefused,
            {"reason": "too_long"},
            "too long",
        ),
        (failed(400, "Bad Request: message text is empty"), TelegramRefused, {"reason": "empty"}, "empty"),
        (
            failed(400, "Bad Request: message to edit not found"),
            TelegramRefused,
            {"reason": "message_gone"},
            "edit",
        ),
        (
            failed(400, "Bad Request: message can't be edited"),
            TelegramRefused,
            {"reason": "message_gone"},
            "edited",
        ),
        (failed(400, "Bad Request: chat not found"), TelegramRefused, {"reason": "chat_gone"}, "chat"),
        (
            failed(400, "Bad Request: message thread not found"),
            TelegramRefused,
            {"reason": "chat_gone"},
            "thread",
        ),
        (
            failed(
                400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1005
            ),
            TelegramRefused,
            {"reason": "migrated", "migrated_to": -1005},
            "supergroup",
        ),
        (failed(400, ""), TelegramRefused, {"description": "no description"}, "no description (400)"),
        (
            failed(400, "Bad\x1b[31m\nRequest\u202e"),
            TelegramRefused,
            {"description": "Bad Request\\u202e"},
            "Bad",
        ),
        (httpx.Response(502, html="<h1>Bad Gateway</h1>"), TelegramServerError, {"code": 502}, "HTTP 502"),
        (
            httpx.Response(429, text="slow down", headers={"Retry-After": "3"}),
            TelegramThrottled,
            {"retry_after": 3.0},
            "wait 3 s",
        ),
        (
            httpx.Response(429, json={"ok": False}, headers={"Retry-After": "soon"}),
            TelegramThrottled,
            {"retry_after": None},
            "no description (429)",
        ),
    ],
)
async def test_an_error_tells_what_happened_and_what_to_do(
    answer: httpx.Response, kind: type[TelegramError], attributes: dict[str, object], says: str
) -> None:
    async with Canned(answer).api() as api:
        with pytest.raises(TelegramError) as caught:
            await api.send_message(CHAT, "Hi")
    error = caught.value
    assert type(error) is kind
    assert isinstance(error, ThinkwellError)
    assert {name: getattr(error, name) for name in attributes} == attributes
    assert says in str(error)
    assert str(error).startswith("Telegram, sendMessage: ")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Please log in</html>",
        b"[]",
        b"{}",
        b'{"ok": 1}',
        b'{"ok": true',
        b'{"ok": true, "result": 5}',
        b'{"ok": true, "result": {"message_id": "5"}}',
        b'{"ok": true, "result": {"message_id": 5.5}}',
        b'{"ok": true, "result": null}',
        b'{"ok": true}',
        b'{"ok": true, "result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"ok": false, "error_code": 429, "parameters": {"retry_after": -1}}',
        b'{"ok": false, "error_code": "400", "description": "Bad Request"}',
        b"\xff\xfe\x00",
    ],
)
async def test_answers_of_another_form_are_told_apart(body: bytes) -> None:
    async with Canned(httpx.Response(200, content=body)).api() as api:
        with pytest.raises(TelegramAnswerInvalid, match="base_url or a proxy"):
            await api.send_message(CHAT, "Hi")


@pytest.mark.parametrize("result", [5, "updates", {}, None])
async def test_updates_that_are_no_list(result: object) -> None:
    async with Canned(done(result)).api() as api:
        with pytest.raises(TelegramAnswerInvalid, match="the result is malformed"):
            await api.get_updates()


async def test_a_redirection_is_not_followed() -> None:
    canned = Canned(httpx.Response(302, headers={"Location": "https://elsewhere.example/"}))
    async with canned.api() as api:
        with pytest.raises(TelegramAnswerInvalid, match="302"):
            await api.get_me()
    assert len(canned.asked) == 1


# Texts that no JSON may have


async def test_half_a_surrogate_pair_does_not_spoil_the_other_updates() -> None:
    message = '{"message_id":1,"chat":{"id":7},"text":"%s"}'
    texts = [r"\ud83d\ude00 \ud83d", r"\\ud83d \ude00", "fine"]
    items = [f'{{"update_id":{n},"message":{message % text}}}' for n, text in enumerate(texts)]
    body = f'{{"ok":true,"result":[{",".join(items)}]}}'
    async with Canned(httpx.Response(200, text=body)).api() as api:
        updates = await api.get_updates()
    assert [update.message and update.message.text for update in updates] == ["😀 �", r"\ud83d �", "fine"]


async def test_an_update_that_is_no_utf_8_does_not_spoil_the_others() -> None:
    items = b'{"update_id":1,"message":{"message_id":1,"chat":{"id":7},"text":"\xff"}},{"update_id":2}'
    async with Canned(httpx.Response(200, content=b'{"ok":true,"result":[' + items + b"]}")).api() as api:
        broken, fine = await api.get_updates()
    assert "utf-8" in (broken.fault or "").lower()  # newer versions of msgspec have words of their own
    assert fine == Update(update_id=2)


async def test_half_a_surrogate_pair_is_not_sent() -> None:
    canned = Canned(done({"message_id": 1}))
    async with canned.api() as api:
        await api.send_message(CHAT, "\ud83d 😀 \\ud83d", reply_markup=BUTTONS)
    asked = canned.asked[0][1]
    assert asked["text"] == "� 😀 \\ud83d"
    assert asked["reply_markup"] == WRITTEN_BUTTONS


# Sizes and times


@pytest.mark.parametrize("told", [True, False])
async def test_an_answer_that_is_far_too_long_is_not_kept(told: bool) -> None:
    headers = {"Content-Length": str(33 << 20)} if told else {}
    answer = httpx.Response(200, content=repeated(b"x" * (1 << 20), 33), headers=headers)
    async with Canned(answer).api() as api:
        with pytest.raises(TelegramAnswerInvalid, match="longer than 33554432 bytes"):
            await api.get_me()


async def test_a_connection_that_does_not_come_about_has_sent_nothing() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with TelegramApi(TOKEN, base_url=f"http://127.0.0.1:{port}") as api:
        with pytest.raises(TelegramNetworkError, match="check the network") as caught:
            await api.send_message(CHAT, "Hi")
    assert not caught.value.sent
    assert "ConnectError" in caught.value.description


async def test_a_connection_that_breaks_may_have_sent_it() -> None:
    async def breaks(stream: SocketStream) -> None:
        await request_of(stream)

    async with listening(breaks) as address, TelegramApi(TOKEN, base_url=address) as api:
        with pytest.raises(TelegramNetworkError, match="RemoteProtocolError") as caught:
            await api.send_message(CHAT, "Hi")
    assert caught.value.sent
    assert caught.value.code == 0


async def test_an_exception_without_words() -> None:
    def silent(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("", request=request)

    client = httpx.AsyncClient(transport=httpx.MockTransport(silent))
    async with client, TelegramApi(TOKEN, client=client) as api:
        with pytest.raises(TelegramNetworkError, match="getMe: ReadError;"):
            await api.get_me()


# Who sends


async def test_a_client_of_the_callers_is_left_open() -> None:
    canned = Canned()
    async with canned.api() as api:
        await api.delete_webhook()
    assert not canned.client.is_closed


@pytest.mark.parametrize("again", [False, True])
async def test_outside_of_its_block_it_does_nothing(again: bool) -> None:
    api = TelegramApi(TOKEN)
    if again:
        async with api:
            pass
    with pytest.raises(RuntimeError, match="inside its block"):
        await api.get_me()


async def test_a_server_on_this_machine_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(stream: SocketStream) -> None:
        head = await request_of(stream)
        assert b"/tele/gram/bot" in head.split(b"\r\n")[0]
        await stream.send(http(json.dumps({"ok": True, "result": {"id": 1}}).encode()))

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://192.0.2.1:9")
    async with listening(answers) as address, TelegramApi(TOKEN, base_url=f"{address}/tele/gram/") as api:
        assert (await api.get_me()).id == 1


@pytest.mark.parametrize(
    "base_url", ["https://api.example/x", "http://localhost:1", "http://127.9.9.9", "http://[::1]:8"]
)
def test_addresses_that_may_be_used(base_url: str) -> None:
    assert base_url in repr(TelegramApi(TOKEN, base_url=base_url))


@pytest.mark.parametrize(
    ("base_url", "says"),
    [
        ("http://api.telegram.org", "unencrypted"),
        ("http://10.0.0.1:8081", "unencrypted"),
        ("http://localhost.example", "unencrypted"),
        ("ftp://localhost", "https://"),
        ("https://", "https://"),
        ("api.telegram.org", "https://"),
        ("https://bot:pa55word@api.example", "no user"),
        ("https://api.example?key=pa55word", "no user"),
        ("https://api.example:port", "is not an address"),
    ],
)
def test_addresses_that_may_not(base_url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        TelegramApi(TOKEN, base_url=base_url)
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_request_needs_some_time(timeout: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        TelegramApi(TOKEN, timeout=timeout)


def test_without_httpx_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['httpx'] = None; import thinkwell.channels, thinkwell.channels.telegram"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "ImportError: thinkwell.channels.telegram needs httpx" in run.stderr
    assert "pip install 'thinkwell[telegram]'" in run.stderr


async def test_over_real_connections() -> None:
    server = BotApi()
    ann = server.user(7, "Ann")
    with serving(server) as address, anyio.fail_after(30):
        async with TelegramApi(server.token, base_url=address) as api:
            assert (await api.get_me()).username == server.username
            sent = await api.send_message(ChatAddress(7), "<b>Hi</b>", parse_mode="HTML")
            assert await api.edit_message_text(ChatAddress(7), sent, "Ho")
            assert not await api.edit_message_text(ChatAddress(7), sent, "Ho")
            with pytest.raises(TelegramRefused, match="parse entities") as caught:
                await api.send_message(ChatAddress(7), "<b>Hi", parse_mode="HTML")
            assert caught.value.reason == "entities"
        async with TelegramChannel(server.token, base_url=address, allowed=[7]) as channel:
            messages = channel.messages()
            async with anyio.create_task_group() as group:
                group.start_soon(anext, messages)
                await server.until(lambda: server.polled)
                group.cancel_scope.cancel()
            ann.says("one")
            message = await anext(messages)
    assert message.text == "one"
    assert server.pending == 0
    assert ann.chat.texts == ["Ho"]
