"""A router: a conversation for each user, whatever channel they write from.

    python examples/channels/conversations.py

Ada sees messages while they are written, and Ben gets whole messages. Each has a separate session with one
turn at a time, and neither waits for the other.
"""

from __future__ import annotations

import anyio

from thinkwell import open_agent
from thinkwell.channels import MessageRouter


class Page:
    """Shows a text while it grows. It keeps the text that a browser would show."""

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}
        self.pieces = 0

    async def send(self, user_id: str, text: str) -> None:
        """Show a whole message."""
        self.shown[user_id] = text

    async def on_stream_start(self, user_id: str) -> None:
        """Begin a message."""
        self.shown[user_id] = ""

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        """Add a piece."""
        self.shown[user_id] += chunk
        self.pieces += 1

    async def on_stream_status(self, user_id: str, status: str) -> None:
        """Show the agent's status."""

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        """Show the final text."""
        self.shown[user_id] = full_text


class Letters:
    """Sends whole messages."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    async def send(self, user_id: str, text: str) -> None:
        """Send one."""
        self.sent.append((user_id, text))


async def main() -> None:
    page, letters = Page(), Letters()
    async with open_agent() as agent, MessageRouter(agent) as router, anyio.create_task_group() as tasks:
        for text in ("What is in this folder?", "What is in the README?"):
            tasks.start_soon(router.handle_user_message, text, "ada", page)
            tasks.start_soon(router.handle_user_message, text, "ben", letters)
    print(f"ada has seen {page.pieces} pieces, and the last message begins: {page.shown['ada'][:40]!r}")
    print(f"{letters.sent[0][0]} has {len(letters.sent)} letters")


if __name__ == "__main__":
    anyio.run(main)
