"""HTTP requests to the Bot API: addresses, size limits, and how the token is kept secret.

The token is a part of every address. httpx logs addresses and keeps them in its exceptions, so requests have
an address whose text hides the token, and no exception of httpx leaves this module, nor any other exception
in which the caller's client names the token.
"""

from __future__ import annotations

import logging
import re
from contextlib import aclosing, asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
import httpx

from thinkwell._display.text import line
from thinkwell._version import VERSION
from thinkwell.channels.telegram._errors import TelegramAnswerInvalid, TelegramNetworkError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

MAX_ANSWER: Final = 32 * 1024 * 1024
"""Most bytes of an answer. A hundred updates with long texts are smaller."""

CONNECT: Final = 10.0
"""Seconds to connect."""

_TOKEN: Final = re.compile(r"([1-9][0-9]{0,15}):([A-Za-z0-9_-]{1,72})", re.ASCII)

_ADDRESS_OF_BOT: Final = re.compile(r"/bot[0-9]+:", re.ASCII)

_LOGGERS: Final = ("hpack.hpack", "hpack.table")
"""Libraries below httpx that log the path: the caller's client may use HTTP/2."""

_NOT_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
"""Exceptions after which Telegram cannot have received the request."""


class _HiddenUrl(httpx.URL):
    """An address whose text hides the token, and that is sent unchanged."""

    def __init__(self, url: str, shown: str) -> None:
        super().__init__(url)
        self._shown = shown

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"URL({self._shown!r})"


class _WithoutToken(logging.Filter):
    """Removes the token from log records."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        written = record.getMessage()
        if self._secret in written:
            record.msg, record.args = written.replace(self._secret, "…"), ()
        return True


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes
    retry_after: str
    """The seconds to wait, if the server says so."""


class Requests:
    """Sends requests of one bot, inside its block.

    Raises:
        ValueError: The token or the address is malformed.
    """

    def __init__(self, token: str, base_url: str, client: httpx.AsyncClient | None) -> None:
        token = token.strip()  # files and variables may end with a line feed
        found = _TOKEN.fullmatch(token)
        if found is None:
            raise ValueError(
                "the token is not of the form <number>:<letters and digits>; copy it from BotFather unchanged"
            )
        self.bot_id = int(found[1])
        self._token = token
        self._secret = found[2]
        if _ADDRESS_OF_BOT.search(base_url):
            raise ValueError("base_url contains a token, and would show it; use only the part before /bot")
        self._base, self._direct = _checked(base_url)  # a proxy would learn the token, and is not needed here
        self._client = client
        self._filter = _WithoutToken(self._secret)

    def __repr__(self) -> str:
        return f"{self._base}/bot{self.bot_id}:…"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Send requests during a block."""
        own: httpx.AsyncClient | None = None
        if self._client is None:
            headers = {"User-Agent": f"thinkwell/{VERSION}", "Accept-Encoding": "identity"}
            own = self._client = httpx.AsyncClient(trust_env=not self._direct, headers=headers)
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._filter)
        try:
            yield
        finally:
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(self._filter)
            if own is not None:
                self._client = None
                await own.aclose()

    async def send(self, method: str, body: bytes, seconds: float) -> Answer:
        """Send a request, and return the answer.

        Raises:
            TelegramNetworkError: There was no answer in time.
            TelegramAnswerInvalid: The answer is far too large.
        """
        if self._client is None:
            raise RuntimeError("use TelegramApi inside its block: async with TelegramApi(…) as api")
        request = self._client.build_request(
            "POST",
            self._base,
            content=body,
            headers={"Content-Type": "application/json"},
            timeout=httpx.Timeout(seconds, connect=min(CONNECT, seconds)),
        )
        request.url = _HiddenUrl(
            f"{self._base}/bot{self._token}/{method}", f"{self._base}/bot{self.bot_id}:…/{method}"
        )
        fault, sent = f"no answer within {seconds:g} s", True
        with anyio.move_on_after(seconds):
            try:
                return await self._exchange(self._client, request, method)
            except Exception as exc:
                if not isinstance(exc, httpx.HTTPError) and self._secret not in str(exc):
                    raise
                fault = self.shown(f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__)
                sent = not isinstance(exc, _NOT_SENT)
        # Outside the handler: otherwise the exception of httpx, which holds the request, would be the
        # context.
        error = TelegramNetworkError(method, 0, fault)
        error.sent = sent
        raise error

    def shown(self, text: str) -> str:
        """Return a text as a clean line without the token."""
        return line(text.replace(self._secret, "…"), 300)

    async def _exchange(self, client: httpx.AsyncClient, request: httpx.Request, method: str) -> Answer:
        response = await client.send(request, stream=True, follow_redirects=False)
        async with aclosing(response):
            body = await _body(response)
        if body is None:
            raise TelegramAnswerInvalid(
                method, response.status_code, f"the answer is longer than {MAX_ANSWER} bytes"
            )
        return Answer(response.status_code, body, response.headers.get("Retry-After", ""))


async def _body(response: httpx.Response) -> bytes | None:
    """Read a body; ``None`` if it is too long."""
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MAX_ANSWER:
        return None
    taken = bytearray()
    fits = True
    async for chunk in response.aiter_bytes():  # to its end: nothing else closes the inner iterator
        fits = fits and len(taken) + len(chunk) <= MAX_ANSWER
        if fits:
            taken += chunk
        else:
            taken.clear()
    return bytes(taken) if fits else None


def _checked(base_url: str) -> tuple[str, bool]:
    """Return an address without a final slash, and whether it is plain HTTP on this machine.

    Raises:
        ValueError: It cannot be used.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as exc:
        raise ValueError(f"base_url is not an address: {exc}") from None
    if url.userinfo or url.query or url.fragment:  # they may be secret, so the error does not repeat them
        raise ValueError("base_url may have a path, but no user, query or fragment")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"base_url={base_url!r:.200}: it must begin with https:// and the name of a host")
    plain = url.scheme == "http"
    if plain and not _is_loopback(url.host):
        raise ValueError(f"base_url={base_url!r:.200}: the token would be sent unencrypted; use https://")
    return str(url).rstrip("/"), plain


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
