"""Globs for names, for paths and for the words of a command."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@lru_cache(maxsize=1024)
def name_glob(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    """Return a pattern for a whole name: ``*`` matches any characters, ``?`` one, ``[…]`` a set."""
    return _compiled(_translated(pattern, "."), fold=fold)


@lru_cache(maxsize=1024)
def path_glob(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    """Return a pattern for a whole path.

    As in a shell, ``*``, ``?`` and ``[…]`` stay within one part of the path; but names that begin with a dot
    are not special. ``**`` as a part matches any number of parts, even none, so that ``a/**`` is the folder
    with everything in it.
    """
    steps = [
        None if step == "**" else ("/" if number else "") + _translated(step, "[^/]")
        for number, step in enumerate(pattern.split("/"))
    ]
    return _compiled(_sequence(steps, "(?:/[^/]*)", "(?=/|\\Z)"), fold=fold)


@lru_cache(maxsize=1024)
def words_glob(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    r"""Return a pattern for the words of a command, each with a ``\0`` before it.

    A word ``*`` matches any number of words, even none; within a word, ``*`` matches any characters. In the
    first word, the program, it does not match ``/``: a pattern for names matches no paths.
    """
    words = [
        None if word == "*" else "\0" + _translated(word, "[^\0]" if number else "[^\0/]")
        for number, word in enumerate(pattern.split())
    ]
    return _compiled(_sequence(words, "(?:\0[^\0]*)", "(?=\0|\\Z)"), fold=fold)


def _compiled(expression: str, *, fold: bool) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL | (re.IGNORECASE if fold else 0))


def _sequence(parts: Sequence[str | None], any_one: str, end: str = "") -> str:
    """Return a pattern for parts in order, with any number of things where a part is ``None``.

    For parts between two of those, the first match is as good as any other. So the engine need not backtrack,
    and takes time in proportion to the text, not to a power of it.

    Args:
        parts: Each matches a fixed number of things.
        any_one: Matches any one thing.
        end: A lookahead for the end of a thing, if things have more than one character.
    """
    pieces = [""]
    for part in parts:
        if part is None:
            pieces.append("")
        else:
            pieces[-1] += part
    first, *rest = pieces
    if not rest:
        return first
    middle = [f"(?>{any_one}*?{piece}{end})" for piece in rest[:-1] if piece]
    return f"{first}{''.join(middle)}{any_one}*{rest[-1]}"


def _translated(pattern: str, any_one: str) -> str:
    parts: list[str | None] = []
    rest = pattern
    while rest:
        character, rest = rest[0], rest[1:]
        negated = rest.startswith("!")
        end = rest.find("]", negated + 1)  # a leading bracket belongs to the set
        if character == "*":
            rest = rest.lstrip("*")
            parts.append(None)
        elif character == "?":
            parts.append(any_one)
        elif character == "[" and end > 0:
            parts.append(f"(?={any_one})[{'^' if negated else ''}{_members(rest[negated:end])}]")
            rest = rest[end + 1 :]
        else:
            parts.append(re.escape(character))
    return _sequence(parts, any_one)


def _members(body: str) -> str:
    """Return the content of a set's brackets as a regular expression."""
    found = re.findall(r"(?s).-.|.", body)
    return "".join(
        f"{re.escape(one[0])}-{re.escape(one[2])}"
        if one[1:2] == "-" and one[0] <= one[-1]
        else re.escape(one)
        for one in found
    )


def literal_start(pattern: str) -> str:
    """Return the parts of a path pattern before the first one with a wildcard."""
    steps = pattern.split("/")
    number = next((number for number, step in enumerate(steps) if set(step) & set("*?[")), len(steps))
    return "/".join(steps[:number])
