"""How an agent's program gets here: what is downloaded, what is unpacked, and what is refused.

Nothing is left of what fails, and nothing is ever written outside of the folder.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import socket
import ssl
import stat
import struct
import sys
import tarfile
import tempfile
import zipfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.from_thread
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles.file_server import CERTIFICATE, FileServer, file_server
from suite.tiers import LOOPS, few

# Private: a reader of archives, tested byte by byte, and downloads, whose limits of size and time cannot be
# chosen from outside.
from thinkwell.agents._archives import ArchiveError, extract
from thinkwell.agents._download import DownloadError, download
from thinkwell.agents._safe_tree import MAX_DEPTH, Refused, relative_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from http.server import BaseHTTPRequestHandler

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="rights and links of POSIX systems")

# Downloads

DATA = bytes(range(256)) * 4096  # 1 MiB
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as files:
        yield files


@pytest.fixture
def tls_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with file_server(tls=True) as files:
        yield files


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def fails(url: str, to: Path, *, limit: int = 1 << 30, read_timeout: float = 5) -> str:
    """Return why a download fails, of which nothing is left."""
    with anyio.fail_after(30), pytest.raises(DownloadError) as caught:
        await download(url, to, limit=limit, read_timeout=read_timeout)
    assert not to.exists()
    assert caught.value.reason in str(caught.value)
    assert str(caught.value).isprintable()
    return caught.value.reason


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("data", [DATA, b"x", b""], ids=len)
async def test_a_file_comes_whole(server: FileServer, tmp_path: Path, data: bytes, sized: bool) -> None:
    await download(server.file("/file", data, sized=sized), tmp_path / "file", limit=len(data))
    assert (tmp_path / "file").read_bytes() == data


async def test_chunked_answers(server: FileServer, tmp_path: Path) -> None:
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    url = server.raw("/file", chunked, b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n")
    await download(url, tmp_path / "file", limit=5)
    assert (tmp_path / "file").read_bytes() == b"abcde"
    assert "cut off" in await fails(server.raw("/cut", chunked, b"3\r\nab"), tmp_path / "cut")


async def test_a_digest(server: FileServer, tmp_path: Path) -> None:
    digest = hashlib.sha256(DATA).hexdigest()
    url = server.file("/file", DATA)
    await download(url, tmp_path / "file", limit=len(DATA), sha256=digest.upper())
    with pytest.raises(DownloadError) as caught:
        await download(url, tmp_path / "other", limit=len(DATA), sha256="0" * 64)
    assert f"its SHA-256 is {digest}, but {'0' * 64} was expected" in caught.value.reason
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("sized", [True, False])
async def test_what_is_too_large(server: FileServer, tmp_path: Path, sized: bool) -> None:
    url = server.file("/file", DATA, sized=sized)
    reason = await fails(url, tmp_path / "file", limit=len(DATA) - 1)
    assert f"more than {len(DATA) - 1} bytes" in reason


async def test_what_is_too_large_by_its_own_words_is_not_read(server: FileServer, tmp_path: Path) -> None:
    url = server.raw("/file", HEAD + b"Content-Length: 99999999999\r\n\r\n", hang=True)
    assert "more than 5 bytes" in await fails(url, tmp_path / "file", limit=5)


async def test_what_is_cut_off(server: FileServer, tmp_path: Path) -> None:
    url = server.raw("/file", HEAD + b"Content-Length: 10\r\n\r\n", b"abc")
    assert "ended after 3 of 10 bytes" in await fails(url, tmp_path / "file")


async def test_what_hangs(server: FileServer, tmp_path: Path) -> None:
    for path, parts in (("/none", ()), ("/some", (HEAD + b"Content-Length: 10\r\n\r\n", b"abc"))):
        url = server.raw(path, *parts, hang=True)
        reason = await fails(url, tmp_path / "file", read_timeout=0.1)
        assert "no data came for 0.1 seconds" in reason


async def test_what_is_no_http(server: FileServer, tmp_path: Path) -> None:
    reason = await fails(server.raw("/file", b"\x1b[31mhello\r\n"), tmp_path / "file")
    assert "was not HTTP, or was cut off (BadStatusLine)" in reason


async def test_answers_of_failure(server: FileServer, tmp_path: Path) -> None:
    assert "answered 404 Not Found. The file has moved" in await fails(server.url("/no"), tmp_path / "file")
    for code, text in ((503, "503 Service Unavailable. Try"), (407, "user and password"), (799, "799. Try")):
        url = server.raw("/file", b"HTTP/1.1 %d \x1b[31mno\r\n\r\n" % code)
        assert text in await fails(url, tmp_path / "file")


async def test_a_refused_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    reason = await fails(f"http://127.0.0.1:{port}/", tmp_path / "file")
    assert "refused" in reason
    assert "HTTPS_PROXY" in reason


NOT_ASKED = {
    "http is for this machine only": ("http://example.invalid/a", "http://127.0.0.1.example.invalid/a"),
    "a user name": ("http://user@127.0.0.1/a",),
    "begin with https://": (
        *("ftp://127.0.0.1/a", "file:///etc/passwd", "data:,abc", "https:///a", "/a", ""),
    ),
    "is not an address": ("https://[::1/a", "https://127.0.0.1:port/a"),
    "%XX": ("https://127.0.0.1/a b", "https://127.0.0.1/\r\nX: y", "https://127.0.0.1/\u00e4"),
}


async def test_addresses_that_are_not_asked(tmp_path: Path) -> None:
    for reason, urls in NOT_ASKED.items():
        for url in urls:
            assert reason in await fails(url, tmp_path / "file"), url


async def test_localhost_and_version_6_are_this_machine(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for host in ("localhost", "[::1]", "127.9.9.9"):
        assert "http is for" not in await fails(f"http://{host}:{port}/", tmp_path / "file")


async def test_redirections_are_followed(server: FileServer, tmp_path: Path) -> None:
    server.file("/file", b"x")
    for code in (301, 302, 303, 307, 308):
        server.asked.clear()
        await download(server.redirection("/old", "/file", code), tmp_path / f"{code}", limit=1)
        assert server.asked == ["/old", "/file"], code


async def test_redirections_without_end(server: FileServer, tmp_path: Path) -> None:
    url = server.redirection("/old", "/old")
    assert "answered 302" in await fails(url, tmp_path / "file")
    assert len(server.asked) < 20


async def test_the_body_of_a_redirection_is_not_read(server: FileServer, tmp_path: Path) -> None:
    server.file("/file", DATA)
    url = server.raw("/old", b"HTTP/1.1 302 Found\r\nLocation: /file\r\n\r\n", b"x" * 1000, hang=True)
    with anyio.fail_after(30):
        await download(url, tmp_path / "file", limit=len(DATA))
    assert (tmp_path / "file").read_bytes() == DATA


async def test_redirections_that_are_refused(server: FileServer, tmp_path: Path) -> None:
    for to, reason in (
        ("http://example.invalid/a", "http is for this machine only"),
        ("ftp://127.0.0.1/a", "begin with https://"),
        ("file:///etc/passwd", "answered 302"),
        ("http://127.0.0.1:port/", "is not an address"),
        ("http://[::1/", "was not HTTP"),
    ):
        server.asked.clear()
        assert reason in await fails(server.redirection("/old", to), tmp_path / "file"), to
        assert server.asked == ["/old"], to


async def test_https(tls_server: FileServer, server: FileServer, tmp_path: Path) -> None:
    url = tls_server.file("/file", DATA)
    await download(url, tmp_path / "file", limit=len(DATA))
    await download(server.redirection("/up", url), tmp_path / "up", limit=len(DATA))
    assert (tmp_path / "up").read_bytes() == DATA
    server.file("/file", DATA)
    down = tls_server.redirection("/down", server.url("/file"))
    assert "from https to http" in await fails(down, tmp_path / "down")
    assert server.asked == ["/up"]


async def test_an_untrusted_certificate(
    tls_server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = tls_server.file("/file", DATA)
    monkeypatch.delenv("SSL_CERT_FILE")
    reason = await fails(url, tmp_path / "file")
    assert "certificate was not accepted" in reason
    assert "SSL_CERT_FILE" in reason


async def test_a_proxy_of_the_environment(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
    server.file(url, DATA)  # a proxy is asked for the whole address
    monkeypatch.setenv("http_proxy", server.url(""))
    await download(url, tmp_path / "file", limit=len(DATA))
    assert server.asked == [url]


async def test_a_place_that_cannot_be_written(server: FileServer, tmp_path: Path) -> None:
    url = server.file("/file", DATA)
    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(DownloadError, match="cannot be written: File exists"):
        await download(url, tmp_path / "file", limit=len(DATA))
    assert (tmp_path / "file").read_bytes() == b"before"
    assert "cannot be written: No such file" in await fails(url, tmp_path / "no" / "file")
    assert not server.asked


async def test_a_full_disk_while_downloading(server: FileServer, tmp_path: Path) -> None:
    url = server.file("/file", DATA)
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        reason = await fails(url, tmp_path / "file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot be written: File too large" in reason


@pytest.mark.parametrize("parts", [(), (HEAD + b"Content-Length: 10\r\n\r\n", b"abc")])
@pytest.mark.parametrize("fixture", ["server", "tls_server"])
async def test_cancelling_does_not_wait_for_a_server_that_hangs(
    fixture: str, request: pytest.FixtureRequest, tmp_path: Path, parts: tuple[bytes, ...]
) -> None:
    server: FileServer = request.getfixturevalue(fixture)
    asked = anyio.Event()
    token = anyio.lowlevel.current_token()
    server.raw("/file", *parts, hang=True)
    hang = server.answers["/file"]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        anyio.from_thread.run_sync(asked.set, token=token)
        hang(handler)

    url = server.answer("/file", answer)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: download(url, tmp_path / "file", limit=10, read_timeout=600))
            await asked.wait()
            tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancel_called
    assert not (tmp_path / "file").exists()


async def test_cancelling_does_not_wait_for_a_handshake_that_hangs(tmp_path: Path) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)

        async def accept(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                await stream.receive()  # its first words: so the handshake has begun
                tasks.cancel_scope.cancel()
                await anyio.sleep_forever()

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, accept)
                await download(f"https://127.0.0.1:{port}/x", tmp_path / "x", limit=9)
    assert list(tmp_path.iterdir()) == []


def test_the_certificate_of_these_tests_is_for_loopback_alone() -> None:
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    (known,) = context.get_ca_certs()
    assert known["subjectAltName"] == (("DNS", "localhost"), ("IP Address", "127.0.0.1"))


# Archives

PROGRAM = b"#!/bin/sh\necho hello\n"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "tar": bytes,
}
Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, data: bytes = b"", mode: int = 0o644) -> Member:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    return info, data


def special(name: str, kind: bytes, target: str = "", mode: int = 0o755) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info, b""


def folder(name: str) -> Member:
    return special(name, tarfile.DIRTYPE)


def link(name: str, target: str) -> Member:
    return special(name, tarfile.SYMTYPE, target)


def hard_link(name: str, target: str) -> Member:
    return special(name, tarfile.LNKTYPE, target)


def tar(path: Path, members: Iterable[Member], kind: str = "gz") -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    path.write_bytes(COMPRESS[kind](plain.getvalue()))
    return path


def zip_member(name: str, mode: int = 0) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def zipped(path: Path, members: Iterable[tuple[zipfile.ZipInfo, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            archive.writestr(info, data)
    return path


def content(root: Path) -> dict[str, bytes | str | None]:
    """Everything in a folder: the bytes of files, the targets of links."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


