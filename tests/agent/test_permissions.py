"""What an agent may do when it asks: the policy, the handler, and what our own tools look like."""

from __future__ import annotations

from typing import Any, Literal

import anyio
import pytest
from scripted import ScriptedAgent, Turn, scripted

from thinkwell import PermissionQuestion, events
from thinkwell_acp import schema as s

OPTIONS = (
    s.PermissionOption(option_id="a", name="Always", kind="allow_always"),
    s.PermissionOption(option_id="n", name="Never", kind="reject_always"),
    s.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
    s.PermissionOption(option_id="x", name="No", kind="reject_once"),
)


def options(*kinds: str) -> tuple[s.PermissionOption, ...]:
    return tuple(option for option in OPTIONS if option.kind in kinds)


async def asked(
    call: s.ToolCallUpdate | None = None,
    offered: tuple[s.PermissionOption, ...] = OPTIONS,
    **settings: Any,
) -> tuple[str | None, events.QuestionAsked, events.QuestionAnswered]:
    """Let an agent ask, and return the chosen option's id and what is on the log."""
    outcomes: list[s.RequestPermissionOutcome] = []

    async def script(turn: Turn) -> None:
        request = s.RequestPermissionRequest(
            session_id=turn.session_id,
            tool_call=call
            or s.ToolCallUpdate(tool_call_id="t1", title="rm -rf", kind="execute", raw_input={"a": 1}),
            options=offered,
        )
        outcomes.append((await turn.client.request_permission(request)).outcome)
        turn.say("Done")

    async with scripted(script, **settings) as agent:
        stream = agent.think().text("Go").stream(include={"question", "answer"})
        with anyio.fail_after(5):
            question, answer = [event async for event in stream]
    assert isinstance(question, events.QuestionAsked)
    assert isinstance(answer, events.QuestionAnswered)
    assert question.id == answer.id
    (outcome,) = outcomes
    return (outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else None), question, answer


async def test_the_default_is_to_deny() -> None:
    chosen, question, answer = await asked()
    assert chosen == "x"
    assert (question.title, question.tool_id) == ("rm -rf", "t1")
    assert question.options == ("Always", "Never", "Yes", "No")
    assert (answer.choice, answer.by, answer.why) == ("reject_once", "policy", 'permissions="deny"')


async def test_allow_allows_once() -> None:
    chosen, _, answer = await asked(permissions="allow")
    assert chosen == "y"
    assert (answer.choice, answer.by, answer.why) == ("allow_once", "policy", 'permissions="allow"')


async def test_allow_takes_what_there_is() -> None:
    chosen, _, _ = await asked(offered=options("reject_once", "allow_always"), permissions="allow")
    assert chosen == "a"


async def test_deny_without_an_option_for_it_cancels_the_question() -> None:
    chosen, _, answer = await asked(offered=options("allow_once", "allow_always"))
    assert chosen is None
    assert answer.choice is None
    assert "no option for 'deny'" in answer.why


@pytest.mark.parametrize(
    ("verdict", "offered", "expected"),
    [
        ("allow", OPTIONS, "y"),
        ("allow_always", OPTIONS, "a"),
        ("allow_always", options("allow_once", "reject_once"), "y"),
        ("deny", OPTIONS, "x"),
        ("deny", options("allow_once", "reject_always"), "n"),
        ("deny_always", OPTIONS, "n"),
        ("deny_always", options("reject_once"), "x"),
        (
            "allow",
            options("allow_always", "reject_once"),
            "x",
        ),  # once is not always: the handler has to say so
        ("allow", options("reject_always"), "n"),
    ],
)
async def test_the_handlers_verdict_is_said_by_the_kind_of_an_option(
    verdict: Any, offered: tuple[s.PermissionOption, ...], expected: str
) -> None:
    questions: list[PermissionQuestion] = []

    async def decide(question: PermissionQuestion) -> Any:
        questions.append(question)
        return verdict

    chosen, _, answer = await asked(offered=offered, permissions="ask", on_question=decide)
    assert chosen == expected
    assert answer.by == "handler"
    (question,) = questions
    assert (question.title, question.kind, question.tool_id, question.input) == (
        "rm -rf",
        "execute",
        "t1",
        {"a": 1},
    )
    assert question.options == tuple(option.kind for option in offered)


async def test_a_handler_that_leaves_it_open_denies() -> None:
    async def decide(question: PermissionQuestion) -> None:
        return None

    chosen, _, answer = await asked(permissions="ask", on_question=decide)
    assert (chosen, answer.by, answer.why) == ("x", "policy", "the handler left it open")


async def test_a_handler_that_fails_denies_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def decide(question: PermissionQuestion) -> Literal["allow"]:
        raise LookupError("no idea")

    chosen, _, answer = await asked(permissions="ask", on_question=decide)
    assert (chosen, answer.by, answer.why) == ("x", "handler", "the handler failed")
    assert "no idea" in caplog.text


