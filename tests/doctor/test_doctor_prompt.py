"""What the doctor learns by a prompt, which it sends only where it may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from doctor.patients import check, examined, failed, statuses
from login.login_agent import LoginAgent
from scripted import Played, Proceed, Turn

from thinkwell.agents import find_agent
from thinkwell.doctor import diagnose
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from scripted import Script

    from thinkwell.doctor import Diagnosis

pytestmark = pytest.mark.virtual_time


async def returns(turn: Turn) -> None:
    turn.say("Here it is.")
    turn.update(s.UsageUpdate(used=12_000, size=200_000))
    await turn.returns(result=7)


async def asks_first(turn: Turn) -> None:
    """Ask for permission without a word of what for, and call nothing where it is denied."""
    call = s.ToolCallUpdate(tool_call_id="call-1")
    options = (
        s.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
        s.PermissionOption(option_id="no", name="No", kind="reject_once"),
    )
    request = s.RequestPermissionRequest(session_id=turn.session_id, tool_call=call, options=options)
    answer = await turn.client.request_permission(request)
    assert answer.outcome == s.SelectedPermissionOutcome(option_id="no")
    turn.say("I may not.")


async def fails(turn: Turn) -> None:
    raise RpcError(-32603, "Internal error: 401 invalid key")


async def silent(turn: Turn) -> None:
    await anyio.sleep_forever()


class TakesNoTools(Played):
    """Opens sessions without MCP servers alone."""

    async def open_session(self, request: s.NewSessionRequest, proceed: Proceed) -> object:
        if request.mcp_servers:
            raise RpcError(-32602, "no servers")
        return await super().open_session(request, proceed)


async def prompted(handler: Played) -> Diagnosis:
    return await examined(handler, prompt=True)


def answered(diagnosis: Diagnosis) -> tuple[str, str]:
    found = statuses(diagnosis)
    return found["answer"], found["typed result"]


async def test_an_agent_works_that_returns_a_typed_result() -> None:
    handler = Played([returns])
    diagnosis = await prompted(handler)
    assert (diagnosis.verdict, answered(diagnosis)) == ("works", ("ok", "ok"))
    assert len(handler.sent.prompts) == 1
    assert check(diagnosis, "answer").detail == (
        "it has ended its turn (end_turn), and said Here it is.; 12k/200k ctx"
    )
    assert check(diagnosis, "typed result").detail == "it has returned one, by our tool over acp"


async def test_an_agent_that_fetches_our_tools_only_in_a_turn_works() -> None:
    diagnosis = await prompted(Played([returns], lists_tools=False))
    assert (diagnosis.verdict, diagnosis.ways) == ("works", ("acp",))
    assert (
        check(diagnosis, "tools over acp").detail == "it fetches the list of tools in a turn, and not before"
    )
    assert statuses(diagnosis)["tools over stdio"] == "unknown"


async def test_an_agent_whose_typed_results_are_all_denied_does_not_work_for_them() -> None:
    """It has fetched the list of tools, so that without a prompt nothing of it shows."""
    assert (await examined(Played([asks_first]))).verdict == "unknown"
    diagnosis = await prompted(Played([asks_first]))
    assert (diagnosis.verdict, answered(diagnosis)) == ("does not", ("ok", "failed"))
    assert "that was denied: `permissions=` says what is allowed" in check(diagnosis, "typed result").detail
    assert diagnosis.table().endswith(
        "mine works for text, but not for typed results or tools: typed result.\n"
    )


@pytest.mark.parametrize(
    ("turn", "detail"),
    [
        (fails, "it answered with error -32603: Internal error: 401 invalid key"),
        (silent, "The run took longer than 300 seconds and was cancelled"),
    ],
    ids=["error", "silence"],
)
async def test_an_agent_whose_model_does_not_answer_does_not_work(turn: Script, detail: str) -> None:
    diagnosis = await prompted(Played([turn]))
    assert (diagnosis.verdict, answered(diagnosis)) == ("does not", ("failed", "skipped"))
    assert check(diagnosis, "answer").detail == detail


async def test_a_failure_that_the_agent_tells_as_text_is_no_answer() -> None:
    failed = {"codex": {"threadStatus": {"type": "systemError"}}}
    told = script.updates({"sessionUpdate": "session_info_update", "_meta": failed}).says("at capacity")
    async with ScriptedAgent(told, complete=False).connect() as transport:
        diagnosis = await diagnose(find_agent("codex"), transport=transport, prompt=True)
    assert answered(diagnosis) == ("failed", "skipped")
    assert check(diagnosis, "answer").detail == "it answered with error: at capacity"


async def test_a_login_that_is_missed_at_the_first_prompt() -> None:
    diagnosis = await prompted(LoginAgent("session/prompt"))
    assert diagnosis.login_wanted
    assert failed(diagnosis) == ["login"]
    assert "browser (Browser)" in check(diagnosis, "login").hint
    assert answered(diagnosis) == ("skipped", "skipped")


async def test_an_agent_that_takes_no_tools_is_asked_nothing() -> None:
    handler = TakesNoTools([returns])
    diagnosis = await prompted(handler)
    assert (diagnosis.verdict, answered(diagnosis)) == ("does not", ("skipped", "failed"))
    assert not handler.sent.prompts
    assert check(diagnosis, "typed result").detail == "it answered with error -32602: no servers"


async def test_nothing_is_prompted_where_no_session_is_opened() -> None:
    handler = LoginAgent("session/new")
    diagnosis = await prompted(handler)
    assert diagnosis.login_wanted
    assert answered(diagnosis) == ("skipped", "skipped")
    assert not handler.sent.prompts