async def refusal(archive: Path, **how: int) -> str:
    """Return why an archive is not unpacked, of which nothing is left."""
    into = archive.parent / "into"
    with pytest.raises(ArchiveError) as caught:
        await extract(archive, into, **how)  # type: ignore[arg-type]
    assert names(archive.parent) == [archive.name]
    assert str(caught.value).isprintable()
    return caught.value.reason


@pytest.mark.parametrize("kind", COMPRESS)
async def test_a_tar(tmp_path: Path, kind: str) -> None:
    members = [
        folder("./"),
        folder("bin"),
        file("bin/agent", PROGRAM, 0o4777),
        file("./lib/deep/data", b"x" * 700_000),
        link("bin/data", "../lib/deep/data"),
        hard_link("bin/same", "bin/agent"),
    ]
    archive = tar(tmp_path / "any.name", members, kind)
    await extract(archive, tmp_path / "into" / "it")
    into = tmp_path / "into" / "it"
    assert content(into) == {
        "bin": None,
        "bin/agent": PROGRAM,
        "bin/data": "../lib/deep/data",
        "bin/same": PROGRAM,
        "lib": None,
        "lib/deep": None,
        "lib/deep/data": b"x" * 700_000,
    }
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((into / "bin/agent").stat().st_mode) == 0o755 & ~mask
    assert stat.S_IMODE((into / "bin/same").stat().st_mode) == 0o755 & ~mask
    assert stat.S_IMODE((into / "lib/deep/data").stat().st_mode) == 0o644 & ~mask
    assert names(tmp_path / "into") == ["it"]


