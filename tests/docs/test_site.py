"""The pages have every public name once, are in the navigation, and are short enough to read."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import pytest
from docs.pages import DOCS, PAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = DOCS / "reference"
MODULES = (
    "thinkwell",
    "thinkwell.builtin",
    "thinkwell.channels",
    "thinkwell.channels.telegram",
    "thinkwell.events",
    "thinkwell.errors",
    "thinkwell.doctor",
    "thinkwell.journal",
    "thinkwell.trials",
    "thinkwell.journal.redis",
    "thinkwell.listen",
    "thinkwell.progress",
    "thinkwell.sync",
    "thinkwell.sync.progress",
    "thinkwell.testing",
    "thinkwell.web",
    "thinkwell_acp",
)
ENTRY = re.compile(r"^::: (\S+)\n((?: .*\n)*)", re.MULTILINE)
ALONE = re.compile(r"^ +members: false$", re.MULTILINE)
"""Of a module, only what it says of itself."""


@cache
def entries() -> list[tuple[str, object]]:
    """Every object that a page of the reference shows, by the name that it has there."""
    shown: list[tuple[str, object]] = []
    for page in sorted(REFERENCE.rglob("*.md")):
        for path, options in ENTRY.findall(page.read_text("utf-8")):
            thing = resolve_name(path)
            shown.append((path, thing))
            if isinstance(thing, ModuleType) and not ALONE.search(options):
                shown += [(f"{path}.{name}", getattr(thing, name)) for name in thing.__all__]
    return shown


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_every_public_name(module: str) -> None:
    public = import_module(module)
    shown = [thing for _, thing in entries()]
    names = set(public.__all__) - {"__version__"}
    missing = [name for name in names if not any(thing is getattr(public, name) for thing in shown)]
    assert missing == [], "add them to a page of docs/reference"


def test_no_name_is_listed_twice() -> None:
    paths = [path for path, _ in entries()]
    assert sorted(paths) == sorted(set(paths))


Navigation: TypeAlias = "str | dict[str, Navigation] | list[Navigation]"


def pages_of(part: Navigation) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(part, str):
        return [part]
    parts = part.values() if isinstance(part, dict) else part
    return [page for each in parts for page in pages_of(each)]


def test_every_page_is_in_the_navigation_once() -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    there = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
    assert sorted(pages_of(settings["project"]["nav"])) == there


@pytest.mark.parametrize(
    "folder", [path for path in REFERENCE.iterdir() if path.is_dir()], ids=lambda path: path.name
)
def test_the_first_page_of_a_package_links_to_each_name_of_the_others(folder: Path) -> None:
    """The script for old addresses follows these links."""
    index = folder.with_suffix(".md").read_text("utf-8")
    for page in folder.glob("*.md"):
        for path, options in ENTRY.findall(page.read_text("utf-8")):
            assert f"][{path}]" in index or "show_root_heading: false" in options, f"{page.name}: {path}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_can_be_read_at_once(page: Path) -> None:
    if not page.is_relative_to(REFERENCE):
        assert len(page.read_text("utf-8").split()) <= 2_000


def test_the_readme_is_short_and_begins_with_the_installation() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 120
    first = next(line for line in lines if line.startswith("$ "))
    assert "install" in first
