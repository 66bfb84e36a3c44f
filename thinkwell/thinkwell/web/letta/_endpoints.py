"""What the endpoints of Letta's API have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from thinkwell.web._http import caller_of, read_body
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web._wording import type_words
from thinkwell.web.letta._store import Store

if TYPE_CHECKING:
    from starlette.requests import Request

    from thinkwell.web._serving import RunServer

X = TypeVar("X", bound=Struct)


class Endpoints:
    """What is done for requests, each in the name of its caller.

    Args:
        server: Where the runs are.
    """

    def __init__(self, server: RunServer) -> None:
        self._server = server

    def _store(self, request: Request) -> Store:
        return Store(self._server, caller_of(request.scope))

    async def _body(self, request: Request, kind: type[X]) -> X:
        """Return the body of a request; an empty one has nothing but defaults.

        Args:
            request: The request.
            kind: What it has to be. What it has beside that is ignored: clients know more of Letta than is
                here.

        Raises:
            RequestInvalid: It is something else.
            Refusal: As by `read_body`.
        """
        body = await read_body(request, self._server.limits.max_request)
        try:
            return msgspec.json.decode(body or b"{}", type=kind)
        except msgspec.ValidationError as exc:
            raise RequestInvalid(type_words(exc, kind)) from None
        except (ValueError, RecursionError) as exc:  # no JSON, no UTF-8, nested too deep
            raise RequestInvalid(f"the body of the request cannot be read: {exc}") from None
