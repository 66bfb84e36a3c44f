"""Leaves an agent that presses Ctrl-C when it is to end, and does not end. Its argument is the event loop."""

from __future__ import annotations

import os
import sys

import anyio

from thinkwell_acp import stdio_transport

PRESSES = (
    "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print(os.getpid(), flush=True); sys.stdin.read()\n"
    "os.kill(os.getppid(), signal.SIGINT)\n"
    "while True: time.sleep(60)\n"
)


async def main() -> None:
    command = [sys.executable, "-I", "-S", "-c", PRESSES]
    async with stdio_transport(command, exit_grace=300) as transport:
        os.write(1, await transport.receive())


try:
    anyio.run(main, backend=sys.argv[1])
except KeyboardInterrupt:
    os.write(1, b"interrupted\n")
