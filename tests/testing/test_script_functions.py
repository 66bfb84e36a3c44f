"""What no step of a script can say: functions of the user's, in a turn and for other requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from thinkwell import AgentReported, CapabilityMissing, ThoughtCancelled, open_agent
from thinkwell.events import Message
from thinkwell.testing import Script, ScriptedAgent, ScriptedTurn, ScriptFailed, ScriptNotFinished, script
from thinkwell_acp import RpcError, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


def message(text: str) -> s.AgentMessageChunk:
    return s.AgentMessageChunk(content=s.TextContent(text=text))


async def echo(turn: ScriptedTurn) -> None:
    turn.update(message(turn.text.upper()))


async def test_a_function_is_a_step_among_others() -> None:
    sessions: list[str] = []

    async def look(turn: ScriptedTurn) -> None:
        sessions.append(turn.session_id)
        assert turn.request.meta == {"key": 1}

    played = ScriptedAgent(script.says("<").does(look).does(echo).says(">"))
    async with played.open() as agent, agent.session() as session:
        assert await session.think().text("go").meta({"key": 1}).run() == "<GO>"
        assert sessions == [session.id]


async def test_a_function_calls_the_clients_tools() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async def call(turn: ScriptedTurn) -> None:
        assert {tool.name for tool in turn.tools} >= {"add", "return_result"}
        assert turn.tools[0].schema["type"] == "object"
        sum_ = await turn.call("add", {"a": 1, "b": 2})
        assert (sum_.tool, sum_.arguments, sum_.is_error) == ("add", {"a": 1, "b": 2}, False)
        wrong = await turn.call("add")
        assert wrong.is_error
        await turn.call("return_result", {"result": int(sum_.text)})

    async with ScriptedAgent(script.does(call)).open() as agent:
        assert await agent.think(int).text("1 + 2?").tool(add).run() == 3


async def test_a_function_has_the_connection() -> None:
    async def ask(turn: ScriptedTurn) -> None:
        with pytest.raises(RpcError):
            await turn.client.read_text_file(s.ReadTextFileRequest(session_id=turn.session_id, path="/none"))
        turn.update(message("lost"), session_id="another")

    async with ScriptedAgent(script.does(ask)).open() as agent:
        assert await agent.think().text("go").run() == ""


async def test_a_function_may_end_the_turn() -> None:
    async def refuse(turn: ScriptedTurn) -> str:
        return "refusal"

    async def fail(turn: ScriptedTurn) -> None:
        raise RpcError(-32050, "busy")

    played = ScriptedAgent(script.does(refuse).stops().does(fail), complete=False)
    async with played.open() as agent:
        stream = agent.think().text("go").stream()
        await stream.wait()
        assert stream.view.stop_reason == "refusal"
        with pytest.raises(AgentReported, match="busy"):
            await agent.think().text("go").run()
    assert played.failures == ()
    assert [unplayed.step for unplayed in played.unplayed] == [2]


async def fails(played: ScriptedAgent, reason: str) -> None:
    """Prompt an agent whose script fails, which both sides are told."""
    async with played.connect() as transport, open_agent("scripted", transport=transport) as agent:
        with pytest.raises(AgentReported, match=reason):
            await agent.think().text("go").run()
    with pytest.raises(ScriptFailed, match=reason):
        played.check()


async def test_what_else_a_function_raises_fails_the_script() -> None:
    async def check(turn: ScriptedTurn) -> None:
        assert turn.text == "come", "another prompt"

    async def call(turn: ScriptedTurn) -> None:
        await turn.call("nothing")

    functions: tuple[tuple[Callable[[ScriptedTurn], Awaitable[None]], str], ...] = (
        (check, r"turn 1, step 1, does\(.*check\): AssertionError: another prompt"),
        (call, "the client offers no tool 'nothing'"),
    )
    for function, reason in functions:
        played = ScriptedAgent(script.does(function))
        await fails(played, reason)


async def test_a_cancelled_turn_cancels_the_function() -> None:
    ended: list[str] = []

    async def hang(turn: ScriptedTurn) -> None:
        turn.update(message("x"))
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(turn.session_id)

    async with ScriptedAgent(script.does(hang)).open() as agent:
        stream = agent.think().text("go").stream()
        async for _ in stream:
            stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        assert stream.view.stop_reason == "cancelled"
    assert len(ended) == 1


@pytest.mark.parametrize("function", [5, None, "echo"])
def test_what_cannot_be_called_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=r"^does\(.*give an async function"):
        script.does(function)
    with pytest.raises(TypeError, match=r"^answers=.*give an async function"):
        ScriptedAgent(script, answers={"session/new": function})


async def test_a_function_stays_in_its_program(tmp_path: Path) -> None:
    told = script.says("x").does(echo)
    with pytest.raises(ValueError, match=r"^save\(\): does\(echo\) is a function of this program"):
        told.save(tmp_path / "script.json")
    with pytest.raises(ValueError, match=r"^program\(\): does\(echo\) is a function of this program"):
        ScriptedAgent(told).program(tmp_path)
    with pytest.raises(ValueError, match=r"^program\(\): answers="):
        ScriptedAgent(script, answers={"session/new": answer}).program(tmp_path)
    with pytest.raises(ValueError, match=r"before_session: does\(echo\) needs a turn"):
        ScriptedAgent(script, before_session=told)
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "script.json"
    path.write_text('{"steps": [{"step": "does", "function": "echo"}]}')
    with pytest.raises(ValueError, match="function"):
        Script.load(path)


async def answer(request: s.NewSessionRequest, proceed: Callable[[Any], Awaitable[Any]]) -> object:
    response = await proceed(request)
    assert isinstance(response, s.NewSessionResponse)
    return s.NewSessionResponse(session_id=f"my-{response.session_id}")


async def test_a_function_answers_a_request() -> None:
    folders: list[str] = []

    async def list_sessions(request: s.ListSessionsRequest, _: object) -> s.ListSessionsResponse:
        folders.append(request.cwd or "")
        return s.ListSessionsResponse(sessions=(s.SessionInfo(session_id="old", cwd="/p"),))

    async def refuse(_: object, __: object) -> None:
        raise RpcError(-32050, "busy")

    capabilities = s.AgentCapabilities(
        session_capabilities=s.SessionCapabilities(list=s.SessionListCapabilities())
    )
    played = ScriptedAgent(
        script,
        capabilities=capabilities,
        answers={"session/list": list_sessions, "session/new": refuse},
    )
    async with played.open() as agent:
        assert [one.id for one in await agent.list_sessions("/p")] == ["old"]
        with pytest.raises(AgentReported, match="busy"):
            await agent.think().text("go").run()
    assert folders == ["/p"]


async def test_a_function_may_leave_the_answer_to_the_agent() -> None:
    played = ScriptedAgent(script, answers={"session/new": answer})
    async with played.open() as agent, agent.session() as session:
        assert session.id == "my-session-1"
    with pytest.raises(ValueError, match=r"^answers=\{'session/odd': …\}: the methods are"):
        ScriptedAgent(script, answers={"session/odd": answer})


async def test_the_last_turn_is_played_again() -> None:
    played = ScriptedAgent(script.says("first").stops().does(echo), repeats=True)
    async with played.open() as agent:
        said = [await agent.think().text(text).run() for text in "abc"]
    assert said == ["first", "B", "C"]
    await fails(ScriptedAgent(script, repeats=True), "0 turns")
    with pytest.raises(ScriptNotFinished):
        ScriptedAgent(script.does(echo), repeats=True).check()


@pytest.mark.long
async def test_a_process_repeats_its_last_turn_too(tmp_path: Path) -> None:
    played = ScriptedAgent(script.says("again"), repeats=True, folder=tmp_path)
    async with open_agent(command=played.program()) as agent:
        assert [await agent.think().text("go").run() for _ in range(2)] == ["again"] * 2


# Beside the turns


async def test_an_agent_plays_on_any_transport_and_acts_between_its_turns() -> None:
    played = ScriptedAgent(script.says("In time."))
    ours, theirs = memory_transport_pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(played.serve, theirs)
        async with open_agent("mine", transport=ours) as agent, agent.session() as session:
            assert await session.think().text("go").run() == "In time."
            played.client.update(session.id, message("Later."))
            event = await anext(session.events())
            assert isinstance(event, Message)
            assert event.text == "Later."
    played.check()


async def test_a_function_reaches_the_tools_by_messages_of_mcp() -> None:
    async def look(turn: ScriptedTurn) -> None:
        (connection_id,) = turn.mcp_connections
        request = s.MessageMcpRequest(connection_id=connection_id, method="tools/list")
        (tool,) = (await turn.client.message_mcp(request))["tools"]
        turn.update(message(tool["name"]))

    async with ScriptedAgent(script.does(look)).open() as agent, agent.session() as session:
        assert await session.think().text("Which?").run() == "return_result"


CLOSES_AND_FORKS = s.AgentCapabilities(
    mcp_capabilities=s.McpCapabilities(acp=True),
    session_capabilities=s.SessionCapabilities(
        close=s.SessionCloseCapabilities(), fork=s.SessionForkCapabilities()
    ),
)


async def test_sessions_are_forked_and_closed() -> None:
    played = ScriptedAgent(script.does(echo), capabilities=CLOSES_AND_FORKS, repeats=True)
    for _ in range(2):
        async with played.open() as agent, agent.session() as session, session.fork() as fork:
            assert await fork.think().text("go").run() == "GO"
    assert [opened.method for opened in played.sent.sessions] == ["session/new", "session/fork"] * 2
    assert sorted(played.sent.closed) == ["session-1", "session-2", "session-3", "session-4"]


@pytest.mark.virtual_time
@pytest.mark.parametrize("relists", [True, False])
async def test_an_agent_may_leave_changed_tools_unseen(relists: bool) -> None:
    def half(x: int) -> int:
        return x // 2

    played = ScriptedAgent(script.does(echo), repeats=True, complete=False, relists=relists)
    async with played.open() as agent, agent.session() as session:
        assert await session.think().text("go").run() == "GO"
        stream = session.think().text("again").tool(half).stream()
        await stream.wait()
        error = stream.result.exception()
        assert error is None if relists else isinstance(error, CapabilityMissing)
    assert ("half" in {tool.name for tool in played.sent.tools}) == relists
