"""The questions of an agent, and their answers.

A `PermissionQuestion` asks whether the agent may do something, a `FormQuestion` for values, a `UrlQuestion`
to open a web page. All three are put to the policy (for permissions), then to each handler of
``on_question`` in order, then wait for `ThoughtStream.answer`; the first answer counts.
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
"""An answer in one word.

``allow`` and ``deny`` count once. With ``…_session``, thinkwell remembers the answer for equal
questions of the session. With ``…_always``, the agent gets its own option for that, if it has one, and
may remember the answer. ``accept`` and ``decline`` mean the same as ``allow`` and ``deny``.
"""


class _Question(Struct, frozen=True, kw_only=True):
    id: str
    """The id of the question, unique within its agent's connection."""
    title: str
    """The agent's title for it. The model may have written it."""
    agent: str
    """The name of the agent that asks."""
    session_id: str | None = None
    """The agent's id for the session; ``None`` if the question belongs to no session, such as one during a
    login."""
    run_id: str | None = None
    """The id of the run; ``None`` between the turns of a session."""
    tool_id: str | None = None
    """The tool call that it is about, if the agent names one."""
    timeout: float | None = None
    """Seconds until it is denied, counted from when it was asked."""
    message: dict[str, JsonValue] | None = None
    """The whole message of an NDJSON agent; ``None`` from an ACP agent."""


class PermissionQuestion(_Question, frozen=True, kw_only=True):
    """May the agent do this? Everything in it comes from the agent: do not trust it."""

    options: tuple[QuestionOption, ...]
    kind: ToolKind = "other"
    input: JsonValue = None
    """The call's arguments, if the agent shows them."""
    content: tuple[ToolContent, ...] = ()
    """The call's preview, such as the change that it would make to a file."""
    name: str | None = None
    """The tool's own name, if the agent reports it in a separate field."""
    server: str | None = None
    """The name of the MCP server that has the tool, if the agent reports it."""
    command: str | None = None
    """The command to run, if the agent reports it in the arguments; never from the title."""
    paths: tuple[str, ...] = ()
    """Absolute paths of the files that the call names in arguments, locations and changes."""


class FormQuestion(_Question, frozen=True, kw_only=True):
    """The agent asks for values. Answer with a mapping from field names to values, which is validated."""

    fields: tuple[FormField, ...]
    heading: str = ""
    """The agent's heading for the form."""
    description: str = ""
    """The agent's description of the form."""


class UrlQuestion(_Question, frozen=True, kw_only=True):
    """The agent asks you to open a web page, such as to log in.

    Show the whole URL before you open it, and open it in the user's own browser. ``accept`` says that it was
    opened, not that anything was done there.
    """

    url: str
    host: str
    """The URL's host; empty if it has none."""


Question: TypeAlias = PermissionQuestion | FormQuestion | UrlQuestion
"""Any question of an agent."""


class ChooseOption(Struct, frozen=True):
    """Answers a permission question with one of its own options."""

    option_id: str


class StopRun(Struct, frozen=True):
    """Denies a question and ends its run, whose result raises `QuestionsStopped`."""

    reason: str


class Reply(Struct, frozen=True):
    """An answer with a reason, which is logged."""

    answer: bool | Verdict | ChooseOption | StopRun | Mapping[str, FormValue | None] | FormValue | None
    """Any answer. From a handler of `thinkwell.listen` it may also be a text or another value."""
    why: str
    by: str | None = None
    """Who answers, for the log; by default the handler's own name."""


Answer: TypeAlias = bool | Verdict | ChooseOption | StopRun | Mapping[str, FormValue | None] | Reply
"""An answer. ``True`` and ``False`` mean ``allow`` and ``deny``; a mapping fills in a form, in which ``None``
leaves a field empty."""

QuestionHandler: TypeAlias = Callable[[Question], "Answer | Awaitable[Answer | None] | None"]
"""Answers a question; ``None`` leaves it to the next handler. A function that is not ``async`` runs in a
worker thread."""


async def wait_for_answer(question: Question, /) -> Answer | None:
    """Leave a question open, until its deadline, for `ThoughtStream.answer` and `Session.answer`.

    Use it as the last handler: ``on_question=[reviewer, wait_for_answer]``. Without `on_question` and
    without a listener, ``permissions="ask"`` uses this handler.
    """
    raise NotImplementedError  # pragma: no cover - known by its name, and never called
