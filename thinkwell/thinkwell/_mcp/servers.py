"""MCP servers for an agent to use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from thinkwell._mcp.checks import (
    checked_command,
    checked_headers,
    checked_name,
    checked_url,
    checked_variables,
    origin,
    told,
)
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, init=False, repr=False)
class McpStdio:
    """An MCP server that the agent starts, and communicates with over standard input and output.

    Its program is looked up when you pass the server to `open_agent` or to a session, on the ``PATH`` of
    `env` if it has one, else on the agent's; agents need the absolute path. A relative path starts at
    the current folder. The agent decides in which folder it starts the program, because the protocol has no
    field for it, so name folders in the arguments.

    Args:
        name: The agent's name for the server; tools are often shown as ``mcp__NAME__TOOL``. Some agents
            replace everything but letters, digits, ``-`` and ``_``.
        command: The program and its arguments.
        env: Variables for the program. The agent decides what else of the environment it sees.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is invalid.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]

    def __init__(self, name: str, command: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        with told(f"McpStdio({name!r:.100})"):
            object.__setattr__(self, "name", checked_name(name))
            object.__setattr__(self, "command", checked_command(command))
            object.__setattr__(self, "env", checked_variables({} if env is None else env))

    def __repr__(self) -> str:
        words = f"[{self.command[0]!r}{', …' if self.command[1:] else ''}]"
        return f"McpStdio({self.name!r}, {words}{_hidden('env', self.env)})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class _Remote:
    name: str
    url: str
    headers: Mapping[str, str]

    def __init__(self, name: str, url: str, *, headers: Mapping[str, str] | None = None) -> None:
        with told(f"{type(self).__name__}({name!r:.100})"):
            object.__setattr__(self, "name", checked_name(name))
            object.__setattr__(self, "url", checked_url(url))
            object.__setattr__(self, "headers", checked_headers({} if headers is None else headers))

    def __repr__(self) -> str:
        host = origin(self.url)
        address = host if self.url == host else f"{host}/…"
        return f"{type(self).__name__}({self.name!r}, {address!r}{_hidden('headers', self.headers)})"


class McpHttp(_Remote):
    """An MCP server that the agent calls over streamable HTTP.

    The agent has to advertise ``mcpCapabilities.http``; all agents seen so far do.

    Args:
        name: The agent's name for the server; see `McpStdio`.
        url: Its address.
        headers: Headers of every request, such as ``{"Authorization": "Bearer …"}``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is invalid.
    """

    __slots__ = ()


class McpSse(_Remote):
    """An MCP server that the agent calls over HTTP with SSE, which MCP has replaced by streamable HTTP.

    The agent has to advertise ``mcpCapabilities.sse``.

    Args:
        name: The agent's name for the server; see `McpStdio`.
        url: Its address.
        headers: Headers of every request, such as ``{"Authorization": "Bearer …"}``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is invalid.
    """

    __slots__ = ()


McpServer: TypeAlias = McpStdio | McpHttp | McpSse | s.McpServer
"""An MCP server: one of these classes, or the protocol's form (`thinkwell_acp.schema.McpServer`). The latter
is sent to the agent unchanged: its program is not looked up, which suits an agent on another machine."""


def _hidden(what: str, named: Mapping[str, str]) -> str:
    names = ", ".join(f"{name!r}: …" for name in named)
    return f", {what}={{{names}}}" if named else ""
