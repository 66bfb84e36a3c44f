"""Sending a final text whole: split into messages, with retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from thinkwell.channels._calls import may_pass, retry_after
from thinkwell.channels._html import compose
from thinkwell.channels._pieces import pieces
from thinkwell.channels._protocols import HtmlChannel, NotifyingChannel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.channels._recipient import Recipient

NOTHING: Final = "(The agent said nothing.)"
"""Delivered instead of an empty text, which most channels cannot send."""

FIRST_PAUSE: Final = 1.0
"""Seconds before the first retry. Each pause is twice as long as the one before."""

LONGEST_PAUSE: Final = 300.0
"""Most seconds of a pause, whatever the channel asks for."""


HOPELESS: Final = (TypeError, AttributeError, NotImplementedError, NameError)
"""Exceptions that indicate a bug in the channel, so that a retry would fail again."""


class Sent(NamedTuple):
    """The outcome."""

    attempts: int
    """The attempts of the message with the most attempts."""
    retries: int
    """The number of retries."""
    failure: Exception | None
    """Why it was not sent, or not completely."""


async def send_final(
    to: Recipient, text: str, *, thoughts: str = "", thought_for: float = 0.0, beside: bool = False
) -> Sent:
    """Send a final text. Messages that were already sent are not sent again.

    Errors that a retry cannot help are not retried: bugs in the channel, or exceptions marked as permanent.

    Args:
        to: The recipient.
        text: The text.
        thoughts: The agent's thinking, if it is shown.
        thought_for: Seconds that it thought.
        beside: Whether to send it beside an answer that is being written, if the channel can do that.
    """
    most = retries = 0
    attempts = to.settings.attempts
    send, messages = _messages(to, text, thoughts, thought_for, beside=beside)
    for message in messages:
        attempt = 0
        while True:
            attempt += 1
            most = max(most, attempt)
            try:
                await to.call(send, message)
                break
            except Exception as exc:
                hopeless = isinstance(exc, HOPELESS) or not may_pass(exc)
                no_more = ", and it is not retried" if hopeless else ""
                to.failed(exc, f"attempt {attempt} of {attempts}{no_more}")
                if attempt >= attempts or hopeless:
                    return Sent(most, retries, exc)
                await anyio.sleep(_pause(exc, FIRST_PAUSE * 2 ** (attempt - 1)))
            retries += 1
    return Sent(most, retries, None)


def _messages(
    to: Recipient, text: str, thoughts: str, thought_for: float, *, beside: bool
) -> tuple[Callable[[str, str], Awaitable[None]], list[str]]:
    """Return the method that sends the messages, and the texts of them, at least one."""
    channel, capabilities = to.channel, to.capabilities
    if beside and isinstance(channel, NotifyingChannel):
        return channel.notify, [text]
    if capabilities.html and isinstance(channel, HtmlChannel):
        composed = compose(
            text,
            thinking=thoughts,
            seconds=thought_for,
            capabilities=capabilities,
        ) or compose(NOTHING, capabilities=capabilities)
        return channel.send_html, [piece.html for piece in composed]
    if capabilities.max_length is None:
        return channel.send, [text]
    return channel.send, pieces(text, capabilities.max_length)


def _pause(error: Exception, otherwise: float) -> float:
    """Return the seconds to wait: the error's ``retry_after``, or else `otherwise`."""
    return min(max(retry_after(error) or 0.0, otherwise), LONGEST_PAUSE)
