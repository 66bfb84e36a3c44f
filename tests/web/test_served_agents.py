"""Agents that a server offers: in folders, with permissions, with what callers send them."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest
from scripted import Played, Turn, scripted
from web_stage import ADA, Client, LogEntry, end_of, hello, served, started, watched

from thinkwell import PermissionPolicy, RunView, ViewReducer, tool
from thinkwell.errors import AgentNotFound
from thinkwell.testing import ScriptedAgent, script
from thinkwell.web import (
    ImagePart,
    RequestInvalid,
    RunEnded,
    RunServer,
    ServedAgent,
    StartRun,
    TextPart,
    served_agent,
    web_app,
)
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from thinkwell import Agent

PNG = b"\x89PNG\r\n\x1a\n and more"


def test_a_server_needs_an_agent() -> None:
    with pytest.raises(ValueError, match="give at least one"):
        RunServer({})
    with pytest.raises(ValueError, match="idle_after"):
        RunServer({"a": served_agent("builtin")}, idle_after=-1.0)


async def test_images_and_tools_reach_the_agent() -> None:
    @tool
    def lucky_number() -> int:
        """Return a number."""
        return 7

    async def use(turn: Turn) -> None:
        result = await turn.call("lucky_number", {})
        turn.say(result["content"][0]["text"])

    capabilities = s.AgentCapabilities(
        mcp_capabilities=s.McpCapabilities(acp=True), prompt_capabilities=s.PromptCapabilities(image=True)
    )
    handler = Played([use], capabilities=capabilities)

    def opened(permissions: object) -> AbstractAsyncContextManager[Agent]:
        return scripted(agent=handler)

    async with served(agents={"a": ServedAgent(open=opened)}) as stage:
        prompt = (TextPart(text="Look:"), ImagePart(data=PNG))
        run = await stage.server.start(StartRun(prompt=prompt), caller=ADA, tools=[lucky_number])
        assert end_of(await stage.ended(run.id)).result == "7"
    text, image, *_ = handler.requests("session/prompt")[0].prompt
    assert isinstance(text, s.TextContent)
    assert text.text.startswith("Look:")
    assert isinstance(image, s.ImageContent)


async def test_an_image_alone_is_a_prompt_that_not_every_agent_takes() -> None:
    async with served(hello) as stage:
        run = await stage.server.start(StartRun(prompt=(ImagePart(data=PNG),)), caller=ADA)
        assert run.title == "(an image)"
        end = end_of(await stage.ended(run.id))
        assert end.error is not None
        assert end.error.name == "CapabilityMissing"


async def test_the_built_in_agent_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Two lines\nof text.\n")
    agent = served_agent(
        "builtin", title="Built in", folders={"notes": tmp_path}, permissions={"deny": "deny"}
    )
    assert agent.folders == {"notes": tmp_path.resolve()}
    async with RunServer({"builtin": agent}) as server:
        run = await started(server, "What is in notes.txt?", folder="notes", permissions="deny", caller="")
        log = await watched(server, run.id, caller="")
        assert end_of(log).status == "completed"
        shown = (await (await Client(web_app(server)).get(f"/api/runs/{run.id}")).json())["view"]
        assert shown["cwd"] == str(tmp_path.resolve())
        assert shown["error"] is None
        assert isinstance(shown["tools"], dict)


async def test_callers_choose_a_model_for_a_run_and_for_a_turn_of_a_conversation() -> None:
    played = ScriptedAgent(script.says("Hi."), repeats=True, models=("swift", "large"))

    def opened(permissions: object) -> AbstractAsyncContextManager[Agent]:
        return played.open()

    agent = ServedAgent(open=opened, models=("large", "swift"))
    async with served(agents={"a": agent}) as stage:

        async def model_of(**request: str) -> str | None:
            run = await stage.start(**request)
            return view_of(await stage.ended(run.id)).model

        assert await model_of() == "large"
        assert await model_of(model="swift") == "swift"
        assert [await model_of(thread="t", **choice) for choice in ({"model": "swift"}, {})] == [
            "swift",
            "large",
        ]
        with pytest.raises(RequestInvalid, match="model: there is no 'huge'; choose one of large, swift"):
            await stage.start(model="huge")


def view_of(log: list[LogEntry]) -> RunView:
    """Return a run as it stands at its end."""
    reducer = ViewReducer()
    reducer.apply([entry for entry in log if not isinstance(entry, RunEnded)])
    return reducer.snapshot()


def test_an_agent_has_the_title_that_people_know() -> None:
    assert served_agent("claude").title == "Claude Code"
    assert served_agent("claude", title="The reviewer").title == "The reviewer"
    assert served_agent(command=["/opt/bin/helper", "--acp"]).title == "helper"
    with pytest.raises(AgentNotFound, match="helpr"):
        served_agent("helpr")


def test_what_an_operator_offers_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="there is no folder"):
        served_agent("builtin", folders={"gone": tmp_path / "gone"})
    with pytest.raises(ValueError, match="at least one of each"):
        served_agent("builtin", folders={})
    with pytest.raises(ValueError, match="at least one of each"):
        served_agent("builtin", permissions={})
    policy = PermissionPolicy(otherwise="deny")
    assert served_agent("builtin", permissions={"strict": policy}).permissions == {"strict": policy}


@pytest.mark.parametrize(
    ("code", "name"),
    [("raise SystemExit(3)", "AgentStartFailed"), ("print('/home/ada/key')", "AgentStartFailed")],
)
async def test_an_agent_that_does_not_start(code: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    agent = served_agent(command=[sys.executable, "-c", code])
    async with RunServer({"broken": agent}) as server:
        with caplog.at_level(logging.WARNING, "thinkwell"):
            for _ in range(2):  # it is tried again for the next one
                run = await started(server)
                end = end_of(await watched(server, run.id))
                assert end.error is not None
                assert end.error.name == name
                assert "/home/ada" not in end.error.message
                assert sys.executable not in end.error.message
