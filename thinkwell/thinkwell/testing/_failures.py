"""The failures of a script, as assertions of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from thinkwell.testing._steps import Step  # noqa: TC001 - type of a field

if TYPE_CHECKING:
    from collections.abc import Sequence


class Unplayed(Struct, frozen=True, kw_only=True):
    """A step that was never started."""

    turn: int
    """The number of its turn, from 1."""
    step: int
    """Its number in the turn, from 1."""
    what: Step

    def __str__(self) -> str:
        return f"turn {self.turn}, step {self.step}: {self.what}"


class ScriptFailed(AssertionError):  # noqa: N818 - says what happened
    """The client deviated from the script.

    Attributes:
        failures: The deviations, with their places in the script.
        unplayed: The steps that were never begun.
        unasked: The methods with an error in ``fails_at`` that the client never asked for.
    """

    __module__ = "thinkwell.testing"

    def __init__(
        self, failures: Sequence[str], unplayed: Sequence[Unplayed], unasked: Sequence[str] = ()
    ) -> None:
        super().__init__(failures, unplayed, unasked)
        self.failures: tuple[str, ...] = tuple(failures)
        self.unplayed: tuple[Unplayed, ...] = tuple(unplayed)
        self.unasked: tuple[str, ...] = tuple(unasked)

    def __str__(self) -> str:
        parts: list[str] = []
        if self.failures:
            parts += ["the script failed:", *(f"  {failure}" for failure in self.failures)]
        if self.unplayed:
            left = "1 step was" if len(self.unplayed) == 1 else f"{len(self.unplayed)} steps were"
            parts += [f"{left} not played:", *(f"  {step}" for step in self.unplayed)]
        if self.unasked:
            parts += ["fails_at is for what was never asked:", *(f"  {method}" for method in self.unasked)]
        return "\n".join(parts)


class ScriptNotFinished(ScriptFailed):
    """The run ended before the script did."""

    __module__ = "thinkwell.testing"
