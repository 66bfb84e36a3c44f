"""Requests to Letta's API: read, handed to who answers them, and refused in the words of Letta's clients."""

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

X = TypeVar("X", bound=Struct)

logger = logging.getLogger("thinkwell")


class Endpoint:
    """What is at a path: an ASGI application that has a function for each method of HTTP.

    Args:
        methods: The functions, by the names of their methods.
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
    """Return the body of a request; an empty one has nothing but defaults.

    Args:
        request: The request.
        kind: What it has to be. What it has beside that is ignored: clients know more of Letta than is here.
        most: How many bytes it may have.

    Raises:
        RequestInvalid: It is something else.
        Refusal: As by `read_body`.
    """
    body = await read_body(request, most)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as exc:
        raise RequestInvalid(type_words(exc, kind)) from None
    except (ValueError, RecursionError) as exc:  # no JSON, no UTF-8, nested too deep
        raise RequestInvalid(f"the body of the request cannot be read: {exc}") from None
