"""A program that cannot tell that it is no Python: `sys.executable` starts it, whatever the arguments.

Each one that is started adds a line to the file of its first argument. From the sixth on they end at once.
"""

import os
import sys
from pathlib import Path

starts, sys.executable, *arguments = sys.argv[1:]
sys.argv = sys.orig_argv = [sys.executable, *arguments]  # as a program has them that embeds Python
with Path(starts).open("a") as file:
    file.write(f"{os.getpid()}\n")
if len(Path(starts).read_text().splitlines()) < 6:
    from thinkwell import AgentError, sync

    for command in (None, [sys.executable, "-m", "thinkwell.builtin"]):
        try:
            with sync.open_agent(command=command):
                pass
        except AgentError as exc:
            sys.stderr.write(f"{exc}\n")
