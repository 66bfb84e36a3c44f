"""An agent that asks in every way it can: its arguments are what it speaks, its name, and how many questions
it asks in a turn. It needs the folder of the tests on its path.
"""

from __future__ import annotations

import sys

import anyio
from listen.talkers import TALKERS, Protocol
from listen.worked_out import asks_all

from thinkwell_acp import own_stdio


async def main() -> None:
    protocol: Protocol = "acp" if sys.argv[1] == "acp" else "ndjson"
    await TALKERS[protocol](own_stdio(), [asks_all(sys.argv[2], int(sys.argv[3]))]).serve()


if __name__ == "__main__":
    anyio.run(main)
