"""Whatever goes wrong, every span ends; and whatever goes wrong with spans, the run goes on."""

from __future__ import annotations

import logging
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from msgspec.structs import replace
from observability.spans import Collected, attributes, traceparent
from opentelemetry import propagate
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import StatusCode
from scripted import EVERY_SESSION_CALL, Played, Proceed, Turn, playing, scripted

from thinkwell import Agent, AgentExited, ThinkwellError, ThoughtCancelled, ThoughtStream, open_agent
from thinkwell_acp import RpcError, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from opentelemetry.context import Context

RAW_AGENT = Path(__file__).parents[1] / "stream" / "programs" / "raw_agent.py"


async def note(text: str) -> str:
    """Take a note."""
    await anyio.sleep_forever()
    return text


class Scene:
    """An agent in the middle of everything: a tool of its own, a question, and a call of a tool of ours."""

    def __init__(self) -> None:
        self.ready = anyio.Event()
        self.go_on = anyio.Event()
        self.fault: Exception | None = None
        self.handler = Played([self.script], capabilities=EVERY_SESSION_CALL)
        self.agent: Agent
        self.drop: Callable[[], Awaitable[None]]

    async def script(self, turn: Turn) -> str:
        turn.update(s.ToolCallStart(tool_call_id="t1", title="sleep"))
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.ask, turn)
                arguments: dict[str, object] = {"text": "x"}
                tasks.start_soon(turn.call, "note", arguments)
                await anyio.wait_all_tasks_blocked()
                self.ready.set()
                await self.go_on.wait()
                tasks.cancel_scope.cancel()
        finally:
            if self.fault is not None:
                raise self.fault
        return "max_tokens"

    async def ask(self, turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id))


@asynccontextmanager
async def at_work(scene: Scene) -> AsyncGenerator[ThoughtStream[str]]:
    ours, theirs = memory_transport_pair()
    scene.drop = theirs.aclose
    async with (
        playing(theirs, scene.handler),
        open_agent("scripted", transport=ours, permissions="ask") as agent,
    ):
        scene.agent = agent
        yield agent.think().text("Go").tool(note).stream()


async def cancel(scene: Scene, stream: ThoughtStream[Any]) -> None:
    stream.cancel()


async def leave(scene: Scene, stream: ThoughtStream[Any]) -> None:
    """Leave the agent's block."""


async def fail(scene: Scene, stream: ThoughtStream[Any]) -> None:
    scene.fault = RpcError(-32603, "broken")
    scene.go_on.set()
    await stream.wait()


async def stop_early(scene: Scene, stream: ThoughtStream[Any]) -> None:
    """End the turn with everything open."""
    scene.go_on.set()
    await stream.wait()


async def vanish(scene: Scene, stream: ThoughtStream[Any]) -> None:
    await scene.drop()
    await stream.wait()


@pytest.mark.parametrize("fault", [cancel, leave, fail, stop_early, vanish])
async def test_every_span_ends(spans: Collected, fault: Any) -> None:
    scene = Scene()
    with anyio.fail_after(30):
        async with at_work(scene) as stream:
            await scene.ready.wait()
            await fault(scene, stream)
        await stream.wait()
    error = stream.result.exception()
    assert error is not None
    run = ("invoke_agent scripted",)
    assert spans.tree() == {
        run,
        (*run, "session new"),
        (*run, "turn"),
        (*run, "turn", "execute_tool other"),
        (*run, "turn", "execute_tool other", "question permission"),
        (*run, "turn", "execute_tool note"),
    }
    root = spans.one("invoke_agent scripted")
    if isinstance(error, ThoughtCancelled):
        assert attributes(root)["thinkwell.outcome"] == "cancelled"
        assert root.status.status_code is StatusCode.UNSET
    else:
        assert attributes(root)["error.type"] == type(error).__name__
        assert root.status.description is None


async def test_an_agent_that_dies(spans: Collected) -> None:
    async with open_agent(command=[sys.executable, str(RAW_AGENT), "die"]) as agent:
        stream = agent.think().text("Go").stream()
        with pytest.raises(AgentExited):
            await stream.result
        await stream.wait()
    run = f"invoke_agent {agent.name}"
    assert spans.tree() == {(run,), (run, "session new"), (run, "turn")}
    for name in (run, "turn"):
        assert attributes(spans.one(name))["error.type"] == "AgentExited"


