"""What the formats of front ends have in common: a run, told as texts, tool calls and questions.

A format takes the entries of a run one by one and returns what is to be sent for each. It reads and waits for
nothing, and what it returns depends on nothing but the entries, so that a stream can be taken up again
anywhere: the same entries make the same frames.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

import msgspec

from thinkwell import events as ev
from thinkwell._display.changes import merged_tool, with_tokens
from thinkwell.view import TokenCounts, ToolView
from thinkwell.web._records import RunEnded, ShownError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from thinkwell.journal import RunRecord
    from thinkwell.web._records import LogEntry

__all__ = (
    "Call",
    "Chunk",
    "FrontEndFormat",
    "OpenQuestion",
    "as_json",
    "call_facts",
    "call_text",
    "clipped",
    "end_error",
    "is_allowed",
    "media",
    "plain",
    "plan_shown",
    "short",
)

Chunk: TypeAlias = dict[str, object]
"""What a format sends at once: a JSON object."""

Speech: TypeAlias = Literal["text", "reasoning"]

PIECE: Final = 32 * 1024
"""Characters of a text that are sent at once. What is longer is sent in several pieces."""

MOST_TEXT: Final = 1_000_000
"""Characters of a text that cannot be sent in pieces, such as a tool's output. One of the clients gives a
frame of 10 million up."""

MOST_MEDIA: Final = 8_000_000
"""The same, of a picture in base64."""

ID: Final = 200
"""Characters of an id. Agents make up the ids of tool calls."""

_MEDIA: Final = re.compile(r"(?:image/(?:png|jpeg|gif|webp)|audio/[a-z0-9.+-]{1,40})\Z")
"""What browsers show of a ``data:`` address without running anything of it."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}\Z")


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


