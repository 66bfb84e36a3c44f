"""What the doctor found, as values."""

from __future__ import annotations

import json
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from thinkwell import events as ev  # noqa: TC001 - types of fields, read at run time
from thinkwell.agents import Quirk  # noqa: TC001
from thinkwell.agents._profile import Way  # noqa: TC001
from thinkwell.doctor._table import ROOM, table
from thinkwell.errors import AuthMethod  # noqa: TC001

Status: TypeAlias = Literal["ok", "warning", "failed", "skipped"]
"""What became of a check."""

WORKS: Final = 0
FAILED: Final = 1
WANTS_LOGIN: Final = 3


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    """``found``, ``installed``, ``starts``, ``version``, ``protocol``, ``capabilities``, ``login``,
    ``session``, ``tools over acp``, ``tools over http``, ``tools over stdio``, ``server NAME`` (for each of
    the caller's MCP servers), ``mcp servers`` (where there are some) or ``ends``."""
    status: Status
    detail: str = ""
    """What was found, in words. Parts of it may be the agent's own."""
    seconds: float | None = None
    """How long it took, where that says something."""
    hint: str = ""
    """What to do. A line that begins with ``$`` is one to type in a terminal."""
    stderr: str = ""
    """The end of what the agent wrote to standard error, where that may say why."""


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
    ways: tuple[Way, ...] = ()
    """The ways by which our tools reach it, the plainest first."""
    checks: tuple[Check, ...] = ()
    quirks: tuple[Quirk, ...] = ()
    """What its profile knows of it that no specification says."""

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return self.exit_code == WORKS

    @property
    def login_wanted(self) -> bool:
        """Whether the agent works, but for a login."""
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
        return {"ok": self.ok, "login_wanted": self.login_wanted, **known}

    def table(self, width: int = ROOM) -> str:
        """Return everything as text for people.

        Control characters, and others that do not show, are written as escapes.

        Args:
            width: How many columns there are.
        """
        return table(self, width)
