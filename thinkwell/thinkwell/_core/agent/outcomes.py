"""`Agent.map`: one task over many inputs, in a limited number of runs at a time."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypedDict, TypeVar, cast

import anyio
from anyio.lowlevel import checkpoint

from thinkwell import events as ev
from thinkwell._core.log.run_log import RunLog
from thinkwell._core.log.settlement import Settlement
from thinkwell._core.log.stream import ThoughtResult, ThoughtStream
from thinkwell._core.schema.arguments import check_count
from thinkwell._core.schema.misuse import hints
from thinkwell._core.task.builder import Options, ThinkBuilder
from thinkwell._core.task.think import bound
from thinkwell.errors import AgentClosed, QuestionNotOpen, RunEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

    from thinkwell._core.agent.agent import RunningAgent
    from thinkwell._core.log.budget import Budget
    from thinkwell._core.log.owner import Owner
    from thinkwell._core.log.run_log import Buffer
    from thinkwell._core.task.builder import Starter
    from thinkwell._core.task.retry import Retry
    from thinkwell.questions import Answer
    from thinkwell.view import RunView
    from thinkwell_acp._tasks import BackgroundTasks

T = TypeVar("T")
In = TypeVar("In")
T_co = TypeVar("T_co", covariant=True)
In_co = TypeVar("In_co", covariant=True)

_unstarted_numbers: Final = count(1)


class RunOptions(TypedDict, total=False):
    """The options of a run, as in `ThinkBuilder.stream`."""

    include: ev.Include
    buffer: Buffer | None
    timeout: float | None
    idle_timeout: float | None
    retries: int
    reminders: int
    background_wait: float
    budget: Budget | None
    retry: Retry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[In_co, T_co]):
    """The outcome of one input of `Agent.map`."""

    input: In_co
    index: int
    """The index of the input, from 0 on."""
    error: Exception | None
    """Why there is no result; ``None`` if there is one."""
    view: RunView = field(repr=False)
    """The state of the run at its end, with its usage."""
    seconds: float
    """How long the run took."""
    _value: tuple[T_co, ...]

    @property
    def result(self) -> T_co:
        """The validated result.

        Raises:
            Exception: There is none: this is `error`.
        """
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self._value[0]


@hints(
    __await__="the outcomes cannot be awaited: write `await outcomes.results()`",
    __iter__="the outcomes have no blocking loop: write `async for outcome in outcomes`",
)
class Outcomes(Generic[In_co, T_co]):
    """The outcomes of many inputs, one for each: ``async for outcome in agent.map(task, inputs)``.

    The first runs have started. Each outcome is delivered once. If you leave the loop, no more runs start
    once as many outcomes wait as runs are running; with ``async with``, leaving the block cancels the runs.
    """

    def __init__(
        self,
        start: Callable[[In_co], ThoughtStream[T_co]],
        inputs: Iterable[In_co],
        *,
        limit: int,
        ordered: bool,
        owner: Owner,
        tasks: BackgroundTasks,
    ) -> None:
        self._start = start
        self._inputs = enumerate(inputs)
        self._limit = limit
        self._ordered = ordered
        self._owner = owner
        self._tasks = tasks
        self._running: dict[int, tuple[In_co, ThoughtStream[T_co]]] = {}
        self._waiting: dict[int, Outcome[In_co, T_co]] = {}
        """Outcomes not delivered yet, in the order in which they came."""
        self._delivered = 0
        self._cancelled = False
        self._over = False
        """Whether no more runs start."""
        self._error: Exception | None = None
        """The error of reading the inputs, or `AgentClosed`."""
        self._changed = anyio.Event()
        self._followers: list[Callable[[In_co, ThoughtStream[T_co]], None]] = []
        tasks.start_soon(self._feed, never=self._closed)

    def __repr__(self) -> str:
        return (
            f"<Outcomes {len(self._running)} running, {len(self._waiting)} waiting, "
            f"{self._delivered} delivered>"
        )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Outcome[In_co, T_co]:
        self._owner.check()
        while (outcome := self._take()) is None:
            await self._changed.wait()
        return outcome

    async def results(self) -> list[Outcome[In_co, T_co]]:
        """Wait for all runs; return their outcomes in the order of the inputs. Cancelling this cancels them.

        Raises:
            Exception: Reading the inputs raised it.
            AgentClosed: The agent was closed before all runs had started.
        """
        try:
            return sorted([outcome async for outcome in self], key=lambda outcome: outcome.index)
        except BaseException:
            with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
                await self.close()
            raise

    def cancel(self) -> None:
        """Cancel the running runs, and start no more. Returns at once; their outcomes still come."""
        self._cancelled = True
        for _, stream in self._running.values():
            stream.cancel()
        self._notify()

    async def close(self) -> None:
        """Cancel the running runs, and wait for their end."""
        self._owner.check()
        self.cancel()
        await self._ended()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
            await self.close()

    def _take(self) -> Outcome[In_co, T_co] | None:
        """Take the next outcome; ``None`` if it has not come."""
        index = self._delivered if self._ordered else next(iter(self._waiting), None)
        outcome = None if index is None else self._waiting.pop(index, None)
        if outcome is not None:
            self._delivered += 1
            self._notify()
        elif self._over and not self._running:
            error, self._error = self._error, None
            raise error or StopAsyncIteration
        return outcome

    def _follow(self, begun: Callable[[In_co, ThoughtStream[T_co]], None]) -> None:
        """Call a function with each running run, and with those that start later."""
        self._followers.append(begun)
        for given, stream in self._running.values():
            begun(given, stream)

    async def _ended(self) -> None:
        """Wait until no run is running, and none will start."""
        while self._running or not self._over:
            await self._changed.wait()

    async def _feed(self) -> None:
        """Start runs while there is room for them."""
        try:
            while await self._room():
                try:
                    index, given = next(self._inputs)
                except StopIteration:
                    return
                except Exception as exc:
                    self._error = exc
                    return
                try:
                    stream = self._start(given)
                except AgentClosed as exc:
                    self._error = exc
                    return
                except _NoTaskError as exc:
                    self._error = TypeError(str(exc))
                    return
                self._running[index] = given, stream
                for begun in self._followers:
                    begun(given, stream)
                self._tasks.start_soon(self._watch, index)
        except anyio.get_cancelled_exc_class():
            self._closed()
            raise
        finally:
            self._over = True
            self._notify()

    async def _room(self) -> bool:
        """Wait until another run may start; return whether to start it."""
        while not self._cancelled:
            running = len(self._running)
            if running < self._limit and running + len(self._waiting) < 2 * self._limit:
                return True
            await self._changed.wait()
        return False

    async def _watch(self, index: int) -> None:
        given, stream = self._running[index]
        try:
            await stream.wait()
        finally:  # leaving the agent's block may cancel this just after the run has ended
            del self._running[index]
            self._come(
                Outcome(
                    input=given,
                    index=index,
                    error=stream.result.exception(),
                    view=stream.view,
                    seconds=stream.elapsed,
                    _value=tuple(stream.result._outcome.value),
                )
            )

    def _come(self, outcome: Outcome[In_co, T_co]) -> None:
        self._waiting[outcome.index] = outcome
        self._notify()

    def _closed(self) -> None:
        """The agent's block was left."""
        self._over = True
        self._error = AgentClosed()
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def mapped(
    task: ThinkBuilder[T] | Callable[[In], ThinkBuilder[T]],
    inputs: Iterable[In],
    agent: RunningAgent,
    starter: Starter,
    options: RunOptions,
    *,
    limit: int,
    ordered: bool,
) -> Outcomes[In, T]:
    """Start `Agent.map`; raises the same errors."""
    _check(task, inputs, limit, dict(options))
    agent.check_open()

    def make(given: In) -> ThinkBuilder[T]:
        if not callable(task):
            return task.text(str(given))
        made = cast("object", task(given))
        if not isinstance(made, ThinkBuilder):
            if isinstance(made, Coroutine):
                made.close()  # it would warn that it was never awaited
            raise _NoTaskError(
                f"the function of map() returned {made!r:.100}; return a task: think(…).text(…)"
            )
        return cast("ThinkBuilder[T]", made)

    def start(given: In) -> ThoughtStream[T]:
        try:
            return bound(make(given), starter).stream(**options)
        except (AgentClosed, _NoTaskError):
            raise
        except Exception as exc:  # what the function raises, and what this agent does not take
            return unstarted(exc, agent=agent.setup.name, cwd=agent.setup.cwd)

    return Outcomes(
        start,
        inputs,
        limit=limit,
        ordered=ordered,
        owner=agent.host.owner,
        tasks=agent.host.tasks,
    )


