"""Deliveries by the thousand: ``cd tests && python -m deliveries [RUNS]``.

All of it happens in virtual time, on asyncio and on trio. The exit status is 1 where something was lost, was
refused as one too many though nothing went wrong, or is not as the run's text.
"""
# ruff: noqa: T201

from __future__ import annotations

import logging
import random
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from deliveries.chats import ChatType, Outcome


async def steady(kind: ChatType) -> Outcome:
    """Deliver answers that are written all the time, until there are 1,000 edits."""
    from deliveries.chats import Outcome, deliver_turns, steady_turn

    outcome = Outcome()
    while outcome.edits < 1_000:
        outcome.add(await deliver_turns([steady_turn(1_500)], kind))
    return outcome


async def at_once(number: int) -> Outcome:
    """Deliver so many answers at once."""
    from deliveries.chats import deliver_turns, some_turn

    dice = random.Random(number)
    return await deliver_turns([some_turn(dice) for _ in range(number)], "private")


def main(arguments: list[str]) -> int:
    """Deliver, print what came of it, and return the exit status."""
    from deliveries.chats import Outcome, troubled

    from thinkwell.testing import virtual_backend

    runs = int(arguments[0]) if arguments else 1_000
    logging.disable()  # of troubles that are made, and overcome
    bad = 0
    for backend in ("asyncio", "trio"):

        def run(delivering: Callable[[], Awaitable[Outcome]], backend: str = backend) -> Outcome:
            name, options = virtual_backend(backend)
            return anyio.run(delivering, backend=name, backend_options=options)

        kinds: tuple[ChatType, ...] = ("private", "group")
        for kind in kinds:
            told("steadily, " + kind, backend, outcome := run(partial(steady, kind)))
            bad += outcome.throttled + len(outcome.differing)
        told("20 chats at once", backend, outcome := run(partial(at_once, 20)))
        bad += outcome.throttled + len(outcome.differing) + outcome.reported + outcome.unclean
        began = time.monotonic()
        outcome = Outcome()
        for seed in range(runs):
            one = run(partial(troubled, seed))
            if one.lost:
                print(f"seed {seed} on {backend}: lost")
            outcome.add(one)
        told(f"{runs} runs with troubles", backend, outcome)
        print(f"    {time.monotonic() - began:.0f} s")
        bad += len(outcome.lost)
    return 1 if bad else 0


def told(what: str, backend: str, outcome: Outcome) -> None:
    """Print what came of some deliveries."""
    print(
        f"{what}, {backend}: {outcome.deliveries:,} deliveries, {outcome.messages:,} messages, "
        f"{outcome.edits:,} edits, {outcome.requests:,} requests, {outcome.troubles:,} troubles, "
        f"{outcome.throttled:,} answers 429, {len(outcome.lost)} lost, "
        f"{outcome.reported} reported as failed, {len(outcome.differing)} differing, "
        f"{outcome.unclean} unclean",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
