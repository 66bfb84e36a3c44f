"""Messages of the router itself to users."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._core.exit import background_tasks
from thinkwell._display.summary import error_words
from thinkwell.channels._calls import in_words
from thinkwell.channels._outcome import Delivery, DeliveryFailed, DeliveryMetrics
from thinkwell.channels._protocols import (
    CapableChannel,
    ChannelCapabilities,
    ConfiguredChannel,
    DeliverySettings,
    NotifyingChannel,
    TypingChannel,
)
from thinkwell.channels._sending import FinalText, send_final
from thinkwell.errors import ThinkwellError, ThoughtCancelled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell._conversations.errors import ConversationBusy
    from thinkwell.channels._outcome import DeliveryStatus
    from thinkwell.channels._protocols import Channel

STEERED: Final = "I read this while I work on what you wrote before."
"""Sent where a message is read in the turn of another one."""

UNCLEAR: Final = "I may not have read this while I worked. If my answer leaves it out, please write it again."
"""Sent where the agent has not said whether it reads a message. Sent again, it could be done twice."""

BUSY: Final = "I am still busy with your last message. Please write again when I have answered."
"""Sent when a message is refused."""

ANEW: Final = "The agent had to be restarted. It does not remember what was said before."
"""Sent when a conversation was lost."""

STOPPED: Final = "⏹ Stopped."
"""Sent when a turn was stopped before it had a run."""

FAILED: Final = "⚠ Something went wrong, and your message was not answered. Please try again later."
"""Sent for an error that does not come from the agent. Its text is not for the user."""

logger = logging.getLogger("thinkwell")


async def refuse(
    busy: ConversationBusy, channel: Channel, user_id: str, settings: DeliverySettings | None
) -> None:
    """Tell a user that their message is not answered. The answer to an earlier one may be on its way.

    Raises:
        DeliveryFailed: The message could not be sent.
    """
    await _tell(BUSY, _beside(channel), user_id, _settings(channel, settings), "failed", busy)


async def notify(
    text: str, what: str, channel: Channel, user_id: str, settings: DeliverySettings | None
) -> None:
    """Tell a user something beside the answer, which is delivered all the same if that fails."""
    try:
        await _tell(text, _beside(channel), user_id, _settings(channel, settings), "completed", None)
    except DeliveryFailed as exc:
        logger.warning("A user was not notified that %s: %s", what, exc.reason)


async def explain(
    error: Exception, channel: Channel, user_id: str, settings: DeliverySettings | None
) -> Delivery:
    """Tell a user why their message has no run.

    Raises:
        DeliveryFailed: The message could not be sent.
    """
    if type(error) is ThoughtCancelled:  # by the user; subclasses are not
        return await _tell(STOPPED, channel, user_id, _settings(channel, settings), "cancelled", error)
    about = "A message was not answered: %s: %s"
    if isinstance(error, ThinkwellError):
        logger.warning(about, type(error).__name__, error)
        text = f"⚠ {error_words(error).what}"  # what to do next is for the operator, and in the log
    else:
        logger.error(about, type(error).__name__, error, exc_info=error)
        text = FAILED
    return await _tell(text, channel, user_id, _settings(channel, settings), "failed", error)


@asynccontextmanager
async def typing_shown(channel: Channel, user_id: str) -> AsyncGenerator[None]:
    """Show that an answer is on its way during a block, if the channel can do that."""
    async with background_tasks() as tasks:
        if isinstance(channel, TypingChannel):
            tasks.start_soon(_show_typing, channel, user_id)
        yield


async def _show_typing(channel: TypingChannel, user_id: str) -> None:
    try:
        await channel.show_typing(user_id)
    except Exception as exc:
        about = "Channel %s did not show that an answer is on its way: %s"
        logger.warning(about, type(channel).__name__, in_words(exc))


class _Beside:
    """Sends texts beside an answer that is being written."""

    def __init__(self, channel: NotifyingChannel) -> None:
        self._channel = channel

    async def send(self, user_id: str, text: str) -> None:
        await self._channel.notify(user_id, text)


def _beside(channel: Channel) -> Channel:
    return _Beside(channel) if isinstance(channel, NotifyingChannel) else channel


def _settings(channel: Channel, settings: DeliverySettings | None) -> DeliverySettings:
    if settings is not None:
        return settings
    return channel.settings if isinstance(channel, ConfiguredChannel) else DeliverySettings()


async def _tell(
    text: str,
    channel: Channel,
    user_id: str,
    settings: DeliverySettings,
    status: DeliveryStatus,
    error: Exception | None,
) -> Delivery:
    """Send a text in the same way as an answer.

    Raises:
        DeliveryFailed: It could not be sent.
    """
    began = anyio.current_time()
    capabilities = channel.capabilities if isinstance(channel, CapableChannel) else ChannelCapabilities()
    errors: list[Exception] = []

    def failed(error: Exception, attempt: str) -> None:
        errors.append(error)

    sent = await send_final(channel, user_id, FinalText(text=text), settings, capabilities, failed)
    took = anyio.current_time() - began
    delivery = Delivery(
        user_id=user_id,
        text=text,
        run_text="",
        status=status,
        error=error,
        channel_errors=tuple(errors),
        metrics=DeliveryMetrics(
            first_delivery=took if sent.failure is None else None,
            total=took,
            attempts=sent.attempts,
            retries=sent.retries,
        ),
    )
    if sent.failure is not None:
        reason = str(sent.failure) or type(sent.failure).__name__
        raise DeliveryFailed(user_id, text, delivery, reason) from sent.failure
    return delivery
