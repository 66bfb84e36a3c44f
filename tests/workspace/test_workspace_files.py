"""Reading and writing below the roots."""

from __future__ import annotations

import os
import resource
import socket
import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from drawing import drawn
from hypothesis import strategies as st
from workspace.workspace_agent import MANY, Files, agent

from thinkwell.workspace import Workspace
from thinkwell_acp import RpcError

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
def refused(why: str, words: str = "") -> Generator[None]:
    with pytest.raises(RpcError) as caught:
        yield
    data = caught.value.data
    assert isinstance(data, dict)
    assert data["reason"] == why
    assert words in caught.value.message


# Reading


@pytest.mark.parametrize(
    "content",
    [
        "",
        "one line",
        "a\nb\n",
        "a\r\nb\r\n",
        "\ufeffwith a mark",
        "a\rb",
        "a\u2028b\x85c\x0cd\n",
        "\0",
        "𝄞é\n",
    ],
    ids=ascii,
)
async def test_text_comes_as_it_is(root: Path, content: str) -> None:
    (root / "file").write_bytes(content.encode())
    assert await Files([root]).read(f"{root}/file", max_bytes=MANY) == (content, False)


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
        got = await Files([root]).read(str(path), max_bytes=max_bytes, line=1)
        assert got.cut == (len(data) > max_bytes)
        assert got.text == data[:max_bytes].decode(errors="ignore")
        if got.cut:
            with refused("size", "read it in parts"):
                await Files([root]).read(str(path), max_bytes=max_bytes)


async def test_long_files_are_read_in_pieces(root: Path) -> None:
    lines = [f"line {number} {'x' * (number % 300)}\n" for number in range(1, 20_001)]
    (root / "file").write_text("".join(lines))
    files = Files([root])
    assert (await files.read(f"{root}/file", max_bytes=10 * MANY)).text == "".join(lines)
    assert (await files.read(f"{root}/file", max_bytes=10 * MANY, line=15_000, limit=3)).text == "".join(
        lines[14_999:15_002]
    )
    assert (await files.read(f"{root}/file", max_bytes=10 * MANY, line=2, limit=9_000)).text == "".join(
        lines[1:9_001]
    )
    assert (await files.read(f"{root}/file", max_bytes=10 * MANY, line=20_002)).text == ""


async def test_a_file_that_does_not_tell_its_size_is_limited_too(root: Path) -> None:
    """Such as those that the system makes up while they are read."""
    if not Path("/proc/self/mountinfo").is_file():
        pytest.skip("needs /proc")
    with refused("size"):
        await Files(["/proc/self"]).read("/proc/self/mountinfo", max_bytes=10)


async def test_what_is_no_text_is_refused(root: Path) -> None:
    """An agent that writes back replacement characters would spoil the file."""
    (root / "file").write_bytes(b"caf\xe9")
    with refused("text", "byte 3"):
        await Files([root]).read(f"{root}/file", max_bytes=MANY)
    with refused("text"):
        await Files([root]).read(f"{root}/file", max_bytes=MANY, line=1)


