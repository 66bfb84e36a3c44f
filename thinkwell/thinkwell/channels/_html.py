"""Messages in Telegram's HTML: an answer, cut to the length of a message, with the thinking above it.

The text is cut first, then escaped, then marked. So every message is valid, whatever the text is: a mark or
an ``&amp;`` is never cut in half.

Without Markdown, the texts of the messages add up to the answer as `carried` returns it, except white space
where a message ends (see `thinkwell.channels._pieces`), white space at both ends of the answer, which
Telegram strips, and messages without visible text, which it refuses.

Limits of Telegram ("Bot API, sendMessage"): 4,096 characters after the marks were read. A request may have
32,768 bytes with its marks. Our messages stay far below: 4,096 times ``&amp;`` is 20 kB, and the number of
marks is bounded. Telegram ignores marks after the hundredth.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_left, bisect_right
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from thinkwell._display.numbers import seconds as duration
from thinkwell._display.text import TAB, without_sequences
from thinkwell.channels._pieces import ranges, splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell.channels._marks import Run
    from thinkwell.channels._protocols import ChannelCapabilities

CURSOR: Final = "▌"
"""Shown at the point where the agent writes."""

THINKING: Final = 400
"""Most characters of the thinking that are shown while it goes on, from its end."""

THOUGHT: Final = 1_000
"""Most characters of the thinking that stay above the answer, from its end."""

HEAD: Final = 24
"""Characters reserved for the line above the thinking, with its line feed."""

MOST_MARKS: Final = 90
"""Most marks of a message besides the quote. Telegram ignores those after the hundredth."""

LONGEST_WORD: Final = 40
"""Most characters that are dropped to begin a text with a word."""

MOST_SECONDS: Final = 360_000.0
"""The longest duration that is shown: four days."""

_PLAIN: Final = re.compile(r"[\n -~]*+\Z")
_BREAKS: Final = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_RINGED: Final = re.compile("[AaUuWwYy]\u030a")
_DROPPED: Final = re.compile("[\u030a\u0333\u033f\u202a-\u202e]+")
_DIRECTIONS: Final = re.compile("[\u200e\u200f]+(?=[\u200e\u200f])")
_CONTROLS: Final = {
    **{number: 0x2400 + number for number in range(0x20) if chr(number) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}
_HALVES: Final = re.compile("[\ud800-\udfff]")
_SHOWN: Final = re.compile(
    "[^ \n\xad\xa0\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202f\u205f-\u206f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufffc\U000e0000-\U000e0fff]"
)


class HtmlPiece(Struct, frozen=True):
    """A message."""

    html: str
    """The message as it is sent: valid HTML, with every mark closed and everything else escaped."""
    text: str
    """Its part of the answer, without marks; empty for a message that shows only thinking."""


def compose(
    text: str,
    *,
    thinking: str = "",
    seconds: float = 0.0,
    capabilities: ChannelCapabilities,
) -> list[HtmlPiece]:
    """Return the messages of an answer; none if nothing of it is visible.

    The thinking is in a folded quote at the top of the first one. If quotes cannot be folded, only its
    duration is shown.

    Args:
        text: The agent's text.
        thinking: Its thinking before; empty to hide it.
        seconds: How long it thought.
        capabilities: The channel's capabilities. The HTML is Telegram's.
    """
    return list(_messages(text, _thought(thinking, seconds, capabilities), capabilities))


def live(
    text: str,
    *,
    thinking: str = "",
    seconds: float | None = None,
    cursor: str = CURSOR,
    capabilities: ChannelCapabilities,
) -> list[HtmlPiece]:
    """Return the messages of an answer that is being written. The last one is not finished.

    The others are already as `compose` returns them, unless the agent continues to think.

    Args:
        text: The agent's text so far.
        thinking: Its thinking so far; empty to hide it.
        seconds: How long it thought; ``None``: it thinks now, and the end of that is shown.
        cursor: Added at the end if there is room.
        capabilities: The channel's capabilities. The HTML is Telegram's.
    """
    quote = _thought(thinking, seconds or 0.0, capabilities)
    if quote is not None and seconds is None:
        room = min(THINKING, quote.room - HEAD)
        shown = tail(thinking, room) if room else ""
        mark = "<blockquote expandable>" if shown and capabilities.expandable_quote else "<blockquote>"
        quote = _Quote(_quoted(mark, "thinking…", shown), quote.room)
    return list(_messages(text, quote, capabilities, cursor=cursor, grows=True))


def escape(text: str) -> str:
    """Escape a text for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def carried(text: str) -> str:
    """Return a text as messages can carry it. Most texts stay the same.

    Telegram replaces every control character, including the tab, with a space, and drops a few characters. So
    tabs become spaces up to the next stop, line ends become line feeds, and terminal control sequences are
    removed; other control characters become a visible stand-in: ``␀``. Characters that Telegram drops are
    dropped here: embeddings of the writing direction, all but the last of several direction marks, and three
    combining characters. Of these, a ring is combined with its letter if that is possible.
    """
    if _PLAIN.match(text):
        return text
    if _HALVES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _BREAKS.sub("\n", without_sequences(text))
    text = _RINGED.sub(lambda ringed: unicodedata.normalize("NFC", ringed[0]), text)
    text = _DIRECTIONS.sub("", _DROPPED.sub("", text))
    return text.translate(_CONTROLS).expandtabs(TAB)


