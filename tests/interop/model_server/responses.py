"""The Responses API, spoken by Codex."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ._values import Answer, Ask, Call, Dialect, Frame, Hold, JsonObject, Say, Think, Tool, pieces, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("RESPONSES",)

USAGE: JsonObject = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 30,
}


class _Tool(msgspec.Struct, frozen=True):
    type: str
    name: str = ""
    tools: tuple[_Tool, ...] = ()
    """The members of a tool of type "namespace"."""


class _Format(msgspec.Struct, frozen=True):
    schema: JsonObject | None = None


class _Text(msgspec.Struct, frozen=True):
    format: _Format | None = None


class _Request(msgspec.Struct, frozen=True):
    model: str
    stream: bool = False
    tools: tuple[_Tool, ...] = ()
    text: _Text | None = None


def _read(_path: str, body: bytes) -> Ask:
    request = msgspec.json.decode(body, type=_Request)
    output = request.text and request.text.format
    return Ask(
        model=request.model,
        stream=request.stream,
        tools=tuple(_callable_tools(request.tools)),
        schema=output.schema if output else None,
        raw=body.decode(),
    )


def _callable_tools(tools: tuple[_Tool, ...]) -> Iterator[Tool]:
    for tool in tools:
        if tool.type == "function":
            yield Tool(name=tool.name)
        elif tool.type == "namespace":
            yield from (Tool(name=member.name, namespace=tool.name) for member in tool.tools)


def _response(ask: Ask, answer: Answer, status: str, output: list[JsonObject]) -> JsonObject:
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": ask.model,
        "output": output,
        "usage": USAGE if status == "completed" else None,
    }


def _whole(ask: Ask, answer: Answer) -> JsonObject:
    spoken = [part for part in answer.parts if not isinstance(part, Hold)]
    output = [_item(part, f"item_{answer.number}_{index}") for index, part in enumerate(spoken)]
    return _response(ask, answer, "completed", output)


def _item(part: Think | Say | Call, item_id: str) -> JsonObject:
    match part:
        case Think():
            summary = [{"type": "summary_text", "text": part.text}]
            return {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": ""}
        case Say():
            content: list[JsonObject] = [{"type": "output_text", "text": part.text, "annotations": []}]
            return {
                "type": "message",
                "id": item_id,
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        case Call():
            call: JsonObject = {
                "type": "function_call",
                "id": item_id,
                "status": "completed",
                "call_id": part.id,
            }
            call |= {"name": part.tool.name, "arguments": part.json}
            return call if part.tool.namespace is None else call | {"namespace": part.tool.namespace}


def _event(kind: str, **fields: object) -> bytes:
    return sse({"type": kind, **fields}, event=kind)


def _stream(ask: Ask, answer: Answer) -> Iterator[Frame]:
    yield _event("response.created", response=_response(ask, answer, "in_progress", []))
    output: list[JsonObject] = []
    for part in answer.parts:
        if isinstance(part, Hold):
            yield part
            continue
        index, item_id = len(output), f"item_{answer.number}_{len(output)}"
        item = _item(part, item_id)
        output.append(item)
        yield _event("response.output_item.added", output_index=index, item=item | _empty(part))
        kind, place, texts = _deltas(part)
        for text in texts:
            yield _event(kind, item_id=item_id, output_index=index, delta=text, **place)
        yield _event("response.output_item.done", output_index=index, item=item)
    yield _event("response.completed", response=_response(ask, answer, "completed", output))


def _empty(part: Think | Say | Call) -> JsonObject:
    match part:
        case Think():
            return {"summary": []}
        case Say():
            return {"status": "in_progress", "content": []}
        case Call():
            return {"status": "in_progress", "arguments": ""}


def _deltas(part: Think | Say | Call) -> tuple[str, dict[str, int], list[str]]:
    match part:
        case Think():
            return "response.reasoning_summary_text.delta", {"summary_index": 0}, pieces(part.text)
        case Say():
            return "response.output_text.delta", {"content_index": 0}, pieces(part.text)
        case Call():
            return "response.function_call_arguments.delta", {}, pieces(part.json)


def _broken(error: JsonObject) -> bytes:
    return _event("response.failed", response={"id": "resp_0", "status": "failed", "error": error})


RESPONSES = Dialect(name="responses", read=_read, stream=_stream, whole=_whole, broken=_broken)
