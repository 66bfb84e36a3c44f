"""Worlds of which a seed decides everything: agents, sessions, runs, readers, faults, and who cancels."""

from __future__ import annotations

from codecs import BOM_UTF8
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from thinkwell import AgentError, ResultInvalid, ThinkwellError, WrongEventLoop, open_agent, wait_for_answer
from thinkwell import events as ev
from thinkwell.testing import DEFAULT_RATES, Fault
from thinkwell_acp import memory_transport_pair

from .plans import Dice, RunPlan
from .player import Player
from .readers import READER_OF, Read

if TYPE_CHECKING:
    from thinkwell import Agent, Session, ThoughtStream
    from thinkwell.testing import ChaoticTransport, Simulation
    from thinkwell_acp import Transport

Json: TypeAlias = dict[str, Any]

FATAL: Final = (Fault.DROP, Fault.HALF_LINE, Fault.HANG, Fault.STUCK)
"""What ends a connection."""

RARE: Final = {Fault.HUGE_NOISE: 0.01, Fault.HUGE_UPDATE: 0.01, Fault.ERROR_ANSWER: 0.02}

PATIENCE: Final = 120.0
"""Seconds after which a user cancels what does not end."""

SOON: Final = 8.0
"""Seconds that nothing but a delay on the wire needs. A cancelled turn gets ten to end."""


class TheUsersError(Exception):
    """Raised in a block of the user's."""


