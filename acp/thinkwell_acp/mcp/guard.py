"""Runs an MCP server for an agent, and ends it when the agent is gone, however that went.

An agent that is killed cannot end its servers, and a server that hangs does not see that it has no writer
any more. This program stands between them. It is started by the agent as the leader of a process group, hands
its standard streams to the server, and watches whether anybody still holds the other end of standard input.
Like the shim it imports only what costs nothing. Usage: ``python -I -S guard.py GRACE PROGRAM ARGUMENT…``;
GRACE is the number of seconds in which a server may leave by itself.
"""
# pragma: no cover file - it runs as a program of its own, which no tool can look into

import _thread
import os
import select
import signal
import sys
import time


def _watch() -> "select.poll":
    """Return what waits for the end of standard input, without reading any of it."""
    watch = select.poll()
    watch.register(0, 0)
    return watch


def _ignore(_number: int, _frame: object) -> None:
    """Stay."""


def _wait(server: int) -> None:
    """End as the server has ended."""
    _, status = os.waitpid(server, 0)
    if _watch().poll(0):  # no other is left to end what the server has started
        os.killpg(0, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)  # a signal as a shell tells it


def main() -> None:
    """Run the server until it ends or its input is closed."""
    grace, program = float(sys.argv[1]), sys.argv[2:]
    # It is for the server; the guard stays until the server is gone. A handler is not inherited.
    signal.signal(signal.SIGTERM, _ignore)
    try:
        server = os.posix_spawn(
            program[0], program, os.environ, setsigdef=(signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
        )
    except OSError as exc:
        sys.exit(f"{program[0]} cannot be started: {exc}")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):  # their ends are for the server to tell
        os.dup2(null, standard)
    _thread.start_new_thread(_wait, (server,))
    _watch().poll()
    time.sleep(grace)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
