"""The conversations of a router, by user, and the time for which they live."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio

from thinkwell._conversations.conversation import Conversation
from thinkwell._conversations.errors import RouterClosed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskGroup

    from thinkwell._conversations.agent_keeper import AgentKeeper
    from thinkwell._conversations.conversation import SessionFactory, Turn


class Conversations:
    """Begins conversations on demand, and forgets those that are over.

    Args:
        keeper: Keeps the agent.
        open_session: Opens a session for a user.
        idle_after: Seconds without a turn after which a session is closed.
        max_waiting: Most waiting turns of a user.
    """

    def __init__(
        self,
        keeper: AgentKeeper,
        open_session: SessionFactory,
        *,
        idle_after: float | None,
        max_waiting: int,
    ) -> None:
        self._keeper = keeper
        self._open_session = open_session
        self._idle_after = idle_after
        self._max_waiting = max_waiting
        self._known: dict[str, Conversation] = {}
        self._tasks: TaskGroup | None = None
        self._entered = False

    @property
    def user_ids(self) -> tuple[str, ...]:
        """The users with a conversation."""
        return tuple(self._known)

    @property
    def is_open(self) -> bool:
        """Whether turns are possible."""
        return self._tasks is not None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Have conversations during a block. An exception of the block is raised unchanged.

        Raises:
            RuntimeError: It was already opened once.
            Exception: The exception of closing the agent, if the block raised none.
        """
        if self._entered:
            raise RuntimeError("a router can be used only once; create another: async with MessageRouter(…)")
        self._entered = True
        raised: BaseException | None = None
        async with self._keeper.keep(), anyio.create_task_group() as self._tasks:
            try:
                yield
            except BaseException as exc:  # the group would wrap it
                raised = exc
            finally:
                self._tasks = None
                for conversation in tuple(self._known.values()):
                    conversation.leave()
        if raised is not None:
            raise raised
        if self._keeper.failure is not None:
            raise self._keeper.failure

    def ask(self, user_id: str, *, once: bool = False) -> Turn:
        """Return a turn, which has its place in the queue.

        Args:
            user_id: The user whose conversation it is.
            once: Whether a conversation that begins with it is closed after it.

        Raises:
            ConversationBusy: Too many turns wait.
            RouterClosed: The router is not open.
        """
        if self._tasks is None:
            raise RouterClosed
        conversation = self._known.get(user_id)
        if conversation is None:
            conversation = Conversation(
                user_id,
                self._keeper,
                self._open_session,
                idle_after=0.0 if once else self._idle_after,
                max_waiting=self._max_waiting,
                ended=partial(self._forget, user_id),
            )
            self._known[user_id] = conversation
            self._tasks.start_soon(conversation.main)
        return conversation.ask()

    def reset(self, user_id: str) -> None:
        """Give a user's later turns another session.

        Raises:
            RouterClosed: The router is not open.
        """
        if self._tasks is None:
            raise RouterClosed
        if user_id in self._known:
            self._known[user_id].reset()

    def stop(self, user_id: str) -> bool:
        """Stop a user's current turn, or the one about to begin. Return whether there is one."""
        return user_id in self._known and self._known[user_id].stop()

    def _forget(self, user_id: str) -> None:
        del self._known[user_id]
