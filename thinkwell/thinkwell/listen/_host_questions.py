"""The unanswered questions to a host, and the matching of its answers.

An answer with an ``id`` belongs to that question only. One without is for the oldest open question of its
type, because a host that leaves ids out answers in order. A question that ended without the host keeps its
place in that order until its turn is over: the host may have answered it before it knew, and that answer must
not be taken for one to the next question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from msgspec import UNSET

from thinkwell._core.exit import Said, read_answer
from thinkwell.errors import AnswerInvalid
from thinkwell.listen._values import as_answer
from thinkwell.questions import Reply

if TYPE_CHECKING:
    from thinkwell._lines.words import Response
    from thinkwell.questions import Answer, Question

UNREACHABLE: Final = "the host has ended its output, so there is no one to ask"
NOTHING: Final = "the host left it unanswered"


class Astray(Exception):  # noqa: N818 - nothing went wrong with us
    """An answer without an open question."""


class Asked:
    """A question to the host."""

    def __init__(self, type_: str, question: Question) -> None:
        self.type = type_
        self.question = question
        self.withdrawn = False
        """Whether it ended without the host."""
        self._answer: Answer | None = None
        self._answered = anyio.Event()

    def settle(self, answer: Answer) -> None:
        """Set the answer."""
        self._answer = answer
        self._answered.set()

    async def wait(self) -> Answer | None:
        """Wait for the answer, and return it."""
        await self._answered.wait()
        return self._answer


class HostQuestions:
    """The host's unanswered questions, in order."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        self._closed = False

    def ask(self, type_: str, question: Question) -> Asked:
        """Add a question before it is sent to the host.

        Args:
            type_: The type of its message.
            question: The question, whose id the answer must have.
        """
        asked = self._asked[question.id] = Asked(type_, question)
        return asked

    @property
    def closed(self) -> bool:
        """Whether the host answers no more."""
        return self._closed

    @property
    def waiting(self) -> bool:
        """Whether an answer of the host is expected."""
        return any(not asked.withdrawn for asked in self._asked.values())

    def answer(self, response: Response, *, empty: bool = False) -> None:
        """Handle an answer of the host.

        Args:
            response: The answer.
            empty: Whether it has no value, not even ``null``.

        Raises:
            Astray: No open question matches.
            AnswerInvalid: It does not fit the question, which stays open.
        """
        asked = self._find(response)
        id_ = asked.question.id
        if asked.withdrawn:
            del self._asked[id_]
            raise Astray(f"{asked.type} {id_} is no longer open")
        if response.in_reply_to not in ("", asked.type):
            a = "an" if asked.type == "approval" else "a"
            wrong = f"`in_reply_to` says {response.in_reply_to!r:.100}, and this is {a} {asked.type}"
            raise AnswerInvalid(id_, {"": wrong})
        if empty:
            raise AnswerInvalid(id_, {"": "it has no `value`; give null to say no"})
        answer = _read(asked.question, response)
        del self._asked[id_]
        asked.settle(answer)

    def _find(self, response: Response) -> Asked:
        if response.id is not UNSET:
            found = self._asked.get(response.id) if isinstance(response.id, str) else None
            if found is None:
                raise Astray(f"nothing with the id {response.id!r:.100} is open")
            return found
        for asked in self._asked.values():
            if asked.type == response.in_reply_to:
                return asked
        raise Astray(f"no {response.in_reply_to or 'message'!r:.100} is open")

    def withdraw(self, question: Question) -> bool:
        """Handle that a question has ended, and return whether that was without the host."""
        asked = self._asked.get(question.id)
        if asked is None or asked.withdrawn:
            return False
        asked.withdrawn = True
        return True

    def forget(self) -> None:
        """Forget withdrawn questions: the turn is over."""
        self._asked = {id_: asked for id_, asked in self._asked.items() if not asked.withdrawn}

    def close(self) -> None:
        """Decline all open questions: the host answers no more."""
        self._closed = True
        for asked in self._asked.values():
            asked.settle(Reply("deny", UNREACHABLE))
        self._asked.clear()


def _read(question: Question, response: Response) -> Answer:
    """Return a value as an answer.

    Raises:
        AnswerInvalid: It does not fit the question.
    """
    if response.value is None:
        return Said("deny", NOTHING, said=None)
    answer = as_answer(question, response.value, whose="the host")
    if answer.answer is None:
        raise AnswerInvalid(question.id, {"": answer.why})
    read_answer(question, answer, "host", answer.why)
    return answer
