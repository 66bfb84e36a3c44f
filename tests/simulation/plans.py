"""What happens in a world: runs, from both sides, as the dice say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from thinkwell import Budget, Buffer

from .player import Plan, Step, When
from .readers import READERS

if TYPE_CHECKING:
    import random

Json: TypeAlias = dict[str, Any]

CANCEL_WAYS: Final = ("cancel", "task", "leave stream", "leave session", "leave agent", "raise")
SCALARS: Final = ("é", "€", "𝄞", "x")


@dataclass(kw_only=True)
class RunPlan:
    """One run, from both sides."""

    plan: Plan
    typed: bool
    options: Json
    values: list[Json]
    """What is returned, in order."""
    cancel: str | None
    cancel_after: float
    readers: list[str]
    healthy: bool = False
    tool: bool = False


class Dice:
    """Makes plans."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._tokens = 0

    def token(self) -> str:
        self._tokens += 1
        return f"t{self._tokens}{self._dice.choice(SCALARS)} "

    def run(self, mark: str, *, healthy: bool) -> RunPlan:
        dice = self._dice
        typed = dice.random() < 0.5
        tool = typed and not healthy and dice.random() < 0.3
        steps: list[Step] = []
        for _ in range(dice.randint(0, 6)):
            steps += self._step(tool)
        values: list[Json] = []
        reminded: tuple[Step, ...] = ()
        if typed:
            good = {"result": dice.randint(0, 99)}
            values = [good] if healthy else self._values(good)
            if len(values) > 1 and dice.random() < 0.5:
                first, *more = dice.sample(values, len(values))
                values = [first, *more]
                steps.insert(dice.randint(0, len(steps)), Step(do="return", value=first, more=tuple(more)))
            else:
                for value in values:
                    steps.insert(dice.randint(0, len(steps)), Step(do="return", value=value))
                values = [step.value for step in steps if step.do == "return"]
            if not values and dice.random() < 0.7:
                reminded = (Step(do="say", token=self.token()), Step(do="return", value=good))
                values = [good]
        if not healthy and dice.random() < 0.25:
            steps.insert(dice.randint(0, len(steps)), Step(do=dice.choice(("hang", "hang", "crash"))))
        stop = "end_turn"
        if not healthy:
            stop = dice.choice(("end_turn",) * 6 + ("refusal", "max_tokens", "error"))
        when: When = dice.choice(
            ("cancelled", "cancelled", "cancelled", "end_turn", "error", "late", "never")
        )
        plan = Plan(
            mark=mark,
            steps=tuple(steps),
            stop=stop,
            reminded=reminded,
            when_cancelled=when,
            cancel_delay=dice.choice((0.0, 0.0, 0.1, 3.0)),
            minds_questions=dice.random() < 0.5,
        )
        cancels = not healthy and dice.random() < 0.4
        return RunPlan(
            plan=plan,
            typed=typed,
            options=self._options(healthy),
            values=values,
            cancel=dice.choice(CANCEL_WAYS) if cancels else None,
            cancel_after=dice.choice((0.0, 0.0, 0.001, 0.01, 0.05, 0.2, 1.0, 5.0, 20.0)),
            readers=[dice.choice(READERS) for _ in range(dice.choice((0, 1, 1, 2, 3)))],
            healthy=healthy,
            tool=tool,
        )

    def _values(self, good: Json) -> list[Json]:
        """Return what is returned: valid at once, after a while, never, or more than once."""
        choices: list[list[Json]] = [
            [good],
            [good],
            [{"result": "seven"}, good],
            [{"result": None}, {}, {"result": [1]}, good],
            [{"result": []}] * 5,
            [],
            [good, {"result": 100}],
            [good, {"result": "late"}],
        ]
        return self._dice.choice(choices)

    def _step(self, tool: bool) -> list[Step]:
        dice = self._dice
        do = dice.choice(
            (
                "say",
                "say",
                "say",
                "think",
                "plan",
                "tool",
                "unknown",
                "ask",
                "form",
                "pause",
                "take_back",
                "burst",
            )
            + (("call",) if tool else ())
        )
        token = self.token()
        match do:
            case "tool":
                id_ = f"c{self._tokens}"
                states = ("pending", "in_progress", "completed")[: dice.randint(1, 3)]
                return [Step(do="tool", token=self.token(), value=(id_, state)) for state in states]
            case "pause":
                return [Step(do="pause", value=dice.choice((0.001, 0.05, 0.3, 2.0)))]
            case "burst":
                return [Step(do="say", token=self.token()) for _ in range(dice.randint(2, 30))]
            case "ask" | "form":
                return [Step(do=do, token=token, waits=dice.random() < 0.6)]
            case _:
                return [Step(do=do, token=token)]

    def _options(self, healthy: bool) -> Json:
        dice = self._dice
        options: Json = {"include": "all" if dice.random() < 0.7 else "default"}
        if healthy:
            return options
        if dice.random() < 0.1:
            options["timeout"] = dice.choice((0.05, 1.0, 8.0))
        if dice.random() < 0.1:
            options["idle_timeout"] = dice.choice((0.5, 5.0))
        if dice.random() < 0.1:
            options["budget"] = Budget(max_tool_calls=dice.choice((0, 1, 2)))
        if dice.random() < 0.2:
            overflow: Literal["coalesce", "drop_oldest", "error"] = dice.choice(
                ("coalesce", "coalesce", "drop_oldest", "drop_oldest", "error")
            )
            options["buffer"] = Buffer(max_events=dice.choice((1, 3, 8, 20)), overflow=overflow)
        if dice.random() < 0.2:
            options["retries"] = dice.choice((0, 1))
        if dice.random() < 0.2:
            options["reminders"] = dice.choice((0, 2))
        return options
