"""Where something of the user's stands, for messages that name the line to fix."""

from __future__ import annotations

import inspect


def where(thing: object) -> str:
    """Return `` (file:line)`` of a function or class; nothing where that is not known."""
    code = getattr(inspect.unwrap(thing), "__code__", None) if callable(thing) else None
    if code is not None:
        return f" ({code.co_filename}:{code.co_firstlineno})"
    if isinstance(thing, type):
        try:
            return f" ({inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]})"
        except (OSError, TypeError):  # no source, or built in
            return ""
    return ""
