"""A task as data: what a builder without an agent holds, and the same builder again in another process."""

from __future__ import annotations

import base64
import types
from typing import TYPE_CHECKING, Any, Final, Literal, Union, cast, get_args, get_origin

from msgspec import Struct
from msgspec.structs import asdict

from thinkwell import JsonSchema, think
from thinkwell.events import JsonValue  # noqa: TC001 - type of a field
from thinkwell.trials._reference import Reference, refer

if TYPE_CHECKING:
    from thinkwell import ThinkBuilder, Tool
    from thinkwell._core.exit import Spec

__all__ = ("TaskData", "task_data")

SKILL_TOOLS: Final = frozenset(("activate_skill", "call_skill_tool", "read_skill_file"))
"""The tools that a builder adds for its skills."""


class TypeData(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A type: a class by its name, ``origin[args]``, a union of `args`, or a ``Literal``."""

    origin: Reference | None = None
    args: tuple[TypeData, ...] = ()
    literal: tuple[str | int | bool | None, ...] = ()

    def find(self) -> Any:
        """Return the type. Raises as `Reference.find` does."""
        if self.literal:
            return Literal[self.literal]
        args = tuple(arg.find() for arg in self.args)
        if self.origin is None:
            return Union[args]  # noqa: UP007 - of a tuple
        origin = cast("Any", self.origin.find())
        return origin[args] if args else origin


class ToolData(Struct, frozen=True, kw_only=True):
    """A tool: a function by its name."""

    function: Reference
    name: str
    description: str
    mention: bool
    readonly: bool


class TaskData(Struct, frozen=True, kw_only=True, tag_field="kind", tag="task", omit_defaults=True):
    """What a task without an agent holds."""

    output: TypeData | None = None
    schema: dict[str, JsonValue] | None = None
    """The output as a JSON Schema; with neither it is text."""
    parts: tuple[dict[str, str], ...] = ()
    """What is in the prompt, in order: texts, images, links and files."""
    tools: tuple[ToolData, ...] = ()
    skills: tuple[str, ...] = ()
    """The folders of the skills."""
    system: dict[str, str | None] | None = None
    meta: dict[str, JsonValue] | None = None
    fallback: tuple[str, ...] = ()
    after_effects: bool = False

    def builder(self) -> ThinkBuilder[Any]:
        """Return the task.

        Raises:
            PlanError: A type or function of it does not exist here.
            SkillError: A skill does not exist here.
            FileNotFoundError: A file does not exist here.
        """
        output = None if self.output is None else self.output.find()
        task: ThinkBuilder[Any] = think(output if self.schema is None else JsonSchema(self.schema))
        for part in self.parts:
            match part:
                case {"text": text}:
                    task = task.text(text)
                case {"data": data}:
                    task = task.image(base64.b64decode(data))
                case _:
                    task = task.resource(part.get("uri") or part["path"])
        for tool in self.tools:
            task = task.tool(
                cast("Any", tool.function.find()),
                name=tool.name,
                description=tool.description,
                mention=tool.mention,
                readonly=tool.readonly,
            )
        for folder in self.skills:
            task = task.skill(folder)
        if self.system is not None:
            system = cast("dict[str, Any]", self.system)
            task = task.system(system["text"], mode=system["mode"], fallback=system["fallback"])
        if self.meta is not None:
            task = task.meta(self.meta)
        return task.fallback(*self.fallback, after_effects=self.after_effects) if self.fallback else task


def task_data(task: ThinkBuilder[Any]) -> TaskData:
    """Return what a task without an agent holds.

    Raises:
        TypeError: It holds something that other processes cannot get.
        ValueError: It has an agent, or a folder.
    """
    if type(task._starter) is not type(think()._starter):
        raise ValueError(
            "task: its agent is open in this process, and trials open agents of their own; begin the task "
            "with thinkwell.think(…), not agent.think(…)"
        )
    spec: Spec[Any] = task._spec
    if spec.cwd is not None:
        raise ValueError("task: trials choose the folder; leave out .cwd(…), and give workspace=Worktree(…)")
    agents, after_effects = spec.fallback or ((), False)
    skills = [str(skill.folder or _refuse(f"the skill {skill.name!r}", "a folder")) for skill in spec.skills]
    own = [tool for tool in spec.tools if not (skills and tool.name in SKILL_TOOLS)]
    output = spec.output
    return TaskData(
        output=None if output.type is None else _type_data(output.type),
        schema=dict(output.schema) if output.schema is not None and output.type is None else None,
        parts=tuple(cast("dict[str, str]", asdict(part)) for part in spec.parts),
        tools=tuple(map(_tool_data, own)),
        skills=tuple(skills),
        system=None if spec.system is None else asdict(spec.system),
        meta=None if spec.meta is None else dict(spec.meta),
        fallback=tuple(
            agent if isinstance(agent, str) else _refuse(f"the fallback {agent!r:.100}", "an agent's name")
            for agent in agents
        ),
        after_effects=after_effects,
    )


def _refuse(what: str, instead: str) -> str:
    raise TypeError(f"task: workers are other processes, and cannot get {what}; give {instead}")


def _tool_data(tool: Tool[..., object]) -> ToolData:
    return ToolData(
        function=refer(tool.function, f"tool {tool.name!r}"),
        name=tool.name,
        description=tool.description,
        mention=tool.mention,
        readonly=tool.readonly,
    )


def _type_data(given: object) -> TypeData:
    origin, args = get_origin(given), get_args(given)
    if given is types.NoneType:
        return TypeData(origin=Reference(module="types", name="NoneType"))
    if origin is None:
        return TypeData(origin=refer(given, "the output type"))
    if origin is Literal:
        return TypeData(literal=args)
    inner = tuple(map(_type_data, args))
    if origin in (Union, types.UnionType):
        return TypeData(args=inner)
    return TypeData(origin=refer(origin, "the output type"), args=inner)
