"""One line is one message: reading and writing them, on either side. Nothing here waits or raises.

A program writes messages: objects with a text under ``type``. Its host writes ``init``, prompts and
``response``. Any other line counts as text, so that a program that just prints its answer will do.
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
"""What a line is: a message; or what counts as text: text, an object that is no message, broken JSON."""

Protocol: TypeAlias = Literal["acp", "ndjson"]
"""What an agent speaks: the Agent Client Protocol, or one JSON object a line."""

PromptFormat: TypeAlias = Literal["text", "json"]
"""How a program gets its prompts: as one line of text, or as an object."""

PIECE_FIELDS: Final = ("text", "message", "content", "delta", "chunk")
"""Where a piece of text stands in a ``partial``, in the order in which it is looked for."""

MAX_DEPTH: Final = 200
"""Levels of a message. What is nested deeper is read by no further reader of ours for sure."""

_ESCAPES: Final = {r"\n": "\n", r"\r": "\r"}


class Message(Struct, frozen=True, gc=False):
    """What a program has said."""

    kind: str
    """Its ``type``."""
    body: dict[str, JsonValue]
    """All of its fields but the type."""
    raw: bytes
    """The whole of it, as valid JSON."""
    sort: Sort = "message"
    flaw: str = ""
    """Why a line that begins like a message is none and counts as text; empty where it is one."""


class Init(Struct, frozen=True, gc=False):
    """A host's first word, to be acknowledged."""

    params: JsonValue
    """What it asks for: an object, where it is well-made."""


class Prompt(Struct, frozen=True, gc=False):
    """What a host wants done."""

    text: str
    context: JsonValue = None
    flaw: str = ""
    """Why a line that begins like an object counts as text; empty where it is one, or does not."""


class Response(Struct, frozen=True, gc=False):
    """A host's answer."""

    in_reply_to: str
    """The type of the message that it answers; empty where it does not say."""
    value: JsonValue
    id: JsonValue | UnsetType = UNSET
    """The id of that message, where it had one."""


# A program's lines


def read_message(line: bytes) -> Message | None:
    """Return what a line of a program says; ``None``: it is blank."""
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
    """Return the fields of the message ``error`` for one: an agent's own is passed on as it was."""
    if not isinstance(error, AgentReported):
        return {"message": str(error)}
    fields: dict[str, JsonValue] = {"message": error.message, "code": error.code, "data": error.data}
    return {name: value for name, value in fields.items() if value is not None}


def text_of(body: Mapping[str, JsonValue], *names: str) -> str:
    """Return the first text that there is under these names; nothing where there is none."""
    for name in names:
        value = body.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


# A host's lines


def read_host_line(line: bytes) -> Init | Prompt | Response | None:
    """Return what a line of a host says; ``None``: it is blank."""
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
    """Return a host's first word as a line."""
    return b'{"type":"init","params":%b}\n' % encode(params)


def write_prompt(text: str, context: Mapping[str, JsonValue] | None, prompt_format: PromptFormat) -> bytes:
    """Return a prompt as one line, however many lines it has. Text alone has no room for a context."""
    if prompt_format == "json":
        return encode({"prompt": text, "context": context or None}) + b"\n"
    return text.replace("\r", r"\r").replace("\n", r"\n").encode() + b"\n"


def write_response(kind: str, value: bytes, id: bytes | None) -> bytes:  # noqa: A002 - the field's name
    """Return an answer as a line. Shell programs match on it, so it is compact and its order is fixed.

    Args:
        kind: The type of the message that is answered.
        value: The answer, as JSON.
        id: The id of that message, as JSON; ``None``: it had none.
    """
    tail = b"" if id is None else b',"id":%b' % id
    return b'{"type":"response","in_reply_to":%b,"value":%b%b}\n' % (encode(kind), value, tail)


# Reading


def _read_json(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return an object, and its valid JSON: where only details are wrong, they are put right.

    Raises:
        ValueError: It is no JSON, or is nested too deeply.
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
    """Return valid JSON for what is nearly so.

    What cannot be read of a text becomes the replacement character, a number beyond all bounds ``null``; a
    tab within a text, as shell programs print it, is taken as it is.

    Raises:
        ValueError: It is no JSON.
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
    except ValueError:  # Python reads no more than some thousand digits
        return None


def _too_deep(value: JsonValue) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for one in level for child in _children(one)]
        if not level:
            return False
    return True


def _children(value: JsonValue) -> list[JsonValue]:
    """Return what is in an object or an array, where anything can be in it again."""
    if is_object(value):
        value = list(value.values())
    return [child for child in value if isinstance(child, dict | list)] if is_array(value) else []