async def test_what_comes_after_the_end_begins_nothing(spans: Collected) -> None:
    late = anyio.Event()

    async def script(turn: Turn) -> None:
        turn.say("Done")

    handler = Played([script])
    async with scripted(agent=handler) as agent, agent.session() as session:
        stream = session.think().text("Go").stream()
        await stream.wait()
        handler.client.update(session.id, s.ToolCallStart(tool_call_id="t1", title="late"))
        handler.client.update(session.id, s.AgentMessageChunk(content=s.TextContent(text="late")))
        with anyio.fail_after(30):
            async for _ in session.events():
                late.set()
                break
    assert spans.names == ["turn", "invoke_agent scripted", "session new"]


async def busy(turn: Turn) -> None:
    turn.update(s.ToolCallStart(tool_call_id="t1", title="a"))
    turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed"))
    await turn.call("hello", {})
    turn.say("Done")


def hello() -> str:
    """Say hello."""
    return "hello"


@pytest.mark.parametrize("fails_at", ["start", "end", "start turn", "start execute_tool", "end turn"])
async def test_a_broken_processor_hurts_no_run(
    spans: Collected, fails_at: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")
    spans.saboteur.fails_at = fails_at
    async with scripted(busy) as agent:
        for _ in range(2):
            assert await agent.think().text("Go").tool(hello).run() == "Done"
        async with agent.session() as session:
            assert await session.think().text("Go").tool(hello).run() == "Done"
    lost = [record for record in caplog.records if "spans are lost" in record.getMessage()]
    assert {record.levelname for record in lost[1:]} == {"DEBUG"}
    assert lost[0].levelname == "WARNING"
    assert bool(spans.all) is (fails_at != "start")


async def test_a_broken_propagator_hurts_no_run(spans: Collected) -> None:
    class Broken(TextMapPropagator):
        def extract(self, carrier: Any, context: Context | None = None, getter: Any = None) -> Context:
            raise AssertionError

        def inject(self, carrier: Any, context: Context | None = None, setter: Any = None) -> None:
            raise RuntimeError("broken propagator")

        @property
        def fields(self) -> set[str]:
            return set()

    propagate.set_global_textmap(Broken())
    handler = Played([busy])
    async with scripted(agent=handler) as agent:
        assert await agent.think().text("Go").tool(hello).run() == "Done"
    assert handler.requests("session/prompt")[0].meta is None
    assert "execute_tool hello" in spans.names


async def test_a_propagator_that_gives_more_than_text(spans: Collected) -> None:
    class Odd(TextMapPropagator):
        def extract(self, carrier: Any, context: Context | None = None, getter: Any = None) -> Context:
            raise AssertionError

        def inject(self, carrier: Any, context: Context | None = None, setter: Any = None) -> None:
            carrier["x"] = b"1"
            carrier["y"] = "2"

        @property
        def fields(self) -> set[str]:
            return {"x", "y"}

    propagate.set_global_textmap(Odd())
    handler = Played([busy])
    async with scripted(agent=handler) as agent:
        await agent.think().text("Go").tool(hello).run()
    assert handler.sent.prompts[0].meta == {"y": "2"}


async def test_a_prompt_that_is_sent_again_after_a_login_is_one_turn(spans: Collected) -> None:
    async def initialize(request: s.InitializeRequest, proceed: Proceed) -> s.InitializeResponse:
        response: s.InitializeResponse = await proceed(request)
        return replace(response, auth_methods=(s.AuthMethodAgent(id="key", name="Key"),))

    async def log_in(_request: object, _proceed: Proceed) -> s.AuthenticateResponse:
        return s.AuthenticateResponse()

    async def prompt(request: s.PromptRequest, proceed: Proceed) -> object:
        if not handler.sent.all("authenticate"):
            raise RpcError(-32000, "Authentication required")
        return await proceed(request)

    handler = Played(
        [busy], answers={"initialize": initialize, "authenticate": log_in, "session/prompt": prompt}
    )
    async with scripted(agent=handler, login="key") as agent:
        assert await agent.think().text("Go").tool(hello).run() == "Done"
    told = [request.meta for request in handler.sent.prompts]
    assert told == [{"traceparent": traceparent(spans.one("turn"))}] * 2


async def test_a_run_whose_agent_is_gone(spans: Collected) -> None:
    scene = Scene()
    async with at_work(scene) as first:
        await scene.ready.wait()
        await scene.drop()
        await first.wait()
        with pytest.raises(ThinkwellError):
            await scene.agent.think().text("Again").run()
    assert spans.names.count("invoke_agent scripted") == 2
