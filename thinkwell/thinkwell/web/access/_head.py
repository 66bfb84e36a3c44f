"""The head of a request: the server it is for, the page that sent it, and its address.

Headers that any client can write are not trusted. It is read once; later code reads `Asked`.
"""

from __future__ import annotations

import logging
from ipaddress import IPv6Address, ip_network
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from thinkwell.web._http import path_below
from thinkwell.web._refusals import RequestMalformed, WrongHost
from thinkwell.web.access._origins import Authority, Origin, read_authority, read_origin, unmapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope

    from thinkwell.web.access._access import Access

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing (RFC 9110, section 9.2.1)."""

_SCHEMES: Final = ("http", "https")

_SAME_COOKIES: Final = 4
"""Most cookies with the same name that are checked. All but one come from other servers."""

Page: TypeAlias = Literal["own", "shared", "foreign"]
"""The origin of a requesting page: ours, one that the operator has named, or another."""

logger = logging.getLogger("thinkwell")


class Asked(Struct, frozen=True, kw_only=True):
    """A request, from its head."""

    scope: Scope
    """The scope for the application."""
    headers: Mapping[bytes, list[str]]
    path: str
    """The path below the application's mount point."""
    host: Authority
    page: Page | None
    """The origin of the page that sent it; ``None``: no page, or a browser that does not tell."""
    place: str
    """The client's address."""

    @property
    def method(self) -> str:
        """The method."""
        method: str = self.scope["method"]
        return method

    @property
    def is_safe(self) -> bool:
        """Whether it is a reading request."""
        return self.method in _SAFE

    @property
    def is_secure(self) -> bool:
        """Whether it is encrypted."""
        return bool(self.scope["scheme"] == "https")

    @property
    def has_body(self) -> bool:
        """Whether it has a body."""
        return self.headers.get(b"content-length", ["0"]) != ["0"] or b"transfer-encoding" in self.headers

    @property
    def is_json(self) -> bool:
        """Whether it declares JSON, which forms of foreign pages cannot do."""
        kind = one_header(self.headers, b"content-type") or ""
        return kind.partition(";")[0].strip().lower() == "application/json"

    @property
    def bearer(self) -> str | None:
        """Its token (RFC 6750, section 2.1); ``""``: something else, ``None``: nothing."""
        text = one_header(self.headers, b"authorization")
        if text is None:
            return None
        scheme, _, token = text.partition(" ")
        return token.strip(" ") if scheme.lower() == "bearer" else ""

    @property
    def sessions(self) -> list[str]:
        """The values of our cookie. Other programs on this host may have set cookies of the same name."""
        name = self._cookie_name
        pairs = [pair.partition("=") for line in self.headers.get(b"cookie", []) for pair in line.split(";")]
        return [value.strip() for key, _, value in pairs if key.strip() == name][:_SAME_COOKIES]

    def cookie(self, value: str, age: int) -> bytes:
        """Return the header that sets our cookie (RFC 6265, section 4.1), for some seconds."""
        path = f"{self.scope.get('root_path', '')}/"
        text = f"{self._cookie_name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Strict"
        return f"{text}; Secure".encode("latin-1") if self.is_secure else text.encode("latin-1")

    @property
    def _cookie_name(self) -> str:
        """The name of the cookie. Cookies are for all ports of a host, so it contains the port.

        The prefix keeps other hosts from setting it (RFC 6265bis, section 4.1.3).
        """
        prefix = "__Host-" if self.is_secure and not self.scope.get("root_path") else ""
        return f"{prefix}thinkwell-{self.host.port_for(self.scope['scheme'])}"


