"""Several runs at once on one agent, each in a separate session.

python examples/several_runs.py
"""

from __future__ import annotations

import anyio
from pydantic import BaseModel

from thinkwell import ThoughtStream, open_agent

FILES = ("README.md", "pyproject.toml", "Makefile")


class Summary(BaseModel):
    """The result for each file."""

    path: str
    summary: str


async def show(stream: ThoughtStream[Summary]) -> None:
    found = await stream.result
    print(f"{found.path}: {found.summary}")


async def main() -> None:
    async with open_agent() as agent:
        # stream() starts each run at once and does not wait.
        streams = [
            agent.think(Summary).text("Summarise this file.").resource(path).stream() for path in FILES
        ]
        async with anyio.create_task_group() as tasks:
            for stream in streams:
                tasks.start_soon(show, stream)


if __name__ == "__main__":
    anyio.run(main)
