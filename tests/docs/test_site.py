"""The reference has every public name, and the site builds without a warning and shows them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
MODULES = (
    "thinkwell",
    "thinkwell.builtin",
    "thinkwell.channels",
    "thinkwell.channels.telegram",
    "thinkwell.events",
    "thinkwell.errors",
    "thinkwell.doctor",
    "thinkwell.journal",
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
    for page in sorted(REFERENCE.glob("*.md")):
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},  # what the theme's makers plan, told at each build
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in result.stderr.splitlines() if not line.startswith("INFO ")] == []
    assert result.returncode == 0
    return folder


@pytest.mark.long
def test_the_site_has_every_page(site: Path) -> None:
    """Those that are written and not in the navigation would be found by nobody."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs")
        assert re.search(rf"^ +- [^\n]+: {re.escape(name.as_posix())}$", navigation, re.MULTILINE), name
        built = name.with_suffix(".html") if name.stem == "index" else name.with_suffix("") / "index.html"
        assert (site / built).is_file(), name


def field_names(thing: object) -> set[str]:
    """What the values of a class are made of, if it is one of values."""
    if not isinstance(thing, type):
        return set()
    names: set[str] = {*getattr(thing, "__struct_fields__", ()), *getattr(thing, "__required_keys__", ())}
    names |= set(getattr(thing, "__optional_keys__", ()))
    if is_dataclass(thing):
        names |= {field.name for field in fields(thing)}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.long
def test_the_site_has_a_place_for_each_name_and_each_field(site: Path) -> None:
    pages = {page.parent.name: page.read_text("utf-8") for page in site.glob("reference/*/index.html")}
    found = {id_ for text in pages.values() for id_ in re.findall(r'\bid="([\w.]+)"', text)}
    wanted = {path for path, thing in entries() if not isinstance(thing, ModuleType)}
    for path, thing in entries():
        if not path.startswith("thinkwell.errors."):  # their docstrings have tables of what they carry
            wanted |= {f"{path}.{name}" for name in field_names(thing)}
    for agent in ("ScriptedAgent", "RecordedAgent"):  # what they inherit
        wanted |= {f"thinkwell.testing.{agent}.{name}" for name in ("open", "connect", "sent")}
    assert wanted - found == set()
    assert [page for page, text in pages.items() if "<p>::</p>" in text] == []
    signature = re.sub(r"<[^>]+>|\s", "", pages["thinkwell"])
    assert "open_agent(agent:AgentName|str|AgentProfile|None=None,/,*,command:" in signature
