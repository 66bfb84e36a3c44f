"""``python -m thinkwell.testing FILE``: an agent that plays a script, or repeats a recording.

With a folder, the state of a script is stored there, and processes with the same folder continue where the
others are. Without one, each process plays the script from its beginning.
"""

from __future__ import annotations

import argparse
import os
import sys
from codecs import BOM_UTF8
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from thinkwell._recording._records import Header, decode_record
from thinkwell._recording._replay import check_speed
from thinkwell.errors import RecordingError
from thinkwell.testing._journal import FileJournal, MemoryJournal
from thinkwell.testing._player import Play, serve
from thinkwell.testing._recorded_agent import serve_recording
from thinkwell_acp import own_stdio
from thinkwell_acp.schema import strict_decoder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell.testing._journal import Journal


def main() -> int:
    """Run as the agent until the client leaves; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m thinkwell.testing",
        description="Be an agent, on standard input and output, that plays a script or repeats a recording.",
    )
    parser.add_argument("file", metavar="FILE", help="what Script.save or open_agent(record=...) has written")
    parser.add_argument(
        "more",
        metavar="FOLDER|SPEED",
        nargs="?",
        help="for a script, where to keep what comes of it; for a recording, 1 to take as long as it took, "
        "2 half as long, 0 (which is the default) no longer than it must",
    )
    given = parser.parse_args()
    try:
        agent = _agent_of(Path(given.file), given.more)
    except (OSError, ValueError) as exc:
        parser.error(str(exc))
    try:
        return anyio.run(agent)
    except RecordingError as exc:
        parser.error(str(exc))


def _agent_of(path: Path, more: str | None) -> Callable[[], Awaitable[int]]:
    data = path.read_bytes().removeprefix(BOM_UTF8)
    if _is_recording(data):
        return partial(_repeat, str(path), _speed(more or "0"))
    try:
        play = strict_decoder(Play).decode(data)
    except ValueError as exc:
        raise ValueError(f"{path} is neither a script nor a recording: {exc}") from exc
    if more is None:
        return partial(_play, play, MemoryJournal())
    if not Path(more).is_dir():
        raise NotADirectoryError(f"{more} is no folder")
    return partial(_play, play, FileJournal(Path(more)))


def _is_recording(data: bytes) -> bool:
    try:
        return isinstance(decode_record(data.split(b"\n", 1)[0]), Header)
    except ValueError:
        return False


def _speed(text: str) -> float:
    try:
        speed = float(text)
        check_speed(speed, "")
    except ValueError:
        raise ValueError(f"the speed has to be a number from 0 on, not {text!r}") from None
    return speed


async def _repeat(path: str, speed: float) -> int:
    code = await serve_recording(path, speed) or 0
    return code if code >= 0 else 128 - code


async def _play(play: Play, journal: Journal) -> int:
    await serve(own_stdio(), play, journal, stderr=2, crash=os._exit)
    return 0


if __name__ == "__main__":  # pragma: no branch - it is a program
    sys.exit(main())