# Paths


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("file", "path"),
        ("", "path"),
        ("./file", "path"),
        ("~/file", "path"),
        ("file:///file", "path"),
        ("C:\\file", "path"),
        ("/{root}/fi\0le", "path"),
        ("/{root}/" + "a" * 300, "path"),
        ("/{root}/" + "a/" * 3000, "path"),
        ("/{root}/missing", "missing"),
        ("/{root}/missing/../file", "missing"),
        ("/{root}", "kind"),
        ("/{root}/", "kind"),
        ("/{root}/.", "kind"),
        ("/{root}/sub/..", "kind"),
        ("/{root}/file/", "kind"),
        ("/{root}/file/.", "kind"),
        ("/{root}/file/x", "kind"),
        ("/{root}/sub", "kind"),
    ],
)
async def test_what_is_no_path_of_a_file(root: Path, path: str, why: str) -> None:
    (root / "file").write_text("ours")
    (root / "sub").mkdir()
    full = path.replace("{root}", str(root))
    with refused(why):
        await Files([root]).read(full, max_bytes=MANY)
    if why != "missing":
        with refused(why):
            await Files([root]).write(full, "new", max_bytes=MANY)
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
        for name, why in (("pipe", "kind"), ("socket", "kind"), ("null", "outside")):
            with refused(why):
                await Files([root]).read(f"{root}/{name}", max_bytes=MANY)
            with refused(why):
                await Files([root]).write(f"{root}/{name}", "new", max_bytes=MANY)
    if os.geteuid() == 0:
        os.mknod(root / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        with refused("kind"):
            await Files([root]).read(f"{root}/device", max_bytes=MANY)


async def test_as_many_links_as_the_system_follows(root: Path) -> None:
    (root / "0").write_text("ours")
    for number in range(MAX_LINKS + 1):
        (root / f"{number + 1}").symlink_to(str(number))
    files = Files([root])
    assert (await files.read(f"{root}/{MAX_LINKS}", max_bytes=MANY)).text == "ours"
    with refused("path", "too many links"):
        await files.read(f"{root}/{MAX_LINKS + 1}", max_bytes=MANY)


async def test_paths_made_to_cost_time_are_refused(root: Path) -> None:
    (root / "/".join(["d"] * 100)).mkdir(parents=True)
    path = f"{root}/{'d/' * 100}{'../d/' * 700}file"
    with refused("path", "too many folders"):
        await Files([root]).read(path, max_bytes=MANY)


async def test_several_roots(tmp_path: Path) -> None:
    for name in ("a", "b", "a/inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "a/to-b").symlink_to("../b/file")
    files = Files([tmp_path / "a", tmp_path / "b", tmp_path / "a/inner"], deny=["/inner/secret"])
    for path, content in (
        ("a/file", "a"),
        ("b/file", "b"),
        ("a/inner/file", "a/inner"),
        ("a/inner/../file", "a"),
        ("a/to-b", "b"),
        ("a/../b/file", "b"),
    ):
        assert (await files.read(f"{tmp_path}/{path}", max_bytes=MANY)).text == content
    with refused("denied"):
        await files.read(f"{tmp_path}/a/inner/secret", max_bytes=MANY)
    with refused("outside"):
        await files.read(f"{tmp_path}/c/file", max_bytes=MANY)


async def test_a_root_reached_through_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "real/sub").mkdir(parents=True)
    (tmp_path / "real/sub/file").write_text("ours")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "short").symlink_to("real/sub")
    (tmp_path / "away").symlink_to("/etc")
    async with agent(Workspace(tmp_path / "link")) as peer:
        for path in ("real/sub/file", "link/sub/file", "link/sub/../sub/file"):
            assert await peer.read(tmp_path / path) == "ours"
        with refused("outside"):
            await peer.read(tmp_path / "short/file")
        async with peer.session(tmp_path / "short"):
            assert await peer.read(tmp_path / "short/file") == "ours"
        async with peer.session("/etc"), peer.session(tmp_path / "away"):
            with refused("outside"):
                await peer.read(tmp_path / "away/passwd")


async def test_the_whole_machine_may_be_a_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ours")
    files = Files(["/"])
    assert (await files.read(f"{tmp_path}/file", max_bytes=MANY)).text == "ours"
    assert (await files.read(f"/../..{tmp_path}/../{tmp_path.name}/file", max_bytes=MANY)).text == "ours"


async def test_a_root_that_has_gone(root: Path) -> None:
    async with agent(Workspace(root)) as peer:
        root.rmdir()
        with refused("missing"):
            await peer.read(root / "file")


