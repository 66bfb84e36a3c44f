"""The files of the page, and where they are served."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ("FOLDER", "HTML", "PATHS", "SCRIPTS")

FOLDER: Final[Traversable] = files("thinkwell.web").joinpath("page")

HTML: Final = "page.html"
"""It is served at ``/``."""

SCRIPTS: Final = tuple(sorted(file.name for file in FOLDER.iterdir() if file.name.endswith(".js")))
"""The modules of the page. Each is served under its own name, and ``page.js`` imports the others."""

PATHS: Final = frozenset({"/", *(f"/{name}" for name in SCRIPTS)})
"""Where the page is. It asks for the secret itself, and its files hold none, so everybody may get them."""
