"""What must not be allowed, whatever an agent shows and when, and what must not be left open."""

from __future__ import annotations

import functools
from typing import Any

import anyio
import pytest
from asking import OPTIONS, ask, opened, options, permission
from scripted import Played, Proceed, Turn, scripted

from thinkwell import Answer, Budget, Question, ThoughtCancelled, ThoughtStream, events
from thinkwell_acp import schema as s


def own_title(turn: Turn) -> str:
    return f"mcp__{turn.server}__return_result"


async def permitted(turn: Turn, id_: str, **fields: Any) -> bool:
    call = s.ToolCallUpdate(tool_call_id=id_, **fields)
    outcome = (await turn.client.request_permission(permission(turn.session_id, call))).outcome
    assert isinstance(outcome, s.SelectedPermissionOutcome)
    return outcome.option_id == "y"


async def test_an_id_that_a_cancelled_turn_left_open_is_not_ours_in_the_next() -> None:
    shown, seen = anyio.Event(), list[bool]()

    async def first(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="call_1", title=own_title(turn), kind="other", raw_input={}))
        shown.set()
        await anyio.sleep_forever()

    async def second(turn: Turn) -> None:
        seen.append(await permitted(turn, "call_1"))
        rm = {"command": "rm -rf /"}
        seen.append(await permitted(turn, "call_1", title="rm -rf /", kind="execute", raw_input=rm))
        turn.say("Done")

    async with scripted(first, second) as agent, agent.session() as session:
        stream = session.think(int).text("Go").stream()
        with anyio.fail_after(30):
            await shown.wait()
            stream.cancel()
            await stream.wait()
            await session.think().text("Go on").run()
    assert seen == [False, False]


