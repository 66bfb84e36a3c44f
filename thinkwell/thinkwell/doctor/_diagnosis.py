"""The doctor's findings, as values."""

from __future__ import annotations

import json
from io import StringIO
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from thinkwell import events as ev  # noqa: TC001 - types of fields, read at run time
from thinkwell.agents import (
    Quirk,  # noqa: TC001
    ToolTransport,  # noqa: TC001
)
from thinkwell.doctor._check import Check, is_of_servers, is_open
from thinkwell.doctor._table import ROOM, Table
from thinkwell.errors import AuthMethod  # noqa: TC001

Verdict: TypeAlias = Literal["works", "does not", "unknown"]
"""Whether an agent works; ``unknown``: only a prompt, or a login, would show it."""

WORKS: Final = 0
FAILED: Final = 1
WANTS_LOGIN: Final = 3


class Diagnosis(Struct, frozen=True, kw_only=True):
    """The doctor's findings about an agent."""

    agent: str
    """The requested agent, or the name of the program."""
    title: str = ""
    """The title of a known agent."""
    command: tuple[str, ...] = ()
    """The command that was, or would have been, started, without keys."""
    version: str | None = None
    """The version that the agent reports."""
    capabilities: dict[str, ev.JsonValue] | None = None
    """The advertised capabilities, in the protocol's form; ``None`` if it did not get that far."""
    auth_methods: tuple[AuthMethod, ...] = ()
    """The login methods that it offers, whether or not it requires a login."""
    ways: tuple[ToolTransport, ...] = ()
    """The transports over which your tools reach it, the simplest first."""
    checks: tuple[Check, ...] = ()
    quirks: tuple[Quirk, ...] = ()
    """Its known peculiarities, from its profile."""

    @property
    def verdict(self) -> Verdict:
        """Whether the agent works, regardless of your MCP servers. Never ``works`` without a prompt."""
        failed = {check.name for check in self.checks if check.status == "failed"}
        failed = {name for name in failed if not is_of_servers(name)}
        if failed - {"login"}:
            return "does not"
        return "unknown" if failed or is_open(self.checks) else "works"

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return self.exit_code == WORKS

    @property
    def login_wanted(self) -> bool:
        """Whether the agent requires a login, and nothing else seems wrong."""
        return self.exit_code == WANTS_LOGIN

    @property
    def exit_code(self) -> int:
        """0: no check failed. 3: it requires a login, and nothing else is wrong. 1: a check failed."""
        failed = {check.name for check in self.checks if check.status == "failed"}
        if failed == {"login"}:
            return WANTS_LOGIN
        return FAILED if failed else WORKS

    def to_json(self) -> str:
        """Return everything as a JSON object, in ASCII: nothing in it can control a terminal."""
        return json.dumps(self.as_builtins(), indent=2)

    def as_builtins(self) -> ev.JsonValue:
        """Return everything as JSON values."""
        known: dict[str, ev.JsonValue] = msgspec.to_builtins(self)
        return {"verdict": self.verdict, "ok": self.ok, "login_wanted": self.login_wanted, **known}

    def table(self, width: int = ROOM) -> str:
        """Return everything as readable text.

        Control characters and invisible ones are written as escapes.

        Args:
            width: The number of columns.
        """
        text = StringIO()
        table = Table(text, lambda: width)
        table.begin(self.agent, self.title, self.command)
        for check in self.checks:
            table.check(check)
        table.end(self.agent, self.checks, self.quirks)
        return text.getvalue()
