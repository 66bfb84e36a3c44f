"""The agent's work after it has answered the prompt."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell import events as ev
from thinkwell._core.log.budget import LEAST_SLEEP
from thinkwell._core.protocol.steering import HUMAN, cycle_origin, moved_to_background

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from thinkwell._core.log.run_log import RunLog
    from thinkwell_acp import schema as s

QUIET: Final = 2.0
"""Seconds of silence after which a steered agent is done, if it does not mark its end."""


class AfterWork:
    """Tracks whether an agent has work left after answering the prompt.

    An agent may answer the prompt before it has read what it was steered to, and while a command goes on that
    it has moved to the background for that. It then works again without a prompt, so no answer ends that.

    Args:
        log: The run's log.
        last_update: Returns the time of the agent's last update, by the log's clock.
    """

    def __init__(self, log: RunLog, last_update: Callable[[], float]) -> None:
        self._log = log
        self._last_update = last_update
        self._tools: list[str] = []
        """The tool calls whose commands continue."""
        self._marks = False
        """Whether the agent marks the end of its work."""
        self._steered = False
        self._unanswered: list[str] = []
        """What the agent was told last, as long as it says and does nothing."""
        self._said: tuple[int, ...] = ()
        """How much it had said and done when it was told that."""
        self._asking = 0
        self._changed = anyio.Event()

    @property
    def expected(self) -> bool:
        """Whether work is left."""
        return bool(self._tools) or bool(self._asking) or self._waits_for_silence

    @property
    def _waits_for_silence(self) -> bool:
        return self._steered and not self._marks

    @contextmanager
    def asking(self) -> Generator[None]:
        """Expect, during a block, the agent's reaction to a steering message."""
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            self.look_again()

    def steered(self, text: str) -> None:
        """Record that the agent took the message."""
        self._steered = True
        self._unanswered = [*self.take_unanswered(), text]
        self._said = self._content()

    def take_unanswered(self) -> list[str]:
        """Return, once, the messages after which an agent that does not mark its end has done nothing.

        codex-acp takes a message at the very end of a turn, and does not read it before the next one.
        """
        texts, self._unanswered = self._unanswered, []
        return texts if self._waits_for_silence and self._said == self._content() else []

    def _content(self) -> tuple[int, ...]:
        """Return how much the agent has said and done."""
        view = self._log.view()
        return len(view.text), len(view.thoughts), len(view.tools)

    def note_call(self, update: s.ToolCallStart | s.ToolCallProgress) -> None:
        """Record from an update of a tool call what continues in the background."""
        if moved_to_background(update) and update.tool_call_id not in self._tools:
            self._tools.append(update.tool_call_id)
            self._tell()

    def note_usage(self, update: s.UsageUpdate) -> None:
        """Record from a mark that some work has ended."""
        origin = cycle_origin(update)
        if origin is None:
            return
        self._marks = True
        if origin != HUMAN and self._tools:
            self._tools.pop(0)  # the protocol does not say which one
            self._tell()

    async def wait(self, seconds: float, interrupted: Callable[[], bool]) -> None:
        """Return when no work is left, or the time is over, or another prompt is to follow at once.

        Args:
            seconds: The longest time.
            interrupted: Returns whether another prompt follows. `look_again` makes this ask again.
        """
        answered = self._log.now()
        with anyio.move_on_after(seconds):
            while (self._tools or self._asking) and not interrupted():
                await self._change()
            while self._waits_for_silence and not interrupted():
                left = max(self._last_update(), answered) + QUIET - self._log.now()
                if left <= 0:
                    return
                with anyio.move_on_after(max(left, LEAST_SLEEP)):
                    await self._change()

    def look_again(self) -> None:
        """Let `wait` look again whether to wait."""
        self._changed.set()

    async def _change(self) -> None:
        self._changed = anyio.Event()
        await self._changed.wait()

    def _tell(self) -> None:
        self._log.add(ev.BackgroundWork, tools=tuple(self._tools))
        self.look_again()
