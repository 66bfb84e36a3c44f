"""What an agent reports of its model service becomes an error of a class that says what to do."""

from __future__ import annotations

import datetime as dt
import pickle
from contextlib import asynccontextmanager
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import pytest
from scripted import playing
from traced import TracedAgent

from thinkwell import (
    AgentReported,
    ContextFull,
    LoginExpired,
    LoginRequired,
    ModelNotFound,
    Overloaded,
    QuotaExhausted,
    ThinkwellError,
    open_agent,
    replay,
)
from thinkwell.agents import AgentProfile, KnownError, Program, find_agent
from thinkwell.listen import Handlers
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from thinkwell import Agent
    from thinkwell.testing import Script

REPORTED = [
    ("claude-agent-acp-error-429", Overloaded, "Request rejected (429)"),
    ("claude-agent-acp-error-529", Overloaded, "529 Overloaded"),
    ("claude-agent-acp-error-credit", QuotaExhausted, "Credit balance is too low"),
    ("claude-agent-acp-error-long", ContextFull, "Prompt is too long"),
    ("claude-agent-acp-error-404", ModelNotFound, "issue with the selected model"),
    ("claude-agent-acp-error-401", LoginExpired, "Invalid API key · Fix external API key"),
    ("codex-acp-error-429", Overloaded, "exceeded retry limit, last status: 429 Too Many Requests"),
    ("codex-acp-error-503", Overloaded, "Selected model is at capacity. Please try a different model."),
    ("codex-acp-error-quota", QuotaExhausted, "Quota exceeded. Check your plan"),
    ("codex-acp-error-usage", QuotaExhausted, "hit your usage limit"),
    ("codex-acp-error-context", ContextFull, "Codex ran out of room in the model's context window."),
    ("codex-acp-error-404", ModelNotFound, "The model `gpt-5` does not exist"),
    ("codex-acp-error-401", LoginExpired, "Authentication required"),
    ("codex-acp-error-400", AgentReported, "fake error 400"),
]
"""What the agents were seen to say, and what it is. The last is known to none."""

TEXTS = (
    "exceeded retry limit, last status: 429 Too Many Requests",
    "Selected model is at capacity. Please try a different model.",
    "Quota exceeded. Check your plan and billing details.",
    "You've hit your usage limit. Try again at 1:00 PM.",
    "Codex ran out of room in the model's context window.",
    '{"error": {"code": "context_length_exceeded"}}',
    "The model `gpt-5` does not exist or you do not have access to it.",
    "API Error: Request rejected (429) · This request would exceed your organization's rate limit.",
    "API Error: 529 Overloaded.",
    "API Error: 500 Internal server error",
    "Credit balance is too low",
    "Prompt is too long",
    "Invalid API key · Fix external API key",
)
"""What failures say, and what an answer may quote."""

QUOTING = ("{}", "{}\n\n", "The log says: {}", "> {}\n\nSo wait, and try again.")


@asynccontextmanager
async def opened(agent: ScriptedAgent, profile: AgentProfile) -> AsyncGenerator[Agent]:
    ours, theirs = memory_transport_pair()
    async with playing(theirs, agent), open_agent(profile, transport=ours) as running:
        yield running


async def error_of(told: Script, profile: AgentProfile) -> ThinkwellError:
    """Return the error of a run in which the agent says that."""
    async with opened(ScriptedAgent(told), profile) as agent:
        with pytest.raises(ThinkwellError) as caught:
            await agent.think().text("Go").run()
    return caught.value


def profile_of(agent: str) -> AgentProfile:
    return find_agent(agent.partition("-")[0])


def status(type_: str) -> dict[str, Any]:
    """Return what codex-acp sends when its turn begins, is done or has failed."""
    return {"sessionUpdate": "session_info_update", "_meta": {"codex": {"threadStatus": {"type": type_}}}}


def as_codex(text: str, *, message_id: str | None, ended: str) -> Script:
    return script.updates(status("active")).says(text, message_id=message_id).updates(status(ended))


