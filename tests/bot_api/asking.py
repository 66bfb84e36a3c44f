"""Plain requests to a server of the Bot API: what a bot would ask without a library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bot_api.server import TOKEN

if TYPE_CHECKING:
    import httpx
    from bot_api.rules import JsonObject

    from thinkwell.events import JsonValue

__all__ = ("answer", "refusal", "result")


async def answer(http: httpx.AsyncClient, method: str, **parameters: JsonValue) -> JsonObject:
    """Return what a request is answered, be it an error."""
    headers = {"Content-Type": "application/json"}
    response = await http.post(
        f"/bot{TOKEN}/{method}", content=json.dumps(parameters), headers=headers, timeout=60
    )
    body: JsonObject = response.json()
    return body


async def result(http: httpx.AsyncClient, method: str, **parameters: JsonValue) -> JsonValue:
    """Return the result of a request that is fulfilled."""
    body = await answer(http, method, **parameters)
    assert body["ok"], body
    return body["result"]


async def refusal(http: httpx.AsyncClient, method: str, **parameters: JsonValue) -> str:
    """Return the description of the error of a request that is not fulfilled."""
    body = await answer(http, method, **parameters)
    assert not body["ok"], body
    description: str = body["description"]
    return description
