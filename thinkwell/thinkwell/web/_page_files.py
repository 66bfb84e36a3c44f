"""The files of the page, and their paths."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

FOLDER: Final[Traversable] = files("thinkwell.web").joinpath("page")

SCRIPTS: Final = tuple(sorted(file.name for file in FOLDER.iterdir() if file.name.endswith(".js")))
"""The modules of the page. Each is served under its own name; ``page.js`` imports the others."""

PATHS: Final = frozenset({"/", *(f"/{name}" for name in SCRIPTS)})
"""The paths of the page. It asks for the secret itself, and its files contain none, so no login is needed."""

ENTRY: Final = '<script type="module" src="page.js"></script>\n'
"""The line of the page that loads its modules."""

STYLE: Final = re.compile("<style>(.*?)</style>", re.DOTALL)


def page_html() -> str:
    """Return the HTML of the page, without the names of its modules."""
    return FOLDER.joinpath("page.html").read_text("utf-8")


def hash_of(text: str) -> str:
    """Return the name of an allowed style or script in a policy (Content Security Policy Level 3)."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
