"""The model services that an agent can use (unstable)."""

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
"""The id of a provider, such as ``main``; chosen by the agent."""

LlmProtocol: TypeAlias = str
"""The API of a service: ``anthropic``, ``openai``, ``azure``, ``vertex``, ``bedrock``, or another."""


class ProviderCurrentConfig(Extensible, frozen=True, kw_only=True):
    """The current address of a provider, without secrets."""

    api_type: LlmProtocol
    base_url: str


class ProviderInfo(Extensible, frozen=True, kw_only=True):
    """A provider. Without `current` it is disabled; a `required` one cannot be."""

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
    """Parameters of `providers/set`. They replace all earlier settings."""

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
