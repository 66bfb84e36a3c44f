"""The meaning of the messages of Letta's clients."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from thinkwell._core.schema.json_schema import is_object
from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web._requests import ImagePart, TextPart
from thinkwell.web._wording import type_words
from thinkwell.web.letta._bodies import Otid  # noqa: TC001 - type of a field
from thinkwell.web.letta._messages import MESSAGE_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell.web.letta._bodies import SendMessages

X = TypeVar("X", bound=Struct)

MOST_PARTS: Final = 100
"""Messages of a request, and parts of a message."""


class Said(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message, as lists show it."""

    content: str
    role: Literal["user", "system"] = "user"
    otid: str | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """A decision about a waiting call."""

    tool_call_id: str | None
    """``None``: any waiting call."""
    approve: bool
    reason: str | None = None
    returned: str | None = None
    """The result of the tool, if the client has called it."""


class Incoming(Struct, frozen=True, kw_only=True):
    """The content of a request: a task, decisions, or both."""

    said: tuple[Said, ...] = ()
    prompt: tuple[TextPart | ImagePart, ...] = ()
    """The same for an agent."""
    decisions: tuple[Decision, ...] = ()
    otids: tuple[str, ...] = ()
    """The client's names for the messages: the same names mean the same request."""


class _Message(Struct, frozen=True, kw_only=True):
    role: Literal["user", "system"]
    content: str | list[JsonValue]
    otid: Otid | None = None


class _Approval(Struct, frozen=True, kw_only=True):
    approvals: list[JsonValue] | None = None
    approve: bool | None = None
    reason: str | None = None
    otid: Otid | None = None


class _ToolReturns(Struct, frozen=True, kw_only=True):
    tool_returns: list[JsonValue]
    otid: Otid | None = None


class _ApprovalItem(Struct, frozen=True, kw_only=True):
    tool_call_id: str
    approve: bool
    reason: str | None = None


class _ReturnItem(Struct, frozen=True, kw_only=True):
    tool_call_id: str
    status: Literal["success", "error"]
    tool_return: str | list[JsonValue]


class _TextItem(Struct, frozen=True, kw_only=True):
    text: str


class _Base64Source(Struct, frozen=True, kw_only=True):
    data: str


class _UrlSource(Struct, frozen=True, kw_only=True):
    url: str


def read_incoming(request: SendMessages) -> Incoming:
    """Return the content of a request.

    Raises:
        RequestInvalid: It is empty or invalid.
    """
    if (request.input is None) == (request.messages is None):
        raise RequestInvalid("give either input or messages, and not both")
    unknown = set(request.include_return_message_types or ()) - MESSAGE_TYPES
    if unknown:
        raise RequestInvalid(f"include_return_message_types: there is no {min(unknown)[:100]!r}")
    messages = request.messages
    if messages is None:
        messages = [{"role": "user", "content": request.input}]
    if not 0 < len(messages) <= MOST_PARTS:
        raise RequestInvalid(f"messages: there have to be 1 to {MOST_PARTS} of them; send something to do")
    said: list[Said] = []
    prompt: list[TextPart | ImagePart] = []
    decisions: list[Decision] = []
    otids: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        kind = _kind(where, message)
        if said and kind != "message":
            raise RequestInvalid(f"{where}: a decision has to stand before what else there is to say")
        match kind:
            case "approval":
                approval = _read(where, message, _Approval)
                decisions += _decisions(where, approval)
                otid = approval.otid
            case "tool_return":
                returns = _read(where, message, _ToolReturns)
                decisions += _returned(where, returns.tool_returns)
                otid = returns.otid
            case _:
                told = _read(where, message, _Message)
                parts = [*_parts(where, told.content)]
                prompt += parts
                said.append(Said(content=_shown(parts), role=told.role, otid=told.otid))
                otid = told.otid
        otids += [] if otid is None else [otid]
    return Incoming(said=tuple(said), prompt=tuple(prompt), decisions=tuple(decisions), otids=tuple(otids))


def _read(where: str, value: JsonValue, kind: type[X]) -> X:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        raise RequestInvalid(type_words(exc, kind, at=where)) from None


def _kind(where: str, message: JsonValue) -> str:
    """Return the type of a message, which clients may omit."""
    if not is_object(message):
        raise RequestInvalid(f"{where}: a message is an object")
    kind: JsonValue = message.get("type")
    if kind is None:
        if "tool_returns" in message:
            return "tool_return"
        named = {"approval_request_id", "approve", "approvals"} & message.keys()
        return "approval" if named else "message"
    if kind not in ("message", "approval", "tool_return"):
        raise RequestInvalid(f"{where}: there are no messages of the type {kind!r:.100}")
    return str(kind)


def _decisions(where: str, approval: _Approval) -> list[Decision]:
    if approval.approvals is None:
        if approval.approve is None:
            raise RequestInvalid(f"{where}: it has to say approve, or approvals")
        return [Decision(tool_call_id=None, approve=approval.approve, reason=approval.reason)]
    found: list[Decision] = []
    for number, item in enumerate(approval.approvals):
        place = f"{where}.approvals[{number}]"
        if is_object(item) and (item.get("type") == "tool" or "tool_return" in item):
            found += _returned(place, [item])
        else:
            one = _read(place, item, _ApprovalItem)
            found.append(Decision(tool_call_id=one.tool_call_id, approve=one.approve, reason=one.reason))
    if not found:
        raise RequestInvalid(f"{where}.approvals: there is none")
    return found


def _returned(where: str, returns: Iterable[JsonValue]) -> list[Decision]:
    found: list[Decision] = []
    for item in returns:
        one = _read(where, item, _ReturnItem)
        text = one.tool_return
        if not isinstance(text, str):
            text = _shown([*_parts(where, text)])
        found.append(Decision(tool_call_id=one.tool_call_id, approve=one.status == "success", returned=text))
    if not found:
        raise RequestInvalid(f"{where}: it returns nothing")
    return found


def _parts(where: str, content: str | list[JsonValue]) -> Iterable[TextPart | ImagePart]:
    """Yield the parts of a content."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if len(content) > MOST_PARTS:
        raise RequestInvalid(f"{where}: a message has {MOST_PARTS} parts at most")
    for number, part in enumerate(content):
        place = f"{where}.content[{number}]"
        if not is_object(part):
            raise RequestInvalid(f"{place}: a part is an object")
        kind: JsonValue = part.get("type", "image" if "source" in part else "text")
        if kind == "text":
            yield TextPart(text=_read(place, part, _TextItem).text)
        elif kind == "image":
            yield _image(place, part.get("source"))
        else:
            raise RequestInvalid(
                f"{place}: parts of the type {kind!r:.100} cannot be sent; send text or image"
            )


def _image(where: str, source: JsonValue) -> TextPart | ImagePart:
    kind: JsonValue = source.get("type") if is_object(source) else None
    if kind == "url":
        return TextPart(text=_read(where, source, _UrlSource).url)  # the agent may read it
    if kind != "base64":
        raise RequestInvalid(f"{where}: an image has a source of the type base64 or url")
    try:
        return ImagePart(data=base64.b64decode(_read(where, source, _Base64Source).data, validate=True))
    except binascii.Error:
        raise RequestInvalid(f"{where}: the data of the image is no base64") from None


def _shown(parts: Iterable[TextPart | ImagePart]) -> str:
    return "\n\n".join(part.text if isinstance(part, TextPart) else "[image]" for part in parts)
