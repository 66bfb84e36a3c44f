"""Events of a router: a message was taken, and an agent has answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from thinkwell.channels._outcome import DeliveryStatus  # noqa: TC001 - type of a field

__all__ = ("AgentResponded", "RouterEvent", "RouterListeners", "UserMessageReceived")

logger = logging.getLogger("thinkwell")


class UserMessageReceived(Struct, frozen=True, kw_only=True, tag_field="type", tag="user_message"):
    """A message was taken: it waits for its turn, or has it."""

    type: ClassVar[Literal["user_message"]] = "user_message"

    text: str
    """As it was written; what a middleware makes of it is only for the agent."""
    user_id: str
    channel_id: str
    """Which channel it came by."""


class AgentResponded(Struct, frozen=True, kw_only=True, tag_field="type", tag="agent_response"):
    """A message that was taken has its answer. Whether it could be delivered makes no difference."""

    type: ClassVar[Literal["agent_response"]] = "agent_response"

    text: str
    """All that the agent has said, whole, however it was delivered; empty where it has said nothing. Nothing
    that was said of an error is in it."""
    user_id: str
    channel_id: str
    session_id: str | None
    """The agent's name for the session; ``None`` where none could be opened."""
    agent_id: str
    """What the agent was asked for as; empty where none could be opened."""
    status: DeliveryStatus
    """Whether the answer is complete."""


RouterEvent: TypeAlias = UserMessageReceived | AgentResponded
"""Any event of a router."""


class RouterListeners:
    """Receives such events."""

    def __init__(self) -> None:
        self._handlers: dict[str, list[Callable[..., object]]] = {"user_message": [], "agent_response": []}

    def add(self, event: str, handler: Callable[..., object]) -> Callable[[], None]:
        """Tell a function from now on, until what is returned is called.

        Raises:
            ValueError: There is no such event.
        """
        handlers = self._handlers.get(event)
        if handlers is None:
            raise ValueError(f'on({event!r:.100}): choose "user_message" or "agent_response"')
        entry = partial(handler)  # told apart from the same function, given again
        handlers.append(entry)

        def forget() -> None:
            if entry in handlers:
                handlers.remove(entry)

        return forget

    async def tell(self, event: RouterEvent) -> None:
        """Tell of an event, one after the other. What one of them raises is logged."""
        for handler in tuple(self._handlers[event.type]):
            try:
                waits = handler(event)
                if isinstance(waits, Awaitable):
                    await waits
            except Exception:
                logger.exception("A handler of %s has failed", event.type)
