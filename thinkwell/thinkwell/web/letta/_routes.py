"""The routes of Letta's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from thinkwell.web.letta._conversing import Conversing
from thinkwell.web.letta._endpoint import Endpoint
from thinkwell.web.letta._keeping import Keeping

if TYPE_CHECKING:
    from thinkwell.web._serving import RunServer

__all__ = ("routes",)


def routes(server: RunServer) -> list[Route]:
    """Return the routes of Letta's API, all below ``/v1``, with or without a slash at the end.

    Args:
        server: The server of the runs.
    """
    keeping, conversing = Keeping(server), Conversing(server)
    agent, conversation, run = "/agents/{agent}", "/conversations/{conversation}", "/runs/{run}"
    table = {
        "/health": Endpoint(GET=keeping.health),
        "/models": Endpoint(GET=keeping.models),
        "/models/embedding": Endpoint(GET=keeping.nothing),
        "/tools": Endpoint(GET=keeping.nothing),
        "/tools/add-base-tools": Endpoint(POST=keeping.nothing),
        "/agents": Endpoint(GET=keeping.agents, POST=keeping.make_agent),
        agent: Endpoint(GET=keeping.agent, PATCH=keeping.change_agent, DELETE=keeping.forget_agent),
        f"{agent}/messages": Endpoint(GET=conversing.messages_of_agent, POST=conversing.send_to_agent),
        f"{agent}/messages/stream": Endpoint(POST=conversing.stream_to_agent),
        f"{agent}/messages/async": Endpoint(POST=conversing.begin_at_agent),
        f"{agent}/messages/cancel": Endpoint(POST=conversing.cancel_agent),
        "/conversations": Endpoint(GET=keeping.conversations, POST=keeping.make_conversation),
        conversation: Endpoint(
            GET=keeping.conversation,
            PATCH=keeping.change_conversation,
            DELETE=keeping.forget_conversation,
        ),
        f"{conversation}/messages": Endpoint(
            GET=conversing.messages_of_conversation, POST=conversing.send_to_conversation
        ),
        f"{conversation}/stream": Endpoint(POST=conversing.resume_conversation),
        f"{conversation}/cancel": Endpoint(POST=conversing.cancel_conversation),
        "/runs": Endpoint(GET=conversing.runs),
        run: Endpoint(GET=conversing.run),
        f"{run}/stream": Endpoint(POST=conversing.resume_run),
        f"{run}/messages": Endpoint(GET=conversing.run_messages),
        f"{run}/usage": Endpoint(GET=conversing.run_usage),
    }
    found = [Route(f"/v1{path}{slash}", endpoint) for path, endpoint in table.items() for slash in ("", "/")]
    return [*found, Route("/v1/{rest:path}", Endpoint(GET=keeping.unknown, POST=keeping.unknown))]
