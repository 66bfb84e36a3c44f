"""Stores agents and conversations in Letta's sense.

A Letta agent is a conversation with one of the served agents. It is stored in the journal beside the runs, so
that it exists after a restart of the server.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell.web._http import check_depth
from thinkwell.web._refusals import RequestInvalid
from thinkwell.web.letta._bodies import read_chosen
from thinkwell.web.letta._failures import BadRequest, NotKnown
from thinkwell.web.letta._mapping import date_of
from thinkwell.web.letta._segments import LastAnswer

if TYPE_CHECKING:
    from collections.abc import Collection

    from thinkwell.web._serving import RunServer
    from thinkwell.web.letta._bodies import Chosen, CreateAgent, CreateConversation, UpdateAgent

X = TypeVar("X", bound=Struct)

MOST_AGENTS: Final = 1000
"""Most agents of a caller, and most conversations."""

CONTEXT_WINDOW: Final = 200_000
"""The reported size of the model's context, in tokens: it is unknown before the first run."""

PROVIDER: Final = "thinkwell"
"""The prefix of an agent's name as a model."""

AGENT_TYPE: Final = "letta_v1_agent"

_AGENT_TYPES: Final = frozenset(
    {
        "memgpt_agent",
        "memgpt_v2_agent",
        AGENT_TYPE,
        "react_agent",
        "workflow_agent",
        "split_thread_agent",
        "sleeptime_agent",
        "voice_convo_agent",
        "voice_sleeptime_agent",
    }
)
"""The types of agents in Letta (Letta API, ``AgentType``). They make no difference here."""


class Conversation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation with an agent besides its default one."""

    id: str
    agent_id: str
    created: float
    summary: str | None = None
    description: str | None = None
    archived: bool = False

    @property
    def state(self) -> dict[str, object]:
        """The conversation for clients."""
        return {
            "id": self.id,
            "agent_id": self.agent_id,
            "created_at": date_of(self.created),
            "summary": self.summary,
            "description": self.description,
            "archived": self.archived,
            "in_context_message_ids": [],
        }


class KeptAgent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent in Letta's sense."""

    id: str
    name: str
    created: float
    agent: str
    """The name of the served agent."""
    folder: str | None = None
    permissions: str | None = None
    agent_type: str = AGENT_TYPE
    system: str = ""
    """Stored for the client. A served agent has its own instructions."""
    description: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = {}
    blocks: tuple[dict[str, JsonValue], ...] = ()
    """Stored for the client, like `system`."""


class ListedAgent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entry of an agent in the list. The agent itself may be long, and is read separately."""

    id: str
    name: str
    created: float
    tags: tuple[str, ...] = ()


def model_of(agent: str) -> str:
    """Return the client's name for the model of a served agent."""
    return f"{PROVIDER}/{agent}"


def agent_state(kept: KeptAgent) -> dict[str, object]:
    """Return an agent for clients (Letta API, ``AgentState``)."""
    blocks = list(kept.blocks)
    return {
        "id": kept.id,
        "name": kept.name,
        "agent_type": kept.agent_type,
        "model": model_of(kept.agent),
        "llm_config": {
            "model": kept.agent,
            "handle": model_of(kept.agent),
            "model_endpoint_type": "openai",  # the Python client only knows some names
            "context_window": CONTEXT_WINDOW,
        },
        "system": kept.system,
        "description": kept.description,
        "tags": list(kept.tags),
        "metadata": kept.metadata,
        "created_at": date_of(kept.created),
        "blocks": blocks,
        "memory": {"blocks": blocks},
        "sources": [],
        "tools": [],
        "message_ids": [],
    }


_KINDS: Final[dict[type[Struct], str]] = {
    ListedAgent: "letta_agent_listed",
    KeptAgent: "letta_agent",
    Conversation: "letta_conversation",
    LastAnswer: "letta_answer",
}
"""The names of what is stored."""


