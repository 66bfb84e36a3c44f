"""The guard of an application: it only admits callers that `Access` allows.

It is the outermost ASGI middleware, so every answer gets the headers that restrict what browsers do with it.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect

from thinkwell.journal import JournalError
from thinkwell.web._bodies import Body
from thinkwell.web._page_files import PATHS
from thinkwell.web._refusals import (
    Forbidden,
    NotJson,
    Refusal,
    RequestMalformed,
    ServerFailed,
    TooManyAttempts,
    Unauthorized,
    refusal_of,
)
from thinkwell.web.access._callers import Attempts, Sessions
from thinkwell.web.access._head import HeadReader, one_header
from thinkwell.web.access._traffic import Outgoing, Watchers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from thinkwell.journal import Journal
    from thinkwell.web._requests import Limits
    from thinkwell.web.access._access import Access
    from thinkwell.web.access._head import Asked

PUBLIC: Final = frozenset({*PATHS, "/healthz"})
"""Paths without a login: the page, which asks for the secret, and the check that the server is running."""

SESSION_PATH: Final = "/api/session"

SECRET_LIMIT: Final = 4096
"""Most bytes of a request with a secret."""

_NAMES: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,1000}")
"""Names of headers, with commas between them."""

_NOBODY: Final = "the token is not known; the operator of the server has given out others"
_UNNAMED: Final = "there is no token; send one so: Authorization: Bearer …"

logger = logging.getLogger("thinkwell")


class AccessGuard:
    """Passes allowed requests to an application, and answers the others itself.

    The caller is then in ``scope["state"]["caller"]``; ``""`` if callers are not checked.

    Args:
        app: The application.
        access: Who may.
        journal: Where sessions of browsers are kept: all servers that share it know them.
        limits: How long requests may be, and how many streams of events may be open.
    """

    def __init__(self, app: ASGIApp, access: Access, *, journal: Journal, limits: Limits) -> None:
        self._app = app
        self._access = access
        self._limits = limits
        self._heads = HeadReader(access)
        self._watchers = Watchers(self._limits)
        self._attempts = Attempts()
        self._sessions = Sessions(access.tokens, journal, age=access.session_age, most=access.max_sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve what a server has received, as an ASGI application."""
        match scope["type"]:
            case "http":
                body = Body(receive, self._limits.max_request)
                await self._answer(scope, body, Outgoing(send, scope, body, self._watchers))
            case "lifespan":
                await self._app(scope, receive, send)
            case _:  # websockets are not served
                await receive()
                await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, body: Body, answer: Outgoing) -> None:
        if self._access.shares:
            answer.vary()
        try:
            asked = self._heads.read(scope)
            if asked.page == "shared":
                answer.share_with(asked.headers[b"origin"][0])
            body.check(one_header(asked.headers, b"content-length"))
            await self._serve(asked, body, answer)
        except Refusal as exc:
            if answer.begun:
                raise
            await answer.refuse(exc)
        except ClientDisconnect:
            return
        except Exception:
            if answer.is_turned_away:
                return
            if not answer.begun:
                await answer.refuse(ServerFailed())
            raise
        finally:
            answer.end()

    async def _serve(self, asked: Asked, body: Body, answer: Outgoing) -> None:
        if asked.method == "OPTIONS" and b"access-control-request-method" in asked.headers:
            await self._answer_preflight(asked, answer)
            return
        if not asked.is_safe and asked.page == "foreign":
            raise _foreign()
        if asked.path == SESSION_PATH and asked.method == "POST":
            await self._begin_session(asked, body, answer)
            return
        if asked.path == SESSION_PATH and asked.method == "DELETE":
            await self._end_session(asked, answer)
            return
        if not (asked.method in ("GET", "HEAD") and asked.path in PUBLIC):
            answer.caller = await self._caller(asked)
        state = {**asked.scope.get("state", {}), "caller": answer.caller}
        await self._app({**asked.scope, "state": state}, body, answer)

    async def _answer_preflight(self, asked: Asked, answer: Outgoing) -> None:
        """Answer whether a page may send requests (Fetch, CORS-preflight request)."""
        if asked.page not in ("own", "shared"):
            raise _foreign()
        names = ", ".join(asked.headers.get(b"access-control-request-headers", []))
        headers = [
            (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
            (b"access-control-max-age", b"600"),
        ]
        if _NAMES.fullmatch(names):
            headers.append((b"access-control-allow-headers", names.encode()))
        await answer.empty(*headers)

    # Callers

    async def _caller(self, asked: Asked) -> str:
        """Return the caller.

        Raises:
            Unauthorized: The caller is unknown.
            Forbidden: A foreign page has sent it, in a browser with a session.
            NotJson: Perhaps the same.
        """
        token = asked.bearer
        if token is not None:
            caller = self._access.tokens.caller(token)
            if caller is None:
                raise self._wrong(asked, _NOBODY if token else _UNNAMED)
            return caller
        for value in asked.sessions:
            caller = await _kept(self._sessions.caller, value)
            if caller is not None:
                _check_browser(asked)
                return caller
        raise _unauthorized("the caller is unknown; give a token (Authorization: Bearer …), or log in")

    def _wrong(self, asked: Asked, message: str) -> Refusal:
        """Return the answer to a wrong secret."""
        seconds = self._attempts.fail(asked.place)
        if seconds is None:
            return _unauthorized(message, 'Bearer error="invalid_token"')
        words = f"too many wrong secrets came from where you are; try again in {seconds} s"
        return TooManyAttempts(words, retry_after=seconds)

    async def _begin_session(self, asked: Asked, body: Body, answer: Outgoing) -> None:
        if not asked.is_json:
            raise _not_json()
        try:
            secret = msgspec.json.decode(await Body(body, SECRET_LIMIT).whole(), type=_Secret).secret
        except (msgspec.DecodeError, RecursionError):
            raise RequestMalformed('send {"secret": "…"}, with the secret of the server') from None
        value = await _kept(self._sessions.begin, secret)
        if value is None:
            raise self._wrong(asked, "the secret is not right; take it from where the server was started")
        for old in asked.sessions:
            await _kept(self._sessions.end, old)
        await answer.empty((b"set-cookie", asked.cookie(value, int(self._access.session_age))))

    async def _end_session(self, asked: Asked, answer: Outgoing) -> None:
        if asked.sessions:
            _check_browser(asked)
        for value in asked.sessions:
            await _kept(self._sessions.end, value)
        await answer.empty((b"set-cookie", asked.cookie("", 0)))


class _Secret(Struct, frozen=True):
    """The body of a browser's login."""

    secret: str


async def _kept(action: Callable[[str], Awaitable[str | None]], value: str) -> str | None:
    """Use the sessions.

    Raises:
        ServerUnavailable: They cannot be read or stored.
        StorageFull: There is no room for them.
    """
    try:
        return await action(value)
    except JournalError as exc:
        logger.error("Sessions of browsers cannot be read or kept: %s", exc)
        raise refusal_of(exc) from None


def _check_browser(asked: Asked) -> None:
    """Check that one of our pages has made a browser send its cookie.

    Raises:
        Forbidden: It was another page, or that is not certain.
        NotJson: The request has a form that any page could send.
    """
    if asked.page not in ("own", "shared"):
        raise _foreign()
    if not asked.is_safe and asked.has_body and not asked.is_json:
        raise _not_json()


def _foreign() -> Refusal:
    return Forbidden(
        "a page of another place has sent this, or it is not said which; the operator of the server can add "
        "that place to its origins, and programs give a token instead of a cookie"
    )


def _not_json() -> Refusal:
    return NotJson("send JSON, and say so: Content-Type: application/json")


def _unauthorized(message: str, challenge: str = "Bearer") -> Refusal:
    return Unauthorized(message, {"WWW-Authenticate": challenge})