@pytest.mark.parametrize(
    ("path", "denied"),
    [
        (".env", True),
        (".ENV.local", True),
        ("sub/.env", True),
        (".git/config", True),
        ("sub/.git", True),
        ("sub/../.git/x", True),
        ("build/out/x", True),
        ("sub/build/x", False),
        ("link-to-env", True),
        ("caf\u0065\u0301", True),
        ("env", False),
        ("file.env", False),
    ],
)
async def test_denied_names(root: Path, path: str, *, denied: bool) -> None:
    (root / "sub").mkdir()
    (root / "build/out").mkdir(parents=True)
    (root / "sub/build").mkdir()
    (root / "link-to-env").symlink_to(".env")
    files = Files([root], deny=[".env*", ".git/", "/build/*", "café"])
    reason = "denied" if denied else "missing"
    with refused(reason):
        await files.read(f"{root}/{path}", max_bytes=MANY)
    if denied:
        with refused("denied"):
            await files.write(f"{root}/{path}", "new", max_bytes=MANY)


# Writing


@pytest.mark.parametrize("content", ["", "a\r\nb\n", "\ufeffé𝄞\0"], ids=ascii)
async def test_what_is_written_is_read(root: Path, content: str) -> None:
    files = Files([root])
    await files.write(f"{root}/new/folders/file", content, max_bytes=MANY)
    assert (root / "new/folders/file").read_bytes() == content.encode()
    assert (await files.read(f"{root}/new/folders/file", max_bytes=MANY)).text == content


async def test_a_new_file_has_the_usual_permissions(root: Path) -> None:
    (root / "usual").touch()
    await Files([root]).write(f"{root}/new", "x", max_bytes=MANY)
    assert (root / "new").stat().st_mode == (root / "usual").stat().st_mode


async def test_an_old_file_keeps_its_permissions_and_owner(root: Path) -> None:
    (root / "script").write_text("old")
    (root / "script").chmod(0o751)
    if os.geteuid() == 0:
        os.chown(root / "script", 1234, 1235)
    before = (root / "script").stat()
    await Files([root]).write(f"{root}/script", "new", max_bytes=MANY)
    after = (root / "script").stat()
    assert (root / "script").read_text() == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


async def test_a_write_breaks_a_hard_link_and_keeps_a_symbolic_one(root: Path) -> None:
    outside = root.parent / "outside"
    outside.write_text("theirs")
    os.link(outside, root / "hard")
    (root / "real").mkdir()
    (root / "link").symlink_to("real/file")
    files = Files([root])
    await files.write(f"{root}/hard", "new", max_bytes=MANY)
    await files.write(f"{root}/link", "new", max_bytes=MANY)
    assert outside.read_text() == "theirs"
    assert (root / "link").is_symlink()
    assert (root / "real/file").read_text() == "new"


async def test_who_reads_meanwhile_sees_all_of_the_old_text(root: Path) -> None:
    (root / "file").write_text("old")
    with (root / "file").open() as reader:
        await Files([root]).write(f"{root}/file", "new", max_bytes=MANY)
        assert reader.read() == "old"


@pytest.mark.parametrize(("content", "why"), [("x" * 11, "size"), ("é" * 6, "size")])
async def test_what_cannot_be_written_changes_nothing(root: Path, content: str, why: str) -> None:
    with refused(why):
        await Files([root]).write(f"{root}/new/file", content, max_bytes=10)
    assert not [*root.iterdir()]


async def test_a_full_disk_changes_nothing(root: Path) -> None:
    """A limit on the size of files fails the write in the same place."""
    (root / "file").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with refused("system", os.strerror(27)):
            await Files([root]).write(f"{root}/file", "x" * 5000, max_bytes=MANY)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in root.iterdir()] == ["file"]
    assert (root / "file").read_text() == "old"


async def test_a_folder_made_by_somebody_else_at_the_same_time(root: Path) -> None:
    """As two writes into one new folder do."""
    armed = True

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal armed
        if armed and event == "os.mkdir" and args[0] == "made-by-two":
            armed = False
            (root / "made-by-two").mkdir()

    sys.addaudithook(hook)
    await Files([root]).write(f"{root}/made-by-two/file", "new", max_bytes=MANY)
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
