"""What people write to the bot, as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from typing import Self

    from thinkwell.channels.telegram._api import TelegramApi
    from thinkwell.channels.telegram._values import Update

__all__ = ("ALLOWED", "Updates")

ALLOWED: Final = ("message", "callback_query")


class Updates:
    """Everything that happens to the bot, each once, until it is cancelled (getUpdates, long polling).

    An update is acknowledged to Telegram by the poll after it was handed over, or by `aclose`: what was not
    handed over comes again the next time. What cannot be read is skipped, and a warning is logged.

    It waits and tries again where the network or Telegram has a fault. Iterating raises:

        TelegramUnauthorized: There is no bot with this token.
        TelegramConflict: A webhook is set, or another program polls and does not give up.

    Args:
        api: The bot's.
        allowed: Kinds of updates.
        poll: Seconds that a request waits for updates, at most 50.
        random: Where the jitter of waits comes from.
    """

    def __init__(
        self,
        api: TelegramApi,
        *,
        allowed: Sequence[str] = ALLOWED,
        poll: int = 50,
        random: random.Random | None = None,
    ) -> None:
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        raise NotImplementedError

    async def aclose(self) -> None:
        """Acknowledge what was handed over, where that works at once. Nothing comes after it."""
        raise NotImplementedError
