"""An agent asks, and a person answers through the channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from kept_channels import Asked, Streamed, delivered
from scripted import Turn, scripted

from thinkwell import replay
from thinkwell.channels import DeliverySettings, deliver
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.channels import ChannelQuestion

pytestmark = pytest.mark.virtual_time


ASKS = script.asks("rm -rf build", kind="execute", input={"command": "rm -rf build", "why": "old"}).says(
    "Done."
)


async def test_a_permission_is_asked_with_the_whole_command() -> None:
    channel = Asked("y")
    delivery = await delivered(ASKS, channel)
    (question,) = channel.questions
    assert question.code == 'rm -rf build\n\n{\n  "why": "old"\n}'
    assert "asks for permission: rm -rf build" in question.text
    assert [(choice.id, choice.label, choice.style) for choice in question.choices] == [
        ("y", "once", "accept"),
        ("n", "no", "reject"),
    ]
    assert not question.takes_text
    assert question.url is None
    assert channel.outcomes == [(question.id, "allowed by human: it was chosen")]
    assert (delivery.status, channel.texts) == ("completed", ["Done."])


async def test_a_question_comes_behind_the_text_before_it() -> None:
    class Both(Asked, Streamed):
        pass

    channel = Both("y")
    await delivered(script.says("I clean up.").asks("Sure?").says("Done."), channel)
    methods = [method for method, _ in channel.told]
    assert methods[:3] == ["start", "chunk", "ask"]


async def test_what_is_asked_is_told_of_when_it_is_done() -> None:
    class Both(Asked, Streamed):
        pass

    for answer, statuses in (("y", ["Using: run rm -rf build"]), ("n", [])):
        channel = Both(answer)
        await delivered(ASKS, channel)
        assert channel.statuses == statuses


async def test_a_permission_can_be_denied_where_no_option_says_so() -> None:
    channel = Asked("n")
    await delivered(script.asks("Look?", options=["allow_once", "allow_always"]), channel)
    assert [choice.style for choice in channel.questions[0].choices] == ["accept", "accept", "reject"]
    assert "it was chosen" in channel.outcomes[0][1]


async def test_a_change_is_shown_whole() -> None:
    change = script.uses(
        "edit",
        kind="edit",
        path="/p/a.py",
        old_text="a\nb\n",
        new_text="a\nc\n",
        status="in_progress",
        id="t",
    )
    channel = Asked("y")
    await delivered(change.asks("edit", kind="edit", id="t"), channel)
    assert channel.questions[0].code == "Change of /p/a.py:\n@@ line 2\n- b\n+ c"


async def test_what_cannot_be_shown_whole_can_only_be_denied() -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    change = script.uses("edit", kind="edit", path="/p/a.py", new_text=text, status="in_progress", id="t")
    channel = Asked("n")
    await delivered(change.asks("edit", kind="edit", id="t"), channel)
    (question,) = channel.questions
    assert len(question.code) == 50_000
    assert question.text.endswith("of which 50,000 are shown, so it can only be denied here.")
    assert [choice.style for choice in question.choices] == ["reject"]


async def test_an_answer_that_is_none_is_asked_for_again() -> None:
    channel = Asked("maybe", "y")
    await delivered(ASKS, channel)
    assert len(channel.questions) == 2
    assert channel.texts == ["Done."]


async def test_a_channel_without_an_answer_leaves_the_question_to_others() -> None:
    channel = Asked(None)
    async with ScriptedAgent(ASKS).open(permissions="ask") as agent, anyio.create_task_group() as tasks:
        stream = agent.think().text("Go.").stream()

        async def answer() -> None:
            await channel.until("ask")
            await anyio.wait_all_tasks_blocked()
            stream.answer(stream.view.questions[0].id, True, by="the owner")

        tasks.start_soon(answer)
        await deliver(stream, channel, "ann")
    assert channel.outcomes[0][1].startswith("allowed by the owner")
    assert channel.texts == ["Done."]


async def test_a_question_that_is_answered_elsewhere_is_asked_no_more() -> None:
    channel = Asked()
    async with ScriptedAgent(ASKS).open(permissions="ask") as agent, anyio.create_task_group() as tasks:
        stream = agent.think().text("Go.").stream()

        async def answer() -> None:
            await channel.until("ask")
            stream.answer(stream.view.questions[0].id, False, by="the owner")

        tasks.start_soon(answer)
        await deliver(stream, channel, "ann")
    assert channel.outcomes[0][1].startswith("denied by the owner")
    assert channel.texts == ["Done."]


async def test_a_question_that_waits_ends_with_its_deadline() -> None:
    channel = Asked()
    await delivered(ASKS, channel, DeliverySettings(stalled_after=10), seconds=600)
    assert channel.questions[0].deadline == pytest.approx(600, abs=1)
    assert "deadline" in channel.outcomes[0][1]


async def test_after_a_question_that_was_denied_late_the_agent_has_time_to_go_on() -> None:
    told = script.asks("rm -rf build", expect="reject_once").pauses(5).says("Done.")
    delivery = await delivered(told, Asked(), DeliverySettings(stalled_after=10), seconds=600)
    assert (delivery.status, delivery.text) == ("completed", "Done.")


async def test_a_question_that_cannot_be_answered_here_is_shown_and_ends_with_its_deadline() -> None:
    channel = Streamed()
    settings = DeliverySettings(stalled_after=10)
    delivery = await delivered(ASKS, channel, settings, seconds=600)
    assert channel.statuses == ["Waiting for an answer: rm -rf build"]
    assert (delivery.status, delivery.text) == ("completed", "Done.")
    assert delivery.metrics.total == pytest.approx(600, abs=1)


async def test_a_channel_that_fails_to_ask_leaves_the_question_open() -> None:
    channel = Asked("y", fails={"ask": 1})
    delivery = await delivered(ASKS, channel, seconds=60)
    assert [str(error) for error in delivery.channel_errors] == ["ask"]
    assert "deadline" in channel.outcomes[0][1]


async def test_a_channel_that_fails_to_be_told_of_the_outcome_harms_nothing() -> None:
    channel = Asked("y", fails={"outcome": 1})
    delivery = await delivered(ASKS, channel)
    assert [str(error) for error in delivery.channel_errors] == ["outcome"]
    assert channel.texts == ["Done."]


async def test_a_run_that_is_cancelled_withdraws_its_question() -> None:
    channel = Asked()
    async with (
        ScriptedAgent(script.asks("Sure?")).open(permissions="ask") as agent,
        anyio.create_task_group() as tasks,
    ):
        stream = agent.think().text("Go.").stream()

        async def cancel() -> None:
            await channel.until("ask")
            stream.cancel()

        tasks.start_soon(cancel)
        await deliver(stream, channel, "ann")
    assert channel.outcomes[0][1].startswith("withdrawn")


async def test_another_answer_may_be_faster() -> None:
    class Slow(Asked):
        async def ask(self, user_id: str, question: Any) -> str | None:
            answer = await super().ask(user_id, question)
            stream.answer(stream.view.questions[0].id, True, by="the owner")
            return answer

    channel = Slow("n")
    async with ScriptedAgent(ASKS).open(permissions="ask") as agent:
        stream = agent.think().text("Go.").stream()
        await deliver(stream, channel, "ann")
    assert channel.outcomes[0][1].startswith("allowed by the owner")


# Forms, and web pages

FORM = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "enum": ["red", "blue"], "title": "Color"},
        "many": {"type": "integer", "minimum": 1, "maximum": 9},
        "sure": {"type": "boolean", "default": True},
        "note": {"type": "string", "default": "none"},
    },
    "required": ["color", "many"],
}


async def test_a_form_is_filled_in_field_by_field() -> None:
    channel = Asked("blue", "12", "3", "no", ":leave")
    filled = {"color": "blue", "many": 3, "sure": False, "note": "none"}
    delivery = await delivered(script.asks_form("How?", FORM, expect=filled).says("Done."), channel)
    color, wrong, many, sure, note = channel.questions
    assert "wants to know: How?" in color.text
    assert [choice.id for choice in color.choices] == ["red", "blue", ":skip"]
    assert not color.takes_text
    assert (many.id, many.takes_text, many.hint) == (wrong.id, True, "whole number, 1 to 9, required")
    assert many.text.splitlines()[0] != wrong.text.splitlines()[0]  # what was wrong with it
    assert [choice.id for choice in sure.choices] == ["yes", "no", ":leave", ":skip"]
    assert [choice.label for choice in note.choices] == ["leave it at none", "skip the form"]
    assert channel.outcomes[0][1].startswith("accepted by human")
    assert delivery.status == "completed"


async def test_a_form_can_be_skipped() -> None:
    channel = Asked("blue", ":skip")
    await delivered(script.asks_form("How?", FORM, expect="decline").says("Done."), channel)
    assert channel.outcomes[0][1].startswith("declined by human: the form was skipped")


async def test_a_choice_ends_a_form_that_takes_a_text_instead() -> None:
    form = {
        "type": "object",
        "properties": {"pick": {"type": "string", "enum": ["a", "b"]}, "other": {"type": "string"}},
    }
    channel = Asked("a")
    await delivered(script.asks_form("Which?", form, expect={"pick": "a"}).says("Done."), channel)
    assert len(channel.questions) == 1
    channel = Asked(":leave", "neither")
    await delivered(script.asks_form("Which?", form, expect={"other": "neither"}).says("Done."), channel)
    assert [question.takes_text for question in channel.questions] == [False, True]


async def two_questions(turn: Turn) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(2):
            call = s.ToolCallUpdate(tool_call_id=f"t{number}", title="look")
            tasks.start_soon(turn.client.request_permission, permission(turn.session_id, call))


async def test_questions_that_come_at_once_are_put_in_their_order() -> None:
    for _ in range(20):  # else trio might begin them in their order by chance
        channel = Asked("y", "y")
        async with scripted(two_questions, permissions="ask") as agent:
            await deliver(agent.think().text("Go.").stream(), channel, "ann")
        assert [question.id for question in channel.questions] == ["q1", "q2"]


async def log_in(turn: Turn) -> None:
    page = s.ElicitationUrlMode(
        session_id=turn.session_id,
        message="Log in",
        elicitation_id="e1",
        url="https://login.example/start?x=1",
    )
    assert (await turn.client.create_elicitation(page)).action == "accept"


async def test_two_questions_are_asked_at_once() -> None:
    channel = Asked()
    async with scripted(two_questions, permissions="ask") as agent, anyio.create_task_group() as tasks:
        stream = agent.think().text("Go.").stream()

        async def answer() -> None:
            while channel.calls["ask"] < 2:
                await channel.changed.wait()
            for question in stream.view.questions:
                stream.answer(question.id, True)

        tasks.start_soon(answer)
        await deliver(stream, channel, "ann")
    assert len({question.id for question in channel.questions}) == 2
    assert len(channel.outcomes) == 2


async def test_a_web_page_is_shown_with_where_it_leads() -> None:
    channel = Asked("y")
    async with scripted(log_in, permissions="ask") as agent:
        await deliver(agent.think().text("Go.").stream(), channel, "ann")
    (question,) = channel.questions
    assert question.url == "https://login.example/start?x=1"
    assert "It leads to login.example." in question.text
    assert [choice.style for choice in question.choices] == ["accept", "reject"]
    assert channel.outcomes[0][1].startswith("accepted by human")


async def test_a_replay_asks_no_questions(tmp_path: Path) -> None:
    channel = Asked("y")
    async with ScriptedAgent(ASKS).open(permissions="ask", record=tmp_path / "run.ndjson") as agent:
        await deliver(agent.think().text("Go.").stream(), Asked("y"), "ann")
    await deliver(replay(tmp_path / "run.ndjson", speed=1000), channel, "ann")
    assert channel.told == [("send", "Done.")]


async def test_the_files_of_a_call_are_named_where_nothing_else_tells() -> None:
    channel = Asked("y")
    await delivered(script.asks("look", kind="read", path="/p/secret.txt"), channel)
    assert "/p/secret.txt" in channel.questions[0].text


async def test_a_delivery_is_over_when_the_channel_knows_every_outcome() -> None:
    class Slow(Asked):
        async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
            await anyio.sleep(5)
            await super().on_question_end(user_id, question, outcome)

    channel = Slow("y")
    await delivered(ASKS, channel)
    assert [method for method, _ in channel.told] == ["ask", "send", "outcome"]


async def many_files(turn: Turn) -> None:
    call = s.ToolCallUpdate(
        tool_call_id="t",
        title="look",
        content=(s.Content(content=s.TextContent(text="so many")),),
        locations=tuple(s.ToolCallLocation(path=f"/p/{number}.py") for number in range(103)),
    )
    await turn.client.request_permission(permission(turn.session_id, call))


async def test_of_many_files_it_is_said_how_many_are_not_named() -> None:
    channel = Asked("y")
    async with scripted(many_files, permissions="ask") as agent:
        await deliver(agent.think().text("Go.").stream(), channel, "ann")
    assert channel.questions[0].text.endswith("/p/99.py\n… and 3 more files")
