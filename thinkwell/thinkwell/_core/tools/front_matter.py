"""The front matter of a SKILL.md, in the small part of YAML that skills use.

Top level keys with plain, quoted and block scalars, lists of text and one level of mapping. Unused keys may
have any value: it is never read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FENCE: Final = re.compile(r"---[ \t]*")
_KEY: Final = re.compile(r"(?P<key>[^\s#](?:.*?[^ \t])??)[ \t]*:(?:[ \t]+(?P<value>.*))?")
_ITEM: Final = re.compile(r"-(?:[ \t]+(?P<item>.*))?")
_HEADER: Final = re.compile(
    r"(?P<style>[|>])(?:(?P<chomp>[+-])?(?P<width>[1-9])?|(?P<width2>[1-9])(?P<chomp2>[+-]))(?:\s*|\s+#.*)"
)
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\s*|\s+#.*)', re.DOTALL)
_SINGLE: Final = re.compile(r"'((?:[^']|'')*)'(?:\s*|\s+#.*)", re.DOTALL)
_COMMENT: Final = re.compile(r"(?:^|(?<![ \t])[ \t]++)#.*")
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "/": "/", "\\": "\\", " ": " "}
_FLOW_ITEM: Final = re.compile(
    r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s,'"{}[\]](?:[^,{}[\]]*[^\s,{}[\]])?)\s*(?:,|$)"""
)
_UNUSUAL: Final = "[]{}&*!%@`|>,"
"""Plain text never begins with one of these (YAML 1.2.2, §7.3.3)."""


class FrontMatterError(Exception):
    """The lines cannot be read.

    Attributes:
        line: Number of the line, from 1.
        reason: The problem, and what to do.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


class _Entry(NamedTuple):
    """A key's value, not read yet."""

    line: int
    value: str
    """The text in the line of the key."""
    below: tuple[str, ...]
    """The lines under it, up to the next key."""

    def fail(self, reason: str, offset: int = 0) -> FrontMatterError:
        return FrontMatterError(self.line + offset, reason)


class FrontMatter:
    """The front matter of a file, and the text under it."""

    def __init__(self, text: str) -> None:
        """Split a file.

        Raises:
            FrontMatterError: It has no front matter, or a line in it is not ``key: value``.
        """
        lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        if not _FENCE.fullmatch(lines[0]):
            raise FrontMatterError(1, "the file has to begin with a line --- and `name:` and `description:`")
        end = next((i for i, line in enumerate(lines) if i and _FENCE.fullmatch(line)), None)
        if end is None:
            raise FrontMatterError(1, "the front matter has no end: a second line --- is missing")
        self.body = "\n".join(lines[end + 1 :]).strip("\n")
        self._entries = _entries(lines[1:end], 2)

    def line(self, key: str) -> int:
        """Return the number of a key's line; the first line's if it is missing."""
        return self._entries[key].line if key in self._entries else 1

    def text(self, key: str) -> str:
        """Return the text of a key; empty if it is missing."""
        return _text(self._entries[key]) if key in self._entries else ""

    def texts(self, key: str) -> Sequence[str] | str:
        """Return the items of a key with a list, or the text of another."""
        entry = self._entries.get(key)
        if entry is None:
            return ()
        value = _COMMENT.sub("", entry.value)
        if value.startswith("["):
            return _flow_items(entry, value.strip())
        below = [(i, line.strip()) for i, line in enumerate(entry.below, 1) if not _is_comment(line)]
        if value or not below or not _ITEM.fullmatch(below[0][1]):
            return _text(entry)
        return tuple(_item(entry, number, line) for number, line in below)

    def texts_by_name(self, key: str) -> dict[str, str]:
        """Return the mapping of a key. Values that are not text are left out."""
        entry = self._entries.get(key)
        if entry is None or _COMMENT.sub("", entry.value):
            return {}
        inner = _entries(_dedented(entry.below), entry.line + 1)
        return {name: _text(value) for name, value in inner.items() if _is_text(value)}


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _is_text(entry: _Entry) -> bool:
    below = [line for line in entry.below if not _is_comment(line)]
    return not entry.value.startswith(("[", "{")) and (bool(_COMMENT.sub("", entry.value)) or not below)


def _dedented(lines: Iterable[str]) -> list[str]:
    """Return the lines without the indentation of the first of them."""
    lines = list(lines)
    width = next((_indent(line) for line in lines if not _is_comment(line)), 0)
    return ["" if _is_comment(line) else line[min(width, _indent(line)) :] for line in lines]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _entries(lines: Sequence[str], first: int) -> dict[str, _Entry]:
    """Return the keys with their lines."""
    found: list[tuple[str, int, str, list[str]]] = []
    for number, line in enumerate(lines, first):
        if line.startswith("\t"):
            raise FrontMatterError(number, "it begins with a tab; indent with spaces")
        belongs = line.startswith(("#", " ", "]", "}")) or not line.strip() or _ITEM.fullmatch(line)
        if belongs and (found or _is_comment(line)):
            if found:
                found[-1][3].append("" if line.startswith("#") else line)
            continue
        match = _KEY.fullmatch(line)
        if match is None or belongs:
            raise FrontMatterError(number, f"{line.strip()!r:.80} is not `key: value`")
        found.append((match["key"].strip("\"'"), number, (match["value"] or "").strip(), []))
    entries: dict[str, _Entry] = {}
    for key, number, value, below in found:
        if key in entries:
            raise FrontMatterError(number, f"{key!r} was given before, in line {entries[key].line}")
        entries[key] = _Entry(number, value, tuple(below))
    return entries


