"""Files of settings, read with msgspec: errors and paths in their terms."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

TERMS: Final = {
    "object": "a table",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}
"""Our names for msgspec's types."""


def convert_settings(table: object, kind: type[T], unknown: Callable[[str, str], str], *, at: str = "") -> T:
    """Convert a table of TOML.

    Args:
        table: The table.
        kind: Its type.
        unknown: Returns the message about an unknown key, given the place of its table and the key.
        at: The place of the table; ``""``: it is the file.

    Raises:
        ValueError: It is not of that type. The message has no values: one may be a secret.
    """
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as exc:
        what, _, where = str(exc).partition(" - at `$")
        place = f"{at}{where.removesuffix('`')}".removeprefix(".")
        key = re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL)
        if key is not None:
            raise ValueError(unknown(place, key[1])) from None
        what = re.sub(r"`([^`]*)`", _plain, what.replace("Object missing required field", "there is no"))
        raise ValueError(f"{place and f'{place}: '}{what[:1].lower()}{what[1:]}") from None


def _plain(types: re.Match[str]) -> str:
    return " or ".join(TERMS.get(name, name) for name in types[1].split(" | ") if name != "null")


def unknown_key(at: str, key: str, known: Sequence[str]) -> str:
    """Return the message about an unknown key of a table, with the one that may be meant."""
    near = get_close_matches(key, known, n=1)
    meant = f"; do you mean {near[0]}?" if near else f". Those are {', '.join(known)}"
    return f"{at and f'{at}.'}{key!r:.60}: there is no such key{meant}"


def path_from(folder: Path, name: str, *, at: str = "") -> Path:
    """Return a path that is named in a file of a folder, at a place for errors.

    Raises:
        ValueError: It begins with the name of a user who has no home here.
    """
    try:
        return folder / Path(name).expanduser()
    except RuntimeError:  # from pathlib
        raise ValueError(f"{at and f'{at}: '}{name}: no user of that name has a home here") from None
