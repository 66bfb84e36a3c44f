"""Choosing a model: for all of an agent's sessions, or for one, however it is opened."""

from __future__ import annotations

import pickle
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from msgspec.structs import replace
from scripted import EVERY_SESSION_CALL, Played, Turn, scripted

from thinkwell import ModelNotOffered, OptionChoice, open_agent
from thinkwell import events as ev
from thinkwell.builtin import BuiltinAgent
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import ClientHandler, RpcError, connect, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from scripted import Script

    from thinkwell import Agent
    from thinkwell_acp import Client, Transport

NAMED = s.SessionConfigSelect(
    id="which",
    name="Which",
    category="model",
    current_value="m-1",
    options=tuple(
        s.SessionConfigSelectOption(value=value, name=name)
        for value, name in (("m-1", "Swift"), ("m-2", "Large"), ("m-3", "Twin"), ("m-4", "Twin"))
    ),
)
"""An option whose choices have names, two of them the same."""

MODELS = s.SessionModelState(
    current_model_id="swift",
    available_models=(
        s.ModelInfo(model_id="swift", name="Swift"),
        s.ModelInfo(model_id="large", name="Large", description="slower"),
    ),
)
"""What agents sent before there were options."""


FAST = s.SessionConfigBoolean(id="fast", name="Fast", current_value=False)

OTHER = replace(NAMED, id="model", category=None)
"""An option that has the name of the one for the model, and is none."""


async def done(turn: Turn) -> None:
    turn.say("Done")


async def tells_options(turn: Turn) -> None:
    turn.update(s.ConfigOptionUpdate(config_options=(FAST,)))


def offering(*models: str) -> ScriptedAgent:
    return ScriptedAgent(
        script.says("Done"), models=models, repeats=True, complete=False, capabilities=EVERY_SESSION_CALL
    )


def asked(agent: ScriptedAgent) -> list[str]:
    """What was asked of sessions, with the model that is set."""
    return [
        f"{message.method} {message.params['value']}" if "value" in message.params else message.method
        for message in agent.sent.messages
        if message.method.startswith("session/") and message.method != "session/close"
    ]


@pytest.mark.parametrize("how", ["new", "load", "resume", "fork"])
@pytest.mark.parametrize("place", ["agent", "session"])
async def test_a_model_is_chosen_before_the_first_prompt_however_the_session_is_opened(
    how: str, place: str
) -> None:
    played = offering("swift", "large")
    opening: dict[str, Any] = {} if how == "new" else {how: "old"}
    mine, its = ("large", None) if place == "agent" else ("unheard of", "large")
    async with played.open(model=mine) as agent, agent.session(**opening, model=its) as session:
        assert session.model == "large"
        stream = session.think().text("Go").stream(include="all")
        await stream.result
        assert stream.view.model == "large"
        assert [event.model async for event in stream if isinstance(event, ev.SessionOpened)] == ["large"]
    assert asked(played) == [f"session/{how}", "session/set_config_option large", "session/prompt"]


async def test_a_run_of_its_own_has_the_agents_model() -> None:
    played = offering("swift", "large")
    async with played.open(model="large") as agent:
        stream = agent.think().text("Go").stream()
        assert await stream.result == "Done"
        assert stream.view.model == "large"
    assert asked(played) == ["session/new", "session/set_config_option large", "session/prompt"]


async def test_nothing_is_sent_for_the_model_that_a_session_has() -> None:
    played = offering("swift", "large")
    async with played.open(model="swift") as agent, agent.session() as session:
        await session.set_model("swift")
        assert session.model == "swift"
    assert asked(played) == ["session/new"]


@pytest.mark.parametrize("models", [("swift", "large"), ()])
async def test_a_model_that_is_not_offered_is_an_error_before_any_prompt(models: tuple[str, ...]) -> None:
    played = offering(*models)
    async with played.open(model="huge") as agent:
        with pytest.raises(ModelNotOffered) as caught:
            async with agent.session():
                pass  # pragma: no cover - it is not opened
        with pytest.raises(ModelNotOffered):
            await agent.think().text("Go").run()
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.model, error.models) == ("huge", models)
    said = "It offers 'swift', 'large'" if models else "no choice of models"
    assert said in str(error)
    assert asked(played) == ["session/new"] * 2
    assert len(played.sent.closed) == 2


def test_an_error_names_thirty_models_at_most() -> None:
    error = ModelNotOffered("x" * 200, [f"m{number}" for number in range(33)])
    assert "'m29' and 3 more" in str(error)
    assert len(str(error)) < 500


async def test_a_model_can_be_named_as_it_is_shown() -> None:
    handler = Played([done])
    handler.options = [NAMED]
    async with scripted(agent=handler, model="Large") as agent, agent.session() as session:
        assert session.model == "Large"
        assert session.models[:2] == (
            OptionChoice(value="m-1", name="Swift"),
            OptionChoice(value="m-2", name="Large"),
        )
        with pytest.raises(ModelNotOffered) as caught:
            await session.set_model("Twin")  # which of the two
        assert caught.value.models == ("m-1", "m-2", "m-3", "m-4")
        await session.set_model("m-4")
        assert session.model == "Twin"
    assert handler.asked[1:] == ["session/set_config_option which=m-2", "session/set_config_option which=m-4"]


