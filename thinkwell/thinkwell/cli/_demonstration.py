"""What ``thinkwell demo`` does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import anyio
from pydantic import BaseModel, Field

from thinkwell import open_agent
from thinkwell.cli._ending import log_held
from thinkwell.cli._exit import OK
from thinkwell.cli._launching import launching_shown
from thinkwell.cli._showing import finish

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell.cli._terminal import How

PROMPT: Final = "Review this project."

NEXT: Final = """
That was the built-in agent, which holds no model. Go on with a real one:

  thinkwell agents                                  which there are
  thinkwell doctor claude                           whether one works here
  thinkwell run -a claude "Explain this project"    one task
  thinkwell new my-project                          a program of your own
"""


class Review(BaseModel):
    """What the agent is to return."""

    title: str
    summary: str
    score: Annotated[int, Field(ge=0, le=10, description="how good the code is")]
    suggestions: Annotated[list[str], Field(max_length=3)]


def demonstrate(folder: Path, how: How, record: Path | None) -> int:
    """Show a run of the built-in agent over a folder, and return the exit code."""
    return anyio.run(_demonstrate, folder, how, record)


async def _demonstrate(folder: Path, how: How, record: Path | None) -> int:
    with log_held(how.verbose), launching_shown("builtin", how) as launching:
        async with open_agent("builtin", cwd=folder, record=record, on_phase=launching) as agent:
            launching.done()
            stream = agent.think(Review).text(PROMPT).stream()
            code = await finish(stream, how, Review)
    if code == OK:
        sys.stderr.write(NEXT)
    return code
