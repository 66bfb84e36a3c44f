"""Stream an agent's run to the terminal, and end with a typed result.

    python examples/quickstart.py [FOLDER]

The built-in agent is not a model and needs no key. For a real one, set THINKWELL_AGENT to
``claude``, ``codex``, ``gemini`` or ``opencode``.
"""

from __future__ import annotations

import re
import sys
from time import perf_counter
from typing import Annotated

import anyio
from pydantic import BaseModel, Field

from thinkwell import Message, PlanUpdate, Thought, ThoughtEvent, ToolDone, ToolStart, open_agent


class Review(BaseModel):
    """The result that we want. The agent gets its schema; its result is validated against it."""

    title: str
    summary: str
    score: Annotated[int, Field(ge=0, le=10, description="how good the code is")]
    suggestions: Annotated[list[str], Field(max_length=3)]


CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
"""An agent's text is not trusted: no escape sequence in it may reach the terminal."""

DIM, PLAIN = ("\x1b[2m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def show(event: ThoughtEvent) -> None:
    """Print one event."""
    match event:
        case Thought(text=text):
            print(f"{DIM}{CONTROL.sub('', text)}{PLAIN}", end="", flush=True)
        case Message(text=text):
            print(CONTROL.sub("", text), end="", flush=True)
        case ToolStart(kind=kind, title=title):
            print(f"  {kind}: {CONTROL.sub('', title)}")
        case ToolDone(status="failed" | "cancelled" as status):
            print(f"  {status}")
        case PlanUpdate(entries=entries):
            plan = "   ".join(f"{BOXES[entry.status]} {entry.content}" for entry in entries)
            print(CONTROL.sub("", plan))
        case _:
            pass


async def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    started = perf_counter()
    async with open_agent(cwd=folder) as agent:
        # From here on the run continues by itself, whether or not it is watched.
        stream = agent.think(Review).text("Review this project.").stream()

        first = 0.0
        async for event in stream:
            first = first or perf_counter() - started
            show(event)

        review = await stream.result  # a Review, validated; type checkers know it

    print(f"\nThe result is a {type(review).__name__}:")
    print(f"{review.title}: {review.score} of 10\n{review.summary}")
    for suggestion in review.suggestions:
        print(f"- {suggestion}")
    print(f"\n{DIM}first event after {first:.2f} s, all after {perf_counter() - started:.1f} s{PLAIN}")


if __name__ == "__main__":
    anyio.run(main)
