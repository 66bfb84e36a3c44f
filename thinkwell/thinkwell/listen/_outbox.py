"""Lines for a host that may read slowly, or not at all.

No sender waits for the host: neither the agent, whose messages are still read, nor the run. Unread lines wait
here, in a bounded buffer. While more than `MAX_WAITING` bytes wait, optional messages (progress, partial
text, logs) are left out and counted, and a log message reports the count in their place. Questions,
approvals, results and errors always have room. There are few of them: an agent waits for the answer to its
question, and a prompt has one end.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from thinkwell._lines.words import write_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell.events import JsonValue
    from thinkwell_acp import Transport

MAX_WAITING: Final = 8 * 1024 * 1024
"""Waiting bytes from which on optional messages are left out. Long texts of many turns fit in."""


class Outbox:
    """The lines that wait to be sent to a host.

    Args:
        transport: The transport to it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._left_out = 0
        self._changed = anyio.Event()

    def put(self, type_: str, fields: Mapping[str, JsonValue]) -> None:
        """Send a required message, as soon as the host reads."""
        self._tell_left_out()
        self._add(write_message(type_, fields))

    def tell(self, type_: str, fields: Mapping[str, JsonValue]) -> None:
        """Send an optional message; it is left out while too much waits."""
        if self._waiting > MAX_WAITING:
            self._left_out += 1
            return
        self.put(type_, fields)

    def _tell_left_out(self) -> None:
        if not self._left_out:
            return
        count, self._left_out = self._left_out, 0
        what = "1 message was" if count == 1 else f"{count} messages were"
        text = f"{what} left out here, because the host did not read"
        self._add(write_message("log", {"message": text, "level": "warning"}))

    def _add(self, line: bytes) -> None:
        self._lines.append(line)
        self._waiting += len(line)
        self._notify()

    async def send_all(self) -> None:
        """Send all lines, one at a time, until cancelled.

        Raises:
            anyio.BrokenResourceError: The host has stopped reading.
        """
        while True:
            while self._lines:
                line = self._lines[0]
                await self._transport.send(line)
                self._lines.popleft()
                self._waiting -= len(line)
            self._notify()
            await self._changed.wait()

    async def wait_empty(self) -> None:
        """Wait until the host has read everything."""
        while self._lines:
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
