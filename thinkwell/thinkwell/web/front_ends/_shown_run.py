"""A run for front ends: texts, tool calls, questions and their answers.

It does no I/O, and depends only on the entries of the run, so that a stream can be resumed anywhere: the same
entries make the same frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._display import changes as ch
from thinkwell._display.questions import allowed
from thinkwell.web._records import RunEnded
from thinkwell.web.front_ends._facts import ID, clipped, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from thinkwell.view import TokenCounts, ToolView
    from thinkwell.web._records import LogEntry
    from thinkwell.web.front_ends._facts import Chunk

Speech: TypeAlias = Literal["text", "reasoning"]

_SPEECH: Final[Mapping[ch.BlockKind, Speech]] = {"message": "text", "thought": "reasoning"}
"""The parts of messages. None is for the user: the client has the user's messages."""

PIECE: Final = 32 * 1024
"""Characters of a text in one frame. Longer texts are split."""

_UNTOLD: Final[Mapping[str, ev.FinalStatus]] = {"completed": "completed", "failed": "failed"}
"""The outcome of a call that had none at the end of its run. Clients wait for each."""


@dataclass(slots=True, eq=False)
class Call:
    """A tool call."""

    id: str
    """Its id for clients, unique in the run."""
    view: ToolView
    step: int = 0
    """The step of the message where it was first shown."""
    shown: Literal["start", "input", "output"] = "start"
    """How much of it clients have."""
    denied: bool = False
    changes: dict[str, int] = field(default_factory=dict)
    """The changes to files and the terminals that were sent, by id."""
    ended: ev.FinalStatus | None = None
    """Its outcome, if it has one."""

    @property
    def name(self) -> str:
        """The tool's name, or at least its kind."""
        return clipped(self.view.name or self.view.kind, ID)


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An open question."""

    asked: ev.QuestionAsked
    call: Call | None
    """The tool call that it is about, if known."""

    @property
    def id(self) -> str:
        """Its name."""
        return self.asked.id

    @property
    def stands_alone(self) -> bool:
        """Whether it belongs to no running tool call."""
        return self.call is None or self.call.ended is not None

    @property
    def is_put(self) -> bool:
        """Whether it was asked. Others are decided by the policy, at once."""
        return self.asked.timeout is not None

    def shown(self, answer: ev.QuestionAnswered | None = None) -> Chunk:
        """Return it for clients, with its answer if there is one."""
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


class Said(Struct, frozen=True):
    """The agent begins, continues or ends a message or a thought.

    A part that had ended begins again: clients cannot reopen it.
    """

    speech: Speech
    seq: int
    """The entry with which it begins."""
    stage: Literal["start", "delta", "end"]
    text: str = ""
    """The next piece, for ``delta``."""


class CallBegins(Struct, frozen=True):
    """Show a tool call for the first time."""

    call: Call


class CallGoesOn(Struct, frozen=True):
    """Update a call, which may have ended already."""

    call: Call
    before: ToolView


class CallEnds(Struct, frozen=True):
    """End a call. If the agent has not reported that, its view does not have it."""

    call: Call
    status: ev.FinalStatus


class Asked(Struct, frozen=True):
    """Ask a question."""

    question: OpenQuestion


class Answered(Struct, frozen=True):
    """Answer a question."""

    question: OpenQuestion
    answer: ev.QuestionAnswered


Told: TypeAlias = (
    Said | ch.Media | CallBegins | CallGoesOn | CallEnds | Asked | Answered | ev.ThoughtEvent | RunEnded
)
"""The changes for a front end; for an event without one, the event itself."""


class ShownRun:
    """The state of a run that clients have.

    Args:
        name_call: Returns the id of a call for clients, given the agent's id and the entry that began it. A
            number is added if another call of the run has that id.
    """

    def __init__(self, name_call: Callable[[str, int], str] = lambda name, _: name) -> None:
        self.calls: dict[int, Call] = {}
        self.last = 0
        """The last entry."""
        self._name_call = name_call
        self._reader = ch.ChangeReader()
        self._said: Said | None = None
        """The beginning of the current text."""
        self._source: str | None = None
        """The id of its message, if the agent gives one."""
        self._numbers: dict[str, int] = {}
        """The last call for each id of the agent."""
        self._ids: set[str] = set()
        self._questions: dict[str, OpenQuestion] = {}

    @property
    def tokens(self) -> TokenCounts | None:
        """The usage of the turns that have ended."""
        return self._reader.tokens

    @property
    def open_questions(self) -> tuple[OpenQuestion, ...]:
        """The open questions."""
        return tuple(question for question in self._questions.values() if question.is_put)

    @property
    def open_calls(self) -> Iterator[Call]:
        """The running tool calls."""
        return (call for call in self.calls.values() if call.ended is None)

    def take(self, entry: LogEntry) -> Iterator[Told]:
        """Take the next entry, and yield its changes. Send each before taking the next."""
        self.last = entry.seq
        if isinstance(entry, RunEnded):
            yield from self._end(entry)
            return
        for change in self._reader.take(entry):
            if self._reader.repeating or isinstance(change, ev.ReplayEnded):
                continue  # earlier messages of the session
            match change:
                case ch.BlockGrown():
                    yield from self._say(change)
                case ch.BlockBegun() | ch.BlockEnded():
                    pass  # a plan stands elsewhere, and does not split the text around it
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
        """End the current text."""
        if self._said is not None:
            said, self._said = self._said, None
            yield replace(said, stage="end")

    def _say(self, change: ch.BlockGrown) -> Iterator[Told]:
        speech = _SPEECH.get(change.block.kind)
        if speech is None:
            return
        said = self._said
        if said is None or (said.speech, self._source) != (speech, change.block.id):
            yield from self.silence()
            said, self._source = Said(speech, change.seq, "start"), change.block.id
            self._said = said
            yield said
        for at in range(0, len(change.text), PIECE):
            yield replace(said, stage="delta", text=change.text[at : at + PIECE])

    def _call(self, change: ch.CallBegun | ch.CallChanged | ch.CallEnded) -> Iterator[Told]:
        call = self.calls.get(change.number)
        begins = call is None
        if call is None:  # it began now, or earlier in the session
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
            question.call.denied = not allowed(event)
        yield Answered(question, event)

    def _end(self, end: RunEnded) -> Iterator[Told]:
        yield from self.silence()
        for call in self.open_calls:  # the agent has not reported their outcomes
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
