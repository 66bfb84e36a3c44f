"""Leaves an agent that presses Ctrl-C when it is to end, and does not end; or is pressed on in a task.

Its arguments are the event loop, and whether it is "ending", "listening" or "reading".
"""

from __future__ import annotations

import os
import signal
import sys

import anyio

from thinkwell_acp import stdio_transport

PRESSES = (
    "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print(os.getpid(), flush=True); sys.stdin.read()\n"
    "os.kill(os.getppid(), signal.SIGINT)\n"
    "while True: time.sleep(60)\n"
)

SPEAKS = (
    "import os, sys; print(os.getpid(), flush=True); sys.stdin.readline()\n"
    "print('now', file=sys.stderr, flush=True); sys.stdin.read()\n"
)

COMPLAINS = (
    "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print(os.getpid(), flush=True); sys.stdin.read(); print('now', file=sys.stderr, flush=True)\n"
    "while True: time.sleep(60)\n"
)


async def ending() -> None:
    command = [sys.executable, "-I", "-S", "-c", PRESSES]
    async with stdio_transport(command, exit_grace=300) as transport:
        os.write(1, await transport.receive())


async def listening() -> None:
    command = [sys.executable, "-I", "-S", "-c", COMPLAINS]
    async with stdio_transport(command, exit_grace=300) as transport:
        transport.on_stderr = press
        os.write(1, await transport.receive())


def press(said: bytes) -> None:
    if said:
        signal.raise_signal(signal.SIGINT)


async def reading() -> None:
    command = [sys.executable, "-I", "-S", "-c", SPEAKS]
    async with stdio_transport(command) as transport:
        transport.on_stderr = press
        os.write(1, await transport.receive())
        await transport.send(b"now\n")
        await transport.receive()


# A shell that started the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    anyio.run(
        {"ending": ending, "listening": listening, "reading": reading}[sys.argv[2]], backend=sys.argv[1]
    )
except KeyboardInterrupt:
    os.write(1, b"interrupted\n")
