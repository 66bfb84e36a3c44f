"""Objects that stay open for a block, or until you close them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from thinkwell._core.schema.misuse import hints, not_open
from thinkwell.errors import AgentClosed
from thinkwell.sync._loop import LoopEnded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from thinkwell.sync._loop import Held


R = TypeVar("R")
T = TypeVar("T")


class Opened(Generic[T]):
    """An object that is open in the loop's thread."""

    def __init__(self, held: Held[T]) -> None:
        self._held = held

    def close(self) -> None:
        """Close it as the end of its block would, and wait for that. No effect if it is closed.

        Ctrl-C meanwhile kills the agent; `KeyboardInterrupt` is raised once nothing of it runs any more.
        """
        self._held.close()

    def _call(self, function: Callable[[], Awaitable[R]]) -> R:
        try:
            return self._held.loop.call(function)
        except LoopEnded:
            raise AgentClosed from None

    def __del__(self) -> None:
        """Close it if it is still open: it has no users left."""
        held: Held[T] | None = getattr(self, "_held", None)
        if held is not None and not held.loop.forked and not held.left.done:
            held.leave()
            warnings.warn(f"{self!r} was never closed", ResourceWarning, source=self, stacklevel=1)


O_co = TypeVar("O_co", bound=Opened[Any], covariant=True)


@not_open("with open_agent(…) as agent:")
@hints(__aenter__="write `with open_agent(…) as agent:`, or use open_agent of thinkwell", __aexit__="")
class Opener(Generic[O_co]):
    """Returned by `open_agent`, `Agent.session` and `Session.fork`: open it with ``with``, or `start`."""

    def __init__(self, start: Callable[[], O_co]) -> None:
        self._start = start
        self._entered: list[O_co] = []

    def start(self) -> O_co:
        """Open it until you call its ``close``: for notebooks, where a block cannot span several cells.

        Raises the errors of the block.
        """
        return self._start()

    def __enter__(self) -> O_co:
        opened = self._start()
        self._entered.append(opened)
        return opened

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        opened = self._entered.pop()  # otherwise it is collected before it is closed, and warns
        opened._held.close(hurried=exc_type is not None)
