"""The endpoints for agents, conversations, and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkwell._version import VERSION
from thinkwell.web._http import caller_of, json_answer, read_query
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web.letta._bodies import CreateAgent, CreateConversation, UpdateAgent
from thinkwell.web.letta._endpoints import Endpoints
from thinkwell.web.letta._failures import NotKnown
from thinkwell.web.letta._history import first_waiting, running_in
from thinkwell.web.letta._lists import Page
from thinkwell.web.letta._store import CONTEXT_WINDOW, PROVIDER, agent_state, model_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from thinkwell.web.letta._store import KeptAgent, ListedAgent


class _AgentsQuery(Page, frozen=True, kw_only=True):
    name: str | None = None
    query_text: str | None = None
    tags: frozenset[str] = frozenset()
    match_all_tags: bool = False


class _ConversationsQuery(Page, frozen=True, kw_only=True):
    agent_id: str | None = None
    archive_status: str = "unarchived"
    summary_search: str | None = None


class Keeping(Endpoints):
    """What clients do with agents and conversations as such.

    Args:
        server: The server that stores them.
    """

    # The server

    async def health(self, request: Request) -> ASGIApp:
        """Answer that the server is running."""
        return json_answer({"status": "ok", "version": VERSION})

    async def models(self, request: Request) -> ASGIApp:
        """List the served agents as models: a client that creates an agent chooses one."""
        return json_answer(
            [
                {
                    "handle": model_of(name),
                    "model": name,
                    "name": name,
                    "display_name": served.title or name,
                    "context_window": CONTEXT_WINDOW,
                    "max_context_window": CONTEXT_WINDOW,
                    "model_endpoint_type": "openai",
                    "provider_type": "letta",  # the Python client only knows some names, here and above
                    "provider_name": PROVIDER,
                    "model_type": "llm",
                }
                for name, served in self._server.agents.items()
            ]
        )

    async def nothing(self, request: Request) -> ASGIApp:
        """List nothing: this does not exist here."""
        return json_answer([])

    async def unknown(self, request: Request) -> ASGIApp:
        """Refuse features of Letta that thinkwell lacks."""
        raise NotKnown("Not Found: this server knows agents, conversations, messages and runs of Letta's API")

    # Agents

    async def make_agent(self, request: Request) -> ASGIApp:
        """Create an agent."""
        kept = await self._store(request).make_agent(await self._body(request, CreateAgent))
        return json_answer(agent_state(kept))

    async def agents(self, request: Request) -> ASGIApp:
        """List agents."""
        query = read_query(request, _AgentsQuery, "tags")
        text = (query.query_text or "").casefold()

        def is_wanted(listed: ListedAgent) -> bool:
            found = query.tags.intersection(listed.tags)
            has_tags = found == query.tags if query.match_all_tags else found or not query.tags
            return bool(has_tags) and query.name in (None, listed.name) and text in listed.name.casefold()

        store = self._store(request)
        known = [listed for listed in await store.agents() if is_wanted(listed)]
        wanted = [await store.pick_agent(listed.id) for listed in query.of(known)]
        return json_answer([agent_state(kept) for kept in wanted if kept is not None])

    async def agent(self, request: Request) -> ASGIApp:
        """Return an agent, with the open questions of its default conversation."""
        kept = await self._agent(request)
        state = agent_state(kept)
        running = await running_in(self._server, caller=caller_of(request.scope), thread=kept.id)
        waiting = await first_waiting(self._server.journal, running)
        if waiting is not None:
            _, told = waiting
            asked = told.pending[0].message_id
            state["pending_approval"] = next(message for message in told.messages if message.id == asked)
        return json_answer(state)

    async def change_agent(self, request: Request) -> ASGIApp:
        """Change the data of an agent."""
        body = await self._body(request, UpdateAgent)
        changed = await self._store(request).change_agent(await self._agent(request), body)
        return json_answer(agent_state(changed))

    async def forget_agent(self, request: Request) -> ASGIApp:
        """Delete an agent, after stopping its runs."""
        kept, caller = await self._agent(request), caller_of(request.scope)
        for record in await running_in(self._server, caller=caller, agent=kept.id):
            await self._server.cancel(record.id, caller=caller)
        await self._store(request).forget_agent(kept.id)
        return json_answer({"message": f"Agent {kept.id} is deleted"})

    # Conversations

    async def make_conversation(self, request: Request) -> ASGIApp:
        """Create a conversation with an agent."""
        body = await self._body(request, CreateConversation)
        agent_id = request.query_params.get("agent_id")
        if agent_id is None:
            raise RequestInvalid("agent_id: name the agent in the query")
        return json_answer((await self._store(request).make_conversation(agent_id, body)).state)

    async def conversations(self, request: Request) -> ASGIApp:
        """List conversations."""
        query = read_query(request, _ConversationsQuery)
        text = (query.summary_search or "").casefold()
        known = [
            one
            for one in await self._store(request).conversations(query.agent_id)
            if (query.archive_status == "all" or one.archived == (query.archive_status == "archived"))
            and text in (one.summary or "").casefold()
        ]
        return json_answer([one.state for one in query.of(known)])

    async def conversation(self, request: Request) -> ASGIApp:
        """Return a conversation."""
        known = await self._store(request).conversation(request.path_params["conversation"])
        return json_answer(known.state)

    async def change_conversation(self, request: Request) -> ASGIApp:
        """Change the data of a conversation."""
        body, store = await self._body(request, CreateConversation), self._store(request)
        known = await store.conversation(request.path_params["conversation"])
        return json_answer((await store.change_conversation(known, body)).state)

    async def forget_conversation(self, request: Request) -> ASGIApp:
        """Delete a conversation, after stopping its run."""
        store, caller = self._store(request), caller_of(request.scope)
        known = await store.conversation(request.path_params["conversation"])
        for record in await running_in(self._server, caller=caller, thread=known.id):
            await self._server.cancel(record.id, caller=caller)
        await store.forget_conversation(known.id)
        return json_answer({"message": f"Conversation {known.id} is deleted"})

    # Common

    async def _agent(self, request: Request) -> KeptAgent:
        return await self._store(request).agent(request.path_params["agent"])
