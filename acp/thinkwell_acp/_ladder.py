"""The ladder by which a process is ended: the end of its input, SIGTERM, SIGKILL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_GRACE = 2.0
"""Seconds an agent gets to leave by itself once its standard input is closed. Some never do (codex-acp)."""

TERMINATE_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL. Launchers of agents were seen to ignore the first (gemini-cli)."""

KILL_GRACE = 5.0
"""Seconds to wait for the system to end a killed process. One stuck in the kernel is left to it."""

GROUP_GRACE = 0.5
"""Seconds to wait for the rest of a killed group. Where orphans are not reaped, as in a container without an
init process, their numbers stay, so it must not be long."""

Signal: TypeAlias = Literal["terminate", "kill"]
"""Ask the process group to end, or end it."""

Ending: TypeAlias = Literal["eof", "terminate", "kill"]
"""What it takes to end a process: the end of its input, SIGTERM, or SIGKILL."""


class Graces(NamedTuple):
    """How long a process gets on each rung, in seconds."""

    exit: float
    """To leave by itself once its input is closed; none where that does not end it."""
    terminate: float = TERMINATE_GRACE
    kill: float = KILL_GRACE


async def end_process(signal: Callable[[Signal], None], exited: anyio.Event, graces: Graces) -> Ending | None:
    """End a process, whose input is closed, and the rest of its group.

    Args:
        signal: Sends a signal to the group.
        exited: Is set when the process has ended.
        graces: How long to wait on each rung.

    Returns:
        What it took; ``None`` where the process does not die.
    """
    ending: Ending = "eof"
    if not await set_within(exited, graces.exit):
        signal("terminate")
        ending = "terminate" if await set_within(exited, graces.terminate) else "kill"
    signal("kill")  # what the process has left in its group too
    return ending if await set_within(exited, graces.kill) else None


async def set_within(event: anyio.Event, seconds: float) -> bool:
    """Wait so many seconds for an event; return whether it is set."""
    if seconds > 0:  # no time is no look at the clock either: what happens then is the same every time
        with anyio.move_on_after(seconds):
            await event.wait()
    return event.is_set()
