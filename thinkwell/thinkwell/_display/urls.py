"""The host of an address, and the password in one."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

HOST_LENGTH: Final = 253
"""Characters of the longest domain name (RFC 1035)."""


def url_host(url: str) -> str:
    """Return the host that a browser connects to, in the form of name servers; empty if there is none.

    It is also empty if that is not certain, such as for backslashes, missing slashes and encoded characters,
    which browsers read in different ways: a user must not be shown another host than the one that is opened.
    Names with letters outside ASCII appear as ``xn--…``, because letters of different scripts look alike.
    """
    found = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#\\]*)(\\?)", url)
    if found is None or found[2]:
        return ""
    host = re.sub(r":[0-9]*\Z", "", found[1].rpartition("@")[2].lower())
    if re.fullmatch(r"\[[0-9a-f:.]+\]", host):
        return host
    labels = [_ascii_label(label) for label in host.split(".")] if len(host) <= HOST_LENGTH else [None]
    return "" if None in labels else ".".join(map(str, labels))


def without_password(url: str) -> str:
    """Return an address with ``***`` in place of a password, as in ``postgresql://me:***@host/db``."""
    hidden = re.sub(r"(?<=://)([^/?#]*?):[^/?#]*@", r"\1:***@", url)
    return re.sub(r"(?i)((?:^|[\s?&])(?:ssl)?password=)[^&#\s]+", r"\1***", hidden)


def _ascii_label(label: str) -> str | None:
    if label.isascii():
        return label if re.fullmatch("[a-z0-9_-]*", label) else None
    # Compatibility forms and characters that are not letters change on their way to a name server.
    if unicodedata.normalize("NFKC", label) != label:
        return None
    if not all(char.isalnum() or char in "-_" or unicodedata.category(char)[0] == "M" for char in label):
        return None
    return "xn--" + label.encode("punycode").decode()
