"""What a tool's error says is wrong with its arguments, as constraints for another try."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from thinkwell_acp.schema import JsonObject

_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_LINE: Final = re.compile(r"^[\s-]*(?P<path>the value|\$?[\w.\[\]'-]*)\s*:\s+(?P<message>.+)$")
_QUOTED: Final = re.compile(r"'([^']*)'")


def _integer(key: str) -> Callable[[re.Match[str]], JsonObject]:
    return lambda match: {key: int(match[1])}


def _float(key: str) -> Callable[[re.Match[str]], JsonObject]:
    return lambda match: {key: float(next(group for group in match.groups() if group))}


_RULES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], JsonObject]], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), constraint)
    for pattern, constraint in (
        (r"at most (\d+) (?:character|long)", _integer("maxLength")),
        (r"at least (\d+) (?:character|long)", _integer("minLength")),
        (r"at most (\d+) item", _integer("maxItems")),
        (r"at least (\d+) item", _integer("minItems")),
        (
            rf"less than or equal to {_NUMBER}|(?:at most|maximum of|not above|no more than) {_NUMBER}",
            _float("maximum"),
        ),
        (
            rf"greater than or equal to {_NUMBER}|(?:at least|minimum of|not below) {_NUMBER}",
            _float("minimum"),
        ),
        (rf"(?:less than|below|under) {_NUMBER}", _float("exclusiveMaximum")),
        (rf"(?:greater than|above|over) {_NUMBER}", _float("exclusiveMinimum")),
        (rf"multiple of {_NUMBER}", _float("multipleOf")),
        (r"match (?:the )?pattern '(.*?)'(?: \(|$)", lambda match: {"pattern": match[1]}),
        (
            r"(?:should|must) be ((?:one of )?'.*?)(?: \(got|$)",
            lambda match: {"enum": _QUOTED.findall(match[1])},
        ),
        (
            r"(?:should|must) be a valid (integer|number|string|boolean)",
            lambda match: {"type": match[1].lower()},
        ),
        (r"extra inputs are not permitted|unexpected", lambda _: {"drop": True}),
    )
)


def corrections(error: str) -> dict[str, JsonObject]:
    """Return constraints by the path of the place that they are for, as a tool's error names them, line by line.

    The words are those that checkers of values commonly use. What is said in other words is left out.
    """
    found: dict[str, JsonObject] = {}
    for line in re.split(r"\n|;\s", error.removeprefix("Invalid arguments: ")):
        match = _LINE.match(line)
        if match is None:
            continue
        message = re.sub(r"\s*\(got .*", "", match["message"])
        for pattern, constraint in _RULES:
            said = pattern.search(message)
            if said is not None:
                found.setdefault(_path(match["path"]), {}).update(constraint(said))
                break
    return found


def _path(path: str) -> str:
    """Return a path with dots between its parts, whether it came so or as ``$.items[0]['key']``."""
    return "" if path == "the value" else ".".join(re.findall(r"[\w-]+", path))
