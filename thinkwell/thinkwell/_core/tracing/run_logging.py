"""Log lines of sessions and runs. Names, ids, numbers and outcomes; no texts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from thinkwell import events as ev
from thinkwell._core.log.log_lines import LogLines
from thinkwell._core.log.observers import Observer, RunObserver, SessionObserver
from thinkwell._core.log.run_log import running_clock
from thinkwell._core.protocol.errors import translate
from thinkwell._core.tracing.outcome import outcome

if TYPE_CHECKING:
    from thinkwell._core.log.observers import RunFacts

logger = logging.getLogger("thinkwell")

SHOWN: Final = 100
"""Most characters of a name or an id in the log."""


def shown(text: str) -> str:
    """Return an agent's name for something, as one line of a log."""
    return text if text.isprintable() and len(text) <= SHOWN else ascii(text[:SHOWN])


class RunLogging(Observer):
    """Logs the sessions and the runs of an agent, if the level is enabled."""

    def __init__(self, agent: str) -> None:
        self._agent = agent

    def run(self, facts: RunFacts, /) -> RunObserver | None:
        """Log a run: its end as INFO, its steps as DEBUG."""
        if logger.isEnabledFor(logging.DEBUG):
            return _DetailedRun(facts)
        return _Run(facts) if logger.isEnabledFor(logging.INFO) else None

    def session(self, how: str, /) -> SessionObserver | None:
        """Log that a session is opened, or failed to open, as INFO."""
        return _Session(self._agent, how) if logger.isEnabledFor(logging.INFO) else None


class _Run(RunObserver):
    """Logs the end of a run."""

    def __init__(self, facts: RunFacts) -> None:
        self._lines = facts.lines
        self._about = f"Run {facts.id} of agent {facts.agent}"
        self._clock = running_clock()
        self._began = self._clock()

    def ended(self, error: Exception | None, cut: str | None, /) -> None:
        seconds = self._clock() - self._began
        ended = outcome(error)
        name = None if error is None else type(error).__name__
        how: str = ended
        if ended == "failed":
            how = f"failed ({name})"
        elif cut is not None:
            how = f"completed, cut ({cut})"
        self._lines(
            logging.INFO,
            "%s %s after %.1f s",
            self._about,
            how,
            seconds,
            outcome=ended,
            seconds=seconds,
            error=name,
            cut=cut,
        )


class _DetailedRun(_Run):
    """Also logs a run's turns, tool calls and questions."""

    def __init__(self, facts: RunFacts) -> None:
        super().__init__(facts)
        self._say("begins")

    def event(self, event: ev.ThoughtEvent, /) -> None:
        match event:
            case ev.ToolsSeen():
                self._say("shows its %d tools by way of %s", len(event.names), event.via)
            case ev.TurnStarted():
                self._say("begins turn %d%s", event.number, ", a reminder" if event.reminder else "")
            case ev.TurnEnded():
                self._say("has ended turn %d: %s", event.number, shown(event.stop_reason))
            case ev.ToolStart():
                self._say("shows tool call %s (%s)", shown(event.id), shown(event.name or event.kind))
            case ev.ToolDone():
                self._say("shows the end of tool call %s: %s", shown(event.id), event.status)
            case ev.QuestionAsked():
                self._say("asks question %s (%s)", event.id, event.asks)
            case ev.QuestionAnswered():
                choice = event.choice or "cancelled"
                self._say("has an answer to question %s: %s, by %s", event.id, choice, event.by)
            case ev.ResultAttempt():
                self._say("has a result that %s", "fits" if event.accepted else "does not fit")
            case _:
                pass

    def session(self, session_id: str, /) -> None:
        self._say("is in session %s", shown(session_id))

    def _say(self, what: str, *args: object) -> None:
        self._lines(logging.DEBUG, "%s " + what, self._about, *args)


class _Session(SessionObserver):
    """Logs the life of a session."""

    def __init__(self, agent: str, how: str) -> None:
        self._agent = agent
        self._how = how
        self._id: str | None = None
        self._lines = LogLines(agent=agent)

    def opened(self, session_id: str, /) -> None:
        self._id = self._lines.known["session"] = session_id
        about = "Session %s of agent %s is open (%s)"
        self._lines(logging.INFO, about, shown(session_id), self._agent, self._how)

    def closed(self, error: BaseException | None, /) -> None:
        if self._id is not None:
            self._lines(logging.DEBUG, "Session %s of agent %s is closed", shown(self._id), self._agent)
        elif error is not None:
            why = "cancelled"
            if isinstance(error, Exception):
                why = type(translate(error, self._agent)).__name__
            about = "A session of agent %s was not opened (%s): %s"
            self._lines(logging.INFO, about, self._agent, self._how, why, error=why)
