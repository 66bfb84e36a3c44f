"""The simulation can fail: bugs that are planted between the wire and thinkwell, or in a run, are found.

What passes is noted at the wire. Where a line is lost, changed or answered behind that, it is as if thinkwell
had done it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import pytest

from thinkwell import events as ev
from thinkwell import open_agent
from thinkwell.testing import ScriptedAgent, SimulationFailed, script, simulate_once

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from thinkwell.testing import Simulation
    from thinkwell_acp import Transport

Wrong: TypeAlias = Callable[[Any], dict[str, Any]]
"""Says what is wrong with a stream."""

Change: TypeAlias = Callable[[list[bytes]], list[bytes]]

TOLD = script.thinks("Hm.").says("One. ").asks("rm").says("Two. ").says("Three.")
BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def same(lines: list[bytes]) -> list[bytes]:
    return lines


def without(text: bytes) -> Change:
    return lambda lines: [line for line in lines if text not in line]


def twice(text: bytes) -> Change:
    return lambda lines: [line for line in lines for _ in range(1 + (text in line))]


def swapped(one: bytes, two: bytes) -> Change:
    def change(lines: list[bytes]) -> list[bytes]:
        places = [index for index, line in enumerate(lines) if one in line or two in line]
        if len(places) == 2:
            first, second = places
            lines[first], lines[second] = lines[second], lines[first]
        return lines

    return change


class Planted:
    """Changes what has passed the wire."""

    def __init__(self, transport: Transport, incoming: Change = same, outgoing: Change = same) -> None:
        self._transport = transport
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> bytes:
        while True:
            data = await self._transport.receive()
            changed = b"".join(self._incoming(data.splitlines(keepends=True)))
            if changed:
                return changed

    async def send(self, item: bytes, /) -> None:
        changed = b"".join(self._outgoing(item.splitlines(keepends=True)))
        if changed:
            await self._transport.send(changed)

    async def aclose(self) -> None:
        await self._transport.aclose()


def wire_bug(incoming: Change = same, outgoing: Change = same) -> Callable[[Simulation], Any]:
    async def program(simulation: Simulation) -> None:
        async with ScriptedAgent(TOLD, complete=False).connect() as transport:
            connection = simulation.chaotic(transport, rates={})
            planted = Planted(connection, incoming, outgoing)
            async with open_agent("planted", transport=planted, permissions="allow") as agent:
                stream = agent.think().text("Go").stream(include="all")
                simulation.watch(stream, include="all")
                with anyio.move_on_after(30):
                    await stream.wait()

    return program


@BACKENDS
def test_nothing_is_found_where_nothing_is_planted(backend: str) -> None:
    simulate_once(wire_bug(), 1, backend)


@BACKENDS
@pytest.mark.parametrize(
    ("incoming", "outgoing", "found"),
    [
        pytest.param(without(b"Two."), same, "order of the wire", id="an update is lost"),
        pytest.param(twice(b"Two."), same, "order of the wire", id="an update is told twice"),
        pytest.param(swapped(b"Two.", b"Three."), same, "order of the wire", id="updates are swapped"),
        pytest.param(without(b"Three."), same, "order of the wire", id="the last update is lost"),
        pytest.param(same, without(b"optionId"), "answered once", id="a question is not answered"),
        pytest.param(same, twice(b"optionId"), "answered once", id="a question is answered twice"),
    ],
)
def test_bugs_at_the_wire_are_found(backend: str, incoming: Change, outgoing: Change, found: str) -> None:
    with pytest.raises(SimulationFailed, match=found):  # noqa: PT012 - one of the seeds
        for seed in range(10):  # two updates can only be swapped where they come at once
            simulate_once(wire_bug(incoming, outgoing), seed, backend)


# Bugs of a stream


class Stream:
    """Stands for a run that has gone wrong."""

    def __init__(self, stream: Any, **wrong: Any) -> None:
        self._stream = stream
        self._wrong = wrong

    def __getattr__(self, name: str) -> Any:
        return self._wrong.get(name, getattr(self._stream, name))

    def __aiter__(self) -> AsyncIterator[ev.ThoughtEvent]:
        reader: Callable[[], AsyncIterator[ev.ThoughtEvent]] = self._wrong.get(
            "reader", self._stream.__aiter__
        )
        return reader()


class Changeable:
    """A result that does not stay what it was."""

    def __init__(self, *values: Any) -> None:
        self._values = list(values)

    def done(self) -> bool:
        return self._values[0] is not None

    def exception(self) -> Exception | None:
        value = self._values.pop(0) if len(self._values) > 1 else self._values[0]
        return value if isinstance(value, Exception) else None

    def __await__(self) -> Any:
        yield from anyio.lowlevel.checkpoint().__await__()
        return self._values[0]


def lossy(stream: Any) -> dict[str, Any]:
    """Have the first reader miss an event."""
    begun: list[int] = []

    async def read(first: bool) -> AsyncIterator[ev.ThoughtEvent]:
        async for event in stream:
            if not (first and event.seq == 2):
                yield event

    def reader() -> AsyncIterator[ev.ThoughtEvent]:
        begun.append(1)
        return read(len(begun) == 1)

    return {"reader": reader}


def endless(stream: Any) -> dict[str, Any]:
    """Have no reader end for long."""

    async def reader() -> AsyncIterator[ev.ThoughtEvent]:
        async for event in stream:
            yield event
        await anyio.sleep(1000)

    return {"reader": reader}


def stream_bug(wrong: Wrong) -> Callable[[Simulation], Any]:
    async def program(simulation: Simulation) -> None:
        async with simulation.open(ScriptedAgent(script.says("One.").says("Two.")), rates={}) as agent:
            stream = agent.think().text("Go").stream()
            planted: Any = Stream(stream, **wrong(stream))
            simulation.watch(planted)
            await stream.wait()

    return program


def result(*values: Any) -> Wrong:
    return lambda _stream: {"result": Changeable(*values)}


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        pytest.param(lossy, "readers see the same", id="a reader misses one"),
        pytest.param(endless, "iterators end", id="a reader does not end"),
        pytest.param(result(1, ValueError()), "settled once", id="it fails later"),
        pytest.param(result(ValueError(), ValueError()), "settled once", id="it fails twice"),
        pytest.param(result(1, 1, None), "settled once", id="it is taken back"),
        pytest.param(result(ValueError()), "phase", id="the view does not know"),
    ],
)
def test_bugs_of_a_stream_are_found(wrong: Wrong, found: str) -> None:
    with pytest.raises(SimulationFailed, match=found):
        simulate_once(stream_bug(wrong), 1, "asyncio")


def test_a_run_that_takes_what_is_anothers_is_found() -> None:
    """As if thinkwell had told in the first turn what came in the second."""

    async def program(simulation: Simulation) -> None:
        told = script.says("One.").stops().says("Two.")
        async with simulation.open(ScriptedAgent(told), rates={}) as agent, agent.session() as session:
            first = session.think().text("first").stream()
            await first.wait()
            second = session.think().text("second").stream()
            await second.wait()
            simulation.watch(second, mark="first")
            simulation.watch(first, mark="second")

    with pytest.raises(SimulationFailed, match="order of the wire"):
        simulate_once(program, 1, "trio")
