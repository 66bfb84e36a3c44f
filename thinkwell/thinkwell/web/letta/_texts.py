"""Events as texts, where Letta's messages have only texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell import events as ev
from thinkwell._display.diffs import changes_of
from thinkwell.view import ToolView
from thinkwell.web.front_ends._facts import as_json

if TYPE_CHECKING:
    from thinkwell.web._records import ShownError


def block_text(block: ev.ContentBlock) -> str:
    """Return a text for a content block."""
    match block:
        case ev.TextContent():
            return block.text
        case ev.ResourceLink():
            return f"[{block.title or block.name}]({block.uri})"
        case ev.EmbeddedResource():
            return f"[{block.uri}]" if block.text is None else block.text
        case ev.ImageContent():
            return f"[image: {block.mime_type}]"
        case _:
            return f"[audio: {block.mime_type}]"


def return_text(call: ToolView) -> str:
    """Return the outcome of a tool call."""
    parts: list[str] = []
    for content in call.content:
        if isinstance(content, ev.BlockContent):
            parts.append(block_text(content.content))
        elif isinstance(content, ev.TerminalContent):
            parts.append(f"[terminal {content.terminal_id}]")
    diffs = tuple(content for content in call.content if isinstance(content, ev.DiffContent))
    parts += _diff_texts(diffs)
    if not parts and call.output is not None:
        parts.append(call.output if isinstance(call.output, str) else as_json(call.output))
    return "\n".join(parts)


def _diff_texts(diffs: tuple[ev.DiffContent, ...]) -> list[str]:
    texts: list[str] = []
    for change in changes_of(ToolView(id="", content=diffs), ""):
        rows = [f"--- {change.path}", f"+++ {change.path}"]
        for hunk in change.hunks:
            rows.append("@@")
            rows += [f"{row.sign}{row.text}" for row in hunk.lines]
        texts.append("\n".join(rows))
    return texts


def plan_arguments(event: ev.PlanUpdate) -> str:
    """Return a plan as the arguments of a call."""
    arguments: dict[str, object] = {"id": event.id} if event.id != "main" else {}
    arguments["plan"] = [
        {"step": entry.content, "status": entry.status, "priority": entry.priority}
        for entry in (() if event.removed else event.entries)
    ]
    if event.markdown is not None:
        arguments["markdown"] = event.markdown
    if event.uri is not None:
        arguments["uri"] = event.uri
    return as_json(arguments)


def error_type(error: ShownError) -> str:
    """Return the client's name for an error: ``agent_exited`` for `AgentExited`."""
    letters = [f"_{letter.lower()}" if letter.isupper() else letter for letter in error.name]
    return "".join(letters).lstrip("_")
