"""An agent's questions as shown to the user, and their outcomes.

The user sees exactly what to approve: no part of a command is dropped or shortened, and invisible characters
are written as escapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from thinkwell._core.policy.arguments import COMMAND_KEYS, command_line, names_folder, telling
from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._display.diffs import changes_of
from thinkwell._display.paths import seen_from
from thinkwell._display.text import clean, exact, json_text, line
from thinkwell._display.tools import PLACES, bare_title, describe
from thinkwell._display.urls import url_host
from thinkwell.events import DiffContent
from thinkwell.questions import ChooseOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from thinkwell._display.diffs import FileChange
    from thinkwell._display.tools import Call
    from thinkwell._values.forms import FieldType, FormField
    from thinkwell.events import JsonValue, QuestionAnswered, QuestionOption, QuestionVerdict
    from thinkwell.questions import Verdict
    from thinkwell.view import AnswerView, QuestionView, RunView, ToolView

NAME: Final = 60
"""Most characters of the name of an option, a field or a decider."""

OFFERED: Final = 9
"""Choices of a field that are shown at a glance."""

WHY: Final = 500
"""Most characters of a reason."""

KNOWN: Final = 100
"""Questions whose texts are cached."""

COMPARED: Final = 200
"""Most searches for arguments in the changes of a call; if there are more, all are shown."""

EXPLAIN: Final = "e"
"""Prints all details of a question."""

FILL_IN: Final = "f"
"""Begins to fill in a form."""


_TEXTS: Final = re.compile("old|new|text|content|str|patch|insert|replace", re.IGNORECASE)
"""Names of arguments that are texts of a change."""

_KEYS: Final = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "d"}

_LABELS: Final = {
    "allow_once": "once",
    "allow_always": "always",
    "reject_once": "no",
    "reject_always": "never",
}

_PLAIN_NAMES: Final = frozenset(
    f"{word}{extra}"
    for word in ("allow", "accept", "approve", "yes", "reject", "deny", "decline", "no", "always", "never")
    for extra in ("", " once", " always", " allow", " reject", " deny", " it", " this time")
) | frozenset(("always allow", "always reject", "always deny", "just once", "once"))
"""Names of options that say no more than their kinds do."""

_OUTCOMES: Final = {
    "allow_once": "allowed",
    "allow_always": "allowed for good",
    "reject_once": "denied",
    "reject_always": "denied for good",
    "accept": "accepted",
    "decline": "declined",
}

_DECIDERS: Final = {
    "human": "elsewhere",
    "policy": "by the permission policy",
    "remembered": "",
    "handler": "by the server's program",
    "listener": "by the server's program",
    "supervisor": "by the supervisor",
    "deadline": "",
    "cancel": "",
    "letta": "in a Letta client",
}
"""The names of deciders for users."""

_FROM_OUTSIDE: Final = "answered from outside"
"""The reason of an answer that came without one."""

_REASONS: Final = {
    _FROM_OUTSIDE: "",
    'permissions="deny"': "it denies all that is asked",
    'permissions="allow"': "it allows all that is asked",
    "no rule matches; otherwise: deny": "no rule allows it",
    "no rule matches; otherwise: allow": "no rule forbids it",
    "no one who was asked answered it": "there is no one who may answer",
    "it was answered for the whole session": "it was answered before, for the whole session",
}
"""Clearer texts for some reasons."""

_TYPES: Final[dict[FieldType, str]] = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes or no",
    "choice": "one of these",
    "choices": "any of these",
    "unknown": "value",
}


class Key(NamedTuple):
    """A key with a meaning."""

    key: str
    """One character, in lower case. It follows from the meaning and not from the agent's name for it."""
    label: str
    """Its meaning, a clean line: ``once``, ``always``, ``no``, ``never``, and the agent's words if they say
    more."""
    answer: Verdict | ChooseOption | None = None
    """Its answer; ``None`` if it does not answer yet."""
    option: QuestionOption | None = None
    """The option that it chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form."""

    raw: FormField
    """The field itself. From the agent; not for display."""
    label: str
    """A clean line."""
    hint: str
    """Its constraints, a clean line: ``whole number, 1 to 10, required``."""
    description: str
    choices: tuple[tuple[str, str], ...]
    """The choices: the value to answer with, and its label."""
    default: str
    """Its initial value, as a clean line; may be empty."""

    @property
    def offered(self) -> str:
        """The choices, at a glance: a clean line, ``red · blue · … 3 more``, or empty."""
        labels = [label for _, label in self.choices[:OFFERED]]
        more = len(self.choices) - OFFERED
        return " · ".join([*labels, f"… {more:,} more"] if more > 0 else labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An open question."""

    id: str
    asks: Literal["permission", "form", "url"]
    title: str
    """The agent's text about it, as a clean line. The model may have written it."""
    said: str
    """The same exactly, of any number of lines; empty if the line has all of it."""
    call: Call | None
    """The tool call that it is about, in a few words."""
    command: str | None
    """The complete command, of any number of lines."""
    arguments: str
    """The other arguments of the call, as JSON of any number of lines; may be empty."""
    changes: tuple[FileChange, ...]
    """The changes of files, exactly."""
    about: tuple[str, ...]
    """The files of the call, or else its title, exactly, if nothing above describes it."""
    more_about: int
    """The number of further files."""
    url: str | None
    """The complete address of the page to open."""
    host: str
    """The address's host, in the form in which look-alikes are visible (``xn--…``)."""
    options: tuple[Key, ...]
    """The keys of the options that have one."""
    more_options: int
    """The number of options without one."""
    fields: tuple[Field, ...]
    verdicts: tuple[str, ...]
    """The verdicts so far: clean lines."""
    deadline: float | None
    """When it will be denied, in seconds from the start of the run."""

    @property
    def title_tells(self) -> bool:
        """Whether only the title describes the question."""
        return self.asks != "permission" or not (
            self.command is not None or self.changes or self.arguments or self.about
        )

    def same(self, other: Asked) -> bool:
        """Return whether the question is the same, apart from verdicts since."""
        return self == replace(other, verdicts=self.verdicts, deadline=self.deadline, call=self.call)

    def left(self, now: float) -> float | None:
        """Return the seconds left to answer; ``None`` without a deadline."""
        return None if self.deadline is None else max(self.deadline - now, 0.0)


def keys_of(asked: Asked) -> tuple[Key, ...]:
    """Return the meaning of the keys for a question: ``[y] once [n] no [e] explain``."""
    if asked.asks == "form":
        return (Key(FILL_IN, "fill in"), Key("n", "no", "decline"))
    if asked.asks == "url":
        show = Key(EXPLAIN, "show it to be copied")
        return (Key("y", "I have opened it", "accept"), Key("n", "no", "decline"), show)
    rejects = (each.option is not None and each.option.kind.startswith("reject") for each in asked.options)
    deny = () if any(rejects) else (Key("n", "no", "deny"),)  # a question can always be denied
    return (*asked.options, *deny, Key(EXPLAIN, "explain"))


def asked(question: QuestionView, view: RunView) -> Asked:
    """Return an open question as shown to the user."""
    tool = None if question.tool_id is None else view.tools.get(question.tool_id)
    raw = None if tool is None else tool.input
    command = None if tool is None else command_line(raw)
    changes = () if tool is None else changes_of(tool, view.cwd, exactly=True)
    arguments = "" if tool is None else other_arguments(tool, view.cwd, command=command is not None)
    told = command is not None or changes or arguments
    about = [] if tool is None or told else _about(tool, view.cwd)
    title = line(question.title)
    url = question.url
    return Asked(
        id=question.id,
        asks=question.asks,
        title=title,
        said="" if title == question.title else exact(question.title),
        call=None if tool is None else describe(tool, view.cwd),
        command=None if command is None else exact(command),
        arguments=arguments,
        changes=changes,
        about=tuple(map(exact, about[:PLACES])),
        more_about=len(about[PLACES:]),
        url=None if url is None else exact(url),
        host="" if url is None else url_host(url),
        options=(options := _choices(question.options)),
        more_options=len(question.options) - len(options),
        fields=tuple(map(_field, question.fields)),
        verdicts=tuple(map(verdict_words, question.verdicts)),
        deadline=question.deadline,
    )


class Putting:
    """Makes the texts of open questions as `asked` does, with a cache: long ones take long."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[QuestionView, ToolView | None, Asked]] = {}

    def put(self, question: QuestionView, view: RunView) -> Asked:
        """Return an open question as shown to the user now."""
        tool = None if question.tool_id is None else view.tools.get(question.tool_id)
        known = self._known.get(question.id)
        if known is None or known[0] != question or known[1] is not tool:
            if len(self._known) >= KNOWN:
                self._known.clear()
            known = self._known[question.id] = question, tool, asked(question, view)
        return known[2]


def answered(answer: AnswerView) -> str:
    """Return the outcome of a question as a clean line: ``denied by supervisor: it deletes files``."""
    outcome = (
        "withdrawn" if answer.choice is None else _OUTCOMES.get(answer.choice, line(answer.choice, NAME))
    )
    by = line(answer.by, NAME)
    why = "" if answer.why == _FROM_OUTSIDE else line(answer.why, WHY)
    told = f"{outcome} by {by}" if by and by != "cancel" else outcome
    return f"{told}: {why}" if why else told


class Outcome(NamedTuple):
    """The outcome of a question, for users who were not asked."""

    what: str
    """A clean line: ``denied``."""
    by: str
    """The decider, a clean line; empty if the reason names it."""
    why: str
    """A clean line, or empty."""


def outcome(answer: AnswerView) -> Outcome:
    """Return the outcome of a question."""
    by = line(answer.by, NAME)
    what = "withdrawn" if answer.choice is None else line(answer.choice, NAME)
    return Outcome(
        what=_OUTCOMES.get(answer.choice or "", what),
        by=_DECIDERS.get(by, by and f"by {by}"),
        why=_REASONS.get(answer.why, line(answer.why, WHY)),
    )


def allowed(answer: AnswerView | QuestionAnswered) -> bool | None:
    """Return whether the agent got what it asked for; ``None`` if the question was withdrawn."""
    if answer.choice is None:
        return None
    return answer.choice.startswith("allow") or answer.choice == "accept"


def verdict_words(verdict: QuestionVerdict) -> str:
    """Return a verdict on a question, as a clean line: ``supervisor: deny (it deletes files)``."""
    said = "no answer" if verdict.verdict is None else line(verdict.verdict, NAME).replace("_", " ")
    why = line(verdict.why, WHY)
    return f"{line(verdict.by, NAME)}: {said}" + (f" ({why})" if why else "")


def other_arguments(tool: ToolView, cwd: str, *, command: bool) -> str:
    """Return the arguments that are not shown elsewhere, exactly.

    Args:
        tool: The call.
        cwd: The session's folder.
        command: Whether they are those of a command, which is shown.
    """
    raw: JsonValue = telling(tool.input) if command else tool.input
    diffs = [part for part in tool.content if isinstance(part, DiffContent)]
    if is_object(raw) and command:
        raw = {key: value for key, value in raw.items() if not _is_of_command(key, value, cwd)}
    elif is_object(raw) and diffs and len(raw) * len(diffs) <= COMPARED:
        raw = {key: value for key, value in raw.items() if not _is_in_changes(key, value, diffs, cwd)}
    return exact(json_text(raw, "arguments that are nested too deep to be shown")) if raw else ""


def _about(tool: ToolView, cwd: str) -> list[str]:
    files = [seen_from(place.path, cwd) for place in tool.locations]
    return files or list(filter(None, [bare_title(tool)]))


def _is_of_command(key: str, value: JsonValue, cwd: str) -> bool:
    """Return whether the command line contains the argument, or it is only the session's folder."""
    if key in COMMAND_KEYS:
        return isinstance(value, str) or (is_array(value) and bool(value))
    if key == "args":
        return is_array(value)
    if key in ("env", "environment"):
        return is_object(value) or (is_array(value) and all(map(is_object, value)))
    return names_folder(key) and value == cwd


def _is_in_changes(key: str, value: JsonValue, diffs: Sequence[DiffContent], cwd: str) -> bool:
    """Return whether the argument is the file or the text of a change, or the session's folder."""
    if not isinstance(value, str):
        return False
    if names_folder(key):
        return value == cwd
    text = _TEXTS.search(key) is not None
    return any(
        value in (diff.path, seen_from(diff.path, cwd))
        or (text and (value in diff.new_text or value in (diff.old_text or "")))
        for diff in diffs
    )


def _choices(options: Sequence[QuestionOption]) -> tuple[Key, ...]:
    """Return the keys of the options that have one."""
    return tuple(
        Key(key, label_of(option, _LABELS), ChooseOption(option.id), option)
        for key, option in keyed(options)
        if key
    )


def keyed(options: Sequence[QuestionOption]) -> Iterator[tuple[str, QuestionOption]]:
    """Yield options with their keys: a letter for the first of each known kind, else a digit, or none."""
    taken: set[str] = set()
    for option in options:
        key = _KEYS.get(option.kind, "")
        if not key or key in taken:
            key = next((digit for digit in "123456789" if digit not in taken), "")
        taken.add(key)
        yield key, option


def label_of(option: QuestionOption, labels: Mapping[str, str]) -> str:
    """Return an option's label: by its kind, and by its name if that says more.

    Args:
        option: The option.
        labels: The labels of kinds.
    """
    name = line(option.name, NAME)
    label = labels.get(option.kind)
    if label is None:
        return name or line(option.kind, NAME)
    return label if not name or name.casefold().rstrip(".!") in _PLAIN_NAMES else f"{label}: {name}"


def _field(field: FormField) -> Field:
    return Field(
        raw=field,
        label=line(field.title or field.name, NAME),
        hint=", ".join(_hints(field)),
        description=clean(field.description[: 10 * WHY]).strip(),
        choices=tuple((each.value, line(each.title or each.value, NAME)) for each in field.choices),
        default=_default(field.default),
    )


def _hints(field: FormField) -> list[str]:
    hints = [_TYPES[field.type]]
    of = {"string": " characters", "choices": " of them"}.get(field.type, "")
    least, most = field.minimum, field.maximum
    if least is not None and most is not None:
        hints.append(f"{least:g} to {most:g}{of}")
    elif least is not None:
        hints.append(f"at least {least:g}{of}")
    elif most is not None:
        hints.append(f"at most {most:g}{of}")
    if field.format:
        hints.append(line(field.format, NAME))
    if field.required:
        hints.append("required")
    return hints


def _default(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if is_array(value):
        return line(", ".join(str(each) for each in value[:NAME]), WHY)
    return line(str(value), WHY) if isinstance(value, str | int | float) else ""