@pytest.mark.parametrize(("trace", "kind", "said"), REPORTED, ids=[row[0] for row in REPORTED])
async def test_what_real_agents_report_has_its_class(
    trace: str, kind: type[AgentReported], said: str
) -> None:
    async with opened(TracedAgent(trace), profile_of(trace)) as agent:
        stream = agent.think().text("Count, please.").stream()
        with pytest.raises(AgentReported) as caught:
            await stream.result
        await stream.wait()
    error = caught.value
    assert type(error) is kind
    assert stream.view.phase == "failed"
    assert said in f"{error.message} {error.data}"
    assert "Warning" not in error.message
    assert said[:20] in str(error)
    numbers = [getattr(error, name, None) for name in ("retry_after", "resets_at")]
    assert numbers == [None, None]
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def reported(agent: str, said: str, code: int = -32603) -> Script:
    """Return what an agent sends that reports a failure."""
    match agent:
        case "codex":
            return as_codex("", message_id=None, ended="systemError").says(said)
        case "claude":
            return script.fails(code, f"Internal error: {said}", data={"errorKind": "unknown"})
        case "opencode":
            return script.fails(code, f"Internal error: {said}")
        case _:
            return script.fails(code, said)


BUSY_SERVER = "API Error: 500 x. This is a server-side issue, usually temporary — try again in a moment."
LIMITED = "API Error: Server is temporarily limiting requests (not your usage limit) · x"
IN_DEMAND = "We’re currently experiencing high demand, which may cause temporary errors."
TOO_LONG = '{"error":{"message":"The input exceeds the maximum number of tokens"}}'
BAD_KEY = '{"error":{"message":"API key not valid. Please pass another."}}'


@pytest.mark.parametrize(
    ("agent", "kind", "said"),
    [
        ("claude", AgentReported, ["API Error: 500 x"]),
        ("claude", Overloaded, [BUSY_SERVER]),
        ("claude", Overloaded, [LIMITED]),
        ("claude", QuotaExhausted, ["API Error: 402 x"]),
        ("claude", QuotaExhausted, ["You've hit your 5-hour limit · resets 1:43am (UTC)"]),
        ("claude", ContextFull, ["Request too large (max 32MB). x"]),
        ("codex", Overloaded, ["rate limit exceeded: x. Please try again in 11.054s."]),
        ("codex", Overloaded, ["rate limit exceeded: x. Please try again in 35ms."]),
        ("codex", Overloaded, ["rate limit exceeded: x. Please try again in 1m2s."]),
        ("codex", Overloaded, [IN_DEMAND]),
        ("codex", QuotaExhausted, ["unexpected status 402 Payment Required: x"]),
        ("codex", ContextFull, [TEXTS[5]]),
        ("gemini", Overloaded, ["Quota exceeded for a metric. Please retry in 34.07s.", 429]),
        ("gemini", QuotaExhausted, ["You exceeded your current quota, please check your plan.", 429]),
        ("gemini", Overloaded, ["Resource has been exhausted (e.g. check quota).", 429]),
        ("gemini", Overloaded, ["The model is overloaded. Please try again later.", 503]),
        ("gemini", Overloaded, ['{"error":{"code":500,"message":"x","status":"INTERNAL"}}', 500]),
        ("gemini", ModelNotFound, ["models/gemini-9 is not found for API version v1beta", 500]),
        ("gemini", ContextFull, [TOO_LONG, 400]),
        ("gemini", LoginExpired, [BAD_KEY, 400]),
        ("gemini", LoginExpired, ['{"error":{"message":"x","status":"PERMISSION_DENIED"}}', 403]),
        ("gemini", AgentReported, ['{"error":{"message":"x","status":"INVALID_ARGUMENT"}}', 400]),
        ("opencode", Overloaded, ["Rate limit reached for requests"]),
        ("opencode", Overloaded, ["Overloaded"]),
        ("opencode", QuotaExhausted, ["You exceeded your current quota, please pay."]),
        ("opencode", AgentReported, ["The model `x` does not exist."]),
        ("opencode", ModelNotFound, ["model: claude-9"]),
        ("opencode", LoginExpired, ["invalid x-api-key"]),
        ("opencode", AgentReported, ["Payment is due."]),
    ],
)
async def test_what_agents_report_of_which_there_is_no_trace(
    agent: str, kind: type[AgentReported], said: list[Any]
) -> None:
    error = await error_of(reported(agent, *said), find_agent(agent))
    assert type(error) is kind
    seconds = next((number for number in (11.054, 34.07) if f"{number}s" in said[0]), None)
    assert getattr(error, "retry_after", None) == seconds


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (script.fails(-32603, "Internal error: x", data={"errorKind": "overloaded"}), Overloaded),
        (
            script.says("Failed to authenticate. API Error: 403 x").fails(-32000, "Authentication required"),
            LoginExpired,
        ),
        # A login that was never there has not expired.
        (
            script.says("Not logged in · Please run /login").fails(-32000, "Authentication required"),
            LoginRequired,
        ),
    ],
)
async def test_what_claude_says_elsewhere_than_in_the_message(told: Script, kind: type[Exception]) -> None:
    assert type(await error_of(told, find_agent("claude"))) is kind