async def test_a_zip(tmp_path: Path) -> None:
    archive = zipped(
        tmp_path / "archive.tar.gz",  # its content says what it is
        [
            (zip_member("bin/", 0o40755), b""),
            (zip_member("lib", 0o40755), b""),
            (zip_member("bin/agent", 0o104755), PROGRAM),
            (zip_member("windows\\made\\it.txt"), b"x" * 700_000),
            (zip_member("windows\\empty\\"), b""),
            (zip_member("link", 0o120777), b"bin/agent"),
        ],
    )
    await extract(archive, tmp_path / "into")
    assert content(tmp_path / "into") == {
        "bin": None,
        "bin/agent": PROGRAM,
        "lib": None,
        "link": "bin/agent",
        "windows": None,
        "windows/empty": None,
        "windows/made": None,
        "windows/made/it.txt": b"x" * 700_000,
    }
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "into/bin/agent").stat().st_mode) == 0o755 & ~mask


async def test_an_empty_zip(tmp_path: Path) -> None:
    await extract(zipped(tmp_path / "a", []), tmp_path / "into")
    assert content(tmp_path / "into") == {}


@pytest.mark.parametrize(
    ("name", "data", "cmd", "expected"),
    [
        ("agent-linux-x64", b"\x7fELF...", "./agent", "agent"),
        ("agent-linux-x64", b"\xcf\xfa\xed\xfe...", "bin/agent", "bin/agent"),
        ("agent.zip", b"MZ..", "agent.exe", "agent.exe"),
        ("agent", PROGRAM, "./other", "other"),
        ("agent", PROGRAM, None, "agent"),
        # Here something else runs the file.
        ("agent.mjs", b"#!/usr/bin/env node\n", "node", "agent.mjs"),
        ("agent.mjs", b"import x", "node", "agent.mjs"),
        ("agent.jar", b"PK\x03\x04 and so on", "java", "agent.jar"),
    ],
)
async def test_a_program_that_is_no_archive(
    tmp_path: Path, name: str, data: bytes, cmd: str | None, expected: str
) -> None:
    (tmp_path / name).write_bytes(data)
    await extract(tmp_path / name, tmp_path / "into", cmd=cmd)
    assert content(tmp_path / "into")[expected] == data
    assert (tmp_path / "into" / expected).stat().st_mode & 0o100


