"""The spans of runs, sessions, turns, tool calls and questions, collected by the real SDK."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest
from asking import permission
from msgspec.structs import replace
from observability.spans import Collected, attributes, traceparent
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import SpanKind, StatusCode, TraceFlags
from scripted import EVERY_SESSION_CALL, Played, Proceed, Turn, never, scripted

from thinkwell import AgentError, Question, ResultError, ThoughtCancelled
from thinkwell.testing import script
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

ROOT = Path(__file__).parents[2]
program = trace.get_tracer("the program")

Says: TypeAlias = dict[str, object]


def double(x: int) -> int:
    """Double a number."""
    with program.start_as_current_span("reckon"):
        return x * 2


async def broken(x: int) -> int:
    """Fail."""
    raise ValueError(x)


async def busy(turn: Turn) -> None:
    """Use a tool of the agent's, ask for it, and call one of ours."""
    turn.update(s.ToolCallStart(tool_call_id="t1", title="rm -rf build", kind="execute"))
    await turn.client.request_permission(
        permission(turn.session_id, s.ToolCallUpdate(tool_call_id="t1", title="rm -rf build"))
    )
    turn.update(s.ToolCallProgress(tool_call_id="t1", status="failed"))
    await turn.call("double", {"x": 1})
    turn.say("Done")


async def test_a_run_is_a_tree(spans: Collected) -> None:
    with program.start_as_current_span("handle request"):
        async with scripted(busy) as agent:
            await agent.think().text("Go").tool(double).run()
    run = ("handle request", "invoke_agent scripted")
    assert spans.tree() == {
        ("handle request",),
        run,
        (*run, "session new"),
        (*run, "turn"),
        (*run, "turn", "execute_tool execute"),
        (*run, "turn", "execute_tool execute", "question permission"),
        (*run, "turn", "execute_tool double"),
        (*run, "turn", "execute_tool double", "reckon"),
    }


async def test_what_the_spans_say(spans: Collected) -> None:
    async with scripted(busy) as agent:
        stream = agent.think().text("Go").tool(double).stream()
        await stream.wait()
    run: Says = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.output.type": "text",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "thinkwell.run.id": stream.id,
        "thinkwell.outcome": "completed",
    }
    everywhere: Says = {"gen_ai.agent.name": "scripted", "gen_ai.conversation.id": "session-1"}
    tool: Says = {"gen_ai.operation.name": "execute_tool"}
    turn: Says = {
        "thinkwell.turn.number": 1,
        "thinkwell.turn.reminder": False,
        "gen_ai.response.finish_reasons": ("end_turn",),
    }
    theirs: Says = {
        "gen_ai.tool.name": "execute",
        "gen_ai.tool.type": "extension",
        "gen_ai.tool.call.id": "t1",
        "thinkwell.tool.kind": "execute",
        "thinkwell.tool.status": "failed",
        "error.type": "tool_failed",
    }
    question: Says = {
        "thinkwell.question.id": "q1",
        "thinkwell.question.asks": "permission",
        "thinkwell.question.choice": "reject_once",
        "thinkwell.question.by": "policy",
        "gen_ai.tool.call.id": "t1",
    }
    ours: Says = {"gen_ai.tool.name": "double", "gen_ai.tool.type": "function"}
    expected: dict[str, Says] = {
        "invoke_agent scripted": run,
        "session new": {"thinkwell.outcome": "completed"},
        "turn": turn,
        "execute_tool execute": tool | theirs,
        "question permission": question,
        "execute_tool double": tool | ours,
    }
    for name, says in expected.items():
        assert attributes(spans.one(name)) == everywhere | says, name
    assert spans.one("invoke_agent scripted").kind is SpanKind.INTERNAL
    assert spans.one("turn").kind is SpanKind.CLIENT
    scope = spans.one("turn").instrumentation_scope
    assert scope is not None
    assert scope.name == "thinkwell"


