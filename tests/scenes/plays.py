"""The scenes, by name: one for each way that a turn goes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, TypeAlias

from msgspec.structs import replace
from pydantic import BaseModel

from thinkwell import Agent, Budget, ThinkwellError, ThoughtStream, tool
from thinkwell.events import Include, QuestionAsked
from thinkwell.testing import script
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

from .player import Play, Scene


class Sum(BaseModel):
    """A typed result."""

    total: int


@tool
async def double(number: int) -> int:
    """Double a number."""
    return number * 2


@tool
async def broken() -> str:
    """Fail."""
    raise ValueError("no such thing")


Streams: TypeAlias = list[ThoughtStream[Any]]
"""The runs of a scene, in the order in which they began."""


async def end(stream: ThoughtStream[Any]) -> None:
    """Wait for all of a run; an error is a part of its log."""
    with suppress(ThinkwellError):
        await stream.result
    await stream.wait()


def running(include: Include = "all", **options: Any) -> Play:
    """Run for a text."""

    async def play(agent: Agent, streams: Streams) -> None:
        async with agent.think().text("Go.").stream(include=include, **options) as stream:
            streams.append(stream)
            await end(stream)

    return play


one: Final = running()


async def counted(agent: Agent, streams: Streams) -> None:
    """Run with a budget of one tool call, which is used up by it."""
    await running(budget=Budget(max_tool_calls=1))(agent, streams)


async def typed(agent: Agent, streams: Streams) -> None:
    """Run for a typed result, with two tools."""
    async with agent.think(Sum).text("Add.").tool(double).tool(broken).stream(include="all") as stream:
        streams.append(stream)
        await end(stream)


async def two(agent: Agent, streams: Streams) -> None:
    """Run twice in one session."""
    async with agent.session() as session:
        for text in ("First.", "Second."):
            async with session.think().text(text).stream(include="all") as stream:
                streams.append(stream)
                await end(stream)


async def queued(agent: Agent, streams: Streams) -> None:
    """Begin two runs in one session, the second while the first is under way."""
    async with (
        agent.session() as session,
        session.think().text("First.").stream(include="all") as first,
        session.think().text("Second.").stream(include="all") as second,
    ):
        streams += [first, second]
        await end(first)
        await end(second)


async def left(agent: Agent, streams: Streams) -> None:
    """Leave the block of a run at its first text or tool call."""
    async with agent.think().text("Go.").stream(include="all") as stream:
        streams.append(stream)
        async for _ in stream.events(include=["message", "tool_start"]):
            break


async def cancelled(agent: Agent, streams: Streams) -> None:
    """Cancel a run at its first text or tool call."""
    async with agent.think().text("Go.").stream(include="all") as stream:
        streams.append(stream)
        async for _ in stream.events(include=["message", "tool_start"]):
            break
        stream.cancel()
        await end(stream)


async def cancelled_at_once(agent: Agent, streams: Streams) -> None:
    """Cancel a run before anything is sent."""
    async with agent.think().text("Go.").stream(include="all") as stream:
        streams.append(stream)
        stream.cancel()
        await end(stream)


async def moded(agent: Agent, streams: Streams) -> None:
    """Set a mode, then run."""
    async with agent.session() as session:
        await session.set_mode("plan")
        async with session.think().text("Go.").stream(include="all") as stream:
            streams.append(stream)
            await end(stream)


async def asked(agent: Agent, streams: Streams) -> None:
    """Allow what a run asks for."""
    async with agent.think().text("Go.").stream(include="all") as stream:
        streams.append(stream)
        async for event in stream:
            if isinstance(event, QuestionAsked):
                stream.answer(event.id, "allow")
        await end(stream)


DOES_MODES: Final = s.SessionModeState(
    current_mode_id="ask",
    available_modes=(s.SessionMode(id="ask", name="Ask"), s.SessionMode(id="plan", name="Plan")),
)


async def with_modes(request: Any, proceed: Any) -> Any:
    return replace(await proceed(request), modes=DOES_MODES)


async def mode_is_set(_request: Any, _proceed: Any) -> s.SetSessionModeResponse:
    return s.SetSessionModeResponse()


WORK: Final = script.thinks("Hm.").says("One. ").uses("Read a.py", kind="read", path="/a.py", text="x = 1")
UPDATE: Final = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"session-1","update":'
    '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hello"}}}}'
)
ALLOW: Final = {"permissions": "allow"}
LOOSE: Final = {"complete": False}

SCENES: Final = {
    "text": Scene(script.says("Hello"), one),
    "nothing": Scene(script.stops(), one),
    "thought and text": Scene(script.thinks("Hm.").says("Yes."), one),
    "messages with ids": Scene(
        script.says("a", message_id="1").says("b", message_id="2").says("c", message_id="1"), one
    ),
    "a tool": Scene(WORK.says("Done."), one),
    "a diff": Scene(
        script.uses("Edit", kind="edit", path="/a.py", old_text="x = 1\n", new_text="x = 2\n"), one
    ),
    "a tool that fails": Scene(script.uses("Run", kind="execute", status="failed", text="no"), one),
    "a plan": Scene(
        script.plans("a", "b").plans("a", "b", done=1).plans("a", "b", done=2).says("Done."), one
    ),
    "usage": Scene(
        script.updates({"sessionUpdate": "usage_update", "used": 10, "size": 100}).says("Done."), one
    ),
    "commands": Scene(
        script.updates(
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [{"name": "a", "description": "b"}],
            }
        ),
        one,
    ),
    "a mode of the agent's": Scene(
        script.updates({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}).says("Done."), one
    ),
    "a title": Scene(
        script.updates({"sessionUpdate": "session_info_update", "title": "Work"}).says("."), one
    ),
    "an unknown update": Scene(script.updates({"sessionUpdate": "weather", "rain": True}).says("Dry."), one),
    "an update of another session": Scene(
        script.updates(
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "?"}},
            session_id="other",
        ).says("Mine."),
        one,
    ),
    "noise on the wire": Scene(script.sends("npm warn").says("Hello"), one),
    "a byte order mark": Scene(script.sends(f"\ufeff{UPDATE}").says(" and all"), one),
    "a result": Scene(script.returns({"total": 3}), typed),
    "a wrong result, then a right one": Scene(
        script.returns({"total": "many"}, expect_error=True).returns({"total": 3}), typed
    ),
    "two results": Scene(script.returns({"total": 3}).returns({"total": 4}), typed),
    "no result": Scene(script.says("Three.").stops().says("Still three."), typed, agent={"repeats": True}),
    "no result, then one": Scene(script.says("Three.").stops().returns({"total": 3}), typed),
    "our tool": Scene(script.calls("double", {"number": 2}).returns({"total": 4}), typed),
    "our tool with wrong arguments": Scene(
        script.calls("double", {"number": "two"}, expect_error=True).returns({"total": 4}), typed
    ),
    "our tool that fails": Scene(script.calls("broken", expect_error=True).returns({"total": 4}), typed),
    "two turns": Scene(script.says("One.").stops().says("Two."), two),
    "two turns that wait for each other": Scene(script.says("One.").stops().says("Two."), queued),
    "late words": Scene(script.says("One.").stops(late=script.says("Late.")).says("Two."), two),
    "words before the session": Scene(
        script.says("One."), one, agent={"before_session": script.says("Early.")}
    ),
    "cancelled": Scene(script.says("One.").hangs(), cancelled),
    "cancelled in a tool": Scene(script.uses("Run", kind="execute", status="in_progress").hangs(), cancelled),
    "cancelled at once": Scene(script.says("One."), cancelled_at_once, agent=LOOSE),
    "cancelled, and deaf": Scene(script.says("One.").hangs(deaf=True), cancelled),
    "left": Scene(script.says("One.").hangs(), left),
    "a limit of time": Scene(script.says("One.").hangs(), running(timeout=5)),
    "a budget": Scene(
        script.uses("A", id="1").uses("B", id="2").uses("C", id="3").hangs(),
        counted,
        agent=LOOSE,
    ),
    "messages alone": Scene(WORK.says("Done."), running(include=["message"])),
    "allowed": Scene(script.asks("Write", kind="edit").says("Done."), one, options=ALLOW),
    "denied": Scene(script.asks("Write", kind="edit").says("No."), one, options={"permissions": "deny"}),
    "asked and answered": Scene(
        script.asks("Write", kind="edit", input={"path": "a"}).says("Done."), asked, {"permissions": "ask"}
    ),
    "a refusal": Scene(script.says("No.").refuses(), one),
    "an error": Scene(script.says("One.").fails(-32603, "Broken"), one),
    "a login is wanted": Scene(script.fails(-32000, "Log in"), one),
    "no session": Scene(
        script.says("?"), one, agent={"fails_at": {"session/new": RpcError(-32603, "no")}, **LOOSE}
    ),
    "the agent hangs up": Scene(script.says("One.").hangs_up(), one),
    "stopped for tokens": Scene(script.says("One.").stops("max_tokens"), one),
    "a mode": Scene(
        script.says("Planned."),
        moded,
        agent={"answers": {"session/new": with_modes, "session/set_mode": mode_is_set}},
    ),
}
