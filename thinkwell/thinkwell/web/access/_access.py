"""Access to a server: the checks before every request.

A request is served if it names this server (`Host`), comes from no foreign page (`Origin`, `Sec-Fetch-Site`,
`Referer`), and identifies its caller: by the token of a program, or by the cookie of a browser that has sent
a secret. All of that is decided before routing.
"""

from __future__ import annotations

import math
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING, Final, TypeAlias

from thinkwell.web.access._callers import Tokens
from thinkwell.web.access._origins import Authority, address_of, read_authority, read_origin, unmapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from thinkwell.web.access._origins import Origin

SESSION_AGE: Final = 7 * 24 * 3600.0

Network: TypeAlias = IPv4Network | IPv6Network


class Access:
    """Who may use a server, and from where.

    Loopback names and the address of the connection are always names of the server. List every other
    name: a page elsewhere can let its own name resolve to this machine, and would otherwise
    be the server's own page for a browser (DNS rebinding).

    Args:
        tokens: Names of callers, by their tokens. A caller may have several tokens, and sees the runs that
            were started under its name. Tokens have at least 16 characters.
        hosts: Names of the server, such as ``think.example.org``; with a port, only that one counts.
        origins: Other sites whose pages may use the server, such as ``https://app.example.org``.
        proxies: Addresses or networks of proxies in front of the server. Only their ``X-Forwarded-For`` and
            ``X-Forwarded-Proto`` are trusted.
        session_age: Seconds after which a browser has to send its secret again.
        max_sessions: How many browsers a caller may use. One more ends the oldest session.

    Raises:
        ValueError: An argument is invalid. The message contains no token.
    """

    def __init__(
        self,
        tokens: Mapping[str, str],
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        proxies: Iterable[str] = (),
        session_age: float = SESSION_AGE,
        max_sessions: int = 16,
    ) -> None:
        if not 0 < session_age < math.inf:
            raise ValueError(f"session_age: it is {session_age:g}; give seconds above 0")
        if max_sessions < 1:
            raise ValueError(f"max_sessions: it is {max_sessions}; give 1 or more")
        self.tokens: Tokens = Tokens(tokens)
        self.session_age = session_age
        self.max_sessions = max_sessions
        self._hosts = frozenset(map(_host, hosts))
        self._origins = frozenset(map(_origin, origins))
        self._proxies = tuple(map(_network, proxies))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {', '.join(self.tokens.callers)}>"

    @property
    def shares(self) -> bool:
        """Whether pages of other origins may use the server."""
        return bool(self._origins)

    def is_name(self, asked: Authority, local: str | None) -> bool:
        """Return whether a name is one of the server's.

        Args:
            asked: The name in the request.
            local: The local address of the connection.
        """
        address = address_of(asked.host)
        if asked.host == "localhost" or (address is not None and address.is_loopback):
            return True
        if address is not None and local is not None and address == unmapped(local):
            return True
        return not self._hosts.isdisjoint((asked, Authority(asked.host)))

    def is_shared_with(self, origin: Origin | None) -> bool:
        """Return whether pages of an origin may use the server."""
        return origin in self._origins

    def is_proxy(self, host: str) -> bool:
        """Return whether an address is a trusted proxy."""
        address = unmapped(host)
        return address is not None and any(address in network for network in self._proxies)


def _host(text: str) -> Authority:
    authority = read_authority(text)
    if authority is None:
        raise ValueError(
            f"hosts: {text!r:.100} is not a name; give one such as think.example.org or [::1]:8283, "
            "without https:// and without a path, and other letters as xn--"
        )
    return authority


def _origin(text: str) -> Origin:
    origin = read_origin(text.removesuffix("/"))
    if origin is None:
        raise ValueError(
            f"origins: {text!r:.100} is not an origin; give each as https://app.example.org, with its "
            "port where it has one, and without a path. There is no wildcard"
        )
    return origin


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(
            f"proxies: {text!r:.100} is not an address; give one such as 127.0.0.1, or a network: 10.0.0.0/8"
        ) from None
