"""The prompt of a command: words of the command line, and what comes on standard input."""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, BinaryIO, Final

import typer
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

STDIN: Final = "-"
"""The word that stands for standard input."""


class Prompt(Struct, frozen=True):
    """What is asked."""

    text: str
    material: str | None = None
    """What came on standard input beside the words: it is what they are about."""


def read_prompt(words: Sequence[str]) -> Prompt:
    """Return the prompt, and wait for standard input only where it is part of it.

    Without words, standard input is the prompt. With words, it is left alone unless one of them is ``-``: it
    may never end, as in a job of cron or a container's.

    Raises:
        typer.BadParameter: There is no prompt, or it is no text.
    """
    plain = " ".join(_as_text(word) for word in words if word != STDIN).strip()
    if plain and STDIN not in words:
        return Prompt(plain)
    came = _standard_input(asked=STDIN in words)
    if not came.strip():
        raise typer.BadParameter("standard input is empty; give a prompt", param_hint="PROMPT")
    return Prompt(plain, came) if plain else Prompt(came)


def _as_text(word: str) -> str:
    """Return an argument as it was typed, whatever the locale has made of it."""
    try:
        return os.fsencode(word).decode()
    except UnicodeDecodeError:
        raise typer.BadParameter("it is not UTF-8; files go by --file", param_hint="PROMPT") from None


def _standard_input(*, asked: bool) -> str:
    """Return the whole of standard input."""
    if sys.stdin.isatty():
        if not asked:
            raise typer.BadParameter(
                'there is none; say what to do: thinkwell run "Explain this project"', param_hint="PROMPT"
            )
        sys.stderr.write("Type the prompt, and end it with Ctrl-D on a line of its own.\n")
    return _decoded(sys.stdin.buffer)


def _decoded(stream: BinaryIO) -> str:
    data = stream.read().removeprefix(BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        raise typer.BadParameter(
            f"standard input is not UTF-8 (byte {exc.start}); files go by --file", param_hint="PROMPT"
        ) from None
    return text.replace("\r\n", "\n")
