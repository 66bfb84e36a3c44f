"""An agent's account: its login, and the model services that it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from thinkwell import events as ev
    from thinkwell_acp import schema as s


class AuthStatus(Struct, frozen=True, kw_only=True):
    """How an agent is logged in at its model service."""

    kind: str
    """Such as ``api_key``, ``account``, ``gateway``, ``external`` or ``none``."""
    label: str
    """The name to show."""
    detail: str | None = None


class Provider(Struct, frozen=True, kw_only=True):
    """A model service that an agent can use."""

    id: str
    """The agent's name for it."""
    api_types: tuple[str, ...]
    """The APIs that it may have, such as ``anthropic`` or ``openai``."""
    required: bool
    """Whether the agent needs it."""
    api_type: str | None = None
    """The current API; ``None`` if it is not in use."""
    base_url: str | None = None
    """The current address."""


def read_auth_status(params: ev.JsonValue) -> AuthStatus | None:
    """Return the status in a notification; ``None`` if it has another form. No specification has it."""
    match params:
        case {"authStatus": {"kind": str(kind), "label": str(label), **more}}:
            detail = more.get("detail")
            return AuthStatus(kind=kind, label=label, detail=detail if isinstance(detail, str) else None)
        case _:
            return None


def as_provider(info: s.ProviderInfo) -> Provider:
    """Return an entry of the agent's list in its public form."""
    now = info.current
    return Provider(
        id=info.provider_id,
        api_types=info.supported,
        required=info.required,
        api_type=None if now is None else now.api_type,
        base_url=None if now is None else now.base_url,
    )