# Scalars


def _text(entry: _Entry) -> str:
    """Return a value as text, whatever type YAML would make of it."""
    if not _COMMENT.sub("", entry.value):
        first = next((i for i, line in enumerate(entry.below) if not _is_comment(line)), None)
        if first is None:
            return ""
        entry = _Entry(entry.line + first + 1, entry.below[first].strip(), entry.below[first + 1 :])
    if entry.value.startswith(("|", ">")):
        return _block(entry)
    if entry.value.startswith(('"', "'")):
        lines = [entry.value, *(line.strip() for line in entry.below)]
        if any(_ends_in_escape(line) for line in lines):
            raise entry.fail("a \\ at the end of a line is not supported; write a block: `key: >`")
        return _unquoted(entry, _folded(lines).strip())
    lines = [
        _COMMENT.sub("", line).strip()
        for line in (entry.value, *entry.below)
        if not line.strip() or not _is_comment(line)
    ]
    text = _folded(lines).strip()
    if text.startswith(tuple(_UNUSUAL)) or _ITEM.fullmatch(lines[0]):
        raise entry.fail(f"{text!r:.80} is not plain text; put it between quotation marks")
    return "" if text in ("~", "null") else text


def _ends_in_escape(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unquoted(entry: _Entry, text: str) -> str:
    match = (_DOUBLE if text.startswith('"') else _SINGLE).fullmatch(text)
    if match is None:
        raise entry.fail(f"the quotation marks of {text!r:.80} do not match")
    if text.startswith("'"):
        return match[1].replace("''", "'")

    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) > 1 and (number := int(code[1:], 16)) < 0x110000 and not 0xD800 <= number < 0xE000:
            return chr(number)
        if code not in _ESCAPES:
            raise entry.fail(f"\\{code} is not known between double quotes; write \\\\ for \\")
        return _ESCAPES[code]

    return _ESCAPE.sub(character, match[1])


def _folded(lines: Iterable[str]) -> str:
    """Join lines with blanks; an empty line is a line end, and so are those around indented lines."""
    text, empty, last = "", 0, None
    for line in lines:
        if not line:
            empty += 1
            continue
        if last is None:
            text += "\n" * empty + line
        elif last.startswith((" ", "\t")) or line.startswith((" ", "\t")):
            text += "\n" * (empty + 1) + line
        else:
            text += ("\n" * empty or " ") + line
        last, empty = line, 0
    return text


def _block(entry: _Entry) -> str:
    """Read a literal or folded block."""
    header = _HEADER.fullmatch(entry.value)
    if header is None:
        raise entry.fail(f"{entry.value!r:.80} does not begin a block; write | or >")
    given = header["width"] or header["width2"]
    blank = max(map(_indent, entry.below), default=0)
    width = int(given) if given else next((_indent(line) for line in entry.below if line.strip()), blank)
    lines: list[str] = []
    for number, line in enumerate(entry.below, 1):
        if line.strip() and _indent(line) < width:
            raise entry.fail("it is indented less than the first line of its block", number)
        lines.append(line[width:])
    kept = len(lines)
    while kept and not lines[kept - 1]:
        kept -= 1
    text = "\n".join(lines[:kept]) if header["style"] == "|" else _folded(lines[:kept])
    chomp = header["chomp"] or header["chomp2"]
    if chomp == "+":
        return text + "\n" * (len(lines) - kept + (kept > 0))
    return text if chomp == "-" or not text else text + "\n"


# Lists


def _item(entry: _Entry, number: int, line: str) -> str:
    match = _ITEM.fullmatch(line)
    if match is None:
        raise entry.fail(f"{line!r:.80} is not an item of a list: `- text`", number)
    return _text(_Entry(entry.line + number, (match["item"] or "").strip(), ()))


def _flow_items(entry: _Entry, value: str) -> tuple[str, ...]:
    inner, items, position = value[1:-1].rstrip(), list[str](), 0
    while position < len(inner):
        match = _FLOW_ITEM.match(inner, position)
        if match is None:
            break
        items.append(_unquoted(entry, match[1]) if match[1][0] in "\"'" else match[1])
        position = match.end()
    if position < len(inner) or not value.endswith("]"):
        raise entry.fail(f"{value!r:.80} is not a list of texts in one line; write one item a line: `- text`")
    return tuple(items)
