"""A script that is played by a process."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from thinkwell import AgentExited, AgentReported, Message, Thought, ThoughtCancelled, open_agent
from thinkwell.testing import Script, ScriptedAgent, ScriptFailed, ScriptNotFinished, script
from thinkwell_acp import RpcError, stdio_transport
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell import Agent


@pytest.fixture(params=["asyncio", pytest.param("trio", marks=pytest.mark.long)])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The client's event loop: that of the process has nothing to do with it."""
    backend: str = request.param
    return backend


async def finish(agent: Agent) -> str:
    with anyio.fail_after(30):
        return await agent.think().text("go").run()


async def test_a_process_plays_it(tmp_path: Path) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    played = ScriptedAgent(
        script.expects("go").calls("add", {"a": 1, "b": 2}).asks("May I?").returns({"sum": 3}),
        before_session=script.thinks("early"),
        info=s.Implementation(name="mine", version="7"),
        fails_at={"session/close": RpcError(1, "no")},
    )
    command = played.program(tmp_path)
    assert played.program() == command
    async with open_agent(command=command) as agent:
        assert agent.info == s.Implementation(name="mine", version="7")
        stream = agent.think(dict[str, int]).text("go").tool(add).stream()
        assert [event.text async for event in stream if isinstance(event, Thought)] == ["early"]
        assert await stream.result == {"sum": 3}
    played.check()
    assert [prompt.text.splitlines()[0] for prompt in played.sent.prompts] == ["go"]
    assert played.sent.results[0].text == "3"
    assert [answer.choice for answer in played.sent.answers] == ["reject_once"]
    assert [tool.name for tool in played.sent.tools] == ["add", "return_result"]


@pytest.mark.long
async def test_a_process_that_crashes_and_another_that_goes_on(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("a").crashes(7).says("b"))
    command = played.program(tmp_path)
    async with open_agent(command=command) as agent:
        stream = agent.think().text("go").stream()
        assert [event.text async for event in stream if isinstance(event, Message)] == ["a"]
        with pytest.raises(AgentExited) as exited:
            await stream.result
    assert exited.value.exit_code == 7
    with pytest.raises(ScriptNotFinished, match=r"1 step was not played:\n  turn 2, step 1: says\('b'\)"):
        played.check()
    async with open_agent(command=command) as agent:
        assert await finish(agent) == "b"
    played.check()
    assert len(played.sent.all("initialize")) == 2


async def test_a_process_that_is_killed(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("a").hangs(deaf=True))
    command = played.program(tmp_path)
    async with stdio_transport(command) as transport, open_agent(transport=transport) as agent:
        stream = agent.think().text("go").stream()
        async for _ in stream:
            break
        os.kill(transport.pid, signal.SIGKILL)
        with pytest.raises(AgentExited) as exited:
            await stream.result
    assert exited.value.exit_code == -signal.SIGKILL
    assert played.sent.methods[-1] == "session/prompt"


async def test_a_process_that_hangs_up(tmp_path: Path) -> None:
    played = ScriptedAgent(script.hangs_up())
    async with open_agent(command=played.program(tmp_path)) as agent:
        with pytest.raises(AgentExited) as exited:
            await finish(agent)
    assert exited.value.exit_code == 0
    played.check()


@pytest.mark.long
async def test_a_flood_on_standard_error_and_noise(tmp_path: Path) -> None:
    played = ScriptedAgent(script.floods_stderr(3_000_001).sends("noise").says("a").hangs_up())
    async with open_agent(command=played.program(tmp_path)) as agent:
        with pytest.raises(AgentExited) as exited:
            await finish(agent)
    assert exited.value.stderr_tail.endswith(".\n.")


async def test_what_fails_in_a_process(tmp_path: Path) -> None:
    played = ScriptedAgent(script.expects("stop"))
    async with open_agent(command=played.program(tmp_path)) as agent:
        with pytest.raises(AgentReported, match="the prompt does not contain it"):
            await finish(agent)
    with pytest.raises(ScriptFailed, match=r"the script failed:\n  turn 1, step 1, expects\('stop'\)"):
        played.check()


@pytest.mark.long
async def test_two_processes_share_a_script(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("a").hangs().stops().says("b"))
    command = played.program(tmp_path)
    async with open_agent(command=command) as one, open_agent(command=command) as other:
        stream = one.think().text("go").stream()
        async for _ in stream:
            break
        assert await finish(other) == "b"
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
    played.check()
    assert len({prompt.session_id for prompt in played.sent.prompts}) == 2


async def test_a_saved_script_is_a_program_of_its_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    script.says("a").save(mine)
    mine.write_text(mine.read_text("utf-8"), "utf-8-sig")  # as some editors save it
    assert Script.load(mine) == script.says("a")
    for _ in range(2):
        command = (sys.executable, "-m", "thinkwell.testing", str(mine))
        async with open_agent(command=command) as agent:
            assert await finish(agent) == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    command = ScriptedAgent(script.says("Hello")).program(tmp_path / "a" / "b")
    assert Path(command[-2]).is_relative_to(tmp_path / "a" / "b")


async def test_a_program_needs_a_folder_and_a_script_that_has_not_begun(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("a"))
    with pytest.raises(ValueError, match="give a folder"):
        played.program()
    async with played.open() as agent:
        assert await finish(agent) == "a"
    with pytest.raises(ValueError, match="before the agent is opened in memory"):
        played.program(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_entry_that_was_not_finished_is_left_out(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("a").says("b"), complete=False)
    folder = Path(played.program(tmp_path)[-1])
    assert [left.step for left in played.unplayed] == [1, 2]
    with (folder / "played.ndjson").open("ab") as file:
        file.write(b'{"entry":"begun","turn":1,"step":1}\n{"entry":"beg')
    assert [left.step for left in played.unplayed] == [2]
