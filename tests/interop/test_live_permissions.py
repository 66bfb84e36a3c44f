"""Permissions: agents that this project did not write ask for commands that their models want to run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import anyio
import pytest

from interop.live import ASKING, TIMEOUT, shell
from interop.model_server import CallTool, ModelServer, Say
from thinkwell import (
    PermissionPolicy,
    PermissionQuestion,
    Rule,
    ThoughtCancelled,
    ThoughtStream,
    open_agent,
)
from thinkwell.events import QuestionAnswered, QuestionAsked
from thinkwell.questions import Answer, Question, wait_for_answer

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch
    from thinkwell import Session

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("recipe", ASKING, ids=lambda recipe: recipe.name),
]


@pytest.mark.scenario("permission denied")
async def test_commands_are_denied_by_default_even_with_our_name_in_them(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with open_agent(command=launch.command, env=launch.env, cwd=project) as agent:
            async with agent.session() as session:
                asked, answered = await _denied(session, recipe, models, "touch marker")
                assert (answered.id, answered.by) == (asked.id, "policy")
                assert answered.choice == "reject_once"
            server = _our_server(models)
            for name in (
                f"mcp__{server}__return_result",
                f"{server}_return_result",
                f"mcp.{server}.return_result",
                f"return_result ({server} MCP Server)",
            ):
                async with agent.session() as session:
                    # Quoted, since the last of them is no command otherwise.
                    await _denied(session, recipe, models, f"echo '{name}' > marker")
    assert list(project.iterdir()) == []


@pytest.mark.scenario("permission allowed", "permission cancelled")
async def test_questions_are_asked_about_commands_but_not_about_our_own_tools(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    questions: list[PermissionQuestion] = []
    answers: list[Answer | None] = []

    def answer(question: Question) -> Answer | None:
        assert isinstance(question, PermissionQuestion)
        questions.append(question)
        return answers.pop(0)

    def lookup(word: str) -> str:
        """Look up what a word means."""
        return word

    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent(
                command=launch.command,
                env=launch.env,
                cwd=project,
                permissions="ask",
                on_question=(answer, wait_for_answer),
            ) as agent,
            agent.session() as session,
        ):
            models.play(
                CallTool("lookup", {"word": "core"}), CallTool("return_result", {"result": 7}), Say("Done.")
            )
            own = session.think(int).text("How many?").tool(lookup).stream(include="all")
            assert await own.result == 7
            await own.wait()
            assert questions == []

            answers[:] = ["allow"]
            allowed = await _run(session, recipe, models, "touch allowed")
            assert allowed.result.exception() is None
            assert (project / "allowed").exists()
            (question,) = questions
            assert question.kind == "execute"
            assert question.title == "touch allowed"
            assert question.command == (None if recipe.hides_commands else "touch allowed")

            answers[:] = [None]  # left to whoever answers from outside, who may be the faster one
            models.play(shell(recipe, "touch outside"), Say("Done."))
            waiting = session.think().text("Again.").stream(include={"question", "answer"})
            asked = await anext(waiting.events(include={"question"}))
            assert isinstance(asked, QuestionAsked)
            assert [open_.id for open_ in waiting.view.questions] == [asked.id]
            waiting.answer(asked.id, "allow", by="the test")
            await waiting.wait()
            assert await _answers(waiting) == [("allow_once", "the test")]
            assert (project / "outside").exists()

            answers[:] = ["allow_session"]
            for _ in range(2):
                await _run(session, recipe, models, "touch remembered")
                (project / "remembered").unlink()
            assert [question.title for question in questions].count("touch remembered") == 1

            answers[:] = [None]
            models.play(shell(recipe, "touch cancelled"), Say("Never said."))
            cancelled = session.think().text("And again.").stream(include={"question", "answer"})
            await anext(cancelled.events(include={"question"}))
            cancelled.cancel()
            await cancelled.wait()
            assert isinstance(cancelled.result.exception(), ThoughtCancelled)
            assert await _answers(cancelled) == [(None, "cancel")]
            assert not (project / "cancelled").exists()
            assert agent.questions == ()


@pytest.mark.scenario("permission allowed")
async def test_a_policy_allows_a_command_where_the_agent_shows_it_in_the_arguments(
    recipe: AgentRecipe, launch: Launch, models: ModelServer, project: Path
) -> None:
    policy = PermissionPolicy(rules=(Rule("allow", command="touch *"),))
    with anyio.fail_after(TIMEOUT):
        async with open_agent(
            command=launch.command, env=launch.env, cwd=project, permissions=policy
        ) as agent:
            async with agent.session() as session:
                stream = await _run(session, recipe, models, "touch allowed")
                ((choice, by),) = await _answers(stream)
            shown = not recipe.hides_commands
            assert (choice, by) == ("allow_once" if shown else "reject_once", "policy")
            assert (project / "allowed").exists() == shown
            async with agent.session() as session:
                await _denied(session, recipe, models, "touch allowed; mkdir denied")
    assert not (project / "denied").exists()


async def _denied(
    session: Session, recipe: AgentRecipe, models: ModelServer, command: str
) -> tuple[QuestionAsked, QuestionAnswered]:
    """Have the agent want to run a command that is denied, and return question and answer."""
    stream = await _run(session, recipe, models, command)
    assert stream.view.stop_reason in ("end_turn", "cancelled")
    asked, answered = [event async for event in stream if isinstance(event, QuestionAsked | QuestionAnswered)]
    assert isinstance(asked, QuestionAsked)
    assert isinstance(answered, QuestionAnswered)
    assert answered.choice == "reject_once"
    return asked, answered


async def _run(
    session: Session, recipe: AgentRecipe, models: ModelServer, command: str
) -> ThoughtStream[str]:
    """Have the agent run a command if it may, and return the run when it is over."""
    models.skip()
    models.play(shell(recipe, command), Say("Done."))
    stream = session.think().text("Run it.").stream(include="all")
    await stream.wait()
    return stream


async def _answers(stream: ThoughtStream[str]) -> list[tuple[str | None, str]]:
    return [(event.choice, event.by) async for event in stream if isinstance(event, QuestionAnswered)]


def _our_server(models: ModelServer) -> str:
    """Return the name of our MCP server, as the model knows it."""
    asked = "".join(request.body.decode() for request in models.requests)
    found = re.search("thinkwell[0-9a-f]{12}", asked)
    assert found is not None
    return found[0]
