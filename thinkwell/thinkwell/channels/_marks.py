"""The Markdown that agents write, as marks of a text: which of its parts are bold, or code.

A subset, read line by line, so that a mark never reaches beyond its line (a fence does) and the work is in
proportion to the text: fences, ``code``, ``**bold**``, ``*italic*``, headings, which become bold, and links.
A link's address is written out behind its text: no link goes anywhere but where it says. Everything else,
such as lists, quotes and tables, stays as it was written, and so does a mark that is not closed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("Run", "Style", "read_marks")

LONGEST_LINE: Final = 20_000
"""Characters of a line whose marks are looked for. No paragraph is that long."""


class Style(NamedTuple):
    """How a part of a text is shown. Code is nothing else besides."""

    bold: bool = False
    italic: bool = False
    code: bool = False
    fence: int = 0
    """A block of code, by its number, so that two that touch are two."""
    language: str = ""
    """Of a block of code."""


class Run(NamedTuple):
    """A part of a text that is shown in one way. The text between runs is plain."""

    start: int
    end: int
    style: Style


PLAIN: Final = Style()
_CODE: Final = Style(code=True)
_STYLES: Final = (PLAIN, Style(italic=True), Style(bold=True), Style(bold=True, italic=True))
"""By what text is: the sum of the asterisks that mean it, 1 for italic and 2 for bold."""
_KINDS: Final[dict[int, list[int]]] = {1: [1], 2: [2], 3: [2, 1]}
"""By the number of asterisks: what they begin, outermost first."""
_BOLD: Final = 2

_SPECIAL: Final = re.compile(r"[*`\[\\#~]")
_FENCE: Final = re.compile(
    r"([ \t]{0,80}+(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]{1,4}+)?)(`{3,80}+|~{3,80}+)[ \t]*+([^\s`]*+)[^`]*+"
)
"""A fence may stand behind the sign of a list."""
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(?=\S)")
_MARK: Final = re.compile(r"\\([*_`\[\]#~|])|(`+)|(\*+)|!?(\[)")
_LINK: Final = re.compile(
    r"!?\[([^\[\]]{1,500})\]\(<?((?:[^\s()<>]++|\([^\s()<>]*+\))++)>?(?:[ \t]+\"[^\"]{0,200}+\")?\)"
)
_TICKS: Final = re.compile(r"`+")
_WORD: Final = re.compile(r"[A-Za-z0-9_]")


def read_marks(text: str) -> tuple[str, list[Run]]:
    """Return a Markdown text without its marks, and what they said of it, in order.

    The text is never longer than it was.

    Args:
        text: Markdown, with line feeds as line ends.
    """
    reader = _Reader(text)
    at = 0
    while at <= len(text):
        at = reader.read_prose(at) if reader.fence is None else reader.read_code(reader.fence, at)
    return "".join(reader.pieces), reader.runs


def _next_marked(text: str, at: int) -> int:
    """Return where the next line begins that may have marks; behind the end where there is none."""
    found = _SPECIAL.search(text, at)
    return len(text) + 1 if found is None else max(text.rfind("\n", at, found.start()) + 1, at)


class _Fence(NamedTuple):
    """A block of code that was opened."""

    end: re.Pattern[str]
    indentation: re.Pattern[str] | None
    """What its lines have before them."""
    language: str


def _fence(indentation: int, mark: str, language: str) -> _Fence:
    return _Fence(
        re.compile(rf"^[ \t]*+{mark[0]}{{{len(mark)},}}+[ \t]*+$", re.MULTILINE),
        re.compile(rf"^[ \t]{{1,{indentation}}}+", re.MULTILINE) if indentation else None,
        language if _LANGUAGE.fullmatch(language) else "",
    )


class _Reader:
    def __init__(self, text: str) -> None:
        self.pieces: list[str] = []
        self.runs: list[Run] = []
        self.fence: _Fence | None = None
        """The block of code that what comes next is in."""
        self._text = text
        self._at = 0
        self._begun = False
        """Whether there was a line, so that the next one is below it."""

    def read_code(self, fence: _Fence, at: int) -> int:
        """Read a block of code to its end, and return where the next line begins."""
        text = self._text
        self.fence = None
        found = fence.end.search(text, at)
        start, end = (len(text) + 1, len(text)) if found is None else found.span()
        if start > at:
            code = text[at : start - 1]
            bare = code if fence.indentation is None else fence.indentation.sub("", code)
            self._add([(bare, Style(fence=True, language=fence.language))])
        return end + 1

    def read_prose(self, at: int) -> int:
        """Read a line, or all that come before the next one with marks, and return where that begins."""
        text = self._text
        start = _next_marked(text, at)
        if start > at:
            self._add([(text[at : start - 1], PLAIN)])
            return start
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        self._read_line(text[at:end])
        return end + 1

    def _read_line(self, line: str) -> None:
        opened = _FENCE.fullmatch(line)
        if opened is not None:
            bullet, mark, language = opened.groups()
            if bullet.strip():
                self._add([(bullet.rstrip(), PLAIN)])
            self.fence = _fence(len(bullet), mark, language)
            return
        heading = _HEADING.match(line)
        if heading is None:
            self._add(_marked(line))
        else:
            parts = _marked(_title(line[heading.end() :]))
            self._add([(text, _also(style, _BOLD)) for text, style in parts])

    def _add(self, parts: Iterable[tuple[str, Style]]) -> None:
        """Add a line, or several."""
        if self._begun:
            self._put("\n", PLAIN)
        self._begun = True
        for text, style in parts:
            self._put(text, style)

    def _put(self, text: str, style: Style) -> None:
        start, self._at = self._at, self._at + len(text)
        self.pieces.append(text)
        if not text or style == PLAIN:
            return
        if self.runs and self.runs[-1].end == start and self.runs[-1].style == style:
            start = self.runs.pop().start
        self.runs.append(Run(start, self._at, style))


def _title(text: str) -> str:
    """Return the text of a heading, without the signs that may stand behind it."""
    bare = text.rstrip(" \t")
    title = bare.rstrip("#")
    return title.rstrip(" \t") if title.endswith((" ", "\t")) else bare


# Within a line


@dataclass(slots=True)
class _Stars:
    """One to three asterisks: they begin something, end something, or are just that."""

    count: int
    opened: int = 0
    """How many of them begin something that has an end."""
    closed: int = 0
    """How many of them end something."""


_Part: TypeAlias = "tuple[str, Style] | _Stars"


def _marked(line: str) -> Iterable[tuple[str, Style]]:
    """Return the parts of a line, in order."""
    if len(line) > LONGEST_LINE or _MARK.search(line) is None:
        return [(line, PLAIN)]
    return _styled(_Line(line).parts())


class _Line:
    """Finds the marks of a line."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._parts: list[_Part] = []
        self._open: list[tuple[int, _Stars]] = []
        """What has begun, outermost first, with the asterisks it began with: bold and italic, once each."""
        self._ticks: dict[int, list[int]] | None = None
        """Where backticks stand, by how many there are in a row; ``None``: not looked for yet."""

    def parts(self) -> list[_Part]:
        line = self._line
        done = at = 0
        while (found := _MARK.search(line, at)) is not None:
            escaped, ticks, stars, _ = found.groups()
            start, at = found.span()
            if escaped:
                parts: list[_Part] = [(escaped, PLAIN)]
            elif stars:
                parts = self._stars(start, at)
            elif ticks:
                parts, at = self._code(at, len(ticks))
            else:
                parts, at = self._link(start, at)
            if parts:
                if done < start:
                    self._parts.append((line[done:start], PLAIN))
                self._parts += parts
                done = at
        self._parts.append((line[done:], PLAIN))
        return self._parts

    def _code(self, at: int, count: int) -> tuple[list[_Part], int]:
        """Return the code behind so many backticks, and where to go on; nothing where it has no end."""
        end = self._closing(at, count)
        return ([], at) if end is None else ([(_bare(self._line[at:end]), _CODE)], end + count)

    def _link(self, start: int, at: int) -> tuple[list[_Part], int]:
        link = _LINK.match(self._line, start)
        if link is None or link[1].count("`") % 2:
            return [], at
        text, address = link.groups()
        behind = [] if text == address else [(f" ({address})", PLAIN)]
        return [*_marked(text), *behind], link.end()

    def _closing(self, at: int, count: int) -> int | None:
        """Return where the same number of backticks stands behind a place."""
        if self._ticks is None:
            self._ticks = {}
            for found in _TICKS.finditer(self._line):
                self._ticks.setdefault(found.end() - found.start(), []).append(found.start())
        places = self._ticks.get(count, ())
        index = bisect_left(places, at)
        return places[index] if index < len(places) else None

    def _stars(self, start: int, end: int) -> list[_Part]:
        count = end - start
        if count > 3:
            return []
        before, after = self._line[max(start - 1, 0) : start], self._line[end : end + 1]
        stars = _Stars(count)
        kinds = _KINDS[count]
        known = [kind for kind, _ in self._open]
        if before.strip() and not _WORD.match(after) and all(kind in known for kind in kinds):
            self._end(stars)
        elif after.strip() and not _WORD.match(before) and not any(kind in known for kind in kinds):
            self._open += [(kind, stars) for kind in kinds]
        return [stars]

    def _end(self, stars: _Stars) -> None:
        while stars.closed < stars.count:
            kind, began = self._open.pop()
            if kind & stars.count:  # else it has begun within, and has no end
                began.opened += kind
                stars.closed += kind


def _styled(parts: Iterable[_Part]) -> Iterator[tuple[str, Style]]:
    now = 0
    for part in parts:
        if isinstance(part, _Stars):
            now -= part.closed
            if part.count > part.opened + part.closed:
                yield "*" * (part.count - part.opened - part.closed), _STYLES[now]
            now += part.opened
        else:
            yield part[0], _also(part[1], now)


def _also(style: Style, kinds: int) -> Style:
    """Return a style that is bold or italic besides."""
    if not kinds or style.code:
        return style
    return _STYLES[kinds | style.italic | style.bold << 1]


def _bare(text: str) -> str:
    """Return the text of a code span, without the spaces that keep its backticks from the marks."""
    padded = text[0] == text[-1] == " " and bool(text.strip(" "))
    return text[1:-1] if padded else text
