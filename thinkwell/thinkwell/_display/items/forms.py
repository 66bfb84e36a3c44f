"""Open questions as nodes, with everything that matters for an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from thinkwell._display import numbers, questions
from thinkwell._display.items.nodes import element, safe_link
from thinkwell._display.items.rows import change, hunk, shortened
from thinkwell._display.text import exact, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell._display.diffs import FileChange
    from thinkwell._display.items.nodes import Node
    from thinkwell._display.questions import Asked
    from thinkwell.events import JsonValue
    from thinkwell.view import QuestionView, RunView

OPTIONS: Final = 50
"""Most options of a question with buttons."""

TITLE: Final = 8_000
"""Most characters of a title."""

COMMAND: Final = 100_000
"""Most characters of a description."""

_LABELS: Final = {
    "allow_once": "Allow once",
    "allow_always": "Always allow",
    "reject_once": "Deny",
    "reject_always": "Always deny",
}


def form(question: QuestionView, view: RunView) -> Node:
    """Return an open question.

    Its options are ``[key, label, answer, kind]``, where the kind is ``allow``, ``deny`` or ``other``.
    """
    asked = questions.asked(question, view)
    attributes: dict[str, JsonValue] = {
        "id": question.id,
        "asks": question.asks,
        "label": exact(shortened(question.title, TITLE)) or "The agent asks for permission",
        "options": options(question),
    }
    if question.fields:
        fields: list[dict[str, JsonValue]] = msgspec.to_builtins(list(question.fields))
        hints = [
            {"label": each.label, "hint": each.hint, "description": each.description} for each in asked.fields
        ]
        attributes["fields"] = [{**field, **hint} for field, hint in zip(fields, hints, strict=True)]
    if question.deadline is not None:
        attributes["deadline"] = round(question.deadline, 3)
        attributes["since"] = round(question.asked_at, 3)
    return element("form", question.asks, *about(asked, question), attributes=attributes)


def about(asked: Asked, question: QuestionView) -> Sequence[Node]:
    """Return the exact subject of a question."""
    parts: list[Node] = []
    if asked.url is not None and question.url is not None:
        leads = "It is not certain where that leads, so it is not opened from here."
        parts.append(element("div", "address", asked.url))
        parts.append(element("div", "", f"It leads to {asked.host}." if asked.host else leads))
        if asked.host and safe_link(question.url):
            parts.append(element("a", "button", "Open the page", attributes={"href": question.url}))
    for label, text in (("Command that would be run", asked.command), ("Arguments", asked.arguments)):
        if text:
            parts.append(element("pre", "wrap", shortened(text, COMMAND), attributes={"label": label}))
    parts += map(whole_change, asked.changes)
    if not any(line(each) == asked.title for each in asked.about):
        parts += [element("div", "mono", each) for each in asked.about]
        if asked.more_about:
            parts.append(element("div", "dim", f"… {numbers.plural(asked.more_about, 'more file')}"))
    parts += [element("div", "dim", verdict) for verdict in asked.verdicts]
    return parts


def whole_change(changed: FileChange) -> Node:
    """Return a file's change with its hunks."""
    return element("div", "", change(changed, *(hunk(each, changed.path) for each in changed.hunks)))


def options(question: QuestionView) -> list[JsonValue]:
    """Return the possible answers with their keys, which follow from an option's meaning."""
    if question.asks == "url":
        return [["y", "I have opened it", "accept", "allow"], ["n", "No", "decline", "deny"]]
    if question.asks == "form":
        return [["n", "Decline", "decline", "deny"]]
    choices: list[JsonValue] = []
    for key, option in questions.keyed(question.options[:OPTIONS]):
        kind = "allow" if option.kind.startswith("allow") else "other"
        kind = "deny" if option.kind.startswith("reject") else kind
        choices.append([key, questions.label_of(option, _LABELS), {"option": option.id}, kind])
    if not any(option.kind.startswith("reject") for option in question.options):
        choices.append(["n", "Deny", "deny", "deny"])  # a question can always be denied
    return choices
