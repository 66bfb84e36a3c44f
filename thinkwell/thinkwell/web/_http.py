"""The common part of all routes: strict reading of requests, answers in JSON, and errors without secrets."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from thinkwell.journal import JournalError
from thinkwell.web._bodies import Body
from thinkwell.web._refusals import (
    Refusal,
    Refused,
    RequestInvalid,
    RequestMalformed,
    ServerFailed,
    ServerUnavailable,
    WhyRefused,
    refusal_of,
)
from thinkwell.web._wording import type_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

X = TypeVar("X", bound=msgspec.Struct)

DEPTH: Final = 64
"""Greatest nesting of a caller's JSON. Code that reads it later may have a deeper stack."""

CODES: Final[Mapping[int, str]] = {404: "not_found", 405: "method_not_allowed"}
"""Codes for the refusals of Starlette."""

logger = logging.getLogger("thinkwell")

if TYPE_CHECKING:
    Handler: TypeAlias = Callable[[Request], Awaitable[ASGIApp]]


# Answers


def json_answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer as JSON."""
    more = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    body = msgspec.json.encode(value)
    return Response(body, status, headers=more, media_type="application/json")


def refusal_answer(refusal: Refusal, scope: Scope) -> Response:
    """Return what a refused request is answered: ``{"error": {"code": …, "message": …}}``.

    Below ``/v1`` it is ``{"detail": …}``, which clients of Letta show.
    """
    run_id: str | None = getattr(refusal, "run_id", None)  # of a conversation that is busy
    return _error(scope, refusal.status, refusal.code, refusal.message, refusal.headers, run_id=run_id)


def _error(
    scope: Scope,
    status: int,
    code: str,
    message: str,
    headers: Mapping[str, str] | None = None,
    incident: str | None = None,
    run_id: str | None = None,
) -> Response:
    body: object = Refused(error=WhyRefused(code=code, message=message, incident=incident))
    if path_below(scope).startswith("/v1/"):
        body = {"detail": message} | ({} if run_id is None else {"run_id": run_id})
    return json_answer(body, status, headers)


# Requests


def caller_of(scope: Scope) -> str:
    """Return the caller, from the guard or the surrounding program; ``""``: callers are not checked."""
    caller: object = scope.get("state", {}).get("caller", "")
    if not isinstance(caller, str):
        raise TypeError(f"request.state.caller: it is a {type(caller).__name__}; it has to be a str")
    return caller


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request.

    Raises:
        RequestTooLarge: It is longer than the limit, whatever length it declares.
        RequestTooSlow: It does not arrive in time.
        ClientDisconnect: The client has disconnected.
    """
    body = Body(request.receive, most)
    body.check(request.headers.get("content-length"))
    return await body.whole()


async def read_json(request: Request, kind: type[X], most: int) -> X:
    """Return the body of a request, read as JSON.

    Args:
        request: The request.
        kind: Its type, a Struct.
        most: Maximum bytes.

    Raises:
        RequestMalformed: It is not JSON.
        RequestInvalid: It is not of that type.
        Refusal: As in `read_body`.
    """
    return decode_body(await read_body(request, most), kind)


