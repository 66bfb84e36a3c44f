"""Reads a tool's error about its arguments as constraints for another attempt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell_acp.schema import JsonObject, JsonValue

DROP: Final = "drop"
"""Key of a constraint that JSON Schema lacks: omit the place."""

_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_LINE: Final = re.compile(r"^[\s-]*(?P<path>the value|\$?[\w.\[\]'-]*)\s*:\s+(?P<message>.+)$")
_QUOTED: Final = re.compile(r"'([^']*)'")


_Reader: TypeAlias = "Callable[[str], JsonValue]"

_RULES: Final[tuple[tuple[str, str, _Reader], ...]] = (
    ("maxLength", r"at most (\d+) character", int),
    ("minLength", r"at least (\d+) character", int),
    ("maxItems", r"at most (\d+) item", int),
    ("minItems", r"at least (\d+) item", int),
    ("maximum", rf"(?:less than or equal to|at most|maximum of|not above|no more than) {_NUMBER}", float),
    ("minimum", rf"(?:greater than or equal to|at least|minimum of|not below|no less than) {_NUMBER}", float),
    ("exclusiveMaximum", rf"(?:less than|below|under) {_NUMBER}", float),
    ("exclusiveMinimum", rf"(?:greater than|above|over) {_NUMBER}", float),
    ("multipleOf", rf"multiple of {_NUMBER}", float),
    ("pattern", r"match (?:the )?pattern '(.*)'", str),
    ("enum", r"(?:should|must) be ((?:one of )?'.*)", _QUOTED.findall),
    ("type", r"(?:should|must) be a valid (integer|number|string|boolean)", str),
    (DROP, r"(extra inputs are not permitted|unexpected)", bool),
)


def corrections(error: str) -> dict[str, JsonObject]:
    """Return constraints by path, as the lines of a tool's error name it.

    It knows the messages of common validators. Others are ignored.
    """
    found: dict[str, JsonObject] = {}
    for line in re.split(r"\n|;\s", error.removeprefix("Invalid arguments: ")):
        match = _LINE.match(line)
        if match is None:
            continue
        message = re.sub(r"\s*\(got .*", "", match["message"])
        for key, pattern, read in _RULES:
            said = re.search(pattern, message, re.IGNORECASE)
            if said is not None:
                found.setdefault(_path(match["path"]), {})[key] = read(said[1])
                break
    return found


def _path(path: str) -> str:
    """Return a path with dots between its parts; it may have come as ``$.items[0]['key']``."""
    return "" if path == "the value" else ".".join(re.findall(r"[\w-]+", path))
