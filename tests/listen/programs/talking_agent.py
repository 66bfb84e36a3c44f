"""An agent that plays a scene, over ACP or in lines, as its arguments say: the protocol, the scene, its own.

It needs the folder of the tests on its path.
"""

from __future__ import annotations

import os
import signal
import sys

import anyio
from listen.talkers import TALKERS, Protocol, Turn

from thinkwell_acp import own_stdio


async def exits(turn: Turn) -> str:
    """Report, ask, and end the process when the handler has begun, for which it waits as told by a file."""
    await turn.progress("one")
    await turn.progress("two")
    await turn.asks("What is it called?")
    await turn.asks_for("Write it")
    await _begun()
    sys.stderr.write("the disk is full\n")
    sys.stderr.flush()
    os._exit(3)


async def killed(turn: Turn) -> str:
    """The same, by a signal that nothing can be done about."""
    await turn.progress("one")
    await turn.progress("two")
    await turn.asks("What is it called?")
    await turn.asks_for("Write it")
    await _begun()
    sys.stderr.write("the disk is full\n")
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


async def waits(turn: Turn) -> str:
    """Ask, and take the answer."""
    await turn.progress(f"I am {os.getpid()}")
    return str(await turn.ask("What is it called?"))


async def _begun() -> None:
    """Wait until the other side says that the handlers run: it opens the pipe that the arguments name."""
    async with await anyio.open_file(sys.argv[3], "rb") as pipe:
        await pipe.read()


SCENES = {"exits": exits, "killed": killed, "waits": waits}


async def main() -> None:
    protocol: Protocol = "acp" if sys.argv[1] == "acp" else "ndjson"
    await TALKERS[protocol](own_stdio(), [SCENES[sys.argv[2]]]).serve()


if __name__ == "__main__":
    anyio.run(main)