def decode_body(body: bytes, kind: type[X]) -> X:
    """Decode the body of a request.

    Raises:
        RequestMalformed: It is not JSON.
        RequestInvalid: It is not of that type.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as exc:
        raise RequestInvalid(type_words(exc, kind)) from None
    except RecursionError:
        raise _too_deep("the body") from None
    except ValueError as exc:  # not JSON, or not UTF-8
        why = str(exc) if body else "it is empty"
        why = f"{why[:1].lower()}{why[1:]}".removeprefix("jSON is malformed: ")
        raise RequestMalformed(f"the body of the request is not JSON: {why}; send an object") from None


def read_query(request: Request, kind: type[X], *lists: str) -> X:
    """Return the parameters of a request's URL. Unknown ones are ignored, since caches add some.

    Args:
        request: The request.
        kind: Their type, a Struct.
        lists: Those that may occur several times.

    Raises:
        RequestInvalid: One is invalid.
    """
    given = request.query_params
    values: dict[str, object] = {**given, **{name: given.getlist(name) for name in lists if name in given}}
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as exc:
        raise RequestInvalid(type_words(exc, kind)) from None


def check_depth(**values: object) -> None:
    """Check the nesting of a caller's JSON.

    Raises:
        RequestInvalid: It is too deep.
    """
    for name, value in values.items():
        level = [value]
        for _ in range(DEPTH + 1):
            level = [inner for each in level for inner in _within(each)]
        if level:
            raise _too_deep(name)


def _within(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _too_deep(what: str) -> RequestInvalid:
    return RequestInvalid(f"{what}: it is nested too deep; give {DEPTH} levels at most")


# Routes


class Resource:
    """A route: an ASGI application with a function for each HTTP method.

    The function gets the request and returns an ASGI application, which answers. ``HEAD`` is answered like
    ``GET``, without the body.

    Args:
        methods: The functions, by method.
    """

    def __init__(self, **methods: Handler) -> None:
        self._methods = methods
        names = [*methods, "HEAD"] if "GET" in methods else [*methods]
        self.allowed = ", ".join(sorted(names))
        """The text of a 405."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        method = scope["method"]
        handler = self._methods.get("GET" if method == "HEAD" else method)
        if handler is None:
            raise HTTPException(405, f"use {self.allowed} here", {"Allow": self.allowed})
        answer = await handler(Request(scope, receive))
        await answer(scope, receive, send)


class Failures:
    """Answers refusals and internal errors. It is an ASGI middleware.

    Args:
        app: The application.
        is_ready: Returns whether it can serve requests.
    """

    def __init__(self, app: ASGIApp, *, is_ready: Callable[[], bool]) -> None:
        self._app = app
        self._is_ready = is_ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        outgoing = Fitted(scope, send)
        try:
            if not self._is_ready():
                raise _not_ready()
            await self._app(scope, receive, outgoing)
        except ClientDisconnect:  # the client has disconnected
            return
        except Exception as exc:
            if outgoing.begun:  # the server aborts the answer, and logs the error
                raise
            await self._answer(exc, scope)(scope, receive, outgoing)

    def _answer(self, error: Exception, scope: Scope) -> Response:
        match error:
            case Refusal():
                return refusal_answer(error, scope)
            case JournalError():
                logger.error("%s: runs cannot be kept or read: %s", _shown(scope), error)
                return refusal_answer(refusal_of(error), scope)
            case _:
                incident = secrets.token_hex(4)
                logger.error("%s failed, incident %s", _shown(scope), incident, exc_info=error)
                failed = ServerFailed()
                words = f"{failed.message}, under incident {incident}"
                return _error(scope, failed.status, failed.code, words, incident=incident)


def _not_ready() -> Refusal:
    logger.warning(
        "A request came while the RunServer is not open. Where its application is mounted in another one, "
        "say `async with server:` in the lifespan of that"
    )
    return ServerUnavailable("the server is starting or closing; try again")


class Fitted:
    """Sends an answer as its request can take it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._is_head = scope["method"] == "HEAD"
        self._has_connection = str(scope.get("http_version", "1.1")).startswith("1")
        self._send = send
        self.begun = False
        """Whether something was sent."""

    async def __call__(self, message: Message) -> None:
        """Send what comes next."""
        if message["type"] == "http.response.start":
            self.begun = True
            if not self._has_connection:  # the header does not exist (RFC 9113, section 8.2.2)
                headers = [pair for pair in message["headers"] if pair[0] != b"connection"]
                message = {**message, "headers": headers}
        elif self._is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)


async def http_exception(request: Request, error: Exception) -> Response:
    """Answer an exception of Starlette. It is one of its exception handlers."""
    assert isinstance(error, HTTPException)
    message = error.detail
    if error.status_code == 404 and message == "Not Found":
        message = "there is nothing at this path; GET /api/openapi.json lists what there is"
    code = CODES.get(error.status_code, "refused")
    return _error(request.scope, error.status_code, code, message, error.headers)


def path_below(scope: Scope) -> str:
    """Return the path of a request below where the application is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if path.startswith(f"{root}/") else path


def _shown(scope: Scope) -> str:
    """Return the request for the log, without its query, which may have secrets."""
    method, path = str(scope["method"])[:20], str(scope["path"])
    return f"{method} {path[:200]!r}"
