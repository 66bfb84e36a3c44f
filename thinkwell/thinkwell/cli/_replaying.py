"""What ``thinkwell replay`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import typer

from thinkwell import JsonSchema, RecordingError, replay
from thinkwell._recording import _records as rec
from thinkwell._recording._reading import read_recording
from thinkwell._recording._replay import check_speed
from thinkwell.cli._exit import INTERRUPTED, OK
from thinkwell.cli._showing import finish

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from thinkwell.cli._terminal import How


def replay_file(file: Path, how: How, *, run: str | None, speed: float) -> int:
    """Show the runs of a recording, one after another, and return the exit code.

    Raises:
        typer.BadParameter: The speed is none, or there is no such run.
        RecordingError: The file cannot be read.
    """
    how.check()
    try:
        check_speed(speed, "replay")
    except ValueError:
        raise typer.BadParameter(f"{speed:g} is no number from 0 on", param_hint="--speed") from None
    recording = read_recording(file)
    runs = {record.run: record for record in recording.records if isinstance(record, rec.RunBegun)}
    if not runs:
        raise RecordingError(
            str(file), f"no run was begun in it{f': {recording.cut}' if recording.cut else ''}"
        )
    if run is not None and run not in runs:
        raise typer.BadParameter(f"{file} holds no {run!r}, but {', '.join(runs)}", param_hint="--run")
    wanted = [begun for name, begun in runs.items() if run in (None, name)]
    return anyio.run(_show_all, file, wanted, how, speed)


async def _show_all(file: Path, runs: Sequence[rec.RunBegun], how: How, speed: float) -> int:
    codes: list[int] = []
    for begun in runs:
        stream = replay(file, run=begun.run, speed=speed, include="all" if how.as_json else None)
        output = None if begun.text else JsonSchema()
        codes.append(await finish(stream, how, output, run=begun.run if len(runs) > 1 else None))
        if codes[-1] == INTERRUPTED:
            break  # the others are not wanted any more
    return next((code for code in codes if code), OK)
