"""The headers Host and Origin: the requested server, and the page that sent the request.

Both are normalised for comparison: lower case, no trailing dot, the shortest form of addresses. A value
without such a form is not an origin.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, TypeAlias

from msgspec import Struct

Address: TypeAlias = IPv4Address | IPv6Address

_AUTHORITY: Final = re.compile(
    r"(?: \[ (?P<v6>[0-9a-f:.]+) \] | (?P<name>[a-z0-9._-]+) ) (?: : (?P<port>[0-9]{0,5}) )?", re.VERBOSE
)
"""RFC 3986, section 3.2, without the parts that a header must not have: user information, escapes, zones."""

_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,31}")

_LONGEST: Final = 253 + len(":65535")
"""Characters of a name with a port."""

_LARGEST_PORT: Final = 65_535

_PORTS: Final = {"http": 80, "https": 443}
"""The default ports."""


class Authority(Struct, frozen=True):
    """A host, with its port if there is one."""

    host: str
    """A name, or an address, without brackets."""
    port: int | None = None

    def port_for(self, scheme: str) -> int | None:
        """Return the port, or the default port."""
        return _PORTS.get(scheme) if self.port is None else self.port


class Origin(Struct, frozen=True):
    """The origin of a page. Equal origins are the same."""

    scheme: str
    host: str
    port: int | None
    """``None``: the scheme has no port."""


def read_authority(text: str) -> Authority | None:
    """Return the host of a ``Host`` header (RFC 9110, section 7.2); ``None``: there is none."""
    found = _AUTHORITY.fullmatch(text.lower()) if len(text) <= _LONGEST and text.isascii() else None
    if found is None:
        return None
    host = _address_v6(found["v6"]) if found["v6"] is not None else _name(found["name"])
    port = int(found["port"]) if found["port"] else None
    if host is None or (port is not None and not 0 < port <= _LARGEST_PORT):
        return None
    return Authority(host, port)


def read_origin(text: str) -> Origin | None:
    """Return the origin of an ``Origin`` header (RFC 6454, section 7); ``None``: there is none."""
    scheme, mark, rest = text.partition("://")
    authority = read_authority(rest)
    scheme = scheme.lower()
    if not mark or authority is None or not _SCHEME.fullmatch(scheme):
        return None
    return Origin(scheme, authority.host, authority.port_for(scheme))


def address_of(host: str) -> Address | None:
    """Return the address of a host; ``None``: the host is a name."""
    try:
        return IPv6Address(host) if ":" in host else IPv4Address(host)
    except AddressValueError:
        return None


def unmapped(host: str) -> Address | None:
    """Return the address of a socket in its usual form; ``None``: it is not an address."""
    address = address_of(host.partition("%")[0])  # a zone only has a meaning on this machine
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _address_v6(text: str) -> str | None:
    address = unmapped(text) if ":" in text else None
    return None if address is None else str(address)


def _name(text: str) -> str | None:
    """Return a name, or an IPv4 address, which no name may look like."""
    name = text.removesuffix(".")
    if name.rpartition(".")[2].isdigit():
        address = address_of(name)
        return None if address is None else str(address)
    return name if _NAME.fullmatch(name) else None
