"""Downloads of untrusted files."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import socket
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import anyio
import anyio.from_thread
import anyio.to_thread

from thinkwell._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path
    from typing import IO

CHUNK: Final = 256 * 1024
"""Most bytes read at once."""

READ_TIMEOUT: Final = 30.0
"""Seconds to wait for the next bytes."""

_NETWORK: Final = (
    "Check the network and, behind a proxy, the variables HTTPS_PROXY and NO_PROXY; then try again"
)


class DownloadError(Exception):
    """A file could not be downloaded. Nothing of it is left.

    Attributes:
        url: Its address.
        reason: The cause, and what to do.
    """

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"{_shown(self.url)} could not be downloaded: {self.reason}"


async def download(
    url: str,
    to: Path,
    *,
    limit: int,
    sha256: str | None = None,
    read_timeout: float = READ_TIMEOUT,
) -> None:
    """Download a file over https, or over http from this machine itself. urllib's proxy settings apply.

    Args:
        url: The file's address.
        to: The target path. It must not exist, and it does not exist after a failure.
        limit: Most bytes of the file.
        sha256: The expected digest, in hexadecimal digits.
        read_timeout: Seconds to wait for the next bytes.

    Raises:
        DownloadError: The download failed.
    """
    wire = _Wire()
    job = _Job(url, to, limit, sha256, read_timeout, _opener(wire))
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.cut_when_cancelled)
        try:
            await anyio.to_thread.run_sync(job.run)
        except Exception as exc:
            failure = exc
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


class _Wire:
    """The connection of a download. Closing it ends a read that waits in another thread."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_cut = False

    async def cut_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self._is_cut = True
            self._shut()

    def hold(self, connected: socket.socket) -> None:
        """Replace the connection before, which led to a redirection."""
        self._socket = connected
        if self._is_cut:  # pragma: no cover - cancelled between two connections
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # closed, or not connected any more
                # Not the TLS socket's own method: it would change state that the reading thread uses.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@dataclass(frozen=True)
class _Job:
    """A download that a worker thread runs."""

    _url: str
    _to: Path
    _limit: int
    _sha256: str | None
    _read_timeout: float
    _opener: urllib.request.OpenerDirector

    def run(self) -> None:
        _check(self._url)
        try:
            file = self._to.open("xb")
        except OSError as exc:
            raise DownloadError(self._url, f"{self._to} cannot be written: {exc.strerror}") from exc
        try:
            with file:
                self._fetch(file)
        except BaseException:
            self._to.unlink(missing_ok=True)
            raise

    def _fetch(self, file: IO[bytes]) -> None:
        request = urllib.request.Request(self._url, headers={"User-Agent": f"thinkwell/{VERSION}"})  # noqa: S310 - checked
        with self._faults():
            answer = self._opener.open(request, timeout=self._read_timeout)
        with cast("http.client.HTTPResponse", answer) as response:
            self._copy(response, file)

    @contextmanager
    def _faults(self) -> Generator[None]:
        """Translate network failures into `DownloadError`."""
        try:
            yield
        except urllib.error.HTTPError as exc:
            exc.close()
            raise DownloadError(self._url, _status(exc.code)) from exc
        except (OSError, http.client.HTTPException, ValueError) as exc:
            anyio.from_thread.check_cancelled()  # then we closed the connection
            raise DownloadError(self._url, self._fault(exc)) from exc

    def _copy(self, response: http.client.HTTPResponse, file: IO[bytes]) -> None:
        total, done = response.length, 0
        digest = hashlib.sha256()
        self._check_size(total or 0)
        while data := self._read(response):
            done += len(data)
            self._check_size(done)
            digest.update(data)
            try:
                file.write(data)
            except OSError as exc:
                raise DownloadError(self._url, f"{self._to} cannot be written: {exc.strerror}") from exc
        if total is not None and done < total:
            raise DownloadError(self._url, f"the connection ended after {done} of {total} bytes. {_NETWORK}")
        self._check_digest(digest.hexdigest())

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        with self._faults():
            data = response.read1(CHUNK)
        anyio.from_thread.check_cancelled()
        return data

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise DownloadError(
                self._url, f"it has more than {self._limit} bytes, the limit. Check the address"
            )

    def _check_digest(self, found: str) -> None:
        if self._sha256 is not None and found != self._sha256.lower():
            raise DownloadError(
                self._url,
                f"its SHA-256 is {found}, but {_shown(self._sha256)} was expected: the file was replaced or "
                "damaged. Do not use it until you know why",
            )

    def _fault(self, exc: Exception) -> str:
        """Describe a network failure."""
        cause = exc.reason if isinstance(exc, urllib.error.URLError) else exc
        match cause:
            case TimeoutError():
                return f"no data came for {self._read_timeout:g} seconds. {_NETWORK}"
            case ssl.SSLCertVerificationError():
                return (
                    f"the server's certificate was not accepted ({_shown(cause.verify_message)}). Where a "
                    "proxy uses its own, set SSL_CERT_FILE to the file of its certificates"
                )
            case http.client.HTTPException() | ValueError():  # its text is the server's
                return (
                    f"the server's answer was not HTTP, or was cut off ({type(cause).__name__}). {_NETWORK}"
                )
            case _:
                return f"{_shown(str(cause))}. {_NETWORK}"


