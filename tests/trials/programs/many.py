"""Runs trials of the built-in agent, in worktrees, and writes the report. It is killed while it does.

Arguments: the folder, the store, how many trials, the budget in tool calls, and the limit.
"""

import os
import sys
from functools import partial
from pathlib import Path

import anyio

from thinkwell import Budget, ThinkBuilder, think
from thinkwell.trials import Command, Worktree, trials


def count_a_call() -> str:
    """Count this call in a file."""
    with Path(os.environ["COUNTED_CALLS"]).open("a") as file:
        file.write("x\n")
    return "counted"


def task(given: str) -> ThinkBuilder[int]:
    """Return the task of an input."""
    return think(int).tool(count_a_call).text(f"How many lines has `app.py`? ({given})")


async def main(folder: str, store: str, count: int, calls: int, limit: int) -> None:
    """Run them."""
    report = await trials(
        task,
        inputs=[f"input {number}" for number in range(count)],
        agents=["builtin"],
        workspace=Worktree(folder),
        check=Command((sys.executable, "-c", "open('app.py').read()")),
        store=store,
        limit=limit,
        budget=Budget(max_tool_calls=calls),
        worker="NO_WORKER" not in os.environ,
    )
    Path(folder, "..", "report.json").write_text(report.to_json())


if __name__ == "__main__":
    anyio.run(partial(main, sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
