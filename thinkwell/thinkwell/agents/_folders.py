"""The user's folders for settings, cached files and state."""

from __future__ import annotations

import os
import sys
from pathlib import Path

APP = "thinkwell"


def config_folder() -> Path:
    r"""Return the folder of the user's settings. It need not exist.

    ``$XDG_CONFIG_HOME/thinkwell``, else ``~/.config/thinkwell`` (XDG Base Directory Specification, which also
    says to ignore a relative path there). On Windows ``%APPDATA%\thinkwell``.
    """
    if sys.platform == "win32":
        return _folder("APPDATA", "AppData", "Roaming")
    return _folder("XDG_CONFIG_HOME", ".config")


def cache_folder() -> Path:
    r"""Return the folder of cached files, which can be downloaded again. It need not exist.

    ``$XDG_CACHE_HOME/thinkwell``, else ``~/.cache/thinkwell``. On Windows ``%LOCALAPPDATA%\thinkwell``.
    """
    if sys.platform == "win32":
        return _folder("LOCALAPPDATA", "AppData", "Local")
    return _folder("XDG_CACHE_HOME", ".cache")


def state_folder() -> Path:
    r"""Return the folder of the program's state, such as its history. It need not exist.

    ``$XDG_STATE_HOME/thinkwell``, else ``~/.local/state/thinkwell``. On Windows ``%LOCALAPPDATA%\thinkwell``.
    """
    if sys.platform == "win32":
        return _folder("LOCALAPPDATA", "AppData", "Local")
    return _folder("XDG_STATE_HOME", ".local", "state")


def _folder(variable: str, *default: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    return (named if named.is_absolute() else Path.home().joinpath(*default)) / APP
