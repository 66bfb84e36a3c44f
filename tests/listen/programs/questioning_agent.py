"""An agent that asks in every way it can, several things at once, and checks each answer.

Its arguments are what it speaks, its name, and how many questions it asks in a turn. Its result says how many
had no answer, more than one, or that to another question.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import anyio
from listen.talkers import TALKERS, AcpTurn, Asked, LineTurn, Protocol, Talker, Turn
from listen.worked_out import OPTIONS, digest, flag, left_open, number, option, title

from thinkwell_acp import own_stdio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AT_ONCE = 8
"""Questions that wait for their answers."""

PATIENCE = 120.0
"""Seconds that it waits for an answer."""

PROTOCOL: Protocol = "acp" if sys.argv[1] == "acp" else "ndjson"
NAME, COUNT = sys.argv[2], int(sys.argv[3])


class Counted:
    """The questions of a turn, and what came of them."""

    def __init__(self, first: int) -> None:
        self._numbers = iter(range(first, first + COUNT))
        self.expected: list[tuple[Asked, object]] = []
        self.late = 0
        self._dice = random.Random(f"{NAME} {first}")

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
        words = title(kind, NAME, number_)
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
        words = title(kind, NAME, number_)
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


async def main() -> None:
    turns = 0
    talker: Talker

    async def scene(turn: Turn) -> str:
        nonlocal turns
        counted = Counted(turns * COUNT)
        turns += 1
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(counted.ask_some, turn)
        expected = counted.expected
        strays = len(talker.strays)
        talker.strays.clear()
        unanswered = sum(not asked.told for asked, _ in expected)
        twice = sum(len(asked.told) > 1 for asked, _ in expected) + strays
        crossed = sum(bool(asked.told) and asked.told[0] != answer for asked, answer in expected)
        wrong = [(asked.what, asked.told, answer) for asked, answer in expected if asked.told != [answer]]
        if wrong:
            sys.stderr.write(f"{wrong[:5]}\n")
        return f"{len(expected)} {unanswered} {twice} {crossed}"

    scenes: list[Callable[[Turn], Awaitable[str]]] = [scene]
    talker = TALKERS[PROTOCOL](own_stdio(), scenes)
    await talker.serve()


if __name__ == "__main__":
    anyio.run(main)
