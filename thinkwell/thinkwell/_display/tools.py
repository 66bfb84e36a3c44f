"""Tool calls in a few words: the action, its object and its outcome."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from thinkwell._core.policy.arguments import command_line
from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._display.calls import RESULT, returns_result
from thinkwell._display.cells import clip
from thinkwell._display.diffs import changes_of
from thinkwell._display.numbers import plural
from thinkwell._display.paths import relative
from thinkwell._display.text import clean, line
from thinkwell.events import BlockContent, DiffContent, EmbeddedResource, TextContent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkwell.events import ContentBlock, JsonValue, ToolKind
    from thinkwell.view import RunView, ToolView

CallStatus: TypeAlias = Literal["pending", "running", "done", "failed", "cancelled"]
"""The status of a tool call, in the words of displays."""

OUTPUT: Final = 20_000
"""Most characters of a tool's output, from its end."""

TARGET: Final = 500
"""Most characters of a target. The full command of a question is shown elsewhere."""

NAME: Final = 32
"""Most characters of a tool's own name."""

LAST: Final = 40
"""Columns of what a sub-agent said or did last."""

NAMED: Final = 2
"""Files that a fold names; the others are counted."""

ICONS: Final[dict[CallStatus, str]] = {
    "done": "✔",
    "failed": "✘",
    "cancelled": "⊘",
    "running": "▸",
    "pending": "·",
}

_VERBS: Final[dict[ToolKind, tuple[str, str, str]]] = {
    "read": ("read", "reading", "reading"),
    "edit": ("edit", "editing", "editing"),
    "delete": ("delete", "deleting", "deleting"),
    "move": ("move", "moving", "moving"),
    "search": ("search", "searching for", "searching"),
    "execute": ("run", "running", "running a command"),
    "think": ("think", "thinking about", "thinking"),
    "fetch": ("fetch", "fetching", "fetching"),
    "switch_mode": ("mode", "switching to", "switching the mode"),
    "other": ("tool", "using", "using a tool"),
}
"""By kind: the action, the action on a target, and the action alone."""

_STATUSES: Final[dict[str, CallStatus]] = {
    "pending": "pending",
    "in_progress": "running",
    "completed": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}

_PATHS: Final = (
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "file",
    "filename",
    "target_file",
    "notebook_path",
    "paths",
    "uri",
)
_PATTERNS: Final = ("pattern", "query", "regex", "q", "glob", "search", "search_term")
_ADDRESSES: Final = ("url", "uri", "urls", "query", "prompt")
_SOURCES: Final = ("source", "src", "from", "old_path", "source_path")
_TARGETS: Final = ("destination", "dst", "dest", "to", "new_path", "destination_path", "target")
_OUTPUTS: Final = (
    "formatted_output",
    "aggregated_output",
    "output",
    "stdout",
    "text",
    "content",
    "result",
    "error",
)
_EXIT_CODES: Final = ("exit_code", "exitCode", "exit_status", "returncode")

_FENCE: Final = re.compile(r"(`{3,10})[\w-]{0,30}")

PLACES: Final = 100
"""Most places of a call that are checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The text for a tool call, or for several in one line. Every text is a clean line."""

    icon: str
    verb: str
    """``read``, ``edit``, ``run``, …, or the tool's own name."""
    target: str
    """The file, the command, …; relative to the session's folder; may be empty."""
    kind: ToolKind
    status: CallStatus
    seconds: float | None = None
    """Its duration; ``None`` while it runs."""
    detail: str = ""
    """The outcome: ``+42 −3``, ``exit 1``; empty if there is nothing to say."""
    started_at: float = 0.0
    """Seconds from the start of the run."""
    doing: str = ""
    """The same as a phrase: ``running pytest -q``."""


def status_of(tool: ToolView) -> CallStatus:
    """Return the status of a call."""
    return _STATUSES[tool.status]


def describe(tool: ToolView, cwd: str) -> Call:
    """Return the text for a tool call.

    Args:
        tool: The call.
        cwd: The session's folder, to which paths are relative.
    """
    status = status_of(tool)
    name = tool_name(tool)
    verb = verb_of(tool)
    _, doing, alone = _VERBS[tool.kind]
    target = line(_target(tool, cwd), TARGET)
    if returns_result(tool):
        target, alone = "", "returning the result"
    elif tool.kind in ("other", "think") and name:
        doing, alone = f"using {name}:", f"using {name}"
        target = "" if target in (name, tool.name) else target
    else:
        target = _without_verb(target, verb)
    return Call(
        icon=ICONS[status],
        verb=verb,
        target=target,
        kind=tool.kind,
        status=status,
        seconds=None if tool.ended_at is None else max(tool.ended_at - tool.started_at, 0.0),
        detail=_detail(tool, cwd),
        started_at=tool.started_at,
        doing=f"{doing} {target}" if target else alone,
    )


