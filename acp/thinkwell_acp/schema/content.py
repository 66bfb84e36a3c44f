"""Content blocks: the parts of prompts, messages and tool calls. Their forms are those of MCP."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from thinkwell_acp.schema._base import Choice, Extensible, JsonObject, Model

__all__ = (
    "Annotations",
    "AudioContent",
    "BlobResourceContents",
    "ContentBlock",
    "EmbeddedResource",
    "EmbeddedResourceResource",
    "ImageContent",
    "ResourceLink",
    "Role",
    "TextContent",
    "TextResourceContents",
)

Role: TypeAlias = Literal["assistant", "user"]
"""The audience of a content block."""


class Annotations(Extensible, frozen=True, kw_only=True):
    """Hints on how to use or show a content block."""

    audience: tuple[Role, ...] | None = None
    last_modified: str | None = None
    priority: float | None = None


class TextContent(Extensible, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text. Every agent accepts it in prompts."""

    text: str
    annotations: Annotations | None = None


class ImageContent(Extensible, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """An image, its bytes as base64. Prompts need `promptCapabilities.image`."""

    data: str
    mime_type: str
    uri: str | None = None
    annotations: Annotations | None = None


class AudioContent(Extensible, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """Sound, its bytes as base64. Prompts need `promptCapabilities.audio`."""

    data: str
    mime_type: str
    annotations: Annotations | None = None


class ResourceLink(Extensible, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A pointer to something that the agent can fetch. Every agent accepts it in prompts.

    Attributes:
        size: in bytes.
    """

    name: str
    uri: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None


class _ResourceContents(Choice):
    __slots__ = ()

    @classmethod
    def choose(cls, raw: JsonObject) -> type[Model]:
        return TextResourceContents if "text" in raw else BlobResourceContents


class TextResourceContents(Extensible, _ResourceContents, frozen=True, kw_only=True):
    """The text of an embedded resource."""

    text: str
    uri: str
    mime_type: str | None = None


class BlobResourceContents(Extensible, _ResourceContents, frozen=True, kw_only=True):
    """The bytes of an embedded resource, as base64."""

    blob: str
    uri: str
    mime_type: str | None = None


if TYPE_CHECKING:
    EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents
else:
    EmbeddedResourceResource = _ResourceContents


class EmbeddedResource(Extensible, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """A resource with its contents. Prompts need `promptCapabilities.embeddedContext`."""

    resource: EmbeddedResourceResource
    annotations: Annotations | None = None


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
"""One block of content, distinguished by `type`."""
