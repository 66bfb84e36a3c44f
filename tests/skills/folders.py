"""Folders of skills, and an agent that asks for what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
from scripted import Turn, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from thinkwell.skills import Skill

FRONT = "---\nname: notes\ndescription: Writes release notes.\n---\n"


def write_skill(
    folder: Path,
    front: str = FRONT,
    body: str = "Be brief.\n",
    *,
    files: Mapping[str, str | bytes] | None = None,
) -> Path:
    """Write a skill and its other files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(front + body, "utf-8")
    for name, content in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


async def told(
    skills: Sequence[Path | Skill], *calls: tuple[str, Mapping[str, object]]
) -> list[dict[str, Any]]:
    """Offer skills, let an agent make these calls, and return what it is told."""
    answers: list[dict[str, Any]] = []

    async def script(turn: Turn) -> None:
        answers.extend([await turn.call(name, dict(arguments)) for name, arguments in calls])
        turn.say("Done")

    with anyio.fail_after(30):
        async with scripted(script) as agent:
            builder = agent.think().text("Go")
            for skill in skills:
                builder = builder.skill(skill)
            assert await builder.run() == "Done"
    return answers


async def read(skill: Path | Skill, *paths: str, name: str = "notes") -> list[dict[str, Any]]:
    """Let an agent read these files of a skill."""
    return await told([skill], *(("read_skill_file", {"skill": name, "path": path}) for path in paths))


def text(answer: dict[str, Any], *, is_error: bool = False) -> str:
    """Return the one text that an agent was told."""
    assert answer["isError"] is is_error, answer
    (block,) = answer["content"]
    said: str = block["text"]
    return said
