"""The token is a part of every address, and is seen nowhere."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from typing import TYPE_CHECKING

import httpx
import pytest
from bot_api.canned_answers import SECRET, TOKEN, Canned, done, failed, http, listening, request_of

from thinkwell.channels.telegram import (
    ChatAddress,
    TelegramApi,
    TelegramError,
    TelegramNetworkError,
    TelegramRefused,
)

if TYPE_CHECKING:
    from anyio.abc import SocketStream


@pytest.mark.parametrize(
    "token",
    [
        "",
        "secret",
        ":secret",
        "12:",
        "012:secret",
        "12:sec/ret",
        "12:sec ret",
        "12:sécret",
        "12:secret:x",
        "bot12:secret",
    ],
)
def test_what_is_no_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(ValueError, match="copy it from BotFather") as caught:
        TelegramApi(token)
    assert "cret" not in str(caught.value)


async def test_a_line_feed_at_its_end_does_no_harm() -> None:
    canned = Canned()
    async with TelegramApi(f" {TOKEN}\n", client=canned.client) as api:
        await api.delete_webhook()
    assert canned.paths == [f"/bot{TOKEN}/deleteWebhook"]


def test_it_is_not_shown() -> None:
    assert repr(TelegramApi(TOKEN)) == "TelegramApi(https://api.telegram.org/bot4839574812:…)"


async def test_no_log_has_it(caplog: pytest.LogCaptureFixture) -> None:
    async def answers(stream: SocketStream) -> None:
        while b"getMe" in await request_of(stream):
            await stream.send(http(json.dumps({"ok": True, "result": {"id": 1}}).encode()))
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\ncut")

    with caplog.at_level(logging.DEBUG):
        async with listening(answers) as address, TelegramApi(TOKEN, base_url=address) as api:
            await api.get_me()
            await api.get_me()
            with pytest.raises(TelegramNetworkError):
                await api.delete_webhook()
    told = caplog.text + "".join(repr(record.args) + repr(vars(record)) for record in caplog.records)
    assert f"HTTP Request: POST {address}/bot4839574812:…/getMe" in caplog.text
    assert "httpcore.http11" in {record.name for record in caplog.records}
    assert SECRET not in told


async def test_what_logs_the_path_below_httpx_does_not_have_it(caplog: pytest.LogCaptureFixture) -> None:
    below = logging.getLogger("hpack.hpack")  # of HTTP/2, which a client of the caller's may speak
    filters = list(below.filters)
    with caplog.at_level(logging.DEBUG):
        async with TelegramApi(TOKEN):
            below.debug("Adding %s to the header table", (b":path", f"/bot{TOKEN}/getMe".encode()))
            below.debug("Adding %s to the header table", (b":method", b"POST"))
    assert caplog.messages[-2:] == [
        "Adding (b':path', b'/bot4839574812:…/getMe') to the header table",
        "Adding (b':method', b'POST') to the header table",
    ]
    assert below.filters == filters


async def test_no_error_has_it() -> None:
    def faults(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError(f"cannot read {request.url.scheme}://x{request.url.path}", request=request)

    broken = httpx.AsyncClient(transport=httpx.MockTransport(faults))
    echo = Canned(
        failed(400, f"Bad Request: /bot{TOKEN}/sendMessage is odd"),
        httpx.Response(200, content=f'{{"ok": "{TOKEN}"}}'),
        httpx.Response(404, text=f"/bot{TOKEN}/getMe is not here"),
        done({"message_id": TOKEN}),
    )
    caught: list[TelegramError] = []
    for client, times in ((broken, 1), (echo.client, 4)):
        async with TelegramApi(TOKEN, client=client) as api:
            for _ in range(times):
                with pytest.raises(TelegramError) as info:
                    await api.send_message(ChatAddress(1), "Hi")
                caught.append(info.value)
    for error in caught:
        shown = "".join(traceback.format_exception(error))
        assert SECRET not in shown + repr(error) + repr(vars(error)) + repr(error.args)
        assert SECRET.encode() not in pickle.dumps(error)
    assert caught[0].__context__ is None  # the exception of httpx has the request, and that has the address
    assert isinstance(caught[1], TelegramRefused)
    assert caught[1].description == "Bad Request: /bot4839574812:…/sendMessage is odd"


async def test_a_request_that_is_looked_at_shows_it_only_where_it_has_to_be() -> None:
    shown: list[str] = []

    async def look(request: httpx.Request) -> None:
        shown.append(f"{request!r} {request.url} {request.url!r}")

    async with (
        httpx.AsyncClient(
            transport=httpx.MockTransport(lambda _: done(True)), event_hooks={"request": [look]}
        ) as client,
        TelegramApi(TOKEN, client=client) as api,
    ):
        await api.delete_webhook()
    assert SECRET not in shown[0]
    assert "/bot4839574812:…/deleteWebhook" in shown[0]