async def test_a_fork_has_the_model_of_its_session() -> None:
    played = offering("swift", "large")
    async with played.open() as agent, agent.session() as session:
        await session.set_model("large")
        async with session.fork() as same, session.fork(model="swift") as other:
            assert (same.model, other.model) == ("large", "swift")
    assert asked(played)[2:] == ["session/fork", "session/set_config_option large", "session/fork"]


async def test_a_model_is_changed_while_a_turn_runs() -> None:
    go = anyio.Event()

    async def wait(turn: Turn) -> None:
        turn.say("Started")
        await go.wait()

    handler = Played([wait])
    handler.options = [NAMED]
    async with scripted(agent=handler) as agent, agent.session() as session:
        stream = session.think().text("Go").stream(include={"message", "config"})
        with anyio.fail_after(30):
            await anext(aiter(stream))
            assert stream.view.model == "Swift"
            await session.set_model("Large")
            go.set()
            await stream.result
        assert stream.view.model == "Large"


# Agents that are older than options


def older(*options: s.SessionConfigOption, turn: Script = done) -> Played:
    """Return an agent that tells its models as agents did before there were options."""
    handler = Played([turn], capabilities=EVERY_SESSION_CALL)
    handler.models, handler.options = MODELS, list(options)
    return handler


@pytest.mark.parametrize("how", ["new", "load", "resume", "fork"])
async def test_an_agent_without_options_is_given_its_model_by_a_request_of_its_own(how: str) -> None:
    handler = older()
    opening: dict[str, Any] = {} if how == "new" else {how: "old"}
    async with (
        scripted(agent=handler, model="Large") as agent,
        agent.session(**opening) as session,
    ):
        assert session.models[1] == OptionChoice(value="large", name="Large", description="slower")
        stream = session.think().text("Go").stream()
        await stream.result
        assert (session.model, stream.view.model) == ("Large", "Large")
        with pytest.raises(ModelNotOffered):
            await session.set_model("huge")
    assert handler.asked[:2] == [f"session/{how}", "session/set_model large"]


async def test_its_model_stays_when_other_options_change() -> None:
    handler = older(FAST, turn=tells_options)
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.set_option("model", "large")
        await session.set_option("fast", True)
        assert [(option.id, option.value) for option in session.options] == [
            ("fast", True),
            ("model", "large"),
        ]
        stream = session.think().text("Go").stream(include={"config"})
        await stream.result
        assert [event.type async for event in stream] == ["config"]
        assert (session.model, stream.view.model) == ("Large", "Large")
    assert handler.asked[1:3] == ["session/set_model large", "session/set_config_option fast=True"]


@pytest.mark.parametrize("option", [NAMED, OTHER])
async def test_an_option_for_the_model_counts_and_models_do_not(option: s.SessionConfigSelect) -> None:
    handler = older(option)
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert [each.id for each in session.options] == [option.id]
        await session.set_option(option.id, "m-2")
    assert handler.asked[1:2] == [f"session/set_config_option {option.id}=m-2"]


@asynccontextmanager
async def builtin(*models: str) -> AsyncGenerator[Agent]:
    ours, theirs = memory_transport_pair()
    async with (
        BuiltinAgent(models) as handler,
        serve_agent(theirs, handler),
        open_agent("builtin", transport=ours, model="careful") as agent,
    ):
        yield agent


@asynccontextmanager
async def bare_client(agent: str) -> AsyncGenerator[Client]:
    """Connect to an agent that offers two models, with nothing of the product's between."""
    async with AsyncExitStack() as stack:
        line: Transport
        if agent == "builtin":
            line, theirs = memory_transport_pair()
            handler = await stack.enter_async_context(BuiltinAgent(("swift", "large")))
            await stack.enter_async_context(serve_agent(theirs, handler))
        else:
            line = await stack.enter_async_context(offering("swift", "large").connect())
        yield await stack.enter_async_context(connect(line, ClientHandler()))


@pytest.mark.parametrize("agent", ["builtin", "scripted"])
@pytest.mark.parametrize(("option", "value"), [("model", "huge"), ("models", "large")])
async def test_our_own_agents_refuse_what_they_do_not_offer(
    agent: str, option: str, value: str, tmp_path: Path
) -> None:
    async with bare_client(agent) as client:
        await client.initialize()
        opened = await client.new_session(s.NewSessionRequest(cwd=str(tmp_path), mcp_servers=()))
        with pytest.raises(RpcError, match=f"There is no option {option} = {value}"):
            await client.set_session_config_option(
                s.SetSessionConfigOptionRequest(session_id=opened.session_id, config_id=option, value=value)
            )


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [(5, TypeError, "the id or the name of a model"), ("", ValueError, "leave it out")],
)
async def test_what_is_no_name_of_a_model_is_refused_at_once(
    model: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        open_agent("builtin", model=model)
    async with offering("swift").open() as agent:
        with pytest.raises(error, match=words):
            agent.session(model=model)


async def test_the_built_in_agent_offers_models_when_it_is_told_to() -> None:
    async with builtin("swift", "careful") as agent, agent.session() as session:
        assert (session.model, len(session.models)) == ("careful", 2)
    async with builtin() as agent:
        with pytest.raises(ModelNotOffered):
            await agent.session().start()
