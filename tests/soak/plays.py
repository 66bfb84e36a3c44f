"""What an agent does that can be known from its prompt alone: so it can be told what was lost of it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from thinkwell.events import Message, Thought, ToolDone, ToolStart

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from web_stage import LogEntry

__all__ = ("Burst", "Ending", "Piece", "Play", "pieces_of")

Ending = Literal["ends", "fails", "waits"]
"""How a play goes out: as usual, with an error, or not before somebody cancels it."""

PieceKind = Literal["thought", "message", "tool_start", "tool_done"]

ALPHABET: Final = (
    *(
        "the",
        "run",
        "is",
        "kept",
        "in",
        "a",
        "journal;",
        "whoever",
        "watches",
        "has",
        "a",
        "place",
        "of",
        "his",
    ),
    *(
        "own.",
        "\n",
        "\n\n",
        "\r\n",
        "data: x",
        "id: 7",
        ": no comment",
        "event: end",
        "naïve",
        "日本語",
        "👩‍👩‍👧",
    ),
    *("\u2028", "\u0085", "\x00", "\\", '"', "</script>", "0\r\n\r\n"),
)
"""Words, and what a stream of events or a chunked body could be confused by."""


class Piece(NamedTuple):
    """What becomes one event."""

    kind: PieceKind
    text: str
    """What is thought or said; of a tool its id."""


class Burst(NamedTuple):
    """Pieces that are sent at once."""

    pause: float
    """Seconds before."""
    pieces: tuple[Piece, ...]


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of an agent. As JSON it is the prompt."""

    seed: int
    bursts: int
    pause: float
    """Seconds between two bursts, about."""
    width: int = 4
    """Pieces of a burst, about."""
    size: int = 40
    """Characters of a piece, about."""
    ending: Ending = "ends"

    @property
    def prompt(self) -> str:
        """What to ask the agent for it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def of_prompt(cls, prompt: str) -> Play:
        """Return what is asked for."""
        return msgspec.json.decode(prompt, type=cls)

    def all_bursts(self) -> Generator[Burst]:
        """Yield what the agent does. The last burst is a message: what comes behind a tool is a new one."""
        dice = random.Random(self.seed)
        for number in range(self.bursts):
            pause = self.pause * dice.uniform(0.5, 1.5)
            yield Burst(pause, tuple(_burst(dice, number, self.width, self.size)))
        tool = f"tool-{self.bursts}"
        last = (Piece("tool_start", tool), Piece("tool_done", tool), Piece("message", self.answer))
        yield Burst(self.pause, last)

    @property
    def answer(self) -> str:
        """The last message."""
        return f"That was play {self.seed}, with {self.bursts} bursts."

    @property
    def pieces(self) -> list[Piece]:
        """All that the agent does."""
        return [piece for burst in self.all_bursts() for piece in burst.pieces]


def _burst(dice: random.Random, number: int, width: int, size: int) -> Generator[Piece]:
    if dice.random() < 0.15:
        tool = f"tool-{number}"
        yield Piece("tool_start", tool)
        yield Piece("tool_done", tool)
    kind: Literal["thought", "message"] = "thought" if dice.random() < 0.3 else "message"
    for _ in range(dice.randint(1, 2 * width - 1)):
        yield Piece(kind, _text(dice, dice.randint(1, 2 * size)))


def _text(dice: random.Random, length: int) -> str:
    words = [dice.choice(ALPHABET) for _ in range(min(1 + length // 5, 50))]
    text = " ".join(words)
    return text if len(text) >= length else text * (length // len(text) + 1)


def pieces_of(entries: Iterable[LogEntry]) -> list[Piece]:
    """Return what an agent has done, as a log tells."""
    found: list[Piece] = []
    for entry in entries:
        match entry:
            case Thought():
                found.append(Piece("thought", entry.text))
            case Message():
                found.append(Piece("message", entry.text))
            case ToolStart():
                found.append(Piece("tool_start", entry.id))
            case ToolDone():
                found.append(Piece("tool_done", entry.id))
            case _:
                pass
    return found
