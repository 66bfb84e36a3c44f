"""Which cases `make test` runs, and which `make test-all` adds: those marked `long`.

An asynchronous case runs on asyncio and on trio. Outside of `BOTH_LOOPS` nothing knows which loop it runs on:
one of the two, drawn by the name of the case, is enough for `make test`.
"""

from __future__ import annotations

import gc
import importlib
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

BOTH_LOOPS: Final = frozenset(
    {
        "acp",
        "agent",
        "limits",
        "sessions",
        "simulation",
        "stream",
        "sync",
        "terminals",
        "testing",
    }
)
"""The folders of what differs by the loop: tasks, cancellation, processes, threads, time."""

LOOPS: Final = ("asyncio", "trio")


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop that the test runs on."""
    backend: str = request.param
    return backend


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the other loop's half of the cases as `long`."""
    tests = config.rootpath / "tests"
    names = {item.nodeid for item in items}
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        loop = item.callspec.params.get("anyio_backend")
        if isinstance(loop, tuple):  # with the options of a virtual clock
            loop = loop[0]
        if loop in LOOPS and item.path.relative_to(tests).parts[0] not in BOTH_LOOPS:
            other = LOOPS[1 - LOOPS.index(loop)]
            if loop != _drawn(item.nodeid) and item.nodeid.replace(loop, other) in names:
                item.add_marker(pytest.mark.long)


def _drawn(name: str) -> str:
    for loop in LOOPS:
        name = name.replace(loop, "")
    return LOOPS[crc32(name.encode()) % 2]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected, which stays to the end, out of every later search for garbage.

    Each would take the better part of a second. Hypothesis comes first: it asks at its import what refers to
    trio's dice, and what is frozen is not found.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        with suppress(ImportError):
            importlib.import_module("hypothesis")
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file of which no case runs."""
    left_out = [tier for tier in ("long", "interop") if f"not {tier}" in config.option.markexpr]
    if left_out and collection_path.name.startswith("test_"):
        marked = re.search(
            r"^pytestmark = pytest\.mark\.(\w+)$", collection_path.read_text(encoding="utf-8"), re.MULTILINE
        )
        return True if marked and marked[1] in left_out else None
    return None
