"""The Messages API, spoken by Claude's agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ._values import Answer, Ask, Call, Dialect, Frame, Hold, JsonObject, Say, Think, Tool, pieces, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("MESSAGES",)

SIGNATURE = "c2lnbmF0dXJl"
"""Thinking blocks carry an opaque signature that the agent hands back; nobody here checks it."""

USAGE: JsonObject = {"input_tokens": 10, "output_tokens": 20}


class _Tool(msgspec.Struct, frozen=True):
    name: str = ""


class _Format(msgspec.Struct, frozen=True):
    schema: JsonObject | None = None


class _OutputConfig(msgspec.Struct, frozen=True):
    format: _Format | None = None


class _Request(msgspec.Struct, frozen=True):
    model: str
    stream: bool = False
    tools: tuple[_Tool, ...] = ()
    output_config: _OutputConfig | None = None


def _read(_path: str, body: bytes) -> Ask:
    request = msgspec.json.decode(body, type=_Request)
    output = request.output_config and request.output_config.format
    return Ask(
        model=request.model,
        stream=request.stream,
        tools=tuple(Tool(name=tool.name) for tool in request.tools),
        schema=output.schema if output else None,
        raw=body.decode(),
    )


def _message(ask: Ask, answer: Answer, content: list[JsonObject], stop_reason: str | None) -> JsonObject:
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": USAGE,
    }


def _stop_reason(answer: Answer) -> str:
    return "tool_use" if answer.calls_tool else "end_turn"


def _whole(ask: Ask, answer: Answer) -> JsonObject:
    content = [_block(part) for part in answer.parts if not isinstance(part, Hold)]
    return _message(ask, answer, content, _stop_reason(answer))


def _block(part: Think | Say | Call) -> JsonObject:
    match part:
        case Think():
            return {"type": "thinking", "thinking": part.text, "signature": SIGNATURE}
        case Say():
            return {"type": "text", "text": part.text}
        case Call():
            return {"type": "tool_use", "id": part.id, "name": part.tool.name, "input": part.args}


def _event(kind: str, **fields: object) -> bytes:
    return sse({"type": kind, **fields}, event=kind)


def _stream(ask: Ask, answer: Answer) -> Iterator[Frame]:
    yield _event("message_start", message=_message(ask, answer, [], None))
    index = 0
    for part in answer.parts:
        if isinstance(part, Hold):
            yield part
            continue
        start, deltas = _streamed_block(part)
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
        index += 1
    delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=USAGE)
    yield _event("message_stop")


def _streamed_block(part: Think | Say | Call) -> tuple[JsonObject, list[JsonObject]]:
    match part:
        case Think():
            deltas: list[JsonObject] = [
                {"type": "thinking_delta", "thinking": text} for text in pieces(part.text)
            ]
            deltas.append({"type": "signature_delta", "signature": SIGNATURE})
            return _block(part) | {"thinking": "", "signature": ""}, deltas
        case Say():
            return _block(part) | {"text": ""}, [
                {"type": "text_delta", "text": text} for text in pieces(part.text)
            ]
        case Call():
            empty: JsonObject = {"input": {}}
            return _block(part) | empty, [
                {"type": "input_json_delta", "partial_json": text} for text in pieces(part.json)
            ]


MESSAGES = Dialect(name="messages", read=_read, stream=_stream, whole=_whole)
