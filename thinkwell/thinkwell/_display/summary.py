"""A run at one moment, and its summary, for the card at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from thinkwell import errors
from thinkwell._display import numbers
from thinkwell._display.calls import RESULT, is_result_title, told_calls
from thinkwell._display.diffs import changes_of
from thinkwell._display.numbers import plural
from thinkwell._display.phases import OVER, durations
from thinkwell._display.text import clean, line
from thinkwell._display.usage import usage_words

if TYPE_CHECKING:
    from thinkwell._display.diffs import FileChange
    from thinkwell.view import RunView

RunStatus: TypeAlias = Literal["running", "done", "failed", "cancelled"]

SHORTEST: Final = 0.05
"""Seconds below which a duration is not shown."""

DENIED: Final = 10
"""Most titles of denied calls that are named."""

ERROR: Final = 2_000
"""Most characters of an error."""

DETAIL: Final = 4_000
"""Most characters of a quotation in an error, from its end."""


class ErrorWords(NamedTuple):
    """An error, as text. Every text is clean."""

    what: str
    """What happened; a few lines at most."""
    next: str
    """What to do next, in a line; may be empty."""
    detail: str = ""
    """Further details, such as the end of the agent's standard error; any number of lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One run at one moment."""

    view: RunView
    now: float
    """Seconds since the run began; after its end, its duration."""
    label: str = ""
    """The program's name for the run; by default that of its agent."""
    result: str | None = None
    """The result: text unchanged, everything else as indented JSON. ``None``: there is none, or it is not to
    be shown."""
    recording: str | None = None
    """The file of the recording."""
    cancelling: bool = False
    """Whether Ctrl-C was pressed."""

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return self.view.phase in OVER

    @property
    def status(self) -> RunStatus:
        """How the run ended, or that it continues."""
        return status_of(self.view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of a run. Every text is clean."""

    status: RunStatus
    agent: str
    model: str
    session_id: str
    seconds: float
    changes: tuple[FileChange, ...]
    """The files that completed calls have changed, each once."""
    tools: int
    tools_failed: int
    tools_cancelled: int
    refused: int
    """The number of invalid results."""
    denied: tuple[str, ...]
    """The titles of denied calls."""
    time: str
    """The durations of the parts of the run, in a line; may be empty."""
    usage: str
    turns: int
    error: ErrorWords | None
    recording: str
    """The file of the recording; may be empty."""

    @property
    def work(self) -> str:
        """The work, in a line: ``3 tools, 1 failed · 2 files changed, +42 −3``; may be empty."""
        parts: list[str] = []
        if self.tools:
            failed = f", {self.tools_failed} failed" if self.tools_failed else ""
            cancelled = f", {self.tools_cancelled} cancelled" if self.tools_cancelled else ""
            parts.append(f"{plural(self.tools, 'tool')}{failed}{cancelled}")
        if self.changes:
            added, removed = sum(one.added for one in self.changes), sum(one.removed for one in self.changes)
            parts.append(f"{plural(len(self.changes), 'file')} changed, +{added:,} −{removed:,}")
        if self.refused:
            parts.append(f"{plural(self.refused, 'result')} refused")
        if self.denied:
            parts.append(f"{len(self.denied)} denied")
        return " · ".join(parts)

    @property
    def end(self) -> str:
        """The outcome and usage, in a line: ``done in 2.1s · 3 tools · 18.2k/200k ctx``."""
        how = {"done": "done in", "running": "left while it goes on, after"}.get(
            self.status, f"{self.status} after"
        )
        return " · ".join(filter(None, (f"{how} {numbers.seconds(self.seconds)}", self.work)))

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Further facts, each with its name."""
        told = {
            "work": self.work,
            "denied": ", ".join(list(dict.fromkeys(self.denied))[:DENIED]),
            "time": self.time,
            "usage": self.usage,
            "session": self.session_id,
            "replay": self.recording,
        }
        return tuple((name, value) for name, value in told.items() if value)


def summary(view: RunView, seconds: float, recording: str | None = None) -> Summary:
    """Return the summary of a run.

    Args:
        view: The run, usually at its end.
        seconds: Its duration.
        recording: The file of the recording.
    """
    tools = told_calls(view)
    times = (f"{word} {numbers.seconds(taken)}" for word, taken in durations(view) if taken >= SHORTEST)
    changes: dict[str, FileChange] = {}
    for tool in tools:
        if tool.status == "completed":
            for change in changes_of(tool, view.cwd):
                known = changes.get(change.path)
                changes[change.path] = change if known is None else known.and_then(change)
    return Summary(
        status=status_of(view),
        agent=line(view.agent),
        model=line(view.model or ""),
        session_id=line(view.session_id or ""),
        seconds=seconds,
        changes=tuple(changes.values()),
        tools=len(tools),
        tools_failed=sum(tool.status == "failed" for tool in tools),
        tools_cancelled=sum(tool.status == "cancelled" for tool in tools),
        refused=sum(not attempt.accepted for attempt in view.attempts),
        denied=tuple(RESULT if is_result_title(title) else line(title) for title in view.denied),
        time=" · ".join(times),
        usage=usage_words(view),
        turns=view.turns,
        error=None if view.error is None else error_words(view.error),
        recording=line(recording or ""),
    )


def status_of(view: RunView) -> RunStatus:
    """Return the outcome of a run, or that it continues."""
    if view.phase not in OVER:
        return "running"
    if view.phase == "cancelled" or isinstance(view.error, errors.ThoughtCancelled):
        return "cancelled"
    return "done" if view.error is None and view.phase == "completed" else "failed"


def error_words(error: BaseException) -> ErrorWords:
    """Return what happened, and what to do next."""
    words = _words(error)
    notes = "; ".join(getattr(error, "__notes__", ()))
    return ErrorWords(
        what=_bounded(words.what),
        next=line(words.next or notes, ERROR),
        detail=_quoted(words.detail),
    )


def _words(error: BaseException) -> ErrorWords:
    match error:
        case errors.AgentNotFound() | errors.AgentStartFailed():
            return _not_started(error)
        case errors.AgentExited(stderr_tail=stderr):
            what = _without(str(error), stderr)
            return ErrorWords(*_halves(what), stderr)
        case errors.LoginRequired(agent=agent, reason=reason):
            ways = "\n".join(f"{way.id}: {way.name}" for way in error.methods)
            return ErrorWords(f"Agent {agent!r}: {reason}", f"log in: thinkwell login {agent}", ways)
        case errors.ResultMissing(text=text, stop_reason=reason):
            return _missing(error, text, reason)
        case errors.ResultInvalid(errors=wrong, attempts=attempts):
            what = f"The agent returned no valid result in {plural(attempts, 'attempt')}"
            hint = "say in the prompt what the result has to be, or allow more in its type"
            return ErrorWords(what, hint, "\n".join(wrong))
        case errors.ResultRefused(text=text):
            return ErrorWords("The model refused", "put the prompt differently", text)
        case errors.ToolsNotSeen():
            return ErrorWords(*_halves(str(error), ". "))
        case errors.ThoughtCancelled():
            return ErrorWords(str(error), "")
        case errors.ThoughtTimeout(idle=False):
            return ErrorWords(str(error), "give it more time, or ask for less")
        case errors.ThinkwellError():
            return ErrorWords(*_halves(str(error)))
        case _:
            told = str(error)
            return ErrorWords(f"{type(error).__name__}: {told}" if told else type(error).__name__, "")


def _not_started(error: errors.AgentNotFound | errors.AgentStartFailed) -> ErrorWords:
    next_ = f"type: {error.next_command}" if error.next_command else ""
    if isinstance(error, errors.AgentNotFound):
        return ErrorWords(f"Agent {error.agent!r} was not found: {error.reason}", next_)
    version = f" (version {error.version})" if error.version else ""
    what = f"Agent {error.agent!r}{version} could not be started: {error.reason}"
    return ErrorWords(what, next_, error.stderr_tail)


def _missing(error: errors.ResultMissing, text: str, reason: str) -> ErrorWords:
    hint = {
        "max_tokens": "ask for less, or for a smaller result",
        "max_turn_requests": "ask for less",
    }.get(reason, "say in the prompt what the result is")
    if error.denied:
        hint = f"allow what it needs by permissions=; it was denied {plural(len(error.denied), 'thing')}"
    said = f"It said: {text}" if text else "It said nothing"
    return ErrorWords(f"The agent ended its turn ({reason}) without a result", hint, said)


def _halves(text: str, between: str = "; ") -> tuple[str, str]:
    """Return what happened, and what to do: our messages have both, in this order."""
    head, found, tail = text.rpartition(between)
    return (head, tail) if found else (text, "")


def _without(text: str, quoted: str) -> str:
    """Return a message without the quoted standard error."""
    return text.partition("\nThe end of its standard error:\n")[0] if quoted else text


def _bounded(text: str) -> str:
    shown = clean(text[: 2 * ERROR]).strip()
    return shown if len(shown) <= ERROR else f"{shown[: ERROR - 1]}…"


def _quoted(text: str) -> str:
    shown = clean(text[-2 * DETAIL :]).strip("\n").rstrip()
    return shown if len(shown) <= DETAIL else f"…{shown[1 - DETAIL :]}"
