"""``python -m interop``: pin today's versions of the agents and of what they need, and show what changes."""
# ruff: noqa: T201

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import msgspec

from interop.agents import AGENTS
from interop.more_agents import MORE_AGENTS
from interop.pins import FILE, PINS, Pins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def main() -> None:
    """Move the pins to the begin of today: what is still published today would change what they stand for."""
    move(dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT00:00:00Z"), FILE)


def move(until: str, file: Path) -> None:
    """Move the pins to a point in time."""
    recipes = {recipe.package: recipe for recipe in (*AGENTS, *MORE_AGENTS)}
    versions: dict[str, str] = {}
    print(f"until {PINS.until} -> {until}")
    for package, recipe in sorted(recipes.items()):
        new = recipe.resolve(None, until)
        versions[package] = new[package]
        old = recipe.resolve(recipe.version, PINS.until)
        print(f"{package} {_step(old[package], new[package])}")
        for line in _changes(old, new, but=package):
            print(f"    {line}")
    pins = Pins(until=until, versions=versions)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(pins), indent=2) + b"\n")


def _changes(old: Mapping[str, str], new: Mapping[str, str], *, but: str) -> Iterator[str]:
    for package in sorted((old.keys() | new.keys()) - {but}):
        before, after = old.get(package), new.get(package)
        if before != after:
            yield f"{package} {_step(before or 'absent', after or 'absent')}"


def _step(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


if __name__ == "__main__":
    main()
