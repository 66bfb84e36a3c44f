"""What is held open in the event loop behind the blocking API."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from thinkwell.sync._call import Call

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from thinkwell.sync._loop import LoopThread

T = TypeVar("T")


class Held(Generic[T]):
    """An async context manager that a task of the loop has entered, and leaves when it is told to.

    Args:
        loop: Where.
        manager: Makes it.
        outer: What it was opened within: it is left before that is.
        kill: Ends at once what was entered.
    """

    def __init__(
        self,
        loop: LoopThread,
        manager: Callable[[], AbstractAsyncContextManager[T]],
        *,
        outer: Held[Any] | None = None,
        kill: Callable[[T], None] | None = None,
    ) -> None:
        self.loop = loop
        self.entered: Call[T] = Call()
        self.left: Call[None] = Call()
        """Done when it was left, or was never entered."""
        self._manager = manager
        self._outer = outer
        self._kill = kill
        self.opener = threading.current_thread()
        self._inner: dict[Held[Any], None] = {}
        self._leaving = asyncio.Event()
        self._over = asyncio.Event()
        self._scope: anyio.CancelScope | None = None

    async def main(self) -> None:
        """Enter, wait, and leave."""
        if self._outer is not None:
            self._outer._inner[self] = None
        try:
            with anyio.CancelScope() as self._scope:
                if not self._leaving.is_set():
                    await self._hold()
        except BaseException as exc:
            if self.entered.done:
                raise
            self.entered.set_exception(exc)
        finally:
            if not self.entered.done:
                self.entered.set_exception(CancelledError())
            if self._outer is not None:
                del self._outer._inner[self]
            self._over.set()
            self.loop.dismiss(self)

    async def _hold(self) -> None:
        async with self._manager() as value:
            self.entered.set_result(value)
            await self._leaving.wait()
            while self._inner:
                inner = next(reversed(self._inner))
                inner.let_go()
                await inner._over.wait()

    def refuse(self, why: Exception) -> None:
        """Never enter it. Called in the loop."""
        self._over.set()
        self.entered.set_exception(why)
        self.left.set_result(None)

    def leave(self) -> bool:
        """Ask for it to be left; return whether the loop still hears that. Returns at once."""
        return self.loop.leave(self)

    def let_go(self) -> None:
        """Leave it. Called in the loop."""
        self._leaving.set()
        if not self.entered.done and self._scope is not None:
            self._scope.cancel()

    def kill(self) -> None:
        """End at once what was entered, where it was."""
        self.loop.post(self._end)

    def _end(self) -> None:
        if self._kill is not None and self.entered.done and not self._over.is_set():
            self._kill(self.entered.result())

    def close(self) -> None:
        """Leave it and wait until it was left. Ctrl-C meanwhile kills it, and is raised at the end."""
        if self.loop.forked:
            return  # it is not ours
        self.loop.check_elsewhere()
        interrupted: KeyboardInterrupt | None = None
        while True:
            try:
                if self.leave():
                    self.left.wait()
                self.loop.join()
                break
            except KeyboardInterrupt as exc:
                interrupted = exc
                self.kill()
        if interrupted is not None:
            raise interrupted
        if self.left.done:
            self.left.result()
