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
    ThoughtStream,
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


async def test_each_phase_is_told_when_it_begins(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    told: list[tuple[ev.PhaseChanged, bool]] = []

    def look(event: ev.PhaseChanged) -> None:
        told.append((event, mark.exists()))

    script = (
        f"open({str(mark)!r}, 'w'); import runpy, sys; sys.argv[1:] = ['works']; runpy.run_path({PROGRAM!r})"
    )
    with anyio.fail_after(30):
        async with open_agent(command=[sys.executable, "-c", script], on_phase=look) as agent:
            assert mark.exists()
            (first, started), (second, _) = told
            await agent.think().text("Go").run()
    assert len(told) == 2
    assert names([first, second]) == LAUNCH
    assert not started
    assert 0 <= first.at <= second.at
    assert (first.seq, first.seconds, first.detail) == (0, None, "")


async def test_a_failed_launch_is_told_as_far_as_it_came() -> None:
    told: list[ev.PhaseChanged] = []
    with anyio.fail_after(30), pytest.raises(AgentStartFailed) as caught:
        async with open_agent(odd("exit"), on_phase=told.append):
            pass
    assert names(told) == LAUNCH
    assert caught.value.phase == "initializing"
    assert caught.value.version is None
    assert caught.value.next_command.endswith("odd_agent.py exit")


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


# Afterwards, and in a run


async def test_the_first_run_is_told_of_the_launch_and_so_is_its_replay(tmp_path: Path) -> None:
    file = tmp_path / "run.ndjson"
    with anyio.fail_after(30):
        async with open_agent(odd("works"), record=file) as agent:
            phases = agent.launch_phases
            launching, initializing = phases
            assert names(phases) == LAUNCH
            assert launching.seconds == pytest.approx(initializing.at - launching.at)
            assert initializing.seconds is not None
            assert 0 < initializing.seconds < 20
            streams = list[ThoughtStream[str]]()
            recorded = list[list[ev.PhaseChanged]]()
            for _ in range(2):
                streams.append(agent.think().text("Go").stream(include={"phase"}))
                recorded.append(await phases_of(streams[-1]))
            assert agent.launch_phases == phases
    told, second = recorded
    assert names(told) == [*LAUNCH, "starting", *TURN]
    assert [event.seq for event in told] == list(range(1, 7))
    assert told[0].at <= told[1].at <= 0 <= told[2].at
    assert told[1].at - told[0].at == pytest.approx(initializing.at - launching.at)  # by the same clock
    assert names(second) == ["starting", *TURN]
    for stream, events in zip(streams, recorded, strict=True):
        again = await phases_of(replay(file, run=stream.id))
        assert [(event.phase, event.seconds) for event in again] == [
            (event.phase, event.seconds) for event in events
        ]
        assert [event.at for event in again] == pytest.approx([event.at for event in events], abs=0.001)


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