@pytest.mark.parametrize("nonsense", [True, "yes", "allow_once", 3])
async def test_an_answer_that_is_no_verdict_denies(nonsense: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def decide(question: PermissionQuestion) -> Any:
        return nonsense

    chosen, _, answer = await asked(permissions="ask", on_question=decide)
    assert (chosen, answer.by) == ("x", "handler")
    assert "no verdict" in answer.why
    assert "no verdict" in caplog.text


async def test_a_call_without_a_title_and_kind_can_be_asked_about() -> None:
    async def decide(question: PermissionQuestion) -> Literal["allow"]:
        assert (question.title, question.kind) == ("", "other")
        return "allow"

    call = s.ToolCallUpdate(tool_call_id="t9")
    chosen, _, _ = await asked(call, permissions="ask", on_question=decide)
    assert chosen == "y"


async def test_a_cancelled_turn_answers_for_the_handler() -> None:
    waiting = anyio.Event()
    outcomes: list[object] = []

    async def decide(question: PermissionQuestion) -> None:
        waiting.set()
        await anyio.sleep_forever()

    async def script(turn: Turn) -> None:
        call = s.ToolCallUpdate(tool_call_id="t1")
        with anyio.CancelScope(shield=True):
            request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=OPTIONS)
            outcomes.append((await turn.client.request_permission(request)).outcome)

    async with scripted(script, permissions="ask", on_question=decide) as agent:
        stream = agent.think().text("Go").stream(include="all")
        with anyio.fail_after(5):
            await waiting.wait()
            stream.cancel()
            answers = [event async for event in stream if isinstance(event, events.QuestionAnswered)]
    assert outcomes == [s.CancelledPermissionOutcome()]
    assert [(answer.choice, answer.by) for answer in answers] == [(None, "cancel")]


async def test_a_question_between_the_turns_is_on_the_sessions_own_log() -> None:
    async def script(turn: Turn) -> None:
        turn.say("Done")

    handler = ScriptedAgent([script])
    async with scripted(agent=handler) as agent:
        async with agent.session() as session:
            await session.think().text("Go").stream().wait()
            call = s.ToolCallUpdate(tool_call_id="t1", title="late")
            request = s.RequestPermissionRequest(session_id=session.id, tool_call=call, options=OPTIONS)
            response = await handler.client.request_permission(request)
        assert response.outcome == s.SelectedPermissionOutcome(option_id="x")
        seen = [event async for event in session.events(include={"answer"})]
    assert len(seen) == 1


async def test_a_question_in_an_unknown_session_is_denied(caplog: pytest.LogCaptureFixture) -> None:
    handler = ScriptedAgent([])
    async with scripted(agent=handler, permissions="allow") as agent:
        del agent
        call = s.ToolCallUpdate(tool_call_id="t1")
        request = s.RequestPermissionRequest(session_id="who", tool_call=call, options=OPTIONS)
        response = await handler.client.request_permission(request)
    assert response.outcome == s.SelectedPermissionOutcome(option_id="x")
    assert "unknown session 'who'" in caplog.text


# Our own tools


def add(x: int) -> int:
    return x


async def permitted(turn: Turn, title: str | None, id_: str, **fields: Any) -> bool:
    tool_call = s.ToolCallUpdate(tool_call_id=id_, title=title, **fields)
    request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=tool_call, options=OPTIONS)
    outcome = (await turn.client.request_permission(request)).outcome
    assert isinstance(outcome, s.SelectedPermissionOutcome)
    return outcome.option_id == "y"


def server_of(turn: Turn) -> str:
    (server,) = turn.agent.sessions[-1].mcp_servers
    return server.name


async def test_our_own_tools_are_allowed_by_default() -> None:
    async def script(turn: Turn) -> None:
        assert await permitted(turn, f"mcp__{server_of(turn)}__add", "t1")
        assert await permitted(turn, f"mcp__{server_of(turn)}__return_result", "t2", raw_input={"result": 1})
        assert not await permitted(turn, f"mcp__{server_of(turn)}__other", "t3")
        turn.say("Done")
        await turn.returns(result=1)

    async with scripted(script) as agent:
        assert await agent.think(int).text("Go").tool(add).run() == 1


async def test_a_request_with_nothing_but_an_id_is_known_by_the_call_before_it() -> None:
    async def script(turn: Turn) -> None:
        title = f"mcp.{server_of(turn)}.add"
        raw: dict[str, object] = {"server": server_of(turn), "tool": "add", "arguments": {}}
        assert not await permitted(turn, None, "t1", kind="execute")
        turn.update(s.ToolCallStart(tool_call_id="t1", title=title, kind="execute", raw_input=raw))
        assert await permitted(turn, None, "t1", kind="execute")
        turn.update(s.ToolCallProgress(tool_call_id="t1", status="in_progress"))
        assert await permitted(turn, "Approve add", "t1")
        turn.update(s.ToolCallProgress(tool_call_id="t1", status="completed"))
        assert not await permitted(turn, None, "t1", kind="execute")  # ids are used again
        turn.update(s.ToolCallStart(tool_call_id="t2", title=title, kind="execute", raw_input=raw))
        turn.update(s.ToolCallStart(tool_call_id="t2", title="rm -rf /", kind="execute"))
        assert not await permitted(turn, None, "t2", kind="execute")
        turn.say("Done")

    async with scripted(script) as agent:
        assert await agent.think().text("Go").tool(add).run() == "Done"


async def test_the_servers_name_is_fit_for_every_agent_and_never_the_same() -> None:
    handler = ScriptedAgent([])
    async with scripted(agent=handler) as agent:
        for _ in range(3):
            async with agent.session():
                pass
    names = {server.name for request in handler.sessions for server in request.mcp_servers}
    assert len(names) == 3
    assert all(name.isalnum() and len(f"mcp__{name}__return_result") < 64 for name in names)
