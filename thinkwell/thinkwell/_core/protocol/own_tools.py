"""Recognise calls of our own tools by what an agent shows of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from thinkwell._core.policy.arguments import command_line
from thinkwell._core.schema.json_schema import AGENT_EXTRAS, declared, is_object
from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell._values.tool_titles import JOINT, WORD, WORDS
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thinkwell._core.protocol.tool_calls import ToolCall, ToolCalls
    from thinkwell.events import JsonValue, ToolKind
    from thinkwell_acp.mcp import ToolServer, ToolSpec

CODEX_INPUT: Final = frozenset(("server", "tool", "arguments"))
"""The arguments that codex-acp shows for every call of an MCP tool."""

NAMES: Final = ("toolName", "tool_name")
"""Where agents put a tool's name in `_meta`. They write it themselves, their models do not."""

_ACTIVE: Final = re.compile(r"[$`;&|<>()/\\\"'{}=]")
"""Characters with a meaning to a shell, or in the path of a program."""

_ACTIVE_IN_QUOTES: Final = re.compile(r"[$`\\]")
"""The same within the quotes of JSON, which are also a shell's."""

_ACTIVE_IN_PIECES: Final = re.compile(r"[$`\\;&|<>()]")
"""The same in JSON that was cut, so that a quote may begin where another should end."""

MOST_CHARACTERS: Final = 64
"""Most characters of a tool's name with most models."""


class _Own(NamedTuple):
    """A call of ours that has not ended."""

    tool: ToolSpec
    kind: ToolKind | None
    sure: bool
    """Whether its arguments have been shown, or its title would have no effect as a command."""
    inert: bool
    """Whether its title would have no effect as a command."""
    marked: bool
    """Whether it shows the server. A call that does not must not be a command."""
    named: bool
    """Whether its arguments have named the server and the tool, as in agents based on codex."""


class Likeness(NamedTuple):
    """A tool of ours that a call seems to be of. It decides nothing."""

    tool: str
    """The user's name of the tool."""
    bare: bool
    """Whether the call shows only that name."""


def denied_words(title: str, like: Likeness) -> str:
    """Return an explanation for a denied call that seems to be of a tool of ours."""
    said = (
        f"The agent asked for {title[:80]!r} and was denied. It seems to be your tool {like.tool!r}, but it"
    )
    if not like.bare:
        return f"{said} is shown in a form that other calls may have: allow it by `permissions=`"
    return (
        f"{said} is shown by nothing but that name, which others may have. New sessions of this agent offer "
        "your tools by names that no other can have: run the task again, or allow it by `permissions=`"
    )


