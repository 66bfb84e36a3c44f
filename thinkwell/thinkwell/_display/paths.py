"""Paths as people read them."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

from thinkwell._display.text import line

PATH: Final = 500
"""Characters of a path that are shown."""


def relative(path: str, folder: str) -> str:
    """Return a path as seen from a folder, where it is in it; as a clean line."""
    return line(seen_from(path, folder), PATH)


def from_home(folder: str) -> str:
    """Return a folder as shells write it: ``~/shop``; as a clean line."""
    shown = relative(folder, str(Path.home()))
    if shown == ".":
        return "~"
    return shown if shown == line(folder) else f"~/{shown}"


def seen_from(path: str, folder: str) -> str:
    """Return the same as it is, which is not to be shown."""
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    root = folder.rstrip("/\\")
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("/", "\\", ""):
        path = path[len(root) + 1 :] or "."
    return path
