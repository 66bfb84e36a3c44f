"""Checks of arguments that many functions have."""

from __future__ import annotations


def check_count(name: str, value: object) -> None:
    """Check a count.

    Raises:
        TypeError: It is not a whole number.
        ValueError: It is negative.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r:.100} must be a whole number, not a {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name}={value} must not be negative")


def check_seconds(name: str, value: object) -> None:
    """Check a time to wait.

    Raises:
        TypeError: It is not a number.
        ValueError: It is not positive.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r:.100} must be a number of seconds, not a {type(value).__name__}")
    if not value > 0:  # also refuses NaN
        raise ValueError(f"{name}={value} must be positive")


def checked(content: object, who: str) -> str:
    """Return a text, if it can be sent.

    Raises:
        TypeError: It is not a str.
        ValueError: It has no UTF-8 form.
    """
    if not isinstance(content, str):
        hint = ", such as content.decode()" if isinstance(content, bytes) else ""
        raise TypeError(f"{who}: give a str, not {type(content).__name__}{hint}")
    try:
        content.encode()
    except UnicodeEncodeError as exc:
        raise ValueError(
            f"{who}: character {exc.start} is the lone surrogate {content[exc.start]!r}; "
            "replace it: content.encode('utf-8', 'replace').decode()"
        ) from None
    return content
