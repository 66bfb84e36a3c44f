"""`ThoughtStream`: the handle of a run, with a result that settles by itself and any number of readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import anyio
from anyio.lowlevel import checkpoint

from thinkwell import events as ev
from thinkwell._core.log.drafts import DraftReader
from thinkwell._core.schema.misuse import hints

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Generator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from _typeshed import DataclassInstance
    from pydantic import BaseModel

    from thinkwell._core.log.drafts import Draft
    from thinkwell._core.log.listener import RunListener
    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.log.settlement import Settlement
    from thinkwell.questions import Answer
    from thinkwell.view import RunView

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)
M = TypeVar("M", bound="BaseModel | DataclassInstance")

TURN_END_TIMEOUT: Final = 2.0
"""Seconds that a turn whose result is there gets to end by itself, where a block is left: an agent says what
it has used when its turn ends, most often at once."""


Otherwise: TypeAlias = Literal["queue", "interrupt"]
"""What to do if an agent does not read a message in its turn."""


class RunControl(Protocol):
    """The requests of a stream to its run."""

    @property
    def id(self) -> str:
        """The id of the run, unique in this process."""
        ...

    @property
    def session_id(self) -> str | None:
        """The agent's id for the session; ``None`` until it is known."""
        ...

    @property
    def recording(self) -> Path | None:
        """The file in which the run is recorded."""
        ...

    @property
    def live(self) -> bool:
        """Whether it is running now. The questions of a replay were answered when it was recorded."""
        ...

    @property
    def foreign(self) -> bool:
        """Whether the run belongs to the parent of this forked process."""
        ...

    @property
    def late(self) -> tuple[ev.ThoughtEvent, ...]:
        """Events after the end."""
        ...

    def answer(self, question_id: str, answer: Answer, by: str) -> None:
        """Answer an open question."""
        ...

    def attach(self, listener: RunListener) -> None:
        """Attach a listener; it is asked first."""
        ...

    async def steer(self, text: str, otherwise: Otherwise | None) -> Injected | Queued[Any] | Refused:
        """Tell the agent something while it works."""
        ...

    def cancel(self) -> None:
        """Cancel the run."""
        ...

    def kill(self) -> None:
        """End the run's agent."""
        ...

    async def wait(self) -> None:
        """Wait for the run's end."""
        ...


@hints(__call__="the result is not called here: write `await stream.result`, or use thinkwell.sync")
class ThoughtResult(Generic[T_co]):
    """The result of a run. Await it any number of times, from any number of tasks.

    It settles whether or not you await it. Cancelling an ``await`` cancels only that wait.
    """

    def __init__(self, outcome: Settlement[T_co]) -> None:
        self._outcome = outcome

    def __repr__(self) -> str:
        outcome = self._outcome
        outcome.done()  # a replay checks the clock
        state = "pending; for a task: asyncio.ensure_future(stream.result)"  # for `create_task`
        if outcome.value:
            state = f"done: {type(outcome.value[0]).__name__}"
        elif outcome.error is not None:
            state = f"failed: {type(outcome.error).__name__}"
        return f"<ThoughtResult {outcome.run_id} {state}>"

    def done(self) -> bool:
        """Return whether there is a result or an error."""
        return self._outcome.done()

    def exception(self) -> Exception | None:
        """Return the error, or ``None`` if there is a result or nothing yet."""
        self._outcome.seen = self._outcome.done() and self._outcome.error is not None
        return self._outcome.error

    def __await__(self) -> Generator[object, None, T_co]:
        return self._wait().__await__()

    async def _wait(self) -> T_co:
        outcome = self._outcome
        if outcome.done():
            await checkpoint()
        else:
            await outcome.wait()
        if outcome.error is not None:
            outcome.seen = True
            raise outcome.error.with_traceback(None)
        return outcome.value[0]


