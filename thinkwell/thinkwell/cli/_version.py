"""``thinkwell version``."""

from __future__ import annotations

import platform
import sys

import typer

from thinkwell._version import VERSION


def version() -> None:
    """Show the version of thinkwell, and of what it runs on: what a report of a bug should name."""
    typer.echo(_text())


def print_version(wanted: bool) -> None:
    """Print it and end, where that is wanted."""
    if wanted:
        typer.echo(_text())
        raise typer.Exit


def _text() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"thinkwell {VERSION} ({python}, {sys.platform} {platform.machine()})"
