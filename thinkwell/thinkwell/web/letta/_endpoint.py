"""Requests to Letta's API: reading, dispatch, and refusals for Letta's clients."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request

from thinkwell.journal import JournalError
from thinkwell.web._http import read_body
from thinkwell.web._refusals import Refusal, RequestInvalid, refusal_of
from thinkwell.web._wording import type_words
from thinkwell.web.letta._failures import MethodUnknown, detail_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from starlette.types import ASGIApp, Receive, Scope, Send

    Handler: TypeAlias = Callable[[Request], Awaitable[ASGIApp]]

__all__ = ("Endpoint", "read_struct")

X = TypeVar("X", bound=Struct)

logger = logging.getLogger("thinkwell")


class Endpoint:
    """A route: an ASGI application with a function for each HTTP method.

    Args:
        methods: The functions, by method.
    """

    def __init__(self, **methods: Handler) -> None:
        self._methods = methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await (await self._answer(scope, receive))(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        handler = self._methods.get(method)
        try:
            if handler is None:
                raise MethodUnknown(", ".join(self._methods))
            return await handler(Request(scope, receive))
        except Refusal as exc:
            return detail_answer(exc)
        except JournalError as exc:
            logger.error("A request of a Letta client failed: runs cannot be kept or read: %s", exc)
            return detail_answer(refusal_of(exc))


async def read_struct(request: Request, kind: type[X], most: int) -> X:
    """Return the body of a request; an empty one has all defaults.

    Args:
        request: The request.
        kind: Its type. Other fields are ignored: clients send fields that only Letta has.
        most: Maximum bytes.

    Raises:
        RequestInvalid: It is not of that type.
        Refusal: As in `read_body`.
    """
    body = await read_body(request, most)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as exc:
        raise RequestInvalid(type_words(exc, kind)) from None
    except (ValueError, RecursionError) as exc:  # not JSON, not UTF-8, or nested too deeply
        raise RequestInvalid(f"the body of the request cannot be read: {exc}") from None
