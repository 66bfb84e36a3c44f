"""Real agents say how they are logged in, and send their requests to another model service when told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from interop.agents import CLAUDE_DIRECT, CODEX
from interop.live import TIMEOUT
from interop.model_server import ModelServer, Say
from thinkwell import open_agent

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(
    ("recipe", "kind", "path"),
    [(CLAUDE_DIRECT, "api_key", ""), (CODEX, "gateway", "/v1")],
    ids=["claude", "codex"],
)
async def test_another_model_service_gets_the_requests_of_the_next_session(
    recipe: AgentRecipe, kind: str, path: str, launch: Launch, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT), ModelServer() as other:
        async with open_agent(recipe.profile, command=launch.command, env=launch.env, cwd=project) as agent:
            async with agent.session():
                status = agent.auth_status()
                assert status is not None
                assert status.kind == kind
            (provider,) = await agent.providers()
            address = f"{other.url}{path}"
            await agent.use_provider(
                provider.id, api_type=provider.api_types[0], base_url=address, headers={"X-Team": "blue"}
            )
            assert [each.base_url for each in await agent.providers()] == [address]
            other.play(Say("The other one speaks."))
            assert "The other one speaks." in await agent.think().text("Who speaks?").run()
            assert other.requests
            await agent.logout()