class User:
    """Runs the plans of one agent, in sessions or not, and looks at what they come to."""

    def __init__(
        self,
        simulation: Simulation,
        player: Player,
        connection: ChaoticTransport,
        healthy: bool,
    ) -> None:
        self._simulation = simulation
        self._dice = simulation.dice
        self._player = player
        self._connection = connection
        self._healthy = healthy
        self._streams: list[tuple[RunPlan, ThoughtStream[Any], list[Read]]] = []
        self._harmed = False
        """Whether what happens to one run here may happen to all of them."""

    async def use(self, plans: list[RunPlan]) -> None:
        simulation, dice = self._simulation, self._dice
        asks: Json = {"permissions": "allow"}
        if dice.random() < 0.7:
            asks = {"permissions": "ask", "on_question": dice.choice((self._answer, wait_for_answer))}
            asks["question_timeout"] = dice.choice((1.0, 300.0))
            if self._healthy:
                asks["question_timeout"] = 5.0
        pipe = Marked(self._connection) if dice.random() < 0.2 else self._connection
        try:
            async with open_agent("player", transport=pipe, **asks) as agent:
                await self._in_agent(agent, plans)
        except TheUsersError:
            pass
        except AgentError as exc:
            simulation.count(f"open_agent raised {type(exc).__name__}")
            simulation.check(
                "an agent opens unless the connection is of no use",
                not self._healthy and (self._broken or Fault.ERROR_ANSWER in self._connection.chaos.injected),
                repr(exc),
            )
        for plan, stream, reads in self._streams:
            await self._check_run(plan, stream, reads)

    @property
    def _broken(self) -> bool:
        return self._connection.chaos.broken is not None

    async def _answer(self, _question: object) -> str | None:
        await anyio.sleep(self._dice.choice((0.0, 0.1, 5.0)))
        return self._dice.choice(("allow", "deny", None))

    async def _in_agent(self, agent: Agent, plans: list[RunPlan]) -> None:
        left = [plan for plan in plans if plan.cancel in ("leave agent", "raise")]
        sessions = min(len(plans), self._dice.choice((0, 0, 1, 2)))
        shared = [plans[number::sessions] for number in range(sessions)]
        async with anyio.create_task_group() as tasks:
            for group in shared:
                tasks.start_soon(self._in_session, agent, group)
            if not shared:
                for plan in plans:
                    tasks.start_soon(self._one_run, agent, plan, None)
            if left:
                await anyio.sleep(left[0].cancel_after)
                if left[0].cancel == "leave agent":
                    tasks.cancel_scope.cancel()
        if left and left[0].cancel == "raise":
            raise TheUsersError

    async def _in_session(self, agent: Agent, plans: list[RunPlan]) -> None:
        leaves = next((plan for plan in plans if plan.cancel == "leave session"), None)
        try:
            async with agent.session() as session, anyio.create_task_group() as tasks:
                self._simulation.watch_session(session, self._connection)
                for plan in plans:
                    tasks.start_soon(self._one_run, session, plan, plan.plan.mark)
                if leaves is not None:
                    await anyio.sleep(leaves.cancel_after)
                    tasks.cancel_scope.cancel()
        except AgentError as exc:
            self._simulation.count(f"session() raised {type(exc).__name__}")

    async def _one_run(self, owner: Agent | Session, plan: RunPlan, mark: str | None) -> None:
        simulation = self._simulation
        builder: Any = owner.think(int) if plan.typed else owner.think()
        if plan.tool:
            builder = builder.tool(look)
        try:
            stream: ThoughtStream[Any] = builder.text(plan.plan.mark).stream(**plan.options)
        except AgentError as exc:  # the block is being left
            simulation.count(f"stream() raised {type(exc).__name__}")
            return
        simulation.check("a run is refused in another thread", refused_in_a_thread(stream), stream.id)
        reads = [Read(how) for how in plan.readers]
        self._streams.append((plan, stream, reads))
        if "timeout" in plan.options:
            simulation.in_background(self._time, stream, plan.options["timeout"])
        simulation.watch(
            stream,
            self._connection,
            mark=mark,
            include=plan.options["include"],
            buffer=plan.options.get("buffer"),
        )
        simulation.in_background(self._read_all, stream, reads)
        await self._end(plan, stream)

    async def _time(self, stream: ThoughtStream[Any], limit: float) -> None:
        began = anyio.current_time()
        with suppress(ThinkwellError):
            await stream.result
        took = anyio.current_time() - began
        self._simulation.check("a limit of time is kept", took <= limit + 0.1, f"{took:g} s, not {limit:g} s")

    async def _read_all(self, stream: ThoughtStream[Any], reads: list[Read]) -> None:
        async with anyio.create_task_group() as tasks:
            for read in reads:
                tasks.start_soon(self._read, stream, read)

    async def _read(self, stream: ThoughtStream[Any], read: Read) -> None:
        await READER_OF[read.how](stream, read, self._dice)
        read.ended.set()

    async def _end(self, plan: RunPlan, stream: ThoughtStream[Any]) -> None:
        match plan.cancel:
            case "cancel":
                await anyio.sleep(plan.cancel_after)
                mark, player = plan.plan.mark, self._player
                works = player.works_at[mark] > 0 and not stream.result.done()
                stream.cancel()
                await anyio.sleep(SOON)
                self._simulation.check(
                    "who cancels tells the agent",
                    not works
                    or mark in player.cancelled
                    or self._broken
                    or Fault.ERROR_ANSWER in self._connection.chaos.injected,
                    f"{mark} was cancelled, and the agent worked at it",
                )
            case "task":
                with anyio.move_on_after(plan.cancel_after), suppress(ThinkwellError):
                    async with stream:
                        await stream.result
            case "leave stream":
                async with stream:
                    await anyio.sleep(plan.cancel_after)
            case _:
                with anyio.move_on_after(PATIENCE):
                    await stream.wait()
                stream.cancel()
        await stream.wait()

    # What it came to

    async def _check_run(self, plan: RunPlan, stream: ThoughtStream[Any], reads: list[Read]) -> None:
        simulation, error = self._simulation, stream.result.exception()
        outcome = "a result" if error is None else type(error).__name__
        simulation.count(f"runs that came to {outcome}")
        told = self._player.returned.get(plan.plan.mark, [])
        taken = [value for value, ok, text in told if ok and text.startswith("The result was accepted.")]
        if plan.typed:
            if error is None:
                value = await stream.result
                simulation.check(
                    "the result is the value that was accepted",
                    taken in ([{"result": value}], []),
                    f"{value!r}, and accepted were {taken}",
                )
            simulation.check(
                "an agent is never told of success for a value that is rejected",
                not isinstance(error, ResultInvalid) or not taken,
                f"{error!r} after {taken}",
            )
            simulation.check("at most one value is accepted", len(taken) <= 1, f"{taken}")
            for values in self._player.at_once.get(plan.plan.mark, []):
                good = [value for value, _, _ in values if isinstance(value.get("result"), int)]
                simulation.check(
                    "of values that come at once, the first valid one is taken",
                    not any(value in taken for value in good) or taken == good[:1],
                    f"{taken} of {values}",
                )
            simulation.check(
                "a run whose value was accepted succeeds",
                not taken or error is None,
                f"{error!r} after {taken}",
            )
        if plan.healthy and self._healthy:
            self._check_healthy(plan, stream, error)
        whole = [event async for event in stream]
        for read in reads:
            with anyio.move_on_after(PATIENCE):
                await read.ended.wait()
            simulation.check("iterators end", read.ended.is_set(), read.how)
            buffer = plan.options.get("buffer")
            if buffer is None:
                self._check_read(read, whole)
            elif buffer.overflow == "coalesce":
                self._check_merged(read, whole)
        held = self._player.held.get(plan.plan.mark, 0.0)
        simulation.check(
            "who cancels answers the questions of the turn at once",
            held < SOON or self._broken,
            f"{held:g} s after the cancellation of {plan.plan.mark}",
        )

    def _check_healthy(self, plan: RunPlan, stream: ThoughtStream[Any], error: Exception | None) -> None:
        expected = "".join(step.token for step in plan.plan.steps if step.do == "say")
        self._simulation.check("a healthy run succeeds", error is None, f"{plan.plan.mark}: {error!r}")
        late = "".join(event.text for event in stream.late if isinstance(event, ev.Message))
        self._simulation.check(
            "a healthy run says all that its agent says",
            stream.view.text + late == expected or Fault.LATE_UPDATES in self._connection.chaos.injected,
            f"{stream.view.text!r} is not {expected!r}",
        )

    def _check_read(self, read: Read, whole: list[ev.ThoughtEvent]) -> None:
        if read.how == "result_only":
            return
        wanted = whole[read.skipped :]
        self._simulation.check(
            "each reader sees all, once and in order",
            read.events == wanted,
            f"{read.how} saw {[e.seq for e in read.events]} of {[e.seq for e in wanted]}",
        )

    def _check_merged(self, read: Read, whole: list[ev.ThoughtEvent]) -> None:
        if read.how in ("fast", "slow"):
            seen, wanted = said(read.events), said(whole)
            self._simulation.check(
                "each reader sees all of a merged text, once", seen == wanted, f"{seen!r} is not {wanted!r}"
            )


