"""``--db``: where trials are kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from thinkwell._display.urls import without_password
from thinkwell.cli._config_files import read_secret

VARIABLE: Final = "THINKWELL_DB"


def _without_password(address: str | None) -> str | None:
    if address is not None and without_password(address) != address:
        raise typer.BadParameter(
            "all users of this machine can read a password on the command line; leave it out, and put the "
            f"address in {VARIABLE}, or in a file that only you can read, for --db-file"
        )
    return address


DatabaseOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="STORE",
        help="Where the trials are kept: an SQLite file, or postgresql://user@host/database. Default: from "
        f"--db-file, else from {VARIABLE}.",
        callback=_without_password,
        show_default=False,
    ),
]
DatabaseFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--db-file",
        metavar="FILE",
        help="A file with that address, which only you can read.",
        show_default=False,
    ),
]


def database(given: str | None, file: Path | None) -> str | None:
    """Return the address of the store, from an option or the environment.

    Raises:
        typer.BadParameter: The file cannot be used, or there is an address beside it.
    """
    if given is not None and file is not None:
        raise typer.BadParameter("give --db or --db-file, not both", param_hint="--db-file")
    if file is not None:
        return read_secret(file, "", "--db-file")
    return given or os.environ.get(VARIABLE) or None
