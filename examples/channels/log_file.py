"""A channel of one method: what an agent says goes to a log file.

python examples/channels/log_file.py [FILE]
"""

from __future__ import annotations

import sys

import anyio

from thinkwell import open_agent
from thinkwell.channels import deliver


class LogFile:
    """A class with ``async def send`` is a channel; there is nothing to inherit."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def send(self, user_id: str, text: str) -> None:
        """Add a text to the file."""
        async with await anyio.open_file(self._path, "a", encoding="utf-8") as file:
            await file.writelines(f"{user_id}: {line}\n" for line in text.splitlines())


async def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "answers.log"
    async with open_agent() as agent:
        stream = agent.think().text("What is in this folder?").stream()
        delivery = await deliver(stream, LogFile(path), "ada")
    print(f"{delivery.status}: {len(delivery.text.splitlines())} lines in {path}")


if __name__ == "__main__":
    anyio.run(main)
