"""The native API: all of `RunServer` over HTTP, and its OpenAPI description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell.web.native import _api, _openapi

if TYPE_CHECKING:
    from starlette.routing import Route

    from thinkwell.web._serving import RunServer

__all__ = ("routes",)


def routes(server: RunServer, *, has_access: bool) -> list[Route]:
    """Return the native API of a server, and its description.

    Args:
        server: The server of the runs.
        has_access: Whether callers are checked.
    """
    return [*_api.routes(server), *_openapi.routes(server, has_access=has_access)]
