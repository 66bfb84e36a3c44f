"""Why a run has failed, in words for those who have asked for it: nothing of Python, and what they can do."""

from __future__ import annotations

import logging
import re
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from scripted import Played, scripted
from web_stage import end_of, scripted_agent, served, started, watched

from thinkwell import Budget
from thinkwell.testing import ScriptedAgent, script, virtual_backend
from thinkwell.web import ImagePart, RunServer, ServedAgent, served_agent
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import AUTH_REQUIRED

if TYPE_CHECKING:
    from pathlib import Path

    from scripted import Turn
    from web_stage import Script

    from thinkwell.journal import RunRecord
    from thinkwell.testing import Backend
    from thinkwell.web import ShownError

PYTHON = re.compile(r"[`_=()\\/]|\bopen_agent\b|\bBudget\b|\bNone\b")
"""What no caller wants to read."""


async def failure(agent: ServedAgent, prompt: str = "Go.", **request: Any) -> ShownError:
    """Have a run that fails, and return what the end says."""
    async with RunServer({"a": agent}) as server:
        run = await started(server, prompt, **request)
        return await failure_of(server, run)


async def failure_of(server: RunServer, run: RunRecord) -> ShownError:
    with anyio.fail_after(4000):
        end = end_of(await watched(server, run.id))
    assert (end.status, end.result) == ("failed", None)
    assert end.error is not None
    assert not PYTHON.search(end.error.message), end.error.message
    return end.error


TYPED = {"type": "object", "properties": {"lines": {"type": "integer"}}, "required": ["lines"]}


def ends(stop_reason: str) -> Script:
    async def play(turn: Turn) -> str:
        turn.say("I would rather not.")
        return stop_reason

    return play


# Agents that are programs


async def test_an_agent_that_is_not_there() -> None:
    error = await failure(served_agent(command=["there-is-no-such-program"]))
    assert (error.name, error.message) == (
        "AgentNotFound",
        (
            "the agent's program is not installed on the server; "
            "the operator of the server finds more in its log"
        ),
    )


async def test_an_agent_that_ends_in_the_middle_of_a_run(tmp_path: Path) -> None:
    command = ScriptedAgent(script.says("I beg").crashes(3)).program(tmp_path)
    error = await failure(served_agent(command=command))
    assert (error.name, error.message) == (
        "AgentExited",
        "the agent's program has ended in the middle of the run; start the run again",
    )


@pytest.mark.parametrize("shown", [False, True])
async def test_what_a_program_wrote_to_standard_error_is_for_those_who_may_read_it(shown: bool) -> None:
    key = "sk-ant-api03-Zk3bV9qLm2XyT7wR5uP1"
    dies = f"import sys; sys.exit('in /home/ada: \\x1b[31mno model\\x1b[0m, key {key}')"
    error = await failure(served_agent(command=[sys.executable, "-c", dies], show_stderr=shown))
    assert error.exit_code == 1
    assert error.stderr.startswith("in /home/ada: no model, key ") is shown
    assert "sk-ant" not in error.stderr


async def test_an_agent_that_is_no_agent() -> None:
    error = await failure(served_agent(command=["true"]))
    assert (error.name, error.message) == (
        "AgentStartFailed",
        "the agent could not be started; the operator of the server finds more in its log",
    )


async def test_an_agent_that_needs_a_login() -> None:
    async def offer(_request: object, _proceed: object) -> s.InitializeResponse:
        browser = s.AuthMethodAgent(id="browser", name="In the browser")
        return s.InitializeResponse(protocol_version=1, auth_methods=(browser,))

    handler = Played(
        answers={"initialize": offer},
        fails_at={"session/new": RpcError(AUTH_REQUIRED, "Authentication required")},
    )
    agent = ServedAgent(open=lambda policy: scripted(agent=handler, permissions=policy))
    error = await failure(agent)
    assert (error.name, error.message) == (
        "LoginRequired",
        "the agent on the server has to be logged in first; the operator of the server finds more in its log",
    )


# Limits, in virtual time


@pytest.fixture(params=["asyncio", "trio"])
def virtual(request: pytest.FixtureRequest) -> Backend:
    return virtual_backend(request.param)


async def hangs(turn: Turn) -> None:
    turn.say("I begin.")
    await anyio.sleep_forever()


