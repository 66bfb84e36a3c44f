"""Steering at random moments: nothing is lost, nothing comes in another run, and no run hangs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from stream.wire_agent import answer, say, update, wire_agent

from thinkwell import Injected, Refused, RunEnded
from thinkwell import events as ev

if TYPE_CHECKING:
    from stream.wire_agent import Json, WireAgent

    from thinkwell import Session, ThoughtStream

pytestmark = pytest.mark.virtual_time

SEEDS: Final = range(25)
TICK: Final = 0.05

LONGEST: Final = 40.0
"""Seconds that a run may take: its turn, and what it stays open for."""


class Worker:
    """An agent that can be steered, as claude-agent-acp does it, or as an agent without marks might.

    It says what it does in words that begin with the number of the run.
    """

    def __init__(self, wire: WireAgent, dice: random.Random, *, marks: bool) -> None:
        self._wire = wire
        self._dice = dice
        self._marks = marks
        self._told: list[str] | None = None
        """What it was told in the turn that runs; ``None`` between turns."""
        self.said: list[str] = []
        self._news = 0

    async def run(self, runs: int) -> None:
        for number in range(runs):
            await self._turn(number, await self._next_prompt())

    async def _next_prompt(self) -> Json:
        while True:
            while not self._wire.unread:  # noqa: ASYNC110 - what is unread is looked at, not taken
                await anyio.sleep(TICK)
            method = self._wire.unread[0]
            message = await self._wire.expect(method)
            if method == "session/prompt":
                return message
            await self._take(message)

    async def _take(self, message: Json) -> None:
        assert message["method"] == "_session/steering", message
        outcome: Json = {"outcome": "promptRequired", "reason": "noRunningTurn"}
        if self._told is not None:
            self._told.append(message["params"]["prompt"][0]["text"])
            outcome = {"outcome": "injected"}
        await self._wire.write(answer(message, outcome))

    async def _pause(self, seconds: float) -> None:
        """Let time pass, and answer what comes meanwhile."""
        for _ in range(round(seconds / TICK)):
            await anyio.sleep(TICK)
            while self._wire.unread and self._wire.unread[0] == "_session/steering":
                await self._take(await self._wire.expect("_session/steering"))

    async def _say(self, text: str) -> None:
        self.said.append(text)
        self._news += 1
        await self._wire.write(say(text, messageId=f"m{self._news}"))

    async def _mark(self, kind: str) -> None:
        if self._marks:
            meta = {"_claude/origin": {"kind": kind}}
            await self._wire.write(update("usage_update", used=1, size=2, _meta=meta))

    async def _turn(self, number: int, prompt: Json) -> None:
        self._told = []
        background = 0.0
        for step in range(self._dice.randint(1, 4)):
            await self._pause(self._dice.uniform(0, 1))
            await self._say(f"{number} step {step}")
        if self._marks and self._told and self._dice.random() < 0.6:
            background = self._dice.uniform(1, 20)
            moved: Json = {
                "toolCallId": f"t{number}",
                "title": "make",
                "status": "completed",
                "rawOutput": "Command was moved to the background (ID: b1)",
                "_meta": {"claudeCode": {"toolName": "Bash"}},
            }
            await self._wire.write(update("tool_call", **moved))
        late = not self._marks and self._dice.random() < 0.5
        if not late:
            await self._read(number)
        await self._mark("human")
        told = self._told
        self._told = None
        await self._wire.write(answer(prompt, {"stopReason": "end_turn"}))
        if late and told:
            for text in told:
                await self._pause(self._dice.uniform(0, 1.5))
                await self._say(f"{number} reads {text}")
        if background:
            await self._pause(background)
            await self._say(f"{number} has made")
            await self._mark("task-notification")

    async def _read(self, number: int) -> None:
        assert self._told is not None
        read = 0
        while read < len(self._told):
            await self._pause(self._dice.uniform(0, 0.5))
            await self._say(f"{number} reads {self._told[read]}")
            read += 1


async def steer(stream: ThoughtStream[Any], dice: random.Random, came_to: list[object]) -> None:
    await anyio.sleep(dice.uniform(0, 4))
    try:
        came_to.append(await stream.steer("this"))
    except RunEnded:
        came_to.append(None)


async def one(session: Session, dice: random.Random, came_to: list[object]) -> ThoughtStream[str]:
    stream = session.think().text("Go").stream(include="all")
    async with anyio.create_task_group() as tasks:
        for _ in range(dice.randint(0, 2)):
            tasks.start_soon(steer, stream, dice, came_to)
        with anyio.fail_after(LONGEST):
            await stream.wait()
    return stream


@pytest.mark.parametrize("marks", [True, False], ids=["marks", "no marks"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_steered_at_random(seed: int, marks: bool) -> None:
    dice = random.Random(seed)
    came_to: list[object] = []
    async with (
        wire_agent(meta={"steering": {"supported": True}}) as (agent, wire),
        anyio.create_task_group() as tasks,
    ):
        worker = Worker(wire, dice, marks=marks)
        tasks.start_soon(wire.open_sessions, ["s"])
        session = await agent.session().start()
        tasks.start_soon(worker.run, 3)
        streams = [await one(session, dice, came_to) for _ in range(3)]
        shown = [[e.text async for e in stream if isinstance(e, ev.Message)] for stream in streams]
        assert [stream.late for stream in streams] == [(), (), ()]
        assert [text for texts in shown for text in texts] == worker.said
        for number, texts in enumerate(shown):
            assert all(text.startswith(f"{number} ") for text in texts), texts
        refused = (Refused("noRunningTurn"), Refused("the agent has no turn"))
        assert all(outcome in (None, Injected(), *refused) for outcome in came_to)
        assert sum("reads this" in text for text in worker.said) == came_to.count(Injected())
        await session.close()
