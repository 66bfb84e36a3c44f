"""The agents that take over where another fails."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar, cast

import anyio
from msgspec import Struct

from thinkwell import events as ev
from thinkwell._core.agent.opening import Opening
from thinkwell.agents import AgentProfile
from thinkwell.errors import (
    AgentError,
    AgentExited,
    AgentNotFound,
    AgentReported,
    AgentStartFailed,
    CapabilityMissing,
    LoginFailed,
    LoginRequired,
    Overloaded,
    QuotaExhausted,
    ThinkwellError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from thinkwell._core.agent.opening import Hold
    from thinkwell._core.agent.run_handle import RunHandle
    from thinkwell._core.log.observers import RunObserver
    from thinkwell._core.task.builder import Options, Spec

T = TypeVar("T")

REASON: Final = 500
"""Characters of an error in the events about it: an agent may write any number."""

ANOTHER_MAY_HELP: Final[tuple[type[AgentError], ...]] = (
    QuotaExhausted,
    Overloaded,
    LoginRequired,
    LoginFailed,
    AgentNotFound,
    AgentStartFailed,
    AgentExited,
    CapabilityMissing,
)
"""The errors after which the next agent gets the task."""


def another_may_help(error: Exception, session: str | None) -> bool:
    """Return whether the next agent gets the task. Not where the agent was ended on purpose.

    Args:
        error: The error.
        session: The session of the agent that failed; ``None``: it opened none.
    """
    if session is None and isinstance(error, AgentReported):
        return True
    return isinstance(error, ANOTHER_MAY_HELP) and not ended_on_purpose(error)


def ended_on_purpose(error: Exception) -> bool:
    """Return whether thinkwell has ended the agent."""
    return isinstance(error, AgentExited) and bool(error.ended_because)


class Beginner(Protocol):
    """Starts one try of a task."""

    def begin(self, spec: Spec[T], options: Options, observer: RunObserver, /) -> RunHandle[T]:
        """Start a run, of which an observer learns what happens."""
        ...


class OpenedSpare(Struct, frozen=True, kw_only=True):
    """An agent that was opened to take over."""

    starter: Beginner
    alive: Callable[[], bool]
    close: Callable[[], Awaitable[None]]
    open_questions: Callable[[], int]


class Spare:
    """An agent that can take over.

    Args:
        opening: Opens it.
        opened: Returns what is needed of the agent that was opened.
    """

    def __init__(self, opening: Opening[Any], opened: Callable[[Any], OpenedSpare]) -> None:
        self.name: str = opening.name
        self.opening: Opening[Any] = opening
        self._opened = opened
        self._used = False

    async def open(self) -> OpenedSpare:
        """Open it.

        Raises:
            AgentError: It cannot be opened.
        """
        if self._used and not self.opening.again:
            raise AgentStartFailed(self.name, "its transport was used before, and opens only once")
        self._used = True
        return self._opened(await Opening(self.name, self.opening.make).start())


class Fallback(Struct, frozen=True, kw_only=True):
    """The agents that take over, in order."""

    spares: tuple[Spare, ...] = ()
    after_effects: bool = False
    """Whether they do even if the agent before may have changed something."""


class Spares:
    """The agents that a block has opened beside its own: each when it is first needed, until the block ends.

    Args:
        itself: The block's own agent, to be started again.
        named: Returns those that a run names.
    """

    def __init__(self, itself: Spare, named: Callable[[Sequence[object], bool], Fallback]) -> None:
        self.itself = itself
        self.fallback: Fallback = Fallback()
        """Those that take over in each run that names no others."""
        self.named = named
        self._opened: dict[Spare, OpenedSpare] = {}
        self._locks: dict[Spare, anyio.Lock] = {}
        self._stack = AsyncExitStack()

    async def get(self, spare: Spare) -> OpenedSpare:
        """Return an agent, which is opened where it is not; one that has ended is opened again.

        Raises:
            AgentError: It cannot be opened.
        """
        async with self._locks.setdefault(spare, anyio.Lock()):
            opened = self._opened.get(spare)
            if opened is not None and not opened.alive() and spare.opening.again:
                del self._opened[spare]
                await opened.close()
                opened = None
            if opened is None:
                opened = self._opened[spare] = await spare.open()
                self._stack.push_async_callback(opened.close)
            return opened

    @property
    def open_questions(self) -> int:
        """The number of their open questions."""
        return sum(opened.open_questions() for opened in self._opened.values())

    async def close(self) -> None:
        """Close all of them."""
        await self._stack.aclose()


class SpareNames:
    """Turns what a user names into agents that can take over, each once in a block.

    Args:
        agent: The name of the block's own agent.
        opens: Opens a known agent, or that of a profile, with the options of the block.
        opened: Returns what is needed of an agent that was opened.
    """

    def __init__(
        self,
        agent: str,
        opens: Callable[[str | AgentProfile], Opening[Any]],
        opened: Callable[[Any], OpenedSpare],
    ) -> None:
        self._agent = agent
        self._opens = opens
        self._opened = opened
        self._known: dict[object, tuple[object, Spare]] = {}

    def fallback(self, agents: Sequence[object] | None, after_effects: bool) -> Fallback:
        """Return the agents of a fallback.

        Raises:
            AgentNotFound: One is unknown.
            TypeError: One is no agent.
            ValueError: There are none, or one is named twice, or is the block's own.
        """
        if agents is None:
            return Fallback()
        if isinstance(agents, str | AgentProfile | Opening):
            raise TypeError(f"fallback={agents!r:.100}: give a list of agents")
        spares = tuple(map(self._spare, agents))
        if not spares:
            raise ValueError('fallback: no agent is named; name one, such as "codex", or leave it out')
        if len(set(spares)) < len(spares):
            raise ValueError("fallback: an agent is named twice; each gets the task once")
        return Fallback(spares=spares, after_effects=after_effects)

    def _spare(self, agent: object) -> Spare:
        key = agent if isinstance(agent, str) else id(agent)
        if key not in self._known:
            self._known[key] = (agent, self._made(agent))  # as long as it is there, no other has its id
        return self._known[key][1]

    def _made(self, agent: object) -> Spare:
        if isinstance(agent, Opening):
            return Spare(cast("Opening[object]", agent), self._opened)
        if not isinstance(agent, str | AgentProfile):
            raise TypeError(
                f"fallback: {agent!r:.100} is no agent; give a name, a profile, or an open_agent(…)"
            )
        opening = self._opens(agent)
        if opening.name == self._agent:
            raise ValueError(
                f"fallback: {opening.name} is the agent itself; to let it try again give run(retry=Retry()), "
                "and for another account of it an open_agent(…) with its options"
            )
        return Spare(opening, self._opened)


def failed_try(
    error: Exception, agent: str, next_agent: str, then: Literal["retry", "fallback"], delay: float = 0.0
) -> tuple[ev.TryFailed, ev.Notice]:
    """Return the events of a try that has failed: one for programs, and one that displays show."""
    kind, reason = type(error).__name__, str(error).partition("\n")[0][:REASON]
    follows = f"{next_agent} takes over" if then == "fallback" else f"it tries again in {delay:.1f} s"
    return (
        ev.TryFailed(agent=agent, error=kind, reason=reason, next_agent=next_agent, then=then, delay=delay),
        ev.Notice(severity="warning", title=f"{agent}: {kind}; {follows}", description=reason),
    )


def add_tries(error: Exception, failed: Sequence[ev.TryFailed]) -> None:
    """Add to the error that finally comes the tries before."""
    if failed and isinstance(error, ThinkwellError):
        error.tries = tuple(failed)
        for each in failed:
            error.add_note(f"Before that, agent {each.agent} failed: {each.error}: {each.reason}")


@asynccontextmanager
async def first_to_start(
    opening: Opening[T],
    fallback: Fallback,
    told: Callable[[T, Fallback, Sequence[ev.ThoughtEvent]], None],
    hold: Hold,
) -> AsyncGenerator[T]:
    """Open an agent, or if it does not start, the first of a fallback that does.

    Args:
        opening: Opens the agent.
        fallback: The others.
        told: Called with the agent that was opened, what is left of the fallback, and what happened before.
        hold: What holds it.

    Raises:
        AgentError: None can be opened.
    """
    news: list[ev.ThoughtEvent] = []
    left = list(fallback.spares)
    opened: list[T] = []
    async with AsyncExitStack() as stack:
        while not opened:
            try:
                opened.append(await stack.enter_async_context(opening.make(hold)))
            except AgentError as exc:
                if not left or not another_may_help(exc, None):
                    add_tries(exc, [event for event in news if isinstance(event, ev.TryFailed)])
                    raise
                spare = left.pop(0)
                news += failed_try(exc, opening.name, spare.name, "fallback")
                opening = spare.opening
        told(opened[0], Fallback(spares=tuple(left), after_effects=fallback.after_effects), news)
        yield opened[0]
