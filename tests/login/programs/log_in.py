"""Logs in to the agent beside it, on the backend and by the offers that its arguments name."""

import signal
import sys
from pathlib import Path

import anyio

from thinkwell import AgentError, login

AGENT = str(Path(__file__).with_name("login_agent.py"))


async def cancel_at_signal(scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(signal.SIGUSR1) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


async def main() -> None:
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            await tasks.start(cancel_at_signal, scope)
            try:
                await login(command=[sys.executable, AGENT, *sys.argv[2:]], env={"LOGIN_BASE": "base"})
                sys.stdout.write("logged in\n")
            except AgentError as exc:
                sys.stdout.write(f"{type(exc).__name__}: {exc} ({getattr(exc, 'exit_code', None)})\n")
        if scope.cancelled_caught:
            sys.stdout.write("cancelled\n")
        tasks.cancel_scope.cancel()
    sys.stdout.write(f"{sys.stdin.readline()!r} was for the caller\n")


anyio.run(main, backend=sys.argv[1])
