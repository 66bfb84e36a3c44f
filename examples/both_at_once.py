"""Watch the events and await the result at the same time, in two tasks.

The result is there as soon as the agent returns it; events continue until its turn ends.

    python examples/both_at_once.py
"""

from __future__ import annotations

import anyio

from thinkwell import ThoughtStream, open_agent


async def watch(stream: ThoughtStream[list[str]]) -> None:
    count = 0
    async for _ in stream:
        count += 1
    print(f"{count} events, the last of them after the result")


async def report(stream: ThoughtStream[list[str]]) -> None:
    files = await stream.result
    print(f"result: {', '.join(files)}")


async def main() -> None:
    async with open_agent() as agent:
        stream = agent.think(list[str]).text("Which files matter most in this project?").stream()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, stream)
            tasks.start_soon(report, stream)


if __name__ == "__main__":
    anyio.run(main)
