"""Globs for names, for paths and for the words of a command."""

from __future__ import annotations

import re
from functools import lru_cache


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
    parts: list[str] = []
    for number, step in enumerate(pattern.split("/")):
        if step == "**":
            parts.append("(?:/[^/]*)*")
        else:
            parts.append(("/" if number else "") + _translated(step, "[^/]"))
    return _compiled("".join(parts), fold=fold)


@lru_cache(maxsize=1024)
def words_glob(pattern: str, *, fold: bool = False) -> re.Pattern[str]:
    r"""Return what matches the words of a command, each with a ``\0`` before it.

    A word ``*`` stands for any words, also none; within a word, ``*`` stands for any characters. In the first
    word, the program, it does not stand for ``/``: a pattern for names takes no paths.
    """
    parts: list[str] = []
    for number, word in enumerate(pattern.split()):
        if word == "*":
            parts.append("(?:\0[^\0]*)*")
        else:
            parts.append("\0" + _translated(word, "[^\0]" if number else "[^\0/]"))
    return _compiled("".join(parts), fold=fold)


def _compiled(expression: str, *, fold: bool) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL | (re.IGNORECASE if fold else 0))


def _translated(pattern: str, any_one: str) -> str:
    parts: list[str] = []
    rest = pattern
    while rest:
        character, rest = rest[0], rest[1:]
        negated = rest.startswith("!")
        end = rest.find("]", negated + 1)  # a bracket that comes first belongs to the set
        if character == "*":
            rest = rest.lstrip("*")
            parts.append(f"(?:{any_one})*")
        elif character == "?":
            parts.append(any_one)
        elif character == "[" and end > 0:
            parts.append(f"(?={any_one})[{'^' if negated else ''}{_members(rest[negated:end])}]")
            rest = rest[end + 1 :]
        else:
            parts.append(re.escape(character))
    return "".join(parts)


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