@pytest.mark.parametrize(
    ("limit", "resets_at"),
    [
        ({"status": "rejected", "resetsAt": 1795771800, "rateLimitType": "five_hour"}, 1795771800),
        ({"status": "allowed", "resetsAt": 1795771800}, None),
        ({"status": "rejected"}, None),
        ({"status": "rejected", "resetsAt": -1}, None),
        ({"status": "rejected", "resetsAt": 1e300}, None),
    ],
)
async def test_claude_says_when_a_subscription_is_renewed_in_an_update(
    limit: dict[str, Any], resets_at: float | None
) -> None:
    update = {"sessionUpdate": "usage_update", "used": 30, "size": 200, "_meta": {"_claude/rateLimit": limit}}
    failed = script.fails(-32603, "Internal error: You've hit your 5-hour limit")
    told = script.updates(update).says("One.").stops() + failed + failed
    async with opened(ScriptedAgent(told), find_agent("claude")) as agent, agent.session() as session:
        await session.think().text("Go").run()
        for _ in range(2):  # it is said once
            with pytest.raises(QuotaExhausted) as caught:
                await session.think().text("Go").run()
            assert caught.value.resets_at == resets_at


async def test_an_agent_that_tries_again_says_what_the_model_service_answers() -> None:
    async with opened(TracedAgent("codex-acp-error-429"), profile_of("codex")) as agent:
        stream = agent.think().text("Count, please.").stream()
        await stream.wait()
    (notice,) = stream.view.notices
    assert notice.severity == "warning"
    assert notice.title == "The model service has failed; the agent tries again"
    assert notice.description == (
        "Reconnecting... 1/1: exceeded retry limit, last status: 429 Too Many Requests"
    )
    assert stream.result.exception() is not None


@pytest.mark.parametrize("quoting", QUOTING)
async def test_an_answer_that_quotes_a_failure_stays_an_answer(quoting: str) -> None:
    answers = [quoting.format(text) for text in TEXTS]
    told = {
        "codex": [
            (said, as_codex(said, message_id=id_, ended="idle"))
            for said in answers
            for id_ in ("msg_1", None)
        ],
        "claude": [(said, script.says(said, message_id="msg_1")) for said in answers],
    }
    for name, turns in told.items():
        async with opened(
            ScriptedAgent(reduce(add, (turn.stops() for _, turn in turns))), find_agent(name)
        ) as agent:
            for said, _ in turns:
                assert await agent.think().text("What is in the log?").run() == said


async def test_a_message_that_stood_before_is_no_part_of_the_failure() -> None:
    told = as_codex("So far, so good. ", message_id=None, ended="systemError").says(TEXTS[0])
    error = await error_of(told, find_agent("codex"))
    assert isinstance(error, Overloaded)
    assert (error.code, error.message) == (None, TEXTS[0])


async def test_a_failure_without_a_message_is_a_failure() -> None:
    error = await error_of(script.updates(status("systemError")), find_agent("codex"))
    assert type(error) is AgentReported
    assert "the turn failed without a reason" in str(error)


async def test_a_turn_that_goes_on_after_a_failure_succeeds_and_so_does_the_next() -> None:
    failed = as_codex("", message_id=None, ended="systemError")
    played = ScriptedAgent(
        (failed + as_codex(TEXTS[0], message_id="msg_1", ended="idle")).stops()
        + failed.says(TEXTS[0]).stops()
        + script.says("Fine.")
    )
    async with opened(played, find_agent("codex")) as agent, agent.session() as session:
        assert await session.think().text("Go").run() == TEXTS[0]
        with pytest.raises(Overloaded):
            await session.think().text("Go").run()
        assert await session.think().text("Go").run() == "Fine."


async def test_a_mark_counts_only_where_the_profile_says_that_the_agent_makes_it() -> None:
    told = as_codex("", message_id=None, ended="systemError").says("Fine.")
    async with opened(ScriptedAgent(told), find_agent("claude")) as agent:
        assert await agent.think().text("Go").run() == "Fine."


