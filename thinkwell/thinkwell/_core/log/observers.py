"""Observers of an agent's sessions and runs, for recorders and tracers.

An observer is called in order, while messages are being read: it must neither wait nor raise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from thinkwell import events as ev
    from thinkwell._core.log.log_lines import LogLines
    from thinkwell_acp.mcp import ToolOutput

T = TypeVar("T")


class RunFacts(Struct, frozen=True, kw_only=True):
    """The known facts when a run begins."""

    id: str
    agent: str
    lines: LogLines
    """Writes log lines about it."""
    include: frozenset[str]
    """The kinds of events that it keeps."""
    text: bool
    """Whether its result is the text of the last message."""
    ephemeral: bool = False
    """Whether it has its own session: the one that was reported directly before."""
    wrapped: bool = False
    """Whether ``return_result`` takes the value under its own key."""
    own_fields: bool = False
    """Whether it takes the fields of the value itself, or it alone, and not anything."""
    whole_fields: bool = False
    """Whether the agent shows no field of it before it is whole."""
    attempt: int = 1
    """Which try of the run it is."""

    @property
    def name(self) -> str:
        """A name of its own for each try."""
        return self.id if self.attempt == 1 else f"{self.id}.{self.attempt}"


class RunObserver:
    """Observes one run. By default it does nothing: override what you need."""

    def begun(self, facts: RunFacts, /) -> None:
        """Handle the start, before any other observer does."""

    def event(self, event: ev.ThoughtEvent, /) -> None:
        """Handle an event, whether the run keeps it or not. Its number counts only if it is kept."""

    def session(self, session_id: str, /) -> None:
        """Handle the session id for which the first prompt is sent."""

    def settled(self, raw: ev.JsonValue, error: Exception | None, /) -> None:
        """Handle the result, as the agent gave it, or the error."""

    def ended(self, error: Exception | None, cut: str | None, /) -> None:
        """Handle the end of the log, and the reason if its turn was cut. Later events are not delivered."""

    def calling(
        self, name: str, arguments: Mapping[str, ev.JsonValue], /
    ) -> AbstractContextManager[Callable[[ToolOutput], None]]:
        """Return a context manager for a call of a user's tool; it yields a callback for the result."""
        return nullcontext(_ignore)

    def prompt(self, blocks: Sequence[object], /) -> Mapping[str, str]:
        """Handle a prompt before it is sent, and return additions to its ``_meta``."""
        return {}

    def served(self) -> None:
        """Learn that the agent wants a file written, or uses a command of ours."""


class SessionObserver:
    """Observes one session. By default it does nothing: override what you need."""

    def opened(self, session_id: str, /) -> None:
        """Handle the session's id; again if it is replaced by another session."""

    def called(self, name: str, arguments: Mapping[str, ev.JsonValue], /) -> Callable[[ToolOutput], None]:
        """Handle a call of one of our tools, and return a callback for its result, if it has one."""
        return _ignore

    def event(self, event: ev.ThoughtEvent, /) -> None:
        """Handle an event outside every turn."""

    def closed(self, error: BaseException | None, /) -> None:
        """Handle the session's close, or the error if it was never opened."""

    def meta(self) -> Mapping[str, str]:
        """Return additions to the ``_meta`` of the request that opens it."""
        return {}


class Observer(ABC):
    """Observes one agent."""

    @abstractmethod
    def run(self, facts: RunFacts, /) -> RunObserver | None:
        """Handle the start of a run, in the task that began it, and return an observer for it."""

    def whole(self, facts: RunFacts, /) -> RunObserver | None:
        """Handle the start of a run that may be tried again, and return an observer for all its tries.

        Each try is reported by `run`, too, with the same id.
        """
        return None

    @abstractmethod
    def session(self, how: str, /) -> SessionObserver | None:
        """Handle that a session is about to be opened, and return an observer for it."""


class RunObservers:
    """Calls several `RunObserver`. Events go directly to their listeners."""

    def __init__(self, observers: Sequence[RunObserver]) -> None:
        self._observers = observers

    @property
    def listeners(self) -> tuple[Callable[[ev.ThoughtEvent], None], ...]:
        """The callbacks for each event."""
        # Without those that do not listen: there are many events.
        return tuple(o.event for o in self._observers if type(o).event is not RunObserver.event)

    def session(self, session_id: str, /) -> None:
        """Report the session id."""
        for observer in self._observers:
            observer.session(session_id)

    def settled(self, raw: ev.JsonValue, error: Exception | None, /) -> None:
        """Report the result."""
        for observer in self._observers:
            observer.settled(raw, error)

    def ended(self, error: Exception | None, cut: str | None, /) -> None:
        """Report the end."""
        for observer in self._observers:
            observer.ended(error, cut)

    @contextmanager
    def calling(
        self, name: str, arguments: Mapping[str, ev.JsonValue], /
    ) -> Generator[Callable[[ToolOutput], None]]:
        """Enter all observers' context managers, and yield one callback for the result."""
        with ExitStack() as stack:
            told = [stack.enter_context(observer.calling(name, arguments)) for observer in self._observers]

            def returned(result: ToolOutput) -> None:
                for tell in told:
                    tell(result)

            yield returned

    def prompt(self, blocks: Sequence[object], /) -> Mapping[str, str]:
        """Report a prompt, and merge the additions to its ``_meta``."""
        return _joined(observer.prompt(blocks) for observer in self._observers)

    def served(self) -> None:
        """Tell of a file, or a command."""
        for observer in self._observers:
            observer.served()


class SessionObservers:
    """Calls several `SessionObserver`. Events go directly to their listeners."""

    def __init__(self, observers: Sequence[SessionObserver]) -> None:
        self._observers = observers
        self._closed = False

    @property
    def listeners(self) -> tuple[Callable[[ev.ThoughtEvent], None], ...]:
        """The callbacks for each event."""
        return tuple(o.event for o in self._observers if type(o).event is not SessionObserver.event)

    def opened(self, session_id: str, /) -> None:
        """Report the session's id."""
        for observer in self._observers:
            observer.opened(session_id)

    def called(self, name: str, arguments: Mapping[str, ev.JsonValue], /) -> Callable[[ToolOutput], None]:
        """Report a call."""
        told = [observer.called(name, arguments) for observer in self._observers]

        def answered(output: ToolOutput) -> None:
            for tell in told:
                tell(output)

        return answered

    def closed(self, error: BaseException | None, /) -> None:
        """Report the end, once: a session that was not opened is closed too."""
        if not self._closed:
            self._closed = True
            for observer in self._observers:
                observer.closed(error)

    def meta(self) -> Mapping[str, str]:
        """Merge the additions to ``_meta``."""
        return _joined(observer.meta() for observer in self._observers)


class Observers:
    """All observers of one agent."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = observers

    def run(self, facts: RunFacts, own: RunObserver | None = None) -> RunObservers:
        """Tell of a run, and return who is told more: they, and the run's own observer."""
        if own is not None:
            own.begun(facts)
        return RunObservers(_present((*(observer.run(facts) for observer in self._observers), own)))

    def whole(self, facts: RunFacts) -> RunObservers:
        """Report a run that may be tried again."""
        return RunObservers(_present(observer.whole(facts) for observer in self._observers))

    def session(self, how: str) -> SessionObservers:
        """Report a session."""
        return SessionObservers(_present(observer.session(how) for observer in self._observers))


def _ignore(result: object) -> None:
    """Do nothing."""


def _present(observers: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(observer for observer in observers if observer is not None)


def _joined(metas: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    return {key: value for meta in metas for key, value in meta.items()}
