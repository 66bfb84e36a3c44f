"""Files with MCP servers under ``mcpServers``."""

from __future__ import annotations

import json
import logging
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from thinkwell._core.schema.json_schema import is_array, is_object
from thinkwell._mcp.checks import (
    checked_command,
    checked_headers,
    checked_name,
    checked_url,
    checked_variables,
)
from thinkwell._mcp.servers import McpHttp, McpSse, McpStdio
from thinkwell.errors import McpServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from thinkwell.events import JsonValue

logger = logging.getLogger("thinkwell")

Kind: TypeAlias = Literal["stdio", "http", "sse"]
Server: TypeAlias = McpStdio | McpHttp | McpSse

_T = TypeVar("_T")

_KINDS: Final[dict[str, Kind]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
"""Values of ``type``. MCP calls it streamable HTTP, and so do some programs."""

_STDIO: Final = ("command", "args", "env")
_REMOTE: Final = ("url", "headers")
_KNOWN: Final = ("type", "disabled", *_STDIO, *_REMOTE)

_REFUSED: Final = {
    "cwd": "the protocol has no place for the folder of a server; name it in the arguments, where the server "
    "takes one",
    "envFile": "such files are not read; name the variables under env",
    "headersHelper": "such programs are not run; name the headers, with ${NAME} for what is secret",
}
"""Keys that would change the server, and are not supported."""

_CLOSE: Final = 0.8
"""The least similarity of an unknown key with a known one (`difflib.SequenceMatcher.ratio`)."""

_REFERENCE: Final = re.compile(r"\$\{([^}]*)(\}?)")
_VARIABLE: Final = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_PLAIN_KEY: Final = re.compile(r"[\w-]+")


def load_mcp_servers(
    path: str | os.PathLike[str], *, env: Mapping[str, str] | None = None
) -> tuple[Server, ...]:
    """Read the servers from a file such as ``.mcp.json``, the format of most programs with MCP.

    For example:

        {"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "…"], "env": {"ROOT": "${HOME}/notes"}},
            "web": {"type": "http", "url": "https://…", "headers": {"Authorization": "Bearer ${TOKEN}"}}
        }}

    In ``command``, ``args``, ``env``, ``url`` and ``headers``, ``${NAME}`` is a variable of the environment,
    and ``${NAME:-default}`` one that may be missing or empty; ``${env:NAME}``, used by some editors, is
    the same. A ``type`` is ``stdio``, ``http`` or ``sse``; without one, a ``command`` means ``stdio`` and a
    ``url`` means ``http``. Servers with ``"disabled": true`` are skipped. Keys for other programs are
    ignored.

    Such a file names programs that the agent will start. Do not load one that you do not trust.

    Args:
        path: The file.
        env: Where variables are looked up; by default the environment of this process.

    Raises:
        McpServerError: The file is missing, unreadable or invalid. The message says where.
    """
    try:
        reader = _Reader(os.environ if env is None else env)
        return tuple(reader.servers(_parsed(_content(path))))
    except McpServerError as exc:
        exc.source = os.fspath(path)
        raise


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise McpServerError(f"it cannot be read: {exc.strerror}") from exc


def _parsed(data: bytes) -> JsonValue:
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as exc:
        raise McpServerError(f"it is not UTF-8: {exc.reason}") from None  # the exception has the whole file
    except json.JSONDecodeError as exc:
        place = f"{exc.msg}, line {exc.lineno}, column {exc.colno}"
        raise McpServerError(f"this is no JSON: {place}") from None
    except RecursionError:
        raise McpServerError("it goes too deep for a file of servers") from None


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in found:
            raise McpServerError(f"the key {key!r:.100} is there twice in one object")
        found[key] = value
    return found


class _Reader:
    """Reads the contents of a file. `where` is the path to a value, for errors."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def servers(self, table: JsonValue) -> list[Server]:
        if not is_object(table) or not is_object(table.get("mcpServers")):
            raise McpServerError('write the servers by their names into an object: {"mcpServers": {…}}')
        found: list[Server] = []
        for name, entry in table["mcpServers"].items():
            with _about(name, _below("mcpServers", name)):
                server = self._server(name, entry)
            if server is not None:
                found.append(server)
        return found

    def _server(self, name: str, entry: JsonValue) -> Server | None:
        if not is_object(entry):
            raise ValueError('write an object, with a "command" or a "url"')
        _at("", checked_name, name)
        if entry.get("disabled") is True:
            logger.info("The MCP server %r is left out: it is disabled", name)
            return None
        kind = _kind(entry)
        _check_keys(name, entry, kind)
        if kind == "stdio":
            return self._started(name, entry)
        if "url" not in entry:
            raise ValueError(f'there is no "url", which a server of the type {kind} has')
        url = _at("url", checked_url, self._filled("url", entry["url"]))
        headers = _at("headers", checked_headers, self._named("headers", entry))
        return (McpHttp if kind == "http" else McpSse)(name, url, headers=headers)

    def _started(self, name: str, entry: dict[str, JsonValue]) -> McpStdio:
        if "command" not in entry:
            raise ValueError('there is no "command", which a server of the type stdio has')
        args = entry.get("args", [])
        if not is_array(args):
            raise _WrongError("args", "write a list of texts")
        program = self._filled("command", entry["command"])
        words = [self._filled(f"args[{number}]", word) for number, word in enumerate(args)]
        command = _at("command", checked_command, [program, *words])
        env = _at("env", checked_variables, self._named("env", entry))
        return McpStdio(name, command, env=env)

    def _named(self, key: str, entry: dict[str, JsonValue]) -> dict[str, str]:
        table = entry.get(key, {})
        if not is_object(table):
            raise _WrongError(key, "write texts by their names")
        return {name: self._filled(_below(key, name), value) for name, value in table.items()}

    def _filled(self, where: str, value: JsonValue) -> str:
        """Return a text with its variables replaced."""
        if not isinstance(value, str):
            raise _WrongError(where, 'it is no text; write it in quotes: "…"')

        def fill(found: re.Match[str]) -> str:
            variable = _VARIABLE.fullmatch(found[1])
            if variable is None or not found[2] or "${" in found[1]:
                problem = "there is a ${ with something else behind it than ${NAME} or ${NAME:-default}"
                raise _WrongError(where, problem)
            name, default = variable[1], variable[2]
            value = self._env.get(name)
            if not value and default is not None:
                return default
            if value is None:
                problem = f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
                raise _WrongError(where, problem)
            return value

        return _REFERENCE.sub(fill, value)


def _kind(entry: dict[str, JsonValue]) -> Kind:
    if "type" in entry:
        kind = entry["type"]
        if not isinstance(kind, str) or kind not in _KINDS:
            raise _WrongError("type", "it is none of stdio, http and sse")
        return _KINDS[kind]
    if "command" in entry and "url" in entry:
        raise ValueError('there are both a "command" and a "url"; say which counts by "type"')
    if "command" not in entry and "url" not in entry:
        raise ValueError('there is neither a "command" nor a "url"')
    return "stdio" if "command" in entry else "http"


def _check_keys(name: str, entry: dict[str, JsonValue], kind: Kind) -> None:
    others = _REMOTE if kind == "stdio" else _STDIO
    for key in entry:
        if key in _REFUSED:
            raise _WrongError(key, _REFUSED[key])
        if key in others:
            raise _WrongError(key, f"a server of the type {kind} has no such thing")
        if key not in _KNOWN:
            from difflib import get_close_matches  # only after a mistake

            close = get_close_matches(key, _KNOWN, n=1, cutoff=_CLOSE)
            if close:
                raise _WrongError(_below("", key), f"there is no such key; do you mean {close[0]!r}?")
            logger.info("MCP server %r: %.100r is passed over; it is no matter of the protocol's", name, key)


class _WrongError(ValueError):
    """A value of a server is invalid."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(problem)
        self.where = where


def _at(where: str, check: Callable[[object], _T], value: object) -> _T:
    try:
        return check(value)
    except ValueError as exc:
        raise _WrongError(where, str(exc)) from None


@contextmanager
def _about(name: str, where: str) -> Generator[None]:
    try:
        yield
    except ValueError as exc:
        inner = exc.where if isinstance(exc, _WrongError) else ""
        whole = f"{where}.{inner}" if inner else where
        raise McpServerError(str(exc), server=name, where=whole) from None


def _below(where: str, key: str) -> str:
    """Return the path of a key's value."""
    if _PLAIN_KEY.fullmatch(key):
        return f"{where}.{key}" if where else key
    return f"{where}[{json.dumps(key[:100])}]"
