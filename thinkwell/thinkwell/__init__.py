"""Typed streams of what a coding agent thinks, says, does and plans.

::

    async with open_agent() as agent:
        stream = agent.think(Review).text("Review this module:").quote(source).stream()
        async for event in stream:
            ...
        review = await stream.result

The names are loaded on first use: the command's help and completion need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thinkwell._names import *  # noqa: F403
    from thinkwell._names import __all__ as __all__
else:

    def __getattr__(name: str) -> object:
        """Return a module of the package, or load all names and return one of them."""
        from importlib import import_module
        from importlib.util import find_spec

        if find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
        _load()
        try:
            return globals()[name]
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name) from None

    def __dir__() -> list[str]:
        """Return all names, for completion at a prompt."""
        _load()
        return list(globals())

    def _load() -> None:
        from thinkwell import _names

        globals().update({name: getattr(_names, name) for name in (*_names.__all__, "__all__")})
