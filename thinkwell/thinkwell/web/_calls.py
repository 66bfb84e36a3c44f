"""The requests of one server process about a run of another, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from thinkwell.questions import ChooseOption, FormValue, Reply, StopRun, Verdict
from thinkwell.web._refusals import (
    AnswerRefused,
    MessageNotTaken,
    QuestionClosed,
    Refusal,
    RequestInvalid,
    ServerUnavailable,
)

if TYPE_CHECKING:
    from thinkwell.questions import Answer

VERDICTS: Final[tuple[str, ...]] = get_args(Verdict)


class Asked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request about a run."""

    what: Literal["answer", "steer", "cancel", "watched"]
    text: str = ""
    question: str = ""
    verdict: Verdict | None = None
    option: str | None = None
    form: dict[str, FormValue | None] | None = None
    stop: str | None = None
    why: str | None = None
    by: str = "human"

    @property
    def answer(self) -> Answer:
        """The answer to the question."""
        answer: Answer
        if self.option is not None:
            answer = ChooseOption(self.option)
        elif self.form is not None:
            answer = self.form
        elif self.stop is not None:
            answer = StopRun(self.stop)
        else:
            assert self.verdict is not None
            answer = self.verdict
        return answer if self.why is None else Reply(answer, self.why)


_Kind: TypeAlias = Literal["question", "answer", "message", "unclear"]

_REFUSALS: Final[Mapping[_Kind, Callable[[str], Refusal]]] = {
    "question": QuestionClosed,
    "answer": AnswerRefused,
    "message": MessageNotTaken,
    "unclear": ServerUnavailable,
}


class Replied(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome."""

    refused: _Kind | None = None
    message: str = ""

    @classmethod
    def by(cls, refusal: AnswerRefused | MessageNotTaken | QuestionClosed | ServerUnavailable) -> Replied:
        """Return that it was refused."""
        kind: _Kind = next(each for each, known in _REFUSALS.items() if known is type(refusal))
        return cls(refused=kind, message=refusal.message)

    def raise_refusal(self) -> None:
        """Raise the error of a refused request.

        Raises:
            QuestionClosed: The question is not open.
            AnswerRefused: The answer does not fit.
            MessageNotTaken: The agent does not take the message.
            ServerUnavailable: It is unknown whether the agent takes it.
        """
        if self.refused is not None:
            raise _REFUSALS[self.refused](self.message)


def asked_answer(question_id: str, answer: Answer, by: str) -> Asked:
    """Return the request that answers a question.

    Raises:
        RequestInvalid: It is not a valid answer.
    """
    why: str | None = None
    said: object = answer
    if isinstance(answer, Reply):
        said, why, by = answer.answer, answer.why, answer.by or by
    asked = Asked(what="answer", question=question_id, why=why, by=by)
    if isinstance(said, bool):
        return replace(asked, verdict="allow" if said else "deny")
    if isinstance(said, ChooseOption):
        return replace(asked, option=said.option_id)
    if isinstance(said, StopRun):
        return replace(asked, stop=said.reason)
    if isinstance(said, str) and said in VERDICTS:
        return replace(asked, verdict=cast("Verdict", said))
    if isinstance(said, Mapping):
        return replace(asked, form=dict(said))
    raise RequestInvalid(f"{said!r:.100} is not an answer; send one of {', '.join(VERDICTS)}")
