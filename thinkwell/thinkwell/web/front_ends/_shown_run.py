"""A run as front ends get it: texts, tool calls, questions and their answers.

It reads and waits for nothing, and depends on nothing but the entries of the run, so that a stream can be
taken up again anywhere: the same entries make the same frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from thinkwell import events as ev
from thinkwell._display import changes as ch
from thinkwell.web._records import RunEnded
from thinkwell.web.front_ends._facts import ID, clipped, is_allowed, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from thinkwell.view import TokenCounts, ToolView
    from thinkwell.web._records import LogEntry
    from thinkwell.web.front_ends._facts import Chunk

Speech: TypeAlias = Literal["text", "reasoning"]

_SPEECH: Final[Mapping[ch.BlockKind, Speech]] = {"message": "text", "thought": "reasoning"}
"""The parts for what is said. None for the user: the client knows what it has sent."""

PIECE: Final = 32 * 1024
"""Characters of a text that are sent at once. What is longer is sent in several pieces."""

_UNTOLD: Final[Mapping[str, ev.FinalStatus]] = {"completed": "completed", "failed": "failed"}
"""How a call has ended of which nothing was heard until the end of its run. Clients wait for each."""


@dataclass(slots=True, eq=False)
class Call:
    """A tool call."""

    id: str
    """What clients know it as: no other call of the run has that id."""
    view: ToolView
    step: int = 0
    """The step of the message in which it was shown first."""
    shown: Literal["start", "input", "output"] = "start"
    """How much of it clients know."""
    denied: bool = False
    changes: dict[str, int] = field(default_factory=dict)
    """What was sent of changes to files and of terminals, by what they are known as."""
    ended: ev.FinalStatus | None = None
    """How it has ended, where it has."""

    @property
    def name(self) -> str:
        """The tool's name, or at least what sort of tool it is."""
        return clipped(self.view.name or self.view.kind, ID)


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that has no answer yet."""

    asked: ev.QuestionAsked
    call: Call | None
    """The tool call that it is about, where that is known."""

    @property
    def id(self) -> str:
        """Its name."""
        return self.asked.id

    @property
    def stands_alone(self) -> bool:
        """Whether it is about no tool call that goes on."""
        return self.call is None or self.call.ended is not None

    @property
    def is_put(self) -> bool:
        """Whether it was put to anybody. The others are decided by the policy, at once."""
        return self.asked.timeout is not None

    def shown(self, answer: ev.QuestionAnswered | None = None) -> Chunk:
        """Return it as clients get it, with its answer where there is one."""
        asked = self.asked
        shown: Chunk = {"id": asked.id, "title": clipped(asked.title), "asks": asked.asks}
        if asked.options:
            shown["options"] = list(msgspec.to_builtins(asked.options))
        if asked.fields:
            shown["fields"] = list(msgspec.to_builtins(asked.fields))
        if asked.url is not None:
            shown["url"] = asked.url
        if self.call is not None:
            shown["toolCallId"] = self.call.id
        if asked.timeout is not None:
            shown["timeout"] = asked.timeout
        if answer is not None:
            shown["answer"] = {"choice": answer.choice, "by": answer.by, "why": clipped(answer.why)}
        return shown


class SpeechBegins(Struct, frozen=True):
    """The agent says something, or thinks. A part that had ended begins again: clients cannot reopen it."""

    speech: Speech
    seq: int


class SpeechGoesOn(Struct, frozen=True):
    """More of it."""

    speech: Speech
    delta: str


class SpeechEnds(Struct, frozen=True):
    """Something else comes next."""

    speech: Speech


class CallBegins(Struct, frozen=True):
    """A tool call appears for the first time."""

    call: Call


class CallGoesOn(Struct, frozen=True):
    """There is news of a call, which may have ended already."""

    call: Call
    before: ToolView


class CallEnds(Struct, frozen=True):
    """A call has ended. Where the agent has not told so, its view does not."""

    call: Call
    status: ev.FinalStatus


class Asked(Struct, frozen=True):
    """A question was asked."""

    question: OpenQuestion


class Answered(Struct, frozen=True):
    """A question was answered."""

    question: OpenQuestion
    answer: ev.QuestionAnswered


Told: TypeAlias = (
    SpeechBegins
    | SpeechGoesOn
    | SpeechEnds
    | ch.Media
    | CallBegins
    | CallGoesOn
    | CallEnds
    | Asked
    | Answered
    | ev.ThoughtEvent
    | RunEnded
)
"""What a front end is told. Of an event that has no form here, the event itself."""


class ShownRun:
    """What clients know of a run.

    Args:
        name_call: Returns what a call is known as, of what the agent calls it and the entry that began it.
            A number is added where another call of the run has that id.
    """

    def __init__(self, name_call: Callable[[str, int], str] = lambda name, _: name) -> None:
        self.calls: dict[int, Call] = {}
        self.last = 0
        """The last entry."""
        self._name_call = name_call
        self._reader = ch.ChangeReader()
        self._speech: tuple[Speech, str | None] | None = None
        """What is being said, and the id of the message where the agent gives one."""
        self._numbers: dict[str, int] = {}
        """The last call of each id of the agent's."""
        self._ids: set[str] = set()
        self._questions: dict[str, OpenQuestion] = {}

    @property
    def tokens(self) -> TokenCounts | None:
        """What the turns that have ended took."""
        return self._reader.tokens

    @property
    def open_questions(self) -> tuple[OpenQuestion, ...]:
        """The questions that wait for an answer."""
        return tuple(question for question in self._questions.values() if question.is_put)

    @property
    def open_calls(self) -> Iterator[Call]:
        """The tool calls that go on."""
        return (call for call in self.calls.values() if call.ended is None)

    def take(self, entry: LogEntry) -> Iterator[Told]:
        """Take the next entry, and yield what it tells. Each is to be sent before the next is taken."""
        self.last = entry.seq
        if isinstance(entry, RunEnded):
            yield from self._end(entry)
            return
        for change in self._reader.take(entry):
            if self._reader.repeating or isinstance(change, ev.ReplayEnded):
                continue  # what was said in the session before
            match change:
                case ch.BlockGrown():
                    yield from self._say(change)
                case ch.BlockBegun() | ch.BlockEnded():
                    pass  # a plan, which stands elsewhere, does not cut what is said around it in two
                case ch.Media() if change.kind == "user":
                    pass
                case ch.Media() | ev.TurnStarted() | ev.TurnEnded():
                    yield from self.silence()
                    yield change
                case ch.CallBegun() | ch.CallChanged() | ch.CallEnded():
                    yield from self.silence()
                    yield from self._call(change)
                case ev.QuestionAsked() | ev.QuestionAnswered():
                    yield from self._question(change)
                case _:
                    yield change

    def silence(self) -> Iterator[Told]:
        """End what is being said."""
        if self._speech is not None:
            (speech, _), self._speech = self._speech, None
            yield SpeechEnds(speech)

    def _say(self, change: ch.BlockGrown) -> Iterator[Told]:
        speech = _SPEECH.get(change.block.kind)
        if speech is None:
            return
        if self._speech != (key := (speech, change.block.id)):
            yield from self.silence()
            self._speech = key
            yield SpeechBegins(speech, change.seq)
        for at in range(0, len(change.text), PIECE):
            yield SpeechGoesOn(speech, change.text[at : at + PIECE])

    def _call(self, change: ch.CallBegun | ch.CallChanged | ch.CallEnded) -> Iterator[Told]:
        call = self.calls.get(change.number)
        begins = call is None
        if call is None:  # it began now, or in the session before
            call = Call(self._call_id(change.view.id, change.seq), change.view)
            self.calls[change.number] = call
            self._numbers[change.view.id] = change.number
            yield CallBegins(call)
        call.view = change.view
        match change:
            case ch.CallChanged(before=before) if not begins:
                yield CallGoesOn(call, before)
            case ch.CallEnded(status=status):
                yield CallEnds(call, status)
                call.ended = status
            case _:
                pass

    def _call_id(self, name: str, seq: int) -> str:
        name = id_ = short(self._name_call(short(name), seq))
        number = 2
        while id_ in self._ids:
            id_, number = f"{name}#{number}", number + 1
        self._ids.add(id_)
        return id_

    def _question(self, event: ev.QuestionAsked | ev.QuestionAnswered) -> Iterator[Told]:
        yield from self.silence()
        if isinstance(event, ev.QuestionAsked):
            number = self._numbers.get(event.tool_id or "")
            call = None if number is None else self.calls[number]
            asked = self._questions[event.id] = OpenQuestion(event, call)
            yield Asked(asked)
            return
        question = self._questions.pop(event.id, None)
        if question is None:
            return
        if question.call is not None and question.asked.asks == "permission":
            question.call.denied = not is_allowed(event)
        yield Answered(question, event)

    def _end(self, end: RunEnded) -> Iterator[Told]:
        yield from self.silence()
        for call in self.open_calls:  # the agent has not told how they ended
            yield CallEnds(call, _UNTOLD.get(end.status, "cancelled"))
            call.ended = "cancelled"
        self._questions.clear()
        yield end


def new_changes(call: Call) -> Iterator[tuple[str, Literal["diff", "terminal"], Chunk]]:
    """Yield the changes to files, and the terminals, of a call that were not sent yet."""
    for part in call.view.content:
        if isinstance(part, ev.DiffContent):
            id_ = f"{call.id}:{part.path}"
            if call.changes.get(id_) != hash(part):
                call.changes[id_] = hash(part)
                old = None if part.old_text is None else clipped(part.old_text)
                texts = {"oldText": old, "newText": clipped(part.new_text)}
                yield id_, "diff", {"toolCallId": call.id, "path": part.path, **texts}
        elif isinstance(part, ev.TerminalContent):
            id_ = f"{call.id}:{part.terminal_id}"
            if id_ not in call.changes:
                call.changes[id_] = 0
                yield id_, "terminal", {"toolCallId": call.id, "terminalId": part.terminal_id}
