"""One line is one message: reading and writing them, on either side. It never waits or raises.

A program writes messages: objects with a text under ``type``. Its host writes ``init``, prompts and
``response``. Any other line counts as text, so that a program that just prints its answer works.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell.errors import AgentReported
from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell_acp._framing import trimmed
from thinkwell_acp.schema import encode

if TYPE_CHECKING:
    from collections.abc import Mapping


Sort: TypeAlias = Literal["message", "text", "object", "broken"]
"""The kind of a line: a message; or text: plain text, an object that is not a message, broken JSON."""

Protocol: TypeAlias = Literal["acp", "ndjson"]
"""An agent's protocol: the Agent Client Protocol, or one JSON object a line."""

PromptFormat: TypeAlias = Literal["text", "json"]
"""The form of a program's prompts: one line of text, or an object."""

PIECE_FIELDS: Final = ("text", "message", "content", "delta", "chunk")
"""The keys of a piece of text in a ``partial``, in the order in which they are tried."""

MAX_DEPTH: Final = 200
"""Most levels of a message. Our other readers may not support deeper nesting."""

_ESCAPES: Final = {r"\n": "\n", r"\r": "\r"}


class Message(Struct, frozen=True, gc=False):
    """A message of a program."""

    kind: str
    """Its ``type``."""
    body: dict[str, JsonValue]
    """All of its fields except the type."""
    raw: bytes
    """The complete message, as valid JSON."""
    sort: Sort = "message"
    flaw: str = ""
    """Why a line that begins like a message counts as text; empty if it is a message."""


class Init(Struct, frozen=True, gc=False):
    """A host's first message, to be acknowledged."""

    params: JsonValue
    """Its parameters: an object, if it is valid."""


class Prompt(Struct, frozen=True, gc=False):
    """A prompt of a host."""

    text: str
    context: JsonValue = None
    flaw: str = ""
    """Why a line that begins like an object counts as text; empty if it is one, or does not."""


class Response(Struct, frozen=True, gc=False):
    """A host's answer."""

    in_reply_to: str
    """The type of the message that it answers; may be empty."""
    value: JsonValue
    id: JsonValue | UnsetType = UNSET
    """The id of that message, if it has one."""


# A program's lines


def read_message(line: bytes) -> Message | None:
    """Return the message in a program's line; ``None`` if it is blank."""
    data = trimmed(line).removesuffix(b"\r")
    if not data:
        return None
    sort: Sort = "text"
    flaw = ""
    if data.lstrip()[:1] == b"{":
        try:
            value, raw = _read_json(data)
        except (ValueError, RecursionError) as exc:
            sort, flaw = "broken", str(exc)
        else:
            kind = value.pop("type", None)
            if isinstance(kind, str):
                return Message(kind, value, raw)
            sort, flaw = "object", "it has no text under `type`"
    text = data.decode("utf-8", "replace")
    return Message("result", {"text": text}, b'{"type":"result","text":%b}' % encode(text), sort, flaw)


def write_message(kind: str, body: Mapping[str, JsonValue]) -> bytes:
    """Return a message as a line."""
    return encode({"type": kind, **body}) + b"\n"


def error_fields(error: Exception) -> dict[str, JsonValue]:
    """Return the fields of an ``error`` message; an agent's own error is passed on unchanged."""
    if not isinstance(error, AgentReported):
        return {"message": str(error)}
    fields: dict[str, JsonValue] = {"message": error.message, "code": error.code, "data": error.data}
    return {name: value for name, value in fields.items() if value is not None}


def text_of(body: Mapping[str, JsonValue], *names: str) -> str:
    """Return the first text under these names; empty if there is none."""
    for name in names:
        value = body.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


# A host's lines


def read_host_line(line: bytes) -> Init | Prompt | Response | None:
    """Return the message in a host's line; ``None`` if it is blank."""
    data = trimmed(line).removesuffix(b"\r")
    if not data:
        return None
    flaw = ""
    if data.lstrip()[:1] == b"{":
        try:
            value, _ = _read_json(data)
        except (ValueError, RecursionError) as exc:
            flaw = str(exc)
        else:
            if (said := _host_message(value)) is not None:
                return said
            flaw = "it has no text under `prompt`, and is no `response`"
    text = data.decode("utf-8", "replace")
    return Prompt(re.sub(r"\\[nr]", lambda match: _ESCAPES[match[0]], text), flaw=flaw)


def _host_message(value: dict[str, JsonValue]) -> Init | Prompt | Response | None:
    kind, prompt = value.get("type"), value.get("prompt")
    if kind == "init":
        return Init(value.get("params", {}))
    if kind == "response":
        whom = value.get("in_reply_to")
        return Response(whom if isinstance(whom, str) else "", value.get("value"), value.get("id", UNSET))
    return Prompt(prompt, value.get("context")) if isinstance(prompt, str) else None


def write_init(params: Mapping[str, JsonValue]) -> bytes:
    """Return a host's first message as a line."""
    return b'{"type":"init","params":%b}\n' % encode(params)


def write_prompt(text: str, context: Mapping[str, JsonValue] | None, prompt_format: PromptFormat) -> bytes:
    """Return a prompt as one line, however many lines it has. A text has no room for a context."""
    if prompt_format == "json":
        return encode({"prompt": text, "context": context or None}) + b"\n"
    return text.replace("\r", r"\r").replace("\n", r"\n").encode() + b"\n"


def write_response(kind: str, value: bytes, id: bytes | None) -> bytes:  # noqa: A002 - the field's name
    """Return an answer as a line. Shell programs match on it, so it is compact and its order is fixed.

    Args:
        kind: The type of the message that is answered.
        value: The answer, as JSON.
        id: The id of that message, as JSON; ``None``: it has none.
    """
    tail = b"" if id is None else b',"id":%b' % id
    return b'{"type":"response","in_reply_to":%b,"value":%b%b}\n' % (encode(kind), value, tail)


# Reading


def _read_json(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return an object, and its valid JSON: minor mistakes are corrected.

    Raises:
        ValueError: It is not JSON, or nested too deeply.
        RecursionError: It is nested far too deeply.
    """
    try:
        value = msgspec.json.decode(data)
    except ValueError:
        data = _mended(data)
        value = msgspec.json.decode(data)
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _too_deep(value):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return value, data


def _mended(data: bytes) -> bytes:
    """Return valid JSON for text that is nearly JSON.

    Unreadable parts of a text become the replacement character, a number beyond all bounds ``null``; a tab in
    a text, as shell programs print it, is accepted.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    value = json.loads(
        data.decode("utf-8", "replace"),
        strict=False,
        parse_constant=lambda _: None,
        parse_float=_float,
        parse_int=_int,
    )
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _float(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _int(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # Python reads at most a few thousand digits
        return None


def _too_deep(value: JsonValue) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for one in level for child in _children(one)]
        if not level:
            return False
    return True


def _children(value: JsonValue) -> list[JsonValue]:
    """Return the members of an object or an array that may be nested."""
    if is_object(value):
        value = list(value.values())
    return [child for child in value if isinstance(child, dict | list)] if is_array(value) else []
