"""The server of the Bot API that the tests use: what can go wrong, in memory and on a port."""

from __future__ import annotations

import anyio
import httpx
import pytest
from bot_api.asking import answer, result
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client
from bot_api.values import Trouble
from limits.virtual import Stopwatch

pytestmark = pytest.mark.virtual_time


SENDING = f"/bot{TOKEN}/sendMessage"
MESSAGE = {"chat_id": "7", "text": "a"}


@pytest.mark.parametrize(
    ("trouble", "error", "done"),
    [
        (Trouble.unreachable(), httpx.ConnectError, False),
        (Trouble.lost(), httpx.ReadError, True),
        (Trouble.slow(10), httpx.ReadTimeout, True),
    ],
)
async def test_connections_that_fail(trouble: Trouble, error: type[Exception], done: bool) -> None:
    api = BotApi()
    ada = api.user(7)
    api.trouble("sendMessage", trouble)
    async with client(api) as http:
        with pytest.raises(error):
            await http.post(SENDING, data=MESSAGE)
        assert ada.chat.texts == (["a"] if done else [])
        await http.post(SENDING, data=MESSAGE)
    assert len(ada.chat.texts) == 1 + done
    assert [call.trouble for call in api.calls] == [trouble, None]


@pytest.mark.parametrize(
    ("trouble", "status", "content_type", "done"),
    [
        (Trouble.error(500), 500, "application/json", False),
        (Trouble.error(500, done=True), 500, "application/json", True),
        (Trouble.error(502), 502, "text/html", False),
        (Trouble.error(504, done=True), 504, "text/html", True),
        (Trouble.garbage(), 200, "application/json", True),
    ],
)
async def test_servers_that_fail(trouble: Trouble, status: int, content_type: str, done: bool) -> None:
    api = BotApi()
    ada = api.user(7)
    api.trouble("*", trouble)
    async with client(api) as http:
        response = await http.post(SENDING, data=MESSAGE)
    assert response.status_code == status
    assert response.headers["content-type"] == content_type
    assert ada.chat.texts == (["a"] if done else [])
    assert api.calls[0].status == status
    assert api.refused == []
    if content_type == "text/html":
        assert response.text.startswith("<html>")
    elif status == 500:
        assert response.json() == {"ok": False, "error_code": 500, "description": "Internal Server Error"}
    else:
        with pytest.raises(ValueError, match="Unterminated string"):
            response.json()


async def test_an_answer_that_is_slow() -> None:
    api = BotApi()
    ada = api.user(7)
    api.trouble("sendMessage", Trouble.slow(4))
    watch = Stopwatch()
    async with client(api) as http, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: http.post(SENDING, data=MESSAGE))
        await api.until(lambda: ada.chat.texts == ["a"])
        assert watch.seconds == 0
    assert watch.seconds == 4
    assert api.calls[0].ended == api.calls[0].at + 4


async def test_a_429_holds_for_what_counts_in_that_chat() -> None:
    api = BotApi()
    api.user(7)
    api.user(8)
    api.trouble("editMessageText", Trouble.throttled(30))
    api.trouble("getMe", Trouble.throttled(5))
    async with client(api) as http:
        sent = (await result(http, "sendMessage", chat_id=7, text="a"))["message_id"]
        refused = await answer(http, "editMessageText", chat_id=7, message_id=sent, text="b")
        assert refused == {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 30",
            "parameters": {"retry_after": 30},
        }
        await anyio.sleep(10)
        refused = await answer(http, "sendMessage", chat_id=7, text="b")
        assert refused["parameters"] == {"retry_after": 20}
        await result(http, "sendMessage", chat_id=8, text="b")
        await result(http, "sendChatAction", chat_id=7, action="typing")
        assert (await answer(http, "getMe"))["error_code"] == 429
        await result(http, "getMe")
        await anyio.sleep(20)
        await result(http, "sendMessage", chat_id=7, text="b")
    assert api.throttled == 3


async def test_troubles_come_in_the_order_of_their_script() -> None:
    api = BotApi()
    async with client(api) as http:

        async def statuses(count: int) -> list[int]:
            return [(await http.get(f"/bot{TOKEN}/getMe")).status_code for _ in range(count)]

        api.trouble("getMe", Trouble.error(500), None, Trouble.error(502))
        api.trouble("*", Trouble.error(503))
        api.trouble("sendMessage", Trouble.error(504))
        assert await statuses(5) == [500, 200, 502, 503, 200]
        api.trouble("getMe", Trouble.error(500))
        api.no_trouble()
        assert await statuses(1) == [200]


async def test_a_seed_decides_what_goes_wrong() -> None:
    async def statuses(seed: int) -> list[int]:
        api = BotApi()
        troubles = [(Trouble.error(500), 0.2), (Trouble.error(502), 0.3)]
        api.chaos(seed, troubles, methods=["getMe"])
        async with client(api) as http:
            await result(http, "getWebhookInfo")
            found = [(await http.get(f"/bot{TOKEN}/getMe")).status_code for _ in range(100)]
            api.no_trouble()
            await result(http, "getMe")
        return found

    first = await statuses(1)
    assert first == await statuses(1)
    assert first != await statuses(2)
    assert 10 < first.count(500) < 30
    assert 20 < first.count(502) < 40
    api = BotApi()
    api.chaos(3, [(Trouble.error(500), 1.0)])
    async with client(api) as http:
        assert (await answer(http, "getMe"))["error_code"] == 500


async def test_an_update_whose_answer_is_lost_comes_again() -> None:
    api = BotApi()
    api.user(7).says("a")
    api.trouble("getUpdates", Trouble.lost())
    async with client(api) as http:
        with pytest.raises(httpx.ReadError):
            await result(http, "getUpdates")
        await anyio.sleep(1)
        assert len(await result(http, "getUpdates")) == 1


async def test_a_client_that_leaves_while_it_asks_is_forgotten() -> None:
    api = BotApi()

    async def receive() -> dict[str, object]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        raise AssertionError(message)

    await api({"type": "http"}, receive, send)
    assert api.calls == []
