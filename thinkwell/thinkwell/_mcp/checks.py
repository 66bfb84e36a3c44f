"""Checks of an MCP server's name, command, variables, address and headers.

Each check raises for a value that no agent could use. Errors show no value of a variable, a header or an
argument, and no address: all of them may contain keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token (RFC 9110, 5.6.2)."""
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""Field content (RFC 9110, 5.5)."""


@contextmanager
def told(who: str) -> Generator[None]:
    """Name the subject of a check in its error."""
    try:
        yield
    except (TypeError, ValueError) as exc:
        raise type(exc)(f"{who}: {exc}") from None


def checked_name(name: object) -> str:
    """Return a server's name.

    Raises:
        TypeError: It is not a str.
        ValueError: It is blank, or has unprintable characters.
    """
    text = _text(name, "the name")
    if not text.strip():
        raise ValueError("the name is empty; agents know a server by it")
    if not text.isprintable():
        raise ValueError("there is a character in the name that cannot be printed")
    return text


def checked_command(command: object) -> tuple[str, ...]:
    """Return the program and its arguments.

    Raises:
        TypeError: It is not a sequence of str.
        ValueError: It names no program.
    """
    if isinstance(command, str) or not isinstance(command, Sequence):
        raise TypeError('the command: give the program and its arguments as a list: ["npx", "-y", "…"]')
    words = tuple(_text(word, "a word of the command") for word in cast("Iterable[object]", command))
    if not words or not words[0].strip():
        raise ValueError("the command is empty: name a program")
    if any("\0" in word for word in words):
        raise ValueError("there is a zero byte in the command")
    return words


def checked_variables(env: object) -> dict[str, str]:
    """Return environment variables by their names. Values may have several lines, as keys do.

    Raises:
        TypeError: It is not a mapping of str.
        ValueError: A name or a value is invalid.
    """
    variables = _texts(env, "env")
    for name, value in variables.items():
        if not name or "=" in name or _CONTROL.search(name):
            raise ValueError(f"env: {name!r:.100} is no name of a variable")
        if "\0" in value:
            raise ValueError(f"env: there is a zero byte in the value of {name!r:.100}")
    return variables


def checked_url(url: object) -> str:
    """Return the address of a server.

    Raises:
        TypeError: It is not a str.
        ValueError: It is not an HTTP or HTTPS address.
    """
    text = _text(url, "the url")
    if not text.isprintable() or " " in text:
        raise ValueError("there is a blank or a control character in the url")
    from urllib.parse import urlsplit  # only for such servers

    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise ValueError("the url cannot be read; check its host and its port") from exc
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("the url must begin with https:// or http://, and name a host")
    return text


def checked_headers(headers: object) -> dict[str, str]:
    """Return the headers of a request by their names.

    Raises:
        TypeError: It is not a mapping of str.
        ValueError: A name or a value is invalid.
    """
    fields = _texts(headers, "headers")
    for name, value in fields.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"headers: {name!r:.100} is no name of a header")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(
                f"headers: there is a line end, or another character that no header can have, in the value "
                f"of {name!r:.100}"
            )
    return fields


def origin(url: str) -> str:
    """Return the part of a checked address without keys: users, paths and queries may contain them."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _texts(values: object, what: str) -> dict[str, str]:
    if not isinstance(values, Mapping):
        raise TypeError(f"{what}: it is a {type(values).__name__}; give texts by their names")
    pairs = cast("Mapping[object, object]", values).items()
    return {
        _text(name, f"{what}: a name"): _text(value, f"{what}: the value of {name!r:.100}")
        for name, value in pairs
    }


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {type(value).__name__}; give a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} has a byte in it that is no text (UTF-8)") from None
    return value
