"""Showing a run in a channel while the agent works: pieces of text, at the channel's pace."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell.channels._calls import may_pass, retry_after
from thinkwell.channels._following import Piece
from thinkwell.channels._protocols import DraftingChannel, StreamingChannel, ThinkingChannel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from thinkwell.channels._following import Kind
    from thinkwell.channels._protocols import DeliverySettings
    from thinkwell.channels._recipient import Recipient

EDIT_INTERVAL: Final = 1.0
"""Seconds between edits, if neither the channel nor its settings set them."""


class Showing:
    """Shows a run in progress. This one shows nothing: for channels that only send whole messages."""

    refusal: Exception | None = None
    """Why the whole text cannot be sent either, if the channel says that the error is permanent."""

    def __init__(self) -> None:
        self.chunks = 0
        """The number of pieces of text that were handed to the channel."""
        self.first_at: float | None = None
        """When the first of them was taken, by the clock of the event loop."""

    @property
    def due(self) -> float:
        """When the next piece may be handed over, by the clock of the event loop."""
        return math.inf

    async def begin(self) -> None:
        """Begin to show the run."""

    def add(self, pieces: Iterable[Piece], thought_for: float, *, thinks: bool) -> None:
        """Take new pieces.

        Args:
            pieces: The pieces.
            thought_for: Seconds that the agent has thought in all.
            thinks: Whether it thinks now.
        """
        deque(pieces, maxlen=0)

    async def hand_over(self) -> None:
        """Give the channel all pieces that are due."""

    async def end(self, full_text: str) -> bool:
        """Show the end, and return whether it is shown. If not, the text must still be sent.

        If this was cancelled, it may be called again; nothing is shown twice.
        """
        return False

    def _count(self, now: float) -> None:
        """Record that the channel has taken a piece."""
        self.chunks += 1
        if self.first_at is None:
            self.first_at = now


def showing(to: Recipient) -> Showing:
    """Return an object that shows runs to a recipient."""
    channel = to.channel
    if to.settings.streaming and isinstance(channel, StreamingChannel):
        return _Streaming(channel, to)
    if to.settings.streaming and isinstance(channel, DraftingChannel):
        return _Drafting(channel, to)
    return Showing()


class _Drafting(Showing):
    """For channels that show a preview. After a failed one, the next shows the text again."""

    def __init__(self, channel: DraftingChannel, to: Recipient) -> None:
        super().__init__()
        self._channel = channel
        self._to = to
        self._settings = to.settings
        self._interval = _interval(to.settings, EDIT_INTERVAL)
        self._text: list[str] = []
        self._new = 0
        self._drafted_at = -math.inf

    @property
    def due(self) -> float:
        return self._drafted_at + self._interval if self._new >= self._settings.least_characters else math.inf

    def add(self, pieces: Iterable[Piece], thought_for: float, *, thinks: bool) -> None:
        for piece in pieces:
            if piece.kind == "text":
                self._text.append(piece.text)
                self._new += len(piece.text)

    async def hand_over(self) -> None:
        if anyio.current_time() < self.due:
            return
        self._new = 0
        self._text = ["".join(self._text)]
        try:
            await self._to.call(self._channel.send_draft, self._text[0])
        except Exception as exc:
            self._to.failed(exc)
        else:
            self._count(anyio.current_time())
        self._drafted_at = anyio.current_time()


class _Streaming(Showing):
    """For channels that take pieces."""

    def __init__(self, channel: StreamingChannel, to: Recipient) -> None:
        super().__init__()
        self._channel = channel
        self._to = to
        self._settings = to.settings
        self._methods: dict[Kind, Callable[..., Awaitable[None]]] = {
            "text": channel.on_stream_chunk,
            "status": channel.on_stream_status,
        }
        """How the channel takes each kind of piece."""
        if to.settings.thinking and isinstance(channel, ThinkingChannel):
            self._methods["thought"] = channel.on_stream_thinking
            self._methods["thought_end"] = channel.on_stream_thinking_end
        self._edits = to.capabilities.edits
        self._paced = to.capabilities.paced
        self._interval = 0.0 if self._paced else _interval(to.settings, EDIT_INTERVAL if self._edits else 0.0)
        self._starts_at: float | None = -math.inf
        """When to call the channel's start: ``None`` once called, infinity once it has failed."""
        self._ended = False
        """Whether the channel's end was called."""
        self._statuses: deque[Piece] = deque()
        """Statuses that need not wait for the text before them, because it is edited and they stand
        elsewhere."""
        self._queue: deque[Piece] = deque()
        self._withheld: list[str] = []
        """Thoughts, until the agent has thought for long enough."""
        self._long_at = math.inf
        """When that will be."""
        self._thought_for = 0.0
        self._handed: list[str] = []
        self._handed_at = -math.inf

    @property
    def due(self) -> float:
        return min(self._next_at, self._long_at) if self._starts_at is None else self._starts_at

    @property
    def _is_open(self) -> bool:
        """Whether the channel shows a stream."""
        return self._starts_at is None

    @property
    def _next_at(self) -> float:
        """When the next piece of the queue may be handed over."""
        if not self._queue:
            return math.inf
        piece = self._queue[0]
        if not _is_text(piece):
            return -math.inf
        is_complete = len(self._queue) > 1
        least = 1 if self._paced else self._settings.least_characters
        is_enough = is_complete or len(piece.text) >= least
        return self._handed_at + self._interval if is_enough else math.inf

    async def begin(self) -> None:
        self._starts_at = None  # even if cancelled: the channel may have begun
        try:
            await self._to.call(self._channel.on_stream_start)
        except Exception as exc:
            seconds = retry_after(exc)
            if seconds is None:
                self._break(exc)
            else:
                self._starts_at = anyio.current_time() + seconds
                self._to.failed(exc)

    def add(self, pieces: Iterable[Piece], thought_for: float, *, thinks: bool) -> None:
        self._thought_for = thought_for
        least = self._settings.least_thinking
        for piece in pieces:
            if piece.kind not in self._methods:
                continue
            if piece.kind == "thought":
                self._withheld.append(piece.text)
            elif piece.kind != "thought_end":
                self._put(piece)
            elif thought_for >= least:
                self._release()
                self._put(piece)
        if self._withheld and thought_for >= least:
            self._release()
        waits = bool(self._withheld) and thinks
        self._long_at = anyio.current_time() + least - thought_for if waits else math.inf

    def _release(self) -> None:
        if self._withheld:
            self._put(Piece("thought", "".join(self._withheld)))
            self._withheld.clear()

    def _put(self, piece: Piece) -> None:
        """Queue a piece, merged with the one before if both belong to one text."""
        if self._starts_at == math.inf:
            return
        queue = self._queue
        if queue and _is_text(piece) and queue[-1].kind == piece.kind:
            queue[-1] = Piece(piece.kind, queue[-1].text + piece.text)
        elif piece.kind == "status" and self._edits:
            self._statuses.append(piece)
        else:
            queue.append(piece)

    async def hand_over(self) -> None:
        if self._starts_at is not None and anyio.current_time() >= self._starts_at:
            await self.begin()
        while self._statuses and self._is_open:
            await self._hand(self._statuses.popleft())
        while self._queue and self._is_open:
            told = not all(map(_is_text, self._queue))  # a status comes after the text before it
            if anyio.current_time() < self._next_at and (self._edits or not told):
                return
            await self._hand(self._queue.popleft())

    async def _hand(self, piece: Piece) -> None:
        if piece.kind == "text":
            self._handed.append(piece.text)  # even if cancelled: the channel has it
        value = self._thought_for if piece.kind == "thought_end" else piece.text
        await self._call(self._methods[piece.kind], value)
        if _is_text(piece):
            self._handed_at = anyio.current_time()
            if self._is_open:
                self._count(self._handed_at)

    async def end(self, full_text: str) -> bool:
        while self._queue and self._is_open:
            piece = self._queue.popleft()
            if piece.kind != "text" or not self._edits or self._paced:  # else the end replaces it at once
                await self._hand(piece)
        handed = "".join(self._handed)
        if not self._edits and self._is_open and full_text.startswith(handed) and full_text != handed:
            await self._hand(Piece("text", full_text[len(handed) :]))  # the description of an error
        if self._is_open and not self._ended:
            self._ended = True
            await self._call(self._channel.on_stream_end, full_text)
        return self._is_open

    async def _call(self, method: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Call the channel. After a failure, it is not called again."""
        try:
            await self._to.call(method, *arguments)
        except Exception as exc:
            self._break(exc)

    def _break(self, error: Exception) -> None:
        """Stop calling the channel: the text is sent whole at the end."""
        self._starts_at = math.inf
        if self._ended and not may_pass(error):
            self.refusal = error
        self._queue.clear()
        self._statuses.clear()
        self._to.failed(error)


def _is_text(piece: Piece) -> bool:
    return piece.kind in ("text", "thought")


def _interval(settings: DeliverySettings, otherwise: float) -> float:
    return otherwise if settings.edit_interval is None else settings.edit_interval