async def test_a_program_is_not_put_outside(tmp_path: Path) -> None:
    (tmp_path / "agent").write_bytes(PROGRAM)
    for cmd in ("../agent", "/bin/agent", "./..\\agent", "./"):
        with pytest.raises(ArchiveError):
            await extract(tmp_path / "agent", tmp_path / "into", cmd=cmd)
        assert names(tmp_path) == ["agent"], cmd


async def test_what_is_no_archive(tmp_path: Path) -> None:
    for data in (b"", b"<!DOCTYPE html><title>Log in</title>", b"\x00" * 1000):
        (tmp_path / "agent.tar.gz").write_bytes(data)
        reason = await refusal(tmp_path / "agent.tar.gz")
        assert "neither an archive nor a program; it begins with" in reason, data
    for data, kind in product((b"", b"x" * 5000), ("gz", "bz2", "xz")):
        (tmp_path / "agent.tar.gz").write_bytes(COMPRESS[kind](data))
        assert "but not a tar" in await refusal(tmp_path / "agent.tar.gz"), (data, kind)


BAD_PATHS = (
    "../x",
    "a/../x",
    "/x",
    "..",
    "a/..",
    "\\x",
    "a\\..\\..\\x",
    "C:\\x",
    "c:x",
    "a/.. /x",
    "a/.../x",
)
BAD_NAMES = ("a\nb", "a\x1b[31m", "a\u202eb", "/".join("a" * (MAX_DEPTH + 1)), "n" * 300)


@pytest.mark.parametrize("name", [*BAD_PATHS, *BAD_NAMES], ids=ascii)
async def test_names_that_are_refused(tmp_path: Path, name: str) -> None:
    for member in (file(name), folder(name), link(name, "b"), hard_link(name, "b")):
        assert await refusal(tar(tmp_path / "a", [file("b"), member]))
    assert await refusal(zipped(tmp_path / "a", [(zip_member(name), b"")]))


@pytest.mark.parametrize("name", ["", ".", "./"])
async def test_files_without_a_name(tmp_path: Path, name: str) -> None:
    for member in (file("x"), link("x", "y")):
        member[0].name = name
        if not (name.endswith("/") and member[0].isreg()):  # else tarfile takes it for a folder
            assert "no name" in await refusal(tar(tmp_path / "a", [member]))