@hints(
    __await__="a stream cannot be awaited: write `await stream.result`",
    __iter__="a stream has no blocking loop: write `async for event in stream`, or use thinkwell.sync",
    __enter__="a stream has no blocking block: write `async with stream:`, or use thinkwell.sync",
    __exit__="",
)
class ThoughtStream(Generic[T_co]):
    """A run of an agent: await its `result`, or read its events with ``async for``.

    The run has started and continues by itself. Each ``async for`` sees every event from the first; leaving
    the loop cancels nothing. With ``async with stream:``, leaving the block before the end cancels the run.
    """

    def __init__(self, log: RunLog, result: ThoughtResult[T_co], run: RunControl) -> None:
        self._log = log
        self._run = run
        self.result: ThoughtResult[T_co] = result
        """The validated result: ``await stream.result``."""

    def __repr__(self) -> str:
        view, events = self._log.view(), len(self._log.events)
        return (
            f"<ThoughtStream {self.id} {view.phase}, {events} events buffered, "
            f"{len(view.questions)} questions open>"
        )

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return the current state for a notebook. IPython chooses the format."""
        from thinkwell._display.html import bundle  # only notebooks pay for it

        return bundle(repr(self), self.view, self.elapsed, self.recording)

    @property
    def id(self) -> str:
        """The id of the run, unique in this process."""
        return self._run.id

    @property
    def session_id(self) -> str | None:
        """The agent's id for the session; ``None`` until it is known."""
        return self._run.session_id

    @property
    def view(self) -> RunView:
        """The current state of the run."""
        view = self._log.view()
        if view.error is not None:
            self.result.exception()  # looking at a failed run's view counts as seeing the error
        return view

    @property
    def recording(self) -> Path | None:
        """The file of ``open_agent(record=…)``, or of the replay; ``None`` without one."""
        return self._run.recording

    @property
    def elapsed(self) -> float:
        """Seconds since the run began; after its end, how long it took."""
        return self._log.elapsed()

    @property
    def late(self) -> tuple[ev.ThoughtEvent, ...]:
        """Events that the agent sent after it had answered the prompt. Iterators do not deliver them.

        In a session, these are all events up to the next turn.
        """
        return self._run.late

    def __aiter__(self) -> AsyncIterator[ev.ThoughtEvent]:
        return self._log.reader()

    def events(self, *, include: ev.Include | None = None, after: int = 0) -> AsyncIterator[ev.ThoughtEvent]:
        """Return a new reader of the events.

        Args:
            include: Kinds of events to deliver, of those that the run keeps; all of them by default.
            after: Number of the last event that you have seen. If a buffer has merged text around it, the
                text is delivered whole.

        Raises:
            ValueError: `include` names an unknown kind of event.
        """
        return self._log.reader(None if include is None else ev.included(include), after)

    @overload
    def drafts(self: ThoughtStream[M]) -> AsyncIterator[Draft[Mapping[str, object]]]: ...
    @overload
    def drafts(self) -> AsyncIterator[Draft[T_co]]: ...

    def drafts(self) -> AsyncIterator[Draft[Any]]:
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
        partial = self._log.partial
        if partial.is_union:
            raise TypeError(
                f"drafts(): nothing says which type of {partial.name} a result is before it is whole; await "
                "stream.result, or use a model with the union in one of its fields"
            )
        return DraftReader[Any](self._log, self.result._outcome)

    def answer(self, question_id: str, answer: Answer, *, by: str = "human") -> None:
        """Answer an open question of `view.questions`, from any task or thread. The first answer counts.

        Args:
            question_id: The id of the question.
            answer: The answer; see `thinkwell.questions`.
            by: Who answers, for the log.

        Raises:
            QuestionNotOpen: The run has no such open question.
            AnswerInvalid: The answer does not fit the question, which stays open.
        """
        self._run.answer(question_id, answer, by)

    async def steer(
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
        if not isinstance(cast("object", text), str):
            raise TypeError(f"steer({text!r:.100}): give a str")
        if not text.strip():
            raise ValueError("steer(): the text is empty; say what to tell the agent")
        if otherwise not in (None, "queue", "interrupt"):
            raise ValueError(
                f'steer(otherwise={otherwise!r:.100}): choose "queue" or "interrupt", or leave it out'
            )
        return await self._run.steer(text, otherwise)

    def cancel(self) -> None:
        """Cancel the run.

        This tells the agent, answers its open questions as cancelled, and lets the result raise
        `ThoughtCancelled`. Returns at once; await `wait` for the end. No effect if the run has ended.
        """
        self._run.cancel()

    def kill(self) -> None:
        """Kill the agent's processes at once. Use it if `cancel` takes too long.

        All runs of the agent fail with `AgentExited`, or end as cancelled if they were. If thinkwell did not
        start the agent, it closes the connection. No effect if the run has ended.
        """
        self._run.kill()

    async def wait(self) -> None:
        """Wait until the run has ended. It never raises the run's error."""
        await self._run.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._run.foreign:
            return  # pragma: no cover - in a fork, into which no tool looks
        try:
            if exc_type is None and self._run.live and self.result._outcome.value:
                with anyio.move_on_after(TURN_END_TIMEOUT):
                    await self.wait()
        finally:
            await self._end()

    async def _end(self) -> None:
        """Cancel the run, and wait for its end, even if this is cancelled."""
        self.cancel()
        with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
            await self.wait()


@dataclass(frozen=True, slots=True)
class Injected:
    """`ThoughtStream.steer`: the agent reads it in this run."""

    interrupted: bool = False
    """Whether its turn was ended, and it reads the text in the next one."""

    @property
    def outcome(self) -> Literal["injected", "interrupted"]:
        """The value of `Steered.outcome`."""
        return "interrupted" if self.interrupted else "injected"


@dataclass(frozen=True, slots=True)
class Queued(Generic[S_co]):
    """`ThoughtStream.steer`: the agent reads it in another run, after this one."""

    outcome: ClassVar[Literal["queued"]] = "queued"

    stream: S_co
    """That run, a `ThoughtStream`."""


@dataclass(frozen=True, slots=True)
class Refused:
    """`ThoughtStream.steer`: the agent refused it."""

    outcome: ClassVar[Literal["refused"]] = "refused"

    reason: str
    """The reason, in the agent's words."""
    unclear: bool = False
    """Whether the agent may have taken it all the same: it has not answered."""
