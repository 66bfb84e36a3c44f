"""`Plan`: everything of one set of trials, as data that every worker reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from thinkwell import Budget, ThinkBuilder
from thinkwell._core.exit import find_starter
from thinkwell.agents import find_agent
from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell.permissions import PermissionMode  # noqa: TC001 - the same
from thinkwell.trials._checks import Check, Command, Judge
from thinkwell.trials._errors import PlanError
from thinkwell.trials._reference import Reference, check_guard, refer
from thinkwell.trials._task_data import TaskData, task_data
from thinkwell.trials._travel import Parcel, Place, Repository, pack
from thinkwell.trials._worktree import Worktree

__all__ = ("Input", "Limits", "Plan", "make_plan")

DIGITS: Final = 12
"""Of the hash that is the key of an input without one."""


class Input(Struct, frozen=True):
    """An input with a key: ``Input(text, key="issue-7")``.

    Raises:
        TypeError: The key is not a text.
        ValueError: The key is empty.
    """

    value: JsonValue
    """What the task is given: JSON."""
    key: str = ""
    """What names it for good; by default a hash of the value."""


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of a budget, as data. ``None``: there is none."""

    max_tokens: int | None = None
    max_cost: float | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    currency: str = "USD"

    def budget(self) -> Budget:
        """Return a budget with these limits.

        Raises:
            TypeError: A limit is not a number.
            ValueError: A limit is negative, or there are none.
        """
        return Budget(**asdict(self))


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything of one set of trials."""

    task: TaskData | Reference
    """What is asked, or the function of an input that returns it."""
    inputs: tuple[Input, ...]
    agents: tuple[str, ...]
    repeat: int = 1
    workspace: Place | Parcel | None = None
    check: Command | Judge | Reference | None = None
    limit: int = 4
    budget: Limits | None = None
    timeout: float | None = None
    """Seconds for one run."""
    idle_timeout: float | None = None
    permissions: PermissionMode = "allow"

    def __post_init__(self) -> None:
        """Check the numbers."""
        for what, count in (("repeat", self.repeat), ("limit", self.limit)):
            if type(count) is not int or count < 1:
                raise ValueError(f"{what}={count!r:.100}: give a whole number, 1 or more")

    def trials(self) -> list[tuple[str, str, int]]:
        """Return the names of the trials: input, agent, and the number of the repeat."""
        keys = [given.key for given in self.inputs]
        return [(key, agent, n) for n, key, agent in product(range(1, self.repeat + 1), keys, self.agents)]

    def value(self, key: str) -> JsonValue:
        """Return the input with a key."""
        return next(given.value for given in self.inputs if given.key == key)

    def find_agents(self) -> None:
        """Check that its agents, and that of a judge, are known and installed here.

        Raises:
            AgentNotFound: One is not.
            AgentStartFailed: The program of one is none.
            ProfileError: The profile of one cannot be read.
        """
        judges = [self.check.agent] if isinstance(self.check, Judge) else []
        for name in (*self.agents, *judges):
            find_starter(find_agent(name), Path.cwd())

    def checker(self) -> Check | None:
        """Return the check.

        Raises:
            PlanError: The function does not exist here.
        """
        return cast("Check", self.check.find()) if isinstance(self.check, Reference) else self.check

    def builder(self, key: str) -> ThinkBuilder[Any]:
        """Return the task for an input.

        Raises:
            PlanError: The function, or what the task needs, does not exist here.
            Exception: What the function raises.
        """
        value = self.value(key)
        if isinstance(self.task, TaskData):
            return self.task.builder().text(str(value))
        made = cast("Callable[[JsonValue], object]", self.task.find())(value)
        if not isinstance(made, ThinkBuilder):
            raise PlanError(
                str(self.task), f"the function returned {made!r:.100}; return a task: think(…).text(…)"
            )
        return cast("ThinkBuilder[object]", made)


def make_plan(
    task: ThinkBuilder[Any] | Callable[..., object],
    *,
    inputs: Iterable[object] | Mapping[str, object],
    agents: Iterable[str],
    workspace: Worktree | Repository | None = None,
    check: object = None,
    budget: Budget | None = None,
    travels: bool = False,
    **options: Any,
) -> Plan:
    """Return the plan of a call of `trials`, whose arguments these are. This blocks, while git runs.

    With `travels`, workers may be on other machines. The `options` are fields of the plan.

    Raises:
        WorktreeError: The workspace cannot be packed.
        PlanError: A script runs again, and would begin its trials again.
        TypeError: Something cannot be given to other processes.
        ValueError: An argument is out of range, or two inputs have the same key.
    """
    check_guard()
    _check_types(task, workspace, check, budget)
    return Plan(
        task=task_data(cast("ThinkBuilder[object]", task))
        if isinstance(task, ThinkBuilder)
        else refer(task, "task"),
        inputs=_inputs(inputs),
        agents=_agents(agents),
        workspace=None if workspace is None else pack(workspace, travels=travels),
        check=check if check is None or isinstance(check, Command | Judge) else refer(check, "check"),
        budget=None if budget is None else _limits(budget),
        **options,
    )


def _check_types(task: object, workspace: object, check: object, budget: object) -> None:
    """Refuse what a plan file says in another way than a program."""
    if isinstance(task, str):
        raise TypeError(f"task={task!r:.100}: give a task: think().text({task!r:.100})")
    if not isinstance(workspace, Worktree | Repository | None):
        raise TypeError(f"workspace={workspace!r:.100}: give a Worktree({workspace!r:.100}) or a Repository")
    if isinstance(check, str):
        raise TypeError(f"check={check!r:.100}: give Command({check!r:.100}), a Judge or a function")
    if not isinstance(budget, Budget | None):
        raise TypeError(f"budget={budget!r:.100}: give a Budget, such as Budget(max_cost=5)")


def _listed(given: object, what: str) -> list[object]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{what}={given!r:.60}: give a list: [{given!r:.60}]")
    return list(cast("Iterable[object]", given))


def _agents(given: object) -> tuple[str, ...]:
    names = _listed(given, "agents")
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"agents={names!r:.200}: workers are other processes, and cannot get {name!r:.100}; give the "
                "agent's name, as in `thinkwell agents`"
            )
    if not names or len(set(names)) < len(names):
        raise ValueError(f"agents={names!r:.200}: give one or more, each once; repeat=2 runs each twice")
    return tuple(cast("list[str]", names))


def _inputs(given: object) -> tuple[Input, ...]:
    if isinstance(given, Mapping):
        pairs = [Input(value, str(key)) for key, value in cast("Mapping[object, JsonValue]", given).items()]
    else:
        values = cast("list[JsonValue | Input]", _listed(given, "inputs"))
        pairs = [value if isinstance(value, Input) else Input(value) for value in values]
    inputs = tuple(_keyed(index, each) for index, each in enumerate(pairs))
    seen = dict[str, int]()
    for index, each in enumerate(inputs):
        if (first := seen.setdefault(each.key, index)) != index:
            raise ValueError(
                f"inputs: those at {first} and {index} have the same key {each.key!r:.100}; give each a key "
                "of its own, or repeat=2 to run the same twice"
            )
    if not inputs:
        raise ValueError("inputs: there are none; give one or more")
    return inputs


def _keyed(index: int, given: Input) -> Input:
    """Check an input, and give it its key."""
    try:
        content = msgspec.json.encode(given.value, order="sorted")
        same = msgspec.json.decode(content) == given.value
    except (TypeError, ValueError, RecursionError):
        content, same = b"", False
    if not same:
        raise TypeError(
            f"inputs: the one at {index} is no JSON, and workers are other processes, which cannot get "
            f"{given.value!r:.100}; give texts, numbers, lists and dicts with texts as keys"
        )
    return Input(given.value, given.key or hashlib.sha256(content).hexdigest()[:DIGITS])


def _limits(budget: Budget) -> Limits:
    limits: dict[str, Any] = {f"max_{what}": limit for what, limit in budget._limits.items()}
    return Limits(**limits, currency=budget.currency)