class _NoTaskError(Exception):
    """The function of a map cannot be used: with another input it would be the same."""


def _check(task: object, inputs: object, limit: int, options: dict[str, Any]) -> None:
    if not isinstance(task, ThinkBuilder) and not callable(task):
        raise TypeError(
            f"map({task!r:.100}): give a task, such as thinkwell.think(Model).text(…), or a function of an "
            "input that returns one"
        )
    if isinstance(inputs, str | bytes):
        raise TypeError(f"map(inputs={inputs!r:.60}): a text is one input; give a list: [{inputs!r:.60}]")
    check_count("limit", limit)
    if limit < 1:
        raise ValueError("map(limit=0): let at least one run go on at a time")
    for name in options:
        if name not in RunOptions.__annotations__:
            from difflib import get_close_matches  # loaded where something is wrong, and only there

            near = get_close_matches(name, ["limit", "ordered", *RunOptions.__annotations__], n=1, cutoff=0.5)
            raise TypeError(f"map() has no option {name!r}{f'; do you mean {near[0]!r}?' if near else ''}")
    Options(include=ev.included(options.pop("include", "default")), **options)  # wrong ones are wrong for all


def unstarted(error: Exception, *, agent: str, cwd: str) -> ThoughtStream[Any]:
    """Return the stream of a run that could not be started.

    Args:
        error: Why.
        agent: The name of the agent that should have run it.
        cwd: The folder that it would have worked in.
    """
    run = _Unstarted()
    log = RunLog(agent=agent, cwd=cwd)
    outcome: Settlement[Any] = Settlement(run.id)
    outcome.fail(error)
    log.add(ev.PhaseChanged, phase="failed")
    log.end(error)
    return ThoughtStream(log, ThoughtResult(outcome), run)


class _Unstarted:
    """What a stream may ask of such a run: nothing is left to be done."""

    session_id = recording = None
    live = foreign = False
    late = ()

    def __init__(self) -> None:
        self.id: Final = f"unstarted-{next(_unstarted_numbers)}"

    def answer(self, question_id: str, answer: Answer, by: str) -> NoReturn:
        """Refuse an answer: there is no question."""
        raise QuestionNotOpen(question_id)

    def attach(self, listener: object) -> None:
        """Attach nothing: it would hear nothing."""

    async def steer(self, text: str, otherwise: object) -> NoReturn:
        """Refuse a message."""
        raise RunEnded(self.id)

    def cancel(self) -> None:
        """Do nothing."""

    kill = cancel

    async def wait(self) -> None:
        """Wait for nothing."""
        await checkpoint()
