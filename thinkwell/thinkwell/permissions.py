"""What an agent may do when it asks: nothing but call our own tools, unless the program says otherwise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeGuard

from msgspec import Struct

from thinkwell._json_schema import AGENT_EXTRAS, declared, is_object
from thinkwell.events import JsonValue, ToolKind  # noqa: TC001 - types of fields

if TYPE_CHECKING:
    from thinkwell_acp import schema as s
    from thinkwell_acp.mcp import ToolSpec

__all__ = (
    "PermissionMode",
    "PermissionQuestion",
    "QuestionHandler",
    "Verdict",
    "choose",
    "is_own_tool",
    "is_verdict",
    "own_renderings",
)

PermissionMode: TypeAlias = Literal["deny", "ask", "allow"]
"""``deny``: refuse all but our own tools. ``ask``: let `on_question` decide. ``allow``: allow all."""

Verdict: TypeAlias = Literal["allow", "allow_always", "deny", "deny_always"]
"""What a handler may answer."""


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """An agent asks whether it may do something. All of it comes from the agent and is not to be trusted."""

    id: str
    title: str
    kind: ToolKind
    input: JsonValue
    tool_id: str
    options: tuple[str, ...]
    """The kinds of the offered options."""


QuestionHandler: TypeAlias = Callable[[PermissionQuestion], Awaitable[Verdict | None]]
"""Decides about a question; ``None`` leaves it to the default, which is to deny."""

_KINDS: Final[dict[Verdict, Sequence[str]]] = {
    "allow": ("allow_once",),
    "allow_always": ("allow_always", "allow_once"),
    "deny": ("reject_once", "reject_always"),
    "deny_always": ("reject_always", "reject_once"),
}


def is_verdict(value: object) -> TypeGuard[Verdict]:
    """Return whether a handler's answer is one."""
    return isinstance(value, str) and value in _KINDS


def choose(
    options: Sequence[s.PermissionOption], verdict: Verdict, *, widen: bool = False, avoid: Collection[str] = ()
) -> s.PermissionOption | None:
    """Return the offered option for a verdict, by kind and never by position; ``None``: there is none.

    Args:
        options: What the agent offers.
        verdict: What was decided.
        widen: Whether "allow" may also be said by an option that allows for good.
    """
    kinds = (*_KINDS[verdict], "allow_always") if widen and verdict == "allow" else _KINDS[verdict]
    for kind in kinds:
        for option in options:
            if option.kind == kind:
                return option
    return None


def is_own_tool(call: s.ToolCallFields | s.ToolCallPatch, server: str, tools: Sequence[ToolSpec]) -> bool:
    """Return whether a tool call is of a tool of ours, going by what the agent shows of it.

    The server's name cannot be guessed, but the model knows it, and may put it into a title or an argument of
    another tool. So only exact forms count: the tool's name in claude-agent-acp's `_meta`; else a title in
    one of the renderings of `own_renderings`, with the kind that goes with it and no arguments that the tool
    does not have.
    """
    vendor = (call.meta or {}).get("claudeCode")
    named = {form: tool for tool in tools for form in own_renderings(server, tool.name)}
    if is_object(vendor) and "toolName" in vendor:
        return vendor["toolName"] in named
    tool = named.get(call.title or "")
    if tool is None:
        return False
    raw: JsonValue = call.raw_input
    if is_object(raw) and set(raw) == {"server", "tool", "arguments"}:  # codex-acp
        return (raw["server"], raw["tool"]) == (server, tool.name)
    return call.kind in (None, "other") and (raw is None or _fits(raw, tool.input_schema))


def _fits(raw: JsonValue, schema: Mapping[str, JsonValue]) -> bool:
    keys = declared(schema)
    return is_object(raw) and (keys.open or set(raw) <= keys.names | AGENT_EXTRAS)


def own_renderings(server: str, tool: str) -> tuple[str, ...]:
    """Return the titles under which agents show a tool of ours.

    They were seen with claude-agent-acp, gemini-cli, opencode and codex-acp.
    """
    return (
        f"mcp__{server}__{tool}",
        f"{tool} ({server} MCP Server)",
        f"{server}_{tool}",
        f"mcp.{server}.{tool}",
    )


class PermissionPolicy(Struct, frozen=True):
    """Stand-in."""

    def decide(self, question: object, *, cwd: str) -> object:
        """Stand-in."""
        raise NotImplementedError


class Remembered:
    """Stand-in."""

    def recall(self, question: object) -> Literal["allow", "deny"] | None:
        """Stand-in."""
        return None

    def remember(self, question: object, verdict: str) -> None:
        """Stand-in."""