def test_the_docs_name_every_attribute() -> None:
    page = (ROOT / "docs" / "topics" / "observability.md").read_text("utf-8")
    folder = ROOT / "thinkwell" / "thinkwell" / "_core" / "tracing"
    for module in ("spans", "span_tree", "metrics"):
        source = (folder / f"{module}.py").read_text("utf-8")
        attributes = re.findall(r'"((?:gen_ai|thinkwell|error)\.[a-z_.]+)"', source)
        assert attributes, module
        assert [name for name in attributes if f"`{name}`" not in page] == []


async def test_a_run_without_a_caller_is_the_root_of_its_trace(spans: Collected) -> None:
    async with scripted(busy) as agent:
        await agent.think().text("Go").tool(double).run()
        await agent.think().text("Go").tool(double).run()
    roots = [span for span in spans.all if span.parent is None]
    assert [span.name for span in roots] == ["invoke_agent scripted"] * 2


async def test_a_tool_that_fails(spans: Collected) -> None:
    async def script(turn: Turn) -> None:
        await turn.call("broken", {"x": 1})

    async with scripted(script) as agent:
        await agent.think().text("Go").tool(broken).run()
    span = spans.one("execute_tool broken")
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "tool_failed"
    assert spans.one("invoke_agent scripted").status.status_code is StatusCode.UNSET


