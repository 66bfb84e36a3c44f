"""One turn: a prompt, until the agent has answered or is given up."""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from thinkwell._core.log.log_lines import log_fields
from thinkwell_acp import AcpError, DecodeError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell_acp import Client
    from thinkwell_acp.client import PromptOutcome

logger = logging.getLogger("thinkwell")

CLOSE_TIMEOUT: Final = 5.0
"""Seconds for a cancelled turn to end when its session is closed, before the agent is ended."""


class Patience(Struct, frozen=True):
    """How long to wait for a cancelled turn."""

    seconds: float
    last: bool = False
    """Whether nothing else is tried then: the agent's process is ended next."""

    def within(self, other: Patience) -> Patience:
        """Combine two: the shorter time, and `last` if either has it."""
        return Patience(min(self.seconds, other.seconds), self.last or other.last)


PATIENT: Final = Patience(10.0)
"""Agents were seen to take several seconds."""

HURRIED: Final = Patience(2.0)
"""For the end of a session's block."""

LAST: Final = Patience(2.0, last=True)
"""For the end of the agent's block."""


class TurnLife(Enum):
    """The stages of a turn's life."""

    SENT = auto()
    CANCELLING = auto()
    """The agent was told to end it."""
    CLOSING = auto()
    """It did not, so its session is closed."""
    ENDED = auto()
    LOST = auto()
    """Even that has not ended it."""


_NEXT: Final = {
    TurnLife.SENT: {TurnLife.CANCELLING, TurnLife.ENDED},
    TurnLife.CANCELLING: {TurnLife.CLOSING, TurnLife.ENDED, TurnLife.LOST},
    TurnLife.CLOSING: {TurnLife.ENDED, TurnLife.LOST},
    TurnLife.ENDED: set[TurnLife](),
    TurnLife.LOST: set[TurnLife](),  # a late answer changes nothing
}


class Turn:
    """A prompt, which is sent on construction.

    Args:
        client: The connection to the agent.
        request: The prompt.
        ended: Called with the answer, while messages are being read; before this returns where the
            connection has ended.
    """

    def __init__(
        self, client: Client, request: s.PromptRequest, ended: Callable[[PromptOutcome], None]
    ) -> None:
        self._client = client
        self._session_id = request.session_id
        self._ended = ended
        self._patience = PATIENT
        self._waiting: anyio.CancelScope | None = None
        """Around the wait for the end of a cancelled turn."""
        self._over = anyio.Event()
        self.life = TurnLife.SENT
        self.failed_after: str | None = None
        """The last message when the agent marked the turn as failed: later text is the reason."""
        client.start_prompt(request, self._answered)

    @property
    def over(self) -> bool:
        """Whether the agent has answered."""
        return self._over.is_set()

    @property
    def stuck(self) -> bool:
        """Whether the agent did not end it when it was told to."""
        return self.life in (TurnLife.CLOSING, TurnLife.LOST)

    async def wait(self) -> None:
        """Wait for the answer."""
        await self._over.wait()

    def cancel(self, patience: Patience) -> None:
        """Let the agent end it. A second call can only shorten the wait."""
        if self.life is TurnLife.SENT:
            self._move(TurnLife.CANCELLING)
            self._client.cancel(self._session_id)
        self._patience = self._patience.within(patience)
        if self._waiting is not None:
            soon = anyio.current_time() + patience.seconds
            self._waiting.deadline = min(self._waiting.deadline, soon)

    async def wind_down(self, stuck: Callable[[], None]) -> bool:
        """Wait for the end of a cancelled turn; then close its session.

        Args:
            stuck: Called if the agent does not end it by itself.

        Returns:
            Whether the agent's process must be ended for it.
        """
        self.cancel(PATIENT)
        with anyio.move_on_after(self._patience.seconds) as self._waiting:
            await self._over.wait()
        if self._over.is_set():
            return False
        about = "The agent has not ended the cancelled turn of session %s within %g s"
        extra = log_fields(session=self._session_id)
        logger.info(about, self._session_id, self._patience.seconds, extra=extra)
        if self._patience.last:
            self._move(TurnLife.LOST)
            return False
        self._move(TurnLife.CLOSING)
        stuck()
        if self._client.capabilities.session_capabilities.close is not None:
            with anyio.move_on_after(CLOSE_TIMEOUT) as self._waiting:
                try:
                    await self._client.close_session(s.CloseSessionRequest(session_id=self._session_id))
                    await self._over.wait()
                except (AcpError, DecodeError) as exc:
                    logger.debug("session/close of %s: %s", self._session_id, exc, extra=extra)
            if self._over.is_set():
                return False
        self._move(TurnLife.LOST)
        return True

    def _answered(self, outcome: PromptOutcome) -> None:
        if self.life is not TurnLife.LOST:
            self._move(TurnLife.ENDED)
        self._over.set()
        self._ended(outcome)

    def _move(self, life: TurnLife) -> None:
        assert life in _NEXT[self.life], (self.life, life)
        self.life = life