async def test_a_typed_run_that_failed_so_is_not_reminded_of_its_result() -> None:
    told = as_codex("", message_id=None, ended="systemError").says(TEXTS[0])
    played = ScriptedAgent(told)
    async with opened(played, find_agent("codex")) as agent:
        with pytest.raises(Overloaded):
            await agent.think(int).text("How many?").run()
    assert len(played.sent.prompts) == 1


async def test_a_result_that_is_there_stays_when_the_turn_fails_after_it() -> None:
    told = script.returns(3).updates(status("systemError")).says(TEXTS[0])
    async with opened(ScriptedAgent(told), find_agent("codex")) as agent:
        stream = agent.think(int).text("How many?").stream()
        assert await stream.result == 3
        await stream.wait()
        assert (stream.view.phase, stream.view.error) == ("completed", None)


async def test_a_login_that_has_expired_names_the_agent_and_its_ways() -> None:
    async with opened(TracedAgent("codex-acp-error-401"), find_agent("codex")) as agent:
        with pytest.raises(LoginRequired) as caught:
            await agent.think().text("Go").run()
        assert isinstance(caught.value, LoginExpired)
        assert (caught.value.agent, caught.value.methods) == ("codex", agent.auth_methods)
        assert [method.id for method in caught.value.methods] == ["api-key"]


def mine(said: str, error: str) -> AgentProfile:
    row = KnownError(said=said, error=error, hint="Wait.", version="1", seen=dt.date(2026, 11, 23))
    other = KnownError(said="odd", error="AgentReported", hint="Look.", version="1", seen=row.seen)
    return AgentProfile(name="mine", program=Program(command=("mine",)), errors=(other, row))


@pytest.mark.parametrize(
    ("said", "error", "message", "attribute", "number"),
    [
        (r"retry in (?P<retry_after>[\d.]+)s", "Overloaded", "odd: retry in 7.5s", "retry_after", 7.5),
        (r"retry in (?P<retry_after>\S+)", "Overloaded", "retry in 7.5.1", "retry_after", None),
        (r"retry in (?P<retry_after>\S+)", "Overloaded", "retry in 1e999", "retry_after", None),
        (r"busy(?: (?P<retry_after>\d+))?", "Overloaded", "busy", "retry_after", None),
        (r"until (?P<resets_at>\d+)", "QuotaExhausted", "none until 1795771800", "resets_at", 1795771800),
        (r"until (?P<retry_after>\d+)", "QuotaExhausted", "none until 1795771800", "resets_at", None),
    ],
)
async def test_a_number_is_the_one_that_the_agent_wrote(
    said: str, error: str, message: str, attribute: str, number: float | None
) -> None:
    raised = await error_of(script.fails(-32603, message), mine(said, error))
    assert type(raised).__name__ == error
    assert getattr(raised, attribute) == number
    assert "Wait." in raised.__notes__


async def test_a_recording_has_the_class_and_the_number(tmp_path: Path) -> None:
    profile = mine(r"until (?P<resets_at>\d+)", "QuotaExhausted")
    ours, theirs = memory_transport_pair()
    played, path = ScriptedAgent(script.fails(-1, "until 1795771800")), tmp_path / "run.ndjson"
    async with playing(theirs, played), open_agent(profile, transport=ours, record=path) as agent:
        with pytest.raises(QuotaExhausted) as caught:
            await agent.think().text("Go").run()
    with pytest.raises(QuotaExhausted) as again:
        await replay(path, speed=0).result
    assert again.value.resets_at == caught.value.resets_at == 1795771800


async def test_a_handler_of_errors_hears_of_one_without_a_code() -> None:
    heard: list[dict[str, Any]] = []
    handlers = Handlers()
    handlers.on("error")(heard.append)
    told = as_codex("", message_id=None, ended="systemError").says(TEXTS[0])
    async with opened(ScriptedAgent(told), find_agent("codex")) as agent:
        with pytest.raises(Overloaded):
            await agent.think().text("Go").listen(handlers)
    assert heard == [{"message": TEXTS[0]}]


async def test_what_no_row_knows_stays_as_it_is() -> None:
    error = await error_of(script.fails(-32603, "odd"), mine("busy", "Overloaded"))
    assert type(error) is AgentReported
    assert error.__notes__ == ["Look."]
