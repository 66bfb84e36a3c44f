"""All of it as an ASGI application: by itself behind a server, or as a part of another program."""

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

__all__ = ("web_app",)


def web_app(
    server: RunServer, *, access: Access | None = None, page: bool = True, letta: bool = True
) -> Starlette:
    """Return an ASGI application that serves runs over HTTP: to uvicorn, or to hypercorn on both event loops.

    Its lifespan enters the server, and leaves it at the end. Where it is mounted in another application, that
    one's lifespan has to: ``async with server:``. It can be mounted under any path.

    Args:
        server: What has the runs.
        access: Who may use it. Without it everybody may who can connect, and pages of all the web by their
            browser: so leave it out only in a program that checks by itself. That one can tell callers
            apart by `request.state.caller`, a text: each sees only its own runs.
        page: Whether to serve the page, at ``/``.
        letta: Whether to serve Letta's clients, under ``/v1``.
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
    app.router.redirect_slashes = False  # a redirect names the host that the request has named
    return app
