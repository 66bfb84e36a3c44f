"""The HTTP side: a loopback server in threads, so that one serves asyncio and trio tests alike."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import msgspec

from ._script import Script, Step
from ._values import Dialect, Fail, Frame, Hold, JsonObject
from .chat import CHAT
from .gemini import GEMINI
from .messages import MESSAGES
from .responses import RESPONSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Self

    from ._values import Ask

__all__ = ("ModelServer", "Received")

DIALECTS = {
    "/messages": MESSAGES,
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
    ":generateContent": GEMINI,
    ":streamGenerateContent": GEMINI,
}
"""By the end of the path; what stands before it differs by agent."""

MODEL: JsonObject = {"id": "scripted", "object": "model", "type": "model", "name": "models/scripted"}
"""An entry of the list of models, with the keys of every dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came in."""

    method: str
    path: str
    """Without the query; for CONNECT the host and port that was asked for."""
    dialect: str | None
    """Which model API it was for; None for everything that is no question to a model."""
    tools: tuple[str, ...]
    body: bytes


class ModelServer:
    """Stands in for the model services of real agents, on loopback, for as long as its `with` block.

    It also refuses to be a proxy: an agent that has it as its proxy cannot reach any other host, and the
    attempt is in `requests` as a CONNECT. With `choose`, there are no steps: it chooses one for each request.
    """

    def __init__(self, *steps: Step, choose: Callable[[Ask], Step] | None = None) -> None:
        self._script = Script(choose)
        self._script.extend(steps)
        self._requests: list[Received] = []
        self._listener = _Listener(self._script, self._requests)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL, without a path."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    @property
    def requests(self) -> tuple[Received, ...]:
        """All requests so far."""
        return tuple(self._requests)

    @property
    def remaining(self) -> tuple[Step, ...]:
        """The steps that no request has taken yet."""
        return self._script.remaining

    def play(self, *steps: Step) -> None:
        """Append steps, for a further turn say."""
        self._script.extend(steps)

    def skip(self) -> None:
        """Drop the steps that no request has taken: some agents end a turn when something is denied."""
        self._script.skip()

    def close(self) -> None:
        """Let go of every answer that is held, and stop listening."""
        self._script.release()
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: Script, received: list[Received]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.received = received


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet: `ModelServer.requests` has it all."""

    def handle(self) -> None:
        # An agent that cancels or ends hangs up, also in the middle of an answer.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_HEAD(self) -> None:
        self._note()
        self._reply(200, {})

    def do_CONNECT(self) -> None:
        self._note()
        self._reply(403, {})

    def do_GET(self) -> None:
        self._note()
        if self._path.endswith("/models"):
            self._reply(200, {"object": "list", "data": [MODEL], "models": [MODEL], "has_more": False})
        else:
            self._reply(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        dialect = next((found for end, found in DIALECTS.items() if self._path.endswith(end)), None)
        if dialect is not None:
            self._ask(dialect, body)
            return
        self._note(body=body)
        if self._path.endswith(("/count_tokens", ":countTokens")):
            self._reply(200, {"input_tokens": 10, "totalTokens": 10})
        else:
            self._reply(404, {})

    def _ask(self, dialect: Dialect, body: bytes) -> None:
        ask = dialect.read(self._path, body)
        self._note(dialect.name, tuple(tool.name for tool in ask.tools), body)
        answer = self._state.script.answer(ask)
        if isinstance(answer, Fail) and answer.status == HTTPStatus.OK:
            self._stream([dialect.broken(answer.error)])
        elif isinstance(answer, Fail):
            self._reply(answer.status, dialect.refused(answer.error), answer.headers)
        elif ask.stream:
            self._stream(dialect.stream(ask, answer))
        else:
            for hold in (part for part in answer.parts if isinstance(part, Hold)):
                hold.wait()
            self._reply(200, dialect.whole(ask, answer))

    @property
    def _path(self) -> str:
        return self.path.partition("?")[0]

    @property
    def _state(self) -> _Listener:
        assert isinstance(self.server, _Listener)
        return self.server

    def _note(self, dialect: str | None = None, tools: tuple[str, ...] = (), body: bytes = b"") -> None:
        received = Received(method=self.command, path=self._path, dialect=dialect, tools=tools, body=body)
        self._state.received.append(received)

    def _reply(self, status: int, value: JsonObject, headers: Mapping[str, str] | None = None) -> None:
        body = msgspec.json.encode(value)
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _stream(self, frames: Iterable[Frame]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in frames:
            if isinstance(frame, Hold):
                frame.wait()
            else:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(frame), frame))
        self.wfile.write(b"0\r\n\r\n")
