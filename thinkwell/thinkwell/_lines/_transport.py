"""The transport to an NDJSON program, as a transport to an agent of the protocol."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from thinkwell._lines._agent import LineAgent
from thinkwell_acp.connection import WRITE_FAILURE_GRACE
from thinkwell_acp.errors import ConnectionBroken, ConnectionEnded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell._lines._agent import Outgoing
    from thinkwell._lines.words import PromptFormat
    from thinkwell_acp import Transport
    from thinkwell_acp._tasks import BackgroundTasks

logger = logging.getLogger("thinkwell")


class LineTransport:
    """Carries the protocol to an NDJSON program.

    Data is written in the background: a program that does not read blocks nothing, so that its prompt can
    still be cancelled.

    Args:
        pipe: The transport to the program. It is closed with this one.
        tasks: The tasks that write to it, and end the program if necessary.
        name: The agent's name.
        init: Parameters that the program must acknowledge first; ``None``: none.
        prompt_format: The form of its prompts.
    """

    def __init__(
        self,
        pipe: Transport,
        tasks: BackgroundTasks,
        *,
        name: str,
        init: Mapping[str, object] | None = None,
        prompt_format: PromptFormat = "text",
    ) -> None:
        self._name = name
        self._pipe = pipe
        self._tasks = tasks
        self._agent = LineAgent(name=name, init=init, prompt_format=prompt_format)
        self._outgoing: deque[Outgoing] = deque()
        self._more = anyio.Event()
        self._news = anyio.Event()
        """Set when there may be bytes to receive."""
        self._taken = anyio.Event()
        """Set when the program's output so far was received: only then more is read."""
        self._reader = anyio.CancelScope()
        self._failure: Exception | None = None
        """The exception of `receive`, after everything before it was received."""
        self._ending = False
        """Whether the program is being ended: its later output is not read."""
        tasks.start_soon(self._read)
        tasks.start_soon(self._write)

    async def receive(self) -> bytes:
        """Return the next bytes of the protocol.

        Raises:
            anyio.EndOfStream: The program's output has ended.
            ConnectionBroken: The same, with the reason.
            Exception: Any other exception of the transport.
        """
        await checkpoint()
        while True:
            if data := self._agent.take_for_client():
                self._taken.set()
                return data
            if self._failure is not None:
                raise self._failure
            self._news = anyio.Event()
            await self._news.wait()

    async def _read(self) -> None:
        """Read the program's output.

        It is a separate task: most of the bytes for `receive` come from no program, and a read that is
        cancelled for them may lose what it has read.
        """
        with self._reader:
            while self._failure is None:
                try:
                    data = await self._pipe.receive()
                except Exception as exc:
                    if not self._ending:
                        self._agent.program_ended()
                        self._fail(exc)
                    return
                if self._ending:
                    return
                self._agent.from_program(data)
                self._pass_on()
                if self._agent.has_news:
                    self._taken = anyio.Event()
                    await self._taken.wait()

    async def send(self, item: bytes, /) -> None:
        """Take bytes of the protocol. This does not wait for the program to read them."""
        await checkpoint()
        self._agent.from_client(item)
        self._pass_on()

    def _pass_on(self) -> None:
        agent = self._agent
        self._outgoing.extend(agent.take_for_program())
        self._more.set()
        if agent.has_news:
            self._news.set()
        if agent.failure is not None:
            self._fail(agent.failure)
        if agent.ends and not self._ending:
            self._ending = True
            self._reader.cancel()
            self._tasks.start_soon(self._end)

    def _fail(self, reason: Exception) -> None:
        self._failure = self._failure or reason
        self._news.set()

    async def _end(self) -> None:
        try:
            await self._pipe.aclose()
        finally:
            self._fail(ConnectionEnded("a prompt was cancelled"))

    async def _write(self) -> None:
        reads = True
        while True:
            while self._outgoing:
                data, vital = self._outgoing.popleft()
                if reads:
                    try:
                        await self._pipe.send(data)
                        continue
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                        reads = False
                if vital:
                    await anyio.sleep(WRITE_FAILURE_GRACE)  # its end has a better reason, if it comes
                    self._fail(ConnectionBroken("the program reads no more"))
                    return
                logger.debug("Agent %s reads no answers any more", self._name)
            self._more = anyio.Event()
            await self._more.wait()

    async def aclose(self) -> None:
        """Close the transport to the program."""
        self._reader.cancel()
        self._fail(anyio.ClosedResourceError())
        await self._pipe.aclose()
