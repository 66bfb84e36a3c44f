"""Translate errors of the protocol layer into errors of a run. No other place does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from thinkwell.errors import (
    AgentClosed,
    AgentExited,
    AgentReported,
    AgentStartFailed,
    AnswerUnreadable,
    AuthMethod,
    CapabilityMissing,
    LoginRequired,
    ThinkwellError,
    _how_it_ended,
)
from thinkwell_acp import (
    AcpError,
    ConnectionBroken,
    ConnectionClosed,
    ConnectionEnded,
    DecodeError,
    ProcessExited,
    RpcError,
    VersionMismatch,
)
from thinkwell_acp import (
    CapabilityMissing as WireCapabilityMissing,
)
from thinkwell_acp import schema as s
from thinkwell_acp.errors import AUTH_REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

LAST_TIME: Final = 253_402_300_800
"""The end of the year 9999, in seconds since 1970: a later time is a mistake."""


def auth_methods(offered: Sequence[s.AuthMethod], command: Sequence[str]) -> tuple[AuthMethod, ...]:
    """Return the login methods that an agent offers.

    Args:
        offered: The methods of `initialize`, the only place for them (ACP, Authentication).
        command: The agent's own command; empty if we did not start it.
    """
    return tuple(
        AuthMethod(
            id=method.id,
            name=method.name,
            description=method.description or "",
            type="terminal",
            command=(*command, *method.args) if command else (),
            env=dict(method.env),
        )
        if isinstance(method, s.AuthMethodTerminal)
        else AuthMethod(id=method.id, name=method.name, description=method.description or "")
        for method in offered
    )


def translate(
    error: Exception, agent: str, methods: Sequence[AuthMethod] = (), *, ended_because: str = ""
) -> Exception:
    """Return the public error for one of the protocol layer; any other is returned unchanged.

    Args:
        error: The error.
        agent: The agent's name.
        methods: The login methods that it offers.
        ended_because: Why we ended its process, if we did.
    """
    match error:
        case RpcError(code=code) if code == AUTH_REQUIRED:
            return LoginRequired(agent, methods, _wanted(error))
        case RpcError():
            return AgentReported(error.code, error.message, error.data)
        case ProcessExited():
            return AgentExited(error.exit_code, error.stderr_tail, agent=agent, ended_because=ended_because)
        case ConnectionEnded():
            return AgentExited(None, agent=agent, ended_because=str(error))
        case ConnectionBroken():
            return AgentExited(None, reason=str(error) if error.args else "", agent=agent)
        case ConnectionClosed():
            return AgentClosed()
        case WireCapabilityMissing():
            return CapabilityMissing(error.capability, error.wanted_by)
        case DecodeError():
            return AnswerUnreadable(str(error))
        case _:
            return error


def _wanted(error: RpcError) -> str:
    return f"it wants a login first ({error.message})"


def turn_failed(update: s.SessionUpdate) -> bool | None:
    """Return whether an agent marks its turn as failed; ``None`` if it says nothing about that.

    codex-acp does: the status of its thread is ``active`` when a turn begins, ``idle`` when it is done, and
    ``systemError`` when it has failed. Its model cannot send that, whatever it writes. (``sessionFailure``,
    which it has for clients that ask for it, says less: quota and overload are one category there.)
    """
    match update:
        case s.SessionInfoUpdate(meta={"codex": {"threadStatus": {"type": str(status)}}}):
            return status == "systemError"
        case _:
            return None


def quota_renewal(update: s.SessionUpdate) -> float | None:
    """Return when a used-up quota is renewed, in seconds since 1970; 0: it is not used up; ``None``: unknown.

    claude-agent-acp says so for a subscription, before it reports the error, once a session has an answer.
    """
    match update:
        case s.UsageUpdate(
            meta={"_claude/rateLimit": {"status": "rejected", "resetsAt": int(at) | float(at)}}
        ) if 0 < at < LAST_TIME:
            return at
        case s.UsageUpdate(meta={"_claude/rateLimit": _}):
            return 0
        case _:
            return None


def noise(malformed: Sequence[bytes]) -> str:
    """Return a hint about malformed lines."""
    if not malformed:
        return ""
    return (
        ". It printed a line that is not a message of the Agent Client Protocol, such as "
        f"{malformed[0][:200]!r}: is it started in its ACP mode?"
    )


def start_failure(
    error: AcpError | DecodeError, agent: str, malformed: Sequence[bytes], command: Sequence[str] = ()
) -> ThinkwellError:
    """Return the public error for an agent that failed before its first answer."""
    match error:
        case ProcessExited(exit_code=code, stderr_tail=tail):
            hint = noise(malformed) or ". Run its command by hand to see why"
            reason = f"it {_how_it_ended(code)} before it answered{hint}"
            return AgentStartFailed(agent, reason, stderr_tail=tail, exit_code=code, command=command)
        case RpcError(code=code) if code == AUTH_REQUIRED:
            return LoginRequired(agent, (), _wanted(error))
        case VersionMismatch():
            reason = f"{error}. Install a version of it that speaks {error.offered}"
            return AgentStartFailed(agent, reason, command=command)
        case _:
            hint = noise(malformed) or ". Run its command by hand to see what it sends"
            return AgentStartFailed(agent, f"{error}{hint}", command=command)
