"""A router's agent: one that was passed open, or one that is opened on demand."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import anyio

from thinkwell import Agent
from thinkwell._conversations.checks import check_context
from thinkwell._conversations.errors import RouterClosed
from thinkwell._core.agent.launch import launch_told_to

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from anyio.abc import TaskGroup

    from thinkwell.events import PhaseChanged

AgentFactory: TypeAlias = "Callable[[], AbstractAsyncContextManager[Agent]]"
"""Opens an agent: ``lambda: open_agent("claude")``."""

logger = logging.getLogger("thinkwell")


class KeptAgent:
    """An agent, as long as it has a session in use."""

    def __init__(self, agent: Agent, life: _Life | None, *, fresh: bool) -> None:
        self.agent = agent
        self.fresh = fresh
        """Whether it was opened for this session."""
        self._life = life

    @property
    def replaced(self) -> bool:
        """Whether it is known to be dead: the next caller that needs an agent gets another."""
        return self._life is not None and self._life.dead

    def died(self) -> None:
        """Mark it as dead. The holders of its sessions are notified. A given agent is never replaced."""
        if self._life is not None:
            self._life.end()


class AgentKeeper:
    """Keeps one agent for all conversations.

    Args:
        agent: An open agent, or a function that opens one.

    Raises:
        TypeError: It is neither.
    """

    def __init__(self, agent: Agent | AgentFactory) -> None:
        given: object = agent  # the result of `open_agent` may be callable, too
        if not isinstance(given, Agent) and (
            not callable(given) or isinstance(given, AbstractAsyncContextManager)
        ):
            raise TypeError(
                f"MessageRouter({agent!r:.100}): give an agent that is open, or a function that opens one: "
                'MessageRouter(lambda: open_agent("claude"))'
            )
        self._agent = agent
        self._life: _Life | None = None
        self._lives: set[_Life] = set()
        self._tasks: TaskGroup | None = None
        self._leaving = False
        self.failure: Exception | None = None
        """The exception of closing the last agent."""

    @asynccontextmanager
    async def keep(self) -> AsyncGenerator[None]:
        """Keep agents during a block. They are closed at its end."""
        async with anyio.create_task_group() as self._tasks:
            try:
                yield
            finally:
                self._leaving = True
                for life in tuple(self._lives):
                    life.leave()

    @asynccontextmanager
    async def agent(
        self, on_death: Callable[[], None], on_phase: Callable[[PhaseChanged], None]
    ) -> AsyncGenerator[KeptAgent]:
        """Return the agent during the block; it is opened if there is none.

        Args:
            on_death: Called when it is marked as dead elsewhere.
            on_phase: Called with each phase of its launch, if the caller waits for that.

        Raises:
            Exception: It could not be opened.
        """
        if isinstance(self._agent, Agent):
            yield KeptAgent(self._agent, None, fresh=False)
            return
        life, fresh = self._life, False
        if life is None or life.dead:
            assert self._tasks is not None
            life, fresh = _Life(self._agent, self._closed), True
            self._life = life
            self._lives.add(life)
            self._tasks.start_soon(life.main)
        async with life.used(on_death, on_phase) as agent:
            yield KeptAgent(agent, life, fresh=fresh)

    def _closed(self, life: _Life, error: Exception | None) -> None:
        self._lives.discard(life)
        if error is None:
            return
        if self._leaving:
            self.failure = error
        about = "An agent could not be closed: %s: %s"
        logger.warning(about, type(error).__name__, error, exc_info=error)


class _Life:
    """An agent from its opening to its close, in a separate task, as context managers require."""

    def __init__(self, factory: AgentFactory, closed: Callable[[_Life, Exception | None], None]) -> None:
        self.dead = False
        """Whether it is no longer given out."""
        self._factory = factory
        self._closed = closed
        self._agent: Agent | None = None
        self._error: Exception | None = None
        self._opened = anyio.Event()
        """Set when it is open, or never will be."""
        self._needless = anyio.Event()
        self._users: list[tuple[Callable[[], None], Callable[[PhaseChanged], None]]] = []
        """The callbacks of those who need it: for its death, and for the phases of its launch."""
        self._phase: PhaseChanged | None = None
        """The phase of its launch."""
        self._scope = anyio.CancelScope(shield=True)

    async def main(self) -> None:
        """Open it, wait until it is no longer needed, and close it."""
        error = None
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    with launch_told_to(self._reach):
                        opening = check_context("agent", self._factory(), 'lambda: open_agent("claude")')
                        self._agent = await stack.enter_async_context(opening)
                    self._opened.set()
                    await self._needless.wait()
        except Exception as exc:
            error = exc
            if self._agent is None:
                self._error, error = exc, None
        finally:
            self.dead = True
            self._opened.set()
            self._closed(self, error)

    def _reach(self, phase: PhaseChanged) -> None:
        self._phase = phase
        for _, on_phase in tuple(self._users):
            on_phase(phase)

    @asynccontextmanager
    async def used(
        self, on_death: Callable[[], None], on_phase: Callable[[PhaseChanged], None]
    ) -> AsyncGenerator[Agent]:
        """Wait until it is open, and need it during a block."""
        if self._phase is not None and not self._opened.is_set():
            on_phase(self._phase)
        user = (on_death, on_phase)
        self._users.append(user)
        try:
            await self._opened.wait()
            if self._error is not None:
                raise self._error.with_traceback(None)
            if self._agent is None:
                raise RouterClosed  # pragma: no cover - waiting tasks are cancelled first
            yield self._agent
        finally:
            self._users.remove(user)
            self._look()

    def end(self) -> None:
        """Stop giving it out, and notify those who have it."""
        self.dead = True
        for on_death, _ in tuple(self._users):
            on_death()
        self._look()

    def leave(self) -> None:
        """Close it: it has no session in use. From now on it can be cancelled from outside."""
        self._needless.set()
        if self._opened.is_set():
            self._scope.shield = False
        else:
            self._scope.cancel()

    def _look(self) -> None:
        if self.dead and not self._users:
            self._needless.set()
