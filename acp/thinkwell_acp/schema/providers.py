"""The model services that an agent can be pointed at (unstable)."""

from typing import TypeAlias

from thinkwell_acp.schema._base import Extensible, Lenient

__all__ = (
    "DisableProviderRequest",
    "DisableProviderResponse",
    "ListProvidersRequest",
    "ListProvidersResponse",
    "LlmProtocol",
    "ProviderCurrentConfig",
    "ProviderId",
    "ProviderInfo",
    "SetProviderRequest",
    "SetProviderResponse",
)

ProviderId: TypeAlias = str
"""Names a provider, such as ``main``; chosen by the agent."""

LlmProtocol: TypeAlias = str
"""What a service speaks: ``anthropic``, ``openai``, ``azure``, ``vertex``, ``bedrock``, or another."""


class ProviderCurrentConfig(Extensible, frozen=True, kw_only=True):
    """Where the requests for a provider go now, without what is secret."""

    api_type: LlmProtocol
    base_url: str


class ProviderInfo(Extensible, frozen=True, kw_only=True):
    """A provider. Without `current` it is disabled; one that is `required` cannot be."""

    provider_id: ProviderId
    supported: Lenient[tuple[LlmProtocol, ...]]
    required: bool
    current: ProviderCurrentConfig | None = None


class ListProvidersRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `providers/list`."""


class ListProvidersResponse(Extensible, frozen=True, kw_only=True):
    """Result of `providers/list`."""

    providers: Lenient[tuple[ProviderInfo, ...]]


class SetProviderRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `providers/set`. Everything that was set before is replaced."""

    provider_id: ProviderId
    api_type: LlmProtocol
    base_url: str
    headers: dict[str, str] = {}  # noqa: RUF012 - msgspec makes a new dict for each object


class SetProviderResponse(Extensible, frozen=True, kw_only=True):
    """Result of `providers/set`."""


class DisableProviderRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `providers/disable`."""

    provider_id: ProviderId


class DisableProviderResponse(Extensible, frozen=True, kw_only=True):
    """Result of `providers/disable`."""
