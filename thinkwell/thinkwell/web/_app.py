"""The ASGI application: behind a server by itself, or mounted in another application."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from thinkwell.web import _page, front_ends, native
from thinkwell.web import letta as letta_clients
from thinkwell.web._http import Failures, Resource, http_exception
from thinkwell.web.access import AccessGuard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell.web._serving import RunServer
    from thinkwell.web.access import Access


def web_app(
    server: RunServer, *, access: Access | None = None, page: bool = True, letta: bool = True
) -> Starlette:
    """Return an ASGI application that serves runs over HTTP, for uvicorn, or hypercorn on both event loops.

    Its lifespan enters and leaves the server. If you mount it in another application, under any path, that
    application's lifespan has to do it: ``async with server:``.

    Args:
        server: The server of the runs.
        access: Who may use it. Without it, everyone who can connect may, and so may every web page in their
            browsers: leave it out only if your program checks callers itself. Set
            `request.state.caller`, a text, to tell callers apart: each sees only its own runs.
        page: Whether to serve the web page, at ``/``.
        letta: Whether to serve the Letta API, under ``/v1``.
    """
    routes = [
        *native.routes(server, has_access=access is not None),
        *front_ends.routes(server),
        *(_page.routes(server) if page else ()),
        *(letta_clients.routes(server) if letta else ()),
    ]
    middleware = [Middleware(Failures, is_ready=lambda: server.is_open)]
    if access is not None:
        session = Resource()
        session.allowed = "DELETE, POST"  # the guard answers these
        routes.append(Route("/api/session", session))
        guard = Middleware(AccessGuard, access, journal=server.journal, limits=server.limits)
        middleware.insert(0, guard)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        if server.is_open:
            yield
        else:
            async with server:
                yield

    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: http_exception},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect would repeat the host from the request
    return app