def called(id_: str | None, view: RunView) -> str:
    """Return the verb and the target of a call; empty if there is no such call, or its target is unknown."""
    tool = None if id_ is None else view.tools.get(id_)
    call = None if tool is None else describe(tool, view.cwd)
    return f"{call.verb} {call.target}" if call is not None and call.target else ""


def verb_of(tool: ToolView) -> str:
    """Return the verb of a call, or the tool's own name."""
    if returns_result(tool):
        return RESULT
    name = tool_name(tool) if tool.kind in ("other", "think") else ""
    return name or _VERBS[tool.kind][0]


def bare_title(tool: ToolView) -> str:
    """Return the title of a call as the agent sent it, without the verb that is shown before it."""
    return _without_verb(_title(tool.title), _VERBS[tool.kind][0])


def folds(tool: ToolView) -> bool:
    """Return whether a call may share a line with its neighbours: it has only looked at something."""
    return tool.kind in ("read", "search") and tool.status == "completed"


def fold(tools: Sequence[ToolView], cwd: str) -> Call:
    """Return the text for calls that share a line: ``read models.py, db.py (+4)``.

    Args:
        tools: One or more, in order.
        cwd: The session's folder.
    """
    calls = [describe(tool, cwd) for tool in tools]
    if len(calls) == 1:
        return calls[0]
    kind: ToolKind = "read" if any(call.kind == "read" for call in calls) else "search"
    named = list(dict.fromkeys(call.target for call in calls if call.kind == kind))
    searches = sum(call.kind == "search" for call in calls) if kind == "read" else 0
    more = [f"+{len(named) - NAMED}"] if len(named) > NAMED else []
    more += [plural(searches, "search", "searches")] if searches else []
    ended = [call.started_at + call.seconds for call in calls if call.seconds is not None]
    began = min(call.started_at for call in calls)
    target = ", ".join(named[:NAMED]) + (f" ({', '.join(more)})" if more else "")
    verb, doing, _ = _VERBS[kind]
    return Call(
        icon=ICONS["done"],
        verb=verb,
        target=target,
        kind=kind,
        status="done",
        seconds=max(ended) - began if ended else None,
        started_at=began,
        doing=f"{doing} {target}",
    )


def tool_name(tool: ToolView) -> str:
    """Return the tool's own name without its server's, as a line; empty if it is unknown."""
    name = line(tool.name or "", 10 * NAME)
    pieces = name.split("__")
    if len(pieces) == 3 and pieces[0] == "mcp" and all(pieces):
        name = pieces[2]
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


# Targets


def _target(tool: ToolView, cwd: str) -> str:
    found = ""
    raw = tool.input
    match tool.kind:
        case "execute":
            found = command_line(raw) or ""
        case "move":
            found = _moved(raw, cwd) or _files(tool, cwd)
        case "read" | "edit" | "delete":
            found = _files(tool, cwd)
        case "search":
            found = _searched(raw, cwd)
        case "fetch":
            found = _first(raw, _ADDRESSES)
        case _:
            pass
    return found or _title(tool.title)


def _title(title: str) -> str:
    title = title.strip()
    ticked = len(title) > 2 and title[0] == title[-1] == "`" and "`" not in title[1:-1]
    return title[1:-1] if ticked else title


def _without_verb(target: str, verb: str) -> str:
    """Return a title without the word that is shown before it."""
    first, _, rest = target.partition(" ")
    return rest if rest and first.casefold() == verb else target


def _first(raw: JsonValue, keys: Sequence[str]) -> str:
    """Return the first text under one of these keys."""
    if not is_object(raw):
        return ""
    for key in keys:
        value = raw.get(key)
        if is_array(value) and value:
            value = value[0]
        if isinstance(value, str) and value:
            return value
    return ""


def _files(tool: ToolView, cwd: str) -> str:
    paths = [_place(place.path, place.line, cwd) for place in tool.locations[:PLACES]]
    if not paths:
        diffs = (part.path for part in tool.content if isinstance(part, DiffContent))
        paths = [relative(path, cwd) for path in islice(diffs, PLACES)]
    if not paths:
        found = _first(tool.input, _PATHS)
        paths = [relative(found, cwd)] if found else []
    paths = list(dict.fromkeys(paths))
    more = len(paths) - NAMED
    return ", ".join(paths[:NAMED]) + (f" (+{more})" if more > 0 else "")