class FrontEndFormat(ABC):
    """A format that front ends speak. Its subclasses say what is sent.

    Args:
        record: The run.
    """

    closing: ClassVar[bytes] = b""
    """What ends a stream, behind the last chunk, as the data of an event."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.step: int = 0
        """Number of the step of the message. Questions are put in the last one."""
        self._out: list[Chunk] = []
        self._opened = False
        self._repeating = False
        """Whether the agent repeats what was said in the session before."""
        self._speech: tuple[Speech, str | None] | None = None
        """What is being said, and the id of the message where the agent gives one."""
        self._calls: dict[str, Call] = {}
        """The last call of each id of the agent's."""
        self._ids: set[str] = set()
        self._questions: dict[str, OpenQuestion] = {}
        self._tokens: TokenCounts | None = None
        self._changes: dict[str, int] = {}
        """What was sent of changes to files, by what they are known as."""

    @property
    def open_questions(self) -> tuple[OpenQuestion, ...]:
        """The questions that wait for somebody's answer."""
        return tuple(question for question in self._questions.values() if question.is_put)

    def take(self, entry: LogEntry) -> list[Chunk]:
        """Take the next entry of the run, and return what is sent for it."""
        self._open()
        if isinstance(entry, RunEnded):
            self._end(entry)
        elif isinstance(entry, ev.ReplayStarted | ev.ReplayEnded):
            self._repeating = isinstance(entry, ev.ReplayStarted)
        elif not self._repeating:
            self._take(entry)
        out, self._out = self._out, []
        return out

    def pause(self) -> list[Chunk]:
        """End the stream where questions wait for answers that come with the next request."""
        self._open()
        self._silence()
        self._pauses()
        out, self._out = self._out, []
        return out

    def resume(self) -> None:
        """Begin the stream that goes on behind a pause. Its opening comes with the next entry."""
        self._opened = False

    def break_off(self, error: ShownError) -> list[Chunk]:
        """End the stream where the server cannot go on with it, though the run may."""
        self._open()
        self._silence()
        self._fails(error)
        out, self._out = self._out, []
        return out

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._opens()

    def _take(self, event: ev.ThoughtEvent) -> None:
        match event:
            case ev.Message():
                self._say("text", event)
            case ev.Thought():
                self._say("reasoning", event)
            case ev.ToolStart() | ev.ToolUpdate() | ev.ToolDone():
                self._tool(event)
            case ev.QuestionAsked() | ev.QuestionAnswered():
                self._question(event)
            case ev.UserMessage():
                pass  # who asks knows what he has said
            case _:
                if isinstance(event, ev.TurnStarted | ev.TurnEnded):
                    self._silence()
                if isinstance(event, ev.TurnEnded) and event.usage is not None:
                    self._tokens = with_tokens(self._tokens or TokenCounts(), event.usage)
                self._other(event)

    # Texts

    def _say(self, speech: Speech, event: ev.Message | ev.Thought) -> None:
        if not isinstance(event.content, ev.TextContent):
            self._silence()
            self._media(event.content, event.seq)
            return
        if not event.text:
            return
        key = (speech, event.message_id)
        if self._speech != key:
            self._silence()
            self._speech = key
            self._speech_begins(speech, event.seq)
        for at in range(0, len(event.text), PIECE):
            self._speech_goes_on(speech, event.text[at : at + PIECE])

    def _silence(self) -> None:
        """End what is being said."""
        if self._speech is not None:
            speech, self._speech = self._speech[0], None
            self._speech_ends(speech)

    # Tool calls

    def _tool(self, event: ev.ToolStart | ev.ToolUpdate | ev.ToolDone) -> None:
        self._silence()
        call = self._calls.get(event.id)
        if call is None or (call.ended and isinstance(event, ev.ToolStart)):
            view = merged_tool(ToolView(id=event.id), event)
            call = self._calls[event.id] = Call(self._call_id(event.id, event.seq), view, self.step)
            self._call_begins(call)
        else:
            before, call.view = call.view, merged_tool(call.view, event)
            if not isinstance(event, ev.ToolDone):
                self._call_goes_on(call, before)
        if isinstance(event, ev.ToolDone):
            self._call_ends(call, event.status)
            call.ended = event.status

    def _call_id(self, name: str, seq: int) -> str:
        """Return what a call is to be known as.

        Args:
            name: What the agent calls it.
            seq: The entry that tells of it first.
        """
        name = id_ = short(name)
        number = 2
        while id_ in self._ids:
            id_, number = f"{name}#{number}", number + 1
        self._ids.add(id_)
        return id_

    def _new_changes(self, call: Call) -> Iterator[tuple[str, Literal["diff", "terminal"], Chunk]]:
        """Return the changes to files, and the terminals, of a call that were not sent yet."""
        for part in call.view.content:
            if isinstance(part, ev.DiffContent):
                id_, data = f"{call.id}:{part.path}", _diff(call, part)
                if self._changes.get(id_) != hash(part):
                    self._changes[id_] = hash(part)
                    yield id_, "diff", data
            elif isinstance(part, ev.TerminalContent):
                id_ = f"{call.id}:{part.terminal_id}"
                if id_ not in self._changes:
                    self._changes[id_] = 0
                    yield id_, "terminal", {"toolCallId": call.id, "terminalId": part.terminal_id}

    @property
    def _open_calls(self) -> Iterator[Call]:
        return (call for call in self._calls.values() if call.ended is None)

    # Questions

    def _question(self, event: ev.QuestionAsked | ev.QuestionAnswered) -> None:
        self._silence()
        if isinstance(event, ev.QuestionAsked):
            call = None if event.tool_id is None else self._calls.get(event.tool_id)
            asked = self._questions[event.id] = OpenQuestion(event, call)
            self._asked(asked)
            return
        question = self._questions.pop(event.id, None)
        if question is None:
            return
        if question.call is not None and question.asked.asks == "permission":
            question.call.denied = not is_allowed(event)
        self._answered(question, event)

    # The end

    def _end(self, end: RunEnded) -> None:
        self._silence()
        for call in self._open_calls:  # the agent has not told how they ended
            self._call_ends(call, _UNTOLD.get(end.status, "cancelled"))
            call.ended = "cancelled"
        self._questions.clear()
        self._ends(end)

    # What is sent

    def _send(self, chunk: Mapping[str, object]) -> None:
        self._out.append(dict(chunk))

    @abstractmethod
    def _opens(self) -> None:
        """A stream begins."""

    @abstractmethod
    def _speech_begins(self, speech: Speech, seq: int) -> None:
        """The agent says something, or thinks."""

    @abstractmethod
    def _speech_goes_on(self, speech: Speech, delta: str) -> None: ...

    @abstractmethod
    def _speech_ends(self, speech: Speech) -> None: ...

    @abstractmethod
    def _media(self, content: ev.ContentBlock, seq: int) -> None:
        """The agent says something that is no text."""

    @abstractmethod
    def _call_begins(self, call: Call) -> None: ...

    @abstractmethod
    def _call_goes_on(self, call: Call, before: ToolView) -> None:
        """There is news of a call, which may have ended already.

        Args:
            call: The call.
            before: What was known of it.
        """

    @abstractmethod
    def _call_ends(self, call: Call, status: ev.FinalStatus) -> None:
        """A call has ended. Where the agent has not told so, its view does not."""

    @abstractmethod
    def _asked(self, question: OpenQuestion) -> None: ...

    @abstractmethod
    def _answered(self, question: OpenQuestion, answer: ev.QuestionAnswered) -> None: ...

    @abstractmethod
    def _other(self, event: ev.ThoughtEvent) -> None:
        """Anything else has happened."""

    @abstractmethod
    def _pauses(self) -> None:
        """The stream ends where questions wait."""

    @abstractmethod
    def _fails(self, error: ShownError) -> None:
        """Nothing more comes, for a reason that the client is told."""

    @abstractmethod
    def _ends(self, end: RunEnded) -> None:
        """The run has ended."""


