"""Records an agent: observes its sessions and runs, and its connection."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from thinkwell._core.log.observers import Observer
from thinkwell._core.log.run_log import running_clock
from thinkwell._recording import _records as rec
from thinkwell._recording._files import trace_path
from thinkwell._recording._observed import RecordedRun, RecordedSession, Tap
from thinkwell._recording._redact import Redactor
from thinkwell._recording._writer import RecordingWriter
from thinkwell.agents._choosing import TRACE_VARIABLE
from thinkwell_acp import StdioTransport
from thinkwell_acp._framing import MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from thinkwell._core.log.observers import RunFacts, RunObserver, SessionObserver
    from thinkwell_acp import Transport

logger = logging.getLogger("thinkwell")


class Recorder(RecordingWriter, Observer):
    """Records one agent, while its block is entered."""

    _pipe: Transport | None = None
    _whole: frozenset[str] = frozenset()
    """The runs whose tries are recorded as one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Write the last line."""
        stderr = self._pipe.stderr_tail if isinstance(self._pipe, StdioTransport) else ""
        self.end(stderr)

    def tapped(self, pipe: Transport, max_line: int = MAX_LINE) -> Transport:
        """Return the connection, with the recorder attached; its lines have that limit."""
        self._pipe = pipe
        return Tap(pipe, self, max_line)

    def run(self, facts: RunFacts, /) -> RunObserver | None:
        """Record a run, unless it is part of one that is recorded."""
        return None if facts.id in self._whole else self._run(facts)

    def whole(self, facts: RunFacts, /) -> RunObserver:
        """Record all tries of a run as one."""
        self._whole |= {facts.id}
        return self._run(facts)

    def _run(self, facts: RunFacts) -> RunObserver:
        include = tuple(sorted(facts.include))
        with self.guarded():
            self.write(
                rec.RunBegun(
                    at=self.now(),
                    run=facts.name,
                    include=include,
                    text=facts.text,
                    wrapped=facts.wrapped,
                    own_fields=facts.own_fields,
                )
            )
        return RecordedRun(self, facts.name)

    def session(self, how: str, /) -> SessionObserver:
        """Record a session."""
        return RecordedSession(self)


def _traced(folder: str, agent: str, redactor: Redactor) -> Recorder:
    """Begin a recording in a new file of the folder for traces, which is created if missing."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        try:
            return Recorder(trace_path(folder, redactor.text(agent)), redactor, running_clock(), new=True)
        except FileExistsError:
            continue  # it belongs to another program with this number that shares the folder


def recorder_of(
    record: str | os.PathLike[str] | None,
    *,
    agent: str,
    command: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
) -> Recorder | None:
    """Begin a recording.

    Args:
        record: The file. ``None``: a new one in the folder that `TRACE_VARIABLE` names. If that fails, there
            is a warning and no recording.
        agent: The agent's name.
        command: The started command.
        cwd: The folder in which the agent works.
        environment: The agent's environment, whose secrets are removed.

    Raises:
        OSError: The file cannot be written.
    """
    redactor = Redactor(environment)
    if record is not None:
        recorder = Recorder(Path(record), redactor, running_clock())
    else:
        folder = os.environ[TRACE_VARIABLE]
        try:
            recorder = _traced(folder, agent, redactor)
        except OSError as exc:
            logger.warning("%s=%s: nothing is recorded: %s", TRACE_VARIABLE, folder, exc)
            return None
    recorder.begin(agent, command, cwd)
    return recorder
