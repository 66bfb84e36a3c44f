"""Progress, questions, approvals, results, errors and cancellations in any order, over ACP and in lines.

``THINKWELL_INTERLEAVINGS=1000 python -m pytest -s tests/listen/test_listen_interleavings.py`` tries a
thousand of each on each event loop.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from listen.talkers import AcpTurn, HangUp, LineTurn, Protocol, Reported, Turn, talking

from thinkwell import AgentExited, QuestionsStopped, ThoughtTimeout, wait_for_answer
from thinkwell import events as ev
from thinkwell.errors import AgentReported, ThoughtCancelled
from thinkwell.listen import Handlers, Transcript, listen
from thinkwell.testing import Simulation, simulate

if TYPE_CHECKING:
    import random

    from listen.talkers import Asked, Talker

    from thinkwell import Agent, ThoughtStream

MANY = int(os.environ.get("THINKWELL_INTERLEAVINGS", "20"))

MAX_REPEATS = 3
SAME = "the same again"


class Boom(Exception):  # noqa: N818 - what happens
    """Raised by handlers."""


async def pause(dice: random.Random, *seconds: float) -> None:
    """Let others run, for a moment, or now and then for one of these times."""
    if dice.random() < 0.3:
        await anyio.sleep(dice.choice(seconds))
    for _ in range(dice.choice((0, 0, 1, 2, 3, 5, 8, 13))):
        await anyio.lowlevel.checkpoint()


def answer_to(kind: str, words: str) -> object:
    """Return the one right answer."""
    if kind == "approval":
        return len(words) % 2 == 0
    return f"answer to {words}" if kind == "question" else {"to": words}


class Play:
    """A turn as the dice have it, and what came of it."""

    def __init__(self, number: int, dice: random.Random) -> None:
        self.number = number
        self._dice = dice
        self.asked: list[tuple[str, str, Asked]] = []
        """What was asked: the kind, the words, and what was told."""
        self.progress: list[str] = []
        self.partial = ""
        self.same = 0
        """How often it has asked the same."""
        self.waited = False
        """Whether it has had the answers to all."""
        self.end: tuple[str, str] | None = None
        """How it has ended its turn."""

    async def __call__(self, turn: Turn) -> str:
        dice = self._dice
        for number in range(dice.randint(1, 8)):
            if dice.random() < 0.3:
                async with turn.talker.at_once():
                    await self._act(turn, f"{self.number}.{number}a")
                    await self._act(turn, f"{self.number}.{number}b")
            else:
                await self._act(turn, f"{self.number}.{number}")
            await pause(dice, 0.01, 1, 5)
            if dice.random() < 0.3 and self.asked:
                await self.asked[-1][2].answer()
        how = dice.choice(("result", "result", "result", "error", "hang up", "hang"))
        if dice.random() < 0.7:
            for _, _, asked in self.asked:
                await asked.answer()
            self.waited = True
        if how == "hang":
            await anyio.sleep_forever()
        if how == "result":
            self.end = how, f"result {self.number}"
            return self.end[1]
        self.end = how, f"error {self.number}"
        raise Reported(self.end[1]) if how == "error" else HangUp

    async def _act(self, turn: Turn, words: str) -> None:
        dice = self._dice
        kind = dice.choice(
            ("progress", "partial", "question", "question", "approval", "hint", "same", "back")
        )
        if kind == "progress":
            self.progress.append(f"step {words}")
            await turn.progress(f"step {words}")
        elif kind == "partial":
            self.partial += f"part {words} "
            await turn.partial(f"part {words} ")
        elif kind == "approval":
            self.asked.append((kind, words, await turn.asks_for(words, id=dice.choice((None, words)))))
        elif kind == "hint" and isinstance(turn, LineTurn):
            self.asked.append(
                (kind, words, await turn.asks_else("hint", words=words, id=dice.choice((None, [7.5, words]))))
            )
        elif kind == "back" and isinstance(turn, AcpTurn) and self.asked:
            await turn.withdraw(turn.last_request)
        else:
            words = SAME if kind == "same" else words
            self.same += kind == "same"
            self.asked.append(("question", words, await turn.asks(words, id=dice.choice((None, words)))))


class Ear:
    """The handlers of one run, and everything that they did."""

    def __init__(self, simulation: Simulation, play: Play, *, has_others: bool) -> None:
        self._simulation = simulation
        self._has_others = has_others
        self._dice = simulation.dice
        self._play = play
        self.booms: list[Boom] = []
        self.heard: list[str] = []
        self.parts = ""
        self.ends: list[str] = []
        """What was heard of the end."""
        self.active = 0
        self.returned = False
        self.transcript = Transcript()
        self.handlers = Handlers(transcript=self.transcript, max_repeats=MAX_REPEATS)
        self.careful = self._dice.random() < 0.7
        """Whether no handler raises."""
        for kind in ("question", "approval", "hint"):
            self._on(kind, self._answer, concurrency=self._dice.choice((None, None, 1, 2, 5)))
        self._on("progress", self._progress)
        self._on("partial", self._partial)
        self._on("result", self._end)
        self._on("error", self._end)

    def _on(self, kind: str, does: Any, **options: Any) -> None:
        async def handler(message: dict[str, Any]) -> object:
            check = self._simulation.check
            check("no handler begins when listen has returned", not self.returned, kind)
            self.active += 1
            try:
                value = await does(kind, message)
            finally:
                self.active -= 1
                check("no handler runs when listen has returned", not self.returned, kind)
            if kind not in ("result", "error") and not self.careful and self._dice.random() < 0.05:
                self.booms.append(Boom(f"{kind} of run {self._play.number}"))
                raise self.booms[-1]
            return value

        timeout = None if kind == "hint" else self._dice.choice((2, 30, None))
        self.handlers.on(kind, by=f"the {kind}s' own", timeout=timeout, **options)(handler)

    async def _answer(self, kind: str, message: dict[str, Any]) -> object:
        words = message.get("question") or message.get("description") or message["words"]
        if self._dice.random() < 0.1:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(3)
        else:
            await pause(self._dice, 0.01, 1, 5, 50)
        # A program that is told nothing takes the next answer for it where only their order tells it more.
        may_be_silent = "id" in message or (self._has_others and kind != "hint")
        return None if may_be_silent and self._dice.random() < 0.15 else answer_to(kind, words)

    async def _progress(self, _kind: str, message: dict[str, Any]) -> None:
        self.heard.append(message["message"])
        await pause(self._dice, 0.01, 1, 5)

    async def _partial(self, _kind: str, message: dict[str, Any]) -> None:
        self.parts += message["text"]
        await pause(self._dice, 0.01)

    async def _end(self, kind: str, _message: dict[str, Any]) -> None:
        self._simulation.check(
            "the handler of the end is the last", self.active == 1, f"{self.active} are active"
        )
        self.ends.append(kind)


class Scene:
    """An agent, its runs and their ears."""

    def __init__(self, simulation: Simulation, protocol: Protocol) -> None:
        self._simulation = simulation
        self._protocol: Protocol = protocol
        self.dice = simulation.dice
        self._plays = {number: Play(number, self.dice) for number in range(self.dice.randint(1, 3))}
        self._has_others = False
        """Whether anybody is asked after the handlers."""
        self._cut_short = False
        """Whether a run was ended before its time: a program does not outlive that."""

    async def _play(self, turn: Turn) -> str:
        return await self._plays[int(turn.prompt)](turn)

    async def run(self) -> None:
        dice = self.dice
        options: dict[str, Any] = {"permissions": dice.choice((None, "ask")), "question_timeout": 60}
        self._has_others = options["permissions"] == "ask"
        if self._has_others:
            chain = dice.choice(([wait_for_answer], [self._shrug], [self._shrug, wait_for_answer]))
            options["on_question"] = chain
        async with (
            talking(self._protocol, self._play, **options) as (agent, talker),
            anyio.create_task_group() as tasks,
        ):
            for play in self._plays.values():
                tasks.start_soon(self._listen, agent, play)
                await pause(dice, 0.01, 1)
        self._check_wire(talker)

    async def _shrug(self, _question: object) -> None:
        await pause(self.dice, 0.01, 1, 5)

    async def _listen(self, agent: Agent, play: Play) -> None:
        dice, ear = self.dice, Ear(self._simulation, play, has_others=self._has_others)
        stream = agent.think().text(f"{play.number}").stream(include="all")
        limit = dice.choice((None, None, None, None, 3.0, 20.0))
        outcome: object = None
        leaves = dice.random() < 0.2
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                if leaves:
                    tasks.start_soon(self._later, scope.cancel)
                elif limit is None:
                    # Some agents hang.
                    tasks.start_soon(self._later, stream.cancel, 500.0)
                try:
                    outcome = await listen(stream, ear.handlers, timeout=limit)
                except Exception as exc:  # what it may be is checked below
                    outcome = exc
                finally:
                    ear.returned = True
                    self._simulation.check("no handler is active at the end", ear.active == 0)
                    self._cut_short = self._cut_short or not isinstance(outcome, str)
                tasks.cancel_scope.cancel()
        if scope.cancelled_caught and outcome is None:
            outcome = "left"
            self._simulation.check("who leaves has left", leaves)
        await stream.wait()
        stream.result.exception()
        events = [event async for event in stream]
        self._check(play, ear, stream, outcome, events)

    async def _later(self, does: Any, seconds: float | None = None) -> None:
        if seconds is None:
            await pause(self.dice, 0.01, 1, 5, 20)
        else:
            await anyio.sleep(seconds)
        self._cut_short = True
        does()

    def _check(
        self, play: Play, ear: Ear, stream: ThoughtStream[str], outcome: object, events: list[ev.ThoughtEvent]
    ) -> None:
        check = self._simulation.check
        self._simulation.count(f"{self._protocol}: {outcome if outcome == 'left' else _kind(outcome)}")
        check("listen comes to the right end", self._is_right(play, ear, outcome), f"{outcome!r}, {play.end}")
        if ear.booms:
            # One over a question that was withdrawn is only logged, where the run has failed by itself.
            check("an error of a handler is raised", not isinstance(outcome, str) or outcome == "left")
        asked = [event.id for event in events if isinstance(event, ev.QuestionAsked)]
        answered = [event.id for event in events if isinstance(event, ev.QuestionAnswered)]
        check(
            "each question has one end on the log", sorted(asked) == sorted(answered), f"{asked}, {answered}"
        )
        recorded = [record.question_id for record in ear.transcript]
        check(
            "each question is in the transcript once",
            sorted(recorded) == sorted(asked),
            f"{recorded}, {asked}",
        )
        check("no question is open", stream.view.questions == ())
        ended = "result" if outcome == f"result {play.number}" else None
        ended = "error" if isinstance(outcome, AgentReported) else ended
        if outcome == "left" or isinstance(outcome, ThoughtTimeout | ThoughtCancelled):
            check("the end is heard once at most", len(ear.ends) <= 1, f"{ear.ends}")
        else:
            check("the end is heard once", ear.ends == ([] if ended is None else [ended]), f"{ear.ends}")
        if ended is not None:
            heard = list(dict.fromkeys(step for step in ear.heard if step.startswith("step")))
            check("all progress is heard, in order", heard == play.progress, f"{heard}, {play.progress}")
            said = play.partial if self._protocol == "ndjson" else play.partial + str(outcome)
            said = play.partial if ended == "error" else said
            check("all that was said is heard, in order", ear.parts == said, f"{ear.parts!r}, {said!r}")

    def _is_right(self, play: Play, ear: Ear, outcome: object) -> bool:
        how, what = play.end or ("", "")
        match outcome:
            case str():
                return outcome == "left" or (how == "result" and outcome == what)
            case Boom():
                return outcome in ear.booms
            case AgentReported():
                return how == "error" and outcome.message == what
            case AgentExited():
                hung_up = any(one.end is not None and one.end[0] == "hang up" for one in self._plays.values())
                return hung_up or (self._protocol == "ndjson" and self._cut_short)
            case QuestionsStopped():
                return play.same > MAX_REPEATS
            case ThoughtTimeout():
                return outcome.seconds in (3.0, 20.0)
            case ThoughtCancelled():
                return self._cut_short
            case _:
                return False

    def _check_wire(self, talker: Talker) -> None:
        check = self._simulation.check
        check("no answer comes that nobody waits for", talker.strays == [], f"{talker.strays}")
        for play in self._plays.values():
            for kind, words, asked in play.asked:
                self._simulation.count(f"{self._protocol}: {kind} answered {len(asked.told)} times")
                check("no question is answered twice", len(asked.told) <= 1, f"{words}: {asked.told}")
                right = (answer_to(kind, words), None, False)
                check(
                    "an answer is its own",
                    all(told in right for told in asked.told),
                    f"{words}: {asked.told}",
                )
                if play.waited:
                    check("each question is answered", len(asked.told) == 1, words)


def _kind(outcome: object) -> str:
    return "result" if isinstance(outcome, str) else type(outcome).__name__


async def interleave(protocol: Protocol, simulation: Simulation) -> None:
    simulation.error_logs_expected = True  # handlers that raise when all is over
    await Scene(simulation, protocol).run()


@pytest.mark.parametrize("seeds", [MANY, pytest.param(60, marks=pytest.mark.long)])
def test_what_must_hold_in_any_order(protocol: Protocol, seeds: int) -> None:
    report = simulate(partial(interleave, protocol), seeds=seeds)
    print(f"\n{protocol}: {report}")  # noqa: T201 - the figures
    if seeds > 30:  # the dice have been everywhere
        ends = (
            "result",
            "AgentReported",
            "AgentExited",
            "Boom",
            "ThoughtTimeout",
            "ThoughtCancelled",
            "left",
        )
        for end in ends:
            assert report.noted[f"{protocol}: {end}"], end
