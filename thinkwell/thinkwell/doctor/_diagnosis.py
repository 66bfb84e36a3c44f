"""What the doctor found, as values."""

from __future__ import annotations

import json
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from thinkwell import events as ev  # noqa: TC001 - types of fields, read at run time
from thinkwell.agents import (
    Quirk,  # noqa: TC001
    ToolTransport,  # noqa: TC001
)
from thinkwell.doctor._check import Check, is_of_servers, is_open
from thinkwell.doctor._table import ROOM, folded, heading, quirks, rows, verdict
from thinkwell.errors import AuthMethod  # noqa: TC001

Verdict: TypeAlias = Literal["works", "does not", "unknown"]
"""Whether an agent works; ``unknown``: that cannot be known without a prompt, or before a login."""

WORKS: Final = 0
FAILED: Final = 1
WANTS_LOGIN: Final = 3


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What the doctor found out about an agent."""

    agent: str
    """What was asked for, or the name of the program."""
    title: str = ""
    """What the agent is called where it is known."""
    command: tuple[str, ...] = ()
    """What was started, or would have been, without what looks like a key."""
    version: str | None = None
    """The version that the agent says it is."""
    capabilities: dict[str, ev.JsonValue] | None = None
    """What it advertises, in the protocol's form; ``None`` where it did not get as far."""
    auth_methods: tuple[AuthMethod, ...] = ()
    """The ways to log in that it offers, whether it wants a login or not."""
    ways: tuple[ToolTransport, ...] = ()
    """The ways by which our tools reach it, the plainest first."""
    checks: tuple[Check, ...] = ()
    quirks: tuple[Quirk, ...] = ()
    """What its profile knows of it that no specification says."""

    @property
    def verdict(self) -> Verdict:
        """Whether the agent works, whatever your MCP servers do. Without a prompt, it is never ``works``."""
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
        """Whether the agent wants a login, and nothing else is wrong as far as that shows."""
        return self.exit_code == WANTS_LOGIN

    @property
    def exit_code(self) -> int:
        """0: no check failed. 3: it wants a login, and nothing else is wrong. 1: a check failed."""
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
        """Return everything as text for people.

        Control characters, and others that do not show, are written as escapes.

        Args:
            width: How many columns there are.
        """
        lines = [
            *heading(self.agent, self.title, self.command),
            "",
            *(line for check in folded(self.checks) for line in rows(check, width)),
            *quirks(self.quirks, width),
            "",
            verdict(self.agent, self.checks),
        ]
        return "\n".join(lines) + "\n"
