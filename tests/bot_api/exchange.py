"""One request and its answer, in ASGI: what was asked, and how to answer or to break off."""

from __future__ import annotations

import json
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

from bot_api.rules import as_object

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

__all__ = ("BREAK_OFF", "Exchange", "Message", "Receive", "Scope", "Send", "parameters")

Scope: TypeAlias = "MutableMapping[str, Any]"
Message: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[Message]]"
Send: TypeAlias = "Callable[[Message], Awaitable[None]]"

BREAK_OFF = "bot_api.break_off"
"""An extension of ASGI: the name of a message that tells how the connection fails."""

PAGE = (
    "<html>\r\n<head><title>{status} {reason}</title></head>\r\n<body>\r\n"
    "<center><h1>{status} {reason}</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)
"""What the proxy in front of Telegram's server answers where there is none."""

REASONS = {502: "Bad Gateway", 503: "Service Temporarily Unavailable", 504: "Gateway Time-out"}


class Exchange:
    """A request that was read, and is to be answered once."""

    def __init__(self, scope: Scope, body: bytes, send: Send) -> None:
        self.path: str = scope["path"]
        self.parameters = parameters(scope["query_string"], _content_type(scope), body)
        self._in_memory = BREAK_OFF in scope.get("extensions", {})
        self._send = send

    async def answer(self, status: int, body: object, retry_after: int | None = None) -> None:
        """Answer with JSON."""
        extra = [] if retry_after is None else [(b"retry-after", str(retry_after).encode())]
        await self._answer(status, b"application/json", json.dumps(body).encode(), extra)

    async def answer_page(self, status: int) -> None:
        """Answer as a proxy whose server is away."""
        page = PAGE.format(status=status, reason=REASONS.get(status, "Error"))
        await self._answer(status, b"text/html", page.encode(), [])

    async def answer_garbage(self) -> None:
        """Answer with half of a JSON value."""
        await self._answer(200, b"application/json", b'{"ok":true,"result":{"mess', [])

    async def _answer(
        self, status: int, content_type: bytes, body: bytes, extra: list[tuple[bytes, bytes]]
    ) -> None:
        length = str(len(body)).encode()
        headers = [(b"content-type", content_type), (b"content-length", length), *extra]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def break_off(self, *, before: bool) -> None:
        """Let the connection fail: where that can be told, before there was one; else amid the answer."""
        if self._in_memory:
            await self._send({"type": BREAK_OFF, "before": before})
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"100")]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})


def _content_type(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name.lower() == b"content-type"), b"")


def parameters(query: bytes, content_type: bytes, body: bytes) -> dict[str, str]:
    """Return the parameters of a request, as texts: from its address and from its body.

    A body is a form, in one of both encodings, or a JSON object (Bot API, Making requests). What cannot be
    read is left out, as Telegram's server does.
    """
    found = dict(parse_qsl(query.decode(), keep_blank_values=True))
    kind = content_type.partition(b";")[0].strip().lower()
    if kind == b"application/x-www-form-urlencoded":
        found |= parse_qsl(body.decode(), keep_blank_values=True)
    elif kind == b"multipart/form-data":
        found |= _parts(content_type, body)
    elif kind == b"application/json":
        found |= _fields(body)
    return found


def _parts(content_type: bytes, body: bytes) -> dict[str, str]:
    whole = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + content_type + b"\r\n\r\n" + body)
    found: dict[str, str] = {}
    for part in whole.iter_parts():
        name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes):
            found[name] = content.decode()
    return found


def _fields(body: bytes) -> dict[str, str]:
    try:
        given = json.loads(body)
    except ValueError:
        return {}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in (as_object(given) or {}).items()
    }
