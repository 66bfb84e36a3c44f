"""Reads the HTML of Telegram as its server does: what it takes and refuses, and what a message then holds.

Telegram documents the marks in "Bot API, HTML style"; what that leaves open is taken from the behaviour of
TDLib (`parse_html` and `fix_formatted_text`), on which the official Bot API server is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_MESSAGE: Final = 4096
"""Characters (code points) of a message, after its entities were parsed."""

LONGEST_REQUEST: Final = 32_768
"""Bytes of the text of a request, marks included."""

MOST_ENTITIES: Final = 100
"""Entities that a message keeps. The others are ignored without a word."""

_TYPES: Final = {
    "a": "text_link",
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "u": "underline",
    "ins": "underline",
    "tg-spoiler": "spoiler",
    "tg-emoji": "custom_emoji",
    "tg-time": "date_time",
    "span": "spoiler",
    "pre": "pre",
    "code": "code",
    "blockquote": "blockquote",
}
"""What each tag makes of its text."""

_PRIORITIES: Final = {"expandable_blockquote": 0, "blockquote": 0, "pre": 1, "code": 2}
_NAMED: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE: Final = re.compile(r"&(?:#x([0-9a-fA-F]*)|#([0-9]*)|([a-zA-Z]*));?")
_SPACES: Final = " \t\r\n\0\v"
_DROPPED: Final = re.compile("[\r\u2028-\u202e\u030a\u0333\u033f]")
_BLANKED: Final = re.compile("[\x00-\x09\x0b-\x0c\x0e-\x20]")
_MARKS: Final = re.compile("[\u200e\u200f]+(?=[\u200e\u200f])")
_EMPTY: Final = re.compile(
    "[ \n\xa0\u1680\u180e\u2000-\u200f\u202e\u202f\u205f\u2800\u3000\ufeff\ufffc\U000e0000-\U000e007f]*"
)
_STYLES: Final = frozenset(("bold", "italic", "underline", "strikethrough", "spoiler"))
_QUOTES: Final = frozenset(("blockquote", "expandable_blockquote"))
_CODES: Final = frozenset(("pre", "code", "date_time"))


class ParseError(ValueError):
    """Telegram does not take a text. The message is its own, as it stands behind ``Bad Request:``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A part of a text that is shown in another way. Numbers are UTF-16 units."""

    type: str
    offset: int
    length: int
    language: str = ""
    url: str = ""
    custom_emoji_id: str = ""
    unix_time: int = 0

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text without its marks, and what they said of it."""

    text: str
    entities: tuple[Entity, ...] = ()

    def of(self, entity: Entity) -> str:
        """Return the text that an entity is about."""
        units = self.text.encode("utf-16-le", "surrogatepass")
        return units[2 * entity.offset : 2 * entity.end].decode("utf-16-le", "surrogatepass")


@dataclass(slots=True)
class _Open:
    tag: str
    argument: str
    offset: int
    begins: int
    date: str = ""


def parse(html: str) -> Parsed:
    """Return the text of HTML, and its entities in order.

    Raises:
        ParseError: Telegram would refuse it.
    """
    if any("\ud800" <= char <= "\udfff" for char in html):
        raise ParseError("text must be encoded in UTF-8")
    if len(html.encode()) > LONGEST_REQUEST:
        raise ParseError("text is too long")
    return _Reader(html).read()


def received(parsed: Parsed) -> Parsed:
    """Return what a message holds in the end: without controls, and without white space at its ends.

    Raises:
        ParseError: Nothing is left of it, or too much.
    """
    cleaned = _cleaned(parsed)
    text = cleaned.text.rstrip(" \n")
    if not text:
        raise ParseError("text must be non-empty")
    ends = _units(text)
    entities = [
        replace(entity, length=min(entity.length, ends - entity.offset))
        for entity in cleaned.entities
        if entity.length and entity.offset < ends
    ]
    first = min((entity.offset for entity in entities), default=ends)
    spare = min(len(text) - len(text.lstrip(" \n")), first)
    text = text[spare:]
    if _EMPTY.fullmatch(text):
        raise ParseError("text must be non-empty")
    if len(text) > LONGEST_MESSAGE:
        raise ParseError("message is too long")
    return Parsed(text, tuple(replace(entity, offset=entity.offset - spare) for entity in entities))


