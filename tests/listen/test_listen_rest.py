"""What comes behind a result: the rest of the turn is heard, but not waited for without end."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel

from thinkwell.listen import AgentPartial, Handlers
from thinkwell.testing import ScriptedAgent, script, virtual_backend

pytestmark = pytest.mark.anyio

VIRTUAL = pytest.mark.parametrize(
    "anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")], ids=["asyncio", "trio"]
)


class Report(BaseModel):
    summary: str


DONE = script.returns({"summary": "Done"})


async def test_a_last_word_is_heard() -> None:
    handlers = Handlers()
    heard: list[str] = []

    @handlers.on("partial")
    async def listen(partial: AgentPartial) -> None:
        heard.append(partial.text)

    async with ScriptedAgent(DONE.says("That was all.")).open() as agent:
        with anyio.fail_after(5):
            report = await agent.think(Report).text("Go").listen(handlers)

    assert report.summary == "Done"
    assert "".join(heard) == "That was all."


@VIRTUAL
async def test_a_turn_that_goes_on_without_end_keeps_no_result_back() -> None:
    async with ScriptedAgent(DONE.hangs()).open() as agent:
        begun = anyio.current_time()

        report = await agent.think(Report).text("Go").listen(Handlers(), timeout=600)

        assert report.summary == "Done"
        assert 10 <= anyio.current_time() - begun < 11


@VIRTUAL
async def test_what_is_asked_behind_that_is_nobodys() -> None:
    handlers = Handlers()

    @handlers.on("approval")
    async def decide(approval: object) -> bool:
        raise AssertionError(approval)

    late = DONE.pauses(20).asks("Delete it", expect="reject_once")
    async with ScriptedAgent(late).open() as agent:
        stream = agent.think(Report).text("Go")
        assert (await stream.listen(handlers)).summary == "Done"
        await anyio.sleep(60)