def exactly(text: str) -> str:
    """Return a text that a user must approve, with an escape for each character that Telegram drops.

    Args:
        text: The result of `thinkwell._display.text.exact`.
    """
    return _DROPPED.sub(lambda found: "".join(f"\\u{ord(char):04x}" for char in found[0]), text)


def tail(text: str, limit: int) -> str:
    """Return the end of a text. ``…`` marks a cut, which is made before a word if possible.

    Args:
        text: A text of any length.
        limit: Most characters of the result, at least 1.
    """
    end = text[-4 * limit :]
    shown = carried(end).strip(" \n")
    if len(shown) <= limit and len(end) == len(text):
        return shown
    start = max(len(shown) - limit + 1, 0)
    word = re.compile(r"\s").search(shown, start - 1 if start else 0, start + LONGEST_WORD)
    if word is not None:
        start = word.end()
    while 0 < start < len(shown) and splits(shown, 0, start):
        start += 1
    return f"…{shown[start:].lstrip()}"


class _Quote(NamedTuple):
    """The quote above an answer."""

    html: str
    room: int
    """Characters reserved for it, whatever it shows now, so that the text below is always cut alike."""


def _thought(thinking: str, seconds: float, capabilities: ChannelCapabilities) -> _Quote | None:
    limit = capabilities.max_length or sys.maxsize
    if limit < 4 * HEAD or not _SHOWN.search(thinking):
        return None
    head = f"thought for {duration(int(min(max(seconds, 0.0), MOST_SECONDS))).replace('.0s', 's')}"
    if not capabilities.expandable_quote:
        return _Quote(_quoted("<blockquote>", head, ""), HEAD)
    shown = tail(thinking, min(limit // 2 - HEAD, THOUGHT))
    return _Quote(_quoted("<blockquote expandable>", head, shown), HEAD + len(shown))


def _quoted(mark: str, head: str, text: str) -> str:
    return f"{mark}<b>{head}</b>\n{escape(text)}".rstrip("\n") + "</blockquote>"


def _messages(
    text: str,
    quote: _Quote | None,
    capabilities: ChannelCapabilities,
    *,
    cursor: str = "",
    grows: bool = False,
) -> Iterator[HtmlPiece]:
    body = carried(text)
    runs: Sequence[Run] = ()
    limit = capabilities.max_length or sys.maxsize
    room = limit - (quote.room if quote else 0)
    settled = sys.maxsize
    if capabilities.markdown:
        from thinkwell.channels._marks import read_marks  # needs an extra

        body, runs, stays = read_marks(body)
        if grows:  # at most one message waits
            settled = max(stays, len(body) - limit)
    parts = list(_parts(body, limit, room, settled)) or [(0, 0)]
    above = f"{quote.html}\n" if quote else ""
    for start, end in parts:
        shows = _SHOWN.search(body, start, end) is not None
        html = above + _marked(body, runs, start, end) if shows else above.rstrip("\n")
        if cursor and shows and end == parts[-1][1] and end - start + len(cursor) <= room:
            html += escape(cursor)
        if html:
            yield HtmlPiece(html, body[start:end] if shows else "")
        above, room = "", limit


def _parts(text: str, limit: int, room: int, settled: int) -> Iterator[tuple[int, int]]:
    """Yield where each message begins and ends, up to the first one that may still change."""
    for begin, end in ranges(text, limit, room):
        yield begin, end
        if settled - begin <= room:
            return
        room = limit


def _marked(text: str, runs: Sequence[Run], start: int, end: int) -> str:
    """Return a part of a text with marks as HTML. Each part of a run that was cut has the run's marks."""
    written: list[str] = []
    around: list[str] = []
    left = MOST_MARKS
    at = start
    first = bisect_right(runs, start, key=lambda run: run.end)
    for run in runs[first : bisect_left(runs, end, key=lambda run: run.start)]:
        begin = max(run.start, start)
        if begin > at:
            _close(around, 0, written)
            written.append(escape(text[at:begin]))
        kept = _common(around, run.marks)
        opened = run.marks[kept:]
        _close(around, kept, written)
        if left >= len(opened):
            left -= len(opened)
            written += [f"<{mark}>" for mark in opened]
            around += opened
        at = min(run.end, end)
        written.append(escape(text[begin:at]))
    _close(around, 0, written)
    written.append(escape(text[at:end]))
    return "".join(written)


def _common(around: Sequence[str], marks: Sequence[str]) -> int:
    """Return how many marks are open already."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(around, marks, strict=False))
    return sum(1 for _ in same)


def _close(around: list[str], kept: int, written: list[str]) -> None:
    while len(around) > kept:
        name, _, _ = around.pop().partition(" ")
        written.append(f"</{name}>")
