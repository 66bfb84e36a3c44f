"""What an agent asks, and what may be answered.

A `PermissionQuestion` asks whether the agent may do something, a `FormQuestion` for values, a `UrlQuestion`
whether a web page may be opened. All three go the same way: the policy (for permissions), then each handler
of ``on_question`` in its order, then `ThoughtStream.answer`; the first answer counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from thinkwell._values.forms import FieldChoice, FormField, FormValue, check_form
from thinkwell.events import JsonValue, QuestionOption, ToolContent, ToolKind

__all__ = (
    "Answer",
    "ChooseOption",
    "FieldChoice",
    "FormField",
    "FormQuestion",
    "FormValue",
    "PermissionQuestion",
    "Question",
    "QuestionHandler",
    "QuestionOption",
    "Reply",
    "StopRun",
    "UrlQuestion",
    "Verdict",
    "check_form",
    "wait_for_answer",
)

Verdict: TypeAlias = Literal[
    "allow", "allow_session", "allow_always", "deny", "deny_session", "deny_always", "accept", "decline"
]
"""What may be said of a question in short.

``allow`` and ``deny`` are for this once. With ``…_session``, thinkwell remembers the answer for equal
questions of the session. With ``…_always``, the agent is told by an option for that, where it has one, and
remembers as it likes. ``accept`` and ``decline`` are other words for ``allow`` and ``deny``.
"""


class _Question(Struct, frozen=True, kw_only=True):
    id: str
    """Name of the question, unique within its agent's connection."""
    title: str
    """What the agent says of it. The model may have written it."""
    agent: str
    """Name of the agent that asks."""
    session_id: str | None = None
    """The agent's name for the session; ``None`` where the question belongs to no session, such as one that
    comes up in a login."""
    run_id: str | None = None
    """Name of the run; ``None`` between the turns of a session."""
    tool_id: str | None = None
    """The tool call that it is about, where the agent names one."""
    timeout: float | None = None
    """Seconds until it is denied, counted from when it was asked."""
    message: dict[str, JsonValue] | None = None
    """The whole message of an agent that speaks lines; ``None`` from one that speaks ACP."""


class PermissionQuestion(_Question, frozen=True, kw_only=True):
    """May the agent do this? All of it comes from the agent and is not to be trusted."""

    options: tuple[QuestionOption, ...]
    kind: ToolKind = "other"
    input: JsonValue = None
    """The call's arguments, where the agent shows them."""
    content: tuple[ToolContent, ...] = ()
    """What the call shows of itself, such as the change that it would make to a file."""
    name: str | None = None
    """The tool's own name, from agents that give it in a field for that."""
    server: str | None = None
    """Name of the MCP server whose tool it is, from agents that give it."""
    command: str | None = None
    """The command that would be run, from agents that give it in the arguments; never from the title."""
    paths: tuple[str, ...] = ()
    """Absolute paths of the files that the call names in arguments, locations and changes."""


class FormQuestion(_Question, frozen=True, kw_only=True):
    """The agent wants values. An answer maps the names of fields to them; it is checked before it is sent."""

    fields: tuple[FormField, ...]
    heading: str = ""
    """What the agent writes above the form."""
    description: str = ""
    """What the agent writes about the form."""


class UrlQuestion(_Question, frozen=True, kw_only=True):
    """The agent wants a web page to be opened, such as to log in somewhere.

    Show the whole URL before you open it, and open it in a browser of the user's. ``accept`` says that it was
    opened, not that anything was done there.
    """

    url: str
    host: str
    """The URL's host, empty where it has none."""


Question: TypeAlias = PermissionQuestion | FormQuestion | UrlQuestion
"""Anything that an agent asks."""


class ChooseOption(Struct, frozen=True):
    """The answer to a permission question by one of its very options."""

    option_id: str


class StopRun(Struct, frozen=True):
    """The answer that denies a question and ends its run, whose result raises `QuestionsStopped`."""

    reason: str


class Reply(Struct, frozen=True):
    """An answer with the reason for it, which goes on the log."""

    answer: bool | Verdict | ChooseOption | StopRun | Mapping[str, FormValue | None] | FormValue | None
    """Any answer. Where a handler of `thinkwell.listen` gives it, it may also be a text or another value."""
    why: str
    by: str | None = None
    """Who answers, for the log; by default it is the handler's name for itself."""


Answer: TypeAlias = bool | Verdict | ChooseOption | StopRun | Mapping[str, FormValue | None] | Reply
"""An answer. ``True`` and ``False`` mean ``allow`` and ``deny``; a mapping fills in a form, in which ``None``
leaves a field empty."""

QuestionHandler: TypeAlias = Callable[[Question], "Answer | Awaitable[Answer | None] | None"]
"""Answers a question; ``None`` leaves it to the next handler. A function that is not ``async`` runs in a
worker thread."""


async def wait_for_answer(question: Question, /) -> Answer | None:
    """Leave a question open, until its deadline, for `ThoughtStream.answer` and `Session.answer`.

    A handler for the end of a chain: ``on_question=[reviewer, wait_for_answer]``. Where `on_question` is not
    given and the run has no listener, ``permissions="ask"`` means this one.
    """
    raise NotImplementedError  # pragma: no cover - known by its name, and never called
