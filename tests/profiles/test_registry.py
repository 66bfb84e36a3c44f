"""The public registry: entries of every shape, bad ones skipped, our copy replaced whole or not at all."""

from __future__ import annotations

import json
import platform
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles.file_server import FileServer, file_server

from thinkwell import open_agent
from thinkwell.agents import (
    AgentProfile,
    Archive,
    Binary,
    Npx,
    RegistryChange,
    RegistryUpdate,
    SkippedEntry,
    Uvx,
    find_agent,
    known_agents,
    update_agents,
)
from thinkwell.errors import AgentNotFound, RegistryError

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE = {
    "id": "odd",
    "name": "Odd",
    "version": "1.2.3",
    "description": "An agent\nof two lines",
    "repository": "https://example.invalid/odd",
    "authors": ["Somebody <somebody@example.invalid>"],
    "license": "MIT",
    "icon": "https://example.invalid/odd.svg",
    "distribution": {"npx": {"package": "@odd/agent@1.2.3", "args": ["--acp"], "env": {"NO_UPDATE": "1"}}},
    "new-key": {"any": ["thing"]},
}
TARGET = {"archive": "https://example.invalid/odd.tgz", "cmd": "./odd", "args": ["acp"], "env": {"A": "b"}}


ARCHIVE = Archive(archive="https://example.invalid/odd.tgz", cmd="./odd", args=("acp",), env={"A": "b"})


def entry_of(**changes: object) -> dict[str, object]:
    return {**ONE, **changes}


def registry(*entries: object, **more: object) -> bytes:
    return json.dumps({"version": "1.0.0", "agents": entries, "extensions": [], **more}).encode()


async def update(*entries: object) -> RegistryUpdate:
    """Read a registry of these entries from a file."""
    source = Path("source.json")
    source.write_bytes(registry(*entries))
    return await update_agents(source)


async def one(**changes: object) -> AgentProfile:
    """Return what becomes of an entry."""
    assert not (await update(entry_of(**changes))).skipped
    return find_agent("odd")


def registered() -> set[str]:
    """Return the agents of our copy that these tests have put there."""
    names = {"odd", "even", "same", "new", "gone"}
    return {profile.name for profile in known_agents() if profile.name in names}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "config"))
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache" / "thinkwell"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as files:
        yield files


async def test_an_entry_is_a_profile() -> None:
    profile = await one()
    assert (profile.name, profile.registry, profile.title) == ("odd", "odd", "Odd")
    assert profile.website == "https://example.invalid/odd"
    assert profile.launch == Npx(package="@odd/agent", version="1.2.3", args=("--acp",))
    assert profile.env.set == {"NO_UPDATE": "1"}


WAYS: tuple[tuple[dict[str, object], object], ...] = (
    ({"npx": {"package": "odd@2.0.0-beta.1"}}, Npx(package="odd", version="2.0.0-beta.1")),
    ({"npx": {"package": "odd@latest"}}, Npx(package="odd", version="latest")),
    ({"npx": {"package": "odd"}}, Npx(package="odd", version="1.2.3")),
    ({"npx": {"package": "@odd/agent"}}, Npx(package="@odd/agent", version="1.2.3")),
    ({"uvx": {"package": "odd==2.0"}}, Uvx(package="odd", version="2.0")),
    ({"uvx": {"package": "odd@2.0", "args": ["a"]}}, Uvx(package="odd", version="2.0", args=("a",))),
    ({"uvx": {"package": "odd[acp,b] == 2.0"}}, Uvx(package="odd[acp,b]", version="2.0")),
    ({"uvx": {"package": "odd"}}, Uvx(package="odd", version="1.2.3")),
    ({"uvx": {"package": "odd>=1.0"}}, Uvx(package="odd", version="1.2.3")),
    ({"npx": {"package": "n"}, "uvx": {"package": "u"}}, Npx(package="n", version="1.2.3")),
    ({"uvx": {"package": "u"}, "binary": {"a-b": TARGET}}, Uvx(package="u", version="1.2.3")),
    ({"npx": None, "uvx": {"package": "u"}, "docker": {"image": "x"}}, Uvx(package="u", version="1.2.3")),
    ({"binary": {"a-b": TARGET}}, Binary(version="1.2.3", archives={"a-b": ARCHIVE})),
)


