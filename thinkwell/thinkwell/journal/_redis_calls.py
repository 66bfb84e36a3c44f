"""Questions to the process that has a run, and their answers, over channels of Redis.

A channel forgets what nobody hears. So a question is sent again until it is answered; whoever is asked
knows by its number that he was asked before, and sends the same answer again.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

from thinkwell.journal._errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

    from thinkwell.journal._types import CallHandler

__all__ = ("Calls",)

SEND_AGAIN: Final = 1.0
"""Seconds after which a question is sent again."""

REMEMBERED: Final = 120.0
"""Seconds for which it is known what was answered."""

logger = logging.getLogger("thinkwell")


class Question(Struct, frozen=True, tag="question"):
    """Asked of a process."""

    id: str
    run: str
    body: bytes
    asker: str
    """The process that asks."""
    timeout: float
    """Seconds for which it waits."""


class Reply(Struct, frozen=True, tag="reply"):
    """What a process answers."""

    id: str
    body: bytes | None
    """``None``: it answers nothing."""


class _Waiting:
    """Somebody who has asked."""

    def __init__(self) -> None:
        self.replied = anyio.Event()
        self.body: bytes | None = None


class _Answered:
    """A question that was asked of this process."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.reply: Reply | None = None
        """``None``: it is being answered."""


_read: Final = msgspec.msgpack.Decoder(Question | Reply).decode
_write: Final = msgspec.msgpack.Encoder().encode


class Calls:
    """Asks other processes, and answers them.

    Args:
        owner: This process.
        send: Sends something to a process.
    """

    def __init__(self, owner: str, send: Callable[[str, bytes], Awaitable[None]]) -> None:
        self.handler: CallHandler | None = None
        self._owner = owner
        self._send = send
        self._waiting: dict[str, _Waiting] = {}
        self._answered: dict[str, _Answered] = {}

    async def ask(self, owner: str, run_id: str, body: bytes, timeout: float) -> bytes | None:  # noqa: ASYNC109
        """Ask the process that has a run.

        Returns:
            Its answer; ``None``: it answers nothing.

        Raises:
            TimeoutError: It has not answered in time.
            JournalError: Redis cannot be reached.
        """
        if owner == self._owner:
            with anyio.fail_after(timeout):
                return await self._get_answer(run_id, body)
        question = Question(secrets.token_hex(8), run_id, body, self._owner, timeout)
        waiting = self._waiting[question.id] = _Waiting()
        try:
            with anyio.fail_after(timeout):
                while not waiting.replied.is_set():
                    await self._send(owner, _write(question))
                    with anyio.move_on_after(SEND_AGAIN):
                        await waiting.replied.wait()
                return waiting.body
        finally:
            del self._waiting[question.id]

    def take(self, data: bytes, tasks: TaskGroup) -> None:
        """Take in what another process has sent.

        Args:
            data: That.
            tasks: Where to answer it.
        """
        try:
            message = _read(data)
        except msgspec.DecodeError as exc:
            logger.warning("What another process has sent cannot be read, and is left out: %s", exc)
            return
        if isinstance(message, Reply):
            waiting = self._waiting.get(message.id)
            if waiting is not None:
                waiting.body = message.body
                waiting.replied.set()
            return
        answered = self._answered.get(message.id)
        if answered is None:
            self._forget()
            self._answered[message.id] = _Answered(anyio.current_time())
            tasks.start_soon(self._answer, message)
        elif answered.reply is not None:
            tasks.start_soon(self._reply, message.asker, answered.reply)

    def _forget(self) -> None:
        """Forget what was answered long ago."""
        until = anyio.current_time() - REMEMBERED
        for id_, answered in list(self._answered.items()):
            if answered.since > until:
                return
            del self._answered[id_]

    async def _answer(self, question: Question) -> None:
        body: bytes | None = None
        with anyio.move_on_after(question.timeout):
            body = await self._get_answer(question.run, question.body)
        reply = self._answered[question.id].reply = Reply(question.id, body)
        await self._reply(question.asker, reply)

    async def _get_answer(self, run_id: str, body: bytes) -> bytes | None:
        if self.handler is None:
            return None
        try:
            return await self.handler(run_id, body)
        except Exception:
            logger.exception("What was asked of run %s could not be answered", run_id)
            return None

    async def _reply(self, asker: str, reply: Reply) -> None:
        try:
            await self._send(asker, _write(reply))
        except JournalError as exc:  # who asks will ask again
            logger.warning("What was asked could not be answered: %s", exc)
