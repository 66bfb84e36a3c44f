"""The steps that end a process: closing its input, SIGTERM, SIGKILL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_GRACE = 2.0
"""Seconds for an agent to exit once its standard input is closed. Some never do (codex-acp)."""

TERMINATE_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL. Launchers of agents were seen to ignore the first (gemini-cli)."""

KILL_GRACE = 5.0
"""Seconds to wait until a killed process has ended. One that is stuck in the kernel is left behind."""

GROUP_GRACE = 0.5
"""Seconds to wait for the rest of a killed group. Where orphans are not reaped, as in a container without an
init process, their numbers stay, so this must be short."""

Signal: TypeAlias = Literal["terminate", "kill"]
"""Ask the process group to end, or kill it."""

Ending: TypeAlias = Literal["eof", "terminate", "kill"]
"""The step that ended a process: the end of its input, SIGTERM, or SIGKILL."""


class Graces(NamedTuple):
    """The time for each step, in seconds."""

    exit: float
    """To exit once its input is closed; 0 if that does not end it."""
    terminate: float = TERMINATE_GRACE
    kill: float = KILL_GRACE


async def end_process(signal: Callable[[Signal], None], exited: anyio.Event, graces: Graces) -> Ending | None:
    """End a process, whose input is closed, and the rest of its group.

    Args:
        signal: Sends a signal to the group.
        exited: Set when the process has ended.
        graces: The time for each step.

    Returns:
        The step that ended it; ``None`` if the process does not die.
    """
    ending: Ending = "eof"
    if not await set_within(exited, graces.exit):
        signal("terminate")
        ending = "terminate" if await set_within(exited, graces.terminate) else "kill"
    signal("kill")  # also kills the rest of its group
    return ending if await set_within(exited, graces.kill) else None


async def set_within(event: anyio.Event, seconds: float) -> bool:
    """Wait at most so many seconds for an event; return whether it is set."""
    if seconds > 0:  # with 0, the clock is not read, so the outcome is deterministic
        with anyio.move_on_after(seconds):
            await event.wait()
    return event.is_set()
