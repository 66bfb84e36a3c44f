"""Stand-in."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class CallFacts(Struct, frozen=True, kw_only=True):
    """Stand-in."""

    title: str = ""
    kind: Any = "other"
    input: Any = None
    content: Any = ()
    name: str | None = None
    server: str | None = None
    command: str | None = None
    paths: tuple[str, ...] = ()


def facts_of(call: Any, known: Any, cwd: str) -> CallFacts:
    """Stand-in."""
    return CallFacts(title=call.title or "", kind=call.kind or "other", input=call.raw_input)
