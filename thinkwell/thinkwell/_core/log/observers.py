"""What goes on in an agent's sessions and runs, reported to recorders and tracers.

An observer is told in order, while messages are being read: it must neither wait nor raise.
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
    """What is known of a run when it begins."""

    id: str
    agent: str
    lines: LogLines
    """Writes what is logged of it."""
    include: frozenset[str]
    """The kinds of events that it keeps."""
    text: bool
    """Whether its result is the text of the last message."""
    ephemeral: bool = False
    """Whether its session is its own: the one that was told of right before."""
    wrapped: bool = False
    """Whether ``return_result`` takes the value under a key of its own."""
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
    """Learns what goes on in one run. Does nothing by itself: override what is wanted."""

    def event(self, event: ev.ThoughtEvent, /) -> None:
        """Learn of an event, whether the run keeps it or not. Its number counts only where it does."""

    def session(self, session_id: str, /) -> None:
        """Learn in which session the first prompt is sent."""

    def settled(self, raw: ev.JsonValue, error: Exception | None, /) -> None:
        """Learn the result, as the agent gave it, or why there is none."""

    def ended(self, error: Exception | None, cut: str | None, /) -> None:
        """Learn that the log has ended, and what has cut its turn. Later events are not delivered."""

    def calling(
        self, name: str, arguments: Mapping[str, ev.JsonValue], /
    ) -> AbstractContextManager[Callable[[ToolOutput], None]]:
        """Return what to be in while a tool of the user's is called; it gives who is told the result."""
        return nullcontext(_ignore)

    def prompt(self, blocks: Sequence[object], /) -> Mapping[str, str]:
        """Learn of a prompt that is about to be sent, and return what to send in its ``_meta``."""
        return {}

    def served(self) -> None:
        """Learn that the agent wants a file written, or uses a command of ours."""


class SessionObserver:
    """Learns what goes on in one session. Does nothing by itself: override what is wanted."""

    def opened(self, session_id: str, /) -> None:
        """Learn what the agent calls it; again where it was replaced by another."""

    def called(self, name: str, arguments: Mapping[str, ev.JsonValue], /) -> Callable[[ToolOutput], None]:
        """Learn of a call of one of our tools, and return who is told its result, where it comes to one."""
        return _ignore

    def event(self, event: ev.ThoughtEvent, /) -> None:
        """Learn of an event that came outside of every turn."""

    def closed(self, error: BaseException | None, /) -> None:
        """Learn that it is closed, or was never opened, and why not."""

    def meta(self) -> Mapping[str, str]:
        """Return what to send in the ``_meta`` of the request that opens it."""
        return {}


class Observer(ABC):
    """Learns what goes on in one agent."""

    @abstractmethod
    def run(self, facts: RunFacts, /) -> RunObserver | None:
        """Learn of a run, in the task that began it, and return who is told more."""

    @abstractmethod
    def session(self, how: str, /) -> SessionObserver | None:
        """Learn of a session that is about to be opened, and return who is told more."""


class RunObservers:
    """Tells several what a `RunObserver` is told. Events go straight to those who listen."""

    def __init__(self, observers: Sequence[RunObserver]) -> None:
        self._observers = observers

    @property
    def listeners(self) -> tuple[Callable[[ev.ThoughtEvent], None], ...]:
        """What to call with each event."""
        # Not those that do not listen: there are many events.
        return tuple(o.event for o in self._observers if type(o).event is not RunObserver.event)

    def session(self, session_id: str, /) -> None:
        """Tell in which session."""
        for observer in self._observers:
            observer.session(session_id)

    def settled(self, raw: ev.JsonValue, error: Exception | None, /) -> None:
        """Tell the result."""
        for observer in self._observers:
            observer.settled(raw, error)

    def ended(self, error: Exception | None, cut: str | None, /) -> None:
        """Tell the end."""
        for observer in self._observers:
            observer.ended(error, cut)

    @contextmanager
    def calling(
        self, name: str, arguments: Mapping[str, ev.JsonValue], /
    ) -> Generator[Callable[[ToolOutput], None]]:
        """Be in what each of them wants entered, and give who tells them the result."""
        with ExitStack() as stack:
            told = [stack.enter_context(observer.calling(name, arguments)) for observer in self._observers]

            def returned(result: ToolOutput) -> None:
                for tell in told:
                    tell(result)

            yield returned

    def prompt(self, blocks: Sequence[object], /) -> Mapping[str, str]:
        """Tell of a prompt, and join what each of them wants sent."""
        return _joined(observer.prompt(blocks) for observer in self._observers)

    def served(self) -> None:
        """Tell of a file, or a command."""
        for observer in self._observers:
            observer.served()


class SessionObservers:
    """Tells several what a `SessionObserver` is told. Events go straight to those who listen."""

    def __init__(self, observers: Sequence[SessionObserver]) -> None:
        self._observers = observers
        self._closed = False

    @property
    def listeners(self) -> tuple[Callable[[ev.ThoughtEvent], None], ...]:
        """What to call with each event."""
        return tuple(o.event for o in self._observers if type(o).event is not SessionObserver.event)

    def opened(self, session_id: str, /) -> None:
        """Tell its name."""
        for observer in self._observers:
            observer.opened(session_id)

    def called(self, name: str, arguments: Mapping[str, ev.JsonValue], /) -> Callable[[ToolOutput], None]:
        """Tell of a call."""
        told = [observer.called(name, arguments) for observer in self._observers]

        def answered(output: ToolOutput) -> None:
            for tell in told:
                tell(output)

        return answered

    def closed(self, error: BaseException | None, /) -> None:
        """Tell the end, once: a session that was not opened is closed all the same."""
        if not self._closed:
            self._closed = True
            for observer in self._observers:
                observer.closed(error)

    def meta(self) -> Mapping[str, str]:
        """Join what each of them wants sent."""
        return _joined(observer.meta() for observer in self._observers)


class Observers:
    """All observers of one agent."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = observers

    def run(self, facts: RunFacts, own: RunObserver | None = None) -> RunObservers:
        """Tell of a run, and return who is told more: they, and the run's own observer."""
        return RunObservers(_present((*(observer.run(facts) for observer in self._observers), own)))

    def session(self, how: str) -> SessionObservers:
        """Tell of a session."""
        return SessionObservers(_present(observer.session(how) for observer in self._observers))


def _ignore(result: object) -> None:
    """Do nothing."""


def _present(observers: Iterable[T | None]) -> tuple[T, ...]:
    return tuple(observer for observer in observers if observer is not None)


def _joined(metas: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    return {key: value for meta in metas for key, value in meta.items()}
