"""Runs two agents on a system that lacks something: one exits by itself, one has to be terminated."""

from __future__ import annotations

import os
import signal
import sys

import anyio

QUIRK, BACKEND = sys.argv[1:]

if QUIRK in {"no-pidfd", "no-waitid"}:
    del os.pidfd_open
if QUIRK == "no-waitid":
    del os.waitid
if QUIRK == "sigchld-ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


async def main() -> None:
    """Print the two exit codes."""
    from thinkwell_acp import ProcessExited, stdio_transport

    async with stdio_transport([sys.executable, "-ISc", "import os; os._exit(7)"]) as transport:
        try:
            await transport.receive()
        except ProcessExited as exc:
            print(exc.exit_code)  # noqa: T201
    code = "import time; print('up', flush=True); time.sleep(60)"
    async with stdio_transport([sys.executable, "-ISc", code], exit_grace=0.1) as transport:
        await transport.receive()
    print(transport.exit_code)  # noqa: T201


anyio.run(main, backend=BACKEND)
