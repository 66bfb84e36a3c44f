"""Failures of the model service, as real agents report them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest

from interop.agents import CLAUDE_ONCE, CLAUDE_SUBSCRIBED, CODEX_ONCE, GEMINI_ONCE, OPENCODE
from interop.live import TIMEOUT
from interop.model_server import EndTurn, Fail, ModelServer, Say
from thinkwell import (
    AgentReported,
    ContextFull,
    LoginExpired,
    ModelNotFound,
    Overloaded,
    QuotaExhausted,
    open_agent,
)

if TYPE_CHECKING:
    from pathlib import Path

    from interop.agents import AgentRecipe, Launch

pytestmark = pytest.mark.interop

AN_HOUR = str(int(time.time()) + 3600)

LIMIT = {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-reset": AN_HOUR,
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
}

CLAUDE = [
    (
        Fail(429, "This is above your rate limit.", "rate_limit_error", headers={"retry-after": "7"}),
        Overloaded,
    ),
    (Fail(529, "Overloaded", "overloaded_error"), Overloaded),
    (Fail(500, "Internal server error"), Overloaded),
    (Fail(400, "Your credit balance is too low to access the API.", "invalid_request_error"), QuotaExhausted),
    (Fail(402, "Payment is due.", "billing_error"), QuotaExhausted),
    (Fail(400, "prompt is too long: 215000 tokens > 200000 maximum", "invalid_request_error"), ContextFull),
    (Fail(413, "Request exceeds the maximum size", "request_too_large"), ContextFull),
    (Fail(404, "model: claude-sonnet-4-5", "not_found_error"), ModelNotFound),
    (Fail(401, "invalid x-api-key", "authentication_error"), LoginExpired),
    (Fail(403, "Your API key does not have the permission.", "permission_error"), LoginExpired),
    (Fail(400, "The model is on strike.", "invalid_request_error"), AgentReported),
]
CODEX = [
    (Fail(429, "Rate limit reached.", "tokens", "rate_limit_exceeded"), Overloaded),
    (
        Fail(200, "Rate limit reached. Please try again in 11.054s.", "tokens", "rate_limit_exceeded"),
        Overloaded,
    ),
    (Fail(200, "Rate limit reached. Please try again in 35ms.", "tokens", "rate_limit_exceeded"), Overloaded),
    (Fail(503, "We are overloaded.", "service_unavailable_error", "server_is_overloaded"), Overloaded),
    (Fail(200, "We are overloaded.", "service_unavailable_error", "server_is_overloaded"), Overloaded),
    (Fail(500, "The server had an error.", "server_error"), Overloaded),
    (Fail(429, "That was your quota.", "insufficient_quota", "insufficient_quota"), QuotaExhausted),
    (Fail(200, "That was your quota.", "insufficient_quota", "insufficient_quota"), QuotaExhausted),
    (Fail(429, "Limit reached.", "usage_limit_reached", "usage_limit_reached"), QuotaExhausted),
    (Fail(402, "Payment is due.", "billing", "billing_hard_limit_reached"), QuotaExhausted),
    (Fail(200, "It is too long.", "invalid_request_error", "context_length_exceeded"), ContextFull),
    (Fail(400, "It is too long.", "invalid_request_error", "context_length_exceeded"), ContextFull),
    (
        Fail(
            404, "The model `gpt-5` does not exist or you do not have access to it.", code="model_not_found"
        ),
        ModelNotFound,
    ),
    (Fail(401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key"), LoginExpired),
    (Fail(400, "The model is on strike.", "invalid_request_error"), AgentReported),
]
SOON = {"retry-after-ms": "1"}
OPENCODE_FAILURES = [
    (
        Fail(429, "Rate limit reached for requests", "requests", "rate_limit_exceeded", headers=SOON),
        Overloaded,
    ),
    (Fail(529, "Overloaded", "overloaded_error", headers=SOON), Overloaded),
    (
        Fail(429, "You exceeded your current quota.", "insufficient_quota", headers=SOON),
        QuotaExhausted,
    ),
    (Fail(404, "The model `gpt-5` does not exist or you do not have access to it."), ModelNotFound),
    (Fail(401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key"), LoginExpired),
    (Fail(400, "The model is on strike.", "invalid_request_error"), AgentReported),
]
GEMINI_FAILURES = [
    (Fail(429, "You exceeded your current quota.", "RESOURCE_EXHAUSTED"), QuotaExhausted),
    (Fail(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"), Overloaded),
    (Fail(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"), Overloaded),
    (Fail(500, "An internal error has occurred.", "INTERNAL"), Overloaded),
    (
        Fail(400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "INVALID"),
        ContextFull,
    ),
    (Fail(404, "models/gemini-9 is not found for API version v1beta", "NOT_FOUND"), ModelNotFound),
    (Fail(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"), LoginExpired),
    (Fail(403, "The caller does not have permission", "PERMISSION_DENIED"), LoginExpired),
    (Fail(400, "The model is on strike.", "INVALID_ARGUMENT"), AgentReported),
]
SUBSCRIBED: list[tuple[Fail, type[AgentReported]]] = [
    (Fail(429, "This is above your limit.", "rate_limit_error", headers=LIMIT), QuotaExhausted),
    (Fail(429, "This is above your rate limit.", "rate_limit_error"), Overloaded),
]

QUOTING = ("{}", "{}\n\n", "The log says: {}", "> {}\n\nSo wait, and try again.")


@pytest.mark.parametrize(
    ("recipe", "failures"),
    [
        (CLAUDE_ONCE, CLAUDE),
        (CLAUDE_SUBSCRIBED, SUBSCRIBED),
        (CODEX_ONCE, CODEX),
        (OPENCODE, OPENCODE_FAILURES),
        (GEMINI_ONCE, GEMINI_FAILURES),
    ],
    ids=["claude", "claude-subscribed", "codex", "opencode", "gemini"],
)
async def test_a_failure_has_its_class_and_an_answer_that_quotes_it_is_an_answer(
    recipe: AgentRecipe,
    failures: list[tuple[Fail, type[AgentReported]]],
    launch: Launch,
    models: ModelServer,
    project: Path,
) -> None:
    async with open_agent(
        recipe.profile, command=launch.command, env=launch.env, cwd=project, startup_timeout=TIMEOUT
    ) as agent:
        said: list[str] = []
        for failure, kind in failures:
            models.play(*[failure] * 12)
            with anyio.fail_after(TIMEOUT), pytest.raises(AgentReported) as caught:
                await agent.think().text("Count.").run()
            error = caught.value
            assert type(error) is kind, (failure, str(error))
            assert bool(getattr(error, "__notes__", ())) == (kind is not AgentReported)
            numbers = {getattr(error, name, None) for name in ("retry_after", "resets_at")}
            assert numbers == ({11.054, None} if "11.054" in failure.message else {None}), failure
            said.append(error.message)
            models.skip()
        async with agent.session() as session:
            for answer in (quoting.format(text).strip() for text in said for quoting in QUOTING):
                models.play(Say(answer))
                with anyio.fail_after(TIMEOUT):
                    assert (await session.think().text("What is in the log?").run()).strip() == answer


@pytest.mark.parametrize("recipe", [CLAUDE_SUBSCRIBED], ids=["claude"])
async def test_a_session_that_has_an_answer_knows_when_the_subscription_is_renewed(
    launch: Launch, models: ModelServer, project: Path
) -> None:
    with anyio.fail_after(TIMEOUT):
        async with (
            open_agent("claude", command=launch.command, env=launch.env, cwd=project) as agent,
            agent.session() as session,
        ):
            models.play(Say("Fine."), EndTurn(), *[SUBSCRIBED[0][0]] * 2)
            assert await session.think().text("How are you?").run() == "Fine."
            for _ in range(2):
                with pytest.raises(QuotaExhausted) as caught:
                    await session.think().text("And now?").run()
                assert caught.value.resets_at == int(AN_HOUR)
