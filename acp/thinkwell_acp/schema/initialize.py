"""The handshake."""

from typing import Annotated, TypeAlias

from msgspec import Meta

from thinkwell_acp.schema._base import Extensible, Lenient
from thinkwell_acp.schema.auth import AuthMethod
from thinkwell_acp.schema.capabilities import AgentCapabilities, ClientCapabilities

__all__ = ("Implementation", "InitializeRequest", "InitializeResponse", "ProtocolVersion")

ProtocolVersion: TypeAlias = Annotated[int, Meta(ge=0, le=65535)]
"""The wire version of the protocol; it is independent of the versions of packages."""


class Implementation(Extensible, frozen=True, kw_only=True):
    """The program on one side of the connection."""

    name: str
    version: str
    title: str | None = None


class InitializeRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `initialize`. The capabilities are always written: some agents require them."""

    protocol_version: ProtocolVersion
    client_capabilities: Lenient[ClientCapabilities]
    client_info: Implementation | None = None


class InitializeResponse(Extensible, frozen=True, kw_only=True):
    """Result of `initialize`."""

    protocol_version: ProtocolVersion
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()
    agent_info: Implementation | None = None