class Store:
    """The agents and conversations of one caller.

    Args:
        server: The server that stores them.
        caller: The caller.
    """

    def __init__(self, server: RunServer, caller: str) -> None:
        self.caller = caller
        self._server = server
        self._journal = server.journal
        # Each caller has its own names, so that callers cannot find each other's agents.
        owner = hashlib.sha256(caller.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._names = {kind: f"{name}:{owner}" for kind, name in _KINDS.items()}

    # Agents

    async def agents(self) -> list[ListedAgent]:
        """Return the list of agents, oldest first."""
        return sorted(await self._all(ListedAgent), key=lambda listed: listed.created)

    async def agent(self, agent_id: str) -> KeptAgent:
        """Return an agent.

        Raises:
            NotKnown: There is no such agent.
        """
        kept = await self.pick_agent(agent_id)
        if kept is None:
            raise NotKnown("Agent not found; POST /v1/agents/ makes one")
        return kept

    async def pick_agent(self, agent_id: str) -> KeptAgent | None:
        """Return an agent; ``None``: there is no such agent."""
        return await self._pick(KeptAgent, agent_id)

    async def make_agent(self, body: CreateAgent) -> KeptAgent:
        """Create an agent.

        Raises:
            RequestInvalid: The operator does not offer this, or it is invalid.
            BadRequest: There are too many.
        """
        await self._check_room(ListedAgent)
        if body.agent_type not in (None, *_AGENT_TYPES):
            raise RequestInvalid(f"agent_type: there is no {body.agent_type!r:.100}")
        check_depth(metadata=body.metadata, memory_blocks=body.memory_blocks)
        agent_id = f"agent-{uuid4()}"
        chosen = read_chosen(body.metadata)
        agent = self._agent(chosen, body)
        served = self._server.agents[agent]
        kept = KeptAgent(
            id=agent_id,
            name=body.name or agent_id,
            created=time.time(),
            agent=agent,
            folder=_known("folder", chosen.folder, served.folders),
            permissions=_known("permissions", chosen.permissions, served.permissions),
            agent_type=body.agent_type or AGENT_TYPE,
            system=body.system or "",
            description=body.description,
            tags=tuple(body.tags or ()),
            metadata=body.metadata or {},
            blocks=tuple(map(_block, body.memory_blocks or ())),
        )
        await self._keep_agent(kept)
        return kept

    async def change_agent(self, kept: KeptAgent, body: UpdateAgent) -> KeptAgent:
        """Change the data of an agent, except for the served agent behind it."""
        check_depth(metadata=body.metadata)
        changed = replace(
            kept,
            name=body.name or kept.name,
            system=kept.system if body.system is None else body.system,
            description=kept.description if body.description is None else body.description,
            tags=kept.tags if body.tags is None else tuple(body.tags),
            metadata=kept.metadata if body.metadata is None else body.metadata,
        )
        await self._keep_agent(changed)
        return changed

    async def forget_agent(self, agent_id: str) -> None:
        """Delete an agent, and its conversations. Its runs stay until they are too old."""
        for conversation in await self.conversations(agent_id):
            await self.forget_conversation(conversation.id)
        # The list first: an agent that is listed and missing could not be deleted after an interruption.
        for kind in (LastAnswer, ListedAgent, KeptAgent):
            await self._put(kind, agent_id, None)

    async def _keep_agent(self, kept: KeptAgent) -> None:
        await self._put(KeptAgent, kept.id, kept)
        listed = ListedAgent(id=kept.id, name=kept.name, created=kept.created, tags=kept.tags)
        await self._put(ListedAgent, kept.id, listed)

    def _agent(self, chosen: Chosen, body: CreateAgent) -> str:
        """Return the chosen agent: by metadata, else by the model or the name, else the first."""
        agents = self._server.agents
        named = _known("agent", chosen.agent, agents)
        for name in (named, body.model, (body.model or "").rpartition("/")[2], body.name):
            if name in agents:
                return str(name)
        return next(iter(agents))

    # Conversations

    async def conversations(self, agent_id: str | None = None) -> list[Conversation]:
        """Return conversations, oldest first: those with an agent, or all."""
        known = [one for one in await self._all(Conversation) if agent_id in (None, one.agent_id)]
        return sorted(known, key=lambda one: one.created)

    async def conversation(self, conversation_id: str) -> Conversation:
        """Return a conversation.

        Raises:
            NotKnown: There is no such conversation.
        """
        known = await self._pick(Conversation, conversation_id)
        if known is None:
            raise NotKnown("Conversation not found; POST /v1/conversations/?agent_id=… makes one")
        return known

    async def make_conversation(self, agent_id: str, body: CreateConversation) -> Conversation:
        """Create a conversation.

        Raises:
            NotKnown: There is no such agent.
            BadRequest: There are too many.
        """
        await self.agent(agent_id)
        await self._check_room(Conversation)
        made = Conversation(
            id=f"conv-{uuid4()}",
            agent_id=agent_id,
            created=time.time(),
            summary=body.summary,
            description=body.description,
        )
        await self._put(Conversation, made.id, made)
        return made

    async def change_conversation(self, known: Conversation, body: CreateConversation) -> Conversation:
        """Change the data of a conversation."""
        said = {name: value for name, value in asdict(body).items() if value is not None}
        changed = replace(known, **said)
        await self._put(Conversation, changed.id, changed)
        return changed

    async def forget_conversation(self, conversation_id: str) -> None:
        """Delete a conversation. Its runs stay until they are too old."""
        for kind in (LastAnswer, Conversation):
            await self._put(kind, conversation_id, None)

    # The last decision of each conversation, to recognise a repeated one

    async def keep_answer(self, thread: str, answer: LastAnswer | None) -> None:
        """Store the last decision in a conversation, or delete it."""
        await self._put(LastAnswer, thread, answer)

    async def last_answer(self, thread: str) -> LastAnswer | None:
        """Return the last decision in a conversation."""
        return await self._pick(LastAnswer, thread)

    # Pieces

    async def _all(self, kind: type[X]) -> list[X]:
        pieces = await self._journal.pick_all(self._names[kind])
        return [msgspec.json.decode(data, type=kind) for _, data in pieces]

    async def _pick(self, kind: type[X], id_: str) -> X | None:
        data = await self._journal.pick(self._names[kind], id_)
        return None if data is None else msgspec.json.decode(data, type=kind)

    async def _put(self, kind: type[Struct], id_: str, piece: Struct | None) -> None:
        data = None if piece is None else msgspec.json.encode(piece)
        await self._journal.put(self._names[kind], id_, data)

    async def _check_room(self, kind: type[Struct]) -> None:
        if len(await self._journal.pick_all(self._names[kind])) >= MOST_AGENTS:
            raise BadRequest(f"there are {MOST_AGENTS:,} of them, and no more may be; delete some")


def _known(what: str, name: str | None, known: Collection[str]) -> str | None:
    """Return a chosen name; ``None``: there is none.

    Raises:
        RequestInvalid: The name is unknown.
    """
    if name is not None and name not in known:
        choices = f"choose one of {', '.join(known)}" if known else "there is none to choose"
        raise RequestInvalid(f"metadata.thinkwell.{what}: there is no {name[:100]!r}; {choices}")
    return name


def _block(given: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a block of an agent's memory for clients."""
    label: JsonValue = given.get("label")
    value: JsonValue = given.get("value")
    if not (isinstance(label, str) and isinstance(value, str)):
        raise RequestInvalid("memory_blocks: each has a label and a value, which are texts")
    description: JsonValue = given.get("description")
    return {
        "id": f"block-{uuid4()}",
        "label": label,
        "value": value,
        "description": description if isinstance(description, str) else None,
    }
