"""The red cells of further agents under the official SDK: each agent fails there in the same way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import acp  # noqa: TID251 - the peer to be tested against
import pytest
from acp import schema as a  # noqa: TID251 - the peer to be tested against

from interop.live import shell
from interop.model_server import CallTool, Fail, Hold, ModelServer, Say
from interop.more_agents import DEEPAGENTS, FAST_AGENT, HERMES, KIMI, OPENHANDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from acp.connection import StreamEvent  # noqa: TID251

    from interop.agents import AgentRecipe, Launch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.more_agents,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

PROGRAM = str(Path(__file__).with_name("programs") / "slow_server.py")

TIMEOUT = 180
"""Seconds for a whole test."""

PATIENCE = 15
"""Seconds after which what has not come does not come: the agents that do it need one."""

GRACE = 5
"""Seconds that an agent gets to leave."""


@dataclass(slots=True)
class Conversation:
    """A session under the official SDK, as its documentation has one, with all that is said on the wire."""

    connection: acp.client.ClientSideConnection
    id: str
    wire: list[dict[str, Any]]

    async def ask(self, text: str) -> a.PromptResponse:
        """Send a prompt and wait for the end of its turn."""
        ended = await self.connection.prompt(session_id=self.id, prompt=[acp.text_block(text)])
        assert isinstance(ended, a.PromptResponse)
        return ended

    @property
    def questions(self) -> list[dict[str, Any]]:
        """What the agent has asked leave for."""
        return [
            message["params"]["toolCall"]
            for message in self.wire
            if message.get("method") == "session/request_permission"
        ]

    @property
    def text(self) -> str:
        """What the agent has said, thoughts left out."""
        updates = [message["params"]["update"] for message in self.wire if _is_update(message)]
        chunks = [update for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
        return "".join(chunk["content"].get("text", "") for chunk in chunks)


def _is_update(message: dict[str, Any]) -> bool:
    return message.get("method") == "session/update"


@dataclass(slots=True)
class Refusing:
    """Takes updates, and allows nothing."""

    wire: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def on_connect(self, conn: object) -> None:
        """Called by the SDK."""

    def observe(self, event: StreamEvent) -> None:
        """Called by the SDK for each message, both ways."""
        self.wire.append(event.message)

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        """Called by the SDK; the wire has it."""

    async def request_permission(
        self, session_id: str, tool_call: object, options: list[a.PermissionOption], **_: object
    ) -> a.RequestPermissionResponse:
        """Called by the SDK."""
        refusals = [option.option_id for option in options if option.kind.startswith("reject")]
        if not refusals:
            return a.RequestPermissionResponse(outcome=a.DeniedOutcome(outcome="cancelled"))
        return a.RequestPermissionResponse(
            outcome=a.AllowedOutcome(outcome="selected", option_id=refusals[0])
        )


@asynccontextmanager
async def conversation(launch: Launch, project: Path, *servers: Any) -> AsyncGenerator[Conversation]:
    """Start an agent with the official SDK and open a session."""
    client = Refusing()
    program, *args = launch.command
    env = {**os.environ, **launch.env}
    options = {"limit": acp.core.DEFAULT_STDIO_BUFFER_LIMIT_BYTES, "shutdown_timeout": GRACE}
    async with (
        asyncio.timeout(TIMEOUT),
        acp.spawn_agent_process(
            client,  # type: ignore[arg-type]  # it serves what is asked for
            program,
            *args,
            env=env,
            cwd=project,
            transport_kwargs=options,
            observers=[client.observe],
        ) as (connection, _),
    ):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        opened = await connection.new_session(cwd=str(project), mcp_servers=[*servers])
        yield Conversation(connection, opened.session_id, client.wire)


def slow_server(called: Path) -> a.McpServerStdio:
    """Return the server whose tool `ponder` never answers."""
    return a.McpServerStdio(name="inventory", command=sys.executable, args=[PROGRAM, str(called)], env=[])


def for_agents(*recipes: AgentRecipe) -> pytest.MarkDecorator:
    """Run a test with each of these."""
    return pytest.mark.parametrize("recipe", recipes, ids=lambda recipe: recipe.name)


@for_agents(DEEPAGENTS, FAST_AGENT, HERMES)
async def test_permission_denied(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    async with conversation(launch, project) as session:
        models.play(shell(recipe, "touch marker"), Say("Done."))
        await session.ask("Run it.")
        assert not session.questions
    assert (project / "marker").exists()


@for_agents(HERMES)
async def test_cancel_in_mid_tool(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path, tmp_path: Path
) -> None:
    called = tmp_path / "called"
    async with conversation(launch, project, slow_server(called)) as session:
        models.play(CallTool("ponder"), Say("I have pondered."))
        turn = asyncio.create_task(session.ask("Ponder."))
        while not called.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.05)
        await session.connection.cancel(session_id=session.id)
        await asyncio.wait([turn], timeout=PATIENCE)
        models.skip()
        models.play(Say("Here again."))
        again = asyncio.create_task(session.ask("Are you there?"))
        await asyncio.wait([again], timeout=PATIENCE)
        assert "Here again." not in session.text
        again.cancel()
        turn.cancel()
        await asyncio.wait([turn, again])


@for_agents(KIMI)
@pytest.mark.parametrize("scenario", ["our tool called first", "cancel in mid tool"])
async def test_tools_without_their_server(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path, tmp_path: Path, scenario: str
) -> None:
    called = tmp_path / "called"
    async with conversation(launch, project, slow_server(called)) as session:
        models.play(CallTool("ponder"), Say("I have pondered."))
        await session.ask("Ponder.")
        (question,) = session.questions
    assert "ponder" in json.dumps(question)
    assert "inventory" not in json.dumps(question)
    assert not called.exists()


@for_agents(KIMI)
async def test_model_error(recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path) -> None:
    async with conversation(launch, project) as session:
        models.play(*[Fail(400, "The model is on strike.")] * 4)
        ended = await session.ask("How many?")
        assert ended.stop_reason == "end_turn"
        assert "strike" not in json.dumps(session.wire)


@for_agents(OPENHANDS)
async def test_cancel_in_mid_text(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    async with conversation(launch, project) as session:
        hold = Hold()
        models.play(Say("This takes long."), hold, Say("Said late."))
        turn = asyncio.create_task(session.ask("Go."))
        await asyncio.to_thread(hold.reached.wait, TIMEOUT)
        await session.connection.cancel(session_id=session.id)
        await asyncio.wait([turn], timeout=PATIENCE)
        assert not turn.done()
        hold.release()
        await turn