async def test_how_it_is_started() -> None:
    for way, expected in WAYS:
        profile = await one(distribution=way)
        assert profile.launch == expected, way
        assert profile.env.set == {}  # those of a binary stay with it


BAD: list[tuple[dict[str, object], str]] = [
    ({"id": "Odd"}, "its id Odd is invalid"),
    ({"id": "../odd"}, "its id ../odd is invalid"),
    ({"id": "o\ndd"}, "'o\\ndd'"),
    ({"version": "latest version"}, "its version latest version is invalid"),
    ({"version": "../../1"}, "its version ../../1 is invalid"),
    ({"version": 1}, "Expected `str`, got `int` - at `$.version`"),
    ({"name": "O\x1b[31mdd"}, "has unprintable characters"),
    ({"distribution": {}}, "neither npx nor uvx nor binary"),
    ({"distribution": {"binary": {}}}, "neither npx nor uvx nor binary"),
    ({"distribution": {"docker": {}}}, "neither npx nor uvx nor binary"),
    ({"distribution": {"npx": {}}}, "missing required field `package`"),
    ({"distribution": {"npx": {"package": ""}}}, "is not a package"),
    ({"distribution": {"npx": {"package": "--package=evil"}}}, "is not a package"),
    ({"distribution": {"npx": {"package": "-c"}}}, "is not a package"),
    ({"distribution": {"npx": {"package": "git+https://example.invalid/x"}}}, "is not a package"),
    ({"distribution": {"npx": {"package": "../x"}}}, "is not a package"),
    ({"distribution": {"npx": {"package": "x@^1.0"}}}, "is not a package"),
    ({"distribution": {"npx": {"package": "x@1; rm"}}}, "is not a package"),
    ({"distribution": {"uvx": {"package": "--from=x"}}}, "is not a package"),
    ({"distribution": {"uvx": {"package": "x @ https://example.invalid/x"}}}, "is not a package"),
    (
        {"distribution": {"npx": {"package": "x", "args": ["a\0b"]}}},
        "'a\\x00b' has unprintable characters",
    ),
    ({"distribution": {"npx": {"package": "x", "args": "a"}}}, "Expected `array`"),
    ({"distribution": {"npx": {"package": "x", "env": {"A=B": ""}}}}, "A=B is not a valid name of a"),
    ({"distribution": {"npx": {"package": "x", "env": {"A": "\n"}}}}, "has unprintable characters"),
    ({"distribution": {"npx": {"package": "x", "env": {"A": 1}}}}, "Expected `str`"),
    ({"distribution": {"binary": {"a-b": {**TARGET, "cmd": "\0"}}}}, "has unprintable characters"),
    (
        {"distribution": {"binary": {"a-b": {**TARGET, "archive": "https://\n"}}}},
        "has unprintable characters",
    ),
    ({"distribution": {"binary": {"a\nb": TARGET}}}, "has unprintable characters"),
    ({"distribution": {"binary": {"a-b": {"cmd": "x"}}}}, "missing required field `archive`"),
]
"""What is changed of an entry, and why it is skipped then."""


async def test_a_bad_entry_is_skipped_and_the_others_are_not() -> None:
    read = await update(*(entry_of(**changes) for changes, _ in BAD), entry_of(id="even"))
    assert (read.total, read.added) == (1, ("even",))
    for (_, reason), skipped in zip(BAD, read.skipped, strict=True):
        assert reason in skipped.reason
        assert f"{skipped.id}: {skipped.reason}".isprintable()


