"""Reads a prompt: its words, its quotations and the files that it links."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from thinkwell.builtin._facts import LANGUAGES, looks_like_python
from thinkwell.builtin._files import path_of_uri
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUOTE: Final = re.compile(
    r"^<(?P<tag>[A-Za-z_][\w.-]*)>\n(?P<body>.*?)^</(?P=tag)>$", re.MULTILINE | re.DOTALL
)
_FENCE: Final = re.compile(
    r"^(?P<fence>`{3,})(?P<tag>\w*)\n(?P<body>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_SCHEMA: Final = re.compile(r"JSON Schema:\s*(?=\{)")
_SUFFIXES: Final = {language.lower(): suffix for suffix, language in reversed(LANGUAGES.items())}


class Quotation(Struct, frozen=True, kw_only=True):
    """A text that is attached to the prompt."""

    name: str
    text: str


class Request(Struct, frozen=True, kw_only=True):
    """A prompt, read."""

    text: str
    """Its words, without quotations."""
    quotations: tuple[Quotation, ...]
    paths: tuple[str, ...]
    """The targets of its links."""
    elsewhere: tuple[str, ...]
    """Links that lead to no file."""
    schema: s.JsonObject | None
    """The last JSON Schema in its words."""

    def about(self, tools: Sequence[str]) -> str:
        """Return its words without the paragraphs about tools."""
        kept = [
            paragraph
            for paragraph in re.split(r"\n\s*\n", self.text)
            if not any(re.search(rf"\b{re.escape(tool)}\b", paragraph) for tool in tools)
        ]
        return "\n\n".join(kept)


def read_prompt(blocks: Sequence[s.ContentBlock]) -> Request:
    """Read a prompt."""
    texts: list[str] = []
    quotations: list[Quotation] = []
    paths: list[str] = []
    elsewhere: list[str] = []
    for block in blocks:
        match block:
            case s.TextContent(text=text):
                texts.append(_without_quotations(text, quotations))
            case s.EmbeddedResource(resource=s.TextResourceContents() as resource):
                name = PurePosixPath(urlsplit(resource.uri).path).name or "resource"
                quotations.append(Quotation(name=name, text=resource.text))
            case s.ResourceLink(uri=uri):
                path = path_of_uri(uri)
                (elsewhere if path is None else paths).append(path or uri)
            case _:
                elsewhere.append(f"content of type {s.to_builtins(block)['type']}")
    text = "\n".join(texts)
    return Request(
        text=text,
        quotations=tuple(quotations),
        paths=tuple(paths),
        elsewhere=tuple(elsewhere),
        schema=_stated_schema(text),
    )


def _without_quotations(text: str, quotations: list[Quotation]) -> str:
    def take(match: re.Match[str]) -> str:
        quotations.append(Quotation(name=_name(match["tag"], match["body"]), text=match["body"]))
        return ""

    return _FENCE.sub(take, _QUOTE.sub(take, text))


def _name(tag: str, body: str) -> str:
    """Return a name for a quotation that says what language it is in."""
    if PurePosixPath(tag).suffix.lower() in LANGUAGES:
        return tag
    suffix = _SUFFIXES.get(tag.lower()) or (".py" if looks_like_python(body) else "")
    return f"{'code' if tag.lower() in _SUFFIXES or not tag else tag}{suffix}"


def _stated_schema(text: str) -> s.JsonObject | None:
    schema: s.JsonObject | None = None
    for match in _SCHEMA.finditer(text):
        try:
            schema, _ = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
    return schema
