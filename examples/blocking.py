"""Stream an agent's run without async, and end with a typed result.

python examples/blocking.py
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from thinkwell import ToolDone
from thinkwell.sync import open_agent


@dataclass
class Review:
    """The result that we want."""

    score: int
    summary: str


def count_lines(path: str) -> int:
    """Count the lines of a file. It runs in a separate thread, and may block."""
    return len(Path(path).read_text("utf-8").splitlines())


def main() -> None:
    with open_agent() as agent:
        stream = agent.think(Review).text("Review README.md.").tool(count_lines).stream()
        for event in stream:
            if isinstance(event, ToolDone):
                print(f"tool: {event.status}")
        review = stream.result()
        again = agent.think(int).text("How many files are there in this project?").run()
    print(f"{review.score} of 10; {again} files")


if __name__ == "__main__":
    main()
