"""A login at the agent's request: one for all runs that wait for it."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell.errors import LoginFailed
from thinkwell_acp import AcpError, ConnectionClosed, DecodeError, RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell_acp._tasks import BackgroundTasks


shown: Final[ContextVar[Callable[[], AbstractContextManager[object]]]] = ContextVar(
    "shown", default=nullcontext
)
"""The context manager of a task that waits for a login: it shows the phase in a run."""


class _Attempt:
    """One call of `authenticate`, and the tasks that wait for it."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.over = anyio.Event()
        self.waiting = 0
        self.error: AcpError | DecodeError | None = ConnectionClosed()


class SharedLogin:
    """Logs in by a method that was chosen beforehand.

    Args:
        agent: The agent's name.
        method: The id of the method; without one there is no login.
        tasks: Its tasks: it outlives the first caller if others wait for it too.
        authenticate: Lets the agent log in by a method.
    """

    def __init__(
        self,
        agent: str,
        method: str | None,
        tasks: BackgroundTasks,
        authenticate: Callable[[str], Awaitable[None]],
    ) -> None:
        self._agent = agent
        self.method = method
        self._tasks = tasks
        self._authenticate = authenticate
        self._attempt: _Attempt | None = None

    @property
    def running(self) -> bool:
        """Whether a login is in progress."""
        return self._attempt is not None

    async def log_in(self) -> bool:
        """Log in, or wait for the login in progress; return whether there is a method for it.

        Raises:
            LoginFailed: The agent refused.
            AcpError: The connection has ended.
        """
        if self.method is None:
            return False
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt()
            over = partial(self._over, attempt)
            self._tasks.start_soon(self._try, self.method, attempt, never=over)
        attempt.waiting += 1
        try:
            with shown.get()():
                await attempt.over.wait()
        finally:
            attempt.waiting -= 1
            if not attempt.waiting and not attempt.over.is_set():
                self._end(attempt)
                attempt.scope.cancel()
        match attempt.error:
            case None:
                return True
            case RpcError() | DecodeError() as error:
                raise LoginFailed(self._agent, self.method, str(error)) from error
            case error:
                raise copy.copy(error)  # each waiting task raises its own copy

    async def _try(self, method: str, attempt: _Attempt) -> None:
        try:
            with attempt.scope:
                await self._authenticate(method)
                attempt.error = None
        except (AcpError, DecodeError) as exc:
            attempt.error = exc
        finally:
            self._over(attempt)

    def _over(self, attempt: _Attempt) -> None:
        self._end(attempt)
        attempt.over.set()

    def _end(self, attempt: _Attempt) -> None:
        if self._attempt is attempt:  # otherwise another attempt has begun
            self._attempt = None
