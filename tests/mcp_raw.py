"""An HTTP client that says exactly what a test wants said."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import h11
import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import SocketStream

    from thinkwell_acp.mcp import HttpToolHost, ToolServer
    from thinkwell_acp.schema import JsonObject

HANDSHAKE: JsonObject = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw"}}


def rpc(method: str, params: JsonObject | None = None, id_: int | str | None = 1) -> JsonObject:
    """Return a JSON-RPC message; without an id it is a notification."""
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    if id_ is not None:
        message["id"] = id_
    return message


class Target(Struct):
    """Where a server is, and what it takes to be let in."""

    port: int
    path: str
    authorization: str

    @classmethod
    def of(cls, host: HttpToolHost, server: ToolServer) -> Target:
        told = host.add(server)
        url = urlsplit(told.url)
        assert url.hostname == "127.0.0.1"
        assert url.port is not None
        (header,) = told.headers
        assert header.name == "Authorization"
        return cls(url.port, url.path, header.value)


class Response(Struct):
    """An answer, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> JsonObject:
        decoded: JsonObject = msgspec.json.decode(self.body)
        return decoded


class RawHttp:
    """One connection."""

    def __init__(self, stream: SocketStream, target: Target) -> None:
        self.stream = stream
        self.target = target
        self._h11 = h11.Connection(h11.CLIENT)
        self._events = b""

    def head(
        self, method: str = "POST", *, path: str | None = None, **headers: str | None
    ) -> list[tuple[str, str]]:
        """Return the usual headers; ``name=None`` leaves one out."""
        usual: dict[str, str | None] = {
            "host": f"127.0.0.1:{self.target.port}",
            "authorization": self.target.authorization,
            "accept": "application/json, text/event-stream",
        }
        if method == "POST":
            usual["content-type"] = "application/json"
        usual.update({name.replace("_", "-"): value for name, value in headers.items()})
        return [(name, value) for name, value in usual.items() if value is not None]

    def posted(self, body: bytes, version: str = "1.1", **headers: str | None) -> bytes:
        """Return a request as bytes, to send in a way that no HTTP client does."""
        headers.setdefault("content_length", str(len(body)))
        fields = self.head("POST", **headers)
        lines = [f"POST {self.target.path} HTTP/{version}", *(f"{name}: {value}" for name, value in fields)]
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def send(
        self,
        method: str = "POST",
        *,
        path: str | None = None,
        body: bytes | JsonObject = b"",
        **headers: str | None,
    ) -> None:
        """Send a request."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        fields = self.head(method, **headers)
        if method == "POST" and "transfer-encoding" not in dict(fields):
            fields.append(("content-length", str(len(data))))
        if self._h11.our_state is h11.DONE:
            self._h11.start_next_cycle()
        raw_fields = [(name.encode(), value.encode("latin-1")) for name, value in fields]
        request = h11.Request(method=method, target=path or self.target.path, headers=raw_fields)
        sent = self._h11.send(request) or b""
        if data:
            sent += self._h11.send(h11.Data(data=data)) or b""
        await self.stream.send(sent + (self._h11.send(h11.EndOfMessage()) or b""))

    async def response(self) -> Response:
        """Return the whole answer."""
        head = await self.response_head()
        body = b""
        while isinstance(event := await self._next(), h11.Data):
            body += event.data
        return Response(head.status, head.headers, body)

    async def response_head(self) -> Response:
        """Return the answer without its body."""
        event = await self._next()
        while isinstance(event, h11.InformationalResponse):
            event = await self._next()
        assert isinstance(event, h11.Response), event
        headers = {name.decode(): value.decode() for name, value in event.headers}
        return Response(event.status_code, headers, b"")

    async def ask(
        self, method: str = "POST", *, body: bytes | JsonObject = b"", **headers: str | None
    ) -> Response:
        """Send a request and return the whole answer."""
        with anyio.fail_after(30):
            await self.send(method, body=body, **headers)
            return await self.response()

    async def shake_hands(self) -> str:
        """Open a session and return its id."""
        opened = await self.ask(body=rpc("initialize", HANDSHAKE))
        session = opened.headers["mcp-session-id"]
        ready = await self.ask(body=rpc("notifications/initialized", id_=None), mcp_session_id=session)
        assert (ready.status, ready.body) == (202, b"")
        return session

    async def event(self) -> JsonObject | str | None:
        """Return the next event of a stream: a message, the text of a comment, or ``None`` at the end."""
        with anyio.fail_after(30):
            return await self.patient_event()

    async def patient_event(self) -> JsonObject | str | None:
        """Return the next event however long it takes."""
        while b"\n\n" not in self._events:
            event = await self._next()
            if not isinstance(event, h11.Data):
                assert isinstance(event, h11.EndOfMessage)
                return None
            self._events += event.data
        one, _, self._events = self._events.partition(b"\n\n")
        if one.startswith(b":"):
            return one[1:].strip().decode()
        name, data = one.split(b"\n")
        assert name == b"event: message"
        message: JsonObject = msgspec.json.decode(data.removeprefix(b"data: "))
        return message

    async def closed(self) -> bool:
        """Whether the server closes without saying more."""
        with anyio.fail_after(30):
            try:
                await self.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return True
        return False

    async def _next(self) -> h11.Event | type[h11.PAUSED] | type[h11.NEED_DATA]:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            try:
                self._h11.receive_data(await self.stream.receive())
            except anyio.EndOfStream:
                self._h11.receive_data(b"")
        return event


@asynccontextmanager
async def raw_http(target: Target) -> AsyncGenerator[RawHttp]:
    """Open a connection."""
    async with await anyio.connect_tcp("127.0.0.1", target.port) as stream:
        yield RawHttp(stream, target)
