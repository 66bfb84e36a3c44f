"""All details of a question, for users who want to see them before they answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from thinkwell._display.compare import compare
from thinkwell._display.text import exact, json_text
from thinkwell.events import DiffContent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._display.questions import Asked
    from thinkwell.view import ToolView

EXPLAINED: Final = 200_000
"""Most characters that are shown. A longer text says so: it is not read, and no terminal keeps it."""

PartKind: TypeAlias = Literal["title", "text", "name", "code", "@", "+", "-"]
"""The kind of a part: the question, a sentence, a heading, code, or a line of a diff."""


class Part(NamedTuple):
    """A part of an explanation."""

    kind: PartKind
    text: str
    """One or several lines in which every character is visible."""


def explanation(asked: Asked, tool: ToolView | None) -> tuple[Part, ...]:
    """Return the question, the complete input of the tool call and the changes that it would make.

    Nothing is dropped: invisible characters are written as escapes.
    """
    parts: list[Part] = []
    room = EXPLAINED
    for part in _parts(asked, tool):
        if len(part.text) > room:
            more = f"… and {len(part.text) - room:,} more characters, which are not shown, or even more"
            return (*parts, part._replace(text=part.text[:room]), Part("text", more))
        parts.append(part)
        room -= len(part.text)
    return tuple(parts)


def _parts(asked: Asked, tool: ToolView | None) -> Iterator[Part]:
    yield Part("title", asked.said or asked.title)
    if asked.url is not None:
        yield Part("code", asked.url)
        return
    if tool is None:
        yield Part("text", "The agent shows no tool call for it.")
        return
    name = f" {exact(tool.name)}" if tool.name else ""
    yield Part("text", f"Tool call{name}, of kind {tool.kind}")
    for location in tool.locations:
        line = "" if location.line is None else f":{location.line}"
        yield Part("text", f"at {exact(location.path)}{line}")
    if asked.command is not None:
        yield Part("name", "Command:")
        yield Part("code", asked.command)
    yield Part("name", "Input:")
    yield Part("code", _json(tool))
    for part in tool.content:
        if isinstance(part, DiffContent):
            yield from change_parts(part)
    yield from (Part("text", verdict) for verdict in asked.verdicts)
    for each in asked.options:
        if each.option is not None and each.option.name:
            yield Part("text", f"[{each.key}] {exact(each.option.name)}")


def _json(tool: ToolView) -> str:
    if tool.input is None:
        return "the agent does not show it"
    return exact(json_text(tool.input, "it is nested too deep to be shown"))


def change_parts(diff: DiffContent) -> Iterator[Part]:
    """Yield every line that would be removed or added, completely."""
    old, new = (diff.old_text or "").splitlines(), diff.new_text.splitlines()
    yield Part("name", f"{'Change of' if diff.old_text is not None else 'New file'} {exact(diff.path)}:")
    for change in compare(old, new).changes:
        yield Part("@", f"@@ line {change.new_from + 1}")
        yield from (Part("-", f"- {exact(row)}") for row in old[change.old_from : change.old_to])
        yield from (Part("+", f"+ {exact(row)}") for row in new[change.new_from : change.new_to])
