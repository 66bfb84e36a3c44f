"""What events are made of: content, places in files, steps of a plan; and what all events have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import force_setattr

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

JsonValue: TypeAlias = Any
"""A JSON value: ``None``, ``bool``, ``int``, ``float``, ``str``, a list or a dict with string keys."""

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""What sort of thing a tool does (ACP, Tool Calls)."""

ToolStatus: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]
"""How far the agent says a tool call is (ACP, Tool Calls)."""

FinalStatus: TypeAlias = Literal["completed", "failed", "cancelled"]
"""How a tool call ended. ``cancelled`` is said by the client, for calls that a cancelled turn left open."""


class _Block(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    annotations: JsonValue = None
    """Hints of the agent's about audience and priority, as it sent them."""


class TextContent(_Block, frozen=True, kw_only=True, tag="text"):
    """Text."""

    text: str


class ImageContent(_Block, frozen=True, kw_only=True, tag="image"):
    """An image; `data` is base64."""

    data: str
    mime_type: str
    uri: str | None = None


class AudioContent(_Block, frozen=True, kw_only=True, tag="audio"):
    """Sound; `data` is base64."""

    data: str
    mime_type: str


class ResourceLink(_Block, frozen=True, kw_only=True, tag="resource_link"):
    """A reference to something that the agent can read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class EmbeddedResource(_Block, frozen=True, kw_only=True, tag="resource"):
    """The contents of a resource: `text`, or base64 in `blob`."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class BlockContent(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag="content"):
    """A content block that a tool produced."""

    content: ContentBlock


class DiffContent(
    Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type", tag="diff"
):
    """A change to a file. `old_text` is ``None`` for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class TerminalContent(Struct, frozen=True, kw_only=True, gc=False, tag_field="type", tag="terminal"):
    """The output of a terminal of the client's."""

    terminal_id: str


ToolContent: TypeAlias = BlockContent | DiffContent | TerminalContent


class Location(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A place in a file that a tool works on. `line` counts from 1."""

    path: str
    line: int | None = None


class QuestionOption(Struct, frozen=True, kw_only=True, gc=False):
    """A choice of a permission question."""

    id: str
    name: str
    """What to show."""
    kind: str
    """``allow_once``, ``allow_always``, ``reject_once`` or ``reject_always``; agents may invent others."""


class PlanEntry(Struct, frozen=True, kw_only=True, gc=False):
    """A step of a plan."""

    content: str
    priority: Literal["high", "medium", "low"] = "medium"
    status: Literal["pending", "in_progress", "completed"] = "pending"


class Cost(Struct, frozen=True, kw_only=True, gc=False):
    """What a session has cost so far, as the agent reports it."""

    amount: float
    currency: str


class Command(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A command that can be prompted as ``/name``."""

    name: str
    description: str = ""
    hint: str | None = None


class TokenUsage(
    Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    rename={
        "meta": "_meta",
        "total": "totalTokens",
        "input": "inputTokens",
        "output": "outputTokens",
        "thought": "thoughtTokens",
        "cached_read": "cachedReadTokens",
        "cached_write": "cachedWriteTokens",
    },
):
    """Tokens as the agent reports them at the end of a turn; ``None`` is what it does not report.

    The protocol leaves open whether they are those of the turn or of the session.
    """

    meta: dict[str, JsonValue] | None = None
    """What the agent says beside, as it sent it."""
    total: int | None = None
    input: int | None = None
    output: int | None = None
    thought: int | None = None
    cached_read: int | None = None
    """How many of those that were read came from a cache."""
    cached_write: int | None = None


class SessionChanges(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    """What changed about a session. ``UNSET`` (of msgspec) was left alone, ``None`` was cleared."""

    title: str | UnsetType | None = UNSET
    updated_at: str | UnsetType | None = UNSET
    """ISO 8601."""
    meta: dict[str, JsonValue] | UnsetType | None = field(default=UNSET, name="_meta")
    """What the agent says beside, as it sent it."""


class CompactionChanges(Struct, frozen=True, kw_only=True, gc=False):
    """What changed about a compaction. ``UNSET`` (of msgspec) was left alone, ``None`` was cleared."""

    status: str | UnsetType = UNSET
    """``in_progress``, ``completed``, ``failed`` or ``cancelled``; agents may invent others."""
    summary: tuple[ContentBlock, ...] | UnsetType | None = UNSET
    """The complete text that replaces the shortened context."""
    error: str | UnsetType | None = UNSET
    content: ContentBlock | UnsetType = UNSET
    """A piece of the summary, to be appended."""


class Event(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag_field="type"):
    """What all events have."""

    seq: int = 0
    """Number in the log of the run: 1, 2, 3 and so on. 0: not in a log."""

    at: float = 0.0
    """Seconds from the start of the run to when the event was read, by the client's clock."""

    type: ClassVar[str]
    """The tag of this kind of event."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        """Let pydantic models hold events: as they are, or from their JSON form."""
        from pydantic_core import core_schema  # pydantic is loaded by those who use it

        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(msgspec.to_builtins),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> dict[str, Any]:
        """Describe an event by its tag."""
        return {"type": "object", "properties": {"type": {"const": cls.type}}, "required": ["type"]}

    @classmethod
    def _validated(cls, value: object) -> Self:
        return value if isinstance(value, cls) else msgspec.convert(value, cls)


class TextEvent(Event, frozen=True, kw_only=True):
    """A piece of a text, or of what stands in its place."""

    text: str = ""
    """The text; empty where the content is something else."""

    content: ContentBlock = None  # type: ignore[assignment]  # read by `_content`
    """The content as a block: the text again, or an image, sound, or resource."""

    message_id: str | None = None
    """Chunks with the same id belong to one message. Opaque; ``None`` from agents that give none."""

    def __post_init__(self) -> None:
        if _stored(self) is not None:
            self._settle()

    def _settle(self) -> None:
        """Have one form for the same."""
        if isinstance(self.content, TextContent):
            if not self.text:
                force_setattr(self, "text", self.content.text)
            if self.content == TextContent(text=self.text):
                _store(self, None)

    def __repr__(self) -> str:
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__])
        return f"{type(self).__name__}({fields})"


_stored: Final[Callable[[TextEvent], ContentBlock | None]] = vars(TextEvent)["content"].__get__
_store: Final[Callable[[TextEvent, None], None]] = vars(TextEvent)["content"].__set__


def _content(event: TextEvent) -> ContentBlock:
    return _stored(event) or TextContent(text=event.text)


# Plain text, of which there is much, is stored once: the block is made when it is asked for.
TextEvent.content = property(_content)  # type: ignore[assignment]


_IMAGE_MAGIC: Final = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF....WEBP", "image/webp"),
)


def image_type(data: bytes) -> str | None:
    """Return the type of an image that agents take; ``None`` where it is none."""
    return next((type_ for magic, type_ in _IMAGE_MAGIC if re.match(magic, data, re.DOTALL)), None)


def read_block(table: JsonValue) -> ContentBlock:
    """Return the content block that a table of the protocol describes."""
    fields = {**table, **table.get("resource", {})}
    block: ContentBlock = msgspec.convert({"mime_type": fields.get("mimeType"), **fields}, ContentBlock)
    return block
