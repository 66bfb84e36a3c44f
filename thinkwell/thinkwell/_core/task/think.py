"""`think`: a task without an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from thinkwell._core.schema.misuse import refuse_prompt
from thinkwell._core.schema.output import output_type
from thinkwell._core.task.builder import Spec, ThinkBuilder

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from typing_extensions import TypeForm

    from thinkwell import events as ev
    from thinkwell._core.schema.output import Form, JsonSchema
    from thinkwell._core.task.builder import Options, Starter

T = TypeVar("T")


class NoAgent:
    """Replaces the agent of a task that has none yet; the agent's capabilities are checked later."""

    def start(self, spec: Spec[Any], options: Options) -> NoReturn:
        """Refuse to start the task."""
        raise ValueError(
            "this task has no agent: write `agent.map(task, inputs)`, or begin it with `agent.think(…)`"
        )

    def explain(self, spec: Spec[Any]) -> NoReturn:
        """Refuse to explain the task: what is sent depends on the agent."""
        raise ValueError("this task has no agent, which decides what is sent: begin it with `agent.think(…)`")

    def check(self, part: object) -> None:
        """Accept any part of a prompt."""

    def check_system(self, _system: object, /) -> None:
        """Accept any system prompt."""

    def check_fallback(self, _agents: object, _after_effects: object, /) -> None:
        """Take any other agents."""


@overload
def think(output: None = None, /) -> ThinkBuilder[str]: ...
@overload
def think(output: type[T], /) -> ThinkBuilder[T]: ...
@overload
def think(output: TypeAdapter[T], /) -> ThinkBuilder[T]: ...
@overload
def think(output: JsonSchema, /) -> ThinkBuilder[ev.JsonValue]: ...
@overload
def think(output: TypeForm[Form], /) -> ThinkBuilder[Form]: ...


def think(output: object = None, /, *prompt: object) -> ThinkBuilder[Any]:
    """Begin a task without an agent, for `Agent.map`.

    Args:
        output: The type of the result; see `Agent.think`.
        prompt: Nothing. The prompt follows, as in ``think(Model).text("…")``.

    Raises:
        TypeError: The output type cannot be used; the message says what to give instead.
    """
    refuse_prompt(prompt, "think")
    return ThinkBuilder(NoAgent(), Spec(output=output_type(output, "think({})")))


def bound(task: ThinkBuilder[T], starter: Starter) -> ThinkBuilder[T]:
    """Give a task without an agent the starter of one.

    Raises:
        CapabilityMissing: The agent does not support a part of the prompt, or the system prompt.
        ValueError: There is no place for a system prompt.
    """
    if not isinstance(task._starter, NoAgent):
        return task
    for part in task._spec.parts:
        starter.check(part)
    if task._spec.system is not None:
        starter.check_system(task._spec.system)
    if task._spec.fallback is not None:
        starter.check_fallback(*task._spec.fallback)
    return ThinkBuilder(starter, task._spec)