class HeadReader:
    """Reads heads of requests."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._warned_of_proxy = False

    def read(self, scope: Scope) -> Asked:
        """Read the head of a request.

        Raises:
            RequestMalformed: It is malformed.
            WrongHost: It is for another server.
        """
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1").strip())
        if b"content-length" in headers and b"transfer-encoding" in headers:
            # A proxy might read the one and we the other, and then disagree about the next request (RFC
            # 9112, section 6.1).
            words = "the request says twice how long its body is; send Content-Length or Transfer-Encoding"
            raise RequestMalformed(words, {"Connection": "close"})
        hosts = headers.get(b"host", [])
        host = read_authority(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            raise RequestMalformed("the header Host has to be there once, with a name of the server")
        scope = dict(scope)
        self._check_name(host, scope)
        if not scope["path"].startswith("/"):
            self._take_target(scope)
        self._take_forwarded(scope, headers)
        own = Origin(scope["scheme"], host.host, host.port_for(scope["scheme"]))
        return Asked(
            scope=scope,
            headers=headers,
            path=path_below(scope),
            host=host,
            page=self._page(headers, own),
            place=_place(scope),
        )

    def _check_name(self, host: Authority, scope: Scope) -> None:
        server = scope.get("server")
        if not self._access.is_name(host, None if server is None else str(server[0])):
            raise WrongHost(
                "this server does not go by that name; use another address of it, or let its operator add "
                "that name to its hosts"
            )

    def _take_target(self, scope: Scope) -> None:
        """Split a target that has a host (RFC 9112, section 3.2.2)."""
        scheme, mark, rest = scope["path"].partition("://")
        name, slash, path = rest.partition("/")
        host = read_authority(name)
        if not mark or scheme.lower() not in _SCHEMES or host is None:
            raise RequestMalformed("the target of a request is a path")
        self._check_name(host, scope)
        scope["path"] = f"{slash or '/'}{path}"
        scope.pop("raw_path", None)

    def _take_forwarded(self, scope: Scope, headers: Mapping[bytes, list[str]]) -> None:
        """Use the client's address from a trusted proxy."""
        client = scope.get("client")
        if client is None or not self._access.is_proxy(client[0]):
            if b"x-forwarded-for" in headers and not self._warned_of_proxy:
                self._warned_of_proxy = True
                logger.warning(
                    "A request from %s says that it was forwarded, which is not believed. If that is "
                    "your proxy, add its address to the proxies",
                    client and client[0],
                )
            return
        for place in reversed(",".join(headers.get(b"x-forwarded-for", [])).split(",")):
            address = unmapped(place.strip())  # the last proxy has added the last one
            if address is None:
                break
            scope["client"] = (str(address), 0)
            if not self._access.is_proxy(str(address)):
                break
        scheme = ",".join(headers.get(b"x-forwarded-proto", [])).rpartition(",")[2].strip().lower()
        if scheme in _SCHEMES:
            scope["scheme"] = scheme

    def _page(self, headers: Mapping[bytes, list[str]], own: Origin) -> Page | None:
        text = one_header(headers, b"origin")
        if text is not None and text != "null":
            origin = read_origin(text)
            if origin == own:
                return "own"
            return "shared" if self._access.is_shared_with(origin) else "foreign"
        # Browsers omit Origin if a page reads from its own server, or shows a picture of another.
        # They say "null" for pages without an origin, and for those that must not be named; these may
        # be ours (Fetch, Origin header; Fetch Metadata, Sec-Fetch-Site).
        match one_header(headers, b"sec-fetch-site"):
            case "same-origin":
                return "own"
            case "same-site" | "cross-site":
                return "foreign"
            case None if text is None:
                # Over plain HTTP, browsers send it only to loopback names. Our page makes them send Referer.
                referer = one_header(headers, b"referer") or ""
                return "own" if read_origin("/".join(referer.split("/", 3)[:3])) == own else None
            case _:
                return None if text is None else "foreign"


def one_header(headers: Mapping[bytes, list[str]], name: bytes) -> str | None:
    """Return the value of a header that may occur once; ``None`` if it is missing.

    Raises:
        RequestMalformed: It occurs several times.
    """
    values = headers.get(name, [])
    if len(values) > 1:
        raise RequestMalformed(f"the header {name.decode().title()} occurs more than once")
    return values[0] if values else None


def _place(scope: Scope) -> str:
    """Return the origin of a request: an address, or the network of IPv6 addresses of one household."""
    client = scope.get("client")
    address = None if client is None else unmapped(str(client[0]))
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)