async def test_entries_that_are_none() -> None:
    read = await update(None, {}, {"id": 3}, ONE, ONE, {"id": "half"}, {"id": "a\nb"})
    assert (read.total, read.added) == (1, ("odd",))
    assert [skipped.id for skipped in read.skipped] == ["#1", "#2", "#3", "odd", "half", "'a\\nb'"]
    assert read.skipped[3].reason == "an earlier entry has the same id"


async def test_what_is_no_registry(tmp_path: Path) -> None:
    for data in (
        *(b"", b"{}", b"[]", b"<html>", b'{"agents": {}}', b'{"agents": [', b"\xff", b'{"agents": 1}'),
        b'{"agents": ' + b"[" * 100_000,
    ):
        (tmp_path / "none.json").write_bytes(data)
        with pytest.raises(RegistryError, match=r"it is not a registry of agents: .") as caught:
            await update_agents(tmp_path / "none.json")
        assert "it has no usable agent" not in caught.value.reason, data[:20]


async def test_an_entry_of_great_depth_is_no_registry(tmp_path: Path) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    # What is read as it stands is read over for its end, which is no deeper than the reader allows.
    (tmp_path / "deep.json").write_bytes(b'{"agents": [{"id": "odd", "x": ' + deep + b"}]}")
    with pytest.raises(RegistryError, match="depth"):
        await update_agents(tmp_path / "deep.json")


async def test_a_byte_order_mark_and_no_extensions(tmp_path: Path) -> None:
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"agents": [ONE]}).encode())
    assert (await update_agents(tmp_path / "marked.json")).added == ("odd",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "npx", "binary", "package", "args", "env", "version", "distribution"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(JSON, JSON)
def test_any_json_beside_a_good_entry(key: Any, value: Any) -> None:
    read = anyio.run(update, key, {**ONE, "id": "bad", "distribution": value}, ONE)
    assert "odd" not in {skipped.id for skipped in read.skipped}
    assert read.total + len(read.skipped) == 3


async def test_the_names_of_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = AgentProfile(name="odd", binary=Binary(version="1", archives={}))
    for system, machine, expected in (
        ("Linux", "x86_64", "linux-x86_64"),
        ("Linux", "aarch64", "linux-aarch64"),
        ("Darwin", "arm64", "darwin-aarch64"),
        ("Windows", "AMD64", "windows-x86_64"),
        ("Windows", "ARM64", "windows-aarch64"),
        ("FreeBSD", "riscv64", "freebsd-riscv64"),
    ):
        monkeypatch.setattr(platform, "system", lambda name=system: name)
        monkeypatch.setattr(platform, "machine", lambda name=machine: name)
        with pytest.raises(AgentNotFound, match=f"it has no program for {expected} "):
            async with open_agent(nothing):
                raise AssertionError("it started")


async def test_a_plain_entry_is_a_profile() -> None:
    await update({"id": "odd", "version": "1.2.3", "distribution": {"uvx": {"package": "odd"}}})
    profile = find_agent("odd")
    assert (profile.title, profile.website, profile.env.set) == ("odd", "", {})
    assert profile.launch == Uvx(package="odd", version="1.2.3")


async def test_an_update_from_a_file(tmp_path: Path, cache: Path) -> None:
    assert registered() == set()
    file = tmp_path / "registry.json"
    file.write_bytes(registry(entry_of(), entry_of(id="gone"), entry_of(id="same"), {"id": "bad"}))
    update = await update_agents(file)
    assert (update.source, update.path) == (str(file), cache / "registry.json")
    assert (update.total, update.added, update.changed, update.removed) == (
        3,
        ("odd", "gone", "same"),
        (),
        (),
    )
    assert [skipped.id for skipped in update.skipped] == ["bad"]
    assert update.path.read_bytes() == file.read_bytes()

    file.write_bytes(registry(entry_of(version="1.2.4"), entry_of(id="same"), entry_of(id="new")))
    update = await update_agents(str(file))
    assert (update.total, update.added, update.removed) == (3, ("new",), ("gone",))
    assert update.changed == (RegistryChange(id="odd", before="1.2.3", after="1.2.4"),)
    assert registered() == {"odd", "same", "new"}
    profile = find_agent("same")
    assert profile.files == (str(update.path),)
    assert profile.launch == Npx(package="@odd/agent", version="1.2.3", args=("--acp",))


@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX systems")
async def test_the_copy_is_its_owners(tmp_path: Path) -> None:
    (tmp_path / "registry.json").write_bytes(registry(ONE))
    update = await update_agents(tmp_path / "registry.json")
    assert stat.S_IMODE(update.path.stat().st_mode) == 0o600


async def test_an_update_from_an_address(server: FileServer, cache: Path) -> None:
    update = await update_agents(server.file("/registry.json", registry(ONE)))
    assert update.added == ("odd",)
    assert [path.name for path in cache.iterdir()] == ["registry.json"]


async def test_what_cannot_be_used_does_not_replace_the_copy(
    server: FileServer, tmp_path: Path, cache: Path
) -> None:
    good, empty = tmp_path / "good", tmp_path / "empty"
    good.write_bytes(registry(ONE))
    empty.write_bytes(registry({"id": "bad"}))
    await update_agents(good)
    for source, reason in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "Is a directory"),
        (empty, "it has no usable agent (bad: Object missing required field"),
        (server.url("/none"), "answered 404 Not Found"),
        (server.file("/page", b"<html>"), "it is not a registry of agents: "),
        (server.file("/empty", registry()), "it has no usable agent. Check the address; https://cdn."),
        ("http://example.invalid/registry.json", "http is for this machine only"),
    ):
        with pytest.raises(RegistryError) as caught:
            await update_agents(source)
        assert caught.value.source == str(source)
        assert reason in caught.value.reason
        assert registered() == {"odd"}
        assert [path.name for path in cache.iterdir()] == ["registry.json"]