class OwnCalls:
    """Recognises which of a session's tool calls are ours, by all data shown of each.

    The server's name cannot be guessed, but the model knows it, and may put it into a title or an argument of
    another tool. So it counts only if nothing else is beside it: in the tool's name in `_meta`, which an
    agent writes itself; else in a title of a tool (see `read_title`), with the matching kind and no arguments
    that the tool lacks. Nothing else that the call shows may contradict it: another name, or a file.

    Ids come from the agent and not from its model, so a call that is known by its id stays what it was when
    it was announced: a later title, which the model may have written, does not make another call ours. Some
    agents reuse ids, so a call is known only until it ends, and no longer than its turn.
    """

    def __init__(self, server: ToolServer, calls: ToolCalls) -> None:
        self._server = server
        self._calls = calls

    def note(self, call: s.ToolCallStart | s.ToolCallProgress) -> bool:
        """Handle an update, and return whether the call is ours."""
        known = self._calls.meet(call.tool_call_id)
        if isinstance(call, s.ToolCallStart) or (known.owner is ... and call.title is not None):
            own = self._meet(call, known)
        else:
            own = self._is_still_own(call, known)
        if call.status in ("completed", "failed"):
            known.owner = ...
        return own

    def asks(self, call: s.ToolCallPatch) -> bool:
        """Return whether a call for which permission is asked is ours."""
        known = self._calls.meet(call.tool_call_id)
        own = self._meet(call, known) if known.owner is ... else self._is_still_own(call, known)
        return own and _owner(known) is not None and known.owner.sure

    def likeness(self, tool_id: str, title: str, name: str | None) -> Likeness | None:
        """Return the tool of ours that a call for which permission is asked seems to be of.

        Args:
            tool_id: Its id.
            title: Its title, as far as known.
            name: Its tool's name, as far as known.
        """
        server = self._server.name
        known = self._calls.get(tool_id)
        own = None if known is None else _owner(known)
        if own is not None:
            return Likeness(plain_name(own.tool.name, server), bare=not own.marked)
        shown = f"{title} {name or ''}"
        for tool in self._tools:
            plain = plain_name(tool.name, server)
            if server in shown and plain in shown:
                return Likeness(plain, bare=False)
            if name == plain or (name is None and begins_with(title, plain)):
                return Likeness(plain, bare=True)
        return None

    @property
    def _tools(self) -> list[ToolSpec]:
        """Our tools, longest match first if one's name ends with another's."""
        return sorted(self._server.tools, key=lambda tool: -len(tool.name))

    def _meet(self, call: s.ToolCallFields | s.ToolCallPatch, known: ToolCall) -> bool:
        server, shown = self._server.name, _shown(call)
        own = None
        if server in shown or RESULT_TOOL in shown:  # most calls are not ours, and no tool need be checked
            owns = (_own_call(call, server, tool) for tool in self._tools)
            own = next((own for own in owns if own is not None), None)
        if own is not None or _says_something(call):
            known.owner = own
        return own is not None

    def _is_still_own(self, call: s.ToolCallPatch, known: ToolCall) -> bool:
        own = _owner(known)
        if own is None:
            # qwen-code announces the tool through which its model calls others, and then the other one.
            return bool(named_in_meta(call)) and is_object(call.raw_input) and self._meet(call, known)
        tool, kind = own.tool, own.kind
        server = self._server.name
        raw: JsonValue = call.raw_input
        names = named_in_meta(call)
        plain = own.inert and own.marked
        fits = _fits(raw, tool.input_schema) and (plain or command_line(raw) is None)
        if (
            call.kind in (None, "other", kind)
            and all(_is_name(name, server, tool) for name in names)
            and (raw is None or names or fits or (own.named and _is_about(raw, server, tool)))
            and _shows_nothing_foreign(call, server, tool)
        ):
            known.owner = own._replace(sure=own.sure or raw is not None)
            return True
        known.owner = None
        return False


def _owner(call: ToolCall) -> _Own | None:
    own: _Own | None = None if call.owner is ... else call.owner
    return own


def _own_call(call: s.ToolCallFields | s.ToolCallPatch, server: str, tool: ToolSpec) -> _Own | None:
    """Return the state of a call if it is of this tool of ours."""
    names, shown = named_in_meta(call), _shown(call)
    title = read_title(shown, server, tool.name)
    if title is None or not _shows_nothing_foreign(call, server, tool):
        return None
    raw: JsonValue = call.raw_input
    named = _is_codex_input(raw, server, tool)
    marked = named or server in shown
    if names:
        # An agent calls what it names so: wrong arguments are refused there, with a helpful text.
        fits = all(_is_name(name, server, tool) for name in names)
    else:
        given = [arguments for arguments in (raw, title.arguments) if arguments is not None]
        fits = named or (
            call.kind in (None, "other")
            and shown != _codex_title(server, tool.name)
            and all(
                _fits(arguments, tool.input_schema)
                and ((title.inert and marked) or command_line(arguments) is None)
                for arguments in given
            )
        )
    sure = bool(names) or title.inert or raw is not None
    return _Own(tool, call.kind, sure=sure, inert=title.inert, marked=marked, named=named) if fits else None


def _is_name(name: JsonValue, server: str, tool: ToolSpec) -> bool:
    """Return whether an agent's name for a tool is one word with our server's name, and means this tool."""
    if not isinstance(name, str) or " " in name or server not in name:
        return False
    title = read_title(name, server, tool.name)
    return title is not None and title.arguments is None


def _says_something(call: s.ToolCallFields | s.ToolCallPatch) -> bool:
    """Return whether a call can already be distinguished from others; some are announced earlier."""
    known = (call.title, call.raw_input, call.name, call.locations, call.content, named_in_meta(call))
    return any(known) or call.kind not in (None, "other")


def _shown(call: s.ToolCallFields | s.ToolCallPatch) -> str:
    """Return how a call shows its tool: the name in `_meta`, else the title; empty without either."""
    names = named_in_meta(call)
    shown = names[0] if names else call.title
    return shown if isinstance(shown, str) else ""


def named_in_meta(call: s.ToolCallFields | s.ToolCallPatch) -> tuple[JsonValue, ...]:
    """Return the tool's name that some agents add to the title, text or not."""
    meta: Mapping[str, JsonValue] | None = call.meta
    if meta is None:
        return ()
    vendor = meta.get("claudeCode")
    places = (meta, vendor) if is_object(vendor) else (meta,)
    return tuple(place[key] for place in places for key in NAMES if key in place)


