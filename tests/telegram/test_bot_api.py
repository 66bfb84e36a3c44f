"""The server of the Bot API that the tests use: requests, answers and what a bot may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from bot_api.server import TOKEN, BotApi
from bot_api.serving import client
from limits.virtual import Backend, virtual_backend

if TYPE_CHECKING:
    import httpx

    from thinkwell.events import JsonValue


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


async def ask(http: httpx.AsyncClient, method: str, **parameters: JsonValue) -> JsonValue:
    """Return what is answered, errors too."""
    answer: JsonValue = (await http.post(f"/bot{TOKEN}/{method}", json=parameters)).json()
    return answer


async def refusal(http: httpx.AsyncClient, method: str, **parameters: JsonValue) -> str:
    answer = await ask(http, method, **parameters)
    assert answer["ok"] is False
    assert str(answer["error_code"])[0] == "4"
    description: str = answer["description"]
    return description


async def result(http: httpx.AsyncClient, method: str, **parameters: JsonValue) -> JsonValue:
    answer = await ask(http, method, **parameters)
    assert answer["ok"], answer
    return answer["result"]


@pytest.mark.parametrize(
    ("interval", "group", "refused"),
    [
        (0.5, False, 86),
        (0.9, False, 70),
        (1.0, False, 0),
        (1.1, False, 0),
        (2.0, True, 11),
        (3.0, True, 0),
        (3.1, True, 0),
    ],
)
async def test_as_many_edits_are_too_many_as_were_counted(interval: float, group: bool, refused: int) -> None:
    api = BotApi()
    chat = api.group(-100) if group else api.user(7).chat
    async with client(api) as http:
        sent = await result(http, "sendMessage", chat_id=chat.id, text="0")
        for number in range(1, 91):
            await anyio.sleep(interval)
            await ask(
                http, "editMessageText", chat_id=chat.id, message_id=sent["message_id"], text=f"{number}"
            )
    assert api.throttled == refused
    assert chat.messages[0].edits == 90 - refused