class TestLimits:
    @pytest.fixture
    def anyio_backend(self, virtual: Backend) -> Backend:
        return virtual

    async def test_time(self) -> None:
        agent, _ = scripted_agent(hangs)
        error = await failure(agent, timeout=90.0)
        assert (error.name, error.message) == (
            "ThoughtTimeout",
            "the run has taken longer than 90 seconds, and was cancelled",
        )

    async def test_silence(self) -> None:
        agent, _ = scripted_agent(hangs, idle_timeout=300.0)
        error = await failure(agent)
        assert (error.name, error.message) == (
            "ThoughtTimeout",
            "nothing was heard of the agent for 300 seconds, and the run was cancelled",
        )

    async def test_a_budget(self) -> None:
        agent, _ = scripted_agent(hangs, budget=lambda: Budget(max_seconds=60), idle_timeout=None)
        error = await failure(agent)
        assert (error.name, error.message) == (
            "BudgetExceeded",
            "the budget of the run is used up: 60 of 60 seconds",
        )

    async def test_an_agent_that_never_sees_the_tool_for_results(self) -> None:
        handler = Played([ends("end_turn")], lists_tools=False)
        agent = ServedAgent(open=lambda policy: scripted(agent=handler, permissions=policy))
        error = await failure(agent, output=TYPED)
        assert error.name == "ToolsNotSeen"
        assert error.message.startswith("the agent has never asked for the tool that takes results; ")


# Turns without a result


@pytest.mark.parametrize(
    ("stop_reason", "message"),
    [
        ("refusal", "the agent has refused"),
        (
            "max_tokens",
            "there is no result: the model ran out of tokens; ask for less, or for a smaller result",
        ),
        (
            "end_turn",
            "there is no result: the agent has ended its turn without one; say in the prompt what it is",
        ),
    ],
)
async def test_a_turn_without_a_result(stop_reason: str, message: str) -> None:
    agent, _ = scripted_agent(ends(stop_reason))
    error = await failure(agent, output=TYPED)
    assert error.message == f"{message}. It said: I would rather not."


async def test_a_result_that_does_not_fit() -> None:
    async def wrong(turn: Turn) -> None:
        await turn.returns(lines="three")

    agent, _ = scripted_agent(wrong)
    error = await failure(agent, output=TYPED)
    assert error.name == "ResultInvalid"
    assert error.message.startswith("the agent has given no result that fits, in 2 attempts:\n- ")


async def test_what_was_denied_may_be_why() -> None:
    async def ask(turn: Turn) -> str:
        for _ in range(4):
            await turn.client.request_permission(permission(turn.session_id))
        return "cancelled"

    agent, _ = scripted_agent(ask, permissions={"deny": "deny"})
    error = await failure(agent)
    assert error.name == "ResultMissing"
    assert error.message.startswith(
        "there is no result: the agent has cancelled its turn, as some do when something is denied. It was "
        "denied “"
    )
    assert error.message.endswith("” and 1 more")


async def test_an_agent_that_takes_no_pictures() -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(8)
    agent, _ = scripted_agent(hangs)
    async with RunServer({"a": agent}) as server:
        run = await started(server, (ImagePart(data=png),))  # type: ignore[arg-type]
        error = await failure_of(server, run)
    assert (error.name, error.message) == (
        "CapabilityMissing",
        "the agent does not take what was asked for; it does not advertise promptCapabilities.image",
    )


async def test_an_agent_without_the_model_that_its_operator_names() -> None:
    agent, _ = scripted_agent(hangs, models=("huge",))
    async with RunServer({"a": agent}) as server:
        error = await failure_of(server, await started(server))
    assert error.name == "ModelNotOffered"
    assert error.message.startswith("the agent does not offer the model 'huge'; the operator")


async def test_the_log_has_what_the_operator_can_do(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "thinkwell"):
        await failure(served_agent(command=["there-is-no-such-program"]))
    assert "there-is-no-such-program" in caplog.text


async def test_the_log_keeps_the_lines_of_an_error_apart(caplog: pytest.LogCaptureFixture) -> None:
    program = [sys.executable, "-c", "import sys; sys.exit('one\\ntwo')"]
    with caplog.at_level(logging.WARNING, "thinkwell"):
        await failure(served_agent(command=program))
    (record,) = [each for each in caplog.records if "failed" in each.message]
    assert "one | two" in record.message
    assert "\n" not in record.message


async def test_an_agent_writes_no_lines_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def forge(turn: Turn) -> None:
        raise RpcError(-32603, "no\nWARNING thinkwell: forged \x1b[31m")

    async with served(forge) as stage:
        run = await stage.start()
        await stage.ended(run.id)
    (message,) = [record.getMessage() for record in caplog.records if run.id in record.getMessage()]
    assert "forged" in message
    assert "\n" not in message
    assert "\x1b" not in message
