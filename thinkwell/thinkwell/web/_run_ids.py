"""Run ids: ``run-`` and hexadecimal digits. Ids of other protocols are derived from them."""

from __future__ import annotations

import secrets
from typing import Final

_PREFIX: Final = "run-"

DIGITS: Final = r"[0-9a-f]{1,64}"
"""A regular expression for the part after the prefix."""

RUN_ID: Final = _PREFIX + DIGITS
"""A regular expression for a whole id."""


def new_run_id() -> str:
    """Return a new id that cannot be guessed."""
    return run_id_of(secrets.token_hex(16))


def run_id_of(digits: str) -> str:
    """Return the id with these digits."""
    return _PREFIX + digits


def run_digits(run_id: str) -> str:
    """Return an id without its prefix."""
    return run_id.removeprefix(_PREFIX)
