"""Downloads: what comes, what is refused, and that nothing is left of what fails."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.from_thread
import anyio.lowlevel
import pytest
from profiles.file_server import CERTIFICATE, FileServer, file_server

from thinkwell.agents._download import CHUNK, DownloadError, download

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

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
    with anyio.fail_after(20), pytest.raises(DownloadError) as caught:
        await download(url, to, limit=limit, read_timeout=read_timeout)
    assert not to.exists()
    assert caught.value.reason in str(caught.value)
    assert str(caught.value).isprintable()
    return caught.value.reason


@pytest.mark.parametrize("sized", [True, False])
async def test_a_file_comes_whole_and_progress_is_told(
    server: FileServer, tmp_path: Path, sized: bool
) -> None:
    told: list[tuple[int, int | None]] = []
    threads: set[int] = set()

    def progress(done: int, total: int | None) -> None:
        told.append((done, total))
        threads.add(threading.get_ident())

    url = server.file("/file", DATA, sized=sized)
    await download(url, tmp_path / "file", limit=len(DATA), progress=progress)
    assert (tmp_path / "file").read_bytes() == DATA
    total = len(DATA) if sized else None
    assert (told[0], told[-1]) == ((0, total), (len(DATA), total))
    assert told == sorted(set(told), key=lambda pair: pair[0])
    assert 3 <= len(told) <= 2 + len(DATA) // CHUNK
    assert threads == {threading.get_ident()}


async def test_a_small_and_an_empty_file(server: FileServer, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    for data in (b"x", b""):
        await download(
            server.file("/file", data),
            tmp_path / str(len(data)),
            limit=1,
            progress=lambda done, total: told.append((done, total)),
        )
        assert (tmp_path / str(len(data))).read_bytes() == data
    assert told == [(0, 1), (1, 1), (0, 0)]


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
        assert "nothing came for 0.1 seconds" in reason


async def test_what_is_no_http(server: FileServer, tmp_path: Path) -> None:
    reason = await fails(server.raw("/file", b"\x1b[31mhello\r\n"), tmp_path / "file")
    assert "is no HTTP, or was cut off (BadStatusLine)" in reason


async def test_answers_of_failure(server: FileServer, tmp_path: Path) -> None:
    assert "answered 404 Not Found. The file has moved" in await fails(server.url("/no"), tmp_path / "file")
    for code, text in ((503, "503 Service Unavailable. Try"), (407, "user and password"), (799, "799. Try")):
        url = server.raw("/file", b"HTTP/1.1 %d \x1b[31mno\r\n\r\n" % code)
        assert text in await fails(url, tmp_path / "file")


async def test_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    reason = await fails(f"http://127.0.0.1:{port}/", tmp_path / "file")
    assert "refused" in reason
    assert "HTTPS_PROXY" in reason


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.invalid/a", "http is for this machine only"),
        ("http://127.0.0.1.example.invalid/a", "http is for this machine only"),
        ("http://user@127.0.0.1/a", "user's name"),
        ("ftp://127.0.0.1/a", "begin with https://"),
        ("file:///etc/passwd", "begin with https://"),
        ("data:,abc", "begin with https://"),
        ("https:///a", "begin with https://"),
        ("/a", "begin with https://"),
        ("", "begin with https://"),
        ("https://[::1/a", "no address"),
        ("https://127.0.0.1:port/a", "no address"),
        ("https://127.0.0.1/a b", "%XX"),
        ("https://127.0.0.1/\r\nX: y", "%XX"),
        ("https://127.0.0.1/\u00e4", "%XX"),
    ],
)
async def test_addresses_that_are_not_asked(url: str, reason: str, tmp_path: Path) -> None:
    assert reason in await fails(url, tmp_path / "file")


async def test_localhost_and_version_6_are_this_machine(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for host in ("localhost", "[::1]", "127.9.9.9"):
        assert "http is for" not in await fails(f"http://{host}:{port}/", tmp_path / "file")


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirections_are_followed(server: FileServer, tmp_path: Path, code: int) -> None:
    server.file("/file", DATA)
    url = server.redirection("/old", "/file", code)
    await download(url, tmp_path / "file", limit=len(DATA))
    assert server.asked == ["/old", "/file"]


async def test_redirections_without_end(server: FileServer, tmp_path: Path) -> None:
    url = server.redirection("/old", "/old")
    assert "answered 302" in await fails(url, tmp_path / "file")
    assert len(server.asked) < 20


async def test_the_body_of_a_redirection_is_not_read(server: FileServer, tmp_path: Path) -> None:
    server.file("/file", DATA)
    url = server.raw("/old", b"HTTP/1.1 302 Found\r\nLocation: /file\r\n\r\n", b"x" * 1000, hang=True)
    with anyio.fail_after(20):
        await download(url, tmp_path / "file", limit=len(DATA))
    assert (tmp_path / "file").read_bytes() == DATA


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("http://example.invalid/a", "http is for this machine only"),
        ("ftp://127.0.0.1/a", "begin with https://"),
        ("file:///etc/passwd", "answered 302"),
        ("http://127.0.0.1:port/", "no address"),
        ("http://[::1/", "is no HTTP"),
    ],
)
async def test_redirections_that_are_refused(
    server: FileServer, tmp_path: Path, to: str, reason: str
) -> None:
    assert reason in await fails(server.redirection("/old", to), tmp_path / "file")
    assert server.asked == ["/old"]


async def test_https(tls_server: FileServer, server: FileServer, tmp_path: Path) -> None:
    url = tls_server.file("/file", DATA)
    await download(url, tmp_path / "file", limit=len(DATA))
    await download(server.redirection("/up", url), tmp_path / "up", limit=len(DATA))
    assert (tmp_path / "up").read_bytes() == DATA
    server.file("/file", DATA)
    down = tls_server.redirection("/down", server.url("/file"))
    assert "from https to http" in await fails(down, tmp_path / "down")
    assert server.asked == ["/up"]


async def test_a_certificate_that_nobody_knows(
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


async def test_a_full_disk(server: FileServer, tmp_path: Path) -> None:
    url = server.file("/file", DATA)
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        reason = await fails(url, tmp_path / "file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot be written: File too large" in reason


async def test_what_a_progress_function_raises_is_not_hidden(server: FileServer, tmp_path: Path) -> None:
    def progress(done: int, total: int | None) -> None:
        raise FileNotFoundError(done)

    url = server.file("/file", DATA)
    with pytest.raises(FileNotFoundError):
        await download(url, tmp_path / "file", limit=len(DATA), progress=progress)
    assert not (tmp_path / "file").exists()


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
    with anyio.fail_after(20):
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

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, accept)
                await download(f"https://127.0.0.1:{port}/x", tmp_path / "x", limit=9)
    assert list(tmp_path.iterdir()) == []


async def test_cancelling_between_two_chunks(server: FileServer, tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:

        def progress(done: int, total: int | None) -> None:
            if done:
                scope.cancel()

        await download(
            server.file("/file", DATA * 4), tmp_path / "file", limit=len(DATA) * 4, progress=progress
        )
    assert scope.cancelled_caught
    assert not (tmp_path / "file").exists()


def test_the_certificate_of_these_tests_is_for_loopback_alone() -> None:
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    (known,) = context.get_ca_certs()
    assert known["subjectAltName"] == (("DNS", "localhost"), ("IP Address", "127.0.0.1"))
