"""Modes, options and what else a session says of itself: the last word on the wire counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from scripted import Played, Turn, scripted
from stream.wire_agent import Json, WireAgent, answer, refuse, update, wire_agent

from thinkwell import (
    AgentReported,
    CapabilityMissing,
    OptionChoice,
    Session,
    SessionMode,
    SessionOption,
    SessionUsage,
)
from thinkwell import events as ev
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODES = s.SessionModeState(
    current_mode_id="ask",
    available_modes=(
        s.SessionMode(id="ask", name="Ask", description="asks first"),
        s.SessionMode(id="code", name="Code"),
    ),
)


def select(id_: str, value: str, *values: str, **fields: Any) -> s.SessionConfigSelect:
    choices = tuple(s.SessionConfigSelectOption(value=each, name=each.title()) for each in values)
    return s.SessionConfigSelect(id=id_, name=id_.title(), current_value=value, options=choices, **fields)


MODEL = select("model", "big", "big", "small", category="model", description="which")
MODE = select("how", "ask", "ask", "code", category="mode")
FAST = s.SessionConfigBoolean(id="fast", name="Fast", current_value=False)


async def done(turn: Turn) -> None:
    turn.say("Done")


def agent_with(*options: s.SessionConfigOption, modes: s.SessionModeState | None = None) -> Played:
    handler = Played([done])
    handler.options = list(options)
    handler.modes = modes
    return handler


def value(session: Session, option_id: str) -> object:
    (found,) = (option.value for option in session.options if option.id == option_id)
    return found


# Modes


async def test_a_mode_is_set_without_an_echo() -> None:
    handler = agent_with(modes=MODES)
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert session.modes == (
            SessionMode(id="ask", name="Ask", description="asks first"),
            SessionMode(id="code", name="Code"),
        )
        assert session.mode == "ask"
        await session.set_mode("code")
        assert session.mode == "code"
        event = await anext(session.events())
        assert isinstance(event, ev.ModeUpdate)
        assert event.mode_id == "code"
        await session.set_mode("code")  # nothing new
    assert [event.type async for event in session.events()] == ["mode"]
    assert handler.asked[1:] == ["session/set_mode code", "session/set_mode code"]


async def test_a_mode_that_is_set_while_a_turn_runs_is_told_in_the_turn() -> None:
    go = anyio.Event()

    async def script(turn: Turn) -> None:
        turn.say("Started")
        await go.wait()

    handler = Played([script])
    handler.modes, handler.options = MODES, [FAST]
    async with scripted(agent=handler) as agent, agent.session() as session:
        stream = session.think().text("Go").stream(include={"message", "mode", "config"})
        with anyio.fail_after(30):
            await anext(aiter(stream))
            await session.set_mode("code")
            await session.set_option("fast", True)
            go.set()
            await stream.result
        assert [event.type async for event in stream] == ["message", "mode", "config"]
        assert stream.view.mode == session.mode == "code"
        assert value(session, "fast") is True


async def test_an_agent_without_modes_and_options() -> None:
    handler = agent_with()
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert (session.modes, session.mode, session.options) == ((), None, ())
        with pytest.raises(CapabilityMissing, match="modes"):
            await session.set_mode("ask")
        with pytest.raises(CapabilityMissing, match="configOptions"):
            await session.set_option("model", "big")
    assert handler.asked == ["session/new"]


async def test_a_mode_that_the_agent_refuses_stays_as_it_was() -> None:
    async def refuse_it(_request: object, _proceed: object) -> None:
        raise LookupError("not now")

    handler = Played([done], answers={"session/set_mode": refuse_it})
    handler.modes = MODES
    async with scripted(agent=handler) as agent, agent.session() as session:
        with pytest.raises(AgentReported, match="not now"):
            await session.set_mode("code")
        assert session.mode == "ask"


# Options


async def test_options_as_users_get_them() -> None:
    grouped = s.SessionConfigSelect(
        id="model",
        name="Model",
        current_value="m2",
        options=(
            s.SessionConfigSelectGroup(
                group="a", name="Acme", options=(s.SessionConfigSelectOption(value="m1", name="M1"),)
            ),
            s.SessionConfigSelectGroup(
                group="b",
                name="Best",
                options=(s.SessionConfigSelectOption(value="m2", name="M2", description="new"),),
            ),
        ),
    )
    handler = agent_with(grouped, MODEL, FAST)
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert session.options == (
            SessionOption(
                id="model",
                name="Model",
                value="m2",
                choices=(
                    OptionChoice(value="m1", name="M1", group="Acme"),
                    OptionChoice(value="m2", name="M2", description="new", group="Best"),
                ),
            ),
            SessionOption(
                id="model",
                name="Model",
                description="which",
                category="model",
                value="big",
                choices=(OptionChoice(value="big", name="Big"), OptionChoice(value="small", name="Small")),
            ),
            SessionOption(id="fast", name="Fast", type="boolean", value=False),
        )
        await session.set_option("model", "m1")
        assert handler.asked[-1] == "session/set_config_option model=m1"


async def test_options_are_set_to_choices_and_bools() -> None:
    handler = agent_with(MODEL, FAST)
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.set_option("model", "small")
        await session.set_option("fast", True)
        assert (value(session, "model"), value(session, "fast")) == ("small", True)
        for option_id, wrong, error, message in (
            ("colour", "red", ValueError, "the options are 'model', 'fast'"),
            ("model", "huge", ValueError, "the values of this option are 'big', 'small'"),
            ("model", True, TypeError, "one of 'big', 'small'"),
            ("fast", "yes", TypeError, "True or False"),
        ):
            with pytest.raises(error, match=message):
                await session.set_option(option_id, wrong)
    assert handler.asked[1:] == [
        "session/set_config_option model=small",
        "session/set_config_option fast=True",
    ]


async def test_an_answer_without_options_changes_the_one_that_was_set() -> None:
    async def say_nothing(_request: object, _proceed: object) -> s.SetSessionConfigOptionResponse:
        return s.SetSessionConfigOptionResponse(config_options=())

    handler = Played([done], answers={"session/set_config_option": say_nothing})
    handler.options = [MODEL, FAST]
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.set_option("fast", True)
        assert [(option.id, option.value) for option in session.options] == [("model", "big"), ("fast", True)]
        event = await anext(session.events())
        assert isinstance(event, ev.ConfigUpdate)
        assert [option.value for option in event.options] == ["big", True]


async def test_an_option_that_is_the_mode_counts_and_modes_do_not() -> None:
    handler = agent_with(MODE, MODEL, modes=s.SessionModeState(current_mode_id="x", available_modes=()))
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert (session.mode, [mode.id for mode in session.modes]) == ("ask", ["ask", "code"])
        with pytest.raises(ValueError, match="'ask', 'code'"):
            await session.set_mode("x")
        await session.set_mode("code")
        assert (session.mode, value(session, "how")) == ("code", "code")
        handler.client.update(session.id, s.CurrentModeUpdate(current_mode_id="ask"))
        kinds = [event.type for event in [await anext(session.events(after=n)) for n in range(3)]]
        assert kinds == ["config", "mode", "mode"]
        assert (session.mode, value(session, "how")) == ("ask", "ask")
        handler.client.update(session.id, s.CurrentModeUpdate(current_mode_id="elsewhere"))
        await anext(session.events(after=3))
        assert (session.mode, value(session, "how")) == ("ask", "ask")
    assert handler.asked[1:] == ["session/set_config_option how=code"]


async def test_options_without_a_mode_leave_the_modes_as_they_are() -> None:
    handler = agent_with(MODEL, modes=MODES)
    async with scripted(agent=handler) as agent, agent.session() as session:
        await session.set_mode("code")
        assert session.mode == "code"
    assert handler.asked[1:] == ["session/set_mode code"]


async def test_a_question_may_have_the_modes_as_its_options() -> None:
    handler = agent_with(modes=MODES)
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert session._wire.mode_ids == {"ask", "code"}


# The order of the wire

CONFIG: list[Json] = [
    {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
    {"id": "odd", "name": "Odd", "type": "slider", "currentValue": 5},
    {
        "id": "model",
        "name": "Model",
        "type": "select",
        "currentValue": "big",
        "options": [{"value": "big", "name": "Big"}, {"value": "small", "name": "Small"}],
    },
]
WIRE_MODES: Json = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}


def config(model: str) -> list[Json]:
    return [{**option, **({"currentValue": model} if option["id"] == "model" else {})} for option in CONFIG]


async def on_the_wire(
    opened: Json,
    act: Callable[[Session], Awaitable[None]],
    play: Callable[[WireAgent], Awaitable[None]],
    check: Callable[[Session], None],
) -> list[str]:
    """Open a session, let both sides act, and return what was told between the turns."""
    told: list[str] = []
    async with (
        wire_agent(capabilities={"mcpCapabilities": {"acp": True}}) as (agent, wire),
        anyio.create_task_group() as tasks,
    ):

        async def peer() -> None:
            await wire.write(answer(await wire.expect("session/new"), {"sessionId": "s", **opened}))
            await play(wire)

        tasks.start_soon(peer)
        with anyio.fail_after(30):
            async with agent.session() as session:
                await act(session)
                check(session)
            told += [event.type async for event in session.events()]
    return told


@pytest.mark.parametrize(("first", "last"), [("answer", "ask"), ("update", "code")])
async def test_an_answer_and_an_update_of_the_mode_are_applied_in_their_order(first: str, last: str) -> None:
    async def play(wire: WireAgent) -> None:
        request = await wire.expect("session/set_mode")
        assert request["params"] == {"sessionId": "s", "modeId": "code"}
        both = [answer(request, {}), update("current_mode_update", currentModeId="ask")]
        await wire.write(*(both if first == "answer" else both[::-1]))

    def check(session: Session) -> None:
        assert session.mode == last

    told = await on_the_wire({"modes": WIRE_MODES}, lambda session: session.set_mode("code"), play, check)
    assert told == ["mode", "mode"]


@pytest.mark.parametrize("first", ["answer", "update"])
async def test_an_answer_and_an_update_of_the_options_replace_the_whole_list_in_their_order(
    first: str,
) -> None:
    async def play(wire: WireAgent) -> None:
        request = await wire.expect("session/set_config_option")
        assert request["params"] == {"sessionId": "s", "configId": "model", "value": "small"}
        shorter = [option for option in config("big") if option["id"] != "fast"]
        both = [
            answer(request, {"configOptions": config("small")}),
            update("config_option_update", configOptions=shorter),
        ]
        await wire.write(*(both if first == "answer" else both[::-1]))

    def check(session: Session) -> None:
        expected: list[tuple[str, object]] = [("fast", False), ("model", "small")]
        if first == "answer":
            expected = [("model", "big")]
        assert [(option.id, option.value) for option in session.options] == expected

    await on_the_wire(
        {"configOptions": CONFIG}, lambda session: session.set_option("model", "small"), play, check
    )


async def test_a_wait_that_is_cancelled_is_given_up_on_the_wire() -> None:
    waiting = anyio.CancelScope()

    async def act(session: Session) -> None:
        with waiting:
            await session.set_mode("code")

    async def play(wire: WireAgent) -> None:
        request = await wire.expect("session/set_mode")
        waiting.cancel()
        given_up = await wire.expect("$/cancel_request")
        await wire.write(refuse(request, "Request cancelled", -32800))
        assert given_up["params"]["requestId"] == request["id"]

    def check(session: Session) -> None:
        assert session.mode == "ask"

    assert await on_the_wire({"modes": WIRE_MODES}, act, play, check) == []


# News of the session


NEWS: tuple[s.SessionUpdate, ...] = (
    s.SessionInfoUpdate(title="T", updated_at="2026-01-01"),
    s.AvailableCommandsUpdate(
        available_commands=(
            s.AvailableCommand(
                name="plan", description="plans", input=s.UnstructuredCommandInput(hint="what")
            ),
        )
    ),
    s.UsageUpdate(used=1, size=9, cost=s.Cost(amount=0.5, currency="USD")),
    s.UsageUpdate(used=2, size=9),
    s.CurrentModeUpdate(current_mode_id="code"),
    s.ConfigOptionUpdate(config_options=(MODEL,)),
)


def check_news(session: Session) -> None:
    assert session.title == "T"
    assert session.commands == (ev.Command(name="plan", description="plans", hint="what"),)
    assert session.usage == SessionUsage(used=2, size=9, cost=ev.Cost(amount=0.5, currency="USD"))
    assert session.mode == "code"
    assert value(session, "model") == "big"


@pytest.mark.parametrize("in_turn", [True, False])
async def test_news_count_in_a_turn_and_between(in_turn: bool) -> None:
    async def script(turn: Turn) -> None:
        for news in NEWS:
            turn.update(news)

    handler = Played([script])
    handler.modes = MODES
    async with scripted(agent=handler) as agent, agent.session() as session:
        assert (session.title, session.commands, session.usage) == (None, (), None)
        if in_turn:
            await session.think().text("Go").stream(include={"message"}).wait()
        else:
            for news in NEWS:
                handler.client.update(session.id, news)
            await anext(session.events(after=len(NEWS) - 1))
        check_news(session)


async def test_a_title_is_kept_where_it_is_left_out_and_cleared_by_null() -> None:
    handler = agent_with()
    async with scripted(agent=handler) as agent, agent.session() as session:
        titles: list[str | None] = []
        changes = (
            s.SessionInfoUpdate(title="T"),
            s.SessionInfoUpdate(updated_at="now"),
            s.SessionInfoUpdate(title=None, updated_at=None),
        )
        for number, change in enumerate(changes):
            handler.client.update(session.id, change)
            await anext(session.events(after=number))
            titles.append(session.title)
        assert titles == ["T", "T", None]


async def test_what_a_session_has_cost_before_is_known_where_it_is_new_or_told() -> None:
    flags = s.SessionCapabilities(resume=s.SessionResumeCapabilities())
    capabilities = s.AgentCapabilities(
        mcp_capabilities=s.McpCapabilities(acp=True), session_capabilities=flags
    )
    handler = Played([done], capabilities=capabilities)
    async with scripted(agent=handler) as agent, agent.session() as new, agent.session(resume="old") as old:
        assert (new._wire.cost, old._wire.cost) == (0.0, None)
        for number, update_ in enumerate((s.UsageUpdate(used=1, size=2), NEWS[2])):
            handler.client.update("old", update_)
            await anext(old.events(after=number))
            assert old._wire.cost == (None, 0.5)[number]