def _status(code: int) -> str:
    """Describe an answer other than 200, without the server's own words."""
    phrase = next((f" {status.phrase}" for status in HTTPStatus if status == code), "")
    advice = {
        HTTPStatus.NOT_FOUND: "The file has moved or is gone: look for a newer address",
        HTTPStatus.GONE: "The file has moved or is gone: look for a newer address",
        HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "Put the proxy's user and password in HTTPS_PROXY",
    }.get(HTTPStatus(code) if phrase else HTTPStatus.OK, "Try again later")
    return f"the server answered {code}{phrase}. {advice}"


def _check(url: str, before: str | None = None) -> None:
    """Check that an address may be requested, and that the address before may redirect to it.

    Raises:
        DownloadError: It is refused.
    """
    reason = _objection(url)
    if reason is None and before is not None and _scheme(before) == "https" != _scheme(url):
        reason = "it redirects from https to http. Use the address of a server that stays on https"
    if reason is not None:
        raise DownloadError(url, reason)


def _objection(url: str) -> str | None:
    if not (url.isascii() and url.isprintable() and " " not in url):
        return "the address has invalid characters. Write them as %XX"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        return f"it is not an address: {exc}"
    if parts.scheme not in ("https", "http") or not host:
        return "an address must begin with https:// and name a server"
    if parts.username is not None:
        return "the address has a user name, which would not be sent. Remove it"
    if parts.scheme == "http" and not _is_loopback(host):
        return "http is for this machine only: others could change the file on the way. Use https"
    return None


def _scheme(url: str) -> str:
    return urlsplit(url).scheme


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(text: str) -> str:
    return text if text.isprintable() and len(text) <= 1000 else ascii(text[:1000])


def _opener(wire: _Wire) -> urllib.request.OpenerDirector:
    """Return an opener for http and https, without urllib's other schemes (files, FTP)."""

    class HttpConnection(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            wire.hold(self.sock)

    class HttpsConnection(http.client.HTTPSConnection):
        def __init__(self, host: str, *, context: ssl.SSLContext, **options: Any) -> None:
            super().__init__(host, context=context, **options)
            self._tls = context

        def connect(self) -> None:
            http.client.HTTPConnection.connect(self)
            # Held before the handshake, where a server may hang too.
            host = cast("Any", self)._tunnel_host or self.host  # with and without a proxy
            tls = self._tls.wrap_socket(self.sock, server_hostname=host, do_handshake_on_connect=False)
            self.sock = tls
            wire.hold(tls)
            tls.do_handshake()

    class HttpHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(cast("Any", HttpConnection), req)

    class HttpsHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            context = ssl.create_default_context()
            context.set_alpn_protocols(["http/1.1"])
            return self.do_open(cast("Any", HttpsConnection), req, context=context)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        HttpHandler(),
        HttpsHandler(),
        _Redirections(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _Redirections(urllib.request.HTTPRedirectHandler):
    def http_error_302(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any
    ) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except ValueError:  # the target is not a valid address
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        fp.close()  # otherwise the whole body is read first, of any length
        _check(newurl, before=req.full_url)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
