"""What all four dialects have in common: a request boiled down, and an answer before it is rendered."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = (
    "Answer",
    "Ask",
    "Call",
    "Dialect",
    "Fail",
    "Frame",
    "Hold",
    "JsonObject",
    "Part",
    "Say",
    "Think",
    "Tool",
    "pieces",
    "sse",
)

JsonObject: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a request offers; the Responses API groups some under a namespace."""

    name: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to the model."""

    model: str
    stream: bool
    tools: tuple[Tool, ...]
    schema: Mapping[str, object] | None
    """The JSON schema that the answer's text has to follow, where one is demanded."""
    raw: str


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning, streamed word by word."""

    text: str


@dataclass(frozen=True, slots=True)
class Say:
    """Text for the user, streamed word by word."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool that the request offers."""

    tool: Tool
    args: Mapping[str, object]
    id: str

    @property
    def json(self) -> str:
        """The arguments as the APIs want them that carry JSON inside a string."""
        return msgspec.json.encode(self.args).decode()


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer the next request with an error."""

    status: int
    """Of HTTP; 200: the error comes in the stream, after its start."""
    message: str = "scripted error"
    type: str = "api_error"
    code: str = ""
    """Of OpenAI's error; by default, the status."""
    more: Mapping[str, object] = field(default_factory=dict[str, object])
    """Further fields of the error."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def error(self) -> JsonObject:
        """The error as the APIs give it."""
        return {"type": self.type, "code": self.code or self.status, "message": self.message, **self.more}


class Hold:
    """Keeps the answer open at this point until `release`; `reached` is set when it got there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._released = threading.Event()

    def release(self) -> None:
        """Let the answer go on."""
        self._released.set()

    def wait(self) -> None:
        """Block the server's thread, never the test's, until released."""
        self.reached.set()
        self._released.wait()


Part: TypeAlias = Think | Say | Call | Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says to one request; `number` makes ids unique within a server."""

    number: int
    parts: tuple[Part, ...]

    @property
    def calls_tool(self) -> bool:
        """Whether the agent has to run a tool and come back."""
        return any(isinstance(part, Call) for part in self.parts)


Frame: TypeAlias = bytes | Hold
"""A piece of a streamed body, or the place to wait at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One model API: how to read its requests and how to write its answers."""

    name: str
    read: Callable[[str, bytes], Ask]
    """Takes the path and the body."""
    stream: Callable[[Ask, Answer], Iterator[Frame]]
    whole: Callable[[Ask, Answer], JsonObject]
    refused: Callable[[JsonObject], JsonObject] = lambda error: {"type": "error", "error": error}
    """Takes an error; returns the body of a response that is only this."""
    broken: Callable[[JsonObject], bytes] = lambda error: sse({"error": error})
    """Takes an error; returns how a stream ends with it."""


def pieces(text: str) -> list[str]:
    """Split text into words with their spaces, as models stream it."""
    return re.findall(r"\s*\S+\s*", text) or [text]


def sse(data: object, *, event: str | None = None) -> bytes:
    """Encode one server-sent event; `data` becomes JSON unless it is bytes already."""
    body = data if isinstance(data, bytes) else msgspec.json.encode(data)
    name = b"" if event is None else b"event: %b\n" % event.encode()
    return b"%bdata: %b\n\n" % (name, body)
