"""`ThoughtStream`: the handle of a run, for callers who block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast, overload

from thinkwell import Queued
from thinkwell import events as ev
from thinkwell._core.schema.misuse import hints
from thinkwell.sync._loop import LoopEnded, WaitedTooLong

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from _typeshed import DataclassInstance
    from pydantic import BaseModel

    from thinkwell import Draft, Injected, Refused
    from thinkwell import ThoughtStream as AsyncThoughtStream
    from thinkwell.questions import Answer
    from thinkwell.sync._loop import LoopThread
    from thinkwell.view import RunView

T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
M = TypeVar("M", bound="BaseModel | DataclassInstance")


class Reader(Protocol[E]):
    """Reads the log of a run, or its drafts, in its event loop."""

    async def batch(self) -> list[E]:
        """Wait for more, and take all that is there; nothing is the end."""
        ...

    def batch_nowait(self) -> list[E]:
        """Take all that is there."""
        ...


class Pulled(ABC, Generic[E_co]):
    """An iterator over what there is in the loop's thread. Threads that share one share its items out."""

    __slots__ = ("_loop", "_over", "_ready")

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        self._ready: deque[E_co] = deque()
        self._over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> E_co:
        while True:
            try:
                return self._ready.popleft()
            except IndexError:
                if self._over:
                    raise StopIteration from None
            try:
                self._loop.call(self._fetch)
            except LoopEnded:
                self._loop.ask(self._fetch_rest)

    @abstractmethod
    async def _fetch(self) -> None:
        """Take what there is. Not as the call's result: an interrupted caller must not lose it."""

    @abstractmethod
    def _fetch_rest(self) -> None:
        """Take what there is when the loop has ended."""


class EventIterator(Pulled[E]):
    """An iterator over a log, with its own position.

    Args:
        loop: The thread in which the log is written.
        read: Makes the log's reader there.
        owner: Stays alive as long as the iterator.
    """

    __slots__ = ("_owner", "_read", "_reader")

    def __init__(self, loop: LoopThread, read: Callable[[], AsyncIterator[E]], owner: object) -> None:
        super().__init__(loop)
        self._read = read
        self._owner = owner
        self._reader: Reader[E] | None = None

    async def _fetch(self) -> None:
        events = await self._begun().batch()
        self._ready.extend(events)
        self._over = not events

    def _fetch_rest(self) -> None:
        if not self._over:  # pragma: no branch - else another thread was quicker
            self._over = True
            self._ready.extend(self._begun().batch_nowait())

    def _begun(self) -> Reader[E]:
        if self._reader is None:
            self._reader = cast("Reader[E]", self._read())
        return self._reader