def misnested(parsed: Parsed) -> str:
    """Return what is wrong with the nesting of entities, or an empty text.

    Telegram does not refuse these: it drops some of the marks, which no sender wants.
    """
    if len(parsed.entities) > MOST_ENTITIES:
        return f"{len(parsed.entities)} entities"
    around: list[Entity] = []
    for entity in parsed.entities:
        while around and around[-1].end <= entity.offset:
            around.pop()
        wrong = next((outer for outer in around if not _may_hold(outer, entity)), None)
        if wrong is not None:
            return f"{wrong} holds {entity}"
        around.append(entity)
    return ""


def below_quote(held: Parsed) -> str:
    """Return what a message says below the quote at its top, where it has one."""
    top = held.entities[0] if held.entities else None
    if top is None or top.offset or top.type not in _QUOTES:
        return held.text
    return held.text.removeprefix(held.of(top)).lstrip(" \n")


def told(text: str, messages: Iterable[str]) -> bool:
    """Return whether messages, one after the other, are a text but for white space at their ends.

    That is all that a message may leave out: Telegram strips it.
    """
    rest = text.lstrip(" \n")
    for message in messages:
        if not rest.startswith(message):
            return False
        rest = rest[len(message) :].lstrip(" \n")
    return not rest


def _may_hold(outer: Entity, inner: Entity) -> bool:
    if inner.end > outer.end or outer.type in _CODES or outer.type == inner.type:
        return False
    if outer.type in _QUOTES:
        return inner.type not in _QUOTES
    if inner.type in _CODES or inner.type in _QUOTES:
        return False
    return outer.type in _STYLES or inner.type in _STYLES


def _units(text: str) -> int:
    return len(text) + sum(char > "\uffff" for char in text)


def _cleaned(parsed: Parsed) -> Parsed:
    text = parsed.text
    if not _DROPPED.search(text):
        return Parsed(_readable(text), parsed.entities)
    moved: list[int] = []  # where each UTF-16 unit is when the others are gone
    at = 0
    for char in text:
        wide = _units(char)
        moved += range(at, at + wide)
        at += 0 if _DROPPED.match(char) else wide
    moved.append(at)
    entities = (
        replace(entity, offset=moved[entity.offset], length=moved[entity.end] - moved[entity.offset])
        for entity in parsed.entities
    )
    return Parsed(_readable(_DROPPED.sub("", text)), tuple(entity for entity in entities if entity.length))


def _readable(text: str) -> str:
    return _MARKS.sub(lambda run: "\u200c" * len(run[0]), _BLANKED.sub(" ", text))


