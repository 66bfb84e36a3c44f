"""A conversation: several turns in one session, in which the agent remembers the earlier ones.

python examples/session.py
"""

from __future__ import annotations

from typing import Literal

import anyio
from pydantic import BaseModel

from thinkwell import open_agent


class Verdict(BaseModel):
    """Each turn may have its own result type, or none."""

    severity: Literal["low", "medium", "high"]
    next_step: str


async def main() -> None:
    async with open_agent() as agent, agent.session() as session:
        print(await session.think().text("Read pyproject.toml and tell me about it.").run())
        print("lines:", await session.think(int).text("How many lines has it?").run())
        verdict = await session.think(Verdict).text("How urgent is it to work on it?").run()
        print(f"{verdict.severity}: {verdict.next_step}")


if __name__ == "__main__":
    anyio.run(main)
