"""Imports thinkwell once, and forks for each program that a client asks for.

Usage: ``server.py DESCRIPTOR EXECUTABLE``, with the listening socket's descriptor and what programs shall
find in `sys.executable`. The server ends with its standard input.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import io
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import termios
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TextIO

PACKAGES: Final = (
    *("thinkwell", "thinkwell.cli", "thinkwell.cli.chat", "thinkwell.cli.serve", "thinkwell.cli.telegram"),
    *("thinkwell.testing", "thinkwell.builtin", "thinkwell.web"),
)
"""Packages of which every module is imported, but for the programs."""

OTHERS: Final = (
    "anyio._backends._asyncio",
    "anyio.streams.tls",
    "argparse",
    "asyncio",
    "encodings.idna",
    "httpcore",
    "httpx",
    "jsonschema",
    "opentelemetry.propagate",
    "pydantic",
    "pydantic.type_adapter",
    "redis.asyncio",
    "rich.console",
    "rich.live",
    "rich.markdown",
    "sqlite3",
    "thinkwell._core.tracing.spans",
    "thinkwell.doctor",
    "thinkwell.progress",
    "trio",
    "typer._adapters",
    "typer._click.decorators",
    "typer.rich_utils",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.h11_impl",
)


HEAVY: Final = "thinkwell.trials._engine.dispatcher"
"""What the workers of trials import, which takes a second: only where one is asked for, before its fork."""

WHOLE: Final = "caller.py"
"""The program whose end is Python's whole: what is left open then is what its tests are about."""

left: Final[dict[str, object]] = {}
"""The names of a program that has ended: as in ``__main__``, they live until the interpreter ends."""


class Request(NamedTuple):
    """A program that is asked for."""

    program: str
    is_module: bool
    arguments: list[str]
    warnings: list[str]
    safe_path: bool
    environment: dict[bytes, bytes]
    folder: int
    streams: dict[int, int]
    """Descriptors here, by what they are to be there."""


def main() -> None:
    """Serve until standard input ends; in a fork, be the program."""
    number, sys.executable = int(sys.argv[1]), sys.argv[2]
    listening = socket.socket(fileno=number)
    for name in _modules():
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    if request := Server(listening).run():
        _become(request)
        if not request.is_module:
            left.update(runpy.run_path(request.program, run_name="__main__"))
            if request.program.endswith(WHOLE):
                return
            _end(0)
        try:
            runpy.run_module(request.program, run_name="__main__", alter_sys=True)
        except SystemExit as exc:
            if not isinstance(exc.code, int | None):
                raise
            code = exc.code or 0
        else:
            code = 0
        _end(code)


def _modules() -> list[str]:
    names = list(OTHERS)
    for package in PACKAGES:
        modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
        names += [f"{package}.{name}" for _, name, is_package in modules if not is_package]
    return [name for name in names if not name.endswith(".__main__")]


def _wake(_number: int, _frame: object) -> None:
    """Let a signal be written to the descriptor that wakes the server."""


def _end(code: int) -> None:
    """Do what Python does at its end, but for giving all memory back: that would take most of the time."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120
    os._exit(code)


class Server:
    """Starts programs, and tells their clients how they end."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._clients: dict[int, socket.socket] = {}
        """Each with the process that is its program."""
        self._selector = selectors.DefaultSelector()
        self._wakes, self._woken = socket.socketpair()
        self._wakes.setblocking(False)
        self._woken.setblocking(False)
        signal.signal(signal.SIGCHLD, _wake)
        signal.set_wakeup_fd(self._woken.fileno())

    def run(self) -> Request | None:
        """Return a request where this process is the fork for it; ``None`` at the end."""
        with self._selector as selector:
            for source in (self._listening, self._wakes, sys.stdin):
                selector.register(source, selectors.EVENT_READ)
            while True:
                sources = {key.fileobj: key.data for key, _ in selector.select()}
                for source, program in sources.items():
                    if program is not None:  # the client has been killed
                        selector.unregister(source)
                        self._kill(program)
                if self._wakes in sources:
                    self._wakes.recv(1000)
                    self._tell_of_ends()
                if sys.stdin in sources:
                    for program in self._clients:
                        self._kill(program)
                    return None
                if self._listening in sources and (request := self._accept()):
                    return request

    def _accept(self) -> Request | None:
        client, _ = self._listening.accept()
        request, program = _read(client), 0
        if request:
            if request.program.startswith("thinkwell.trials") or request.arguments[:1] == ["worker"]:
                importlib.import_module(HEAVY)
            program = os.fork()
            if not program:
                signal.set_wakeup_fd(-1)
                for each in (self._listening, self._wakes, self._woken, client, *self._clients.values()):
                    each.close()
                return request
            for number in (request.folder, *request.streams.values()):
                os.close(number)
            self._clients[program] = client
            self._selector.register(client, selectors.EVENT_READ, program)
        with suppress(OSError):
            client.sendall(b"%12d" % program)
        if not request:
            client.close()
        return None

    def _kill(self, program: int) -> None:
        if program in self._clients:
            os.kill(program, signal.SIGKILL)

    def _tell_of_ends(self) -> None:
        while self._clients:
            program, status = os.waitpid(-1, os.WNOHANG)
            if not program:
                break
            with self._clients.pop(program) as client:
                with suppress(KeyError):  # it has been killed itself
                    self._selector.unregister(client)
                with suppress(OSError):
                    client.sendall(b"%12d" % os.waitstatus_to_exitcode(status))


