"""The page: one HTML file and its modules, served from the package."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from thinkwell.web._http import Resource
from thinkwell.web._page_files import ENTRY, FOLDER, SCRIPTS, STYLE, hash_of, page_html

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from thinkwell.web._serving import RunServer

HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-cache",  # browsers revalidate it each time; mostly it has not changed
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # if it is the only sign of the requesting page
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src {styles}",
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
"""The permissions of the page (Content Security Policy Level 3, Trusted Types): run its scripts, connect to
its server, and show pictures from an agent's messages. Nothing is loaded from elsewhere, and no text can
become a script or a style."""


def routes(server: RunServer) -> list[Route]:
    """Return the page: ``/`` and its modules. They contain no secrets."""
    # A browser loads all of them at once, not one import after another.
    preloads = "".join(f'<link rel="modulepreload" href="{name}">\n' for name in SCRIPTS)
    html = page_html().replace(ENTRY, preloads + ENTRY)
    page = _File(html.encode(), "text/html", {"Content-Security-Policy": _policy(html)})
    return [Route("/", page.resource), *(Route(f"/{name}", _script(name).resource) for name in SCRIPTS)]


def _script(name: str) -> _File:
    """Return a module of the page."""
    return _File(FOLDER.joinpath(name).read_bytes(), "text/javascript")


def _policy(html: str) -> str:
    """Return the policy of a page: its own styles are allowed by their hashes."""
    return "; ".join(_POLICY).format(styles=" ".join(map(hash_of, STYLE.findall(html))))


class _File:
    """A served file. A client that has it does not get it again.

    Args:
        body: Its text.
        media_type: Its media type.
        headers: Headers in addition to the usual ones.
    """

    def __init__(self, body: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        self._body = body
        self._media_type = media_type
        self._tag = f'"{sha256(body).hexdigest()[:32]}"'
        self._headers = {**HEADERS, "ETag": self._tag, **(headers or {})}
        self.resource = Resource(GET=self._get)

    async def _get(self, request: Request) -> ASGIApp:
        if self._is_known(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=self._headers)
        return Response(self._body, headers=self._headers, media_type=self._media_type)

    def _is_known(self, tags: str) -> bool:
        """Return whether a browser has the current file (RFC 9110, section 13.1.2)."""
        known = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return bool(known & {self._tag, "*"})
