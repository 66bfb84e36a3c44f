"""What an agent says of its account: how it is logged in, and which model services it uses."""

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
    """What to show."""
    detail: str | None = None


class Provider(Struct, frozen=True, kw_only=True):
    """A model service that an agent can be pointed at."""

    id: str
    """The agent's name for it."""
    api_types: tuple[str, ...]
    """What it may speak, such as ``anthropic`` or ``openai``."""
    required: bool
    """Whether the agent needs it."""
    api_type: str | None = None
    """What it speaks now; ``None`` where it is not in use."""
    base_url: str | None = None
    """Where the requests go now."""


def read_auth_status(params: ev.JsonValue) -> AuthStatus | None:
    """Return what a notification says; ``None`` where it is of another form. No specification has it."""
    match params:
        case {"authStatus": {"kind": str(kind), "label": str(label), **more}}:
            detail = more.get("detail")
            return AuthStatus(kind=kind, label=label, detail=detail if isinstance(detail, str) else None)
        case _:
            return None


def as_provider(info: s.ProviderInfo) -> Provider:
    """Return an entry of the agent's list as users get it."""
    now = info.current
    return Provider(
        id=info.provider_id,
        api_types=info.supported,
        required=info.required,
        api_type=None if now is None else now.api_type,
        base_url=None if now is None else now.base_url,
    )
