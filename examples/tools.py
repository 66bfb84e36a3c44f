"""Give the agent tools: your plain typed functions, which it may call while it works.

python examples/tools.py
"""

from __future__ import annotations

from pathlib import Path

import anyio
from pydantic import BaseModel

from thinkwell import ToolError, open_agent


def word_count(path: str) -> int:
    """Count the words of a text file.

    Args:
        path: the file, relative to the project's folder
    """
    # The agent chooses the arguments, so do not trust them.
    file = Path(path).resolve()
    if not file.is_relative_to(Path.cwd()):
        raise ToolError("only files of this project")  # the agent gets this text, and may try again
    return len(file.read_text(encoding="utf-8").split())


async def owner(path: str) -> str:
    """Return who maintains a file. Tools may be async, too."""
    if not await anyio.Path(path).exists():
        raise ToolError("there is no such file")
    return "the documentation team" if path.endswith(".md") else "the core team"


class Report(BaseModel):
    """The result that we want."""

    path: str
    words: int
    owner: str


async def main() -> None:
    async with open_agent() as agent:
        task = agent.think(Report).text("Report on README.md; use the tools.").tool(word_count).tool(owner)
        report = await task.run()
    print(f"{report.path}: {report.words} words, looked after by {report.owner}")


if __name__ == "__main__":
    anyio.run(main)