async def test_a_registry_that_is_too_large(server: FileServer, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(registry(ONE) + b" " * 16 * 1024**2)
    url = server.file("/large", large.read_bytes())
    for source in (large, url):
        with pytest.raises(RegistryError, match="more than 16777216 bytes"):
            await update_agents(source)


async def test_a_copy_that_cannot_be_written(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "registry.json").write_bytes(registry(ONE))
    (cache / "registry.json").mkdir(parents=True)
    with pytest.raises(RegistryError, match="Is a directory"):
        await update_agents(tmp_path / "registry.json")
    assert [path.name for path in cache.iterdir()] == ["registry.json"]


async def test_a_damaged_copy_is_reported_and_replaced(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir(parents=True)
    (cache / "registry.json").write_bytes(b"{")
    assert registered() == set()
    assert "The copy of the agent registry is not used" in caplog.text
    (tmp_path / "registry.json").write_bytes(registry(ONE))
    assert (await update_agents(tmp_path / "registry.json")).added == ("odd",)
    assert registered() == {"odd"}


def registered_by_number() -> int:
    return sum(profile.name[1:].isdecimal() for profile in known_agents())


async def test_readers_see_the_one_copy_or_the_other(tmp_path: Path) -> None:
    sources = [tmp_path / name for name in ("few", "many")]
    for source, count in zip(sources, (1, 300), strict=True):
        source.write_bytes(registry(*(entry_of(id=f"a{number}") for number in range(count))))
    await update_agents(sources[0])
    seen: set[int] = set()

    async def write() -> None:
        for _ in range(10):
            for source in sources:
                await update_agents(source)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        while not tasks.cancel_scope.cancel_called:
            seen.add(await anyio.to_thread.run_sync(registered_by_number))
    assert seen <= {1, 300}


def test_the_result_of_an_update_is_data() -> None:
    skipped = SkippedEntry(id="odd", reason="no")
    assert msgspec.json.decode(msgspec.json.encode(skipped), type=SkippedEntry) == skipped
