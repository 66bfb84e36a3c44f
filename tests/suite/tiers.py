"""Which cases `make test` runs, and which `make test-all` adds: those marked `long`.

What draws examples runs in both: in `make test` it draws a few. The values of a parametrised test are a
table: `make test` runs some of its rows, and all of them where a folder or file is asked for.

An asynchronous case runs on asyncio and on trio. Outside of `BOTH_LOOPS` nothing knows which loop it runs on:
one of the two, drawn by the name of the case, is enough for `make test`.
"""

from __future__ import annotations

import gc
import itertools
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, cast
from zlib import crc32

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

BOTH_LOOPS: Final = (
    "tests/acp/test_acp_daemons",
    "tests/acp/test_acp_own_stdio",
    "tests/acp/test_acp_stdio",
    "tests/acp/test_acp_tasks",
    "tests/agent/test_event_loops",
    "tests/agent/test_forks",
    "tests/agent/test_leaving_elsewhere",
    "tests/progress/test_interrupt",
    "tests/stream/",
    "tests/sync/",
    "tests/terminals/",
    "tests/testing/test_simulate",
    "tests/testing/test_virtual",
)
"""Where the tests are of what differs by the loop: processes, threads, signals, time, the log of a run."""

LOOPS: Final = ("asyncio", "trio")

FEW: Final = 25
"""Examples of a property in `make test`; in percent, the share of rows, and of examples a test asks for."""

REFREEZE: Final = 100
"""Cases after which what is still there is taken to stay."""

_finished: Final = itertools.count(1)

_percent: int = 100


def few(count: int) -> int:
    """Return how many examples to draw where so many are drawn in `make test-all`."""
    return -(-count * _percent // 100)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw a few examples where long cases are left out."""
    global _percent
    if "not long" in config.option.markexpr:
        _percent = FEW
        settings.register_profile("few", settings.get_profile("ci"), max_examples=FEW)
        settings.load_profile("few")


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop that the test runs on."""
    backend: str = request.param
    return backend


def _name_of(value: object) -> object:
    """Return what a parameter names; a tuple has the options of a virtual clock too."""
    if not isinstance(value, tuple):
        return value
    return next(iter(cast("tuple[object, ...]", value)), None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as `long`: most rows, the other loop's half, and outside of `make test` what draws more there."""
    paths = cast("list[str]", config.getini("testpaths"))
    if [config.rootpath / path for path in config.args] == [config.rootpath / path for path in paths]:
        _draw_rows(items)
    # Where the other loop is long by its own mark, this one is all that is left for `make test`.
    names = {item.nodeid for item in items if item.get_closest_marker("long") is None}
    for item in items:
        if _percent == 100 and (item.get_closest_marker("draws") or _is_property(item)):
            item.add_marker(pytest.mark.long)
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        values: Iterable[object] = item.callspec.params.values()
        loop = next((name for name in map(_name_of, values) if name in LOOPS), "")
        if loop and not item.nodeid.startswith(BOTH_LOOPS):
            other = LOOPS[1 - LOOPS.index(loop)]
            if loop != _drawn(item.nodeid) and item.nodeid.replace(loop, other) in names:
                item.add_marker(pytest.mark.long)


def _draw_rows(items: list[pytest.Item]) -> None:
    tables: defaultdict[str, defaultdict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        if hasattr(item, "callspec") and not any(map(item.get_closest_marker, ("long", "interop"))):
            tables[item.nodeid.partition("[")[0]][_without_loop(item.nodeid)].append(item)
    for rows in tables.values():
        drawn = sorted(rows, key=lambda row: crc32(row.encode()))
        for row in drawn[-(-len(rows) * FEW // 100) :]:
            for item in rows[row]:
                item.add_marker(pytest.mark.long)


def _is_property(item: pytest.Item) -> bool:
    return getattr(getattr(item, "obj", None), "is_hypothesis_test", False) is True


def _without_loop(name: str) -> str:
    for loop in LOOPS:
        name = name.replace(loop, "")
    return name


def _drawn(name: str) -> str:
    return LOOPS[crc32(_without_loop(name).encode()) % 2]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is collected out of later searches for garbage, which would take most of a second each."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Leave out what has been imported since, too: a worker grows by hundreds of megabytes."""
    if next(_finished) % REFREEZE == 0:
        gc.collect()
        gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file of which no case runs."""
    left_out = [tier for tier in ("long", "interop") if f"not {tier}" in config.option.markexpr]
    if left_out and collection_path.name.startswith("test_"):
        marked = re.search(
            r"^pytestmark = pytest\.mark\.(\w+)$", collection_path.read_text(encoding="utf-8"), re.MULTILINE
        )
        return True if marked and marked[1] in left_out else None
    return None
