"""A task that is tried again and taken over, with a fault or a cancellation at each message."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from retry.failing import known, played

from thinkwell import Budget, Retry, ThinkwellError, open_agent, tool
from thinkwell import events as ev
from thinkwell.testing import Fault, script, simulate_once
from thinkwell_acp import memory_transport_pair

from .sweeps import FAULTS, PATIENCE, wait

if TYPE_CHECKING:
    from thinkwell import Agent, ThinkBuilder, ThoughtStream
    from thinkwell.testing import ChaoticTransport, Script, ScriptedTurn, Simulation
    from thinkwell_acp import Transport

    from .runner import Program

    Place: TypeAlias = tuple[int, int]
    """The number of an agent, and of a message on its connection."""

ENDS: Final = ("cancel", "leave stream", "leave agent")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What happens where nothing goes wrong."""

    comes_to: str
    """A result, or the name of an error."""
    limit: int = 9
    """Tool calls that the budget allows."""
    changes: bool = False
    """Whether the first agent changes something before it fails for the last time."""
    in_session: bool = False
    """Whether it is a turn of a session: then the first agent has to succeed."""


SCENES: Final = (
    Scene(comes_to="a result"),
    Scene(comes_to="Overloaded", changes=True),
    Scene(comes_to="BudgetExceeded", limit=3),
    Scene(comes_to="a result", in_session=True),
)


class Tried:
    """One run of up to three tries.

    Args:
        simulation: It.
        scene: What happens.
        fault: What goes wrong.
        end: How it is cancelled.
        place: Where.
    """

    def __init__(
        self, simulation: Simulation, scene: Scene, fault: Fault | None, end: str | None, place: Place
    ) -> None:
        self._simulation = simulation
        self._scene = scene
        self._undisturbed = fault is None and end is None
        self._end = end
        self._place = place
        self._looked = self._changed = self._accepted = 0
        self._streams: list[ThoughtStream[int]] = []
        look, fails = script.says("Hm. ").calls("look"), "overloaded for 2"
        succeeds = look.calls("change").does(self._returns)
        last = succeeds if scene.in_session else (look.calls("change") if scene.changes else look)
        self._told = (look.fails(-32603, fails) + last.fails(-32603, fails), succeeds)
        self.connections: list[ChaoticTransport] = []
        self._theirs: list[Transport] = []
        for number in range(2):
            ours, theirs = memory_transport_pair()
            at = {place[1]: fault} if fault is not None and number == place[0] else {}
            self.connections.append(simulation.chaotic(ours, rates={}, at=at))
            self._theirs.append(theirs)

    async def _returns(self, turn: ScriptedTurn) -> None:
        for value in (7, 8):
            told = await turn.call("return_result", {"result": value})
            self._accepted += told.text.startswith("The result was accepted.")

    def look(self) -> str:
        """Look at something."""
        self._looked += 1
        return "seen"

    def change(self) -> str:
        """Change something."""
        self._changed += 1
        return "changed"

    async def play(self) -> None:
        async with anyio.create_task_group() as tasks:
            for told, theirs in zip(self._told, self._theirs, strict=True):
                tasks.start_soon(serve, told, theirs)
            second = open_agent(known("second"), transport=self.connections[1])
            with suppress(ThinkwellError):
                first = open_agent(known("first"), transport=self.connections[0], fallback=[second])
                async with first as agent:
                    await self._use(agent)
            tasks.cancel_scope.cancel()
        for stream in self._streams:
            await self._check(stream)

    async def _use(self, agent: Agent) -> None:
        if self._scene.in_session:
            async with agent.session() as session:
                await self._run(session.think(int))
        else:
            await self._run(agent.think(int))

    async def _run(self, builder: ThinkBuilder[int]) -> None:
        builder = builder.tool(tool(self.look, readonly=True)).tool(self.change)
        budget = Budget(max_tool_calls=self._scene.limit)
        stream = builder.text("Go").stream(
            include="all", budget=budget, retry=Retry(attempts=2, random=float)
        )
        self._streams.append(stream)
        number, at = self._place
        if self._end is not None:
            with anyio.move_on_after(PATIENCE):
                await self.connections[number].reached(at)
        if self._end == "cancel":
            stream.cancel()
        elif self._end == "leave stream":
            async with stream:
                pass
        if self._end != "leave agent":
            await wait(stream)

    async def _check(self, stream: ThoughtStream[int]) -> None:
        check, error = self._simulation.check, stream.result.exception()
        outcome = "a result" if error is None else type(error).__name__
        self._simulation.count(f"tried runs that came to {outcome}")
        if self._undisturbed:
            check("a run is tried as planned", outcome == self._scene.comes_to, repr(error))
        check("nothing is changed twice", self._changed <= 1, f"{self._changed} times")
        used = self._looked + self._changed
        check("no tool is called beyond the budget", used <= self._scene.limit, f"{used} calls")
        check("at most one value is accepted", self._accepted <= 1, f"{self._accepted}")
        check("a value that is accepted is the result", not self._accepted or error is None, repr(error))
        check("a result was accepted", error is not None or (await stream.result) == 7, repr(error))
        events = [event async for event in stream]
        check("events are in order", [e.seq for e in events] == list(range(1, len(events) + 1)), repr(events))
        last = [event for event in events if isinstance(event, ev.PhaseChanged)][-1]
        check("a run ends once", last.phase in ("completed", "failed", "cancelled"), last.phase)
        failed = [event for event in events if isinstance(event, ev.TryFailed)]
        tries = () if not isinstance(error, ThinkwellError) else error.tries
        check("the error tells of each try", error is None or len(tries) == len(failed), repr(tries))


async def serve(told: Script, theirs: Transport) -> None:
    """Be an agent; what goes wrong with its connection is no fault of it."""
    with suppress(Exception):
        await played(told).serve(theirs)


async def tried(
    simulation: Simulation,
    *,
    scene: Scene,
    fault: Fault | None = None,
    end: str | None = None,
    place: Place = (0, 0),
    reached: list[int] | None = None,
) -> None:
    """Play a scene; `reached` is given how many messages there were on each connection."""
    run = Tried(simulation, scene, fault, end, place)
    await run.play()
    if reached is not None:
        reached += [connection.chaos.messages for connection in run.connections]


def sweep_tries(backend: str, scene: Scene) -> list[tuple[str, int, Program]]:
    """Return a scene with each fault and each cancellation at each message: its name, and where."""
    reached: list[int] = []
    simulate_once(partial(tried, scene=scene, reached=reached), 0, backend)
    found: list[tuple[str, int, Program]] = []
    for number, messages in enumerate(reached):
        for at in range(1, messages + 1):
            place = number, at
            for fault in FAULTS:
                found.append((fault, at, partial(tried, scene=scene, fault=fault, place=place)))
            for end in ENDS:
                found.append((end, at, partial(tried, scene=scene, end=end, place=place)))
    return found
