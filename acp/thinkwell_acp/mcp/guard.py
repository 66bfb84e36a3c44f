"""Runs an MCP server for an agent, and ends it when the agent is gone, for any reason.

A killed agent cannot end its servers, and a hanging server does not notice that its writer is gone. This
program stands between them. The agent starts it as the leader of a process group. It passes its standard
streams to the server, and watches whether any process still holds the other end of standard input. Like the
shim, it imports only cheap modules. Usage: ``python -I -S guard.py GRACE PROGRAM ARGUMENT…``; GRACE is the
number of seconds for a server to exit by itself.
"""
# pragma: no cover file - it runs as a program of its own, which no tool can look into

import _thread
import os
import select
import signal
import sys
import time


def _watch() -> "select.poll":
    """Return a poll object that waits for the end of standard input, without reading from it."""
    watch = select.poll()
    watch.register(0, 0)
    return watch


def _ignore(_number: int, _frame: object) -> None:
    """Ignore a signal."""


def _wait(server: int) -> None:
    """Exit as the server did."""
    _, status = os.waitpid(server, 0)
    if _watch().poll(0):  # nothing else can end the server's own processes
        os.killpg(0, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)  # a signal, as shells report it


def main() -> None:
    """Run the server until it ends or its input is closed."""
    grace, program = float(sys.argv[1]), sys.argv[2:]
    # It is for the server; the guard stays until the server has ended. A handler is not inherited.
    signal.signal(signal.SIGTERM, _ignore)
    try:
        server = os.posix_spawn(
            program[0], program, os.environ, setsigdef=(signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
        )
    except OSError as exc:
        sys.exit(f"{program[0]} cannot be started: {exc}")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):  # the server decides when they end
        os.dup2(null, standard)
    _thread.start_new_thread(_wait, (server,))
    _watch().poll()
    time.sleep(grace)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
