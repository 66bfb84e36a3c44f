"""A worker for the built-in agent. Arguments: the store, and the seconds of its lease."""

import signal
import sys

import anyio

from thinkwell.trials import serve_worker


async def main(store: str, lease: float) -> None:
    """Run it until it is asked to leave."""

    async def serve() -> None:
        await serve_worker(store, agents=["builtin"], limit=2, lease=lease)

    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            async for _ in signals:
                tasks.cancel_scope.cancel()


anyio.run(main, sys.argv[1], float(sys.argv[2]))
