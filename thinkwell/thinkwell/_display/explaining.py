"""Everything that there is to a question, for who wants to know before answering."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from thinkwell._display.compare import compare
from thinkwell._display.text import exact
from thinkwell.events import DiffContent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._display.questions import Asked
    from thinkwell.view import ToolView

EXPLAINED: Final = 200_000
"""Characters that are shown at most. What is longer says so: it is not read, and no terminal keeps it."""


def explanation(asked: Asked, tool: ToolView | None) -> str:
    """Return what is asked, the whole input of the tool call and the changes that it would make.

    Nothing in it is dropped: what does not show is written as an escape.
    """
    parts: list[str] = []
    length = 0
    for part in _parts(asked, tool):
        parts.append(part)
        length += len(part) + 1
        if length > EXPLAINED:
            break
    text = "\n".join(parts)
    if len(text) > EXPLAINED:
        more = len(text) - EXPLAINED
        text = f"{text[:EXPLAINED]}\n… and {more:,} more characters, which are not shown, or even more"
    return f"\n{text}\n\n"


def _parts(asked: Asked, tool: ToolView | None) -> Iterator[str]:
    yield asked.said or asked.title
    if asked.url is not None:
        yield asked.url
        return
    if tool is None:
        yield "The agent shows no tool call for it."
        return
    name = f" {exact(tool.name)}" if tool.name else ""
    yield f"Tool call{name}, of kind {tool.kind}"
    for location in tool.locations:
        yield f"at {exact(location.path)}" + ("" if location.line is None else f":{location.line}")
    if asked.command is not None:
        yield f"Command:\n{asked.command}"
    yield f"Input:\n{_json(tool)}"
    for part in tool.content:
        if isinstance(part, DiffContent):
            yield from change_lines(part)
    yield from asked.verdicts
    yield from (f"[{each.key}] {each.name}" for each in asked.options if each.name)


def _json(tool: ToolView) -> str:
    if tool.input is None:
        return "the agent does not show it"
    try:
        return exact(json.dumps(tool.input, ensure_ascii=False, indent=2))
    except (RecursionError, ValueError):
        return "it is nested too deep to be shown"


def change_lines(diff: DiffContent) -> Iterator[str]:
    """Yield every line that would be taken away or come in, whole."""
    old, new = (diff.old_text or "").splitlines(), diff.new_text.splitlines()
    yield f"{'Change of' if diff.old_text is not None else 'New file'} {exact(diff.path)}:"
    for change in compare(old, new).changes:
        yield f"@@ line {change.new_from + 1}"
        yield from (f"- {exact(row)}" for row in old[change.old_from : change.old_to])
        yield from (f"+ {exact(row)}" for row in new[change.new_from : change.new_to])
