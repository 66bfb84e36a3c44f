"""Worlds in which agents are told something while they work: in text, in a tool, at the end of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio

from thinkwell import (
    AgentError,
    Injected,
    Refused,
    RunEnded,
    SteeringUnsupported,
    ThinkwellError,
    open_agent,
)
from thinkwell import events as ev
from thinkwell.testing import DEFAULT_RATES, Fault
from thinkwell_acp import memory_transport_pair

from .player import Wire
from .worlds import FATAL

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from anyio.abc import TaskGroup

    from thinkwell import Agent, Session, ThoughtStream
    from thinkwell.testing import ChaoticTransport, Simulation
    from thinkwell_acp import Transport

Json: TypeAlias = dict[str, Any]

Manner: TypeAlias = Literal["marks", "quiet", "deaf"]
"""How an agent is steered: it marks where its work ends, as claude-agent-acp; it does not; it cannot be."""

LONGEST: Final = 60.0
"""Seconds that a run may take: its turn, what it stays open for, and the end of a turn that hangs."""

BACKGROUND: Final = 25.0
"""Seconds in which an agent has done all that it goes on with after its answer."""

RUNS: Final = 3


class Worker(Wire):
    """An agent that says what it does in words that begin with the number of the run.

    Args:
        transport: Its end of the connection.
        dice: What decides.
        manner: How it is steered.
    """

    def __init__(self, transport: Transport, dice: random.Random, manner: Manner) -> None:
        super().__init__(transport)
        self._dice = dice
        self._manner = manner
        self._told: list[str] | None = None
        """What it was told in the turn that runs; ``None`` between turns."""
        self._run = ""
        self._said = 0
        self._turn = anyio.CancelScope()
        self.works = 0
        """How many turns it works at, answered or not."""

    async def _take(self, message: Json, tasks: TaskGroup) -> None:
        match message.get("method"):
            case "initialize":
                meta = {} if self._manner == "deaf" else {"steering": {"supported": True}}
                flags = {
                    "mcpCapabilities": {"acp": True}
                }  # else a path of this machine would be in the trace
                await self._answer(message, {"protocolVersion": 1, "agentCapabilities": flags, "_meta": meta})
            case "session/new":
                await self._answer(message, {"sessionId": "s"})
            case "session/prompt":
                self._told, self._turn = [], anyio.CancelScope()
                tasks.start_soon(self._prompted, message)
            case "session/cancel":
                self._turn.cancel()
            case "_session/steering":
                if self._told is None or self._turn.cancel_called:
                    await self._answer(message, {"outcome": "promptRequired", "reason": "noRunningTurn"})
                elif self._dice.random() < 0.15:
                    await self._answer(message, {"outcome": "failed"})
                else:
                    self._told.append(message["params"]["prompt"][0]["text"])
                    await self._answer(message, {"outcome": "injected"})
            case _:
                pass

    async def _prompted(self, prompt: Json) -> None:
        dice, told = self._dice, self._told
        assert told is not None
        asked = [block["text"] for block in prompt["params"]["prompt"]]
        if asked[0].startswith("Go "):
            self._run = asked.pop(0).removeprefix("Go ").removesuffix(";")
        number = self._run
        self.works += 1
        late, background = self._manner == "quiet" and dice.random() < 0.5, 0.0
        with self._turn:
            for text in asked:
                await self._say(f"{number} reads {text}")
            for step in range(dice.randint(1, 4)):
                await anyio.sleep(dice.uniform(0, 1))
                await self._say(f"{number} step {step}")
            if self._manner == "marks" and told and dice.random() < 0.6:
                background = dice.uniform(1, 20)
                await self._move_to_background()
            read = 0
            while read < len(told) and not late:
                await anyio.sleep(dice.uniform(0, 0.5))
                await self._say(f"{number} reads {told[read]}")
                read += 1
        self._told = None
        if self._turn.cancelled_caught:
            await self._answer(prompt, {"stopReason": "cancelled"})
            self.works -= 1
            return
        await self._mark("human")
        await self._answer(prompt, {"stopReason": "end_turn"})
        if late:
            for text in told:
                await anyio.sleep(dice.uniform(0, 1.5))
                await self._say(f"{number} reads {text}")
        if background:
            await anyio.sleep(background)
            await self._say(f"{number} has made")
            await self._mark("task-notification")
        self.works -= 1

    async def _say(self, text: str) -> None:
        self._said += 1
        content = {"type": "text", "text": text}
        await self._update("s", "agent_message_chunk", content=content, messageId=f"m{self._said}")

    async def _mark(self, kind: str) -> None:
        if self._manner == "marks":
            await self._update("s", "usage_update", used=1, size=2, _meta={"_claude/origin": {"kind": kind}})

    async def _move_to_background(self) -> None:
        await self._update(
            "s",
            "tool_call",
            toolCallId=f"t{self._said}",
            title="make",
            status="completed",
            rawOutput="Command was moved to the background (ID: b1)",
            _meta={"claudeCode": {"toolName": "Bash"}},
        )


class User:
    """Has some runs in a session, tells the agent something in them, and looks at what came of it."""

    def __init__(
        self, simulation: Simulation, worker: Worker, connection: ChaoticTransport, manner: Manner
    ) -> None:
        self._simulation = simulation
        self._worker = worker
        self._dice = simulation.dice
        self._connection = connection
        self._manner = manner

    @property
    def _broken(self) -> bool:
        return self._connection.chaos.broken is not None

    async def use(self) -> None:
        try:
            async with (
                open_agent("worker", transport=self._connection) as agent,
                agent.session() as session,
            ):
                await self._in_session(agent, session)
        except AgentError as exc:
            self._simulation.check("an agent opens unless its connection breaks", self._broken, repr(exc))

    async def _in_session(self, agent: Agent, session: Session) -> None:
        self._simulation.watch_session(session, self._connection)
        for number in range(RUNS):
            await self._one_run(session, number)

    async def _one_run(self, session: Session, number: int) -> None:
        simulation, dice = self._simulation, self._dice
        stream = session.think().text(f"Go {number};").stream(include="all")
        simulation.watch(stream, self._connection, mark=f"Go {number};", include="all")
        injected = list[str]()
        cancels = dice.random() < 0.15
        async with anyio.create_task_group() as tasks:
            for each in range(dice.randint(0, 3)):
                tasks.start_soon(self._steer, stream, f"{number}.{each}", injected)
            if cancels:
                await anyio.sleep(dice.uniform(0, 4))
                stream.cancel()
            with anyio.move_on_after(LONGEST):
                await stream.wait()
            simulation.check(
                "a run that is steered ends", stream.result.done() or self._broken, f"run {number}"
            )
            if stream.result.exception() is None:
                works = self._worker.works
                simulation.check("a run ends when its agent has done all", not works, f"run {number}")
            stream.cancel()  # where the agent hangs
        if cancels:  # an agent that has answered cannot be told to stop, and goes on: beside no other run
            await anyio.sleep(BACKGROUND)
        said = [event.text async for event in stream if isinstance(event, ev.Message)]
        simulation.check(
            "what an agent says stands in the run that it is about",
            all(text.startswith(f"{number} ") for text in said),
            f"run {number} has {said}",
        )
        if stream.result.exception() is None:
            read = [text.rpartition(" ")[2] for text in said if " reads " in text]
            simulation.check(
                "what an agent takes is read in its run, once, and nothing else",
                sorted(read) == sorted(injected),
                f"run {number}: {read} were read, {injected} taken",
            )
            simulation.check(
                "the user's messages stand in the run",
                sorted(stream.view.user_messages) == sorted(injected),
                f"run {number}: {stream.view.user_messages}",
            )

    async def _steer(self, stream: ThoughtStream[Any], text: str, injected: list[str]) -> None:
        await anyio.sleep(self._dice.uniform(0, 4))
        try:
            came_to = await stream.steer(text)
        except RunEnded:
            outcome = "RunEnded"
        except SteeringUnsupported:
            outcome = "SteeringUnsupported"
            self._simulation.check("only deaf agents cannot be steered", self._manner == "deaf")
        except ThinkwellError as exc:
            outcome = type(exc).__name__
            self._simulation.check("steering raises only where all is over", self._broken, repr(exc))
        else:
            outcome = came_to.outcome
            if came_to == Injected():
                injected.append(text)
            else:
                self._simulation.check("it is taken or refused", isinstance(came_to, Refused), repr(came_to))
        self._simulation.count(f"steered, and it came to {outcome}")


async def steered(simulation: Simulation) -> None:
    """Play one world."""
    dice = simulation.dice
    manners: tuple[Manner, ...] = ("marks", "marks", "quiet", "quiet", "deaf")
    manner = dice.choice(manners)
    # Whether an agent without marks is silent, or its words are late, cannot be told.
    rates: Mapping[Fault, float] = DEFAULT_RATES if manner != "quiet" and dice.random() < 0.6 else {}
    at = {dice.randint(3, 40): dice.choice(FATAL)} if dice.random() < 0.15 else {}
    ours, theirs = memory_transport_pair()
    connection = simulation.chaotic(ours, rates=rates, at=at)
    async with anyio.create_task_group() as tasks:
        worker = Worker(theirs, dice, manner)
        tasks.start_soon(worker.serve)
        await User(simulation, worker, connection, manner).use()
        tasks.cancel_scope.cancel()
