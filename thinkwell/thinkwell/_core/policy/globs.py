"""Globs for names, for paths and for the words of a command."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@lru_cache(maxsize=1024)
def name_glob(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    """Return what matches a whole name: ``*`` stands for any characters, ``?`` for one, ``[…]`` for a set."""
    return _compiled(_translated(pattern, "."), fold=fold)


@lru_cache(maxsize=1024)
def path_glob(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    """Return what matches a whole path.

    As in a shell, ``*``, ``?`` and ``[…]`` stay within one step of the path; unlike there, names that begin
    with a dot are nothing special. ``**`` as a step stands for any steps, also none, so that ``a/**`` is the
    folder with all that is in it.
    """
    steps = [
        None if step == "**" else ("/" if number else "") + _translated(step, "[^/]")
        for number, step in enumerate(pattern.split("/"))
    ]
    return _compiled(_sequence(steps, "(?:/[^/]*)", "(?=/|\\Z)"), fold=fold)


@lru_cache(maxsize=1024)
def words_glob(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    r"""Return what matches the words of a command, each with a ``\0`` before it.

    A word ``*`` stands for any words, also none; within a word, ``*`` stands for any characters. In the first
    word, the program, it does not stand for ``/``: a pattern for names takes no paths.
    """
    words = [
        None if word == "*" else "\0" + _translated(word, "[^\0]" if number else "[^\0/]")
        for number, word in enumerate(pattern.split())
    ]
    return _compiled(_sequence(words, "(?:\0[^\0]*)", "(?=\0|\\Z)"), fold=fold)


def _compiled(expression: str, *, fold: bool) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL | (re.IGNORECASE if fold else 0))


def _sequence(parts: Sequence[str | None], any_one: str, end: str = "") -> str:
    """Return what matches parts in their order, with any number of something where one is ``None``.

    Where such parts stand between two of those, the first place that fits is as good as any other. So the
    engine may forget the rest, and takes time in proportion to the text and not to a power of it.

    Args:
        parts: Each matches a certain number of things.
        any_one: Matches any one of them.
        end: Looks ahead whether one ends here, where things have more than one character.
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
        end = rest.find("]", negated + 1)  # a bracket that comes first belongs to the set
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
    """Return what stands in the brackets of a set, as it is in regular expressions."""
    found = re.findall(r"(?s).-.|.", body)
    return "".join(
        f"{re.escape(one[0])}-{re.escape(one[2])}"
        if one[1:2] == "-" and one[0] <= one[-1]
        else re.escape(one)
        for one in found
    )


def literal_start(pattern: str) -> str:
    """Return the steps of a path pattern before the first that has anything special in it."""
    steps = pattern.split("/")
    number = next((number for number, step in enumerate(steps) if set(step) & set("*?[")), len(steps))
    return "/".join(steps[:number])
