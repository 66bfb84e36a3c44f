"""`RecordedAgent`: an agent that repeats a recording, in memory or as a process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thinkwell._recording._replay import check_speed
from thinkwell.testing._memory import PlayedAgent
from thinkwell.testing._recorded_agent import replay_agent, serve_recording
from thinkwell.testing._tap import Tap

if TYPE_CHECKING:
    import os

    from thinkwell_acp import Transport


class RecordedAgent(PlayedAgent):
    """An agent that answers as it did in a recording; see `replay_agent`.

    Each connection starts at the beginning of the recording.

    Args:
        path: A file written by ``open_agent(record=…)``.
        speed: 1 for the original speed, 2 for twice as fast, 0 for as fast as possible.

    Raises:
        RecordingError: The file is not a recording.
        OSError: The file cannot be read.
        TypeError: The speed is not a number.
        ValueError: The speed is not a number from 0 on.
    """

    name = "recorded"

    def __init__(self, path: str | os.PathLike[str], *, speed: float = 0) -> None:
        super().__init__()
        check_speed(speed, "RecordedAgent")
        self._command = replay_agent(path, speed=speed)
        self._path = Path(path).absolute()
        self._speed = speed

    def __repr__(self) -> str:
        return f"<RecordedAgent of {str(self._path)!r}>"

    async def serve(self, transport: Transport) -> None:
        tap = Tap(transport, self._journal, self._journal.claim("connection"))
        await serve_recording(str(self._path), self._speed, tap)

    def program(self) -> tuple[str, ...]:
        """Return the command of a process that does the same, for ``open_agent(command=…)``.

        Messages to the process are not in `sent`.
        """
        return self._command
