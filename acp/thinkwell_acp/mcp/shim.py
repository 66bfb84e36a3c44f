"""Carries bytes between an agent that speaks MCP over pipes and the tool server in thinkwell's process.

An agent starts this as a program, once per session, so it imports only cheap modules; `socket` alone doubles
the time. Usage: ``python -I -S shim.py ADDRESS``, where ADDRESS is the path of a Unix socket or a loopback
TCP port; the environment variable THINKWELL_MCP_SECRET holds the secret to send first.
"""

import _socket
import _thread
import os
import sys

BLOCK = 65536


def _connect(address: str) -> _socket.socket:  # pragma: no cover - see below
    if address.isdecimal():
        connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        connection.connect(("127.0.0.1", int(address)))
    else:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.connect(address)
    return connection


def _to_agent(connection: _socket.socket) -> None:  # pragma: no cover - see below
    """Carry the server's output, and exit the program at its end."""
    try:
        while data := connection.recv(BLOCK):
            while data:
                data = data[os.write(1, data) :]
    finally:
        os._exit(0)


def main() -> None:  # pragma: no cover - runs as a program of its own, which no tool can look into
    """Run until either side closes."""
    if sys.platform == "win32":
        import msvcrt

        for standard in (0, 1):
            msvcrt.setmode(standard, os.O_BINARY)
    try:
        connection = _connect(sys.argv[1])
        connection.sendall(os.environ["THINKWELL_MCP_SECRET"].encode() + b"\n")
    except OSError as exc:
        sys.exit(f"cannot reach the tool server: {exc}")
    _thread.start_new_thread(_to_agent, (connection,))
    try:
        while data := os.read(0, BLOCK):
            connection.sendall(data)
    finally:
        # The other thread still waits for bytes, so an ordinary exit would hang.
        os._exit(0)


if __name__ == "__main__":  # pragma: no cover - see above
    main()
