"""What goes wrong around runs that are served, and what a server is given that it cannot use."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted import ScriptedAgent, Turn, scripted
from web_stage import ADA, Client, served, started, watched

from thinkwell import PermissionPolicy, tool
from thinkwell.errors import AgentNotFound
from thinkwell.journal import JournalConflict, JournalError, MemoryJournal, RunRecord
from thinkwell.web import (
    ImagePart,
    RequestInvalid,
    RunEnded,
    RunNotFound,
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
    from thinkwell.journal import Entry, RunEnd

PNG = b"\x89PNG\r\n\x1a\n and more"


async def hello(turn: Turn) -> None:
    turn.say("Hello.")


def end_of(log: list[Any]) -> RunEnded:
    end = log[-1]
    assert isinstance(end, RunEnded)
    return end


def test_a_server_needs_an_agent() -> None:
    with pytest.raises(ValueError, match="give at least one"):
        RunServer({})
    with pytest.raises(ValueError, match="idle_after"):
        RunServer({"a": served_agent("builtin")}, idle_after=-1.0)


async def test_a_key_has_some_characters() -> None:
    async with served(hello) as stage:
        for key in ("", "k" * 201):
            with pytest.raises(RequestInvalid, match="1 to 200 characters"):
                await stage.server.start(StartRun(prompt="Go."), caller=ADA, key=key)


async def test_a_run_that_cannot_be_kept_is_not_started() -> None:
    class Unwritable(MemoryJournal):
        async def create(self, record: RunRecord) -> RunRecord:
            raise JournalError("the journal", "nobody may write to it")

    async with served(hello, journal=Unwritable()) as stage:
        with pytest.raises(JournalError, match="nobody may write"):
            await stage.start()
        assert "0 runs" in repr(stage.server)
        assert stage.handler is not None
        assert stage.handler.prompts == []


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
    handler = ScriptedAgent([use], capabilities=capabilities)

    def opened(permissions: object) -> AbstractAsyncContextManager[Agent]:
        return scripted(agent=handler)

    async with served(agents={"a": ServedAgent(open=opened)}) as stage:
        prompt = (TextPart(text="Look:"), ImagePart(data=PNG))
        run = await stage.server.start(StartRun(prompt=prompt), caller=ADA, tools=[lucky_number])
        assert end_of(await stage.ended(run.id)).result == "7"
    text, image, *_ = handler.prompts[0].prompt
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


async def test_cancelling_the_servers_task_ends_runs_in_good_order() -> None:
    async def wait(turn: Turn) -> None:
        turn.say("I begin.")
        await anyio.sleep_forever()

    journal = MemoryJournal()
    runs: list[RunRecord] = []
    with anyio.CancelScope() as scope:
        async with served(wait, journal=journal) as stage:
            runs.append(await stage.start())
            async with stage.server.watch(runs[0].id, caller=ADA) as watcher:
                while (batch := await watcher.next()) is not None and b"I begin." not in batch.sse:
                    pass
            scope.cancel()
            await anyio.sleep_forever()
    record = await journal.get(runs[0].id)
    assert record is not None
    assert record.status == "interrupted"
    assert b"I begin." in b"".join(entry.data for entry in await journal.read(runs[0].id))


async def test_a_run_that_somebody_else_has_ended_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Taken(MemoryJournal):
        async def orphans(self) -> list[RunRecord]:
            return [RunRecord(id="run-1", agent="a", created=0.0)]

        async def finish(self, run_id: str, end: Entry, status: RunEnd, at: float) -> None:
            raise JournalConflict("the journal", f"run {run_id} has ended")

    async with served(hello, journal=Taken()):
        pass
    assert "Run run-1 could not be ended" in caplog.text


async def test_a_request_that_no_http_could_say() -> None:
    async with served() as stage:
        requests: tuple[tuple[dict[str, Any], str], ...] = (
            ({"prompt": "\ud800"}, "prompt: it has lone surrogates"),
            ({"output": {"description": "x" * 50_000}}, "output: it is too long; give at most 50,000 bytes"),
            ({"output": nested(900)}, "output: it is nested too deep"),
        )
        for request, message in requests:
            with pytest.raises(RequestInvalid, match=message):
                await stage.start(**request)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


async def test_a_run_that_two_delete_at_once() -> None:
    class Gone(MemoryJournal):
        async def delete(self, run_id: str) -> bool:
            await super().delete(run_id)
            return await super().delete(run_id)

    async def hello(turn: Turn) -> None:
        turn.say("Hello.")

    async with served(hello, journal=Gone()) as stage:
        run = await stage.start()
        await stage.ended(run.id)
        with pytest.raises(RunNotFound):
            await stage.server.delete(run.id, caller=ADA)
