"""Messages in the HTML of Telegram: an answer, cut to what a message holds, and what was thought above it.

The text is cut first, then escaped, then put between marks. So what is sent is valid, whatever the text is:
half of a mark, or of ``&amp;``, cannot come about.

Without Markdown, the texts of the messages, one after the other, are `carried` (the answer) but for white
space where a message ends (see `thinkwell.channels._pieces`) and at both ends of the answer, which Telegram
strips, and but for messages of which nothing would show, which it refuses.

Limits of Telegram ("Bot API, sendMessage"): 4,096 characters after the marks were read. A request may have
32,768 bytes with its marks. No message of ours comes near: 4,096 times ``&amp;`` is 20 kB, and the marks are
bounded by their number. Further marks than the hundredth are ignored there.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from thinkwell._display.numbers import seconds as duration
from thinkwell._display.text import TAB, without_sequences
from thinkwell.channels._pieces import ranges, splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from thinkwell.channels._marks import Run, Style
    from thinkwell.channels._protocols import ChannelCapabilities

__all__ = ("CURSOR", "HtmlPiece", "carried", "compose", "escape", "exactly", "live", "tail")

CURSOR: Final = "▌"
"""Stands where the agent writes."""

THINKING: Final = 400
"""Characters of the thinking that are shown while it goes on: the last ones."""

THOUGHT: Final = 1_000
"""Characters of the thinking that stay above the answer: the last ones."""

HEAD: Final = 24
"""Characters that are kept for the line above the thinking, with its line feed."""

MOST_MARKS: Final = 90
"""Marks of a message beside the quote. Telegram ignores those after the hundredth."""

LONGEST_WORD: Final = 40
"""Characters that are left out at most so that a text begins with a word."""

MOST_SECONDS: Final = 360_000.0
"""A duration that is shown: of what is longer, four days are."""

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
    """As it is sent. It is valid: every mark is closed, and everything else is escaped."""
    text: str
    """What it has of the answer, without marks; empty for one that only shows what was thought."""


def compose(
    text: str,
    *,
    thinking: str = "",
    seconds: float = 0.0,
    capabilities: ChannelCapabilities,
    markdown: bool = False,
) -> list[HtmlPiece]:
    """Return the messages of an answer; none where nothing of it shows.

    What was thought stands at the top of the first one, in a quote that is folded up. Where quotes cannot be
    folded up, only how long it took is told.

    Args:
        text: What the agent has said.
        thinking: What it has thought before; empty where that is not to be shown.
        seconds: How long that took.
        capabilities: What a message can be. Its HTML is that of Telegram.
        markdown: Whether marks of Markdown are shown as what they mean. If not, the text stays as it is.
    """
    return list(_messages(text, _thought(thinking, seconds, capabilities), capabilities, markdown=markdown))


def live(
    text: str,
    *,
    thinking: str = "",
    seconds: float | None = None,
    cursor: str = CURSOR,
    capabilities: ChannelCapabilities,
    markdown: bool = False,
) -> list[HtmlPiece]:
    """Return the messages of an answer that is being written. The last one is not finished.

    The others are already as `compose` returns them, unless the agent thinks on.

    Args:
        text: What the agent has said so far.
        thinking: What it has thought so far; empty where that is not to be shown.
        seconds: How long it has thought; ``None``: it does so now. Of that, the end is shown.
        cursor: Stands at the end, where there is room.
        capabilities: What a message can be. Its HTML is that of Telegram.
        markdown: As for `compose`.
    """
    quote = _thought(thinking, seconds or 0.0, capabilities)
    if quote is not None and seconds is None:
        room = min(THINKING, quote.room - HEAD)
        shown = tail(thinking, room) if room else ""
        mark = "<blockquote expandable>" if shown and capabilities.expandable_quote else "<blockquote>"
        quote = _Quote(_quoted(mark, "thinking…", shown), quote.room)
    return list(_messages(text, quote, capabilities, markdown=markdown, cursor=cursor, grows=True))


def escape(text: str) -> str:
    """Return a text as it stands in HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def carried(text: str) -> str:
    """Return a text as messages can carry it; for most texts, it is the same.

    Telegram makes a space of every control character, the tab among them, and drops a few characters. So tabs
    become spaces up to the next stop, line ends become line feeds, and what controls a terminal is left out;
    other control characters have a stand-in that shows: ``␀``. What Telegram leaves out is left out here:
    embeddings of the direction of writing, all but the last of several marks of it, and three combining
    characters, of which a ring becomes one character with its letter where there is one.
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
    """Return what a person is to approve, with an escape for each character that Telegram leaves out.

    Args:
        text: It has gone through `thinkwell._display.text.exact`.
    """
    return _DROPPED.sub(lambda found: "".join(f"\\u{ord(char):04x}" for char in found[0]), text)


def tail(text: str, limit: int) -> str:
    """Return the end of a text. Where something is left out, ``…`` says so, and a word begins if it can.

    Args:
        text: A text of any length.
        limit: Characters of what is returned, at least 1.
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
    """What stands above an answer."""

    html: str
    room: int
    """Characters that are kept for it, whatever it shows now: so the text below is always cut alike."""


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
    markdown: bool,
    cursor: str = "",
    grows: bool = False,
) -> Iterator[HtmlPiece]:
    body = carried(text)
    runs: Sequence[Run] = ()
    limit = capabilities.max_length or sys.maxsize
    room = limit - (quote.room if quote else 0)
    settled = sys.maxsize
    if markdown:
        from thinkwell.channels._marks import read_marks  # an extra brings what it needs

        body, runs, stays = read_marks(body)
        if grows:  # more than a message does not wait
            settled = max(stays, len(body) - limit)
    parts = list(_parts(body, limit, room, settled)) or [(0, 0)]
    marked = _Marked(body, runs)
    above = f"{quote.html}\n" if quote else ""
    for start, end in parts:
        shows = _SHOWN.search(body, start, end) is not None
        html = above + marked.html(start, end) if shows else above.rstrip("\n")
        if cursor and shows and end == parts[-1][1] and end - start + len(cursor) <= room:
            html += escape(cursor)
        if html:
            yield HtmlPiece(html, body[start:end] if shows else "")
        above, room = "", limit


