"""Texts between marks that do not occur in them."""

from __future__ import annotations

import re


def quoted(content: str, tag: str) -> str:
    """Return the content between a pair of tags that does not occur in it."""
    if not re.fullmatch(r"[A-Za-z_][\w.-]*", tag):
        raise ValueError(f"quote(tag={tag!r}): a tag is a name such as quote or file")
    while f"</{tag}>" in content:
        tag += "_"
    return f"<{tag}>\n{_closed(content)}</{tag}>\n"


def fenced(content: str, language: str) -> str:
    """Return the content between code fences that are longer than any in it."""
    longest = max(map(len, re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{_closed(content)}{fence}\n"


def _closed(content: str) -> str:
    return content if not content or content.endswith("\n") else content + "\n"
