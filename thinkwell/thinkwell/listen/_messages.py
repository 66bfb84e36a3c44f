"""An agent's messages: a type and fields. With ACP they are made from events and questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from thinkwell import events as ev
from thinkwell._core.schema.json_schema import is_array
from thinkwell._display.changes import BlockGrown, CallBegun, CallChanged, CallEnded, ChangeReader
from thinkwell._display.plans import current
from thinkwell._lines.words import PIECE_FIELDS
from thinkwell.questions import FormQuestion, PermissionQuestion, UrlQuestion

if TYPE_CHECKING:
    from collections.abc import Collection

    from thinkwell._display.changes import Change
    from thinkwell.questions import FormField, Question
    from thinkwell.view import ToolView

ENDS: Final = frozenset({"result", "error"})
"""The types of the messages that end a run."""

ASKING: Final = frozenset({"question", "approval"})
"""The types of messages that need an answer."""


TYPES: Final = ("progress", "question", "approval", "partial", "log", "result", "error")
"""The usual types of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProgress:
    """The agent reports progress (``progress``)."""

    message: str
    percent: float | None = None
    stage: str | None = None
    """With ACP, the kind of a tool call, or ``plan``."""
    status: str | None = None
    """With ACP, the status of the tool call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentQuestion:
    """The agent asks a question (``question``)."""

    question: str
    context: str | None = None
    options: list[str] | None = None
    """The choices, if the agent offers any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentApproval:
    """The agent asks for approval (``approval``)."""

    description: str
    risk_level: str | None = None
    """The risk, as NDJSON agents report it; ACP has no field for it."""
    kind: str | None = None
    """The kind of tool, such as ``execute`` or ``edit``."""
    command: str | None = None
    """The command to run. Decide by this, not by the description, which the model wrote."""
    paths: list[str] | None = None
    """The files that it is about."""
    tool: str | None = None
    """The tool's own name, from agents that give it."""
    server: str | None = None
    """The MCP server whose tool it is, from agents that give it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """The result of the run (``result``)."""

    text: str = ""
    """Empty if the result is not a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFailure:
    """The error of the run (``error``)."""

    message: str
    code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    """A log message (``log``)."""

    message: str
    level: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPartial:
    """A piece of the agent's message text (``partial``)."""

    text: str


OTHER_NAMES: Final[dict[type, dict[str, tuple[str, ...]]]] = {
    AgentProgress: {"message": ("stage",)},
    AgentQuestion: {"question": ("message", "text")},
    AgentApproval: {"description": ("message", "question", "text")},
    AgentLog: {"message": ("text",)},
    AgentPartial: {"text": PIECE_FIELDS},
    AgentFailure: {},
}
"""Other names that NDJSON agents were seen to use for a class's fields."""


def as_read(annotation: object, fields: dict[str, ev.JsonValue]) -> dict[str, ev.JsonValue]:
    """Return a message with the fields of a class here: programs do not always use the same names.

    Args:
        annotation: The handler's annotation; for other classes the message is unchanged.
        fields: The message.
    """
    names = OTHER_NAMES.get(annotation) if isinstance(annotation, type) else None
    if names is None:
        return fields
    read = dict(fields)
    for name, others in names.items():
        if name not in read:
            found = next((other for other in others if isinstance(read.get(other), str)), None)
            if found is not None:
                read[name] = read[found]
    options, level = read.get("options"), read.get("level")
    if annotation is AgentQuestion and is_array(options):
        read["options"] = [
            f"{one}" if isinstance(one, int | float) and not isinstance(one, bool) else one for one in options
        ]
    if annotation is AgentFailure and not isinstance(read.get("code"), int):
        read.pop("code", None)
    if annotation is AgentLog and isinstance(level, int):
        read["level"] = f"{level}"
    return read


class Told(NamedTuple):
    """A message."""

    type: str
    fields: dict[str, ev.JsonValue]


# Questions