class _Reader:
    def __init__(self, html: str) -> None:
        self._html = html
        self._at = 0
        self._pieces: list[str] = []
        self._offset = 0
        self._open: list[_Open] = []
        self._entities: list[Entity] = []

    def read(self) -> Parsed:
        html = self._html
        while self._at < len(html):
            char = html[self._at]
            if char == "&":
                self._say(self._reference() or self._next())
            elif char != "<":
                self._say(self._next())
            elif self._char(1) == "/":
                self._close()
            else:
                self._start()
        if self._open:
            self._fail(f'Can\'t find end tag corresponding to start tag "{self._open[-1].tag}"')
        text = "".join(self._pieces)
        if any("\ud800" <= char <= "\udfff" for char in text):
            self._fail(
                "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched "
                "surrogate code units"
            )
        for number, entity in enumerate(self._entities):
            if entity.type == "code":
                self._entities[number] = replace(entity, language="")
        order = sorted(
            self._entities, key=lambda one: (one.offset, -one.length, _PRIORITIES.get(one.type, 3))
        )
        return Parsed(text, tuple(order))

    def _fail(self, what: str, at: int | None = None) -> None:
        where = "" if at is None else f" at byte offset {len(self._html[:at].encode())}"
        raise ParseError(f"can't parse entities: {what}{where}")

    def _char(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._html[at] if at < len(self._html) else "\0"

    def _next(self) -> str:
        self._at += 1
        return self._html[self._at - 1]

    def _say(self, piece: str) -> None:
        self._pieces.append(piece)
        self._offset += _units(piece)

    def _reference(self) -> str:
        """Return the character that is meant, and go on behind it; empty where none is."""
        found = _REFERENCE.match(self._html, self._at)
        if found is None:
            return ""
        hexadecimal, decimal, name = found.groups()
        if name is not None:
            char = _NAMED.get(name, "")
        else:
            long = len(found[0].rstrip(";")) >= 10
            digits, base = (decimal, 10) if hexadecimal is None else (hexadecimal, 16)
            number = 0 if long else int(digits or "0", base)
            char = chr(number) if 0 < number < 0x10FFFF else ""
        if char:
            self._at = found.end()
        return char

    def _until(self, ends: str) -> str:
        begins = self._at
        while self._char() not in ends:
            self._at += 1
        return self._html[begins : self._at]

    def _skip(self) -> None:
        while self._at < len(self._html) and self._char() != "\0" and self._char() in _SPACES:
            self._at += 1

    def _start(self) -> None:
        begins = self._at
        self._at += 1
        tag = self._until(f"{_SPACES}>").lower()
        if self._char() == "\0":
            self._fail("Unclosed start tag", begins)
        if tag not in _TYPES:
            self._fail(f'Unsupported start tag "{tag}"', begins)
        opened = _Open(tag, "", self._offset, len(self._pieces))
        while self._char() != ">":
            self._skip()
            if self._char() != ">":
                self._attribute(opened, begins)
        self._at += 1
        if tag == "span" and opened.argument != "spoiler":
            self._fail('Tag "span" must have class "tg-spoiler"', begins)
        self._open.append(opened)

    def _attribute(self, opened: _Open, begins: int) -> None:
        name = self._until(f"{_SPACES}=>/\"'")
        if not name:
            self._fail(f'Empty attribute name in the tag "{opened.tag}"', begins)
        self._skip()
        value = ""
        if self._char() == "=":
            self._at += 1
            self._skip()
            value = self._value(opened.tag, begins)
            if self._char() == "\0":
                self._fail("Unclosed start tag", begins)
        elif self._char() == "\0":
            self._fail(f'Unclosed start tag "{opened.tag}"', begins)
        elif (opened.tag, name) != ("blockquote", "expandable"):
            return
        match opened.tag, name:
            case ("a", "href") | ("tg-emoji", "emoji-id") | ("tg-time", "format"):
                opened.argument = value
            case ("code", "class") if value.startswith("language-"):
                opened.argument = value.removeprefix("language-")
            case ("span", "class") if value.startswith("tg-"):
                opened.argument = value.removeprefix("tg-")
            case ("blockquote", "expandable"):
                opened.argument = "1"
            case ("tg-time", "unix"):
                opened.date = value
            case _:
                pass

    def _value(self, tag: str, begins: int) -> str:
        quote = self._char()
        if quote == "\0":
            self._fail(f'Unclosed start tag "{tag}"', begins)
        at = self._at
        if quote not in "\"'":
            while (char := self._char()).isascii() and (char.isalnum() or char in ".-"):
                self._at += 1
            if self._char() not in f"{_SPACES}>":
                self._fail("Unexpected end of name token", at)
            return self._html[at : self._at].lower()
        self._at += 1
        pieces: list[str] = []
        while self._char() not in f"{quote}\0":
            pieces.append((self._char() == "&" and self._reference()) or self._next())
        if self._char() == quote:
            self._at += 1
        return "".join(pieces)

    def _close(self) -> None:
        begins = self._at
        if not self._open:
            self._fail("Unexpected end tag", begins)
        self._at += 2
        tag = self._until(f"{_SPACES}>").lower()
        self._skip()
        if self._char() != ">":
            self._fail("Unclosed end tag", begins)
        opened = self._open[-1]
        if tag and tag != opened.tag:
            at = len(self._html[:begins].encode())
            self._fail(f'Unmatched end tag at byte offset {at}, expected "</{opened.tag}>", found "</{tag}>"')
        self._at += 1
        self._open.pop()
        if self._offset > opened.offset:
            self._entity(opened)

    def _entity(self, opened: _Open) -> None:
        entity = Entity(type=_TYPES[opened.tag], offset=opened.offset, length=self._offset - opened.offset)
        last = self._entities[-1] if self._entities else None
        same = last is not None and (last.offset, last.length) == (entity.offset, entity.length)
        match opened.tag:
            case "pre" if last is not None and same and last.type == "code" and last.language:
                self._entities[-1] = replace(last, type="pre")
                return
            case "code" if last is not None and same and last.type == "pre" and opened.argument:
                self._entities[-1] = replace(last, language=opened.argument)
                return
            case "code":
                entity = replace(entity, language=opened.argument)
            case "blockquote" if opened.argument:
                entity = replace(entity, type="expandable_blockquote")
            case "a":
                entity = replace(entity, url=opened.argument or "".join(self._pieces[opened.begins :]))
            case "tg-emoji":
                if not re.fullmatch(r"-?[0-9]{1,19}", opened.argument) or not int(opened.argument):
                    raise ParseError("can't parse entities: Invalid custom emoji identifier specified")
                entity = replace(entity, custom_emoji_id=opened.argument)
            case "tg-time":
                entity = replace(entity, unix_time=int(opened.date) if opened.date.isdigit() else 0)
            case _:
                pass
        self._entities.append(entity)
