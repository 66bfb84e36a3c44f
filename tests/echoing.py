"""An agent that repeats what it is told, in any number of sessions, and that can die."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from scripted import EVERY_SESSION_CALL, Played, Turn

from thinkwell_acp import ConnectionClosed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell_acp import Transport


class Echo(Played):
    """Says ``<session>: <prompt>``, and takes some time for it.

    Who says ``be deaf`` cannot cancel that.

    Args:
        seconds: How long it takes.
    """

    name = "echo"

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__([self.repeat], capabilities=EVERY_SESSION_CALL)
        self.seconds = seconds
        self.begun: list[str] = []
        """The prompts, in order."""
        self.done: list[str] = []
        """Those that were answered."""
        self.now: Counter[str] = Counter()
        """How many turns run, in each session."""
        self.most = 0
        """How many turns ran at once in one session, at most."""
        self.most_at_all = 0
        self.opened_times = 0
        self.closed_times = 0
        self.changed = anyio.Event()

    async def repeat(self, turn: Turn) -> str | None:
        self.begun.append(turn.text)
        self._change()
        self.now[turn.session_id] += 1
        self.most = max(self.most, *self.now.values())
        self.most_at_all = max(self.most_at_all, self.now.total())
        try:
            turn.say(f"{turn.session_id}: ")
            with anyio.CancelScope(shield=turn.text == "be deaf"):
                await anyio.sleep(self.seconds)
            turn.say(turn.text)
        finally:
            self.now[turn.session_id] -= 1
        self.done.append(turn.text)
        self._change()
        return None

    async def until_begun(self, prompt: str, *, times: int = 1) -> None:
        """Wait until a prompt has come."""
        while self.begun.count(prompt) < times:
            await self.changed.wait()

    async def die(self) -> None:
        """End the connection."""
        self.client.connection.end(ConnectionClosed())
        await anyio.lowlevel.checkpoint()

    def _change(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Transport]:
        self.opened_times += 1
        try:
            async with super().connect() as transport:
                yield transport
        finally:
            self.closed_times += 1