@pytest.mark.parametrize("name", ["con", "NUL.txt", "a/COM1", "a/aux .c", "a.", "a ", "ab:c", "a?", "lpt9.x"])
def test_names_that_windows_takes_for_something_else(name: str) -> None:
    assert relative_parts(name, windows=False)
    with pytest.raises(Refused, match="Windows"):
        relative_parts(name, windows=True)


def test_names_that_windows_takes_for_what_they_are() -> None:
    assert relative_parts("a/console/com/b.c.d/auxiliary.nul", windows=True)


async def test_devices_and_the_like(tmp_path: Path) -> None:
    for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"V"):
        assert "not a file, folder or link" in await refusal(tar(tmp_path / "a", [special("x", kind)]))
    archive = zipped(tmp_path / "a", [(zip_member("x", stat.S_IFIFO | 0o644), b"")])
    assert "not a file, folder or link" in await refusal(archive)


LEADING_OUT: tuple[list[Member], ...] = (
    [link("x", "..")],
    [link("x", "/etc/passwd")],
    [link("x", "C:\\x")],
    [link("x", "c:x")],
    [link("x", "a\nb")],
    [link("x", "")],
    [link("x", "y" * 5000)],
    [folder("a"), link("a/x", "../../y")],
    [link("x", "missing/../../y")],
    # Each of them leads to within, as long as the others are not there.
    [folder("a/b"), link("a/b/up", ".."), link("x", "a/b/up/../../y")],
    [folder("d/e"), link("s", "d/e"), link("t", "s/../../../y")],
    [link("d", "e"), folder("f"), link("e", "f/.."), link("x", "d/../y")],
)


async def test_links_that_lead_out(tmp_path: Path) -> None:
    for members in LEADING_OUT:
        assert "a link in it points to" in await refusal(tar(tmp_path / "a", members)), members


TWICE: tuple[list[Member], ...] = (
    [link("x", "."), file("x/y")],
    [file("x/y"), link("x", ".")],
    [link("x", ".."), link("x/y", "z")],
    [link("x/y", "z"), link("x", "..")],
    [link("x", "y"), link("x", "z")],
    [file("x"), file("x")],
    [file("x"), file("x/y")],
    [file("x"), folder("x")],
    [file("x"), folder("x/y")],
    [folder("x"), file("x")],
    [file("x"), hard_link("x", "x")],
)


async def test_what_is_there_twice(tmp_path: Path) -> None:
    for members in TWICE:
        reason = await refusal(tar(tmp_path / "a", members))
        assert "is in it twice, or as a file and a folder" in reason, members


async def test_a_zip_with_a_link_that_leads_out(tmp_path: Path) -> None:
    for target in (b"../y", b"\xff"):
        archive = zipped(tmp_path / "a", [(zip_member("x", 0o120777), target)])
        assert "a link in it points to" in await refusal(archive)
        archive.unlink()


async def test_links_that_stay_inside(tmp_path: Path) -> None:
    members = [folder("a/b"), link("a/b/up", "../.."), link("circle", "circle"), link("none", "a/none")]
    await extract(tar(tmp_path / "archive", members), tmp_path / "into")
    assert set(content(tmp_path / "into")) == {"a", "a/b", "a/b/up", "circle", "none"}


async def test_a_hard_link_to_what_does_not_come_before(tmp_path: Path) -> None:
    secret = tmp_path.parent / "secret"
    secret.write_text("secret")
    for target in ("later", "a"):
        archive = tar(tmp_path / "a", [folder("a"), hard_link("x", target), file("later")])
        assert "which is not a file in it" in await refusal(archive)
    assert await refusal(tar(tmp_path / "a", [hard_link("x", str(secret))]))


async def test_too_many_bytes_and_too_many_members(tmp_path: Path) -> None:
    big = file("big", bytes(3_000_000))
    for kind in COMPRESS:
        archive = tar(tmp_path / "a", [big], kind)
        assert "more than 2999999 bytes" in await refusal(archive, max_bytes=2_999_999)
    archive = zipped(tmp_path / "a", [(zip_member("big"), bytes(3_000_000))])
    assert archive.stat().st_size < 10_000
    assert "more than 2999999 bytes" in await refusal(archive, max_bytes=2_999_999)
    # A copy counts as well.
    archive = tar(tmp_path / "a", [big, hard_link("copy", "big")])
    assert "more than 4000000 bytes" in await refusal(archive, max_bytes=4_000_000)
    archive = tar(tmp_path / "a", [folder(str(number)) for number in range(11)])
    assert "more than 10 files and folders" in await refusal(archive, max_members=10)
    archive = zipped(tmp_path / "a", [(zip_member(f"{number}/"), b"") for number in range(11)])
    assert "more than 10 files and folders" in await refusal(archive, max_members=10)


