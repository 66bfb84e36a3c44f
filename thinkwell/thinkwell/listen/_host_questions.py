"""What a host was asked and has not answered: which answer belongs to which question.

An answer that names an ``id`` is that question's, and no other's. One without is for the oldest open question
of its type, since a host that leaves ids out answers in the order in which it was asked. A question that has
ended otherwise keeps its place in that order until its turn is over: the host may have answered it before it
learned of that, and that answer must not be taken for one to the next question.
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
    """An answer to nothing that is open."""


class Asked:
    """A question that the host was asked."""

    def __init__(self, type_: str, question: Question) -> None:
        self.type = type_
        self.question = question
        self.withdrawn = False
        """Whether it has ended without the host."""
        self._answer: Answer | None = None
        self._answered = anyio.Event()

    def settle(self, answer: Answer) -> None:
        """Have the answer."""
        self._answer = answer
        self._answered.set()

    async def wait(self) -> Answer | None:
        """Wait for the answer, and return it."""
        await self._answered.wait()
        return self._answer


class HostQuestions:
    """The questions that a host has not answered, in the order in which it was asked."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        self._closed = False

    def ask(self, type_: str, question: Question) -> Asked:
        """Take a question that is going to be sent to the host.

        Args:
            type_: The type of its message.
            question: The question, whose id the answer has to name.
        """
        asked = self._asked[question.id] = Asked(type_, question)
        return asked

    @property
    def closed(self) -> bool:
        """Whether the host answers no more."""
        return self._closed

    @property
    def waiting(self) -> bool:
        """Whether an answer of the host is waited for."""
        return any(not asked.withdrawn for asked in self._asked.values())

    def answer(self, response: Response, *, empty: bool = False) -> None:
        """Take an answer of the host.

        Args:
            response: The answer.
            empty: Whether it has no value, not even ``null``.

        Raises:
            Astray: It belongs to nothing that is open.
            AnswerInvalid: It does not fit the question, which stays open.
        """
        asked = self._find(response)
        id_ = asked.question.id
        if asked.withdrawn:
            del self._asked[id_]
            raise Astray(f"{asked.type} {id_} is not open any more")
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
        """Know that a question has ended, and return whether that was without the host."""
        asked = self._asked.get(question.id)
        if asked is None or asked.withdrawn:
            return False
        asked.withdrawn = True
        return True

    def forget(self) -> None:
        """Forget what was withdrawn: the turn is over."""
        self._asked = {id_: asked for id_, asked in self._asked.items() if not asked.withdrawn}

    def close(self) -> None:
        """Decline all that is open: the host answers no more."""
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