def _read(client: socket.socket) -> Request | None:
    head, numbers, _, _ = socket.recv_fds(client, 10, 4)
    body = b""
    while len(body) < int(head):
        body += client.recv(int(head) - len(body))
    streams, words, variables = (part.split(b"\0") for part in body.split(b"\0\0"))
    arguments = [os.fsdecode(word) for word in words[1:]]
    told: list[str] = []
    safe_path = False
    while arguments and arguments[0] in ("-W", "-P"):
        if arguments.pop(0) == "-W":
            told.append(arguments.pop(0))
        else:
            safe_path = True
    is_module = arguments[0] == "-m"
    if is_module:
        arguments.pop(0)
    elif not arguments[0].endswith(".py"):
        for number in numbers:
            os.close(number)
        return None
    environment = dict(variable.split(b"=", 1) for variable in variables[1:])
    to = [int(number) for number in streams if number]
    return Request(
        program=arguments[0],
        is_module=is_module,
        arguments=arguments[1:],
        warnings=told,
        safe_path=safe_path or bool(environment.get(b"PYTHONSAFEPATH")),
        environment=environment,
        folder=numbers[0],
        streams=dict(zip(to, numbers[1:], strict=True)),
    )


def _become(request: Request) -> None:
    """Let this process be as Python is when it begins."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    for name, value in request.environment.items():
        os.environb[name] = value
    os.fchdir(request.folder)
    os.close(request.folder)
    for descriptor in range(3):
        if descriptor in request.streams:
            os.dup2(request.streams[descriptor], descriptor)
            os.close(request.streams[descriptor])
        else:
            os.close(descriptor)
    os.setsid()
    terminals = [number for number in request.streams if os.isatty(number)]
    if terminals:
        with suppress(OSError):  # it is that of another session
            fcntl.ioctl(terminals[0], termios.TIOCSCTTY, 0)
    sys.stdin = sys.__stdin__ = _stream(0, sys.stdin)  # type: ignore[misc, assignment]
    sys.stdout = sys.__stdout__ = _stream(1, sys.stdout)  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = _stream(2, sys.stderr)  # type: ignore[misc, assignment]
    sys.argv[:] = [request.program, *request.arguments]
    with suppress(FileNotFoundError):  # the folder is gone
        sys.path[0] = str(Path.cwd() if request.is_module else Path(request.program).absolute().parent)
    if request.safe_path:
        del sys.path[0]
    sys.warnoptions[:] = request.warnings
    warnings.resetwarnings()
    for action in request.warnings:
        warnings.simplefilter(action)  # type: ignore[arg-type]


def _stream(number: int, like: TextIO) -> TextIO | None:
    try:
        os.fstat(number)
    except OSError:
        return None
    at_once = bool(number and os.environ.get("PYTHONUNBUFFERED"))
    file = open(number, "wb" if number else "rb", 0 if at_once else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        file,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n" if number else None,
        line_buffering=number == 2 or os.isatty(number),
        write_through=at_once,
    )


main()
