"""The messages of an answer: while it is written, and at the end."""

from __future__ import annotations

from typing import Final

from thinkwell._display.text import line
from thinkwell.channels._html import CURSOR, HtmlPiece, compose, escape, live
from thinkwell.channels._protocols import ChannelCapabilities

LIMIT: Final = 4_096
"""Most characters of a message, without its marks (Bot API, sendMessage)."""

CAPABILITIES: Final = ChannelCapabilities(
    edits=True, max_length=LIMIT, html=True, expandable_quote=True, paced=True
)
"""What Telegram's messages can do (Bot API, "Formatting options")."""

STATUS: Final = 200
"""Most characters of a status."""

THINKING: Final = 8_000
"""Characters of the thinking that are kept, from its end. Less is ever shown."""

QUOTE: Final = 1_100
"""Most characters above an answer."""


class Writing:
    """An answer that is being written.

    Args:
        capabilities: Those of Telegram, with or without Markdown.
    """

    def __init__(self, capabilities: ChannelCapabilities) -> None:
        self._capabilities = capabilities
        self._chunks: list[str] = []
        self._thinking = ""
        self._seconds: float | None = None
        """How long the agent has thought; ``None`` while it thinks."""
        self._thought_for = 0.0
        self._status = ""
        self._final: tuple[tuple[str, str, float], list[HtmlPiece]] | None = None
        """The messages of the whole answer, and their text: they are requested repeatedly."""
        self._quote: tuple[str, float] | None = None
        """The thinking above the answer once it has a second message: finished messages stay unchanged."""

    @property
    def text(self) -> str:
        """The text so far."""
        self._chunks = ["".join(self._chunks)]
        return self._chunks[0]

    def add(self, chunk: str) -> None:
        """Add to the text."""
        self._chunks.append(chunk)
        self._status = ""

    def think(self, chunk: str) -> None:
        """Add to the thinking."""
        self._thinking = (self._thinking + chunk)[-THINKING:]
        self._seconds = None
        self._status = ""

    def stop_thinking(self, seconds: float) -> None:
        """End the thinking, which took so long in all."""
        self._seconds = self._thought_for = seconds

    def tell(self, status: str) -> None:
        """Show the agent's status until it continues to write."""
        self._status = line(status, STATUS)

    def parts(self) -> list[HtmlPiece]:
        """Return the messages so far. The last one is not finished."""
        parts = self._live(*(self._quote or (self._thinking, self._seconds)))
        if self._quote is None and len(parts) > 1:
            self._quote = self._thinking, self._thought_for
            parts = self._live(*self._quote)
        status = self._status
        if not status and self._quote is not None and self._thinking and self._seconds is None:
            status = "Thinking…"
        if not status:
            return parts
        last = parts.pop() if parts else HtmlPiece("", "")
        above = QUOTE if self._thinking and not parts else 0
        if above + len(last.text) + len(status) + len("\n\n") > LIMIT:
            return [*parts, last]
        between = "\n\n" if last.html else ""
        html = f"{last.html}{between}<i>{escape(status)}</i>"
        return [*parts, HtmlPiece(html, f"{last.text}{between}{status}")]

    def final(self, text: str) -> list[HtmlPiece]:
        """Return the messages of the whole answer.

        Args:
            text: The whole text, which may be longer than the text so far.
        """
        thinking, seconds = self._quote or (self._thinking, self._thought_for)
        of = text, thinking, seconds
        if self._final is None or self._final[0] != of:
            pieces = compose(text, thinking=thinking, seconds=seconds, capabilities=self._capabilities)
            self._final = of, pieces
        return self._final[1]

    def _live(self, thinking: str, seconds: float | None) -> list[HtmlPiece]:
        return live(
            self.text,
            thinking=thinking,
            seconds=seconds,
            cursor="" if self._status else CURSOR,
            capabilities=self._capabilities,
        )
