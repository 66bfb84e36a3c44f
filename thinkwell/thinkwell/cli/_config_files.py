"""Files of settings, their paths, and secrets, which no other user may read."""

from __future__ import annotations

import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LARGEST: Final = 1_000_000
"""Most bytes of a file that are read. No such file needs more."""


def read_settings(path: Path | None, convert: Callable[[dict[str, object], Path], T]) -> T:
    """Return the settings in a TOML file.

    Args:
        path: The file; ``None`` for no file.
        convert: Makes settings of a table. Paths in it are relative to the folder.

    Raises:
        typer.BadParameter: The file cannot be used. The message has no values: one may be a secret.
    """
    if path is None:
        return convert({}, Path())
    try:
        return convert(_read_table(path), path.absolute().parent)
    except ValueError as exc:
        raise typer.BadParameter(f"{path}: {exc}", param_hint="--config") from None


def _read_table(path: Path) -> dict[str, object]:
    """Parse a TOML file.

    Raises:
        ValueError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as exc:
        raise ValueError(exc.strerror) from None
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:,} bytes")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it is not TOML: its text is not UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise ValueError(f"it is not TOML: {exc}") from None


def read_secret(path: Path, what: str, hint: str | None) -> str:
    """Return the secret in a file.

    Args:
        path: The file.
        what: Beginning of an error, if the option is not enough: the name of the setting.
        hint: The option that names the file.

    Raises:
        typer.BadParameter: The file has no secret, or others can read it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            secret = file.read(LARGEST).strip()
    except OSError as exc:
        raise typer.BadParameter(f"{what}{path}: {exc.strerror}", param_hint=hint) from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{what}{path} is no text", param_hint=hint) from None
    # The group's bits may also be those of an access list: systemd's credentials belong to root, with one.
    others = stat.S_IRWXO if status.st_gid == 0 else stat.S_IRWXG | stat.S_IRWXO
    if sys.platform != "win32" and status.st_mode & others:
        raise typer.BadParameter(
            f"{what}others can read {path}; take that from them: chmod 600 {path}", param_hint=hint
        )
    if not secret:
        raise typer.BadParameter(f"{what}{path} is empty", param_hint=hint)
    return secret
