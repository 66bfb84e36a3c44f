"""Errors carry as notes what their agent's profile knows to do about them."""

from __future__ import annotations

import datetime as dt
import pickle
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from msgspec.structs import replace
from pydantic import BaseModel
from scripted import Played, Proceed, Turn, never, playing, scripted

from thinkwell import McpHttp, errors, open_agent
from thinkwell.agents import AgentProfile, KnownError, Program
from thinkwell_acp import RpcError, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from scripted import Script

    from thinkwell import Agent

ODD = str(Path(__file__).parent / "programs" / "odd_agent.py")
SEEN = dt.date(2026, 11, 22)
NO_PROVIDER = RpcError(-32603, "Internal error", {"details": "No LLM provider configured"})
NO_NETWORK = RpcError(-32603, "Internal error", {"details": "getaddrinfo ENOTFOUND api.example.com"})


class Answer(BaseModel):
    value: int


def known(hint: str, *, said: str = "", error: str = "") -> KnownError:
    return KnownError(said=said, error=error, hint=hint, version="1", seen=SEEN)


def profile(*rows: KnownError, mode: str = "none") -> AgentProfile:
    return AgentProfile(name="odd", program=Program(command=(sys.executable, ODD, mode)), errors=rows)


PROVIDER = known("Run `odd model`.", said="no llm provider", error="SessionNotOpened")


@asynccontextmanager
async def opened(handler: Played, *rows: KnownError, login: str | None = None) -> AsyncGenerator[Agent]:
    """Open an agent that runs already: its profile is given beside its connection."""
    ours, theirs = memory_transport_pair()
    opening = open_agent(profile(*rows), transport=ours, login=login)
    async with playing(theirs, handler), opening as agent:
        yield agent


def notes(error: BaseException) -> list[str]:
    copy = pickle.loads(pickle.dumps(error))
    assert getattr(copy, "__notes__", []) == getattr(error, "__notes__", [])
    assert str(copy) == str(error)
    return getattr(error, "__notes__", [])


class Refuses(Played):
    """Opens no session."""

    def __init__(self, why: RpcError) -> None:
        super().__init__([done])
        self._why = why

    async def open_session(self, request: object, proceed: Proceed) -> object:
        raise self._why


async def done(turn: Turn) -> None:
    turn.say("Done")


async def silent(turn: Turn) -> None:
    await anyio.sleep_forever()


async def invalid(turn: Turn) -> None:
    await turn.returns(value="x")
    await anyio.sleep_forever()


# By what the agent said


@pytest.mark.parametrize(
    ("why", "wanted"), [(NO_PROVIDER, ["Run `odd model`."]), (NO_NETWORK, [])], ids=["known", "unrelated"]
)
async def test_an_error_is_known_by_what_the_agent_said_however_it_comes_about(
    why: RpcError, wanted: list[str]
) -> None:
    async with opened(Refuses(why), PROVIDER) as agent:
        with pytest.raises(errors.SessionNotOpened) as session:
            async with agent.session():
                pass
        with pytest.raises(errors.AgentReported) as run:
            await agent.think().text("Go").run()
    assert notes(session.value) == notes(run.value) == wanted


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.AgentReported(429, "Too many"), "^429 too many$"),
        (errors.AgentReported(1, "no", {"errorKind": "rate_limit"}), '"errorKind":"rate_limit"'),
        (errors.AgentExited(1, "Traceback\nKeyError: x"), "^keyerror"),
        (errors.AgentExited(None, reason="too long"), "too long"),
        (errors.AgentStartFailed("a", "it exited", stderr_tail="SyntaxError: x\nNode.js v20"), "^node"),
        (errors.LoginRequired("a", (), "it wants a key"), "wants a key"),
        (errors.LoginFailed("a", "browser", "timed out"), "timed out"),
        (errors.AnswerUnreadable("no id"), "no id"),
        (errors.CapabilityMissing("loadSession", "load="), "^loadSession load="),
        (errors.ResultMissing("end_turn", "API Error: 401"), "^api error"),
        (errors.ResultMissing("end_turn", ""), "^end_turn$"),
        (errors.ResultMissing("end_turn", "", denied=["ls", "rm"]), "^denied: rm$"),
        (errors.ToolsNotSeen(("http", "stdio")), "^over stdio$"),
        (errors.ToolsNotSeen(("http",), "There is no tool"), "no tool"),
        (errors.ResultRefused("I must not"), "must not"),
    ],
)
def test_what_an_agent_said_is_found_in_every_kind_of_error(error: errors.ThinkwellError, said: str) -> None:
    assert profile(known("Do.", said=said)).hints(error) == ("Do.",)
    assert profile(known("Do.", said=f"{said}(?!)")).hints(error) == ()


def test_what_an_agent_says_at_length_is_searched_at_its_end() -> None:
    rows = profile(known("Old.", said="^begin"), known("New.", said="end$"))
    assert rows.hints(errors.AgentExited(1, "begin" + "x" * 2**16 + "end")) == ("New.",)


