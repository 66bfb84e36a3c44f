"""The client's messages, read from the lines of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell_acp import _jsonrpc as rpc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell.testing._journal import Line

SHOWN: Final = 20
"""How many messages an assertion lists."""


class SentMessage(Struct, frozen=True, kw_only=True):
    """A request or a notification."""

    method: str
    params: JsonValue
    id: rpc.RequestId | msgspec.UnsetType = msgspec.UNSET
    """The request's id; `UNSET` for a notification."""


class SentPrompt(Struct, frozen=True, kw_only=True):
    """A ``session/prompt``."""

    session_id: str
    text: str
    """The text of its text blocks, joined."""
    blocks: tuple[JsonValue, ...]
    """All of its content blocks, as on the wire."""
    meta: dict[str, JsonValue]
    """Its ``_meta``."""


class SentSession(Struct, frozen=True, kw_only=True):
    """A ``session/new``, ``session/load``, ``session/resume`` or ``session/fork``."""

    method: str
    cwd: str
    mcp_servers: tuple[JsonValue, ...]
    meta: dict[str, JsonValue]
    asked_id: str | None
    """The requested session; ``None`` for a new one."""
    system: str | None = None
    """The text of its system prompt, if it has one."""
    system_mode: str | None = None
    """``append`` or ``override``."""


class SentAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a permission question or a form."""

    title: str
    """The title of the tool call, or the message of the form."""
    choice: str
    """The kind of the chosen option, ``accept``, ``decline``, ``cancel`` or ``cancelled``; ``error``."""
    option_id: str | None = None
    content: JsonValue = None
    """The values of the form; the error, if it is one."""


class SentResult(Struct, frozen=True, kw_only=True):
    """The result of a tool that the agent called, including ``return_result``."""

    tool: str
    arguments: JsonValue
    text: str
    """Its text blocks, joined by line ends; for a protocol error, its message."""
    is_error: bool
    structured: JsonValue = None


class SentTool(Struct, frozen=True, kw_only=True):
    """A tool that the client offers."""

    name: str
    description: str
    schema: dict[str, JsonValue]
    """JSON Schema of its arguments."""


class _Exchange(Struct, frozen=True):
    """A request of the agent with the client's answer."""

    method: str
    params: JsonValue
    result: JsonValue
    error: rpc.ErrorObject | None


class Sent:
    """Everything that the client has sent so far, in order, over all connections. A snapshot."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._exchanges: list[_Exchange] = []
        messages: list[SentMessage] = []
        asked: dict[tuple[int, rpc.RequestId], rpc.Request] = {}
        for line in lines:
            message = rpc.parse(line.text.encode())
            if line.by == "agent":
                if isinstance(message, rpc.Request):
                    asked[line.connection, message.id] = message
                continue
            match message:
                case rpc.Request():
                    messages.append(
                        SentMessage(method=message.method, params=_json(message.params), id=message.id)
                    )
                case rpc.Notification():
                    messages.append(SentMessage(method=message.method, params=_json(message.params)))
                case rpc.Result() | rpc.Failure():
                    question = asked.get((line.connection, message.id))
                    if question is not None:
                        self._exchanges.append(_exchange(question, message))
                case rpc.Malformed():  # pragma: no cover - thinkwell sends only messages
                    pass
        self.messages: tuple[SentMessage, ...] = tuple(messages)
        """The requests and notifications."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the messages."""
        return tuple(message.method for message in self.messages)

    @property
    def prompts(self) -> tuple[SentPrompt, ...]:
        """The prompts."""
        return tuple(_prompt(message.params) for message in self.all("session/prompt"))

    @property
    def sessions(self) -> tuple[SentSession, ...]:
        """The requested sessions."""
        methods = ("session/new", "session/load", "session/resume", "session/fork")
        return tuple(_session(message) for message in self.messages if message.method in methods)

    @property
    def cancelled(self) -> tuple[str, ...]:
        """The sessions of which a turn was cancelled (``session/cancel``)."""
        return tuple(message.params["sessionId"] for message in self.all("session/cancel"))

    @property
    def closed(self) -> tuple[str, ...]:
        """The sessions that were closed (``session/close``)."""
        return tuple(message.params["sessionId"] for message in self.all("session/close"))

    @property
    def answers(self) -> tuple[SentAnswer, ...]:
        """The answers to the script's questions, in the order in which they arrived."""
        read = {"session/request_permission": _permission, "elicitation/create": _form}
        return tuple(read[one.method](one) for one in self._exchanges if one.method in read)

    @property
    def tools(self) -> tuple[SentTool, ...]:
        """The tools that the client has offered, each in its latest version."""
        tools: dict[str, SentTool] = {}
        for one in self._mcp("tools/list"):
            for tool in one.result.get("tools", ()) if one.error is None else ():
                tools[tool["name"]] = SentTool(
                    name=tool["name"],
                    description=tool.get("description") or "",
                    schema=tool.get("inputSchema") or {},
                )
        return tuple(tools.values())

    @property
    def results(self) -> tuple[SentResult, ...]:
        """The results of the tools that the script called."""
        return tuple(_result(one) for one in self._mcp("tools/call"))

    def all(self, method: str) -> tuple[SentMessage, ...]:
        """Return the messages of a method."""
        return tuple(message for message in self.messages if message.method == method)

    def one(self, method: str) -> SentMessage:
        """Return the only message of a method.

        Raises:
            AssertionError: There is none, or more than one; it lists what was sent.
        """
        found = self.all(method)
        if len(found) != 1:
            raise AssertionError(f"the client sent {method} {len(found)} times, not once. {self}")
        return found[0]

    def __repr__(self) -> str:
        return f"<Sent, {', '.join(self.methods) or 'nothing'}>"

    def __str__(self) -> str:
        shown = [f"  {message.method} {_short(message.params)}" for message in self.messages]
        left_out = len(shown) - SHOWN
        if left_out > 0:
            shown[:left_out] = [f"  … {left_out} before them"]
        return "\n".join(["The client sent:", *shown]) if shown else "The client sent nothing."

    def _mcp(self, method: str) -> list[_Exchange]:
        """Return the exchanges of a method of MCP, with its own parameters."""
        return [
            _Exchange(method, one.params.get("params") or {}, one.result, one.error)
            for one in self._exchanges
            if one.method == "mcp/message" and one.params["method"] == method
        ]


