"""Ten agents ask at once: no question is left unanswered, none is answered twice, none crosses over.

Five agents speak ACP and five write lines. Each checks for itself that an answer is the one to its very
question. `make test-all` has a thousand asked on each event loop, by agents that are processes.
``THINKWELL_QUESTIONS=10000 python -m pytest -s tests/listen/test_many_questions.py`` has so many
asked, also by agents that all speak the same.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.lowlevel
import pytest
from listen.talkers import LIMIT, ON_PATH, LineTalker, Protocol, Turn, talking
from listen.worked_out import asks_all, digest, flag, left_open, number, option

from thinkwell import ChooseOption, FormQuestion, PermissionQuestion, open_agent
from thinkwell.listen import Handlers, Transcript
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent, Question

pytestmark = pytest.mark.anyio

MANY = int(os.environ.get("THINKWELL_QUESTIONS", "1000"))
AGENTS = 10
TURNS = 2

AGENT = Path(__file__).parent / "programs" / "questioning_agent.py"

MIXES: dict[str, tuple[Protocol, ...]] = {
    "half and half": ("acp", "ndjson"),
    **({"ACP": ("acp",), "lines": ("ndjson",)} if "THINKWELL_QUESTIONS" in os.environ else {}),
}


class Tally(NamedTuple):
    """What the agents have found."""

    asked: int = 0
    unanswered: int = 0
    twice: int = 0
    crossed: int = 0

    def __add__(self, other: object) -> Tally:
        assert isinstance(other, Tally)
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Supervisor:
    """Works out every answer, and takes its time: as long as the dice say, or until another is through."""

    def __init__(self, seed: str) -> None:
        self._dice = random.Random(seed)
        self._next = anyio.Event()
        self._open = 0
        self.by: Counter[str] = Counter()
        self.at_once = 0
        self.transcript = Transcript()
        self.handlers = Handlers(transcript=self.transcript, max_repeats=1)
        self.handlers.on("question", concurrency=5, by="question")(self.question)
        self.handlers.on("approval", concurrency=3, by="approval")(self.approval)
        self.handlers.on("lookup", concurrency=4)(self.lookup)

    async def think(self) -> None:
        self._open += 1
        self.at_once = max(self.at_once, self._open)
        if self._open > 1 and self._dice.random() < 0.2:
            await self._next.wait()  # there is another one, which is not the last to wait
        for _ in range(self._dice.choice((0, 0, 1, 2, 5, 20, 100))):
            await anyio.lowlevel.checkpoint()
        self._open -= 1
        self._next.set()
        self._next = anyio.Event()

    async def question(self, question: dict[str, Any]) -> object:
        await self.think()
        asked = question["question"]
        self.by["question"] += 1
        if left_open(asked):
            return None
        fields = [field["name"] for field in question.get("fields", ())]
        if "number" in fields:
            return {"number": number(asked), "digest": digest(asked)}
        return digest(asked)

    def approval(self, approval: dict[str, Any]) -> object:
        """In a thread."""
        asked = approval["description"]
        self.by["approval"] += 1
        if left_open(asked):
            return None
        return ChooseOption(option(asked)) if "options" in approval else digest(asked)

    async def lookup(self, lookup: dict[str, Any]) -> object:
        await self.think()
        self.by["lookup"] += 1
        return {"number": number(lookup["key"]), "digest": digest(lookup["key"])}

    async def next_in_the_chain(self, question: Question) -> object:
        await self.think()
        self.by["next"] += 1
        asked = question.title
        assert left_open(asked)
        if isinstance(question, PermissionQuestion):
            by_line = len(question.options) == 2
            return flag(asked) if by_line else ChooseOption(option(asked))
        assert isinstance(question, FormQuestion)
        if any(field.name == "number" for field in question.fields):
            return {"number": number(asked), "digest": digest(asked)}
        return {"answer": digest(asked)}


@asynccontextmanager
async def opened(
    protocol: Protocol, index: int, count: int, supervisor: Supervisor, *, as_process: bool = False
) -> AsyncGenerator[Agent]:
    """Open an agent that asks so many questions in a turn."""
    options: dict[str, Any] = {"permissions": "ask", "on_question": supervisor.next_in_the_chain}
    name = f"agent-{index}"
    if as_process:
        command = [sys.executable, "-W", "error", str(AGENT), protocol, name, f"{count}"]
        async with open_agent(command=command, protocol=protocol, env=ON_PATH, **options) as agent:
            yield agent
    else:
        async with talking(protocol, asks_all(name, count), **options) as (agent, _talker):
            yield agent


async def ask(
    protocols: tuple[Protocol, ...], supervisor: Supervisor, questions: int, *, as_processes: bool
) -> Tally:
    """Let ten agents ask, each in turns of one session after the other."""
    each = questions // AGENTS // TURNS
    tallies: list[Tally] = []

    async def work(agent: Agent) -> None:
        for _ in range(TURNS):
            said = await agent.think().text("Ask.").listen(supervisor.handlers, timeout=250)
            tallies.append(Tally(*map(int, said.split())))

    async with AsyncExitStack() as stack:
        agents: list[Agent] = []
        for index in range(AGENTS):
            protocol = protocols[index % len(protocols)]
            opening = opened(protocol, index, each, supervisor, as_process=as_processes)
            agents.append(await stack.enter_async_context(opening))
        async with anyio.create_task_group() as tasks:
            for agent in agents:
                tasks.start_soon(work, agent)
    return sum(tallies, Tally())


@pytest.mark.long
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize(
    ("questions", "as_processes"), [(200, False), pytest.param(MANY, True, marks=pytest.mark.long)]
)
async def test_every_question_gets_its_own_answer_once(
    mix: str, questions: int, as_processes: bool, anyio_backend: str
) -> None:
    supervisor = Supervisor(mix)
    began = time.perf_counter()
    with anyio.fail_after(280):
        tally = await ask(MIXES[mix], supervisor, questions, as_processes=as_processes)
    took = time.perf_counter() - began
    lookups = supervisor.by["lookup"]
    slowest = max(record.seconds for record in supervisor.transcript)
    print(  # noqa: T201 - the figures
        f"\n{anyio_backend}, {mix}: {tally.asked} questions of {AGENTS} agents: "
        f"{tally.unanswered} unanswered, {tally.twice} answered twice, {tally.crossed} crossed; "
        f"{took:.1f} s, the slowest answer {slowest:.2f} s; "
        f"{supervisor.at_once} thought about at once; asked of {dict(supervisor.by)}"
    )
    assert tally == Tally(asked=questions)
    # The log of the supervisor agrees: each is there once, with its answer, and none else.
    records = supervisor.transcript
    assert len(records) + lookups == questions
    assert len({record.question for record in records}) == len(records)
    assert all(record.by in ("question", "approval", "handler") for record in records)
    for record in records:
        asked = record.question
        both = {"number": number(asked), "digest": digest(asked)}
        assert record.answer in (digest(asked), flag(asked), {"answer": digest(asked)}, both), record
    assert {"question", "approval", "next"} <= set(supervisor.by)


class Confused(Supervisor):
    """Gives the answers to other questions."""

    async def question(self, question: dict[str, Any]) -> object:
        return await super().question(
            {**question, "question": question["question"].replace("agent", "xagent")}
        )


async def test_the_agents_notice_what_is_not_their_answer(protocol: Protocol) -> None:
    supervisor = Confused("confused")
    async with opened(protocol, 0, 20, supervisor) as agent:
        said = await agent.think().text("Ask.").listen(supervisor.handlers)
    tally = Tally(*map(int, said.split()))
    assert tally.crossed > 0
    assert tally == Tally(asked=20, crossed=tally.crossed)


async def test_the_agents_notice_what_is_answered_twice_or_not_at_all() -> None:
    ours, theirs = memory_transport_pair()
    notes: list[object] = []

    async def scene(turn: Turn) -> str:
        first, second = await turn.asks("one", id=1), await turn.asks("two")
        await first.answer()
        with anyio.move_on_after(0.1):
            await second.answer()
        notes.extend((first.told, second.told))
        return "done"

    talker = LineTalker(theirs, [scene])
    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talker.serve)
            await ours.send(b"Ask.\n")
            said = b""
            while said.count(b"\n") < 2:
                said += await ours.receive()
            answer = b'{"type":"response","in_reply_to":"question","value":"yes","id":1}\n'
            await ours.send(answer + answer)
            while b'"result"' not in said:
                said += await ours.receive()
            await ours.aclose()
    assert notes == [["yes"], []]
    assert len(talker.strays) == 1
