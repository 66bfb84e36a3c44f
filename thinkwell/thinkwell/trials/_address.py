"""Addresses without their passwords."""

from __future__ import annotations

import re

__all__ = ("has_password", "redacted")


def has_password(url: str) -> bool:
    """Return whether an address has a password in it."""
    return redacted(url) != url


def redacted(url: str) -> str:
    """Return an address with ``***`` in place of a password in it, as in ``postgresql://me:***@host/db``."""
    hidden = re.sub(r"(?<=://)([^/?#@]*?):[^/?#]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&](?:password|sslpassword|token)=)[^&#]*", r"\1***", hidden)