def _json(raw: msgspec.Raw) -> JsonValue:
    return msgspec.json.decode(raw)


def _exchange(question: rpc.Request, answer: rpc.Result | rpc.Failure) -> _Exchange:
    params = _json(question.params)
    if isinstance(answer, rpc.Failure):
        return _Exchange(question.method, params, None, answer.error)
    return _Exchange(question.method, params, _json(answer.value), None)


def _prompt(params: JsonValue) -> SentPrompt:
    blocks = tuple(params["prompt"])
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return SentPrompt(
        session_id=params["sessionId"], text=text, blocks=blocks, meta=params.get("_meta") or {}
    )


def _session(message: SentMessage) -> SentSession:
    params = message.params
    system: JsonValue = params.get("systemPrompt")
    return SentSession(
        method=message.method,
        cwd=params["cwd"],
        mcp_servers=tuple(params.get("mcpServers") or ()),
        meta=params.get("_meta") or {},
        asked_id=params.get("sessionId"),
        system=None if system is None else "".join(block["text"] for block in system["content"]),
        system_mode=None if system is None else system["mode"],
    )


def _permission(one: _Exchange) -> SentAnswer:
    title = one.params["toolCall"].get("title") or ""
    if one.error is not None:
        return SentAnswer(title=title, choice="error", content=one.error.message)
    outcome = one.result["outcome"]
    option_id = outcome.get("optionId")
    kinds = {option["optionId"]: option["kind"] for option in one.params["options"]}
    return SentAnswer(title=title, choice=kinds.get(option_id, outcome["outcome"]), option_id=option_id)


def _form(one: _Exchange) -> SentAnswer:
    title = one.params["message"]
    if one.error is not None:
        return SentAnswer(title=title, choice="error", content=one.error.message)
    return SentAnswer(title=title, choice=one.result["action"], content=one.result.get("content"))


def _result(one: _Exchange) -> SentResult:
    name, arguments = one.params["name"], one.params.get("arguments")
    if one.error is not None:
        return SentResult(tool=name, arguments=arguments, text=one.error.message, is_error=True)
    blocks = one.result.get("content") or ()
    return SentResult(
        tool=name,
        arguments=arguments,
        text="\n".join(block["text"] for block in blocks if block.get("type") == "text"),
        is_error=bool(one.result.get("isError")),
        structured=one.result.get("structuredContent"),
    )


def _short(value: JsonValue) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 160 else f"{text[:159]}…"