def _place(path: str, number: int | None, cwd: str) -> str:
    return relative(path, cwd) + (f":{number}" if number is not None and number > 1 else "")


def _moved(raw: JsonValue, cwd: str) -> str:
    source, target = _first(raw, _SOURCES), _first(raw, _TARGETS)
    return f"{relative(source, cwd)} → {relative(target, cwd)}" if source and target else ""


def _searched(raw: JsonValue, cwd: str) -> str:
    pattern = _first(raw, _PATTERNS)
    if not pattern:
        return ""
    where = _first(raw, ("path", "dir_path", "directory", "include"))
    inside = relative(where, cwd) if where else "."
    return f'"{line(pattern, TARGET)}"' + (f" in {inside}" if inside != "." else "")


# Outcomes


def _detail(tool: ToolView, cwd: str) -> str:
    changes = changes_of(tool, cwd)
    if changes:
        added, removed = sum(c.added for c in changes), sum(c.removed for c in changes)
        return " ".join([f"+{added}"] * (added > 0) + [f"−{removed}"] * (removed > 0)) or "±0"
    code = exit_code(tool)
    return f"exit {code}" if code else ""


def exit_code(tool: ToolView) -> int | None:
    """Return the exit code of a command, if the agent reports it."""
    raw = tool.output
    if is_object(raw):
        for key in _EXIT_CODES:
            code = raw.get(key)
            if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 32:
                return code
    return None


def output_of(tool: ToolView, limit: int = OUTPUT) -> str:
    """Return a tool's output, as clean text: its end, if it is long.

    Text that a program overwrote in a terminal, such as a progress bar, is shown in its last state.
    """
    text = whole_output(tool)
    tail = text[-4 * limit :]
    shown = clean("\n".join(_overwritten(row) for row in tail.replace("\r\n", "\n").split("\n"))).strip("\n")
    if len(shown) <= limit and len(tail) == len(text):
        return shown
    shown = shown[-limit:]
    return "…" + shown[shown.find("\n") :] if "\n" in shown else f"…{shown}"


def whole_output(tool: ToolView) -> str:
    """Return a tool's complete output, as it came; not for display."""
    texts = [_block(part.content) for part in tool.content if isinstance(part, BlockContent)]
    return _unfenced("\n".join(filter(None, texts)) or _raw_output(tool.output))


def _unfenced(text: str) -> str:
    """Return the content of a fence, if it is the whole text."""
    first, _, rest = text.strip().partition("\n")
    fence = _FENCE.fullmatch(first)
    if fence is None or not rest.endswith(fence[1]):
        return text
    return rest.removesuffix(fence[1]).removesuffix("\n")


def _overwritten(row: str) -> str:
    return row.rstrip("\r").rpartition("\r")[2]


def _block(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case EmbeddedResource():
            return block.text or f"[{block.mime_type or 'data'}: {block.uri}]"
        case _:
            return f"[{getattr(block, 'mime_type', None) or getattr(block, 'uri', '')}]"


def _raw_output(raw: JsonValue) -> str:
    if raw is None:
        return ""
    if isinstance(raw, str):
        return raw
    if is_object(raw):
        texts = [raw[key] for key in _OUTPUTS if isinstance(raw.get(key), str) and raw[key]]
        if "stderr" in raw and isinstance(raw["stderr"], str) and raw["stderr"]:
            texts = [*texts[:1], raw["stderr"]]
        if texts:
            return "\n".join(texts[:2])
    try:
        return json.dumps(raw, ensure_ascii=False)
    except RecursionError:
        return "…"


def subagent_words(calls: int, text: str, did: str) -> str:
    """Return what stands in the row of a sub-agent.

    Args:
        calls: How many calls it has made.
        text: What it has said.
        did: The title of its last call, which counts where it has said nothing.
    """
    count = plural(calls, "call") if calls else ""
    last = text.rstrip()[-1_000:].rpartition("\n")[2] or did
    return " · ".join(filter(None, (count, clip(line(last).strip(), LAST))))


def agent_words(view: RunView, id_: str) -> str:
    """Return what stands in the row of a call where it is a sub-agent; empty: it is none."""
    agent = view.agents.get(id_)
    if agent is None:
        return ""
    did = view.tools[agent.calls[-1]].title if agent.calls else ""
    return subagent_words(len(agent.calls), agent.text, did)
