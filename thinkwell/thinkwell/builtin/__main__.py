"""``python -m thinkwell.builtin``: serve the built-in agent on standard input and output."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Final

import anyio

from thinkwell.builtin._agent import BuiltinAgent
from thinkwell_acp.agent import serve_agent
from thinkwell_acp.stdio import own_stdio

MODELS_VARIABLE: Final = "THINKWELL_BUILTIN_MODELS"
"""Environment variable with the names of models to offer, with commas between."""


async def _serve() -> None:
    models = [name for name in os.environ.get(MODELS_VARIABLE, "").split(",") if name]
    async with BuiltinAgent(models) as agent, serve_agent(own_stdio(), agent) as side:
        await side.wait_closed()


def main() -> None:
    """Serve on standard input and output until the client leaves."""
    if sys.stdin.isatty():  # pragma: no cover - it is tried by hand
        sys.stderr.write(
            "This program speaks the Agent Client Protocol on its standard input. Start it from a client.\n"
        )
    warnings.simplefilter("ignore", SyntaxWarning)  # those of the files that it reads
    warnings.simplefilter("ignore", DeprecationWarning)
    anyio.run(_serve)


if __name__ == "__main__":
    main()
