"""The lines of a recording. ``docs/reference/recordings.md`` describes them for users."""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

import msgspec
from msgspec import Struct

from thinkwell._values.content import JsonValue  # noqa: TC001 - type of a field

VERSION: Final = 1
"""Version of the format. A reader accepts files of its own version, and skips unknown parts of them."""


class _Record(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    at: float
    """Seconds since the recording began."""


class Header(_Record, frozen=True, kw_only=True, tag="recording"):
    """The first line."""

    version: int
    thinkwell: str
    """Version of thinkwell that wrote it."""
    time: str
    """When it began, in UTC (ISO 8601)."""
    agent: str
    command: tuple[str, ...] = ()
    cwd: str = ""


class Sent(_Record, frozen=True, kw_only=True, tag="sent"):
    """A message from the client to the agent."""

    message: JsonValue


class Received(_Record, frozen=True, kw_only=True, tag="received"):
    """A message from the agent to the client."""

    message: JsonValue


class Noise(_Record, frozen=True, kw_only=True, tag="noise"):
    """A line of the agent that is not JSON."""

    text: str


class Gone(_Record, frozen=True, kw_only=True, tag="gone"):
    """The agent has ended by itself, or its connection."""

    exit_code: int | None = None


class ToolCalled(_Record, frozen=True, kw_only=True, tag="tool_call"):
    """The agent calls a tool of the client, over MCP, with any transport."""

    session: str | None
    call: int
    name: str
    arguments: JsonValue


class ToolAnswered(_Record, frozen=True, kw_only=True, tag="tool_result"):
    """The answer to the agent: the content of the MCP result."""

    call: int
    content: JsonValue
    is_error: bool = False


class RunBegun(_Record, frozen=True, kw_only=True, tag="run"):
    """A run has begun."""

    run: str
    include: tuple[str, ...]
    """The kinds of events that it kept."""
    text: bool = False
    """Whether its result is the text of the last message."""
    wrapped: bool = False
    """Whether ``return_result`` takes the value under the key ``result``."""
    own_fields: bool = False
    """Whether it takes the fields of this value, or it alone: only then does the result have drafts."""


class RunSession(_Record, frozen=True, kw_only=True, tag="run_session"):
    """The session of the run's prompts."""

    run: str
    session: str


class Happened(_Record, frozen=True, kw_only=True, tag="event"):
    """An event of a run, as `event_to_json` writes it, including those that the run did not keep."""

    run: str
    event: JsonValue


class Between(_Record, frozen=True, kw_only=True, tag="between"):
    """An event of a session outside its turns."""

    session: str | None
    event: JsonValue


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error: its class, attributes and message."""

    name: str
    message: str
    fields: dict[str, JsonValue] = {}
    notes: tuple[str, ...] = ()
    """The hints for it."""


class Settled(_Record, frozen=True, kw_only=True, tag="result"):
    """The result of a run: the agent's value, or the error."""

    run: str
    value: JsonValue = None
    error: Failure | None = None


class RunEnded(_Record, frozen=True, kw_only=True, tag="run_end"):
    """The events of a run have ended."""

    run: str
    error: Failure | None = None


class End(_Record, frozen=True, kw_only=True, tag="end"):
    """The last line: without it the recording is cut."""

    stderr: str = ""
    """The end of the agent's standard error."""


Record: TypeAlias = (
    Header
    | Sent
    | Received
    | Noise
    | Gone
    | ToolCalled
    | ToolAnswered
    | RunBegun
    | RunSession
    | Happened
    | Between
    | Settled
    | RunEnded
    | End
)


class Unknown(Struct, frozen=True):
    """A kind of line that this version does not know."""

    kind: str


class _Kind(Struct, frozen=True):
    type: str


_KNOWN: Final = frozenset(kind.__struct_config__.tag for kind in get_args(Record))

_decode = msgspec.json.Decoder(Record).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


def decode_record(line: bytes) -> Record | Unknown:
    """Read a line.

    Raises:
        ValueError: It is not a record, or broken.
    """
    kind = _decode_kind(line).type
    return _decode(line) if kind in _KNOWN else Unknown(kind)


def encode_record(record: Record | dict[str, JsonValue]) -> bytes:
    """Return a line, from a record or its fields."""
    return msgspec.json.encode(record) + b"\n"
