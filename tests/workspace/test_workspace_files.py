"""Reading and writing below the roots."""

from __future__ import annotations

import os
import resource
import socket
import stat
import sys
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from drawing import drawn
from hypothesis import strategies as st
from workspace.workspace_agent import Peer, agent

from thinkwell.workspace import Workspace
from thinkwell_acp import RpcError
from thinkwell_acp.errors import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_LINKS = 40
"""What Linux follows in one path."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@contextmanager
def refused(why: str, words: str = "", path: str = "it") -> Generator[None]:
    try:
        yield
    except RpcError as exc:
        error = exc
    else:
        pytest.fail(f"{path} is not refused")
    data = error.data
    assert isinstance(data, dict)
    assert data["reason"] == why, path
    codes = {"missing": RESOURCE_NOT_FOUND, "system": INTERNAL_ERROR}
    assert error.code == codes.get(why, INVALID_PARAMS)
    assert words in error.message
    assert len(error.message) < 400


def serving(root: Path, **limits: Any) -> AbstractAsyncContextManager[Peer]:
    """Open an agent that may read and write below a root."""
    return agent(Workspace(root, write=True, **limits))


# Reading


TEXTS = ("", "one line", "a\r\nb\n", "\ufeffwith a mark", "a\rb", "a\u2028b\x85c\x0cd\n", "\0", "𝄞é\n")


async def test_text_is_read_and_written_as_it_is(root: Path) -> None:
    async with serving(root) as peer:
        for content in TEXTS:
            (root / "file").write_bytes(content.encode())
            assert await peer.read(root / "file") == content
            await peer.write(root / "new/folders/file", content)
            assert (root / "new/folders/file").read_bytes() == content.encode()


@pytest.mark.draws
async def test_the_range_is_that_of_pythons_own_lines(root: Path) -> None:
    """A line ends with a line feed, and with nothing else."""
    contents = st.lists(st.sampled_from(["\n", "\r\n", "a", "é", "𝄞", "\u2028", "bcd"]), max_size=40)
    numbers = st.none() | st.integers(0, 30)
    async with agent(Workspace(root)) as peer:
        for content, line, limit in drawn(st.tuples(contents.map("".join), numbers, numbers), 100):
            path = root / "file"
            path.write_bytes(content.encode())
            with path.open(encoding="utf-8", newline="\n") as file:
                lines = file.readlines()
            start = max(line or 1, 1) - 1
            wanted = "".join(lines[start:] if limit is None else lines[start : start + limit])
            assert await peer.read(path, line, limit) == wanted


@pytest.mark.draws
async def test_a_range_is_cut_between_characters(root: Path) -> None:
    path = root / "file"
    for content, max_bytes in drawn(st.tuples(st.text(max_size=60), st.integers(1, 80)), 60):
        data = content.encode()
        path.write_bytes(data)
        async with serving(root, max_read_bytes=max_bytes) as peer:
            got = await peer.answer(path, line=1)
            cut = len(data) > max_bytes
            assert got.meta == ({"thinkwell/truncated": True} if cut else None)
            assert got.content == data[:max_bytes].decode(errors="ignore")
            if cut:
                with refused("size", "read it in parts"):
                    await peer.read(path)


async def test_long_files_are_read_in_pieces(root: Path) -> None:
    lines = [f"line {number} {'x' * (number % 300)}\n" for number in range(1, 20_001)]
    path = root / "file"
    path.write_text("".join(lines))
    async with serving(root) as peer:
        assert await peer.read(path) == "".join(lines)
        assert await peer.read(path, 15_000, 3) == "".join(lines[14_999:15_002])
        assert await peer.read(path, 2, 9_000) == "".join(lines[1:9_001])
        assert await peer.read(path, 20_002) == ""


async def test_a_file_that_does_not_tell_its_size_is_limited_too(root: Path) -> None:
    """Such as those that the system makes up while they are read."""
    if not Path("/proc/self/mountinfo").is_file():
        pytest.skip("needs /proc")
    async with agent(Workspace("/proc/self", max_read_bytes=10)) as peer:
        with refused("size"):
            await peer.read("/proc/self/mountinfo")


async def test_what_is_no_text_is_refused(root: Path) -> None:
    """An agent that writes back replacement characters would spoil the file."""
    (root / "file").write_bytes(b"caf\xe9")
    async with serving(root) as peer:
        with refused("text", "byte 3"):
            await peer.read(root / "file")
        with refused("text"):
            await peer.read(root / "file", 1)


# Paths


PATHS = {
    ("path", "is not an absolute path"): (
        *("file", "", "./file", "~/file", "file:///file", "C:\\file", "x" * 300),
    ),
    ("path", ""): ("ROOT/fi\0le", "ROOT/" + "a" * 300, "ROOT/" + "a/" * 3000),
    ("missing", ""): ("ROOT/missing", "ROOT/missing/../file"),
    ("kind", ""): (
        "ROOT",
        "ROOT/",
        "ROOT/.",
        "ROOT/sub/..",
        "ROOT/sub",
        "ROOT/file/",
        "ROOT/file/.",
        "ROOT/file/x",
    ),
}
"""Paths that name no file, by the reason and the words of the refusal."""


async def test_what_is_no_path_of_a_file(root: Path) -> None:
    (root / "file").write_text("ours")
    (root / "sub").mkdir()
    async with serving(root) as peer:
        for (why, words), paths in PATHS.items():
            for path in paths:
                full = path.replace("ROOT", str(root))
                with refused(why, words, path):
                    await peer.read(full)
                if why != "missing":
                    with refused(why, words, path):
                        await peer.write(full, "new")
    assert sorted(path.name for path in root.iterdir()) == ["file", "sub"]
    assert not [*(root / "sub").iterdir()]


async def test_special_files_are_refused_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root)  # a socket's path must be short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        special = {"pipe": "kind", "socket": "kind", "null": "outside"}
        if os.geteuid() == 0:
            os.mknod(root / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
            special["device"] = "kind"
        async with serving(root) as peer:
            for name, why in special.items():
                with refused(why, path=name):
                    await peer.read(root / name)
                with refused(why, path=name):
                    await peer.write(root / name, "new")


async def test_as_many_links_as_the_system_follows(root: Path) -> None:
    (root / "0").write_text("ours")
    for number in range(MAX_LINKS + 1):
        (root / f"{number + 1}").symlink_to(str(number))
    async with serving(root) as peer:
        assert await peer.read(root / f"{MAX_LINKS}") == "ours"
        with refused("path", "too many links"):
            await peer.read(root / f"{MAX_LINKS + 1}")


async def test_paths_made_to_cost_time_are_refused(root: Path) -> None:
    (root / "/".join(["d"] * 100)).mkdir(parents=True)
    path = f"{root}/{'d/' * 100}{'../d/' * 700}file"
    async with serving(root) as peer:
        with refused("path", "too many folders"):
            await peer.read(path)


async def test_several_roots(tmp_path: Path) -> None:
    for name in ("a", "b", "a/inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "a/to-b").symlink_to("../b/file")
    roots = (tmp_path / "a", tmp_path / "b", tmp_path / "a/inner")
    async with agent(Workspace(*roots, deny=["/inner/secret"])) as peer:
        for path, content in (
            ("a/file", "a"),
            ("b/file", "b"),
            ("a/inner/file", "a/inner"),
            ("a/inner/../file", "a"),
            ("a/to-b", "b"),
            ("a/../b/file", "b"),
        ):
            assert await peer.read(f"{tmp_path}/{path}") == content
        with refused("denied"):
            await peer.read(tmp_path / "a/inner/secret")
        with refused("outside"):
            await peer.read(tmp_path / "c/file")


async def test_a_root_reached_through_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "real/sub/file").write_text("ours")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "short").symlink_to("real/sub")
    (tmp_path / "away").symlink_to("/etc")
    async with agent(Workspace(tmp_path / "link", terminal=True)) as peer:
        for path in ("real/sub/file", "link/sub/file", "link/sub/../sub/file"):
            assert await peer.read(tmp_path / path) == "ours"
        with refused("outside"):
            await peer.read(tmp_path / "short/file")
        async with peer.session(tmp_path / "short") as other:
            assert await peer.read(tmp_path / "short/file") == "ours"
            assert await other.folder() == f"{tmp_path}/real/sub"
        async with peer.session("/etc"), peer.session(tmp_path / "away"):
            with refused("outside"):
                await peer.read(tmp_path / "away/passwd")


async def test_the_whole_machine_may_be_a_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ours")
    async with agent(Workspace("/")) as peer:
        assert await peer.read(tmp_path / "file") == "ours"
        assert await peer.read(f"/../..{tmp_path}/../{tmp_path.name}/file") == "ours"


async def test_a_root_that_has_gone(root: Path) -> None:
    async with agent(Workspace(root)) as peer:
        root.rmdir()
        with refused("missing"):
            await peer.read(root / "file")


DENIED = (
    *(".env", ".ENV.local", "sub/.env", ".git/config", "sub/.git", "sub/../.git/x", "build/out/x"),
    *("link-to-env", "caf\u0065\u0301"),
)


async def test_denied_names(root: Path) -> None:
    (root / "sub/build").mkdir(parents=True)
    (root / "build/out").mkdir(parents=True)
    (root / "link-to-env").symlink_to(".env")
    async with serving(root, deny=[".env*", ".git/", "/build/*", "café"]) as peer:
        for path in DENIED:
            with refused("denied", path=path):
                await peer.read(f"{root}/{path}")
            with refused("denied", path=path):
                await peer.write(f"{root}/{path}", "new")
        for path in ("sub/build/x", "env", "file.env"):
            with refused("missing", path=path):
                await peer.read(root / path)


# Writing


async def test_a_new_file_has_the_usual_permissions(root: Path) -> None:
    (root / "usual").touch()
    async with serving(root) as peer:
        await peer.write(root / "new", "x")
    assert (root / "new").stat().st_mode == (root / "usual").stat().st_mode


async def test_an_old_file_keeps_its_permissions_and_owner(root: Path) -> None:
    (root / "script").write_text("old")
    (root / "script").chmod(0o751)
    if os.geteuid() == 0:
        os.chown(root / "script", 1234, 1235)
    before = (root / "script").stat()
    async with serving(root) as peer:
        await peer.write(root / "script", "new")
    after = (root / "script").stat()
    assert (root / "script").read_text() == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


async def test_a_write_breaks_a_hard_link_and_keeps_a_symbolic_one(root: Path) -> None:
    outside = root.parent / "outside"
    outside.write_text("theirs")
    os.link(outside, root / "hard")
    (root / "real").mkdir()
    (root / "link").symlink_to("real/file")
    async with serving(root) as peer:
        await peer.write(root / "hard", "new")
        await peer.write(root / "link", "new")
    assert outside.read_text() == "theirs"
    assert (root / "link").is_symlink()
    assert (root / "real/file").read_text() == "new"


async def test_who_reads_meanwhile_sees_all_of_the_old_text(root: Path) -> None:
    (root / "file").write_text("old")
    with (root / "file").open() as reader:
        async with serving(root) as peer:
            await peer.write(root / "file", "new")
        assert reader.read() == "old"


async def test_what_cannot_be_written_changes_nothing(root: Path) -> None:
    async with serving(root, max_write_bytes=10) as peer:
        for content in ("x" * 11, "é" * 6):
            with refused("size"):
                await peer.write(root / "new/file", content)
    assert not [*root.iterdir()]


async def test_a_full_disk_changes_nothing(root: Path) -> None:
    """A limit on the size of files fails the write in the same place."""
    (root / "file").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with serving(root) as peer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with refused("system", "is refused by the system: File too large"):
                await peer.write(root / "file", "x" * 5000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in root.iterdir()] == ["file"]
    assert (root / "file").read_text() == "old"


async def test_a_folder_that_another_program_makes_at_the_same_time(root: Path) -> None:
    """As two writes into one new folder do."""
    armed = True

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal armed
        if armed and event == "os.mkdir" and args[0] == "made-by-two":
            armed = False
            (root / "made-by-two").mkdir()

    sys.addaudithook(hook)
    async with serving(root) as peer:
        await peer.write(root / "made-by-two/file", "new")
    assert not armed
    assert (root / "made-by-two/file").read_text() == "new"


@contextmanager
def as_somebody_else() -> Generator[None]:
    """Run without the superuser's powers, where there are any."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_what_the_system_forbids_is_an_error(root: Path) -> None:
    for name, mode in (("read-only", 0o444), ("unreadable", 0)):
        (root / name).write_text("ours")
        (root / name).chmod(mode)
    root.chmod(0o777)
    for folder in root.parents:
        if folder.stat().st_mode & 0o011 != 0o011:
            folder.chmod(folder.stat().st_mode | 0o011)  # of pytest's own, for its user only
    async with agent(Workspace(root, write=True)) as peer:
        with as_somebody_else():
            assert await peer.read(root / "read-only") == "ours"
            with refused("system", "Permission denied"):
                await peer.read(root / "unreadable")
            with refused("system", "Permission denied"):
                await peer.write(root / "read-only", "new")
            await peer.write(root / "new", "new")
        root.chmod(0o311)
        if sys.platform == "linux":  # a folder that may be entered, but not listed
            with as_somebody_else():
                assert await peer.read(root / "read-only") == "ours"
        root.chmod(0o700)
    assert (root / "read-only").read_text() == "ours"
