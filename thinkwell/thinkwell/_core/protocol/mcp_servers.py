"""The caller's MCP servers in the agent's form, checked before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from thinkwell._mcp.checks import (
    checked_command,
    checked_headers,
    checked_name,
    checked_url,
    checked_variables,
    told,
)
from thinkwell._mcp.servers import McpHttp, McpSse, McpStdio
from thinkwell.errors import CapabilityMissing, McpServerError
from thinkwell_acp import ProgramNotFound
from thinkwell_acp import schema as s
from thinkwell_acp.stdio import find_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from thinkwell._mcp.servers import McpServer

_OURS: Final = re.compile(r"thinkwell[0-9a-f]{12}", re.IGNORECASE)
"""Names as `_tooling.new_server` makes them: such a name marks a permission request as ours."""


class McpServers:
    """The servers of `open_agent`, which every session has, and the additional ones of single sessions.

    Args:
        servers: The caller's servers.
        search_path: The folders of programs, as in ``PATH``; ``None``: this process's.
        who: The call to name in errors.

    Raises:
        McpServerError: A program is missing.
        TypeError: An element is not a server.
        ValueError: A name, an address or a header is invalid, or a name is taken.
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        search_path: str | None,
        who: str = "open_agent(mcp_servers=…)",
    ) -> None:
        self._search_path = search_path
        self.wire: tuple[s.McpServer, ...] = self._checked(servers, (), who)
        """Those of `open_agent`, as the agent gets them."""

    def with_more(self, servers: Sequence[McpServer]) -> tuple[s.McpServer, ...]:
        """Return the declarations for a session with additional servers. Raises as the constructor."""
        return (*self.wire, *self._checked(servers, self.wire, "session(mcp_servers=…)"))

    def _checked(self, servers: object, others: Iterable[s.McpServer], who: str) -> tuple[s.McpServer, ...]:
        wanted = "give a list of McpStdio, McpHttp and McpSse, or load_mcp_servers(…)"
        # No value is shown: they contain keys.
        if isinstance(servers, str) or not isinstance(servers, Sequence):
            raise TypeError(f"{who}: it is a {type(servers).__name__}; {wanted}")
        taken = {server.name: "is one of open_agent's already" for server in others}
        wire: list[s.McpServer] = []
        for number, server in enumerate(cast("Iterable[object]", servers)):
            if not isinstance(server, McpStdio | McpHttp | McpSse | s.McpServer):
                raise TypeError(f"{who}: number {number + 1} is a {type(server).__name__}; {wanted}")
            told_of = self._wire(server, who)
            name = told_of.name
            if name in taken:
                about = f"{who}: {name!r:.100} {taken[name]}"
                raise ValueError(f"{about}; agents know a server by its name, so give one another")
            if _OURS.fullmatch(name):
                raise ValueError(
                    f"{who}: names such as {name!r} are kept for our own servers; choose another"
                )
            taken[name] = "is there twice"
            wire.append(told_of)
        return tuple(wire)

    def _wire(self, server: McpServer, who: str) -> s.McpServer:
        match server:
            case McpStdio():
                return self._started(server)
            case McpHttp():
                return s.McpServerHttp(name=server.name, url=server.url, headers=_headers(server.headers))
            case McpSse():
                return s.McpServerSse(name=server.name, url=server.url, headers=_headers(server.headers))
            case _:
                _check(server, who)
                return server

    def _started(self, server: McpStdio) -> s.McpServerStdio:
        """Find the program: the protocol requires its absolute path."""
        path = server.env.get("PATH", self._search_path)
        try:
            program, *args = find_program(server.command, None if path is None else {"PATH": path}, None)
        except ProgramNotFound as exc:
            hint = (
                "install it, or give its whole path. For an agent on another machine, give a "
                "McpServerStdio of thinkwell_acp.schema, which is not looked for here"
            )
            raise McpServerError(
                f"{exc.reason}; {hint}", server=server.name
            ) from None  # the error has the arguments
        env = tuple(s.EnvVariable(name=name, value=value) for name, value in server.env.items())
        return s.McpServerStdio(name=server.name, command=program, args=tuple(args), env=env)


def check_reachable(servers: Iterable[s.McpServer], flags: s.McpCapabilities) -> None:
    """Check that the agent supports these kinds of servers. It always supports those that it starts.

    Raises:
        CapabilityMissing: It does not support one.
    """
    kinds = {"http": flags.http, "sse": flags.sse, "acp": flags.acp}
    for server in servers:
        kind = server.__struct_config__.tag
        if kind is not None and not kinds[str(kind)]:
            takes = " and ".join(["stdio", *(other for other, taken in kinds.items() if taken)])
            wanted_by = f"the MCP server {server.name!r:.100}. This agent takes MCP servers over {takes}"
            raise CapabilityMissing(f"mcpCapabilities.{kind}", wanted_by)


def _headers(headers: Mapping[str, str]) -> tuple[s.HttpHeader, ...]:
    return tuple(s.HttpHeader(name=name, value=value) for name, value in headers.items())


def _check(server: s.McpServer, who: str) -> None:
    """Check a server in the protocol's form."""
    with told(f"{who}: {server.name!r:.100}"):
        checked_name(server.name)
        match server:
            case s.McpServerStdio():
                checked_command([server.command, *server.args])
                checked_variables({variable.name: variable.value for variable in server.env})
            case s.McpServerHttp() | s.McpServerSse():
                checked_url(server.url)
                checked_headers({header.name: header.value for header in server.headers})
            case _:
                pass
