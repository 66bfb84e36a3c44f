"""Questions, answers and cancellations in any order: each question is answered once, and the log says how.

``THINKWELL_INTERLEAVINGS=1000 python -m pytest -s tests/limits/test_interleavings.py`` tries a thousand on
each event loop.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from limits.seeds import noted, seeds
from limits.tap import QUESTIONS, Json, Tap, told
from suite.tiers import few

from thinkwell import QuestionNotOpen, ThoughtStream, open_agent, wait_for_answer
from thinkwell import events as ev
from thinkwell.testing import virtual_backend
from thinkwell_acp import memory_transport_pair

if TYPE_CHECKING:
    import random

MANY = seeds("THINKWELL_INTERLEAVINGS", few(100))

CAPABILITIES = {"mcpCapabilities": {"acp": True}}
"""No other way for tools is opened then: those take real time."""

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
CHOICES = {
    "allow_once": "yes",
    "reject_once": "no",
    "accept": "accept",
    "decline": "decline",
    "cancel": "cancelled",
    None: "cancelled",
}
"""What the wire has to say for what the log says."""


async def pause(dice: random.Random, *seconds: float) -> None:
    """Let others run, for a moment, or now and then for one of these times."""
    if dice.random() < 0.2:
        await anyio.sleep(dice.choice(seconds))
    for _ in range(dice.choice((0, 0, 1, 2, 3, 5, 8, 13, 21))):
        await anyio.lowlevel.checkpoint()


class Player:
    """An agent that asks, takes back its questions, and ends its turns when it likes."""

    def __init__(self, tap: Tap, dice: random.Random) -> None:
        self._tap = tap
        self._dice = dice
        self._ids: list[int] = []
        self._cancelled = False
        self._outbox: list[Json] = []
        self.hangs = dice.random() < 0.5
        """Whether the turn only ends when it is cancelled."""

    async def serve(self) -> None:
        read = 0
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    await self._tap.receive()
                except (anyio.EndOfStream, anyio.ClosedResourceError):
                    tasks.cancel_scope.cancel()
                    return
                new, read = self._tap.came[read:], len(self._tap.came)
                for message in new:
                    await self._take(message, tasks)

    async def _take(self, message: Json, tasks: Any) -> None:
        match message.get("method"):
            case "initialize":
                await self._send(_result(message, {"protocolVersion": 1, "agentCapabilities": CAPABILITIES}))
            case "session/new":
                await self._send(_result(message, {"sessionId": "s"}))
            case "session/prompt":
                self._cancelled = False
                tasks.start_soon(self._play, message)
            case "session/cancel":
                self._cancelled = True
            case _:
                pass

    async def _send(self, *messages: Json) -> None:
        await self._tap.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def _play(self, prompt: Json) -> None:
        again = prompt["params"]["prompt"][0]["text"] == "again"
        dice = self._dice
        for _ in range(0 if again else dice.randint(3, 10)):
            await pause(dice, 0.01, 0.1)
            if self._cancelled and dice.random() < 0.5:
                break  # else it has not read that yet, or does not care
            self._outbox.append(self._act())
            if dice.random() < 0.7:
                await self._flush()
        while self.hangs and not self._cancelled and not again:
            await self._flush()
            await anyio.sleep(0.1)
        await pause(dice, 0.01, 0.1)
        self._outbox.append(self._end(prompt))  # perhaps in one block with a question
        await self._flush()

    async def _flush(self) -> None:
        messages, self._outbox = self._outbox, []
        if messages:
            await self._send(*messages)

    def _act(self) -> Json:
        act = self._dice.choice(
            ("permission", "permission", "permission", "form", "form", "take back", "speak")
        )
        if act == "speak":
            content = {"type": "text", "text": "x"}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            return _notification("session/update", {"sessionId": "s", "update": update})
        if act == "take back" and self._ids:  # answered or not
            return _notification("$/cancel_request", {"requestId": self._dice.choice(self._ids)})
        id_ = 100 + len(self._ids)
        self._ids.append(id_)
        if act == "form":
            schema = {"type": "object", "properties": {"x": {"type": "string"}}}
            params = {"sessionId": "s", "mode": "form", "message": f"{id_}", "requestedSchema": schema}
            return {"jsonrpc": "2.0", "id": id_, "method": QUESTIONS[1], "params": params}
        call = {"toolCallId": f"t{id_}", "title": f"{id_}"}
        return {
            "jsonrpc": "2.0",
            "id": id_,
            "method": QUESTIONS[0],
            "params": {"sessionId": "s", "toolCall": call, "options": OPTIONS},
        }

    def _end(self, prompt: Json) -> Json:
        if not self._cancelled:
            return _result(prompt, {"stopReason": "end_turn"})
        how = self._dice.choice(("cancelled", "cancelled", "end_turn", "error", "gone"))
        if how in ("error", "gone"):
            code = -32603 if how == "error" else -32800
            return {"jsonrpc": "2.0", "id": prompt["id"], "error": {"code": code, "message": "aborted"}}
        return _result(prompt, {"stopReason": how})


def _result(request: Json, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def _notification(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class User:
    """Answers and cancels when it likes."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def settings(self) -> dict[str, Any]:
        """Who is asked, and for how long."""
        handlers = self._dice.choice(
            ([wait_for_answer], [self._answer], [self._shrug, wait_for_answer], [self._fail, self._answer])
        )
        return {"on_question": handlers, "question_timeout": self._dice.choice((1.0, 4.0, 300.0))}

    async def _answer(self, _question: object) -> str | None:
        await pause(self._dice, 0.01, 0.5, 1, 3, 5)
        return self._dice.choice(("allow", "deny", None))

    async def _shrug(self, _question: object) -> None:
        await pause(self._dice, 0.01, 0.5, 1, 3, 5)

    async def _fail(self, _question: object) -> str:
        await pause(self._dice, 0.01, 0.5, 1, 3, 5)
        raise ValueError("the handler's")

    async def act(self, stream: ThoughtStream[str]) -> None:
        """Do something now and then, in two tasks."""
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(self._act, stream)

    async def _act(self, stream: ThoughtStream[str]) -> None:
        for _ in range(self._dice.randint(1, 8)):
            await pause(self._dice, 0.01, 0.5, 1, 3, 5)
            for question in stream.view.questions:
                if self._dice.random() < 0.6:
                    self._say(stream, question.id)
            if self._dice.random() < 0.08:
                stream.cancel()
                if self._dice.random() < 0.5:
                    for question in stream.view.questions:
                        self._say(stream, question.id)

    def _say(self, stream: ThoughtStream[str], question_id: str) -> None:
        with suppress(QuestionNotOpen):
            stream.answer(question_id, self._dice.choice(("allow", "deny", True)))


