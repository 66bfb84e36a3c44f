"""What is started instead of Python: it hands its streams to the server, and ends as the program there does.

Usage: ``client.py ADDRESS PYTHON ARGUMENT…``
"""

from __future__ import annotations

import _socket  # the module over it takes as long to import as Python to begin
import os
import signal
import sys
from array import array

FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def main() -> None:
    """Run the program, and end as it does."""
    streams = [number for number in range(3) if _is_open(number)]
    address, python, *arguments = map(os.fsencode, sys.argv[1:])
    waiting: list[int] = []
    program = 0

    def forward(number: int, _frame: object) -> None:
        if program:
            os.kill(program, number)
        else:
            waiting.append(number)

    for number in FORWARDED:
        signal.signal(number, forward)
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(address)
    words = [b"%d" % number for number in streams]
    variables = [b"%s=%s" % variable for variable in os.environb.items()]
    body = b"\0\0".join(b"\0".join(part) for part in (words, [b"-", *arguments], [b"-=", *variables]))
    here = os.open(".", os.O_RDONLY)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [here, *streams]))
    server.sendmsg([b"%10d" % len(body)], [rights])
    server.sendall(body)
    if not (told := server.recv(12)):
        os._exit(70)
    program = int(told)
    if not program:
        os.execv(python, [python, *arguments])
    for descriptor in (here, *streams):  # they are the program's
        os.close(descriptor)
    for early in waiting:
        os.kill(program, early)
    told = server.recv(12)
    if not told:
        os._exit(70)
    code = int(told)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if code != -signal.SIGKILL else None
        os.kill(os.getpid(), -code)
        signal.pause()
    os._exit(code)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


main()