def short(name: str) -> str:
    """Return an id that is not too long, and no other's."""
    if len(name) <= ID:
        return name
    return f"{name[: ID - 20]}…{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def clipped(text: str, most: int = MOST_TEXT) -> str:
    """Return a text that is not too long, and says so where it was."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most} more characters)"


def call_text(view: ToolView) -> str:
    """Return what a tool has put out, as a text: what the agent shows of it, or else the raw output."""
    texts = [_block_text(part.content) for part in view.content if isinstance(part, ev.BlockContent)]
    text = "\n".join(filter(None, texts))
    if text or view.output is None:
        return clipped(text)
    return clipped(view.output if isinstance(view.output, str) else as_json(view.output))


def as_json(value: ev.JsonValue) -> str:
    """Return a JSON value of an agent's as a text; empty where it is nested too deep for that."""
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:  # pragma: no cover - only before Python 3.12: what was read is written again
        return ""


def call_facts(view: ToolView) -> Chunk:
    """Return what is known of a call beside its name, input and output."""
    facts: Chunk = {"kind": view.kind, "status": view.status}
    if view.title:
        facts["title"] = clipped(view.title)
    if view.locations:
        facts["locations"] = msgspec.to_builtins(view.locations)
    if view.parent is not None:
        facts["parent"] = view.parent
    return facts


def plan_shown(event: ev.PlanUpdate) -> Chunk:
    """Return a plan as clients get it."""
    plan: Chunk = {"id": event.id, "entries": list(msgspec.to_builtins(event.entries))}
    if event.markdown is not None:
        plan["markdown"] = clipped(event.markdown)
    if event.uri is not None:
        plan["uri"] = event.uri
    return plan


def plain(event: ev.ThoughtEvent) -> Chunk:
    """Return an event without its kind, number and time."""
    fields: Chunk = msgspec.to_builtins(event)
    for name in ("type", "seq", "at"):
        fields.pop(name, None)
    return fields


def _diff(call: Call, part: ev.DiffContent) -> Chunk:
    old = None if part.old_text is None else clipped(part.old_text)
    return {"toolCallId": call.id, "path": part.path, "oldText": old, "newText": clipped(part.new_text)}


def _block_text(block: ev.ContentBlock) -> str:
    match block:
        case ev.TextContent():
            return block.text
        case ev.EmbeddedResource():
            return block.text or ""
        case _:
            return ""


def media(block: ev.ContentBlock) -> tuple[str, str] | None:
    """Return the media type of a picture or sound, and its base64, where browsers can show it."""
    if not isinstance(block, ev.ImageContent | ev.AudioContent) or len(block.data) > MOST_MEDIA:
        return None
    kind = block.mime_type.lower()
    if _MEDIA.match(kind) is None or _BASE64.match(block.data) is None:
        return None
    return kind, block.data


def is_allowed(answer: ev.QuestionAnswered) -> bool:
    """Return whether an answer lets the agent do what it asked for."""
    return answer.choice is not None and answer.choice.startswith(("allow", "accept"))


def end_error(end: RunEnded) -> ShownError | None:
    """Return why a run has failed; ``None``: it has completed, or was cancelled."""
    if end.status == "interrupted":
        return ShownError(name="Interrupted", message="the server has ended in the middle of the run")
    if end.status != "failed":
        return None
    return end.error or ShownError(name="ServerError", message="the run could not go on")
