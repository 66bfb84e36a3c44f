"""`Workspace`: folders and commands that an agent may reach through its client."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thinkwell._values.folders import folder_at
from thinkwell._workspace.walk import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_READ_BYTES: Final = 10 * 1024 * 1024
"""Most bytes of UTF-8 that one read returns."""

MAX_WRITE_BYTES: Final = 10 * 1024 * 1024
"""Most bytes of UTF-8 that one write may have."""

OUTPUT_LIMIT: Final = 1024 * 1024
"""Most bytes of each terminal's output that are kept."""

MAX_TERMINALS: Final = 64
"""Most terminals of an agent that are kept, including ended ones."""


@dataclass(frozen=True, slots=True, init=False)
class Workspace:
    """Folders that an agent may read, and perhaps write and run commands in, through its client.

    Pass it to `open_agent`. It serves the agent's requests ``fs/*`` and ``terminal/*`` (Agent Client
    Protocol, File System and Terminals), and advertises only what it serves. It does not limit the agent's
    own tools, which most agents use: ``permissions`` and the agent's settings do.

    Paths are confined to the roots folder by folder, with links resolved, so a link that is created at
    the wrong moment leads nowhere else. A hard link is the file itself. A command
    starts within the roots, but can then do whatever you can: ``terminal=True`` is not a sandbox.

    Args:
        root: The folder; a relative one starts at the current folder, now.
        more: Further folders.
        write: Whether the agent may write files. Missing folders are created.
        terminal: Whether the agent may run commands.
        shell_lines: Whether the shell runs a command without arguments that is not a program; kimi-cli and
            droid need it. Requires ``terminal=True``.
        deny: Files and folders to exclude, as patterns as in `fnmatch`: without a slash,
            for a name at any depth (``.env*``); with one, for a path below a root (``build/*``), where ``*``
            matches slashes too. Case does not matter. A denied folder includes everything in it.
        missing_as_empty: Whether to read a missing file as an empty one instead of an error.
            Without it, gemini-cli cannot create files through its client.
        max_read_bytes: The maximum size of one read, in bytes. A larger file is refused, unless the agent
            asks for a range of lines; that is cut between two characters.
        max_write_bytes: The maximum size of one write, in bytes.
        output_limit: How many of the last bytes of each terminal's output to keep.
        max_terminals: How many terminals to keep. For a new one, the oldest that has ended is forgotten;
            if all of them are running, the command is refused.

    Raises:
        NotADirectoryError: A root is not a folder.
        ValueError: Another argument is invalid.
        NotImplementedError: The system cannot open files relative to a folder (Windows), so the
            roots could not be enforced.
    """

    roots: tuple[Path, ...]
    """The absolute paths of the folders, in the given order."""
    write: bool
    terminal: bool
    shell_lines: bool
    deny: tuple[str, ...]
    missing_as_empty: bool
    max_read_bytes: int
    max_write_bytes: int
    output_limit: int
    max_terminals: int

    def __init__(
        self,
        root: str | os.PathLike[str],
        /,
        *more: str | os.PathLike[str],
        write: bool = False,
        terminal: bool = False,
        shell_lines: bool = False,
        deny: Sequence[str] = (),
        missing_as_empty: bool = False,
        max_read_bytes: int = MAX_READ_BYTES,
        max_write_bytes: int = MAX_WRITE_BYTES,
        output_limit: int = OUTPUT_LIMIT,
        max_terminals: int = MAX_TERMINALS,
    ) -> None:
        if not SUPPORTED:  # pragma: no cover - the tests run on POSIX
            raise NotImplementedError("Workspace: this system cannot hold an agent within a folder")
        if shell_lines and not terminal:
            raise ValueError("Workspace(shell_lines=True) needs terminal=True")
        if isinstance(deny, str) or not all(pattern.strip("/") for pattern in deny):
            raise ValueError(f"Workspace(deny={deny!r}): give a sequence of patterns, none of them empty")
        for name, value, least in (
            ("max_read_bytes", max_read_bytes, 1),
            ("max_write_bytes", max_write_bytes, 1),
            ("output_limit", output_limit, 0),
            ("max_terminals", max_terminals, 1),
        ):
            if value < least:
                raise ValueError(f"Workspace({name}={value}): the least is {least}")
        for name, setting in (
            ("roots", tuple(_folder(folder) for folder in (root, *more))),
            ("write", write),
            ("terminal", terminal),
            ("shell_lines", shell_lines),
            ("deny", tuple(deny)),
            ("missing_as_empty", missing_as_empty),
            ("max_read_bytes", max_read_bytes),
            ("max_write_bytes", max_write_bytes),
            ("output_limit", output_limit),
            ("max_terminals", max_terminals),
        ):
            object.__setattr__(self, name, setting)


def _folder(path: str | os.PathLike[str]) -> Path:
    if not os.fspath(path):
        raise ValueError('Workspace(""): name a folder, such as "."')
    return folder_at(path, f"Workspace({os.fspath(path)!r})")