def _is_about(raw: JsonValue, server: str, tool: ToolSpec) -> bool:
    """Return whether the data of a known call names our server, and is not a command."""
    return _is_codex_input(raw, server, tool) or (
        is_object(raw) and raw.get("server_name") == server and command_line(raw) is None
    )


def _is_codex_input(raw: JsonValue, server: str, tool: ToolSpec) -> bool:
    return (
        is_object(raw) and raw.keys() == CODEX_INPUT and (raw["server"], raw["tool"]) == (server, tool.name)
    )


def _shows_nothing_foreign(call: s.ToolCallFields | s.ToolCallPatch, server: str, tool: ToolSpec) -> bool:
    return (
        (call.name in (None, tool.name) or _is_name(call.name, server, tool))
        and not call.locations
        and all(content.__struct_config__.tag == "content" for content in call.content or ())
    )


def _fits(raw: JsonValue, schema: Mapping[str, JsonValue]) -> bool:
    keys = declared(schema)
    return is_object(raw) and (keys.open or set(raw) <= keys.names | AGENT_EXTRAS)


def _codex_title(server: str, tool: str) -> str:
    return f"mcp.{server}.{tool}"


# The titles and names under which agents show a tool of an MCP server


def marked_name(tool: str, server: str) -> str:
    """Return a unique name for a tool: with the server's name in it, if there is room."""
    name = f"{server}_{tool}"
    return name if len(name) <= MOST_CHARACTERS else tool


def plain_name(name: str, server: str) -> str:
    """Return the tool's name without its server's, whether it was in it or not."""
    return name.removeprefix(f"{server}_")


def begins_with(title: str, tool: str) -> bool:
    """Return whether a title is a tool's name alone, or its name and possible arguments."""
    rest = title.removeprefix(tool)
    return title.startswith(tool) and (not rest or rest.startswith((": ", " {", "{", "(", ":{")))


class Title(NamedTuple):
    """The meaning of a tool's title."""

    arguments: dict[str, JsonValue] | None
    """The arguments; ``None`` if they are not shown, or not completely."""
    inert: bool
    """Whether it would have no effect as a command. Some agents show a command only as its title."""


def read_title(title: str, server: str, tool: str) -> Title | None:
    """Return the meaning of a title, if it is one of this server's tool and contains nothing else.

    Agents join the two names in different ways, and some add the arguments: ``mcp__SERVER__TOOL``,
    ``TOOL (SERVER MCP Server)``, ``SERVER › TOOL: {"key": 1}``. Any joint is accepted unless it is a word. A
    tool's name is enough if it contains the server's. So is the name of the tool for the result: it is
    unique, and the tool can only return a result.
    """
    if not server or tool not in title or not (server in title or tool == RESULT_TOOL):
        return None
    found = _pattern(server, tool).fullmatch(title)
    if found is None or not (head := found["head"]).isprintable():
        return None
    if any(head.count(opening) != head.count(closing) for opening, closing in ("()", "[]")):
        return None
    inert = _is_inert(head, server, tool)
    text: str | None = found["arguments"]
    if text is None:
        return Title(None, inert)
    try:
        arguments: JsonValue = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if not text.startswith('{"'):
            return None
        return Title(None, inert and text.isprintable() and not _ACTIVE_IN_PIECES.search(text))
    inert = inert and text.isprintable() and not _ACTIVE_IN_QUOTES.search(text)
    return Title(arguments, inert) if is_object(arguments) else None


def _is_inert(head: str, server: str, tool: str) -> bool:
    """Return whether a shell would find no program in the first word, and nothing else to do."""
    if head in (f"{tool} ({server})", f"{tool} ({server} MCP Server)"):
        return True
    first = head.partition(" ")[0]
    return not _ACTIVE.search(head) and (head == tool or server in first or first.endswith(":"))


def _pattern(server: str, tool: str) -> re.Pattern[str]:
    name, own = re.escape(server), re.escape(tool)
    forms = [
        rf"{WORDS}{name}(?:{JOINT})?(?:(?i:tool){JOINT})?{own}",
        rf"{WORDS}{own}{JOINT}{WORDS}{name}(?:{JOINT}{WORD}){{0,2}}",
    ]
    if server in tool or tool == RESULT_TOOL:
        forms.append(own)
    arguments = r"(?: |: ?)(?P<arguments>\{.*)"
    return re.compile(rf"(?P<head>(?:{'|'.join(forms)})[)\]]?)(?:{arguments})?", re.DOTALL)
