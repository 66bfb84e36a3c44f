"""Questions whose answers can be worked out from who asks them and how many it asked before.

And an agent that asks them in every way it can, several at once, and checks each answer.
"""

from __future__ import annotations

import random
import re
import sys
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio
from listen.talkers import AcpTurn, LineTurn

if TYPE_CHECKING:
    from listen.talkers import Asked, Scene, Turn

OPTIONS = 64
"""Options that a request for approval over ACP offers: so many answers it can have."""

_TITLE = re.compile(r"(?P<kind>\w+) (?P<number>\d+) of (?P<name>[\w-]+)")


def title(kind: str, name: str, number: int) -> str:
    """Return the words of a question."""
    return f"{kind} {number} of {name}"


def number_of(asked: str) -> int:
    """Return how many were asked before."""
    found = _TITLE.fullmatch(asked)
    assert found is not None, asked
    return int(found["number"])


def digest(asked: str) -> str:
    """Return the answer to a question as a text: that of no other."""
    return sha256(asked.encode()).hexdigest()[:16]


def number(asked: str) -> int:
    """Return it as a number."""
    return int(digest(asked), 16) % 10**9


def option(asked: str) -> str:
    """Return it as the id of an option."""
    return f"option-{number(asked) % OPTIONS}"


def flag(asked: str) -> bool:
    """Return it as yes or no."""
    return number(asked) % 2 == 0


def left_open(asked: str) -> bool:
    """Return whether the handler leaves it to the next in the chain."""
    return number_of(asked) % 10 == 7


AT_ONCE = 8
"""Questions that wait for their answers."""

PATIENCE = 120.0
"""Seconds that the agent waits for an answer."""


class Counted:
    """The questions of a turn, and what came of them."""

    def __init__(self, name: str, numbers: range) -> None:
        self._name = name
        self._numbers = iter(numbers)
        self.expected: list[tuple[Asked, object]] = []
        self.late = 0
        self._dice = random.Random(f"{name} {numbers.start}")

    async def ask_some(self, turn: Turn) -> None:
        for number_ in self._numbers:
            asked, expected = await self._ask(turn, number_)
            self.expected.append((asked, expected))
            with anyio.move_on_after(PATIENCE) as patience:
                await asked.answer()
            self.late += patience.cancelled_caught

    async def _ask(self, turn: Turn, number_: int) -> tuple[Asked, object]:
        if isinstance(turn, LineTurn):
            return await self._ask_in_a_line(turn, number_)
        assert isinstance(turn, AcpTurn)
        return await self._ask_over_acp(turn, number_)

    async def _ask_in_a_line(self, turn: LineTurn, number_: int) -> tuple[Asked, object]:
        # Other agents use the same ids, and so do other types of messages.
        id_ = self._dice.choice((None, number_, f"{number_}", {"number": number_, "of": [1.5, None]}))
        kind = self._dice.choice(("question", "approval", "lookup", "choice"))
        words = title(kind, self._name, number_)
        match kind:
            case "question":
                return await turn.asks(words, id=id_), digest(words)
            case "choice":
                options = [digest(words), "this", "that"]
                return await turn.asks(words, options=options, id=id_), digest(words)
            case "approval":
                expected = flag(words) if left_open(words) else digest(words)
                return await turn.asks_for(words, id=id_), expected
            case _:
                value = {"number": number(words), "digest": digest(words)}
                return await turn.asks_else("lookup", key=words, id=id_), value

    async def _ask_over_acp(self, turn: AcpTurn, number_: int) -> tuple[Asked, object]:
        kind = self._dice.choice(("question", "approval", "form", "choice"))
        words = title(kind, self._name, number_)
        match kind:
            case "question":
                return await turn.asks(words), digest(words)
            case "choice":
                return await turn.asks(words, options=[digest(words), "this", "that"]), digest(words)
            case "approval":
                options = [
                    {"optionId": f"option-{index}", "name": f"{index}", "kind": f"{verb}_once"}
                    for index, verb in enumerate(("allow", "reject") * (OPTIONS // 2))
                ]
                return await turn.offers(words, options), option(words)
            case _:
                fields = {"number": {"type": "integer"}, "digest": {"type": "string"}}
                value = {"number": number(words), "digest": digest(words)}
                return await turn.asks_form(words, **fields), value


def asks_all(name: str, count: int) -> Scene:
    """Return what an agent of a name does that asks so many questions in a turn.

    Its result says how many it has asked, and how many of them had no answer, more than one, or that to
    another question.
    """
    turns = 0

    async def scene(turn: Turn) -> str:
        nonlocal turns
        counted = Counted(name, range(turns * count, (turns + 1) * count))
        turns += 1
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(counted.ask_some, turn)
        expected, strays = counted.expected, len(turn.talker.strays)
        turn.talker.strays.clear()
        unanswered = sum(not asked.told for asked, _ in expected)
        twice = sum(len(asked.told) > 1 for asked, _ in expected) + strays
        crossed = sum(bool(asked.told) and asked.told[0] != answer for asked, answer in expected)
        wrong = [(asked.what, asked.told, answer) for asked, answer in expected if asked.told != [answer]]
        if wrong:
            sys.stderr.write(f"{wrong[:5]}\n")
        return f"{len(expected)} {unanswered} {twice} {crossed}"

    return scene
