"""Ask a user the agent's questions through a channel."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from thinkwell._core.exit import InOrder
from thinkwell._display.explaining import change_parts
from thinkwell._display.filling import given_value, is_choice_or_text
from thinkwell._display.numbers import plural
from thinkwell._display.phases import OVER
from thinkwell._display.questions import answered, asked, keys_of
from thinkwell._display.text import line
from thinkwell.channels._calls import begun
from thinkwell.channels._protocols import ChannelChoice, ChannelQuestion, OutcomeChannel
from thinkwell.errors import QuestionNotOpen
from thinkwell.events import DiffContent
from thinkwell.questions import Reply, check_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from anyio.abc import TaskGroup

    from thinkwell import ThoughtStream
    from thinkwell._display.questions import Asked, Field, Key
    from thinkwell.channels._protocols import AskingChannel
    from thinkwell.channels._recipient import Recipient
    from thinkwell.questions import FormValue
    from thinkwell.view import QuestionView, RunView

SKIP: Final = ":skip"
"""The id of the choice that declines a form. A user never types such an id by chance."""

LEAVE: Final = ":leave"
"""The id of the choice that leaves a field as it is."""

CODE: Final = 50_000
"""Most characters that are shown of the action to approve. More is not read in a chat, and an action that is
not shown completely cannot be allowed."""

TRIES: Final = 100
"""Most invalid answers to one question. Users give up long before that; a channel that generates its answers
would be asked forever."""

WITHDRAWN: Final = "withdrawn"

NOTHING: Final[Mapping[str, FormValue | None]] = MappingProxyType({})


class _Unanswered(Exception):  # noqa: N818 - it is not seen outside
    """The channel has no answer."""


@dataclass(slots=True, eq=False)
class _Open:
    """A question that was asked."""

    question: QuestionView
    told: Asked
    put: ChannelQuestion
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """The scope of the channel's call."""
    gone: anyio.Event = field(default_factory=anyio.Event)
    outcome: str = WITHDRAWN


class Asking:
    """Asks a user the open questions of a run, each in its own task.

    Args:
        stream: The run.
        channel: The channel.
        to: The user, and the same channel.
        tasks: The group of the tasks.
    """

    def __init__(
        self,
        stream: ThoughtStream[object],
        channel: AskingChannel,
        to: Recipient,
        tasks: TaskGroup,
    ) -> None:
        self._stream = stream
        self._channel = channel
        self._to = to
        self._tasks = tasks
        self._open: dict[str, _Open] = {}
        self._asked = InOrder(self._ask)
        self._running = 0
        self._idle = anyio.Event()

    def look(self, view: RunView) -> None:
        """Ask new questions, and end those that were answered."""
        still = set[str]() if view.phase in OVER else {question.id for question in view.questions}
        for id_ in [id_ for id_ in self._open if id_ not in still]:
            self._end(id_, view)
        for question in view.questions:
            if question.id in still and question.id not in self._open:
                told = asked(question, view)
                put = put_to_person(told, question, view, self._stream.elapsed)
                self._open[question.id] = one = _Open(question, told, put)
                self._running += 1
                self._asked.start_soon(self._tasks, one)

    def end(self, view: RunView) -> None:
        """End the open questions.

        Args:
            view: The run, which is over or given up.
        """
        for id_ in [*self._open]:
            self._end(id_, view)

    async def wait(self) -> None:
        """Wait, for bounded time, until the channel knows all outcomes."""
        if self._running:
            self._idle = anyio.Event()
            await self._idle.wait()

    def _end(self, id_: str, view: RunView) -> None:
        one = self._open.pop(id_)
        answers = [answer for answer in view.answers if answer.id == id_]
        one.outcome = answered(answers[-1]) if answers else WITHDRAWN
        one.scope.cancel()
        one.gone.set()

    async def _ask(self, one: _Open) -> None:
        try:
            with one.scope:
                await self._get_answer(one)
            await one.gone.wait()
            if isinstance(self._channel, OutcomeChannel):
                await self._to.call(self._channel.on_question_end, one.put, one.outcome)
        except Exception as exc:
            self._to.failed(exc)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _get_answer(self, one: _Open) -> None:
        """Ask, and answer the question, unless the channel has no answer or another one is faster."""
        try:
            self._stream.answer(one.question.id, await self._answer(one))
        except (_Unanswered, QuestionNotOpen):
            pass
        except Exception as exc:
            self._to.failed(exc)  # the question stays open elsewhere, or until its deadline

    async def _answer(self, one: _Open) -> Reply:
        if one.told.asks != "form":
            answers = {key.key: key.answer for key in keys_of(one.told) if key.answer is not None}
            said = ""
            for _ in range(TRIES):
                said = await self._said(one.put)
                if said in answers:
                    return Reply(answers[said], "it was chosen")
            raise ValueError(f"{said!r:.100} is not one of the question's choices")
        return await self._fill_in(one.put, one.told.fields)

    async def _fill_in(self, put: ChannelQuestion, fields: Sequence[Field]) -> Reply:
        """Ask for the values of a form, one after the other, each until it is valid.

        Raises:
            ValueError: No answer is valid.
        """
        values: dict[str, FormValue | None] = {}
        one_is_enough = is_choice_or_text(fields)
        for number, shown in enumerate(fields, 1):
            wanted, problem = shown.raw, ""
            for _ in range(TRIES):
                said = await self._said(_field_question(put, shown, number, problem))
                if said == SKIP:
                    return Reply("decline", "the form was skipped")
                given = NOTHING if said == LEAVE else given_value(wanted, said)
                valid, errors = check_form((wanted,), given)
                if not errors:
                    break
                problem = line(errors[wanted.name])
            else:
                raise ValueError(f"no valid answer for {shown.label!r:.100}: {problem}")
            values.update(given)
            if one_is_enough and valid:
                break
        return Reply(values, "it was filled in")

    async def _said(self, put: ChannelQuestion) -> str:
        """Return the channel's answer.

        Raises:
            _Unanswered: It has no answer.
        """
        said = await begun("ask", self._channel.ask, self._to.user_id, put)
        if said is None:
            raise _Unanswered
        return said


