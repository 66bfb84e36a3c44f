"""Sessions whose tools get in each other's way, and what is done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from msgspec.structs import replace
from scripted import EVERY_SESSION_CALL, Played, Proceed, Script, Turn, scripted
from trio.testing import MockClock

from thinkwell import CapabilityMissing, SessionNotOpened, ThoughtCancelled, events
from thinkwell.workspace import Workspace
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

VIRTUAL = pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])
CLOSES = s.SessionCapabilities(close=s.SessionCloseCapabilities(), resume=s.SessionResumeCapabilities())
LOOKS = s.AgentCapabilities(mcp_capabilities=s.McpCapabilities(acp=True), session_capabilities=CLOSES)


def one(x: int) -> int:
    return x


async def calls_one(turn: Turn) -> None:
    answer = await turn.call("one", {"x": 4})
    await turn.returns(result=int(answer["content"][0]["text"]))


SPEED = s.SessionConfigSelect(
    id="speed",
    name="Speed",
    current_value="slow",
    options=tuple(s.SessionConfigSelectOption(value=value, name=value) for value in ("slow", "fast")),
)


class ForgetsIdle(Played):
    """Can resume only sessions that have had a turn, and looks at the tools when it opens one."""

    looks = True

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        self.options = [SPEED]
        looks = self.looks
        if isinstance(request, s.ResumeSessionRequest):
            looks = any(prompt.session_id == request.session_id for prompt in self.sent.prompts)
        return await super().open_session(request if looks else replace(request, mcp_servers=()), proceed)


def forgetful(*scripts: Script) -> ForgetsIdle:
    handler = ForgetsIdle([*scripts, calls_one], capabilities=LOOKS)
    handler.modes = s.SessionModeState(
        current_mode_id="ask",
        available_modes=tuple(s.SessionMode(id=id_, name=id_) for id_ in ("ask", "plan")),
    )
    return handler


@VIRTUAL
async def test_a_session_without_a_turn_is_opened_anew_where_tools_come_late() -> None:
    handler = forgetful()
    async with scripted(agent=handler) as agent, agent.session() as session:
        first = session.id
        await session.set_option("speed", "fast")
        await session.set_mode("plan")
        assert await session.think(int).text("Go").tool(one).run() == 4
        assert (first, session.id) == ("session-1", "session-2")
        assert (session.mode, session.options[0].value) == ("plan", "fast")
        assert await session.think(int).text("Go on").tool(one).run() == 4
    assert handler.sent.closed == ("session-1", "session-2")
    assert [prompt.session_id for prompt in handler.sent.prompts] == ["session-2", "session-2"]
    assert handler.asked == [
        "session/new",
        "session/set_config_option speed=fast",
        "session/set_mode plan",
        "session/close",
        "session/new",
        "session/set_config_option speed=fast",
        "session/set_mode plan",
        "session/close",
    ]


@pytest.mark.fast_time(10)
@pytest.mark.parametrize("how", ["replaced", "not loaded"])
async def test_the_terminals_of_a_session_end_with_it(how: str, tmp_path: Path) -> None:
    """Also where it is replaced, or was never opened."""
    refused: list[str] = []

    class Runs(Played):
        async def run_command(self, session_id: str) -> None:
            request = s.CreateTerminalRequest(session_id=session_id, command="sleep", args=("1000",))
            self.terminal = (await self.client.create_terminal(request)).terminal_id
            self.owner = session_id

        async def open_session(self, request: Any, proceed: Proceed) -> Any:
            if isinstance(request, s.LoadSessionRequest):
                await self.run_command(request.session_id)
                raise RpcError(-32002, "no such session")
            if len(self.sent.sessions) > 1:
                await self.look()
            return await super().open_session(request, proceed)

        async def look(self) -> None:
            with pytest.raises(RpcError) as caught:
                await self.client.terminal_output(
                    s.TerminalOutputRequest(session_id=self.owner, terminal_id=self.terminal)
                )
            refused.append(caught.value.message)

    async def says(turn: Turn) -> None:
        turn.say("Hello")

    handler = Runs([says], capabilities=EVERY_SESSION_CALL)
    workspace = Workspace(tmp_path, terminal=True)
    with anyio.fail_after(200):
        async with scripted(agent=handler, workspace=workspace, cwd=tmp_path, permissions="allow") as agent:
            if how == "not loaded":
                with pytest.raises(SessionNotOpened):
                    async with agent.session(load="old"):
                        pass
                await handler.look()
            else:
                async with agent.session() as session:
                    await handler.run_command(session.id)
                    assert await session.think().text("Go").tool(one).run() == "Hello"
                    assert session.id == "session-2"
    assert len(refused) == 1


@VIRTUAL
async def test_after_a_turn_the_session_itself_is_opened_again() -> None:
    async def says(turn: Turn) -> None:
        turn.say("Hello")

    handler = forgetful(says)
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert await session.think().text("Hello").run() == "Hello"
        assert await session.think(int).text("Go").tool(one).run() == 4
        assert session.id == "session-1"
    assert handler.asked == ["session/new", "session/close", "session/resume", "session/close"]


@VIRTUAL
async def test_an_agent_that_never_looks_again_is_told_apart() -> None:
    handler = forgetful()
    async with scripted(agent=handler) as agent, agent.session() as session:
        handler.looks = False
        with pytest.raises(CapabilityMissing) as caught:
            await session.think(int).text("Go").tool(one).run()
    assert caught.value.capability == "tools/list"
    assert "not even when the session was reopened" in str(caught.value)
    assert not handler.sent.prompts


async def test_the_prompt_names_the_server_where_there_are_others() -> None:
    handler = Played([calls_one])
    async with scripted(agent=handler) as agent:
        assert await agent.think(int).text("Go").tool(one).run() == 4
        async with agent.session(), agent.session() as session:
            assert await session.think(int).text("Go").tool(one).run() == 4
    alone, beside = (prompt.text for prompt in handler.sent.prompts)
    (server,) = handler.sent.sessions[-1].mcp_servers
    assert server["name"] not in alone
    assert f"those of the MCP server {server['name']}" in beside


async def test_a_session_that_is_left_offers_nothing_any_more() -> None:
    left: list[list[str]] = []

    turns: list[Turn] = []

    async def call(turn: Turn) -> None:
        turns.append(turn)
        await calls_one(turn)

    async def look(request: s.CloseSessionRequest, proceed: Proceed) -> object:
        left.append([tool["name"] for tool in await turns[0].list_tools()])
        return await proceed(request)

    handler = Played([call], capabilities=LOOKS, answers={"session/close": look})
    async with scripted(agent=handler) as agent:
        await agent.think(int).text("Go").tool(one).run()
    assert left == [[]]


@VIRTUAL
@pytest.mark.parametrize(("takes", "order"), [(0.5, ["over", "answered"]), (60, ["answered", "over"])])
async def test_the_answer_of_a_cancelled_call_waits_a_while_for_the_end_of_the_turn(
    takes: float, order: list[str]
) -> None:
    """Else it may overtake the cancellation, and the agent goes on with it."""
    begun, answered, seen = anyio.Event(), anyio.Event(), list[str]()

    async def waits() -> None:
        begun.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:

        async def call(turn: Turn) -> None:
            answer = await turn.call("waits", {})
            assert answer["content"][0]["text"] == "The task was cancelled."
            seen.append("answered")
            answered.set()

        async def script(turn: Turn) -> str:
            tasks.start_soon(call, turn)
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.move_on_after(takes, shield=True):
                    await answered.wait()
                seen.append("over")
            return "cancelled"

        async with scripted(script) as agent:
            stream = agent.think().text("Go").tool(waits).stream()
            await begun.wait()
            stream.cancel()
            with pytest.raises(ThoughtCancelled):
                await stream.result
            await stream.wait()
            await answered.wait()
    assert seen == order


async def test_a_mode_that_is_changed_by_its_option_is_told_as_a_mode() -> None:
    def mode(value: str) -> s.SessionConfigSelect:
        choices = tuple(s.SessionConfigSelectOption(value=id_, name=id_) for id_ in ("ask", "plan"))
        return s.SessionConfigSelect(
            id="mode", name="Mode", category="mode", current_value=value, options=choices
        )

    async def script(turn: Turn) -> None:
        for value in ("plan", "plan", "ask"):
            turn.update(s.ConfigOptionUpdate(config_options=(mode(value),)))
        turn.say("Done")

    handler = Played([script])
    handler.options = [mode("ask")]
    async with scripted(agent=handler) as agent, agent.session() as session:
        stream = session.think().text("Go").stream(include={"mode"})
        changes = [event.mode_id async for event in stream if isinstance(event, events.ModeUpdate)]
        assert session.mode == "ask"
    assert changes == ["plan", "ask"]


class Caches(ForgetsIdle):
    """Looks at the tools of a server once, whatever session they are for."""

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        (server,) = request.mcp_servers
        before = [known["name"] for opened in self.sent.sessions[:-1] for known in opened.mcp_servers]
        self.looks = server.name not in before
        return await super().open_session(request, proceed)


@VIRTUAL
async def test_a_session_that_is_opened_anew_has_a_server_of_another_name() -> None:
    handler = Caches([calls_one], capabilities=LOOKS)
    async with scripted(agent=handler) as agent, agent.session() as session:
        stream = session.think(int).text("Go").tool(one).stream(include={"tools_seen"})
        assert await stream.result == 4
        assert session.id == "session-2"
        seen = [event.names async for event in stream if isinstance(event, events.ToolsSeen)]
    assert seen[-1] == ("one", "return_result")
    assert len({opened.mcp_servers[0]["name"] for opened in handler.sent.sessions}) == 2


@pytest.mark.virtual_time
async def test_tools_that_are_fetched_in_the_middle_of_a_turn_are_told_of_then() -> None:
    async def late(turn: Turn) -> None:
        turn.say("Which tools?")
        await turn.list_tools()
        await calls_one(turn)

    handler = Played([late], lists_tools=False)
    async with scripted(agent=handler) as agent:
        stream = agent.think(int).text("Go").tool(one).stream(include={"message", "tools_seen"})
        assert await stream.result == 4
        await stream.wait()
        types = [event.type async for event in stream]
    assert types == ["message", "tools_seen"]
