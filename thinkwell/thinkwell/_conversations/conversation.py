"""A conversation: a session of an agent, and the order of its turns.

One task opens, keeps and closes the session, because context managers require that. A caller asks for a
`Turn` and gets a place in the queue, at once; the task lends the session to one turn after the other. The
holder of a turn gives it back in a ``finally``, so that nothing can keep it forever.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from thinkwell import Injected, Refused
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

T = TypeVar("T")

SessionFactory: TypeAlias = "Callable[[Agent, str], AbstractAsyncContextManager[Session]]"
"""Opens a session for a user: ``lambda agent, user_id: agent.session(cwd=…)``."""

Start: TypeAlias = "Callable[[Session, str], ThoughtStream[T]]"
"""Starts a run with a prompt. It must keep `TurnStarted`."""

Taken: TypeAlias = Literal["taken", "unclear"]
"""Whether an agent that was told something while it works reads that, or has not said so."""

OnPhase: TypeAlias = "Callable[[PhaseChanged], Awaitable[None]]"
"""Called with the phase that a turn waits in before it has a run."""

BUSY: Final = "another run of the conversation goes first"
"""The phase of a turn that is not the first."""

LOST: Final = (AgentExited, AgentClosed, SessionUnusable)
"""Errors of a run after which its session can have no other."""

logger = logging.getLogger("thinkwell")


class Conversation:
    """The turns of one user, one after the other, and their session.

    Args:
        user_id: The user.
        keeper: Keeps the agent.
        open_session: Opens a session.
        idle_after: Seconds without a turn after which the session is closed.
        max_waiting: Most waiting turns.
        ended: Called when there is neither a session nor a waiting turn: the conversation is over.
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
        """Whether the router is closing."""
        self._keeper = keeper
        self._open_session = open_session
        self._idle_after = idle_after
        self._max_waiting = max_waiting
        self._ended = ended
        self._queue: deque[Turn | None] = deque()
        """Waiting turns; ``None``: those after it need another session."""
        self._turn: Turn | None = None
        """The current turn."""
        self._opening = False
        self._lost = False
        """Whether the last session was lost, and that was not reported."""
        self._news = anyio.Event()
        self._scope = anyio.CancelScope(shield=True)
        self._steering = anyio.Lock()

    # Called from outside

    def ask(self) -> Turn:
        """Return a turn, which has its place in the queue from now on.

        Raises:
            ConversationBusy: Too many turns wait.
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
        """Give later turns another session."""
        if not self._queue or self._queue[-1] is not None:
            self._queue.append(None)
            self.wake()

    def stop(self) -> bool:
        """Stop the current turn, or the one about to begin. Return whether there is one."""
        turns = [turn for turn in (self._turn, *self._waiting()) if turn is not None and not turn.is_back]
        return bool(turns) and turns[0].stop()

    def leave(self) -> None:
        """Stop the current turn, refuse the others, and close the session.

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

    # Called by turns

    def wake(self) -> None:
        """Let the task check what has changed."""
        self._news.set()

    async def steer(self, turn: Turn, prompt: Callable[[], Awaitable[str]]) -> Taken | None:
        """Have the agent read what a turn says in the one that runs, if nothing else comes between them.

        Returns:
            Whether the agent reads it; ``None``: no, and the turn keeps its place.
        """
        async with self._steering:  # in the order in which they were asked for
            running = self._turn
            if running is None or running.stream is None or not self._queue or self._queue[0] is not turn:
                return None
            turn.text = await prompt()
            try:
                came_to = await running.stream.steer(turn.text)
            except ThinkwellError:  # the agent cannot be steered, or it or the run has ended
                return None
            if came_to == Injected():
                return "taken"
            return "unclear" if isinstance(came_to, Refused) and came_to.unclear else None

    def give_up(self, turn: Turn) -> None:
        """Remove a waiting turn whose caller has left."""
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
        """Return whether a session is needed. A lost one is remembered as long as one is kept."""
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
        """Open a session, lend it until another is needed or none is, and close it."""
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
        if self._opening:  # otherwise it belongs to others, whose tasks began in this context
            assert self._turn is not None  # the session is opened for it
            self._turn.reach(phase)

    @contextmanager
    def _authenticating(self) -> Generator[None]:
        self._reach(PhaseChanged(phase="authenticating"))
        yield
        self._reach(PhaseChanged(phase="starting"))

    def _is_replaced(self, error: Exception, kept: KeptAgent | None) -> bool:
        """Return whether the session could not be opened because the agent died earlier, unnoticed."""
        if kept is None or not isinstance(error, AgentExited):
            return False
        kept.died()
        return kept.replaced and not kept.fresh

    async def _tell(self, error: Exception) -> None:
        """Report to the turn that it has no session, and wait until its caller has left."""
        turn = self._turn
        assert turn is not None
        self._opening = False
        turn.fail(error)
        await self._until(turn.is_through)
        self._turn = None

    async def _lend(self, session: Session, kept: KeptAgent) -> None:
        """Lend the session to turns until another is needed, or none is."""
        fresh = True
        while (turn := self._turn) is not None:
            if not turn.is_back:  # otherwise its caller has left
                turn.lend(session, kept.agent, fresh=fresh, anew=self._lost)
                await self._until(turn.is_through)
                fresh, self._lost = False, turn.loss is not None
                if isinstance(turn.loss, AgentExited):
                    kept.died()
            if self.closing or not turn.is_back:
                return  # it needs another session
            self._turn = None
            await self._next(kept)

    async def _next(self, kept: KeptAgent) -> None:
        """Wait for the next turn in the same session. There is none if the session must be closed."""
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
        """The agent's name."""
        self.anew = False
        """Whether the agent should remember the conversation, and does not."""
        self.stream: ThoughtStream[object] | None = None
        """The run, once it has started."""
        self.text: str | None = None
        """Its prompt, once that is made."""
        self.is_back = False
        """Whether it was ended."""
        self.wants_other = False
        """Whether it waits for another session than the one that it had."""
        self.loss: Exception | None = None
        """Why its session can have no other turn."""
        self._conversation = conversation
        self._session: Session | None = None
        self._fresh = True
        """Whether the session had no turn before."""
        self._error: Exception | None = None
        self._settled = False
        """Set when it has a session, or never will."""
        self._phases: deque[PhaseChanged] = deque()
        """The phases of its wait that were not yet reported."""
        self._news = anyio.Event()
        self._scope = anyio.CancelScope()
        """Around everything before the run."""

    # Called by its holder

    async def steer(self, prompt: Callable[[], Awaitable[str]]) -> Taken | None:
        """Have the agent read the prompt in the turn that runs. If it does, this turn has nothing more to do.

        Args:
            prompt: Makes the prompt, where the agent can be told.

        Returns:
            Whether the agent reads it; ``None``: no, and the turn can begin.
        """
        return await self._conversation.steer(self, prompt)

    async def begin(
        self, prompt: Callable[[], Awaitable[str]], start: Start[T], on_phase: OnPhase | None = None
    ) -> ThoughtStream[T]:
        """Wait for the session, and start the run.

        Args:
            prompt: Makes the prompt, once there is a session.
            start: Starts the run.
            on_phase: Called with the phases of its wait.

        Raises:
            RouterClosed: The router was left.
            ThoughtCancelled: The turn was stopped before there was a run.
            Exception: The agent or the session could not be opened.
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
        """Whether the router is closing."""
        return self._conversation.closing

    def is_through(self) -> bool:
        """Return whether it no longer needs the session."""
        return self.is_back or self.wants_other or self.closing

    async def end(self) -> None:
        """Cancel the run if it has not ended, wait for its end, and give the turn back."""
        try:
            if self.stream is not None:
                await self.stream._end()
                self._look_for_loss(self.stream)
        finally:
            self.is_back = True
            self._conversation.give_up(self)
            self._conversation.wake()

    def stop(self) -> bool:
        """End it early. Return whether it had not ended yet."""
        if self.stream is None:
            self._scope.cancel()
            return True
        if self.stream.result.done():
            return False
        self.stream.cancel()
        return True

    # Called by the conversation

    def lend(self, session: Session, agent: Agent, *, fresh: bool, anew: bool) -> None:
        """Give it the session."""
        self.agent_id = agent.name
        self.anew = anew
        self.loss, self.wants_other = None, False
        self._session, self._fresh = session, fresh
        self._settle()

    def fail(self, error: Exception) -> None:
        """Record that it gets no session."""
        self._error, self.wants_other = error, False
        self._settle()

    def reach(self, phase: PhaseChanged) -> None:
        """Record the phase of its wait."""
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
        """Start the run; or ask for another session, if this one cannot be used."""
        assert self._session is not None
        stream = start(self._session, text)
        self.stream = stream
        if self._fresh:
            return stream  # another session would fail too
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
