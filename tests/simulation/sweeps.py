"""One canonical run, with a fault or a cancellation at each of its steps."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from thinkwell import ThinkwellError, open_agent
from thinkwell.testing import Fault, simulate_once
from thinkwell_acp import memory_transport_pair

from .plans import CANCEL_WAYS
from .player import Plan, Player, Step
from .worlds import FATAL, TheUsersError

if TYPE_CHECKING:
    from thinkwell import Agent, Session, ThinkBuilder, ThoughtStream
    from thinkwell.testing import Simulation

    from .runner import Program

FAULTS: Final = (*FATAL, Fault.ERROR_ANSWER)
RESULT: Final = 7
PATIENCE: Final = 120.0

SECOND: Final = Plan(mark="Second", steps=(Step(do="say", token="s1 "),))

CANONICAL: Final = Plan(
    mark="Go",
    steps=(
        Step(do="think", token="t1 "),
        Step(do="tool", token="t2 ", value=("c", "pending")),
        Step(do="ask", token="t3 "),
        Step(do="say", token="t4 "),
        Step(do="return", value={"result": "seven"}),
        Step(do="tool", token="t5 ", value=("c", "completed")),
        Step(do="call", token="t6 "),
        Step(do="plan", token="t7 "),
    ),
    reminded=(
        Step(do="say", token="t8 "),
        Step(do="return", value={"result": RESULT}),
        Step(do="say", token="t9 "),
    ),
)


async def look(what: str) -> str:
    """Look at something."""
    await anyio.sleep(0.5)
    return what


async def answer(_question: object) -> Literal["allow"]:
    """Answer after a while."""
    await anyio.sleep(0.5)
    return "allow"


class Canonical:
    """The canonical run, with something at one of its messages.

    Args:
        simulation: It.
        fault: What goes wrong.
        cancel: How it is cancelled.
        at: At which message.
        in_session: Whether it runs in a session, and another run waits behind it.
    """

    def __init__(
        self, simulation: Simulation, *, fault: Fault | None, cancel: str | None, at: int, in_session: bool
    ) -> None:
        ours, theirs = memory_transport_pair()
        self._simulation = simulation
        self._undisturbed = fault is None and cancel is None
        self._cancel = cancel
        self._at = at
        self._in_session = in_session
        self.connection = simulation.chaotic(ours, rates={}, at={} if fault is None else {at: fault})
        self._player = Player(theirs, [CANONICAL, SECOND])
        self._streams: dict[str, ThoughtStream[Any]] = {}

    async def play(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._player.serve)
            try:
                async with open_agent(
                    "player", transport=self.connection, permissions="ask", on_question=answer
                ) as agent:
                    await self._use(agent)
            except* (ThinkwellError, TheUsersError):
                pass
            tasks.cancel_scope.cancel()
        self._check()

    async def _moment(self) -> None:
        with anyio.move_on_after(PATIENCE):
            await self.connection.reached(self._at)

    async def _use(self, agent: Agent) -> None:
        async with anyio.create_task_group() as tasks:
            if self._in_session:
                tasks.start_soon(self._converse, agent)
            else:
                tasks.start_soon(self._first, agent.think(int), None)
            if self._cancel in ("leave agent", "raise"):
                await self._moment()
                if self._cancel == "raise":
                    raise TheUsersError
                tasks.cancel_scope.cancel()

    async def _converse(self, agent: Agent) -> None:
        async with agent.session() as session, anyio.create_task_group() as tasks:
            self._simulation.watch_session(session)
            tasks.start_soon(self._first, session.think(int), CANONICAL.mark)
            tasks.start_soon(self._second, session)
            if self._cancel == "leave session":
                await self._moment()
                tasks.cancel_scope.cancel()

    def _start(self, builder: ThinkBuilder[Any], text: str, mark: str | None) -> ThoughtStream[Any]:
        stream = self._streams[text] = builder.text(text).stream(include="all")
        self._simulation.watch(stream, mark=mark, include="all")
        return stream

    async def _second(self, session: Session) -> None:
        await wait(self._start(session.think(), SECOND.mark, SECOND.mark))

    async def _first(self, builder: ThinkBuilder[int], mark: str | None) -> None:
        stream = self._start(builder.tool(look), CANONICAL.mark, mark)
        match self._cancel:
            case "cancel":
                await self._moment()
                stream.cancel()
            case "task":
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(leave_with, stream)
                    await self._moment()
                    tasks.cancel_scope.cancel()
            case "leave stream":
                async with stream:
                    await self._moment()
            case _:
                pass
        await wait(stream)

    def _check(self) -> None:
        simulation = self._simulation
        taken = [value for value, ok, _ in self._player.returned.get(CANONICAL.mark, ()) if ok]
        for stream in self._streams.values():
            error = stream.result.exception()
            simulation.count(f"runs that came to {'a result' if error is None else type(error).__name__}")
            if self._undisturbed:
                simulation.check("the canonical run succeeds", error is None, repr(error))
        if taken:
            error = self._streams[CANONICAL.mark].result.exception()
            simulation.check("a run whose value was accepted succeeds", error is None, repr(error))


async def leave_with(stream: ThoughtStream[Any]) -> None:
    async with stream:
        with suppress(ThinkwellError):
            await stream.result


async def wait(stream: ThoughtStream[Any]) -> None:
    """Wait for the end, and bring it about after a while."""
    with anyio.move_on_after(PATIENCE):
        await stream.wait()
    stream.cancel()
    await stream.wait()


async def canonical(
    simulation: Simulation,
    *,
    fault: Fault | None = None,
    cancel: str | None = None,
    at: int = 0,
    in_session: bool = False,
    reached: list[int] | None = None,
) -> None:
    """Play it; `reached` is given how many messages there were."""
    run = Canonical(simulation, fault=fault, cancel=cancel, at=at, in_session=in_session)
    await run.play()
    if reached is not None:
        reached.append(run.connection.chaos.messages)


def length(backend: str, *, in_session: bool) -> int:
    """Return how many messages pass in the canonical run."""
    reached: list[int] = []
    simulate_once(partial(canonical, in_session=in_session, reached=reached), 0, backend)
    return reached[0]


def sweep(backend: str, *, in_session: bool) -> list[tuple[str, int, Program]]:
    """Return the canonical run with each fault and each cancellation at each message: its name, and where."""
    found: list[tuple[str, int, Program]] = []
    for at in range(1, length(backend, in_session=in_session) + 1):
        for fault in FAULTS:
            found.append((fault, at, partial(canonical, fault=fault, at=at, in_session=in_session)))
        for cancel in CANCEL_WAYS:
            if in_session or cancel != "leave session":
                found.append((cancel, at, partial(canonical, cancel=cancel, at=at, in_session=in_session)))
    return found
