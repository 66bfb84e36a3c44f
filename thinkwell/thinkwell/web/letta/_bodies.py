"""What Letta's clients send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web._wording import type_words

if TYPE_CHECKING:
    from collections.abc import Mapping

Name: TypeAlias = Annotated[str, Meta(max_length=500)]
"""A name that a client gives."""

Otid: TypeAlias = Annotated[str, Meta(max_length=100)]
"""A client's name for a message, which is a UUID mostly."""

_Text: TypeAlias = Annotated[str, Meta(max_length=500_000)]
_Names: TypeAlias = Annotated[list[Name], Meta(max_length=200)]


class ClientTool(Struct, frozen=True, kw_only=True):
    """A tool that the client runs."""

    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    """A JSON Schema."""


class ClientSkill(Struct, frozen=True, kw_only=True):
    """A skill that the client has."""

    name: str
    description: str = ""
    location: str = ""


class SendMessages(Struct, frozen=True, kw_only=True):
    """Body of a request that sends messages (Letta API, ``LettaStreamingRequest``).

    What is left out means nothing to an agent that is not Letta's, such as ``max_steps``.
    """

    input: str | list[JsonValue] | None = None
    """A message of the user's: a text, or its parts."""
    messages: list[JsonValue] | None = None
    streaming: bool | None = None
    """By default, it depends on where it is sent to."""
    stream_tokens: bool | None = None
    include_pings: bool | None = None
    background: bool | None = None
    include_return_message_types: list[str] | None = None
    client_tools: list[ClientTool] | None = None
    client_skills: list[ClientSkill] | None = None
    agent_id: str | None = None
    """Whose default conversation is meant, where none is named."""


class Resume(Struct, frozen=True, kw_only=True):
    """Body of a request for the rest of a stream (Letta API, ``RetrieveStreamRequest``)."""

    starting_after: int | None = None
    """Number of the last frame that is known."""
    include_pings: bool | None = None
    agent_id: str | None = None
    run_id: str | None = None
    otid: str | None = None


class CancelMessages(Struct, frozen=True, kw_only=True):
    """Body of a request to cancel runs."""

    run_ids: list[str] | None = None


class UpdateAgent(Struct, frozen=True, kw_only=True):
    """Body of a request that changes an agent. What is ``None`` stays as it is."""

    name: Name | None = None
    model: Name | None = None
    system: _Text | None = None
    description: _Text | None = None
    tags: _Names | None = None
    metadata: dict[str, JsonValue] | None = None


class CreateAgent(UpdateAgent, frozen=True, kw_only=True):
    """Body of a request that makes an agent."""

    agent_type: str | None = None
    memory_blocks: Annotated[list[dict[str, JsonValue]], Meta(max_length=200)] | None = None


class CreateConversation(Struct, frozen=True, kw_only=True):
    """Body of a request that makes a conversation, or changes it."""

    summary: _Text | None = None
    description: _Text | None = None
    archived: bool | None = None


class Chosen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client chooses of what the operator offers: ``thinkwell`` in the metadata of an agent."""

    agent: str | None = None
    folder: str | None = None
    permissions: str | None = None


def read_chosen(metadata: Mapping[str, JsonValue] | None) -> Chosen:
    """Return what the metadata of an agent choose.

    Raises:
        RequestInvalid: It cannot be read.
    """
    try:
        return msgspec.convert((metadata or {}).get("thinkwell", {}), Chosen)
    except msgspec.ValidationError as exc:
        raise RequestInvalid(type_words(exc, Chosen, at="metadata.thinkwell")) from None
