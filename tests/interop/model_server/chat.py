"""The Chat Completions API, spoken by opencode and most agents that take any provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ._values import Answer, Ask, Call, Dialect, Frame, Hold, JsonObject, Say, Think, Tool, pieces, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("CHAT",)

USAGE: JsonObject = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}


class _Function(msgspec.Struct, frozen=True):
    name: str


class _Tool(msgspec.Struct, frozen=True):
    function: _Function | None = None


class _JsonSchema(msgspec.Struct, frozen=True):
    schema: JsonObject | None = None


class _Format(msgspec.Struct, frozen=True):
    json_schema: _JsonSchema | None = None


class _Request(msgspec.Struct, frozen=True):
    model: str
    stream: bool = False
    tools: tuple[_Tool, ...] = ()
    response_format: _Format | None = None


def _read(_path: str, body: bytes) -> Ask:
    request = msgspec.json.decode(body, type=_Request)
    output = request.response_format and request.response_format.json_schema
    return Ask(
        model=request.model,
        stream=request.stream,
        tools=tuple(Tool(name=tool.function.name) for tool in request.tools if tool.function),
        schema=output.schema if output else None,
        raw=body.decode(),
    )


def _envelope(ask: Ask, answer: Answer, kind: str, choices: list[JsonObject]) -> JsonObject:
    return {
        "id": f"chatcmpl-{answer.number}",
        "object": kind,
        "created": 0,
        "model": ask.model,
        "choices": choices,
    }


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls_tool else "stop"


def _tool_call(call: Call, arguments: str) -> JsonObject:
    function = {"name": call.tool.name, "arguments": arguments}
    return {"index": 0, "id": call.id, "type": "function", "function": function}


def _whole(ask: Ask, answer: Answer) -> JsonObject:
    message: JsonObject = {
        "role": "assistant",
        "content": "".join(part.text for part in answer.parts if isinstance(part, Say)),
        "reasoning_content": "".join(part.text for part in answer.parts if isinstance(part, Think)),
    }
    calls = [_tool_call(part, part.json) for part in answer.parts if isinstance(part, Call)]
    if calls:
        message["tool_calls"] = calls
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": _finish_reason(answer)}
    return {**_envelope(ask, answer, "chat.completion", [choice]), "usage": USAGE}


def _stream(ask: Ask, answer: Answer) -> Iterator[Frame]:
    def chunk(delta: JsonObject, finish_reason: str | None = None) -> bytes:
        choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return sse(_envelope(ask, answer, "chat.completion.chunk", [choice]))

    yield chunk({"role": "assistant", "content": ""})
    for part in answer.parts:
        if isinstance(part, Hold):
            yield part
        else:
            for delta in _deltas(part):
                yield chunk(delta)
    yield chunk({}, _finish_reason(answer))
    yield sse({**_envelope(ask, answer, "chat.completion.chunk", []), "usage": USAGE})
    yield sse(b"[DONE]")


def _deltas(part: Think | Say | Call) -> list[JsonObject]:
    match part:
        case Think():
            return [{"reasoning_content": text} for text in pieces(part.text)]
        case Say():
            return [{"content": text} for text in pieces(part.text)]
        case Call():
            rest = [{"index": 0, "function": {"arguments": text}} for text in pieces(part.json)]
            return [{"tool_calls": [call]} for call in [_tool_call(part, ""), *rest]]


CHAT = Dialect(name="chat", read=_read, stream=_stream, whole=_whole)
