"""Opens a worktree, says so, and waits until it is killed."""

import sys

import anyio

from thinkwell.trials import Worktree


async def main() -> None:
    """Open it."""
    async with Worktree(sys.argv[1]) as folder:
        print(folder.path, flush=True)  # noqa: T201
        await anyio.sleep_forever()


anyio.run(main)
