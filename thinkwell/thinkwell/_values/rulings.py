"""What was answered to a question, brought into one form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from thinkwell._values.content import JsonValue  # noqa: TC001 - type of a field
from thinkwell._values.forms import check_form
from thinkwell.errors import AnswerInvalid
from thinkwell.questions import (
    ChooseOption,
    FormQuestion,
    FormValue,
    PermissionQuestion,
    Reply,
    StopRun,
    UrlQuestion,
    Verdict,
)

if TYPE_CHECKING:
    from typing import TypeGuard

    from thinkwell.questions import Question


class Said(Reply, frozen=True, kw_only=True):
    """An answer, and what stands for it where an agent takes any value: agents that speak lines do."""

    said: JsonValue


class Silence(Struct, frozen=True):
    """The answer of a handler that wants to say nothing, where no other is asked."""


SILENCE: Final = Silence()

_SYNONYMS: Final[dict[str, Verdict]] = {"accept": "allow", "decline": "deny"}


class Ruling(Struct, frozen=True, kw_only=True):
    """An answer that fits its question."""

    verdict: Verdict
    """Never ``accept`` or ``decline``."""
    by: str
    why: str
    option_id: str | None = None
    """The option that was chosen by its id."""
    values: dict[str, FormValue] | None = None
    """What a form was filled in with."""
    stop: str | None = None
    """Why the run is to end."""
    cancels: bool = False
    """Whether the agent is told that its turn is cancelled, and nothing of the question."""
    late: bool = False
    """Whether it stands for an answer that did not come in time."""
    widens: bool = False
    """Whether "allow" may also be said by an option that allows for good: the policy alone can mean that."""
    said: tuple[JsonValue] | None = None
    """What was said, where an agent takes any value."""
    silent: bool = False
    """Whether an agent that takes that is told nothing at all."""

    @property
    def allows(self) -> bool:
        """Whether the agent may go on."""
        return self.verdict.startswith("allow")


def read_answer(question: Question, answer: object, by: str, why: str) -> Ruling:
    """Return an answer in the one form.

    Raises:
        AnswerInvalid: It does not fit the question.
    """
    if isinstance(answer, Reply):
        ruling = read_answer(question, answer.answer, answer.by or by, answer.why or why)
        return replace(ruling, said=(answer.said,)) if isinstance(answer, Said) else ruling
    if isinstance(answer, Silence):
        return Ruling(verdict="deny", by=by, why="it was heard, and the agent is told nothing", silent=True)
    if isinstance(answer, bool):
        answer = "allow" if answer else "deny"
    if isinstance(answer, StopRun):
        reason = answer.reason or why
        return Ruling(verdict="deny", by=by, why=reason, stop=reason, cancels=True)
    if _is_verdict(answer):
        return _read_verdict(question, _SYNONYMS.get(answer, answer), by, why)
    if isinstance(answer, ChooseOption):
        return _read_choice(question, answer.option_id, by, why)
    if isinstance(question, FormQuestion) and isinstance(answer, Mapping):
        return _read_form(question, cast("Mapping[str, object]", answer), by, why)
    what = "a form" if isinstance(answer, Mapping) else f"{answer!r:.200}"  # what is in it may be a secret
    raise AnswerInvalid(question.id, {"": f"{what} is no answer to it; {_expected(question)}"})


def _is_verdict(answer: object) -> TypeGuard[Verdict]:
    return isinstance(answer, str) and answer in get_args(Verdict)


def _read_verdict(question: Question, verdict: Verdict, by: str, why: str) -> Ruling:
    if not isinstance(question, FormQuestion):
        return Ruling(verdict=verdict, by=by, why=why)
    if verdict.startswith("deny"):
        return Ruling(verdict="deny", by=by, why=why)
    return _read_form(question, {}, by, why)  # a form that is all right as it is


def _read_choice(question: Question, option_id: str, by: str, why: str) -> Ruling:
    options = question.options if isinstance(question, PermissionQuestion) else ()
    option = next((option for option in options if option.id == option_id), None)
    if option is None:
        offered = ", ".join(repr(option.id) for option in options) or "none"
        raise AnswerInvalid(question.id, {"": f"there is no option {option_id!r:.100}; offered: {offered}"})
    return Ruling(
        verdict="allow" if option.kind.startswith("allow") else "deny", by=by, why=why, option_id=option_id
    )


def _read_form(question: FormQuestion, answer: Mapping[str, object], by: str, why: str) -> Ruling:
    values, errors = check_form(question.fields, answer)
    if errors:
        raise AnswerInvalid(question.id, errors)
    return Ruling(verdict="allow", by=by, why=why, values=values)


def _expected(question: Question) -> str:
    match question:
        case FormQuestion():
            names = ", ".join(f"{field.name!r:.60}" for field in question.fields[:10])
            return f'give a mapping of values by the names of its fields ({names}), or "decline"'
        case UrlQuestion():
            return 'say "accept" or "decline"'
        case _:
            return "say " + ", ".join(repr(verdict) for verdict in get_args(Verdict)[:6])
