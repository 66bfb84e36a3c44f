"""Gemini's generateContent, streamed and whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ._values import Answer, Ask, Call, Dialect, Frame, Hold, JsonObject, Say, Think, Tool, pieces, sse

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("GEMINI",)

SIGNATURE = "c2lnbmF0dXJl"
"""Calls carry an opaque thought signature that the agent hands back; nobody here checks it."""

USAGE: JsonObject = {"promptTokenCount": 10, "candidatesTokenCount": 20, "totalTokenCount": 30}


class _Function(msgspec.Struct, frozen=True):
    name: str


class _Tool(msgspec.Struct, frozen=True, rename="camel"):
    function_declarations: tuple[_Function, ...] = ()


class _Config(msgspec.Struct, frozen=True, rename="camel"):
    response_mime_type: str | None = None
    response_schema: JsonObject | None = None
    response_json_schema: JsonObject | None = None

    @property
    def schema(self) -> JsonObject | None:
        """The schema demanded, in whichever of the API's three ways."""
        plain: JsonObject | None = (
            {"type": "object"} if self.response_mime_type == "application/json" else None
        )
        return self.response_json_schema or self.response_schema or plain


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    tools: tuple[_Tool, ...] = ()
    generation_config: _Config = _Config()


def _read(path: str, body: bytes) -> Ask:
    request = msgspec.json.decode(body, type=_Request)
    target = re.search(r"/models/([^/:]+):(\w+)", path)
    return Ask(
        model=target[1] if target else "",
        stream=target is not None and target[2] == "streamGenerateContent",
        tools=tuple(
            Tool(name=function.name) for tool in request.tools for function in tool.function_declarations
        ),
        schema=request.generation_config.schema,
        raw=body.decode(),
    )


def _chunk(ask: Ask, answer: Answer, parts: list[JsonObject], finish_reason: str | None) -> JsonObject:
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish_reason is not None:
        candidate["finishReason"] = finish_reason
    reply_id = f"response-{answer.number}"
    return {
        "candidates": [candidate],
        "modelVersion": ask.model,
        "responseId": reply_id,
        "usageMetadata": USAGE,
    }


def _deltas(part: Think | Say | Call) -> list[JsonObject]:
    match part:
        case Think():
            return [{"text": part.text, "thought": True}]
        case Say():
            return [{"text": text} for text in pieces(part.text)]
        case Call():
            call = {"id": part.id, "name": part.tool.name, "args": part.args}
            return [{"functionCall": call, "thoughtSignature": SIGNATURE}]


def _whole(ask: Ask, answer: Answer) -> JsonObject:
    parts = [delta for part in answer.parts if not isinstance(part, Hold) for delta in _deltas(part)]
    return _chunk(ask, answer, parts, "STOP")


def _stream(ask: Ask, answer: Answer) -> Iterator[Frame]:
    for part in answer.parts:
        if isinstance(part, Hold):
            yield part
        else:
            yield from (sse(_chunk(ask, answer, [delta], None)) for delta in _deltas(part))
    yield sse(_chunk(ask, answer, [{"text": ""}], "STOP"))


def _refused(error: JsonObject) -> JsonObject:
    """Return what Google's services say: the type of an error is its status (``RESOURCE_EXHAUSTED``)."""
    return {"error": {"code": error["code"], "message": error["message"], "status": error["type"]}}


GEMINI = Dialect(name="gemini", read=_read, stream=_stream, whole=_whole, refused=_refused)
