"""What happens in a soak, as far as that can be said before: the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from soak.plays import Play

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("HABITS", "Habit", "Phase", "PlannedRun", "PlannedWatcher", "plan_of")

Habit: TypeAlias = Literal["steady", "resuming", "slow", "deaf", "vanishing"]
"""What a watcher does beside reading: nothing; go and come back; read slowly; stop to read and stay; stop
and go without a word."""

HABITS: Final[dict[Habit, float]] = {
    "steady": 0.46,
    "resuming": 0.37,
    "slow": 0.1,
    "deaf": 0.03,
    "vanishing": 0.04,
}
"""How probable each is. The first watcher of each run is a steady one; of all, a third go and come back."""

LENGTHS: Final = (
    # A half is short, some take until their server is killed.
    (0.5, (3, 15), 0.15),
    (0.35, (15, 40), 0.25),
    (0.15, (40, 70), 0.35),
)
"""How probable runs of a length are, how many bursts they have, and the seconds between two of them."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run that is started."""

    number: int
    play: Play
    start: float | None
    """Seconds into its phase; ``None``: just before the server is killed."""
    doubt: float | None = None
    """Seconds after which whoever has started it does so once more, as if he had not heard of it."""

    @property
    def seconds(self) -> float:
        """What it takes, about."""
        return self.play.pause * (self.play.bursts + 1)


@dataclass(frozen=True, kw_only=True)
class PlannedWatcher:
    """Somebody who watches a run."""

    run: PlannedRun
    habit: Habit
    delay: float
    """Seconds after the start of the run."""
    seed: int
    """Decides where and how he goes."""
    sip: int
    """Bytes that he takes at once, where he reads slowly."""
    pause: float
    """Seconds between them."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """What happens until the server is killed, or at last until all has ended."""

    runs: Sequence[PlannedRun]
    watchers: Sequence[PlannedWatcher]
    ends: int | None
    """How many of the runs have ended when the server is killed; ``None``: it is not."""
    mercy: float
    """Seconds between the last starts of runs and the kill."""


@dataclass
class _Draft:
    dice: random.Random
    speed: float
    runs: list[PlannedRun] = field(default_factory=list[PlannedRun])

    def run(self, number: int, start: float | None) -> PlannedRun:
        dice = self.dice
        (_, (least, most), pause), *_ = dice.choices(LENGTHS, [share for share, *_ in LENGTHS])
        if dice.random() < 0.03:  # much text: more than the system keeps for one who reads slowly
            width, size = 8, 4_000
        else:
            width, size = dice.choice(((1, 8), (3, 30), (6, 60)))
        play = Play(
            seed=dice.randrange(1 << 31),
            bursts=dice.randint(least, most),
            pause=pause / self.speed,
            width=width,
            size=size,
            ending=dice.choices(("ends", "fails", "waits"), (0.9, 0.06, 0.04))[0],
        )
        doubt = dice.uniform(0, 10) / self.speed if dice.random() < 0.2 else None
        return PlannedRun(number=number, play=play, start=start, doubt=doubt)

    def watcher(self, run: PlannedRun, habit: Habit | None) -> PlannedWatcher:
        dice = self.dice
        when = dice.random()
        if when < 0.7:
            delay = dice.uniform(0, 0.3)
        elif when < 0.9:
            delay = dice.uniform(0, run.seconds)
        else:
            delay = run.seconds * dice.uniform(1, 1.3)
        habits: list[Habit] = [*HABITS]
        chosen = habit or dice.choices(habits, [*HABITS.values()])[0]
        written = run.play.bursts * run.play.width * (run.play.size + 60)
        return PlannedWatcher(
            run=run,
            habit=chosen,
            delay=delay,
            seed=dice.randrange(1 << 31),
            sip=max(300, written // 100),
            pause=0.06 / self.speed,
        )


def plan_of(seed: int, runs: int, watchers: int, kills: int, *, speed: float = 1.0) -> list[Phase]:
    """Return what happens.

    Args:
        seed: Decides everything.
        runs: How many there are, in all phases together.
        watchers: How many watch at once. In each phase each of them watches a run.
        kills: How often the server is killed.
        speed: How much faster than usually the agent is.
    """
    dice = random.Random(seed)
    draft = _Draft(dice, speed)
    phases: list[Phase] = []
    numbers = iter(range(runs))
    for phase in range(kills + 1):
        share = runs // (kills + 1) + (phase < runs % (kills + 1))
        last = phase == kills
        starts: list[float | None] = [dice.uniform(0, 5) / speed for _ in range(share)]
        if not last:
            starts[-max(share // 25, 1) :] = [None] * max(share // 25, 1)
        planned = [draft.run(next(numbers), start) for start in starts]
        weights = [run.seconds**2 for run in planned]  # else most have nothing to watch soon
        seen = [draft.watcher(run, "steady") for run in planned[:watchers]]
        rest = dice.choices(planned, weights, k=max(watchers - len(seen), 0))
        seen += [draft.watcher(run, None) for run in rest]
        ends = None if last else int(share * dice.uniform(0.5, 0.75))
        phases.append(Phase(runs=planned, watchers=seen, ends=ends, mercy=dice.uniform(0, 0.03)))
    return phases
