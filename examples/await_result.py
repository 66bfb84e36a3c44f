"""Await only the result: the run continues without a reader of its events.

python examples/await_result.py
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from thinkwell import ResultError, open_agent


@dataclass
class Size:
    """Dataclasses, TypedDicts, lists and plain types work as well as pydantic models."""

    files: int
    lines: int


async def main() -> None:
    async with open_agent() as agent:
        task = agent.think(Size).text("How big is this project?")
        try:
            size = await task.run(timeout=120)  # short for: await task.stream().result
        except ResultError as error:  # the agent ended without a valid result; the error says why
            print(f"No result: {error}")
        else:
            print(f"{size.files} files with {size.lines} lines")


if __name__ == "__main__":
    anyio.run(main)
