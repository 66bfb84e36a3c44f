"""Messages of the router itself to users."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._core.exit import background_tasks
from thinkwell._display.summary import error_words
from thinkwell.channels._calls import in_words
from thinkwell.channels._outcome import Delivery, DeliveryFailed, DeliveryMetrics, unless_failed
from thinkwell.channels._protocols import TypingChannel
from thinkwell.channels._sending import send_final
from thinkwell.errors import ThinkwellError, ThoughtCancelled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell._conversations.errors import ConversationBusy
    from thinkwell.channels._outcome import DeliveryStatus
    from thinkwell.channels._recipient import Recipient

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


async def refuse(to: Recipient, busy: ConversationBusy) -> None:
    """Tell a user that their message is not answered. The answer to an earlier one may be on its way.

    Raises:
        DeliveryFailed: The message could not be sent.
    """
    await _tell(to, BUSY, "failed", busy, beside=True)


async def notify(to: Recipient, text: str, what: str) -> None:
    """Tell a user something beside the answer, which is delivered all the same if that fails."""
    try:
        await _tell(to, text, "completed", None, beside=True)
    except DeliveryFailed as exc:
        logger.warning("A user was not notified that %s: %s", what, exc.reason)


async def explain(to: Recipient, error: Exception) -> Delivery:
    """Tell a user why their message has no run.

    Raises:
        DeliveryFailed: The message could not be sent.
    """
    if type(error) is ThoughtCancelled:  # by the user; subclasses are not
        return await _tell(to, STOPPED, "cancelled", error)
    about = "A message was not answered: %s: %s"
    if isinstance(error, ThinkwellError):
        logger.warning(about, type(error).__name__, error)
        text = f"⚠ {error_words(error).what}"  # what to do next is for the operator, and in the log
    else:
        logger.error(about, type(error).__name__, error, exc_info=error)
        text = FAILED
    return await _tell(to, text, "failed", error)


@asynccontextmanager
async def typing_shown(to: Recipient) -> AsyncGenerator[None]:
    """Show that an answer is on its way during a block, if the channel can do that."""
    async with background_tasks() as tasks:
        if isinstance(to.channel, TypingChannel):
            tasks.start_soon(_show_typing, to.channel, to.user_id)
        yield


async def _show_typing(channel: TypingChannel, user_id: str) -> None:
    try:
        await channel.show_typing(user_id)
    except Exception as exc:
        about = "Channel %s did not show that an answer is on its way: %s"
        logger.warning(about, type(channel).__name__, in_words(exc))


async def _tell(
    to: Recipient, text: str, status: DeliveryStatus, error: Exception | None, *, beside: bool = False
) -> Delivery:
    """Send a text in the same way as an answer.

    Raises:
        DeliveryFailed: It could not be sent.
    """
    began = anyio.current_time()
    sent = await send_final(to, text, beside=beside)
    took = anyio.current_time() - began
    delivery = Delivery(
        user_id=to.user_id,
        text=text,
        run_text="",
        status=status,
        error=error,
        channel_errors=tuple(to.errors),
        metrics=DeliveryMetrics(
            first_delivery=took if sent.failure is None else None,
            total=took,
            attempts=sent.attempts,
            retries=sent.retries,
        ),
    )
    return unless_failed(delivery, sent.failure)