async def test_a_turn_that_is_answered_by_an_error(spans: Collected) -> None:
    async def silent(turn: Turn) -> None:
        turn.say("Hm")

    async def fail(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t1", title="x"))
        raise RpcError(-32603, "hunter2")

    async with scripted(silent, fail) as agent:
        stream = agent.think(int).text("Go").stream()
        with pytest.raises(AgentError):
            await stream.result
        await stream.wait()
    first, second = (span for span in spans.all if span.name == "turn")
    assert first.status.status_code is StatusCode.UNSET
    assert attributes(first)["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert second.status.status_code is StatusCode.ERROR
    assert attributes(second)["error.type"] == "AgentReported"
    assert "gen_ai.response.finish_reasons" not in attributes(second)
    run = attributes(spans.one("invoke_agent scripted"))
    assert run["error.type"] == "AgentReported"
    assert run["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert spans.one("execute_tool other").status.status_code is StatusCode.UNSET
    assert "hunter2" not in "".join(str(span.to_json()) for span in spans.all)


async def test_turns_and_tokens_are_summed_up(spans: Collected) -> None:
    async def counts(request: s.PromptRequest, proceed: Proceed) -> s.PromptResponse:
        response: s.PromptResponse = await proceed(request)
        usage = s.Usage(total_tokens=9, input_tokens=5, output_tokens=4, cached_read_tokens=2)
        return replace(response, usage=usage)

    async def silent(turn: Turn) -> None:
        turn.say("Hm")

    async def returns(turn: Turn) -> None:
        await turn.returns(value=7)

    handler = Played([silent, returns], answers={"session/prompt": counts})
    async with scripted(agent=handler) as agent:
        stream = agent.think(int).text("Go").stream()
        assert await stream.result == 7
        await stream.wait()
    run = attributes(spans.one("invoke_agent scripted"))
    assert run["gen_ai.output.type"] == "json"
    assert run["gen_ai.usage.input_tokens"] == 10
    assert run["gen_ai.usage.output_tokens"] == 8
    assert run["gen_ai.usage.cache_read.input_tokens"] == 4
    assert "gen_ai.usage.reasoning.output_tokens" not in run
    assert run["gen_ai.response.finish_reasons"] == ("end_turn", "end_turn")
    turns = [attributes(span) for span in spans.all if span.name == "turn"]
    assert [(turn["thinkwell.turn.number"], turn["thinkwell.turn.reminder"]) for turn in turns] == [
        (1, False),
        (2, True),
    ]


@pytest.mark.parametrize(
    ("shown", "name", "kind"),
    [
        ({"title": "cat ~/.ssh/id_rsa", "kind": "read"}, "read", "extension"),
        ({"title": "cat ~/.ssh/id_rsa", "kind": "read", "name": "Read"}, "Read", "extension"),
        ({"title": "x"}, "other", "extension"),
        ({"title": "mcp__{server}__double"}, "double", "function"),
        ({"title": "double ({server} MCP Server)"}, "double", "function"),
        ({"title": "{server}_double"}, "double", "function"),
        ({"title": "mcp.{server}.double"}, "double", "function"),
        ({"title": '{server} › double: {{"x": 1}}'}, "double", "function"),
        ({"title": "tool", "name": "mcp__{server}__double"}, "double", "function"),
        ({"title": "echo mcp__{server}__double"}, "other", "extension"),
    ],
)
@pytest.mark.parametrize("named_later", [False, True])
async def test_names_of_tools(
    spans: Collected, shown: dict[str, str], name: str, kind: str, named_later: bool
) -> None:
    """Of what the agent shows of a call, only what its tool is called gets into a span, never its title."""

    async def script(turn: Turn) -> None:
        server = turn.server
        fields: dict[str, Any] = {key: value.format(server=server) for key, value in shown.items()}
        if named_later:
            announced = {"kind": fields.get("kind", "other")}
            turn.update(s.ToolCallStart(tool_call_id="t1", title="", **announced))
            turn.update(s.ToolCallProgress(tool_call_id="t1", **fields))
            turn.update(s.ToolCallProgress(tool_call_id="t1", title="mcp__another__one"))
        else:
            turn.update(s.ToolCallStart(tool_call_id="t1", **fields))
        turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed"))
        turn.update(s.ToolCallProgress(tool_call_id="t1", title="after the end"))

    async with scripted(script) as agent:
        await agent.think().text("Go").tool(double).run()
    says = attributes(spans.one(f"execute_tool {name}"))
    assert (says["gen_ai.tool.name"], says["gen_ai.tool.type"]) == (name, kind)


async def test_calls_of_our_tools_are_under_what_the_agent_shows_of_them(spans: Collected) -> None:
    async def script(turn: Turn) -> None:
        server = turn.server
        for number in ("1", "2"):
            turn.update(s.ToolCallStart(tool_call_id=number, title=f"mcp__{server}__double"))
        async with anyio.create_task_group() as tasks:
            for x in (1, 2, 3):
                arguments: dict[str, object] = {"x": x}
                tasks.start_soon(turn.call, "double", arguments)

    async with scripted(script) as agent:
        await agent.think().text("Go").tool(double).run()
    turn = ("invoke_agent scripted", "turn")
    ways = [(*reversed(spans.path(span)), span.name) for span in spans.all if span.name == "reckon"]
    nested = (*turn, "execute_tool double", "execute_tool double", "reckon")
    assert sorted(ways) == sorted([nested, nested, (*turn, "execute_tool double", "reckon")])


def say_nothing(question: Question) -> None:
    """Leave a question open."""


async def test_nothing_that_was_said_gets_into_spans(spans: Collected) -> None:
    secret = "hunter2"

    def look(secret: str) -> str:
        """Look."""
        return secret

    async def script(turn: Turn) -> str:
        for chunk in (turn.say, turn.think):
            chunk(secret)
        call = s.ToolCallUpdate(tool_call_id="t1", title=secret, raw_input={"command": secret})
        turn.update(s.ToolCallStart(tool_call_id="t1", title=secret, raw_input={"command": secret}))
        await turn.client.request_permission(permission(turn.session_id, call))
        field = s.StringPropertySchema(title=secret, description=secret)
        await turn.client.create_elicitation(
            s.ElicitationFormMode(
                session_id=turn.session_id,
                message=secret,
                requested_schema=s.ElicitationSchema(properties={"password": field}),
            )
        )
        await turn.call("look", {"secret": secret})
        await turn.returns(value=secret)
        return "refusal"

    async with scripted(script, permissions="ask", on_question=say_nothing) as agent:
        stream = agent.think(int).text(secret).tool(look).stream()
        with pytest.raises(ResultError):
            await stream.result
        await stream.wait()
    assert "question form" in spans.names
    assert [span.name for span in spans.all if secret in str(span.to_json())] == []


# What the agent is told of them


async def test_the_agent_receives_the_trace(spans: Collected) -> None:
    handler = Played([busy])
    async with scripted(agent=handler) as agent:
        token = context.attach(baggage.set_baggage("tenant", "acme"))
        stream = agent.think().text("Go").tool(double).meta({"vendor": {"a": 1}}).stream()
        context.detach(token)
        await stream.wait()
    assert handler.sent.sessions[0].meta == {
        "traceparent": traceparent(spans.one("session new")),
        "baggage": "tenant=acme",
    }
    assert handler.sent.prompts[0].meta == {
        "traceparent": traceparent(spans.one("turn")),
        "baggage": "tenant=acme",
        "vendor": {"a": 1},
    }


async def test_what_the_user_sends_comes_first(spans: Collected) -> None:
    handler = Played([busy])
    async with scripted(agent=handler) as agent:
        await agent.think().text("Go").tool(double).meta({"traceparent": "mine"}).run()
    assert handler.sent.prompts[0].meta == {"traceparent": "mine"}


@pytest.mark.parametrize("how", ["load", "resume", "fork"])
async def test_old_sessions_receive_the_trace_too(spans: Collected, how: str) -> None:
    handler = Played([busy], capabilities=EVERY_SESSION_CALL)
    handler.replay = [
        s.ToolCallStart(tool_call_id="old", title="long ago"),
        s.AgentMessageChunk(content=s.TextContent(text="long ago")),
    ]
    options: dict[str, Any] = {how: "s"}
    async with scripted(agent=handler) as agent, agent.session(**options) as session:
        id_ = session.id
    span = spans.one(f"session {how}")
    assert handler.sent.sessions[0].meta == {"traceparent": traceparent(span)}
    assert attributes(span)["gen_ai.conversation.id"] == id_
    assert spans.names == [span.name]  # what is repeated makes no spans


async def test_the_agent_learns_that_spans_are_not_sampled(spans: Collected) -> None:
    handler = Played([busy])
    spans.switch.decision = Decision.DROP
    async with scripted(agent=handler) as agent:
        await agent.think().text("Go").tool(double).run()
    assert spans.all == ()
    for request in (handler.sent.sessions[0], handler.sent.prompts[0]):
        assert request.meta is not None
        *_, flags = str(request.meta["traceparent"]).split("-")
        assert not int(flags, 16) & TraceFlags.SAMPLED


# Sessions


async def test_turns_of_a_session_point_to_it(spans: Collected) -> None:
    async def script(turn: Turn) -> None:
        turn.say("Hi")

    async with scripted(script) as agent:
        with program.start_as_current_span("chat"):
            async with agent.session() as session:
                await session.think().text("One").run()
                with program.start_as_current_span("message"):
                    await session.think().text("Two").run()
    run = "invoke_agent scripted"
    assert spans.tree() == {
        ("chat",),
        ("chat", "session new"),
        ("chat", run),
        ("chat", run, "turn"),
        ("chat", "message"),
        ("chat", "message", run),
        ("chat", "message", run, "turn"),
    }
    links = [[link.context for link in span.links] for span in spans.all if span.name == run]
    assert links == [[spans.one("session new").context]] * 2


async def test_a_run_beside_a_session_that_is_being_opened(spans: Collected) -> None:
    """Each session is under what it was opened for."""
    opening, go_on = anyio.Event(), anyio.Event()

    async def slow(request: s.NewSessionRequest, proceed: Proceed) -> object:
        if not opening.is_set():
            opening.set()
            await go_on.wait()
        return await proceed(request)

    async def script(turn: Turn) -> None:
        turn.say("Hi")

    async def chat(agent: Any) -> None:
        with program.start_as_current_span("chat"):
            async with agent.session():
                pass

    async with (
        scripted(agent=Played([script], answers={"session/new": slow})) as agent,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(chat, agent)
        await opening.wait()
        await agent.think().text("Hi").run()
        go_on.set()
    assert ("chat", "session new") in spans.tree()
    assert ("invoke_agent scripted", "session new") in spans.tree()


async def test_a_session_that_is_replaced_has_one_span(spans: Collected) -> None:
    """Tools that change before the first turn make this agent open another session."""
    handler = Played([busy], capabilities=replace(EVERY_SESSION_CALL, load_session=False))
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.think().text("Go").tool(double).run()
    assert len(handler.sent.sessions) == 2
    assert attributes(spans.one("session new"))["gen_ai.conversation.id"] == session.id
    (link,) = spans.one("invoke_agent scripted").links
    assert link.context == spans.one("session new").context


async def test_questions_between_the_turns_are_the_sessions(spans: Collected) -> None:
    handler = Played([busy], before_session=script.says("Welcome"))
    async with scripted(agent=handler) as agent, agent.session() as session:
        await handler.client.request_permission(permission(session.id))
    assert spans.tree() == {("session new",), ("session new", "question permission")}
    assert attributes(spans.one("question permission"))["thinkwell.question.by"] == "policy"


async def test_a_session_that_is_not_opened(spans: Collected) -> None:
    full = {"session/new": RpcError(-32000, "hunter2: no room")}
    async with scripted(agent=Played(fails_at=full)) as agent:
        with pytest.raises(AgentError):
            await agent.think().text("Go").run()
        with pytest.raises(AgentError):
            async with agent.session():
                pass
    for span in spans.all:
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)["error.type"] == "LoginRequired"
        assert "hunter2" not in str(span.to_json())
    assert spans.tree() == {
        ("invoke_agent scripted",),
        ("invoke_agent scripted", "session new"),
        ("session new",),
    }


async def test_a_session_whose_opening_is_given_up(spans: Collected) -> None:
    async with scripted(agent=Played(answers={"session/new": never})) as agent:
        with pytest.raises(AgentError):
            async with agent.session(open_timeout=0.01):
                pass
    assert attributes(spans.one("session new"))["error.type"] == "cancelled"


async def test_a_run_that_is_cancelled_before_its_session_is_opened(spans: Collected) -> None:
    async with scripted(busy) as agent:
        stream = agent.think().text("Go").stream()
        stream.cancel()
        await stream.wait()
    assert spans.names == ["invoke_agent scripted"]
    assert attributes(spans.all[0])["thinkwell.outcome"] == "cancelled"
    assert spans.all[0].status.status_code is StatusCode.UNSET


async def test_a_cancelled_run_ends_what_is_open(spans: Collected) -> None:
    asked = anyio.Event()

    async def slow(x: int) -> int:
        """Never end."""
        asked.set()
        await anyio.sleep_forever()
        return x

    async def script(turn: Turn) -> str:
        turn.update(s.ToolCallStart(tool_call_id="t1", title="sleep"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.client.request_permission, permission(turn.session_id))
            await turn.call("slow", {"x": 1})
        return "cancelled"

    async with scripted(script, permissions="ask") as agent:
        stream = agent.think().text("Go").tool(slow).stream()
        with anyio.fail_after(30):
            await asked.wait()
            await anyio.wait_all_tasks_blocked()
            stream.cancel()
            with pytest.raises(ThoughtCancelled):
                await stream.result
            await stream.wait()
    assert attributes(spans.one("execute_tool other"))["thinkwell.tool.status"] == "cancelled"
    assert attributes(spans.one("question permission"))["thinkwell.question.choice"] == "cancelled"
    assert attributes(spans.one("invoke_agent scripted"))["thinkwell.outcome"] == "cancelled"
    assert "execute_tool slow" in spans.names
