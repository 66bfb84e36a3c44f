"""Await only the result: no event is looked at, and the run goes on all the same.

python examples/await_result.py
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from thinkwell import ResultError, open_agent


@dataclass
class Size:
    """Dataclasses, TypedDicts, lists and plain types do as well as pydantic models."""

    files: int
    lines: int


async def main() -> None:
    async with open_agent() as agent:
        task = agent.think(Size).text("How big is this project?")
        try:
            size = await task.run(timeout=120)  # short for: await task.stream().result
        except ResultError as error:  # the agent ended without a value that fits, and the error says how
            print(f"No result: {error}")
        else:
            print(f"{size.files} files with {size.lines} lines")


if __name__ == "__main__":
    anyio.run(main)
