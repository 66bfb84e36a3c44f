"""Questions to the process that has a run, and their answers, over channels of Redis.

A channel loses messages without a listener. So a question is sent again until it is answered; by its number,
the other process recognises it, and repeats its answer.

A coroutine in the event loop answers a question, and a thread waits for it. So no task group is needed, which
would force the same task to call `RedisJournal.open` and `RedisJournal.close`.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from typing import TYPE_CHECKING, Final

import anyio
import anyio.from_thread
import msgspec
from anyio.lowlevel import current_token
from msgspec import Struct

from thinkwell.journal._errors import JournalError

if TYPE_CHECKING:
    from thinkwell.journal._redis_asking import Asker
    from thinkwell.journal._redis_link import RedisLink
    from thinkwell.journal._types import CallHandler

SEND_AGAIN: Final = 1.0
"""Seconds after which a question is sent again."""

REMEMBERED: Final = 120.0
"""Seconds for which an answer is remembered."""

AT_ONCE: Final = 100
"""Questions that are answered at the same time. Others wait until they are sent again."""

TO: Final = "to:"
"""The prefix of the channel to a process."""

logger = logging.getLogger("thinkwell")


class Question(Struct, frozen=True, tag="question"):
    """A question to a process."""

    id: str
    run: str
    body: bytes
    asker: str
    """The process that asks."""
    timeout: float
    """Seconds for which it waits for the answer."""


class Answer(Struct, frozen=True, tag="answer"):
    """An answer of a process."""

    id: str
    body: bytes | None
    """``None``: it has no answer."""


class _Waiting:
    """A process that has asked."""

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.body: bytes | None = None


class _Asked:
    """A question that this process received."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.answer: Answer | None = None
        """``None``: it is being answered."""


_read: Final = msgspec.msgpack.Decoder(Question | Answer).decode
_write: Final = msgspec.msgpack.Encoder().encode


class Calls:
    """Asks other processes, and answers them.

    Args:
        owner: This process.
        asker: Sends questions.
        link: Sends answers.
    """

    def __init__(self, owner: str, asker: Asker, link: RedisLink) -> None:
        self.handler: CallHandler | None = None
        self._owner = owner
        self._asker = asker
        self._link = link
        self._token = current_token()
        self._waiting: dict[str, _Waiting] = {}
        self._asked: dict[str, _Asked] = {}
        self._answering: set[str] = set()
        """The questions in progress."""
        self._scopes: set[anyio.CancelScope] = set()

    async def ask(self, owner: str, run_id: str, body: bytes, timeout: float) -> bytes | None:  # noqa: ASYNC109
        """Ask the process that has a run.

        Returns:
            Its answer; ``None``: it has no answer.

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
                while not waiting.answered.is_set():
                    await self._asker.send(TO + owner, _write(question))
                    with anyio.move_on_after(SEND_AGAIN):
                        await waiting.answered.wait()
                return waiting.body
        finally:
            del self._waiting[question.id]

    def close(self) -> None:
        """Stop answering."""
        self.handler = None
        for scope in self._scopes:
            scope.cancel()

    def take(self, data: bytes) -> None:
        """Take a message from another process."""
        try:
            message = _read(data)
        except msgspec.DecodeError as exc:
            logger.warning("What another process has sent cannot be read, and is left out: %s", exc)
            return
        if isinstance(message, Answer):
            waiting = self._waiting.get(message.id)
            if waiting is not None:
                waiting.body = message.body
                waiting.answered.set()
            return
        asked = self._asked.get(message.id)
        if asked is None:
            self._forget()
            if len(self._answering) < AT_ONCE:
                self._answering.add(message.id)
                asked = self._asked[message.id] = _Asked()
                self._in_thread(message, asked)
        elif asked.answer is not None:
            self._in_thread(message, asked)

    def _forget(self) -> None:
        """Forget old answers."""
        until = time.monotonic() - REMEMBERED
        for id_, asked in list(self._asked.items()):
            if asked.since > until:
                return
            del self._asked[id_]

    def _in_thread(self, question: Question, asked: _Asked) -> None:
        args = (question, asked)
        threading.Thread(target=self._answer, args=args, name="thinkwell answer", daemon=True).start()

    def _answer(self, question: Question, asked: _Asked) -> None:
        if asked.answer is None:
            try:
                body = anyio.from_thread.run(self._get_bounded_answer, question, token=self._token)
            except BaseException:  # the event loop has ended, and says so in many ways
                return
            asked.answer = Answer(question.id, body)
        try:
            self._link.publish(TO + question.asker, _write(asked.answer))
        except JournalError as exc:  # the question will be sent again
            logger.warning("What was asked of run %s could not be answered: %s", question.run, exc)

    async def _get_bounded_answer(self, question: Question) -> bytes | None:
        body: bytes | None = None
        with anyio.move_on_after(question.timeout) as scope:
            self._scopes.add(scope)
            try:
                body = await self._get_answer(question.run, question.body)
            finally:
                self._scopes.discard(scope)
                self._answering.discard(question.id)
        return body

    async def _get_answer(self, run_id: str, body: bytes) -> bytes | None:
        if self.handler is None:
            return None
        try:
            return await self.handler(run_id, body)
        except Exception:
            logger.exception("What was asked of run %s could not be answered", run_id)
            return None