def put_to_person(told: Asked, question: QuestionView, view: RunView, now: float) -> ChannelQuestion:
    """Return a question for a user who sees nothing else of the run.

    Args:
        told: The question as text.
        question: The question in the run's view.
        view: The run.
        now: Seconds since it began.
    """
    text = "\n".join(_text(told, line(view.agent) or "The agent"))
    code = "\n\n".join(_code(told, question, view))
    choices = [_choice(key) for key in keys_of(told) if key.answer is not None]
    if len(code) > CODE:
        text += (
            f"\nIt has {len(code):,} characters, of which {CODE:,} are shown, so it can only be denied here."
        )
        choices = [choice for choice in choices if choice.style == "reject"]
    return ChannelQuestion(
        id=question.id,
        text=text,
        code=code[:CODE],
        url=told.url,
        choices=tuple(choices),
        deadline=told.left(now),
    )


def _text(told: Asked, agent: str) -> Iterator[str]:
    what = told.said or told.title
    match told.asks:
        case "form":
            yield f"{agent} wants to know: {what}"
        case "url":
            yield f"{agent} wants a web page to be opened: {what}"
            yield f"It leads to {told.host or 'an unknown host'}."
        case "permission":  # pragma: no branch - there is no other
            call = told.call
            about = "" if call is None else f" ({f'{call.verb} {call.target}'.rstrip()})"
            yield f"{agent} asks for permission: {what}{about}"
    yield from told.about
    if told.more_about:
        yield f"… and {plural(told.more_about, 'more file')}"
    yield from told.verdicts


def _code(told: Asked, question: QuestionView, view: RunView) -> Iterator[str]:
    if told.command is not None:
        yield told.command
    tool = None if question.tool_id is None else view.tools.get(question.tool_id)
    for part in () if tool is None else tool.content:
        if isinstance(part, DiffContent):
            yield "\n".join(each.text for each in change_parts(part))
    if told.arguments:
        yield told.arguments


def _choice(key: Key) -> ChannelChoice:
    answer = key.answer
    accepts = key.key in ("y", "a") or answer == "accept"
    rejects = key.key in ("n", "d") or answer in ("deny", "decline")
    return ChannelChoice(
        id=key.key, label=key.label, style="accept" if accepts else "reject" if rejects else "other"
    )


def _field_question(put: ChannelQuestion, field: Field, number: int, problem: str) -> ChannelQuestion:
    """Return the question for a field of a form."""
    choices = [ChannelChoice(id=value, label=label) for value, label in field.choices]
    if field.raw.type == "boolean":
        choices = [ChannelChoice(id=word, label=word) for word in ("yes", "no")]
    if not field.raw.required:
        label = f"leave it at {field.default}" if field.default else "leave it empty"
        choices.append(ChannelChoice(id=LEAVE, label=label))
    choices.append(ChannelChoice(id=SKIP, label="skip the form", style="reject"))
    head = put.text if number == 1 else ""
    return replace(
        put,
        id=f"{put.id}.{number}",
        text="\n\n".join(filter(None, (problem, head, f"{field.label} ({field.hint})", field.description))),
        choices=tuple(choices),
        takes_text=field.raw.type not in ("boolean", "choice"),
        hint=field.hint,
    )
