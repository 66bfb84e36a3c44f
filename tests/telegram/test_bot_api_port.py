"""The server of the Bot API that the tests use, on a loopback port, in real time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import serving
from bot_api.values import Trouble

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

SENDING = f"/bot{TOKEN}/sendMessage"
POLLING = f"/bot{TOKEN}/getUpdates?timeout=50"
MESSAGE = {"chat_id": "7", "text": "a"}


@pytest.fixture
def api() -> BotApi:
    return BotApi()


@pytest.fixture
async def http(api: BotApi) -> AsyncGenerator[httpx.AsyncClient]:
    with serving(api) as address:
        async with httpx.AsyncClient(base_url=address, timeout=10) as http:
            yield http


async def test_a_poll_whose_client_leaves_has_gone(api: BotApi, http: httpx.AsyncClient) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: http.get(POLLING))
            await api.until(lambda: api.polled)
            tasks.cancel_scope.cancel()
        await api.until(lambda: not api.polled)
    assert api.calls[0].ended is None


@pytest.mark.parametrize("done", [False, True])
async def test_a_connection_that_fails(api: BotApi, http: httpx.AsyncClient, done: bool) -> None:
    ada = api.user(7)
    api.trouble("sendMessage", Trouble.lost() if done else Trouble.unreachable())
    with pytest.raises(httpx.RemoteProtocolError):
        await http.post(SENDING, data=MESSAGE)
    assert ada.chat.texts == (["a"] if done else [])
    assert (await http.post(SENDING, data=MESSAGE)).status_code == 200


async def test_who_polls_does_not_hold_the_server_up() -> None:
    api = BotApi()
    with anyio.fail_after(30):
        with serving(api) as address:
            async with anyio.create_task_group() as tasks, httpx.AsyncClient(base_url=address) as http:

                async def poll() -> None:
                    await http.get(POLLING, timeout=60)

                tasks.start_soon(poll)
                await api.until(lambda: api.polled)
                tasks.cancel_scope.cancel()
    assert not any(thread.name.startswith("Bot API") for thread in threading.enumerate())


async def test_the_server_ends_before_its_clients() -> None:
    api = BotApi()
    failed: list[str] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks, httpx.AsyncClient(timeout=60) as http:
            with serving(api) as address:

                async def poll() -> None:
                    try:
                        response = await http.get(address + POLLING)
                    except httpx.TransportError as error:
                        failed.append(type(error).__name__)
                    else:
                        failed.append(str(response.status_code))

                tasks.start_soon(poll)
                await api.until(lambda: api.polled)
    assert len(failed) == 1, "it was told, in whatever way"
    assert failed != ["200"]


def test_the_server_without_an_event_loop_of_the_test() -> None:
    api = BotApi()
    ada = api.user(7)
    ada.says("hello")
    with serving(api) as address:
        (update,) = httpx.get(f"{address}{POLLING}").json()["result"]
        assert update["message"]["text"] == "hello"
        httpx.post(f"{address}{SENDING}", data=MESSAGE)
    assert ada.chat.texts == ["a"]
