"""Says when the next message may be sent or edited, so that Telegram does not refuse it."""

from __future__ import annotations

__all__ = ("Pacer",)


class Pacer:
    """The pace of messages and edits of one bot, over all of its chats.

    One `turn`, or one `try_turn` that returned 0, is for one request that sends or edits a message.

    Args:
        private: Seconds between two such requests to a private chat.
        group: Seconds between two such requests to a group.
        overall: Seconds between two such requests to any chats.
    """

    def __init__(self, *, private: float = 1.1, group: float = 3.1, overall: float = 0.04) -> None:
        raise NotImplementedError

    async def turn(self, chat_id: int, *, final: bool = False) -> None:
        """Wait until a request may be sent to the chat. It is to be sent at once then.

        Turns of a chat come in the order in which they were asked for, those for final messages first. A wait
        that is cancelled takes no turn.
        """
        raise NotImplementedError

    def try_turn(self, chat_id: int) -> float:
        """Take a turn, where nobody has to wait for it, and return 0; else the seconds after which to ask again.

        For intermediate edits: they never come before a `turn` that somebody waits for.
        """
        raise NotImplementedError

    def throttled(self, chat_id: int, retry_after: float | None = None) -> None:
        """Know that Telegram has refused a request to the chat as one too many (429)."""
        raise NotImplementedError

    def interval(self, chat_id: int) -> float:
        """Return the seconds between two requests to the chat, as things are."""
        raise NotImplementedError
