"""Logging in and out."""

from typing import TYPE_CHECKING, TypeAlias

from thinkwell_acp.schema._base import Choice, Extensible, JsonObject, Model

__all__ = (
    "AuthMethod",
    "AuthMethodAgent",
    "AuthMethodId",
    "AuthMethodTerminal",
    "AuthenticateRequest",
    "AuthenticateResponse",
    "LogoutRequest",
    "LogoutResponse",
)

AuthMethodId: TypeAlias = str
"""The id of a login method."""


class _AuthMethod(Choice):
    __slots__ = ()

    @classmethod
    def choose(cls, raw: JsonObject) -> type[Model]:
        return AuthMethodTerminal if raw.get("type") == "terminal" else AuthMethodAgent


class AuthMethodAgent(Extensible, _AuthMethod, frozen=True, kw_only=True):
    """A login that the agent runs itself after `authenticate`; also any login of an unknown type."""

    id: AuthMethodId
    name: str
    description: str | None = None


class AuthMethodTerminal(
    Extensible, _AuthMethod, frozen=True, kw_only=True, tag_field="type", tag="terminal"
):
    """A login that the user does in a terminal. It is never passed to `authenticate`.

    Attributes:
        args: appended to the agent's own command line.
        env: merged over the agent's own environment.
    """

    id: AuthMethodId
    name: str
    description: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}  # noqa: RUF012 - msgspec makes a new dict for each object


if TYPE_CHECKING:
    AuthMethod: TypeAlias = AuthMethodAgent | AuthMethodTerminal
else:
    AuthMethod = _AuthMethod


class AuthenticateRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `authenticate`."""

    method_id: AuthMethodId


class AuthenticateResponse(Extensible, frozen=True, kw_only=True):
    """Result of `authenticate`."""


class LogoutRequest(Extensible, frozen=True, kw_only=True):
    """Parameters of `logout`."""


class LogoutResponse(Extensible, frozen=True, kw_only=True):
    """Result of `logout`."""
