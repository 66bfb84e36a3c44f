"""How an agent is launched is told, phase by phase: while it happens, to its first run, and afterwards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pydantic import BaseModel
from scripted import Played, Turn, scripted

from thinkwell import (
    AgentStartFailed,
    ToolsNotSeen,
    event_from_json,
    event_to_json,
    open_agent,
    replay,
)
from thinkwell import events as ev
from thinkwell.agents import AgentProfile, Npx, Program
from thinkwell.testing import virtual_backend
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell import ThoughtStream
    from thinkwell.view import PhaseView

VIRTUAL = pytest.mark.parametrize("anyio_backend", [virtual_backend("asyncio"), virtual_backend("trio")])

PROGRAM = str(Path(__file__).parent / "programs" / "odd_agent.py")
LAUNCH: list[ev.Phase] = ["launching", "initializing"]
TURN: list[ev.Phase] = ["prompted", "responding", "completed"]


class Answer(BaseModel):
    value: int


async def done(turn: Turn) -> None:
    turn.say("Done")


async def answers(turn: Turn) -> None:
    turn.say("Hm")
    await turn.returns(value=1)


def odd(mode: str) -> AgentProfile:
    return AgentProfile(name="odd", program=Program(command=(sys.executable, PROGRAM, mode)))


async def phases_of(stream: ThoughtStream[Any]) -> list[ev.PhaseChanged]:
    """Return the phases of a run that is over, by its events; the view says the same."""
    await stream.wait()
    events = [event async for event in stream.events(include={"phase"}) if isinstance(event, ev.PhaseChanged)]
    views = stream.view.phases
    assert [(event.phase, event.detail, event.at) for event in events] == [
        (view.phase, view.detail, view.at) for view in views
    ]
    assert stream.view.phase == events[-1].phase
    check_times(views)
    return events


def check_times(views: Iterable[PhaseView]) -> None:
    *before, last = views
    assert all(view.seconds is not None and view.seconds >= 0 for view in before)
    assert last.seconds is None
    begins = [view.at for view in views]
    assert begins == sorted(begins)


def names(phases: Iterable[ev.PhaseChanged | PhaseView]) -> list[str]:
    return [phase.phase for phase in phases]


# While it is launched


async def test_each_phase_is_told_when_it_begins() -> None:
    told: list[ev.PhaseChanged] = []
    with anyio.fail_after(30):
        async with open_agent(odd("works"), on_phase=told.append) as agent:
            assert names(told) == LAUNCH
            await agent.think().text("Go").run()
    assert names(told) == LAUNCH
    first, second = told
    assert 0 <= first.at <= second.at
    assert (first.seq, first.seconds, first.detail) == (0, None, "")


async def test_it_is_told_before_the_program_is_started(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    seen: list[tuple[str, bool]] = []

    def look(event: ev.PhaseChanged) -> None:
        seen.append((event.phase, mark.exists()))

    script = (
        f"open({str(mark)!r}, 'w'); import runpy, sys; sys.argv[1:] = ['works']; runpy.run_path({PROGRAM!r})"
    )
    with anyio.fail_after(30):
        async with open_agent(command=[sys.executable, "-c", script], on_phase=look):
            assert mark.exists()
    assert seen[0] == ("launching", False)
    assert [phase for phase, _ in seen] == LAUNCH


async def test_a_failed_launch_is_told_as_far_as_it_came() -> None:
    told: list[ev.PhaseChanged] = []
    with anyio.fail_after(30), pytest.raises(AgentStartFailed) as caught:
        async with open_agent(odd("exit"), on_phase=told.append):
            pass
    assert names(told) == LAUNCH
    assert caught.value.phase == "initializing"
    assert caught.value.version is None
    assert caught.value.next_command.endswith("odd_agent.py exit")


async def invalid(turn: Turn) -> None:
    await turn.returns(value="none")
    await anyio.sleep_forever()


async def silent(turn: Turn) -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize("last", LAUNCH)
async def test_a_callback_that_raises_ends_the_launch(last: ev.Phase) -> None:
    def fail(event: ev.PhaseChanged) -> None:
        if event.phase == last:
            raise LookupError(event.phase)

    with anyio.fail_after(30), pytest.raises(LookupError, match=last):
        async with open_agent(odd("works"), on_phase=fail):
            raise AssertionError("it started")


async def test_a_connection_is_not_launched() -> None:
    told: list[ev.PhaseChanged] = []
    async with scripted(done, on_phase=told.append) as agent:
        assert names(told) == ["initializing"]
        assert names(agent.launch_phases) == ["initializing"]


# Afterwards


async def test_how_long_each_phase_took() -> None:
    with anyio.fail_after(30):
        async with open_agent(odd("works")) as agent:
            phases = agent.launch_phases
            assert names(phases) == LAUNCH
            assert [phase.at for phase in phases] == sorted(phase.at for phase in phases)
            launching, initializing = phases
            assert launching.seconds == pytest.approx(initializing.at - launching.at)
            assert initializing.seconds is not None
            assert 0 < initializing.seconds < 20
            await agent.think().text("Go").run()
            assert agent.launch_phases == phases


# In a run


async def test_the_first_run_is_told_of_the_launch() -> None:
    with anyio.fail_after(30):
        async with open_agent(odd("works")) as agent:
            events = await phases_of(agent.think().text("Go").stream(include={"phase"}))
            second = agent.think().text("Go").stream(include={"phase"})
            assert names(events) == [*LAUNCH, "starting", *TURN]
            assert [event.seq for event in events] == list(range(1, 7))
            launching, initializing, starting, *_ = events
            assert launching.at <= initializing.at <= 0 <= starting.at
            assert names(await phases_of(second)) == ["starting", *TURN]
            # By the same clock as the agent's own phases.
            own = agent.launch_phases
            assert initializing.at - launching.at == pytest.approx(own[1].at - own[0].at)


@VIRTUAL
async def test_what_lies_between_the_launch_and_the_first_run_is_none_of_its_phases() -> None:
    async with scripted(done) as agent:
        await anyio.sleep(60)
        stream = agent.think().text("Go").stream(include={"phase"})
        initializing, starting, *_ = await phases_of(stream)
        (own,) = agent.launch_phases
        assert starting.at - initializing.at >= 59.9
        assert initializing.seconds == stream.view.phases[0].seconds == own.seconds
        assert own.seconds is not None
        assert own.seconds < 1


async def test_phases_are_in_the_view_of_a_run_that_keeps_none() -> None:
    async with scripted(done) as agent:
        stream = agent.think().text("Go").stream()
        await stream.wait()
        assert [event.type async for event in stream] == ["message"]
        assert names(stream.view.phases) == ["initializing", "starting", *TURN]
        check_times(stream.view.phases)


async def test_a_run_that_is_going_on_is_in_its_last_phase() -> None:
    go_on = anyio.Event()

    async def script(turn: Turn) -> None:
        turn.say("Hm")
        await go_on.wait()

    async with scripted(script) as agent:
        stream = agent.think().text("Go").stream()
        seen: list[ev.Phase] = [stream.view.phase]
        await anext(aiter(stream))
        seen.append(stream.view.phase)
        assert seen == ["starting", "responding"]
        assert stream.view.phases[-1].seconds is None
        go_on.set()


async def test_tools_are_ready_before_the_prompt() -> None:
    async with scripted(answers) as agent:
        stream = agent.think(Answer).text("Go").stream(include="all")
        events = await phases_of(stream)
        assert names(events) == ["initializing", "starting", "connecting_tools", "tools_ready", *TURN]
        kinds = [event.type async for event in stream]
        assert kinds.index("tools_seen") == kinds.index("turn_start") - 2


@VIRTUAL
async def test_tools_that_are_never_fetched_are_never_ready() -> None:
    async with scripted(agent=Played([done], lists_tools=False)) as agent:
        stream = agent.think(Answer).text("Go").stream(include={"phase"})
        with pytest.raises(ToolsNotSeen):
            await stream.result
        phases = names(await phases_of(stream))
        assert phases == ["initializing", "starting", "connecting_tools", *TURN[:-1], "failed"]


async def test_a_replay_has_the_phases_too(tmp_path: Path) -> None:
    file = tmp_path / "run.ndjson"
    with anyio.fail_after(30):
        async with open_agent(odd("works"), record=file) as agent:
            streams = [agent.think().text("Go").stream(include={"phase"})]
            recorded = [await phases_of(streams[0])]
            streams.append(agent.think().text("Go").stream(include={"phase"}))
            recorded.append(await phases_of(streams[1]))
    assert names(recorded[0])[:2] == LAUNCH
    for stream, events in zip(streams, recorded, strict=True):
        again = replay(file, run=stream.id)
        assert [(event.phase, event.seconds) for event in await phases_of(again)] == [
            (event.phase, event.seconds) for event in events
        ]
        assert [event.at for event in await phases_of(again)] == pytest.approx(
            [event.at for event in events], abs=0.001
        )


@pytest.mark.parametrize(
    "event",
    [
        ev.PhaseChanged(seq=1, at=-2.5, phase="installing", detail="npm package x@1", seconds=1.25),
        ev.PhaseChanged(seq=3, at=0.5, phase="tools_ready"),
        ev.PhaseChanged(phase="authenticating"),
    ],
)
def test_phases_round_trip_as_json(event: ev.PhaseChanged) -> None:
    assert event_from_json(event_to_json(event)) == event


@VIRTUAL
async def test_a_start_by_npx_that_takes_too_long_may_be_npxs_own() -> None:
    profile = AgentProfile(name="slow", npx=Npx(package="slow", version="1.0.0"))
    ours, _ = memory_transport_pair()
    with pytest.raises(AgentStartFailed, match="npx waits for the registry of npm") as caught:
        async with open_agent(profile, transport=ours, startup_timeout=0.1):
            pass
    assert "startup_timeout=" in caught.value.reason
