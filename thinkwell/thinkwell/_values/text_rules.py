"""Whether a text is of a format or matches a pattern. The patterns come from agents and are not trusted."""

from __future__ import annotations

import re
import time
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core import SchemaValidator

PATTERN_LENGTH: Final = 1000
"""Characters beyond which a pattern is not even compiled."""

PATTERN_STEPS: Final = 100_000_000
"""What a match may cost: the size of the pattern times the bytes of the text, at worst some 0.4 s."""

PATTERN_SECONDS: Final = 1.0
"""Time for the patterns of one form, however many fields it has. Compiling costs up to 0.2 s for each."""


LINEAR_TEXT: Final = 1000
"""Bytes of a text for which a pattern has to be cheap, where nothing is known of the texts yet."""


class PatternChecks:
    """Matches texts against patterns, within bounds of time for all of them together."""

    def __init__(self) -> None:
        self._seconds = PATTERN_SECONDS

    def misses(self, pattern: str, text: str) -> bool:
        """Return whether a text matches a pattern nowhere.

        A pattern is left to the agent, which checks it too, where it is too costly for this text, where there
        is no time left, and where the engine cannot have it (it is linear in time and so has no look-around).
        """
        if self._seconds <= 0 or not _is_cheap(pattern, text):
            return False
        began = time.perf_counter()
        try:
            return misses(pattern, text)
        finally:
            self._seconds -= time.perf_counter() - began


def _is_cheap(pattern: str, text: str) -> bool:
    # The `x` flag lets comments stand within repetitions, so that they cannot be counted from outside.
    if len(pattern) > PATTERN_LENGTH or re.search(r"\(\?[A-Za-z-]*x", pattern):
        return False
    steps = len(pattern) * len(text.encode())
    for repetition in re.findall(r"\{([^}]*)\}", pattern):
        # Repetitions may be nested: then the engine makes as many copies as their product.
        steps *= max([1, *map(int, re.findall("[0-9]+", repetition))])
    return steps <= PATTERN_STEPS


def is_linear(pattern: str) -> bool:
    """Return whether a pattern can be compiled, and matched in linear time, without much of either."""
    return _is_cheap(pattern, " " * LINEAR_TEXT) and _compiled(pattern) is not None


def misses(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern nowhere; not, where the engine cannot have the pattern."""
    from pydantic_core import ValidationError  # pydantic is loaded by those who use it

    matcher = _compiled(pattern)
    if matcher is not None:
        try:
            matcher.validate_python(text)
        except ValidationError:
            return True
    return False


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> SchemaValidator | None:
    from pydantic_core import SchemaError, SchemaValidator, core_schema  # as above

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def format_example(format_: str, text: str) -> str | None:
    """Return what a text of this format looks like, if this one is none; unknown formats are mere hints."""
    check, example = _FORMATS.get(format_, (None, ""))
    return None if check is None or check(text) else example


def _is_email(text: str) -> bool:
    """Tell as web browsers do, but take letters of all scripts (RFC 6531)."""
    local, at, domain = text.rpartition("@")
    label = r"(?!-)(?:[A-Za-z0-9-]|[^\x00-\x7f\s])+(?<!-)"
    return (
        bool(at)
        and len(local) <= 64
        and len(domain) <= 253
        and re.fullmatch(r"(?:[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]|[^\x00-\x7f\s])+", local) is not None
        and all(len(part) <= 63 and re.fullmatch(label, part) for part in domain.split("."))
    )


def _is_uri(text: str) -> bool:
    """Tell by RFC 3986, but take letters of all scripts, as people paste them."""
    legal = r"[A-Za-z][A-Za-z0-9+.-]*:(?:[^\x00-\x20\x7f<>\"{}|\\^`%\s]|%[0-9A-Fa-f]{2})+"
    if re.fullmatch(legal, text) is None:
        return False
    try:
        parts = urlsplit(text)
        return (parts.port or 0) >= 0 and (bool(parts.hostname) or parts.scheme not in ("http", "https"))
    except ValueError:  # a port that is none, brackets that hold no address
        return False


def _is_date(text: str) -> bool:
    if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:  # Python takes more than RFC 3339
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    hour_minute = "([01][0-9]|2[0-3]):[0-5][0-9]"
    clock = rf"{hour_minute}:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]{hour_minute})"
    return _is_date(text[:10]) and text[10:11] in ("T", "t") and re.fullmatch(clock, text[11:]) is not None


_FORMATS: Final[dict[str, tuple[Callable[[str], bool], str]]] = {
    "email": (_is_email, "an e-mail address such as name@example.com"),
    "uri": (_is_uri, "a whole URI such as https://example.com/page"),
    "date": (_is_date, "a date such as 2026-01-31"),
    "date-time": (_is_date_time, "a date with time and zone such as 2026-01-31T08:30:00Z"),
}
