"""Stream an agent's run to the terminal and end with a typed result.

Run it with ``python examples/quickstart.py [FOLDER]``. The agent is the built-in one, which holds no model and needs no key;
``THINKWELL_AGENT=claude python examples/quickstart.py`` uses a real one.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Annotated

import anyio
from _show import Printer
from pydantic import BaseModel, Field

from thinkwell import open_agent


class Review(BaseModel):
    """What we want to have: the agent is shown the schema of this, and what it returns is checked against it."""

    title: str
    summary: str
    score: Annotated[int, Field(ge=0, le=10, description="How good the code is")]
    suggestions: list[str] = Field(max_length=3)


async def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    printer = Printer()
    started = perf_counter()
    async with open_agent(cwd=folder) as agent:
        # The run starts here, whether or not anybody looks at it.
        stream = agent.think(Review).text("Review this project.").stream()

        first_event: float | None = None
        async for event in stream:  # thoughts, messages, tools and plan, as they come
            first_event = first_event or perf_counter() - started
            printer.show(event)

        review = await stream.result  # a Review: validated, typed

    printer.line(f"\n{review.title}: {review.score} of 10\n{review.summary}")
    for suggestion in review.suggestions:
        printer.line(f"- {suggestion}")
    if first_event is not None:
        printer.line(f"\n(first event after {first_event:.2f} s, all of it in {perf_counter() - started:.1f} s)")


if __name__ == "__main__":
    anyio.run(main)