class Tally:
    """What came of all the questions."""

    def __init__(self) -> None:
        self.how_often: Counter[int] = Counter()
        self.told: Counter[str] = Counter()
        self.by: Counter[str] = Counter()
        self.unasked = 0
        self.disagreements: list[str] = []

    def add(self, tap: Tap, events: list[ev.ThoughtEvent]) -> None:
        self.how_often += tap.how_often
        wire = {str(id_): told(given[0]) for id_, given in tap.answers.items() if given}
        self.told.update(wire.values())
        asked = {event.id: event.title for event in events if isinstance(event, ev.QuestionAsked)}
        answered = [event for event in events if isinstance(event, ev.QuestionAnswered)]
        self.by.update(event.by for event in answered)
        for title in wire.keys() - asked.values():
            self.unasked += 1
            if wire[title] not in ("cancelled", "no", "decline"):
                self.disagreements.append(f"{title} was never asked, and told {wire[title]}")
        if sorted(event.id for event in answered) != sorted(asked):
            self.disagreements.append(f"asked {sorted(asked)}, answered {[event.id for event in answered]}")
        for event in answered:
            if wire.get(asked[event.id]) != CHOICES[event.choice]:
                self.disagreements.append(f"{event} was told {wire.get(asked[event.id])}")

    def check(self) -> None:
        assert set(self.how_often) <= {1}, f"answered so often: {self.how_often}"
        assert self.disagreements == []


