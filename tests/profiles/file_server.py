"""A server of files on loopback, which can also be as bad as servers are."""

from __future__ import annotations

import ssl
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

CERTIFICATE = Path(__file__).parent / "loopback.pem"
"""A certificate for loopback that signs itself, and its key: for these tests and nothing else."""

Answer: TypeAlias = "Callable[[BaseHTTPRequestHandler], None]"


class FileServer:
    """What a server has, and what it was asked for."""

    def __init__(self, port: int, *, tls: bool) -> None:
        self.port = port
        self.tls = tls
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.closing = threading.Event()

    def url(self, path: str) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}{path}"

    def answer(self, path: str, answer: Answer) -> str:
        """Answer requests for a path so; return its address."""
        self.answers[path] = answer
        return self.url(path)

    def file(self, path: str, data: bytes, *, sized: bool = True) -> str:
        """Have a file; return its address."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            if sized:
                request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data)

        return self.answer(path, answer)

    def redirection(self, path: str, to: str, code: int = 302) -> str:
        """Send who asks for a path elsewhere; return its address."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(code)
            request.send_header("Location", to)
            request.send_header("Content-Length", "0")
            request.end_headers()

        return self.answer(path, answer)

    def raw(self, path: str, *parts: bytes, hang: bool = False) -> str:
        """Answer with these bytes, headers included, and then close or hang; return the address."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            for part in parts:
                request.wfile.write(part)
                request.wfile.flush()
            if hang:
                self.closing.wait(60)
            request.close_connection = True

        return self.answer(path, answer)


@contextmanager
def file_server(*, tls: bool = False) -> Generator[FileServer]:
    """Run a server while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            files.asked.append(self.path)
            files.answers.get(self.path, _nothing)(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False  # closing waits for them

        def handle_error(self, request: object, client_address: object) -> None:
            assert isinstance(sys.exc_info()[1], OSError)  # who asked has gone away

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        files = FileServer(server.server_address[1], tls=tls)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield files
        finally:
            files.closing.set()
            server.shutdown()
            thread.join()


def _nothing(request: BaseHTTPRequestHandler) -> None:
    request.send_error(404, "\x1b[31mgone")
