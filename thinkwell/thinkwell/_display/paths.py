"""Paths for users to read."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

from thinkwell._display.text import line

PATH: Final = 500
"""Most characters of a path."""


def relative(path: str, folder: str) -> str:
    """Return a path relative to a folder, if it is in it; as a clean line."""
    return line(seen_from(path, folder), PATH)


def from_home(folder: str) -> str:
    """Return a folder as shells write it: ``~/shop``; as a clean line."""
    shown = relative(folder, str(Path.home()))
    if shown == ".":
        return "~"
    return shown if shown == line(folder) else f"~/{shown}"


def seen_from(path: str, folder: str) -> str:
    """Return the same without cleaning; not for display."""
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    root = folder.rstrip("/\\")
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("/", "\\", ""):
        path = path[len(root) + 1 :] or "."
    return path
