"""The requests of Letta's clients."""

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
"""A client's name for something."""

Otid: TypeAlias = Annotated[str, Meta(max_length=100)]
"""A client's name for a message, mostly a UUID."""

_Text: TypeAlias = Annotated[str, Meta(max_length=500_000)]
_Names: TypeAlias = Annotated[list[Name], Meta(max_length=200)]


class ClientTool(Struct, frozen=True, kw_only=True):
    """A tool of the client."""

    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    """A JSON Schema."""


class ClientSkill(Struct, frozen=True, kw_only=True):
    """A skill of the client."""

    name: str
    description: str = ""
    location: str = ""


class SendMessages(Struct, frozen=True, kw_only=True):
    """The body of a request with messages (Letta API, ``LettaStreamingRequest``).

    Fields that only Letta's own agents use, such as ``max_steps``, are missing.
    """

    input: str | list[JsonValue] | None = None
    """A message of the user: a text, or parts."""
    messages: list[JsonValue] | None = None
    streaming: bool | None = None
    """The default depends on the path."""
    stream_tokens: bool | None = None
    include_pings: bool | None = None
    background: bool | None = None
    include_return_message_types: list[str] | None = None
    client_tools: list[ClientTool] | None = None
    client_skills: list[ClientSkill] | None = None
    agent_id: str | None = None
    """The agent whose default conversation is used, if the path names none."""


class Resume(Struct, frozen=True, kw_only=True):
    """The body of a request for the rest of a stream (Letta API, ``RetrieveStreamRequest``)."""

    starting_after: int | None = None
    """Number of the last frame that the client has."""
    include_pings: bool | None = None
    agent_id: str | None = None
    run_id: str | None = None
    otid: str | None = None


class CancelMessages(Struct, frozen=True, kw_only=True):
    """The body of a request to cancel runs."""

    run_ids: list[str] | None = None


class UpdateAgent(Struct, frozen=True, kw_only=True):
    """The body of a request that changes an agent. ``None`` changes nothing."""

    name: Name | None = None
    model: Name | None = None
    system: _Text | None = None
    description: _Text | None = None
    tags: _Names | None = None
    metadata: dict[str, JsonValue] | None = None


class CreateAgent(UpdateAgent, frozen=True, kw_only=True):
    """The body of a request that creates an agent."""

    agent_type: str | None = None
    memory_blocks: Annotated[list[dict[str, JsonValue]], Meta(max_length=200)] | None = None


class CreateConversation(Struct, frozen=True, kw_only=True):
    """The body of a request that creates or changes a conversation."""

    summary: _Text | None = None
    description: _Text | None = None
    archived: bool | None = None


class Chosen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client's choices for its runs: ``thinkwell`` in the metadata of an agent."""

    agent: str | None = None
    folder: str | None = None
    permissions: str | None = None


def read_chosen(metadata: Mapping[str, JsonValue] | None) -> Chosen:
    """Return the choices in the metadata of an agent.

    Raises:
        RequestInvalid: It is invalid.
    """
    try:
        return msgspec.convert((metadata or {}).get("thinkwell", {}), Chosen)
    except msgspec.ValidationError as exc:
        raise RequestInvalid(type_words(exc, Chosen, at="metadata.thinkwell")) from None