def asked(question: Question) -> Told:
    """Return a question as a message: for NDJSON agents, as the agent wrote it."""
    type_ = "approval" if isinstance(question, PermissionQuestion) else "question"
    if question.message is not None:
        return Told(type_, {name: value for name, value in question.message.items() if name != "type"})
    fields: dict[str, ev.JsonValue]
    match question:
        case PermissionQuestion():
            fields = {
                "description": question.title,
                "kind": question.kind,
                "command": question.command,
                "paths": list(question.paths),
                "input": question.input,
                "options": _plain(question.options),
                "server": question.server,
                "tool": question.name,
            }
        case FormQuestion():
            fields = {
                "question": question.title,
                "context": _context(question),
                "options": _options(question),
                "fields": _plain(question.fields),
            }
        case UrlQuestion():  # pragma: no branch - the last of the union
            fields = {"question": question.title, "url": question.url}
    fields |= {"id": question.id, "tool_id": question.tool_id}
    return Told(type_, {name: value for name, value in fields.items() if value is not None})


def _context(question: FormQuestion) -> str | None:
    """Return the form's text besides its title; for a form of one field, that field's."""
    only = question.fields[0].description if len(question.fields) == 1 else ""
    return "\n".join(text for text in (question.heading, question.description, only) if text) or None


def _options(question: FormQuestion) -> list[str] | None:
    """Return the form's choices, if it has one field with choices."""
    choosing = [field for field in question.fields if field.type in ("choice", "choices")]
    return choice_words(choosing[0]) if len(choosing) == 1 else None


def choice_words(field: FormField) -> list[str]:
    """Return the titles of a field's choices; their values, if titles are ambiguous."""
    titles = [choice.title for choice in field.choices]
    return titles if len(set(titles)) == len(titles) else [choice.value for choice in field.choices]


def _plain(values: object) -> ev.JsonValue:
    """Return values as JSON: tuples become lists."""
    return msgspec.json.decode(msgspec.json.encode(values))


# Events


class Narrator:
    """Makes messages from the events of an ACP run.

    Args:
        types: The types that have a handler.
    """

    def __init__(self, types: Collection[str]) -> None:
        self._log = "log" in types
        self._reader = ChangeReader()
        self.kinds: tuple[type[ev.ThoughtEvent], ...] = (
            *([ev.Message] if "partial" in types else ()),
            *([ev.ToolStart, ev.ToolUpdate, ev.ToolDone, ev.PlanUpdate] if "progress" in types else ()),
            *([ev.Notice] if self._log else ()),
        )
        """The kinds of events with such a message."""

    def message(self, event: ev.ThoughtEvent) -> Told | None:
        """Return the message of an event; ``None`` if it has none with a handler."""
        if not isinstance(event, self.kinds):
            return None
        told = None
        for change in self._reader.take(event):
            told = _told(change) or told
        return told

    def stderr(self, line: str) -> Told | None:
        """Return the message of a line of standard error."""
        return Told("log", {"message": line, "level": "info", "source": "stderr"}) if self._log else None


def _told(change: Change) -> Told | None:
    match change:
        case BlockGrown(block, text):
            fields: dict[str, ev.JsonValue] = {"text": text}
            return Told("partial", fields if block.id is None else {**fields, "message_id": block.id})
        case CallBegun(view=now):
            return _call(now)
        case (
            CallChanged(view=now, before=before, late=False) | CallEnded(view=now, before=before, late=False)
        ):
            same = (now.title, now.kind, now.status) == (before.title, before.kind, before.status)
            return None if same else _call(now)
        case ev.PlanUpdate():
            return _plan(change)
        case ev.Notice():
            return _notice(change)
        case _:
            return None


def _call(view: ToolView) -> Told:
    fields = {"message": view.title, "stage": view.kind, "status": view.status, "tool_id": view.id}
    return Told("progress", fields)


def _notice(event: ev.Notice) -> Told:
    fields: dict[str, ev.JsonValue] = {"message": event.title, "level": event.severity, "source": "agent"}
    if event.description is not None:
        fields["detail"] = event.description
    return Told("log", fields)


def _plan(event: ev.PlanUpdate) -> Told | None:
    entries = event.entries
    fields: dict[str, ev.JsonValue]
    if entries:
        done = sum(entry.status == "completed" for entry in entries)
        fields = {
            "message": entries[current(entries)].content,
            "percent": round(100 * done / len(entries), 1),
            "entries": _plain(entries),
        }
    elif event.markdown is not None:
        lines = (line.strip("#*- ") for line in event.markdown.splitlines())
        fields = {"message": next(filter(None, lines), ""), "markdown": event.markdown}
    elif event.uri is not None:
        fields = {"message": event.uri, "uri": event.uri}
    else:
        return None  # the plan was removed
    return Told("progress", {**fields, "stage": "plan"})
