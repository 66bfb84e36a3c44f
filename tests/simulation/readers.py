"""Readers of a run: of every kind of patience."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.lowlevel

from thinkwell import ThinkwellError
from thinkwell import events as ev

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from thinkwell import ThoughtStream


@dataclass
class Read:
    """What a reader saw."""

    how: str
    events: list[ev.ThoughtEvent] = field(default_factory=list[ev.ThoughtEvent])
    skipped: int = 0
    """The number after which it began."""
    ended: anyio.Event = field(default_factory=anyio.Event)


async def fast(stream: ThoughtStream[Any], read: Read, _dice: random.Random) -> None:
    async for event in stream:
        read.events.append(event)


async def slow(stream: ThoughtStream[Any], read: Read, dice: random.Random) -> None:
    async for event in stream:
        read.events.append(event)
        await anyio.sleep(dice.choice((0.0, 0.01, 0.5)))


async def comes_back(stream: ThoughtStream[Any], read: Read, dice: random.Random) -> None:
    while dice.random() < 0.6:
        left = dice.randint(0, 4)
        async for _ in stream:
            left -= 1
            if left < 0:
                break
        await anyio.sleep(dice.choice((0.0, 0.1, 1.0)))
    await fast(stream, read, dice)


async def goes_on(stream: ThoughtStream[Any], read: Read, dice: random.Random) -> None:
    """Leave, and go on behind what was seen."""
    ended = False
    while not ended:
        left = dice.randint(0, 4)
        ended = True
        after = read.events[-1].seq if read.events else 0
        async for event in stream.events(after=after):
            read.events.append(event)
            left -= 1
            if left < 0:
                ended = False
                break
        await anyio.sleep(dice.choice((0.0, 0.1, 1.0)))


async def after(stream: ThoughtStream[Any], read: Read, dice: random.Random) -> None:
    wanted = dice.randint(0, 5)
    async for event in stream:
        if event.seq >= wanted:
            read.skipped = event.seq
            break
    async for event in stream.events(after=read.skipped):
        read.events.append(event)


async def result_only(stream: ThoughtStream[Any], _read: Read, _dice: random.Random) -> None:
    with suppress(ThinkwellError):
        await stream.result


async def impatient(stream: ThoughtStream[Any], read: Read, dice: random.Random) -> None:
    """Be cancelled while it reads: no event may be lost by that."""
    stop = False
    reader = aiter(stream)
    while not stop:
        with anyio.move_on_after(dice.choice((0.0, 0.01, 0.3))) as scope:
            try:
                read.events.append(await anext(reader))
            except StopAsyncIteration:
                stop = True
        if scope.cancelled_caught:
            await anyio.lowlevel.checkpoint()


READER_OF: Final[dict[str, Callable[[ThoughtStream[Any], Read, random.Random], Awaitable[None]]]] = {
    "fast": fast,
    "slow": slow,
    "comes_back": comes_back,
    "goes_on": goes_on,
    "after": after,
    "result_only": result_only,
    "impatient": impatient,
}
READERS: Final = tuple(READER_OF)
