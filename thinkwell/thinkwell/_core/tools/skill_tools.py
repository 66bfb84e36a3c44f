"""The three tools by which an agent uses the skills of its task.

Their schemas do not depend on the skills: agents keep the first schema that they see under a name.
"""

from __future__ import annotations

import base64
import json
import mimetypes
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from thinkwell._core.schema.json_schema import is_object
from thinkwell._core.tools.skill_files import LIST_LIMIT, SkillFileError
from thinkwell._core.tools.tool import Tool, ToolContext, ToolResult, tool
from thinkwell._values.content import image_type
from thinkwell.errors import ToolError
from thinkwell.events import EmbeddedResource, ImageContent, JsonValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from thinkwell._core.tools.skill import Skill
    from thinkwell._core.tools.skill_files import FileEntry

SKILL_TOOLS: Final = frozenset({"activate_skill", "call_skill_tool", "read_skill_file"})
"""The names of these tools."""

NAMED_LIMIT: Final = 50
"""Most names that an error lists."""


def _schema(**properties: dict[str, JsonValue]) -> dict[str, JsonValue]:
    required = [name for name in properties if name != "arguments"]
    return {"type": "object", "properties": properties, "required": required}


_SKILL: Final[dict[str, JsonValue]] = {"type": "string", "description": "Name of the skill"}
_ACTIVATE: Final = _schema(name=_SKILL)
_CALL: Final = _schema(
    skill=_SKILL,
    tool={"type": "string", "description": "Name of the skill's tool"},
    # Of any type: one agent empties objects with unknown properties, and some models write a text.
    arguments={"description": "The tool's arguments: an object that fits the schema which the skill states"},
)
_READ: Final = _schema(
    skill=_SKILL,
    path={"type": "string", "description": "Path of the file in the skill, such as references/a.md"},
)


def skill_tools(skills: Iterable[Skill]) -> tuple[Tool, ...]:
    """Return the tools for these skills."""
    desk = _Desk({skill.name: skill for skill in skills})
    return (
        tool(desk.activate_skill, mention=False, input_schema=_ACTIVATE),
        tool(desk.call_skill_tool, mention=False, input_schema=_CALL),
        tool(desk.read_skill_file, mention=False, input_schema=_READ),
    )


class _Desk:
    """Serves skills. A request for something unknown gets a list of what exists."""

    def __init__(self, skills: dict[str, Skill]) -> None:
        self._skills = skills

    def activate_skill(self, name: str) -> str:
        """Get the instructions of a skill, and the list of its files and tools."""
        skill = self._skill("name", name)
        return "\n\n".join(filter(None, (skill.body, _files_section(skill), _tools_section(skill))))

    async def call_skill_tool(
        self, skill: str, tool: str, context: ToolContext, arguments: JsonValue = None
    ) -> ToolResult:
        """Call a tool of a skill. Activate the skill first: it says which tools it has."""
        tools = {known.name: known for known in self._skill("skill", skill).tools}
        if not tools:
            raise ToolError(f"Skill {skill!r} has no tools")
        if tool not in tools:
            raise ToolError(_no_such("tool", tool, tools))
        return await tools[tool].call(_as_object(arguments), context)

    def read_skill_file(self, skill: str, path: str) -> str | ImageContent | EmbeddedResource:
        """Read a file of a skill: text, an image, or anything else."""
        found = self._skill("skill", skill)
        try:
            data = found._files.read(path)
        except SkillFileError as exc:
            names = [entry.path for entry in _files(found)]
            hint = "" if path in names else f". It must be one of {_named(names)}"
            raise ToolError(f"path: {exc}{hint if names else '. This skill has no files'}") from None
        return _content(found.name, path, data)

    def _skill(self, parameter: str, name: str) -> Skill:
        skill = self._skills.get(name)
        if skill is None:
            raise ToolError(_no_such(parameter, name, self._skills))
        return skill


def _no_such(parameter: str, name: str, known: Iterable[str]) -> str:
    return f"{parameter}: must be one of {_named(known)} (got {name!r:.200})"


def _named(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - NAMED_LIMIT} more" if len(names) > NAMED_LIMIT else ""
    return ", ".join(map(repr, names[:NAMED_LIMIT])) + more


def _as_object(arguments: JsonValue) -> dict[str, JsonValue]:
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            arguments = None
    if not is_object(arguments):
        raise ToolError("arguments: must be an object, with the tool's parameters as its keys")
    return arguments


def _files(skill: Skill) -> list[FileEntry]:
    """Return the files of a skill besides its instructions."""
    return [entry for entry in skill._files.list() if entry.path not in ("SKILL.md", "skill.md")]


def _files_section(skill: Skill) -> str:
    lines = [f"- {entry.path} ({entry.size:,} bytes)" for entry in _files(skill)]
    if not lines:
        return ""
    if len(lines) >= LIST_LIMIT - 1:
        lines.append("- and perhaps more")
    head = f"Files of this skill, for read_skill_file with skill {skill.name!r}"
    if skill.folder is not None:
        head += f"; they are in the folder {skill.folder}"
    return "\n".join((f"{head}:", *lines))


def _tools_section(skill: Skill) -> str:
    if not skill.tools:
        return ""
    head = f"Tools of this skill, for call_skill_tool with skill {skill.name!r}, and their arguments:"
    lines = [
        f"- {known.name}: {known.description}\n  {json.dumps(known.input_schema, ensure_ascii=False)}"
        for known in skill.tools
    ]
    return "\n".join((head, *lines))


def _content(skill: str, path: str, data: bytes) -> str | ImageContent | EmbeddedResource:
    """Return a file as an image, text, or else bytes."""
    mime_type = image_type(data)
    if mime_type is not None:
        return ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type)
    if b"\0" not in data:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
    guessed, encoding = mimetypes.guess_type(path)
    return EmbeddedResource(
        uri=f"skill://{quote(skill)}/{quote(path)}",
        blob=base64.b64encode(data).decode(),
        mime_type=guessed if guessed is not None and encoding is None else "application/octet-stream",
    )


def offered(tools: Sequence[Tool], skills: Sequence[Skill]) -> tuple[Tool, ...]:
    """Return the tools of a task whose last skill is new: its own, and those for all of its skills.

    Raises:
        ValueError: The task has another tool with one of the names.
    """
    own = tuple(known for known in tools if len(skills) == 1 or known.name not in SKILL_TOOLS)
    taken = next((known.name for known in own if known.name in SKILL_TOOLS), None)
    if taken is not None:
        raise ValueError(
            f"skill {skills[-1].name!r} needs the name {taken!r}, which a tool of the task has; "
            "give the tool another name: .tool(fn, name=…)"
        )
    return (*own, *skill_tools(skills))
