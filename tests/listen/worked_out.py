"""Questions whose answers can be worked out from who asks them and how many it asked before."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TypeAlias

Value: TypeAlias = "str | int | bool"

OPTIONS = 64
"""Options that a request for approval over ACP offers: so many answers it can have."""

_TITLE = re.compile(r"(?P<kind>\w+) (?P<number>\d+) of (?P<name>[\w-]+)")


def title(kind: str, name: str, number: int) -> str:
    """Return the words of a question."""
    return f"{kind} {number} of {name}"


def number_of(asked: str) -> int:
    """Return how many were asked before."""
    found = _TITLE.fullmatch(asked)
    assert found is not None, asked
    return int(found["number"])


def digest(asked: str) -> str:
    """Return the answer to a question as a text: that of no other."""
    return sha256(asked.encode()).hexdigest()[:16]


def number(asked: str) -> int:
    """Return it as a number."""
    return int(digest(asked), 16) % 10**9


def option(asked: str) -> str:
    """Return it as the id of an option."""
    return f"option-{number(asked) % OPTIONS}"


def flag(asked: str) -> bool:
    """Return it as yes or no."""
    return number(asked) % 2 == 0


def left_open(asked: str) -> bool:
    """Return whether the handler leaves it to the next in the chain."""
    return number_of(asked) % 10 == 7
