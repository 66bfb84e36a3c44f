"""Where a user's settings are, and what can be fetched again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ("cache_folder", "config_folder", "state_folder")

APP = "thinkwell"


def config_folder() -> Path:
    r"""Return the folder of the user's own settings; it need not exist.

    ``$XDG_CONFIG_HOME/thinkwell``, else ``~/.config/thinkwell`` (XDG Base Directory Specification, which says
    too that a relative path there is to be ignored). On Windows ``%APPDATA%\thinkwell``.
    """
    if sys.platform == "win32":
        return _folder("APPDATA", "AppData", "Roaming")
    return _folder("XDG_CONFIG_HOME", ".config")


def cache_folder() -> Path:
    r"""Return the folder of what can be fetched again; it need not exist.

    ``$XDG_CACHE_HOME/thinkwell``, else ``~/.cache/thinkwell``. On Windows ``%LOCALAPPDATA%\thinkwell``.
    """
    if sys.platform == "win32":
        return _folder("LOCALAPPDATA", "AppData", "Local")
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    r"""Return the folder of what a program keeps of its use; it need not exist.

    ``$XDG_STATE_HOME/thinkwell``, else ``~/.local/state/thinkwell``. On Windows ``%LOCALAPPDATA%\thinkwell``.
    """
    if sys.platform == "win32":
        return _folder("LOCALAPPDATA", "AppData", "Local")
    return _folder("XDG_STATE_HOME", ".local", "state")


def _folder(variable: str, *default: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    return (named if named.is_absolute() else Path.home().joinpath(*default)) / APP
