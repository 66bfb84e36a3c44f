"""The recipient of a delivery: a user, and the channel through which they are reached."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from thinkwell._display.numbers import seconds
from thinkwell.channels._calls import begun, in_words
from thinkwell.channels._checks import check_channel, check_settings, check_user_id
from thinkwell.channels._protocols import (
    CapableChannel,
    ChannelCapabilities,
    ConfiguredChannel,
    DeliverySettings,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.channels._protocols import Channel

V = TypeVar("V")

logger = logging.getLogger("thinkwell")


class Recipient:
    """A user, the channel to them, and what went wrong in it.

    Args:
        where: The function that was called.
        channel: The channel.
        user_id: The user, as the channel names them.
        settings: How to deliver; by default the channel's own settings, or else `DeliverySettings()`.

    Raises:
        TypeError: An argument, or the channel's settings or capabilities, have another type.
        ValueError: `user_id` is empty.
    """

    def __init__(self, where: str, channel: Channel, user_id: str, settings: DeliverySettings | None) -> None:
        check_channel(where, channel)
        check_user_id(where, user_id)
        check_settings(where, settings)
        if settings is None:
            settings = DeliverySettings()
            if isinstance(channel, ConfiguredChannel):
                settings = checked(channel, "settings", channel.settings, DeliverySettings)
        capabilities = ChannelCapabilities()
        if isinstance(channel, CapableChannel):
            capabilities = checked(channel, "capabilities", channel.capabilities, ChannelCapabilities)
        self.channel: Final = channel
        self.user_id: Final = user_id
        self.settings: Final = settings
        self.capabilities: Final = capabilities
        self.errors: Final[list[Exception]] = []
        """The channel's exceptions so far."""

    async def call(self, method: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Call a method of the channel with the user's id.

        Args:
            method: The method.
            arguments: Its arguments after the user's id.

        Raises:
            NotAsynchronous: The result cannot be awaited.
            TimeoutError: It took too long.
            Exception: It failed.
        """
        name = getattr(method, "__name__", "the method")
        returned = begun(name, method, self.user_id, *arguments)
        with anyio.move_on_after(self.settings.timeout) as scope:
            await returned
        if scope.cancelled_caught:
            raise TimeoutError(f"{name} took more than {seconds(self.settings.timeout)}")

    def failed(self, error: Exception, attempt: str = "") -> None:
        """Record an exception of the channel, and the attempt to send the final text that it ended."""
        when = f" ({attempt})" if attempt else ""
        logger.warning("Channel %s failed%s: %s", type(self.channel).__name__, when, in_words(error))
        self.errors.append(error)


def checked(channel: Channel, name: str, value: object, kind: type[V]) -> V:
    """Return an attribute of a channel: users' classes may use the name for something else.

    Raises:
        TypeError: It is of another type.
    """
    if not isinstance(value, kind):
        raise TypeError(
            f"{type(channel).__name__}.{name} is a {type(value).__name__}; deliver takes it for "
            f"{kind.__name__}: rename it, or return one"
        )
    return value