@pytest.mark.parametrize(
    "foreign",
    [
        {"title": "rm -rf /", "kind": "execute", "raw_input": {"command": "rm -rf /"}},
        {"title": "rm -rf /", "kind": "other"},
        {"title": "x", "meta": {"claudeCode": {"toolName": "Bash"}}},
    ],
)
async def test_a_later_title_makes_no_foreign_call_ours(foreign: dict[str, Any]) -> None:
    seen: list[bool] = []

    async def script(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t1", **foreign))
        seen.append(await permitted(turn, "t1", title=own_title(turn)))
        turn.update(s.ToolCallProgress(tool_call_id="t1", title=own_title(turn), kind="other", raw_input={}))
        seen.append(await permitted(turn, "t1", title=own_title(turn)))
        await turn.returns(result=1)

    async with scripted(script) as agent:
        assert await agent.think(int).text("Go").run() == 1
    assert seen == [False, False]


@pytest.mark.parametrize(
    "doubt",
    [
        {"kind": "execute"},
        {"raw_input": {"command": "rm -rf /"}},
        {"meta": {"claudeCode": {"toolName": "Bash"}}},
        {"name": "Bash"},
        {"locations": (s.ToolCallLocation(path="/etc/passwd"),)},
        {"content": (s.Diff(path="/etc/passwd", new_text=""),)},
    ],
)
async def test_a_known_call_of_ours_is_ours_until_something_speaks_against_it(doubt: dict[str, Any]) -> None:
    seen: list[bool] = []

    async def script(turn: Turn) -> None:
        turn.update(s.ToolCallStart(tool_call_id="t1", title=own_title(turn), kind="other", raw_input={}))
        seen.append(await permitted(turn, "t1", title="Approve return_result"))
        seen.append(await permitted(turn, "t1", **doubt))
        seen.append(await permitted(turn, "t1"))
        await turn.returns(value=1, result=1)

    async with scripted(script) as agent:
        await agent.think(int).text("Go").run()
    assert seen == [True, False, False]


async def test_titles_do_not_hide_calls_from_a_budget() -> None:
    async def script(turn: Turn) -> None:
        for number in range(5):
            id_ = f"t{number}"
            turn.update(s.ToolCallStart(tool_call_id=id_, title="ls", kind="execute"))
            turn.update(s.ToolCallProgress(tool_call_id=id_, title=own_title(turn)))
        await turn.returns(result=1)

    async with scripted(script) as agent:
        budget = Budget(max_tool_calls=5)
        await agent.think(int).text("Go").run(budget=budget)
        assert budget.spent.tool_calls == 5


class AsksEarly(Played):
    """Asks whether to trust the folder, before it answers `session/new`."""

    def __init__(self, scope: dict[str, Any]) -> None:
        super().__init__([self.done])
        self.scope = scope
        self.told: list[Any] = []

    async def done(self, turn: Turn) -> None:
        turn.say("Done")

    async def open_session(self, request: Any, proceed: Proceed) -> Any:
        schema = s.ElicitationSchema(properties={})
        form = s.ElicitationFormMode(**self.scope, message="Trust this folder?", requested_schema=schema)
        with anyio.CancelScope(shield=True):
            self.told.append((await self.client.create_elicitation(form)).action)
        return await super().open_session(request, proceed)


SCOPES: list[dict[str, Any]] = [{"session_id": "session-1"}, {"request_id": 2}]


@pytest.mark.parametrize("scope", SCOPES)
async def test_what_is_asked_before_the_session_is_there_is_the_runs(scope: dict[str, Any]) -> None:
    handler = AsksEarly(scope)
    async with scripted(agent=handler, permissions="ask") as agent:
        stream = agent.think().text("Go").stream(include={"question", "answer"})
        with anyio.fail_after(30):
            question = await opened(stream)
            assert [view.id for view in stream.view.questions] == [question.id]
            stream.answer(question.id, "accept")
            assert await stream.result == "Done"
    assert handler.told == ["accept"]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("how", ["cancel", "leave"])
async def test_and_ends_with_it(scope: dict[str, Any], how: str) -> None:
    handler = AsksEarly(scope)
    with anyio.fail_after(30):
        async with scripted(agent=handler, permissions="ask") as agent:
            stream = agent.think().text("Go").stream(include={"question", "answer"})
            question = await opened(stream)
            if how == "cancel":
                stream.cancel()
                await stream.wait()
                assert agent.questions == ()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        answers = [event async for event in stream if isinstance(event, events.QuestionAnswered)]
    assert [(answer.id, answer.by) for answer in answers] == [(question.id, "cancel")]


@pytest.mark.virtual_time
async def test_the_clock_for_silence_stands_still_meanwhile() -> None:
    async def slow(question: Question) -> Answer:
        await anyio.sleep(100)
        return "accept"

    handler = AsksEarly({"session_id": "session-1"})
    async with scripted(agent=handler, permissions="ask", on_question=slow) as agent:
        assert await agent.think().text("Go").run(idle_timeout=10) == "Done"


async def test_what_is_allowed_for_the_session_is_not_allowed_for_good() -> None:
    async def handler(question: Question) -> Answer:
        return "allow_session"

    offered = options("allow_always", "reject_once")
    asked = await ask(
        *[functools.partial(permission, offered=offered)] * 2, permissions="ask", on_question=handler
    )
    assert [response.outcome.option_id for response in asked.told] == ["x", "x"]
    answers = [event for event in asked.events if isinstance(event, events.QuestionAnswered)]
    assert [answer.by for answer in answers] == ["handler", "remembered"]


@pytest.mark.parametrize("by", ["policy", "cancel", "deadline"])
async def test_the_name_in_a_reply_changes_nothing(by: str) -> None:
    async def meanwhile(stream: ThoughtStream[Any]) -> None:
        question = await opened(stream)
        stream.answer(question.id, "allow", by=by)

    once = functools.partial(permission, offered=OPTIONS)
    assert (await ask(once, permissions="ask", meanwhile=meanwhile)).choice == "y"
    always = functools.partial(permission, offered=options("allow_always", "reject_once"))
    assert (await ask(always, permissions="ask", meanwhile=meanwhile)).choice == "x"
