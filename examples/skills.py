"""Give the agent a skill: a folder with instructions, which it reads when it needs them, and a tool for it.

python examples/skills.py
"""

from __future__ import annotations

from pathlib import Path

import anyio

from thinkwell import open_agent
from thinkwell.skills import load_skill

FOLDER = Path(__file__).with_name("release-notes")


def last_version() -> str:
    """Return the version that was released last."""
    return "1.4.0"


async def main() -> None:
    skill = load_skill(FOLDER, tools=[last_version])
    async with open_agent() as agent:
        task = agent.think().text("Write release notes for this project, as the skill says.").skill(skill)
        print(await task.run())


if __name__ == "__main__":
    anyio.run(main)
