"""A conversation: a session of an agent, and whose turn it is.

The session is opened, kept and closed by one task, because contexts want that. A caller with something to say
asks for a `Turn` and gets a place in the queue, at once; the task lends the session to one turn after the
other. A turn is given back in a ``finally`` of its holder, so that nothing can keep it forever.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from thinkwell import Injected
from thinkwell._conversations.checks import check_context
from thinkwell._conversations.errors import ConversationBusy, RouterClosed
from thinkwell._core.agent import login
from thinkwell.errors import AgentClosed, AgentExited, SessionUnusable, ThinkwellError, ThoughtCancelled
from thinkwell.events import PhaseChanged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractAsyncContextManager

    from thinkwell import Agent, Session, ThoughtStream
    from thinkwell._conversations.agent_keeper import AgentKeeper, KeptAgent

__all__ = ("Conversation", "SessionFactory", "Start", "Turn")

T = TypeVar("T")

SessionFactory: TypeAlias = "Callable[[Agent, str], AbstractAsyncContextManager[Session]]"
"""Opens a session for a user: ``lambda agent, user_id: agent.session(cwd=…)``."""

Start: TypeAlias = "Callable[[Session, str], ThoughtStream[T]]"
"""Starts a run with a prompt. It has to keep `TurnStarted`."""

OnPhase: TypeAlias = "Callable[[PhaseChanged], Awaitable[None]]"
"""Told what a turn waits for before there is a run."""

BUSY: Final = "another run of the conversation goes first"
"""What a turn waits for that is not the first."""

LOST: Final = (AgentExited, AgentClosed, SessionUnusable)
"""By what a run fails when there can be no other in its session."""

logger = logging.getLogger("thinkwell")


class Conversation:
    """The turns of one user, one after the other, and the session that they are in.

    Args:
        user_id: Whose it is.
        keeper: Who has the agent.
        open_session: Opens a session.
        idle_after: Seconds without a turn after which the session is closed.
        max_waiting: How many turns may wait.
        ended: Called when there is no session any more and nothing waits: the conversation is over.
    """

    def __init__(
        self,
        user_id: str,
        keeper: AgentKeeper,
        open_session: SessionFactory,
        *,
        idle_after: float | None,
        max_waiting: int,
        ended: Callable[[], None],
    ) -> None:
        self.user_id: Final = user_id
        self.closing = False
        """Whether the router is left."""
        self._keeper = keeper
        self._open_session = open_session
        self._idle_after = idle_after
        self._max_waiting = max_waiting
        self._ended = ended
        self._queue: deque[Turn | None] = deque()
        """Turns that wait; ``None``: those behind it want another session."""
        self._turn: Turn | None = None
        """Whose turn it is."""
        self._opening = False
        self._lost = False
        """Whether the last session was lost, and that was not reported."""
        self._news = anyio.Event()
        self._scope = anyio.CancelScope(shield=True)
        self._steering = anyio.Lock()

    # What others ask

    def ask(self) -> Turn:
        """Return a turn, which has its place in the queue from now on.

        Raises:
            ConversationBusy: Too many wait.
        """
        waiting = len(self._waiting())
        busy = self._turn is not None and not self._turn.is_back
        free = 0 if busy else 1  # the first one does not have to wait
        if waiting >= self._max_waiting + free:
            raise ConversationBusy(self.user_id, waiting - free)
        turn = Turn(self)
        if waiting >= free:
            turn.reach(PhaseChanged(phase="starting", detail=BUSY))
        self._queue.append(turn)
        self.wake()
        return turn

    def reset(self) -> None:
        """Give another session to the turns that are asked for from now on."""
        if not self._queue or self._queue[-1] is not None:
            self._queue.append(None)
            self.wake()

    def stop(self) -> bool:
        """Stop the turn that runs, or is about to. Return whether there is one."""
        turns = [turn for turn in (self._turn, *self._waiting()) if turn is not None and not turn.is_back]
        return bool(turns) and turns[0].stop()

    def leave(self) -> None:
        """Stop the turn that runs, refuse the others, and close the session.

        From now on it can be cancelled from outside.
        """
        self.closing = True
        if self._opening:
            self._scope.cancel()
        else:
            self._scope.shield = False
        if self._turn is not None:
            self._turn.stop()
        self._refuse()
        self.wake()

    # What turns ask

    def wake(self) -> None:
        """Let the task look at what has changed."""
        self._news.set()

    async def steer(self, turn: Turn, prompt: Callable[[], Awaitable[str]]) -> bool:
        """Have the agent read what a turn says in the one that runs, if nothing else comes between them.

        Returns:
            Whether it does. Else nothing has come of it, and the turn keeps its place.
        """
        async with self._steering:  # in the order in which they were asked for
            running = self._turn
            if running is None or running.stream is None or not self._queue or self._queue[0] is not turn:
                return False
            turn.text = await prompt()
            try:
                return await running.stream.steer(turn.text) == Injected()
            except ThinkwellError:  # the agent cannot be steered, or it or the run has ended
                return False

    def give_up(self, turn: Turn) -> None:
        """Know that a waiting caller has left."""
        if turn in self._queue:
            self._queue.remove(turn)

    # The task

    async def main(self) -> None:
        """Open sessions as they are needed, and lend them. Never raises."""
        login.shown.set(self._authenticating)
        try:
            with self._scope:
                while await self._wanted():
                    await self._converse()
        finally:
            self._ended()
            self._refuse()

    def _refuse(self) -> None:
        for turn in (self._turn, *self._waiting()):
            if turn is not None:
                turn.fail(RouterClosed())

    async def _wanted(self) -> bool:
        """Return whether a session is needed. Where one was lost, it is remembered as long as one is kept."""
        while not self.closing:
            if self._turn is not None:
                return True
            if self._queue:
                self._turn = self._queue.popleft()
                self._lost = self._lost and self._turn is not None
            elif not self._lost:
                return False
            else:
                with anyio.move_on_after(self._idle_after) as idle:
                    await self._until(lambda: bool(self._queue) or self.closing)
                self._lost = not idle.cancelled_caught
        return False

    async def _converse(self) -> None:
        """Open a session, lend it until another is needed or none is wanted, and close it."""
        opened, kept = False, None
        self._opening = True
        try:
            async with (
                self._keeper.agent(self.wake, self._reach) as kept,
                self._opened(kept.agent) as session,
            ):
                opened, self._opening = True, False
                await self._lend(session, kept)
        except Exception as exc:
            if opened:
                about = "The session of %.100r could not be closed: %s: %s"
                logger.warning(about, self.user_id, type(exc).__name__, exc, exc_info=exc)
            elif not self._is_replaced(exc, kept):
                await self._tell(exc)
        finally:
            self._opening = False

    def _opened(self, agent: Agent) -> AbstractAsyncContextManager[Session]:
        self._reach(PhaseChanged(phase="starting"))
        opening = self._open_session(agent, self.user_id)
        return check_context("session", opening, "lambda agent, user_id: agent.session(cwd=…)")

    def _reach(self, phase: PhaseChanged) -> None:
        if self._opening:  # else it is of others, whose tasks have begun in this one's context
            assert self._turn is not None  # for which a session is opened
            self._turn.reach(phase)

    @contextmanager
    def _authenticating(self) -> Generator[None]:
        self._reach(PhaseChanged(phase="authenticating"))
        yield
        self._reach(PhaseChanged(phase="starting"))

    def _is_replaced(self, error: Exception, kept: KeptAgent | None) -> bool:
        """Return whether there was no session because the agent has been dead for some time, unnoticed."""
        if kept is None or not isinstance(error, AgentExited):
            return False
        kept.died()
        return kept.replaced and not kept.fresh

    async def _tell(self, error: Exception) -> None:
        """Tell the turn that there is no session for it, and wait until it has gone."""
        turn = self._turn
        assert turn is not None
        self._opening = False
        turn.fail(error)
        await self._until(turn.is_through)
        self._turn = None

    async def _lend(self, session: Session, kept: KeptAgent) -> None:
        """Lend the session to turns until another is needed, or none is wanted."""
        fresh = True
        while (turn := self._turn) is not None:
            if not turn.is_back:  # else its caller has left meanwhile
                turn.lend(session, kept.agent, fresh=fresh, anew=self._lost)
                await self._until(turn.is_through)
                fresh, self._lost = False, turn.loss is not None
                if isinstance(turn.loss, AgentExited):
                    kept.died()
            if self.closing or not turn.is_back:
                return  # it wants another session
            self._turn = None
            await self._next(kept)

    async def _next(self, kept: KeptAgent) -> None:
        """Wait for the next turn in the same session. There is none if the session is to be closed."""
        with anyio.move_on_after(self._idle_after):
            await self._until(lambda: bool(self._queue) or kept.replaced or self.closing)
        if kept.replaced:
            self._lost = True
        elif self._queue and not self.closing:
            self._turn = self._queue.popleft()

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._news = anyio.Event()
            await self._news.wait()

    def _waiting(self) -> list[Turn]:
        return [turn for turn in self._queue if turn is not None]


class Turn:
    """One turn of a conversation. Its holder must `end` it, whatever happens."""

    def __init__(self, conversation: Conversation) -> None:
        self.agent_id = ""
        """What the agent was asked for as."""
        self.anew = False
        """Whether the agent does not remember what was said, and should."""
        self.stream: ThoughtStream[object] | None = None
        """The run, once it has started."""
        self.text: str | None = None
        """Its prompt, once that is made."""
        self.is_back = False
        """Whether it was ended."""
        self.wants_other = False
        """Whether it waits for another session than the one that it had."""
        self.loss: Exception | None = None
        """Why there can be no other turn in its session."""
        self._conversation = conversation
        self._session: Session | None = None
        self._fresh = True
        """Whether the session had no turn before."""
        self._error: Exception | None = None
        self._settled = False
        """Whether there is a session, or will not be one."""
        self._phases: deque[PhaseChanged] = deque()
        """What it waits for, as far as that was not reported."""
        self._news = anyio.Event()
        self._scope = anyio.CancelScope()
        """Around all that comes before the run."""

    # Its holder

    async def steer(self, prompt: Callable[[], Awaitable[str]]) -> bool:
        """Have the agent read the prompt in the turn that runs. If it does, this turn has nothing more to do.

        Args:
            prompt: Makes the prompt, where the agent can be told.

        Returns:
            Whether the agent does; else the turn can begin.
        """
        return await self._conversation.steer(self, prompt)

    async def begin(
        self, prompt: Callable[[], Awaitable[str]], start: Start[T], on_phase: OnPhase | None = None
    ) -> ThoughtStream[T]:
        """Wait for the session, and start the run.

        Args:
            prompt: Makes the prompt, when the session is there.
            start: Starts the run.
            on_phase: Told what it waits for.

        Raises:
            RouterClosed: The router was left.
            ThoughtCancelled: The turn was stopped before there was a run.
            Exception: There is no agent, or no session.
        """
        stream: ThoughtStream[T] | None = None
        with self._scope:
            await self._ready(on_phase)
            text = self.text or await prompt()
            while (stream := await self._started(start, text)) is None:
                await self._ready(on_phase)
        if self.closing:
            raise RouterClosed
        if stream is None:
            raise ThoughtCancelled
        return stream

    @property
    def closing(self) -> bool:
        """Whether the router is left."""
        return self._conversation.closing

    def is_through(self) -> bool:
        """Return whether the session need not be lent any longer."""
        return self.is_back or self.wants_other or self.closing

    async def end(self) -> None:
        """Cancel the run where it has not ended, wait for its end, and give the turn back."""
        try:
            if self.stream is not None:
                self.stream.cancel()
                with anyio.CancelScope(shield=True):  # bounded by the limits of cancelling
                    await self.stream.wait()
                self._look_for_loss(self.stream)
        finally:
            self.is_back = True
            self._conversation.give_up(self)
            self._conversation.wake()

    def stop(self) -> bool:
        """End it before its time. Return whether it has not ended yet."""
        if self.stream is None:
            self._scope.cancel()
            return True
        if self.stream.result.done():
            return False
        self.stream.cancel()
        return True

    # The conversation

    def lend(self, session: Session, agent: Agent, *, fresh: bool, anew: bool) -> None:
        """Give it the session."""
        self.agent_id = agent.name
        self.anew = anew
        self.loss, self.wants_other = None, False
        self._session, self._fresh = session, fresh
        self._settle()

    def fail(self, error: Exception) -> None:
        """Know that there will be no session."""
        self._error, self.wants_other = error, False
        self._settle()

    def reach(self, phase: PhaseChanged) -> None:
        """Know what it waits for."""
        self._phases.append(phase)
        self._news.set()

    def _settle(self) -> None:
        self._settled = True
        self._news.set()

    async def _ready(self, on_phase: OnPhase | None) -> None:
        while self._phases or not self._settled:
            if not self._phases:
                self._news = anyio.Event()
                await self._news.wait()
            elif on_phase is None:
                self._phases.clear()
            else:
                await on_phase(self._phases.popleft())
        await checkpoint()
        if self._error is not None:
            raise self._error

    async def _started(self, start: Start[T], text: str) -> ThoughtStream[T] | None:
        """Start the run; or ask for another session, where nothing can be done in this one."""
        assert self._session is not None
        stream = start(self._session, text)
        self.stream = stream
        if self._fresh:
            return stream  # if anything is wrong with it, then with any other too
        async for _ in stream.events(include={"turn_start"}):
            break
        if stream.view.turns or not self._look_for_loss(stream):
            return stream
        self.stream, self._settled = None, False
        self.wants_other = True
        self._conversation.wake()
        return None

    def _look_for_loss(self, stream: ThoughtStream[object]) -> bool:
        error = stream.view.error
        if isinstance(error, LOST):
            self.loss = error
        return self.loss is not None
