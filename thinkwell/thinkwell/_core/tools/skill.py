"""`Skill`: a folder of instructions for an agent."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from thinkwell._core.schema.arguments import checked
from thinkwell._core.tools.signature import label
from thinkwell._core.tools.skill_files import FolderFiles, SkillFileError, SkillFiles, VirtualFiles
from thinkwell._core.tools.tool import Tool, ToolFunction, tool
from thinkwell.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


NAME_LIMIT: Final = 64
DESCRIPTION_LIMIT: Final = 1024
"""Most characters of a name and of a description (Agent Skills, Specification)."""

_FILE_NAMES: Final = ("SKILL.md", "skill.md")
_ALLOWED_TOOL: Final = re.compile(r"[^\s,(]+(?:\([^)]*\))?")


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Skill:
    """Instructions for one kind of work, with files and tools, which the agent reads when it needs them.

    Create it from texts and functions, or load a folder with `load_skill`. `ThinkBuilder.skill` offers it.

    Args:
        name: Up to 64 lower-case letters, digits and single hyphens.
        description: What it does and when to use it, in up to 1024 characters. The prompt has it.
        body: The instructions. The agent gets them when it activates the skill.
        tools: Functions that the agent can call through the skill; as for `thinkwell.tool`.
        files: Contents of files by path, such as ``references/api.md``.

    Raises:
        SkillError: The name, the description, or the path of a file cannot be used.
        TypeError: An argument has the wrong type; see also `thinkwell.tool`.
        ValueError: Two tools have the same name, or a text has lone surrogates.
    """

    name: str
    description: str
    body: str
    tools: tuple[Tool, ...]
    folder: Path | None
    """The folder of its files; ``None`` if they are in memory."""
    license: str
    compatibility: str
    """A description of its requirements."""
    allowed_tools: tuple[str, ...]
    """Tools that its author suggests to allow. It has no effect: ``permissions=`` decides."""
    metadata: Mapping[str, str]
    _files: SkillFiles

    def __init__(
        self,
        name: str,
        description: str,
        body: str = "",
        *,
        tools: Iterable[Tool | ToolFunction] = (),
        files: Mapping[str, str | bytes] | None = None,
    ) -> None:
        flaw = _name_flaw(checked(name, "Skill(name=…)"))
        flaw = flaw or _description_flaw(checked(description, f"Skill({name!r}, description=…)"))
        if flaw:
            raise SkillError(name, flaw)
        contents = {path: _data(name, path, content) for path, content in (files or {}).items()}
        try:
            virtual = VirtualFiles(contents)
        except SkillFileError as exc:
            raise SkillError(name, f"files=: {exc}") from None
        self._set(
            name=name,
            description=description.strip(),
            body=checked(body, f"Skill({name!r}, body=…)"),
            tools=_tools(name, tools),
            folder=None,
            license="",
            compatibility="",
            allowed_tools=(),
            metadata=MappingProxyType(dict[str, str]()),
            _files=virtual,
        )

    def _set(self, **fields: object) -> None:
        for key, value in fields.items():
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        return f"<Skill {self.name!r} {self._origin}>"

    @property
    def _origin(self) -> str:
        return "without a folder" if self.folder is None else f"from {self.folder}"


def load_skill(path: str | os.PathLike[str], *, tools: Iterable[Tool | ToolFunction] = ()) -> Skill:
    """Load a skill from its folder. Its other files are read when the agent asks for them.

    The format is Agent Skills: a SKILL.md with front matter and Markdown. Unknown keys of the front matter
    are ignored, and the folder may have any name.

    Args:
        path: The folder, or the SKILL.md in it.
        tools: Functions that the agent can call through the skill.

    Raises:
        SkillError: The skill cannot be used; the message names file and line.
        TypeError: A function cannot be a tool.
        ValueError: Two tools have the same name.
    """
    from thinkwell._core.tools.front_matter import (  # not needed by `import thinkwell`
        FrontMatter,
        FrontMatterError,
    )

    file = _find(path)
    try:
        files = FolderFiles(file.parent)
        matter = FrontMatter(files.read(file.name).decode())
        name, description = matter.text("name").strip(), matter.text("description").strip()
        for key, flaw in (("name", _name_flaw(name)), ("description", _description_flaw(description))):
            if flaw:
                raise FrontMatterError(matter.line(key), flaw)
        license_, compatibility = matter.text("license"), matter.text("compatibility")
        allowed = matter.texts("allowed-tools")
        metadata = matter.texts_by_name("metadata")
    except (SkillFileError, OSError) as exc:
        raise SkillError(str(file), str(exc)) from None
    except UnicodeDecodeError as exc:
        line = exc.object.count(b"\n", 0, exc.start) + 1
        raise SkillError(str(file), f"line {line}: byte {exc.start} is not UTF-8; save it as UTF-8") from None
    except FrontMatterError as exc:
        raise SkillError(str(file), f"line {exc.line}: {exc.reason}") from None
    skill = Skill(name, description, matter.body, tools=tools)
    skill._set(
        folder=file.parent,
        license=license_,
        compatibility=compatibility,
        allowed_tools=tuple(_ALLOWED_TOOL.findall(allowed) if isinstance(allowed, str) else allowed),
        metadata=MappingProxyType(metadata),
        _files=files,
    )
    return skill


def _find(path: str | os.PathLike[str]) -> Path:
    """Return the path of the SKILL.md, which may still be a link or a folder.

    Raises:
        SkillError: There is no SKILL.md.
    """
    given = Path(path)
    try:
        if given.is_dir():
            folder = given.resolve()
            for name in _FILE_NAMES:
                if os.path.lexists(folder / name):
                    return folder / name
            raise SkillError(str(path), "there is no SKILL.md in this folder")
        if not os.path.lexists(given):
            raise SkillError(str(path), "there is no such folder or file")
        if given.name not in _FILE_NAMES:
            raise SkillError(str(path), "give the folder of the skill, or the SKILL.md in it")
        return given.parent.resolve() / given.name
    except OSError as exc:
        raise SkillError(str(path), str(exc)) from None


def _name_flaw(name: str) -> str:
    """Return the problem of a name; empty if there is none."""
    if not name:
        return "it has no name; add `name: …`"
    lower = name == name.lower() and name.replace("-", "a").isalnum()
    if lower and "--" not in name and name.strip("-") == name and len(name) <= NAME_LIMIT:
        return ""
    return (
        f"{name!r:.100} is not a valid name; use up to {NAME_LIMIT} lower-case letters, digits "
        "and single hyphens between them, such as pdf-forms"
    )


def _description_flaw(description: str) -> str:
    if not description.strip():
        return "it has no description; add one that says what the skill does and when to use it"
    if len(description) > DESCRIPTION_LIMIT:
        return f"its description has {len(description):,} characters; {DESCRIPTION_LIMIT:,} are allowed"
    return ""


def _data(skill: str, path: object, content: object) -> bytes:
    if not isinstance(path, str):
        raise TypeError(f"Skill({skill!r}, files=…): a path is a str, not {type(path).__name__}")
    if isinstance(content, bytes):
        return content
    return checked(content, f"Skill({skill!r}, files={{{path!r}: …}})").encode()


def _tools(skill: str, functions: Iterable[Tool | ToolFunction]) -> tuple[Tool, ...]:
    tools: dict[str, Tool] = {}
    for function in functions:
        new = tool(function)
        same = tools.setdefault(new.name, new)
        if same is not new:
            raise ValueError(
                f"skill {skill!r}: {label(same.function)} and {label(new.function)} are both called "
                f"{new.name!r}; give one another name: tool(fn, name=…)"
            )
    return tuple(tools.values())
