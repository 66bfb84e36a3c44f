"""Tools that ask something themselves, as an agent would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from thinkwell import ToolContext, ToolError, tool
from thinkwell import events as ev
from thinkwell.questions import FormField, Question
from thinkwell.testing import ScriptedAgent, script

if TYPE_CHECKING:
    from thinkwell.tools import ToolResult

FIELDS = (FormField(name="colour", type="string", required=True),)


async def paint(thing: str, context: ToolContext) -> str:
    """Paint something."""
    values = await context.ask(f"What colour for the {thing}?", FIELDS)
    return "left as it is" if values is None else f"painted {values['colour']}"


PAINTS = script.calls("paint", {"thing": "door"}, expect_error=None).says("Done")


@pytest.mark.parametrize("permissions", ["deny", "ask", "allow"])
async def test_a_tool_asks_and_a_program_answers(permissions: Any) -> None:
    played = ScriptedAgent(PAINTS)

    async def reviewer(question: Question) -> None:
        raise AssertionError(question)

    handlers: dict[str, Any] = {} if permissions == "deny" else {"on_question": reviewer}
    async with played.open(permissions=permissions, **handlers) as agent:
        stream = agent.think().text("Go").tool(paint).stream(include="all")
        with anyio.fail_after(30):
            async for event in stream:
                if isinstance(event, ev.QuestionAsked):
                    assert (event.asks, event.title, event.fields) == (
                        "form",
                        "What colour for the door?",
                        FIELDS,
                    )
                    stream.answer(event.id, {"colour": "blue"}, by="ada")
            await stream.result
    assert played.sent.results[0].text == "painted blue"
    (answer,) = stream.view.answers
    assert (answer.choice, answer.by) == ("accept", "ada")


async def test_an_answer_that_declines_gives_nothing() -> None:
    played = ScriptedAgent(PAINTS)
    async with played.open() as agent:
        stream = agent.think().text("Go").tool(paint).stream(include="all")
        with anyio.fail_after(30):
            async for event in stream:
                if isinstance(event, ev.QuestionAsked):
                    stream.answer(event.id, "decline")
            await stream.result
    assert played.sent.results[0].text == "left as it is"


async def test_a_form_without_required_values_may_be_accepted_as_it_is() -> None:
    given: list[object] = []

    async def confirm(context: ToolContext) -> str:
        given.append(await context.ask("Shall it go on?", ()))
        return "yes"

    async with ScriptedAgent(script.calls("confirm")).open() as agent:
        stream = agent.think().text("Go").tool(confirm).stream(include="all")
        with anyio.fail_after(30):
            async for event in stream:
                if isinstance(event, ev.QuestionAsked):
                    stream.answer(event.id, "accept")
            await stream.result
    assert given == [{}]


async def test_a_cancelled_run_withdraws_what_a_tool_asks() -> None:
    async with ScriptedAgent(PAINTS, complete=False).open() as agent:
        stream = agent.think().text("Go").tool(paint).stream(include="all")
        with anyio.fail_after(30):
            async for event in stream:
                if isinstance(event, ev.QuestionAsked):
                    stream.cancel()
            await stream.wait()
    assert stream.view.questions == ()
    assert [answer.by for answer in stream.view.answers] == ["cancel"]


async def test_outside_of_a_run_no_question_can_be_asked() -> None:
    context = ToolContext("s1", lambda done, total, message: None)
    with pytest.raises(ToolError, match="There is no one to ask"):
        await context.ask("Really?", ())
    result: ToolResult = await tool(paint).call({"thing": "door"}, context)
    assert result.is_error
