"""``python -m thinkwell.testing SCRIPT [FOLDER]``: play a script on standard input and output.

With a folder, what comes of it is kept there, and processes with the same folder go on where the others have
got to. Without one each process plays the script from its beginning.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio

from thinkwell.testing._journal import FileJournal, MemoryJournal
from thinkwell.testing._player import Play, serve
from thinkwell_acp import own_stdio
from thinkwell_acp.schema import strict_decoder


async def main(*arguments: str) -> None:
    """Play until the client leaves."""
    script, *folders = arguments
    play = strict_decoder(Play).decode(Path(script).read_bytes())  # noqa: ASYNC240 - nothing goes on yet
    journal = FileJournal(Path(folders[0])) if folders else MemoryJournal()
    await serve(own_stdio(), play, journal, stderr=2, crash=os._exit)


if __name__ == "__main__":  # pragma: no branch - it is a program
    anyio.run(main, *sys.argv[1:])
