"""The common part of the requests of front ends: choices, and prompts."""

# ruff: noqa: TC001 - the types of fields are read at run time

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Meta, Struct

from thinkwell._display.fences import quoted
from thinkwell.events import JsonValue
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web._requests import ImagePart, StartRun, TextPart

if TYPE_CHECKING:
    from collections.abc import Sequence

Name = Annotated[str, Meta(min_length=1, max_length=200)]
"""The name of a conversation, or of a choice."""

_DATA: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.IGNORECASE)
"""The beginning of an address that contains its data (RFC 2397)."""

FILE: Final = "file"
"""The frame of a text file in a prompt."""


class Choices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choices of a front end for a run, besides the fields of its library; see `StartRun`."""

    output: dict[str, JsonValue] | None = None
    """A JSON Schema for the result."""
    folder: Name | None = None
    """One of the agent's folders; by default its first."""
    permissions: Name | None = None
    """One of the agent's permissions; by default its first."""
    model: Name | None = None
    """One of the agent's models; by default its first."""
    title: Annotated[str, Meta(max_length=200)] | None = None
    """The title in lists."""
    timeout: Annotated[float, Meta(gt=0)] | None = None
    """Maximum seconds for it, up to the agent's maximum, which is the default."""


def start_run(
    agent: str,
    thread: str,
    parts: Sequence[TextPart | ImagePart],
    choices: Choices | None,
    *,
    meta: dict[str, JsonValue] | None = None,
) -> StartRun:
    """Return the request for a run with a message of a conversation.

    Raises:
        RequestInvalid: It is empty.
    """
    if not parts:
        raise RequestInvalid("messages: the last one is the prompt, and has neither text nor pictures")
    chosen = {} if choices is None else msgspec.structs.asdict(choices)
    return StartRun(prompt=tuple(parts), agent=agent, thread=thread, meta=meta or {}, **chosen)


def request_key(*parts: object) -> str:
    """Return an idempotency key: the same parts mean the same run."""
    return "front-end:" + hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def read_data_url(url: str, where: str) -> tuple[str, bytes]:
    """Return the media type and the data of a ``data:`` address. Nothing is fetched.

    Args:
        url: The address.
        where: The part of the message, for errors.

    Raises:
        RequestInvalid: It is invalid.
    """
    found = _DATA.match(url)
    if found is None:
        raise RequestInvalid(f"{where}: send the file itself, as a data: address; the server fetches nothing")
    data = url[found.end() :]
    if found[2].lower().endswith(";base64"):
        return found[1], read_base64(data, where)
    return found[1], unquote_to_bytes(data)


def read_base64(data: str, where: str) -> bytes:
    """Decode base64.

    Raises:
        RequestInvalid: It is invalid.
    """
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        raise RequestInvalid(f"{where}: it is not base64") from None


def file_part(media_type: str, data: bytes, name: str, where: str) -> TextPart | ImagePart:
    """Return a file as a part of a prompt.

    Args:
        media_type: Its media type.
        data: Its contents.
        name: Its name.
        where: The part of the message, for errors.

    Raises:
        RequestInvalid: It is neither a picture nor a text.
    """
    kind = media_type.lower()
    if kind.startswith("image/"):
        return ImagePart(data=data)
    if kind.startswith("text/") or kind == "application/json":
        text = quoted(data.decode("utf-8", "replace"), FILE)
        return TextPart(text=f"\n{name}\n{text}" if name else f"\n{text}")
    raise RequestInvalid(f"{where}: agents get pictures and texts here, and no {kind[:100] or 'other files'}")