async def test_a_zip_that_lies_about_its_size(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a", [(zip_member("big"), bytes(3_000_000))])
    data = archive.read_bytes()
    archive.write_bytes(data.replace(struct.pack("<L", 3_000_000), struct.pack("<L", 10)))
    assert "Bad CRC-32" in await refusal(archive, max_bytes=100)


async def test_what_comes_behind_a_tar_counts_too(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a", [file("x")], "tar")
    archive.write_bytes(gzip.compress(archive.read_bytes() + bytes(3_000_000)))
    assert "more than 2000000 bytes" in await refusal(archive, max_bytes=2_000_000)


async def test_headers_that_have_no_end(tmp_path: Path) -> None:
    info, _ = file("x")
    info.pax_headers = {"comment": "y" * 2_000_000}
    assert "a header in it has more than" in await refusal(tar(tmp_path / "a", [(info, b"")]))
    long: list[Member] = []
    for number in range(5):
        info, _ = file(str(number))
        info.pax_headers = {"comment": "y" * 500_000}
        long.append((info, b""))
    assert "its headers are too long" in await refusal(tar(tmp_path / "a", long))


async def test_headers_of_headers(tmp_path: Path) -> None:
    header = tarfile.TarInfo("x").create_pax_global_header({"comment": "y"})
    (tmp_path / "a").write_bytes(gzip.compress(header * 500 + bytes(1024)))
    assert await refusal(tmp_path / "a")


async def test_a_header_that_leads_backwards(tmp_path: Path) -> None:
    block = bytearray(file("x")[0].tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = b"\xff" * 10 + b"\xfe\x00"  # -512, in binary
    checksum = sum(block[:148]) + 8 * 32 + sum(block[156:])
    block[148:156] = b"%06o\0 " % checksum
    (tmp_path / "a").write_bytes(gzip.compress(file("y")[0].tobuf() + bytes(block) + bytes(1024)))
    with anyio.fail_after(30):
        assert "points backwards" in await refusal(tmp_path / "a")


async def test_a_table_of_contents_without_end(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a", [(zip_member("x"), b"")])
    with archive.open("rb") as opened:
        data = opened.read()
    at = data.rindex(b"PK\x05\x06")
    size, offset = struct.unpack_from("<LL", data, at + 12)
    filling = 20 * 1024**2
    end = bytearray(data[at:])
    struct.pack_into("<LL", end, 12, size + filling, offset)
    archive.write_bytes(data[:at] + bytes(filling) + bytes(end))
    assert "its table of contents has more than" in await refusal(archive)


@pytest.mark.parametrize("kind", COMPRESS)
async def test_a_tar_that_is_cut_anywhere(tmp_path: Path, kind: str) -> None:
    whole = tar(tmp_path / "a", [file("x", os.urandom(3000)), file("y", b"y")], kind).read_bytes()
    end = len(whole) if kind != "tar" else 512 + 3072 + 512 + 1
    for cut in (*range(600, end, 200), min(512 + 3000, end - 1)):
        (tmp_path / "a").write_bytes(whole[:cut])
        assert await refusal(tmp_path / "a")


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
async def test_a_tar_with_a_wrong_bit(tmp_path: Path, kind: str) -> None:
    whole = tar(tmp_path / "a", [file("x", os.urandom(3000)), file("y", b"y")], kind).read_bytes()
    for position in range(20, len(whole), 100):
        wrong = bytearray(whole)
        wrong[position] ^= 0x10
        (tmp_path / "a").write_bytes(wrong)
        assert await refusal(tmp_path / "a")


async def test_what_is_no_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    whole = tar(tmp_path / "a", [file("x", b"x"), file("y", b"y")], "tar").read_bytes()
    for garbage in (b"garbage".ljust(512, b"."), b"garbage"):
        (tmp_path / "a").write_bytes(whole[:1024] + garbage)
        assert "a header is missing" in await refusal(tmp_path / "a")


async def test_a_zip_that_is_cut_or_has_a_wrong_bit(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "a", [(zip_member("x"), os.urandom(3000))]).read_bytes()
    for cut in range(30, len(whole), 200):
        (tmp_path / "a").write_bytes(whole[:cut])
        assert "damaged" in await refusal(tmp_path / "a")
    wrong = bytearray(whole)
    wrong[1000] ^= 0x10
    (tmp_path / "a").write_bytes(wrong)
    assert "damaged" in await refusal(tmp_path / "a")


async def test_an_encrypted_zip_and_a_strange_one(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a", [(zip_member("x"), b"x")])
    data = bytearray(archive.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 8] |= 1
    archive.write_bytes(data)
    assert await refusal(archive) == "it is encrypted"
    data[at + 8] &= ~1
    data[at + 10] = data[8] = 99
    archive.write_bytes(data)
    assert "has an unsupported compression" in await refusal(archive)
    data[at + 10] = data[8] = zipfile.ZIP_DEFLATED
    data[at + 6] = data[4] = 99  # the version of the program that can read it
    archive.write_bytes(data)
    assert "of an unknown format" in await refusal(archive)


@pytest.mark.parametrize("way", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
async def test_a_zip_of_which_too_much_comes_out_at_once(tmp_path: Path, way: int) -> None:
    info = zip_member("x")
    info.compress_type = way
    assert "has an unsupported compression" in await refusal(
        zipped(tmp_path / "a", [(info, bytes(1_000_000))])
    )


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="No such file"):
        await extract(tmp_path / "none", tmp_path / "into")
    assert names(tmp_path) == []


async def test_a_place_that_cannot_be_made(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a", [file("x")])
    for into in (archive / "into", archive):
        with pytest.raises(ArchiveError, match="cannot be created"):
            await extract(archive, into)
    assert names(tmp_path) == ["a"]


async def test_a_full_disk(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    archive = tar(tmp_path / "a", [file("x", bytes(100_000))])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        reason = await refusal(archive)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert reason == "reading or writing failed: File too large"


async def test_who_comes_second_leaves_what_is_there(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a", [file("x", b"second")])
    into = tmp_path / "into"

    def first(folder: Path) -> None:
        assert content(folder) == {"x": b"second"}
        into.mkdir()
        (into / "x").write_bytes(b"first")

    await extract(archive, into, check=first)
    assert content(into) == {"x": b"first"}
    assert names(tmp_path) == ["a", "into"]


async def test_a_check_that_fails(tmp_path: Path) -> None:
    def check(folder: Path) -> None:
        raise LookupError(folder)

    with pytest.raises(LookupError):
        await extract(tar(tmp_path / "a", [file("x")]), tmp_path / "into", check=check)
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("zip_", [False, True])
async def test_cancelling(tmp_path: Path, zip_: bool) -> None:
    members = [file(str(number)) for number in range(3000)]  # which take longer than to cancel it
    if zip_:
        archive = zipped(tmp_path / "a", [(zip_member(info.name), data) for info, data in members])
    else:
        archive = tar(tmp_path / "a", members)

    def check(folder: Path) -> None:
        raise AssertionError(folder)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: extract(archive, tmp_path / "into", check=check))
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert names(tmp_path) == ["a"]


async def test_cancelling_at_the_end(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:

        def check(folder: Path) -> None:
            assert content(folder) == {"x": b""}
            anyio.from_thread.run_sync(scope.cancel)

        await extract(tar(tmp_path / "a", [file("x")]), tmp_path / "into", check=check)
    assert scope.cancelled_caught
    assert names(tmp_path) == ["a"]


# --- Whatever an archive says ---

OUTSIDE = "outside"
PIECES = st.sampled_from(
    ["a", "b", "..", ".", "", "a ", "..\\..", ".. ", "\\", "C:", OUTSIDE, "../" + OUTSIDE, "@", "a\0b", "\n"]
)
NAMES = st.lists(PIECES, min_size=1, max_size=5).map("/".join)
KINDS = st.sampled_from(
    [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]
)
GOOD_NAMES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)
GOOD_KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
TARGETS = st.lists(st.sampled_from(["a", "b", "..", "."]), min_size=1, max_size=4).map("/".join)
MEMBERS = st.lists(st.tuples(NAMES, KINDS, NAMES, st.integers(0, 0o7777)), max_size=6) | st.lists(
    # So many of these are unpacked that their links have a chance.
    st.tuples(GOOD_NAMES, GOOD_KINDS, TARGETS, st.integers(0, 0o7777)),
    max_size=6,
)


def absolute(name: str, sandbox: Path) -> str:
    """Some of the names are those of files outside."""
    return name.replace("@", str(sandbox / OUTSIDE))


def as_tar(path: Path, members: Iterable[tuple[str, bytes, str, int]], sandbox: Path) -> None:
    tar(
        path,
        [
            file(absolute(name, sandbox), b"new", mode)
            if kind == tarfile.REGTYPE
            else special(absolute(name, sandbox), kind, absolute(target, sandbox), mode)
            for name, kind, target, mode in members
        ],
        "tar",
    )


def as_zip(path: Path, members: Iterable[tuple[str, bytes, str, int]], sandbox: Path) -> None:
    kinds = {
        tarfile.DIRTYPE: stat.S_IFDIR,
        tarfile.SYMTYPE: stat.S_IFLNK,
        tarfile.FIFOTYPE: stat.S_IFIFO,
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, kind, target, mode in members:
            info = zip_member("x", kinds.get(kind, stat.S_IFREG) | mode)
            info.filename = absolute(name, sandbox)  # as it is: the constructor would tidy it up
            if info.filename not in archive.NameToInfo:
                archive.writestr(info, absolute(target, sandbox) if kind == tarfile.SYMTYPE else b"new")


def snapshot(root: Path) -> dict[str, tuple[int, int, object]]:
    """Everything in a folder, and when and how it was changed."""
    return {
        str(path): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in [root, *root.rglob("*")]
    }


@pytest.mark.parametrize("write", [as_tar, as_zip])
@pytest.mark.parametrize("backend", LOOPS)
def test_nothing_is_ever_written_outside(
    write: Callable[[Path, Iterable[tuple[str, bytes, str, int]], Path], None], backend: str
) -> None:
    unpacked = 0

    @given(MEMBERS)
    @settings(max_examples=few(50))
    def whatever_is_in_it(members: list[tuple[str, bytes, str, int]]) -> None:
        nonlocal unpacked
        with tempfile.TemporaryDirectory() as temporary:
            sandbox = Path(temporary)
            for folder_ in ("", "cache/"):
                (sandbox / folder_ / OUTSIDE).mkdir(parents=True)
                (sandbox / folder_ / OUTSIDE / "a").write_text("secret")
            archive = sandbox / "archive"
            write(archive, members, sandbox)
            into = sandbox / "cache" / "into"
            before = snapshot(sandbox)
            try:
                anyio.run(extract, archive, into, backend=backend)
            except ArchiveError:
                assert not into.exists()
            else:
                unpacked += 1
                for path in into.rglob("*"):
                    mode = path.lstat().st_mode
                    assert stat.S_IFMT(mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)
                    assert not mode & 0o7000 or path.is_symlink()
                    real = os.path.realpath(path)
                    assert os.path.commonpath([real, os.path.realpath(into)]) == os.path.realpath(into)
                    assert path.is_dir() or path.is_symlink() or path.read_bytes() == b"new"
            after = {
                name: entry for name, entry in snapshot(sandbox).items() if not name.startswith(str(into))
            }
            cache = str(sandbox / "cache")  # which has been given a folder
            assert {**after, cache: None} == {**before, cache: None}

    whatever_is_in_it()
    assert unpacked > 3


@given(
    st.binary(max_size=2000), st.sampled_from([b"", b"PK\x03\x04", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0"])
)
@settings(max_examples=few(50))
def test_any_bytes_are_unpacked_or_refused(data: bytes, start: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        archive = Path(temporary) / "a"
        archive.write_bytes(start + data)
        try:
            anyio.run(extract, archive, Path(temporary) / "into")
        except ArchiveError:
            assert names(Path(temporary)) == ["a"]


@given(st.lists(st.binary(min_size=512, max_size=512), max_size=4), st.data())
@settings(max_examples=few(50))
def test_any_headers_are_unpacked_or_refused(blocks: list[bytes], data: st.DataObject) -> None:
    headers = b""
    for block in [file("x")[0].tobuf(), *blocks]:
        header = bytearray(block)
        header[156:157] = data.draw(st.sampled_from([bytes([n]) for n in b"0123456789LKxgXSDMN\0"]))
        header[257:265] = data.draw(st.sampled_from([b"ustar\x0000", b"ustar  \0"]))
        header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
        headers += bytes(header)
    with tempfile.TemporaryDirectory() as temporary:
        archive = Path(temporary) / "a"
        archive.write_bytes(headers)
        try:
            anyio.run(extract, archive, Path(temporary) / "into")
        except ArchiveError:
            assert names(Path(temporary)) == ["a"]