def said(events: list[ev.ThoughtEvent]) -> str:
    """Return all that the agent said."""
    return "".join(event.text for event in events if isinstance(event, ev.Message))


def refused_in_a_thread(stream: ThoughtStream[Any]) -> bool:
    """Return whether a run cannot be waited for in a thread without an event loop."""
    refused: list[WrongEventLoop] = []

    def use() -> None:
        waiting = stream.wait()  # harmless where it is not refused: the world has to end
        try:
            waiting.send(None)
        except WrongEventLoop as exc:
            refused.append(exc)
        finally:
            waiting.close()

    thread = Thread(target=use)
    thread.start()
    thread.join()
    return bool(refused)


class Marked:
    """A transport on which the agent begins each line with a byte order mark."""

    def __init__(self, transport: Transport) -> None:
        self.send, self.aclose = transport.send, transport.aclose
        self._receive = transport.receive
        self._begins = True

    async def receive(self) -> bytes:
        """Return the next bytes."""
        data = await self._receive()
        marked = (BOM_UTF8 if self._begins else b"") + data.replace(b"\n", b"\n" + BOM_UTF8)
        self._begins = data.endswith(b"\n")
        return marked.removesuffix(BOM_UTF8) if self._begins else marked


async def look(what: str) -> str:
    """Look at something."""
    return f"seen: {what}"


async def world(simulation: Simulation) -> None:
    """Play one world."""
    dice = simulation.dice
    maker = Dice(dice)
    agents = dice.choice((1, 1, 2))
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as users:
            for number in range(agents):
                healthy = number == 1 or dice.random() < 0.15
                plans = [
                    maker.run(f"Go {number}{k};", healthy=healthy) for k in range(dice.choice((1, 1, 2, 3)))
                ]
                ours, theirs = memory_transport_pair()
                rates = {**DEFAULT_RATES, Fault.LATE_UPDATES: 0.03} if dice.random() < 0.7 else {}
                at: dict[int, Fault] = {}
                if not healthy:
                    rates |= RARE if dice.random() < 0.3 else {}
                    if dice.random() < 0.25:
                        at[dice.randint(1, 40)] = dice.choice(sorted(FATAL))
                player = Player(
                    theirs,
                    [plan.plan for plan in plans],
                    lists_tools=healthy or dice.random() < 0.95,
                    can_close=dice.random() < 0.7,
                    prefix=f"a{number}s",
                )
                connection = simulation.chaotic(ours, rates=rates, at=at)
                tasks.start_soon(player.serve)
                users.start_soon(User(simulation, player, connection, healthy).use, plans)
        tasks.cancel_scope.cancel()