def _parts(text: str, limit: int, room: int, settled: int) -> Iterator[tuple[int, int]]:
    """Yield where each message begins and ends, up to the first one of which that may still change."""
    for begin, end in ranges(text, limit, room):
        yield begin, end
        if settled - begin <= room:
            return
        room = limit


class _Marked:
    """A text with marks, of which parts are written as HTML, one after the other."""

    def __init__(self, text: str, runs: Sequence[Run]) -> None:
        self._text = text
        self._runs = runs
        self._next = 0
        """The first run that is not over yet."""

    def html(self, start: int, end: int) -> str:
        """Return a part. Of a run that was cut, each part has the marks."""
        written: list[str] = []
        around: list[_Tag] = []
        left = MOST_MARKS
        at = start
        for run in self._within(start, end):
            begin = max(run.start, start)
            if begin > at:
                _close(around, 0, written)
                written.append(escape(self._text[at:begin]))
            tags = _tags(run.style)
            kept = _common(around, tags)
            _close(around, kept, written)
            if left >= len(tags) - kept:
                left -= len(tags) - kept
                written += [tag.opening for tag in tags[kept:]]
                around += tags[kept:]
            at = min(run.end, end)
            written.append(escape(self._text[begin:at]))
        _close(around, 0, written)
        written.append(escape(self._text[at:end]))
        return "".join(written)

    def _within(self, start: int, end: int) -> Iterator[Run]:
        runs = self._runs
        while self._next < len(runs) and runs[self._next].start < end:
            run = runs[self._next]
            if run.end > start:
                yield run
            if run.end > end:
                return
            self._next += 1


class _Tag(NamedTuple):
    opening: str
    closing: str


_PRE: Final = _Tag("<pre>", "</pre>")
_CODE: Final = _Tag("<code>", "</code>")
_BOLD: Final = _Tag("<b>", "</b>")
_ITALIC: Final = _Tag("<i>", "</i>")
_STRUCK: Final = _Tag("<s>", "</s>")


def _tags(style: Style) -> list[_Tag]:
    """Return the marks of a run, outermost first. Telegram lets code have no others."""
    if style.block:
        language = f'<code class="language-{escape(style.language)}">'
        return [_PRE, _Tag(language, "</code>")] if style.language else [_PRE]
    if style.code:
        return [_CODE]
    return [_BOLD] * style.bold + [_ITALIC] * style.italic + [_STRUCK] * style.struck


def _common(around: Sequence[_Tag], tags: Sequence[_Tag]) -> int:
    """Return how many marks are open already."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(around, tags, strict=False))
    return sum(1 for _ in same)


def _close(around: list[_Tag], kept: int, written: list[str]) -> None:
    while len(around) > kept:
        written.append(around.pop().closing)
