"""The policy: steps handed over by a test, turned into one answer per model request."""

from __future__ import annotations

import itertools
import re
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from ._values import Answer, Ask, Call, Fail, Hold, JsonObject, Part, Say, Think, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ("CallTool", "EndTurn", "Script", "Step")

SIDE_TEXT = "Scripted text"
"""Answers what no step is for: titles, summaries, suggestions."""

FINAL_TEXT = "All steps are done."
"""Ends the turn once the steps have run out."""

SEARCH_TOOLS = frozenset({"ToolSearch", "tool_search", "search_tool_functions"})
"""How agents name the tool behind which they hold others back."""

DISPATCHERS = frozenset({"tool_call", "run_typescript"})
"""How agents name the tool through which others are called that stay hidden even after a search."""

MAX_SEARCHES = 3
"""Looks into an agent's deferred tools before a step counts as impossible."""


@dataclass(frozen=True, slots=True)
class CallTool:
    """End the answer with a call of the tool whose name ends in `name`: agents put the server's in front."""

    name: str
    args: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class EndTurn:
    """End the answer here without a tool call, so that what follows belongs to a later turn."""


Step: TypeAlias = Think | Say | CallTool | Hold | Fail | EndTurn


class Script:
    """Hands out answers in the order of the steps; the server's threads share it.

    Args:
        choose: Chooses the step for a request, instead: agents that ask at the same time have no order.
    """

    def __init__(self, choose: Callable[[Ask], Step] | None = None) -> None:
        self._choose = choose
        self._lock = threading.Lock()
        self._steps: deque[Step] = deque()
        self._holds: list[Hold] = []
        self._numbers = itertools.count(1)
        self._searches = 0

    @property
    def remaining(self) -> tuple[Step, ...]:
        """The steps that no request has taken yet."""
        with self._lock:
            return tuple(self._steps)

    def extend(self, steps: Sequence[Step]) -> None:
        """Append steps for the requests to come."""
        with self._lock:
            self._steps.extend(steps)
            self._holds.extend(step for step in steps if isinstance(step, Hold))

    def skip(self) -> None:
        """Drop the steps that no request has taken."""
        with self._lock:
            self._steps.clear()

    def release(self) -> None:
        """Let every answer that waits at a `Hold` go on."""
        for hold in self._holds:
            hold.release()

    def answer(self, ask: Ask) -> Answer | Fail:
        """Answer one request.

        Only a request that offers tools and demands no JSON takes steps: agents ask for titles, verdicts and
        the like without tools or with a schema, at moments that no test can foresee.
        """
        with self._lock:
            number = next(self._numbers)
            if ask.schema is not None:
                return Answer(number=number, parts=(Say(_text_for(ask.schema)),))
            if not ask.tools:
                return Answer(number=number, parts=(Say(SIDE_TEXT),))
            if self._choose is not None:
                self._steps = deque([self._choose(ask)])
            if self._steps and isinstance(first := self._steps[0], Fail):
                self._steps.popleft()
                return first
            return Answer(number=number, parts=tuple(self._parts(ask, f"call_{number}")))

    def _parts(self, ask: Ask, call_id: str) -> list[Part]:
        name = self._next_tool()
        tool = None if name is None else _find(ask, name)
        dispatcher = None
        if name is not None and tool is None:
            dispatcher = next((found for found in ask.tools if found.name in DISPATCHERS), None)
            if dispatcher is None or not self._searches:
                return [self._search(ask, name, call_id)]
        self._searches = 0
        parts: list[Part] = []
        while self._steps:
            step = self._steps.popleft()
            if isinstance(step, Fail):
                self._steps.appendleft(step)
                break
            if isinstance(step, CallTool):
                return [*parts, _call(ask, step, tool, dispatcher, call_id)]
            if isinstance(step, EndTurn):
                break
            parts.append(step)
        return parts if any(isinstance(part, Say) for part in parts) else [*parts, Say(FINAL_TEXT)]

    def _next_tool(self) -> str | None:
        for step in self._steps:
            if isinstance(step, CallTool):
                return step.name
            if isinstance(step, EndTurn | Fail):
                break
        return None

    def _search(self, ask: Ask, name: str, call_id: str) -> Part:
        """Ask for a tool that the agent holds back behind a search tool; no step is taken meanwhile."""
        search = next((tool for tool in ask.tools if tool.name in SEARCH_TOOLS), None)
        if search is None or self._searches == MAX_SEARCHES:
            self._searches = 0
            return Say(f"No tool is named …{name}.")
        self._searches += 1
        if search.name == "search_tool_functions":
            return Call(tool=search, args={"mode": "best_match", "query": name}, id=call_id)
        full_name = _full_name(ask, name)
        query = f"select:{full_name}" if full_name else name
        return Call(tool=search, args={"query": query, "max_results": 5}, id=call_id)


def _call(ask: Ask, step: CallTool, tool: Tool | None, dispatcher: Tool | None, call_id: str) -> Call:
    """Call a tool, or the one through which it has to be called."""
    if tool is not None:
        return Call(tool=tool, args=step.args, id=call_id)
    assert dispatcher is not None
    full_name = _full_name(ask, step.name) or step.name
    args: JsonObject = {"name": full_name, "arguments": step.args}
    if dispatcher.name == "run_typescript":
        values = msgspec.json.encode(step.args).decode()
        args = {"code": f"async function main() {{ return await tools.{full_name}({values}); }}"}
    return Call(tool=dispatcher, args=args, id=call_id)


def _full_name(ask: Ask, name: str) -> str | None:
    """Find the name of a hidden tool in what the model was told, of the server that was named last."""
    found = re.findall(rf"mcp_(?:_\w+?__|\w+?\.){re.escape(name)}\b", ask.raw)
    servers = re.findall(r"MCP server (\w+)", ask.raw)
    named = [full for full in found if servers and servers[-1] in full]
    return next(iter(named or found), None)


def _find(ask: Ask, name: str) -> Tool | None:
    """Find the tool, of the server that the prompt named last where there are several of its name."""
    suffix = re.compile(rf"(.*[^a-zA-Z0-9])?{re.escape(name)}")
    found = [tool for tool in ask.tools if suffix.fullmatch(tool.name)]
    servers = re.findall(r"MCP server (\w+)", ask.raw)
    named = [tool for tool in found if servers and servers[-1] in tool.name]
    return next(iter(named or found), None)


class _Schema(msgspec.Struct, frozen=True, rename="camel"):
    type: str = "string"
    enum: tuple[object, ...] = ()
    any_of: tuple[_Schema, ...] = ()
    properties: dict[str, _Schema] = {}


def _text_for(schema: Mapping[str, object]) -> str:
    return msgspec.json.encode(_instance(msgspec.convert(schema, _Schema))).decode()


def _instance(schema: _Schema) -> object:
    """Make a small value that fits the plain schemas that agents demand of side requests."""
    if schema.enum:
        return schema.enum[0]
    if schema.any_of:
        return _instance(schema.any_of[0])
    if schema.properties:
        return {name: _instance(value) for name, value in schema.properties.items()}
    plain: dict[str, object] = {"object": {}, "array": [], "boolean": False, "integer": 1, "number": 1}
    return plain.get(schema.type.lower(), SIDE_TEXT)