@hints(__aiter__="write `for event in stream`, or use the stream of thinkwell, which is async")
class ThoughtStream(Generic[T_co]):
    """A run of an agent: wait for its `result`, or read its events with ``for``.

    The run has started and continues by itself. Each ``for`` sees every event from the first; leaving the
    loop cancels nothing. With ``with stream:``, leaving the block before the end cancels the run. You can use
    a stream from several threads at once.
    """

    def __init__(self, loop: LoopThread, stream: AsyncThoughtStream[T_co], owner: object) -> None:
        self._loop = loop
        self._stream = stream
        self._owner = owner  # an agent without users is closed

    def __repr__(self) -> str:
        return self._loop.ask(repr, self._stream)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return the run's current state for a notebook. IPython picks a format."""
        from thinkwell._display.html import bundle  # only notebooks need it

        return bundle(repr(self), self.view, self.elapsed, self._stream.recording)

    @property
    def id(self) -> str:
        """The id of the run, unique in this process."""
        return self._stream.id

    @property
    def session_id(self) -> str | None:
        """The agent's id for the session; ``None`` until it is known."""
        return self._loop.ask(lambda: self._stream.session_id)

    @property
    def view(self) -> RunView:
        """The current state of the run."""
        return self._loop.ask(lambda: self._stream.view)

    @property
    def elapsed(self) -> float:
        """Seconds since the run began; after its end, how long it took."""
        return self._loop.ask(lambda: self._stream.elapsed)

    @property
    def late(self) -> tuple[ev.ThoughtEvent, ...]:
        """Events that the agent sent after it had answered the prompt. Iterators do not deliver them.

        In a session, these are all events up to the next turn.
        """
        return self._loop.ask(lambda: self._stream.late)

    def result(self, timeout: float | None = None) -> T_co:
        """Wait for the validated result, and return it: any number of times, from any number of threads.

        Returns as soon as the result arrives, though the agent may still be ending its turn. Ctrl-C ends
        only the wait.

        Args:
            timeout: Seconds to wait. The run continues after that.

        Raises:
            TimeoutError: The time is up.
            ThinkwellError: The run failed.
        """
        outcome = self._stream.result._outcome

        async def settled() -> None:
            if not outcome.done():
                await outcome.wait()

        self._wait_for(settled, timeout, "has no result")
        error = self._stream.result.exception()
        if error is not None:
            raise error.with_traceback(None)  # raised here, not where other threads waited
        return outcome.value[0]

    def done(self) -> bool:
        """Return whether there is a result or an error."""
        return self._loop.ask(self._stream.result.done)

    def exception(self) -> Exception | None:
        """Return the error, or ``None`` if there is a result or nothing yet."""
        return self._loop.ask(self._stream.result.exception)

    def __iter__(self) -> Iterator[ev.ThoughtEvent]:
        return EventIterator(self._loop, self._stream.events, self)

    def events(self, *, include: ev.Include | None = None, after: int = 0) -> Iterator[ev.ThoughtEvent]:
        """Return a new iterator over the events.

        Args:
            include: Kinds of events to deliver, of those that the run keeps; all of them by default.
            after: Number of the last event that you have seen. If a buffer has merged text around it, the
                text is delivered whole.

        Raises:
            ValueError: `include` names an unknown kind of event.
        """
        if include is not None:
            ev.included(include)
        return EventIterator(self._loop, partial(self._stream.events, include=include, after=after), self)

    @overload
    def drafts(self: ThoughtStream[M]) -> Iterator[Draft[Mapping[str, object]]]: ...
    @overload
    def drafts(self) -> Iterator[Draft[T_co]]: ...

    def drafts(self) -> Iterator[Draft[Any]]:
        """Return an iterator over the typed result while the agent writes it, draft by draft.

        It gives the newest draft, skipping older ones if you are slow, and last the whole result. What comes
        before that depends on the type, and on what the agent shows of a result that it writes;
        `RunView.drafts` says what there may be. A draft never contains what the agent may still change
        without a greater `Draft.attempt`.

        Of a model, a dataclass or a TypedDict you get a dict of its fields, since a model cannot be there in
        part: a field that has not begun is missing, whatever its default.

        Raises:
            TypeError: The result is of a union, of which only the end says which type it is.
            ThinkwellError: While you iterate: the run failed.
        """
        reader = self._stream.drafts()  # here, where what there is no draft of is refused
        return EventIterator(self._loop, lambda: reader, self)

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer an open question of `view.questions`. The first answer counts.

        Args:
            question_id: The id of the question.
            answer: The answer; see `thinkwell.questions`.
            by: Who answers, for the log.

        Raises:
            QuestionNotOpen: The run has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        self._loop.ask(lambda: self._stream.answer(question_id, answer, by=by))

    def steer(
        self, text: str, *, otherwise: Literal["queue", "interrupt"] | None = None
    ) -> Injected | Queued[ThoughtStream[T_co]] | Refused:
        """Tell the agent something while it works: ``steer("Also check the login")``.

        Waits until the first prompt was sent.

        An agent that can be steered reads it in the turn that runs. The run then stays open until the agent
        has done that too, at most ``background_wait`` seconds longer than its turn; a text that comes
        meanwhile begins another turn at once.

        Args:
            text: What to tell it.
            otherwise: What to do if the agent cannot be steered, or refuses. ``"queue"``: start
                another run of the same task in the session, with this text as its prompt, when this one is
                over. ``"interrupt"``: end the turn, and go on in this run with this text.

        Returns:
            The outcome. It is also in the log, as a `Steered` event.

        Raises:
            SteeringUnsupported: The agent cannot be steered, and you gave no `otherwise`.
            RunEnded: The run is over, or was cancelled.
            TypeError: The text is no str.
            ValueError: The text is empty, or `otherwise` has another value.
            AgentExited: The agent ended in the meantime.
        """
        came_to = self._loop.call(lambda: self._stream.steer(text, otherwise=otherwise))
        if isinstance(came_to, Queued):
            return Queued(ThoughtStream(self._loop, came_to.stream, self._owner))
        return came_to

    def cancel(self) -> None:
        """Cancel the run.

        This tells the agent, answers its open questions as cancelled, and lets the result raise
        `ThoughtCancelled`. Returns at once; `wait` waits for the end. No effect if the run has ended.
        """
        self._loop.ask(self._stream.cancel)

    def kill(self) -> None:
        """Kill the agent's processes at once. Use it if `cancel` takes too long.

        All runs of the agent fail with `AgentExited`, or end as cancelled if they were. If thinkwell did not
        start the agent, it closes the connection. No effect if the run has ended.
        """
        self._loop.ask(self._stream.kill)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the run has ended. It never raises the run's error.

        Args:
            timeout: Seconds to wait. The run continues after that.

        Raises:
            TimeoutError: The time is up.
        """
        self._wait_for(self._stream.wait, timeout, "is not over")

    def _wait_for(self, what: Callable[[], Awaitable[None]], timeout: float | None, still: str) -> None:
        try:
            self._loop.call(what, timeout=timeout)
        except LoopEnded:
            pass  # then the run is over, with everything else
        except WaitedTooLong:
            raise TimeoutError(
                f"{self.id} {still} after {timeout:g} seconds; it continues: wait again, or cancel() it"
            ) from None

    def _end(self, *, hurried: bool = True) -> None:
        """Leave the run as its block does, by default as by an exception. Ctrl-C meanwhile kills it."""
        interrupted: KeyboardInterrupt | None = None
        leave = partial(self._stream.__aexit__, BaseException if hurried else None, None, None)
        while True:
            try:
                if interrupted is not None:
                    self.kill()
                self._wait_for(leave, None, "is not over")
                break
            except KeyboardInterrupt as exc:  # in any of them: each waits for the loop
                interrupted = exc
        if interrupted is not None:
            raise interrupted

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(hurried=exc_type is not None)
