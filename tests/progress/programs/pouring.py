"""Shows a run, and tells how long that took."""

import sys
import time

import anyio

from thinkwell import open_agent
from thinkwell.progress import show


async def main(style: str) -> None:
    async with open_agent("builtin") as agent:
        stream = agent.think().text("word " * 2000).stream(include="all")
        began = time.monotonic()
        await show(stream, style=style)  # type: ignore[arg-type]
        seconds = time.monotonic() - began
    sys.stdout.write(f"ended after {seconds}\n")


anyio.run(main, sys.argv[1])
