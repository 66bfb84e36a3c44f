"""The routes of Letta's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from thinkwell.web._http import Resource
from thinkwell.web.letta._conversing import Conversing
from thinkwell.web.letta._keeping import Keeping

if TYPE_CHECKING:
    from thinkwell.web._serving import RunServer


def routes(server: RunServer) -> list[Route]:
    """Return the routes of Letta's API, all below ``/v1``, with or without a slash at the end.

    Args:
        server: The server of the runs.
    """
    keeping, conversing = Keeping(server), Conversing(server)
    agent, conversation, run = "/agents/{agent}", "/conversations/{conversation}", "/runs/{run}"
    table = {
        "/health": Resource(GET=keeping.health),
        "/models": Resource(GET=keeping.models),
        "/models/embedding": Resource(GET=keeping.nothing),
        "/tools": Resource(GET=keeping.nothing),
        "/tools/add-base-tools": Resource(POST=keeping.nothing),
        "/agents": Resource(GET=keeping.agents, POST=keeping.make_agent),
        agent: Resource(GET=keeping.agent, PATCH=keeping.change_agent, DELETE=keeping.forget_agent),
        f"{agent}/messages": Resource(GET=conversing.messages_of_agent, POST=conversing.send_to_agent),
        f"{agent}/messages/stream": Resource(POST=conversing.stream_to_agent),
        f"{agent}/messages/async": Resource(POST=conversing.begin_at_agent),
        f"{agent}/messages/cancel": Resource(POST=conversing.cancel_agent),
        "/conversations": Resource(GET=keeping.conversations, POST=keeping.make_conversation),
        conversation: Resource(
            GET=keeping.conversation,
            PATCH=keeping.change_conversation,
            DELETE=keeping.forget_conversation,
        ),
        f"{conversation}/messages": Resource(
            GET=conversing.messages_of_conversation, POST=conversing.send_to_conversation
        ),
        f"{conversation}/stream": Resource(POST=conversing.resume_conversation),
        f"{conversation}/cancel": Resource(POST=conversing.cancel_conversation),
        "/runs": Resource(GET=conversing.runs),
        run: Resource(GET=conversing.run),
        f"{run}/stream": Resource(POST=conversing.resume_run),
        f"{run}/messages": Resource(GET=conversing.run_messages),
        f"{run}/usage": Resource(GET=conversing.run_usage),
    }
    found = [Route(f"/v1{path}{slash}", endpoint) for path, endpoint in table.items() for slash in ("", "/")]
    return [*found, Route("/v1/{rest:path}", Resource(GET=keeping.unknown, POST=keeping.unknown))]