def test_an_error_in_which_no_agent_says_anything_is_known_by_its_class_alone() -> None:
    rows = profile(
        known("Do.", said="."), known("Ask.", error="AgentError"), known("Ask.", error="AgentClosed")
    )
    assert rows.hints(errors.AgentClosed()) == ("Ask.",)
    assert rows.hints(errors.BudgetExceeded("tokens", 1, 2)) == ()


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({}, "give said, error, or both"),
        ({"error": "Agent"}, "error = 'Agent': give the name of a class of thinkwell.errors"),
        ({"error": "annotations"}, "error = 'annotations': give the name of a class"),
        ({"error": "AuthMethod"}, "error = 'AuthMethod': give the name of a class"),
        ({"said": "("}, r"said = '\(' is not a regular expression: "),
        ({"said": "x*"}, r"said = 'x\*' matches everything"),
    ],
)
def test_a_row_that_would_match_nothing_or_everything_is_refused(row: dict[str, str], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        known("Do.", **row)


# Wherever errors come from


async def test_an_error_of_the_start() -> None:
    rows = (known("Set a key.", error="AgentStartFailed"), known("Wait.", error="ToolsNotSeen"))
    with anyio.fail_after(20), pytest.raises(errors.AgentStartFailed) as caught:
        async with open_agent(profile(*rows, mode="exit")):
            pass
    assert notes(caught.value) == ["Set a key."]


async def test_a_login_that_is_wanted_says_what_to_type_too() -> None:
    odd = replace(
        profile(known("Set a key.", error="LoginRequired"), mode="login_at_once"), login="odd login"
    )
    with anyio.fail_after(20), pytest.raises(errors.LoginRequired) as caught:
        async with open_agent(odd):
            pass
    by_hand = "A login with its own program counts too, where you have that: odd login"
    assert notes(caught.value) == ["Set a key.", by_hand]


async def test_a_login_that_is_not_offered() -> None:
    with pytest.raises(errors.LoginRequired) as caught:
        async with opened(Played([done]), known("Log in.", error="LoginRequired"), login="browser"):
            pass
    assert notes(caught.value) == ["Log in."]


async def test_a_login_that_does_not_work() -> None:
    class Offers(Played):
        async def initialize(self, request: s.InitializeRequest, proceed: Proceed) -> s.InitializeResponse:
            method = s.AuthMethodAgent(id="browser", name="Browser")
            told: s.InitializeResponse = await super().initialize(request, proceed)
            return replace(told, auth_methods=(method,))

    async def closed(_request: object, _proceed: Proceed) -> None:
        raise RpcError(-32000, "the browser is closed")

    async with opened(
        Offers([done], answers={"authenticate": closed}), known("Open it.", said="browser is closed")
    ) as agent:
        with pytest.raises(errors.LoginFailed) as caught:
            await agent.authenticate("browser")
    assert notes(caught.value) == ["Open it."]


CALLS: dict[str, Callable[[Agent], object]] = {
    "image": lambda agent: agent.think().image(b"\x89PNG\r\n\x1a\n"),
    "mcp": lambda agent: agent.session(mcp_servers=[McpHttp("files", "https://example.com")]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_what_the_agent_cannot_do(call: Callable[[Agent], object]) -> None:
    async with opened(Played([done]), known("Take another.", error="CapabilityMissing")) as agent:
        with pytest.raises(errors.CapabilityMissing) as caught:
            call(agent)
    assert notes(caught.value) == ["Take another."]


@pytest.mark.virtual_time
async def test_a_session_that_takes_too_long() -> None:
    slow = Played([done], answers={"session/new": never})
    async with opened(slow, known("Wait.", error="SessionOpenTimeout")) as agent:
        with pytest.raises(errors.SessionOpenTimeout) as caught:
            async with agent.session():
                pass
    assert notes(caught.value) == ["Wait."]


@pytest.mark.virtual_time
async def test_an_error_of_a_run_says_what_is_known_to_help_once() -> None:
    rows = [known(hint, error="ToolsNotSeen") for hint in ("Wait for it.", "Wait for it.", "Look.")]
    async with opened(Played([done], lists_tools=False), *rows) as agent:
        for _ in range(2):
            stream = agent.think(Answer).text("Go").stream()
            with pytest.raises(errors.ToolsNotSeen) as caught:
                await stream.result
            assert notes(caught.value) == ["Wait for it.", "Look."]
            await stream.wait()
            assert stream.view.error is caught.value
            assert notes(caught.value) == ["Wait for it.", "Look."]


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("script", "kind"),
    [(silent, errors.ThoughtTimeout), (invalid, errors.ResultInvalid)],
    ids=["timeout", "invalid"],
)
async def test_an_error_of_a_turn_that_goes_on_has_its_notes_at_once(
    script: Script, kind: type[errors.ThinkwellError]
) -> None:
    async with opened(Played([script]), known("It is slow.", error=kind.__name__)) as agent:
        stream = agent.think(Answer).text("Go").stream(timeout=1, retries=0)
        with pytest.raises(kind) as caught:
            await stream.result
        assert notes(caught.value) == ["It is slow."]
        stream.cancel()
        await stream.wait()
        assert notes(caught.value) == ["It is slow."]


async def test_an_agent_without_a_profile_gives_no_advice() -> None:
    async def script(turn: Turn) -> None:
        raise NO_PROVIDER

    async with scripted(script) as agent:
        stream = agent.think().text("Go").stream()
        await stream.wait()
        assert stream.view.error is not None
        assert notes(stream.view.error) == []
        assert stream.result.exception() is stream.view.error
