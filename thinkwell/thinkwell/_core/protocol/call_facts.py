"""What an agent wants to do, from the data of a call. Titles are not facts: models write many of them."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from thinkwell._core.policy.arguments import COMMAND_KEYS, command_line, names_folder, snake
from thinkwell._core.policy.paths import MOST_PATHS, absolute
from thinkwell._core.protocol.own_tools import CODEX_INPUT, named_in_meta, read_title
from thinkwell._core.protocol.updates import tool_contents, tool_locations
from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell.events import DiffContent, JsonValue, Location, ToolContent, ToolKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.protocol.tool_calls import ToolCall
    from thinkwell_acp import schema as s


class CallFacts(Struct, frozen=True, kw_only=True):
    """The known facts about a tool call for which an agent asks permission."""

    title: str
    kind: ToolKind
    input: JsonValue
    content: tuple[ToolContent, ...]
    locations: tuple[Location, ...]
    name: str | None
    """The tool's own name; without its server's name, if that is known."""
    server: str | None
    """The MCP server whose tool it is."""
    command: str | None
    """The command line."""
    paths: tuple[str, ...]
    """Absolute paths of all files that it names. Any ``..`` stays, because its meaning depends on links."""


def facts_of(call: s.ToolCallUpdate, known: ToolCall | None, log: RunLog, cwd: str) -> CallFacts:
    """Gather the facts about a call.

    Args:
        call: The request's data, which overrides earlier data.
        known: The earlier updates of the call with this id. Some agents reuse ids, so a call that has ended
            is ignored.
        log: The log with the call's start, if it is used.
        cwd: The session's folder.
    """
    if known is not None and (known.done or known.started_in is not log):
        known = None
    kind = call.kind or (known.kind if known else "other")
    title = (known.title if known else "") if call.title is None else call.title
    raw = call.raw_input
    # opencode asks with an empty object before it knows the arguments.
    if (raw is None or raw == {}) and known and known.input is not None:
        raw = known.input
    content = tool_contents(call.content) if call.content else (known.content if known else ())
    locations = tool_locations(call.locations) if call.locations else (known.locations if known else ())
    tool = _tool(call, known, title, raw)
    return CallFacts(
        title=title,
        kind=kind,
        input=raw,
        content=content,
        locations=locations,
        name=tool.name,
        server=tool.server,
        command=None if tool.server is not None else command_line(raw),
        paths=_paths(raw, content, locations, cwd),
    )


# The tool


class _Tool(NamedTuple):
    name: str | None
    server: str | None


def _tool(call: s.ToolCallUpdate, known: ToolCall | None, title: str, raw: JsonValue) -> _Tool:
    vendor = (call.meta or {}).get("claudeCode")
    meta: dict[str, JsonValue] = vendor if is_object(vendor) else {}
    names = {name for name in (call.name, *named_in_meta(call)) if isinstance(name, str) and name}
    if not names and known and known.name:
        names = {known.name}
    if len(names) > 1:
        return _Tool(None, None)
    host = meta.get("mcpServer")
    server = host.get("name") if is_object(host) else None
    for name in names:
        return _split(name, server if isinstance(server, str) and server else None)
    # Only agents based on codex show both like this. Others may have such arguments, but not such a title.
    if is_object(raw) and raw.keys() == CODEX_INPUT:
        host, tool = raw["server"], raw["tool"]
        if isinstance(host, str) and isinstance(tool, str) and read_title(title, host, tool) is not None:
            return _Tool(tool, host)
    return _Tool(None, None)


def _split(name: str, server: str | None) -> _Tool:
    """Split the server's name off a name such as ``mcp__SERVER__TOOL``, if its length is certain."""
    if server is not None:
        written = re.sub(r"[^A-Za-z0-9_-]", "_", server)
        return _Tool(name.removeprefix(f"mcp__{written}__"), server)
    pieces = name.split("__")
    if len(pieces) == 3 and pieces[0] == "mcp" and all(pieces):
        return _Tool(pieces[2], pieces[1])
    return _Tool(name, None)


# The paths

_PATH_KEYS: Final = re.compile(
    r"(.*[_-])?(path|file|filename|dir|directory|folder|cwd|workdir|root|src|dst|dest|destination|source|target"
    r"|uri)(_?name)?s?",
    re.IGNORECASE,
)
_TEXT_KEYS: Final = re.compile(
    r"((old|new|file|insert)_?)?(str|string|text|content|contents|body|diff|patch|prompt|message|description|query"
    r"|code|explanation|reason|thought|title)",
    re.IGNORECASE,
)
_ROOTED: Final = re.compile(r"[/\\~]|[A-Za-z]:[/\\]|file:|(.*[/\\])?\.\.([/\\]|$)", re.IGNORECASE)
_PATCHED: Final = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |(?:---|\+\+\+) (?:[ab]/)?)([^\t\r\n]+)",
    re.MULTILINE,
)
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://(?!.*[/\\]\.\.([/\\]|$))", re.DOTALL)
"""Not a file's path, unless there is a folder named ``https:``. With ``..`` it needs no folder."""


KEY_LENGTH: Final = 100
"""Characters at the end of an argument's name that are checked, once for each text under it."""


def _paths(
    raw: JsonValue, content: tuple[ToolContent, ...], locations: tuple[Location, ...], cwd: str
) -> tuple[str, ...]:
    """Return every path that a call names, rather too many: more paths never allow more.

    If there are too many to check, one more entry is the root of all.
    """
    named = [location.path for location in locations]
    named += [part.path for part in content if isinstance(part, DiffContent)]
    folders = [cwd]
    for key, value in _texts(raw):
        if names_folder(key):
            folders.append(_absolute(value, cwd))
        if _is_path(key, value):
            named.append(value)
        named += [path for path in _PATCHED.findall(value) if path != "/dev/null"]
    named, folders = list(dict.fromkeys(filter(None, named))), list(dict.fromkeys(folders))
    paths = (_absolute(path, folder) for path in named for folder in folders)
    found = tuple(dict.fromkeys(islice(paths, MOST_PATHS)))
    return found if next(paths, None) is None else (*found, "/")


def _is_path(key: str, value: str) -> bool:
    written = snake(key)
    if _URL.match(value):
        return value.lower().startswith("file:")
    if _PATH_KEYS.fullmatch(written):
        return True
    return _ROOTED.match(value) is not None and not _TEXT_KEYS.fullmatch(written) and key not in COMMAND_KEYS


def _absolute(path: str, folder: str) -> str:
    if path.lower().startswith("file:"):
        with suppress(ValueError):  # no address in the brackets: the text is used as written
            path = unquote(urlsplit(path).path)
    return absolute(path, folder)


def _texts(raw: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield each text in the arguments with its key."""
    waiting: list[tuple[str, JsonValue]] = [("", raw)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str):
            yield key[-KEY_LENGTH:], value
        elif is_array(value):
            waiting += [(key, item) for item in value]
        elif is_object(value):
            waiting += value.items()
            by_path = key in ("changes", "files")  # codex-acp
            waiting += [("path" if by_path else "", name) for name in value]