async def interleave(dice: random.Random, tally: Tally) -> None:
    ours, theirs = memory_transport_pair()
    tap = Tap(theirs)
    player, user = Player(tap, dice), User(dice)
    events: list[ev.ThoughtEvent] = []
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        tasks.start_soon(player.serve)
        agent = await stack.enter_async_context(
            open_agent("player", transport=ours, permissions="ask", **user.settings())
        )
        session = await stack.enter_async_context(agent.session()) if dice.random() < 0.5 else None
        stream = (session or agent).think().text("Go").stream(include="all")
        if dice.random() < 0.3:
            await stack.enter_async_context(stream)
        await user.act(stream)
        leaves = dice.random() < 0.3
        if not leaves:
            if player.hangs:
                stream.cancel()
            await stream.wait()
            if session is not None:
                assert await session.think().text("again").run() == "", "the session can be used"
        await stack.aclose()
        await stream.wait()
        stream.result.exception()
        assert stream.view.questions == ()
        # What was read with the turn's end is served behind it, and is on the log of the session.
        events = [event async for event in stream]
        events += stream.late if session is None else [event async for event in session.events()]
    tally.add(tap, events)
    tally.check()


@pytest.mark.draws
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_each_question_is_answered_once_and_as_the_log_says(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    tally = Tally()

    async def play(dice: random.Random) -> None:
        with anyio.fail_after(10_000):
            await interleave(dice, tally)

    for seed in MANY:
        name, options = virtual_backend(backend, seed)
        with noted(seed) as dice:
            anyio.run(play, dice, backend=name, backend_options=options)
        caplog.clear()
    print(  # noqa: T201 - the figures
        f"\n{len(MANY)} interleavings, {sum(tally.how_often.values())} questions: "
        f"answered twice or more {sum(n for often, n in tally.how_often.items() if often > 1)}, "
        f"never {tally.how_often[0]}; log and wire disagree {len(tally.disagreements)}; "
        f"answered for a cancelled turn or a closed session {tally.unasked}; "
        f"told {dict(tally.told)}; by {dict(tally.by)}"
    )
    if len(MANY) >= 100:  # the dice have been everywhere
        assert set(tally.told) == {"yes", "no", "accept", "decline", "cancelled"}
        assert {"handler", "human", "deadline", "cancel", "policy"} <= set(tally.by)


def test_the_tally_can_fail() -> None:
    def wire(*ids: int) -> Tap:
        tap = Tap(memory_transport_pair()[0])
        tap.went = [{"id": 1, "method": QUESTIONS[0]}, {"id": 2, "method": QUESTIONS[1]}]
        tap.came = [{"id": id_, "result": {"action": "accept"}} for id_ in ids]
        return tap

    asked = [ev.QuestionAsked(seq=n, at=0, id=f"q{n}", asks="form", title=f"{n}") for n in (1, 2)]
    right, wrong = (
        [ev.QuestionAnswered(seq=n, at=0, id=f"q{n}", choice=choice, by="human", why="") for n in (1, 2)]
        for choice in ("accept", "decline")
    )
    for ids, answered, fails in (
        ((1, 2), right, False),
        ((1, 2, 1), right, True),
        ((1,), right, True),
        ((1, 2), wrong, True),
        ((1, 2), right[:1], True),
        ((1, 2), [*right, right[0]], True),
    ):
        tally = Tally()
        tally.add(wire(*ids), [*asked, *answered])
        if fails:
            with pytest.raises(AssertionError):
                tally.check()
        else:
            tally.check()
