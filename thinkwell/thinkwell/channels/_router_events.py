"""Events of a router: a message was taken, or answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from thinkwell.channels._outcome import DeliveryStatus  # noqa: TC001 - type of a field

logger = logging.getLogger("thinkwell")


class UserMessageReceived(Struct, frozen=True, kw_only=True, tag_field="type", tag="user_message"):
    """A message was taken: it waits for its turn, or has it."""

    type: ClassVar[Literal["user_message"]] = "user_message"

    text: str
    """The text as received. A middleware's result is only for the agent."""
    user_id: str
    channel_id: str
    """The name of its channel."""


class AgentResponded(Struct, frozen=True, kw_only=True, tag_field="type", tag="agent_response"):
    """A message has its answer, whether or not it could be delivered."""

    type: ClassVar[Literal["agent_response"]] = "agent_response"

    text: str
    """The agent's complete text, however it was delivered; may be empty. Descriptions of errors are not
    included."""
    user_id: str
    channel_id: str
    session_id: str | None
    """The agent's name for the session; ``None`` if none could be opened."""
    agent_id: str
    """The name with which the agent was opened; empty if none could be opened."""
    status: DeliveryStatus
    """Whether the answer is complete."""


RouterEvent: TypeAlias = UserMessageReceived | AgentResponded
"""Any event of a router."""


class RouterListeners:
    """Calls the handlers of such events."""

    def __init__(self) -> None:
        self._handlers: dict[str, list[Callable[..., object]]] = {"user_message": [], "agent_response": []}

    def add(self, event: str, handler: Callable[..., object]) -> Callable[[], None]:
        """Call a function for each event, until the returned function is called.

        Raises:
            ValueError: The event is unknown.
        """
        handlers = self._handlers.get(event)
        if handlers is None:
            raise ValueError(f'on({event!r:.100}): choose "user_message" or "agent_response"')
        entry = partial(handler)  # distinct even if the same function is added twice
        handlers.append(entry)

        def forget() -> None:
            if entry in handlers:
                handlers.remove(entry)

        return forget

    async def tell(self, event: RouterEvent) -> None:
        """Call the handlers of an event, one after the other. Their exceptions are logged."""
        for handler in tuple(self._handlers[event.type]):
            try:
                waits = handler(event)
                if isinstance(waits, Awaitable):
                    await waits
            except Exception:
                logger.exception("A handler of %s failed", event.type)
