"""The errors of calls to an agent, in their public form."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from thinkwell._core.protocol.errors import auth_methods, quota_renewal, translate
from thinkwell.agents._profile import advise, advising
from thinkwell.errors import AgentReported, QuotaExhausted
from thinkwell_acp import AcpError, DecodeError, RpcError
from thinkwell_acp.errors import AUTH_REQUIRED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from contextlib import AbstractContextManager

    from thinkwell.agents import AgentProfile
    from thinkwell.errors import AuthMethod
    from thinkwell_acp import Client
    from thinkwell_acp import schema as s

T = TypeVar("T")


class AgentErrors:
    """Makes an agent's errors from those of the protocol layer.

    Args:
        agent: The agent's name.
        client: The connection to it.
        command: The started command; empty if the agent was already running.
        profile: The agent's profile, if we started it.
    """

    def __init__(
        self, agent: str, client: Client, command: Sequence[str], profile: AgentProfile | None
    ) -> None:
        self._agent = agent
        self._client = client
        self._command = command
        self._profile = profile
        self.ended_because = ""
        """Why we ended the agent's process."""
        self._quota_renewal = 0.0
        """When its quota is renewed, in seconds since 1970; 0: it was not said to be used up."""

    @property
    def methods(self) -> tuple[AuthMethod, ...]:
        """The login methods that the agent offers."""
        return auth_methods(self._client.agent.auth_methods, self._command)

    async def call(self, awaitable: Awaitable[T]) -> T:
        """Await a call to the agent and translate its errors.

        Raises:
            AgentError: The call failed.
        """
        with self.advising():
            try:
                return await awaitable
            except (AcpError, DecodeError) as exc:
                raise self.translated(exc) from exc

    def error(self, exc: Exception) -> Exception:
        """Return the public error for one of the protocol layer; any other is returned unchanged."""
        error = self.translated(exc)
        self.advise(error)
        return error

    def translated(self, exc: Exception) -> Exception:
        """Return the same without hints."""
        return translate(exc, self._agent, self.methods, ended_because=self.ended_because)

    def note(self, update: s.SessionUpdate) -> None:
        """Keep what an update says of the errors that may follow."""
        renewal = quota_renewal(update)
        self._quota_renewal = self._quota_renewal if renewal is None else renewal

    @property
    def in_text(self) -> bool:
        """Whether the agent ends failed turns like any other, and marks them."""
        return self._profile is not None and self._profile.fails_in_text

    def of_turn(self, exc: Exception, text: str) -> Exception:
        """Return the error of a turn that the agent answered with an error.

        Args:
            exc: The agent's error.
            text: The agent's last message, which may say why it is not logged in.
        """
        error = self.translated(exc)
        if isinstance(exc, RpcError):
            texts = (exc.message, text) if exc.code == AUTH_REQUIRED else (exc.message,)
            reported = (self._classified(AgentReported(exc.code, said, exc.data)) for said in texts)
            error = next(filter(None, reported), error)
        if isinstance(error, QuotaExhausted) and error.resets_at is None:
            error.resets_at = self._quota_renewal or None
        self.advise(error)
        return error

    def in_message(self, text: str) -> AgentReported:
        """Return the error of a turn that ended with its failure as a message."""
        reported = AgentReported(None, text or "the turn failed without a reason")
        return self._classified(reported) or reported

    def _classified(self, reported: AgentReported) -> AgentReported | None:
        if self._profile is None:
            return None
        return self._profile.classified(reported, self._agent, self.methods)

    def advising(self) -> AbstractContextManager[None]:
        """Add hints to the errors that leave a block."""
        return advising(self._profile)

    def advise(self, error: Exception) -> None:
        """Add the hints of the agent's profile to an error."""
        if self._profile is not None:
            advise(error, self._profile)
