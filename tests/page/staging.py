"""A server of runs behind real HTTP, in a thread of its own, for tests that drive a browser."""

from __future__ import annotations

import re
import select
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio import from_thread
from anyio.from_thread import start_blocking_portal
from anyio.lowlevel import current_token
from kept_runs import keep_run as keep_in_journal
from real_servers import backend_of, listening
from scripted import Played, scripted

from thinkwell.journal import RunRecord
from thinkwell.web import RunEnded, RunServer, ServedAgent, StartRun, web_app

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractAsyncContextManager

    from anyio.from_thread import BlockingPortal
    from anyio.lowlevel import EventLoopToken
    from page.browsing import Browser, Tab
    from real_servers import ServerKind
    from scripted import Script
    from starlette.applications import Starlette

    from thinkwell import Agent
    from thinkwell import events as ev
    from thinkwell.journal import Journal
    from thinkwell.web import Access

__all__ = ("Cable", "Gate", "PageStage", "cable", "keep_run", "opened", "served_page")

RETRY: Final = re.compile(rb"retry: \d{4}\n")
"""How many milliseconds later a browser is to come back."""


class Gate:
    """Holds an agent up until a test lets it go on. It can be opened again and again."""

    def __init__(self) -> None:
        self._opened = 0
        self._passed = 0
        self._lock = threading.Lock()
        self._waiting: dict[anyio.Event, EventLoopToken] = {}

    def open(self) -> None:
        """Let one go on who waits, or will."""
        with self._lock:
            self._opened += 1
            waiting = dict(self._waiting)
        for event, token in waiting.items():
            with suppress(anyio.RunFinishedError):
                from_thread.run_sync(event.set, token=token)

    async def wait(self) -> None:
        """Wait until it is opened once more."""
        while True:
            event = anyio.Event()
            with self._lock:
                if self._opened > self._passed:
                    self._passed += 1
                    return
                self._waiting[event] = current_token()
            try:
                await event.wait()
            finally:
                with self._lock:
                    del self._waiting[event]


@dataclass
class PageStage:
    """A server that listens."""

    url: str
    server: RunServer
    agent: Played
    portal: BlockingPortal

    def start(self, prompt: str = "Go.", *, caller: str = "", **request: Any) -> str:
        """Start a run, and return its address."""
        started = partial(self.server.start, StartRun(prompt=prompt, **request), caller=caller)
        record: RunRecord = self.portal.call(started)
        return f"{self.url}/#run={record.id}"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def served_page(
    *scripts: Script,
    kind: ServerKind = "uvicorn",
    access: Access | None = None,
    journal: Journal | None = None,
    agents: dict[str, ServedAgent] | None = None,
    around: Callable[[Starlette], Starlette] | None = None,
    **options: Any,
) -> Generator[PageStage]:
    """Serve the page, and one agent that plays these scripts, one for each prompt.

    Args:
        scripts: What the agent does.
        kind: By which server.
        access: Who may.
        journal: Where the runs are kept.
        agents: Agents beside that one.
        around: What makes the application part of another one.
        options: What `open_agent` takes.
    """
    handler = Played(scripts)

    def opened(permissions: Any) -> AbstractAsyncContextManager[Agent]:
        return scripted(agent=handler, permissions=permissions, **options)

    own = ServedAgent(open=opened, title="Scripted")
    server = RunServer({"scripted": own, **(agents or {})}, journal=journal)
    app = web_app(server, access=access)
    if around is not None:
        app = around(app)
    failure: BaseException | None = None
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal(backend_of(kind)))
        address = stack.enter_context(portal.wrap_async_context_manager(listening(app, kind)))
        try:
            yield PageStage(address.url, server, handler, portal)
        except BaseException as exc:
            failure = exc
    if failure is not None:
        raise failure


@contextmanager
def opened(browser: Browser, *scripts: Script, **options: Any) -> Generator[Tab]:
    """Start a run of an agent that plays these scripts, and open it in a tab with these options."""
    with served_page(*scripts) as stage, browser.tab(**options) as tab:
        tab.go(stage.start())
        yield tab


class Cable:
    """A way to a server that can be cut. Browsers come back by it at once."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._broken = False
        self._said = b""
        """What is answered while it is cut."""
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def lead_to(self, port: int) -> None:
        """Lead to another server from now on."""
        self._target = port

    def cut(self, *, stay: bool = False, status: str = "") -> None:
        """Cut all connections. With `stay`, new ones are cut too, until `mend`, or answered with a status."""
        with self._lock:
            self._broken = stay
            self._said = f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode() if status else b""
            for pair in self._pairs:
                for each in pair:
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
            self._pairs.clear()

    def mend(self) -> None:
        """Let new connections through again."""
        self._broken = False

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut(stay=True)
        self._thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                try:
                    if self._broken:
                        if self._said:
                            near.recv(65536)
                            near.sendall(self._said)
                        raise ConnectionRefusedError
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                self._pairs.append((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with near, far, suppress(OSError):
            while True:
                ready, _, _ = select.select([near, far], [], [])
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is far:
                        data = RETRY.sub(b"retry: 0050\n", data)
                    (far if source is near else near).sendall(data)


@contextmanager
def cable(port: int) -> Generator[Cable]:
    """Lay a cable to a server for the time of a block."""
    made = Cable(port)
    try:
        yield made
    finally:
        made.close()


def keep_run(stage: PageStage, *events: ev.ThoughtEvent, title: str = "Kept") -> str:
    """Put a run that has ended into the journal, event by event, and return its address."""
    record = RunRecord(id=f"run-{title.lower()}", agent="scripted", created=0.0, title=title)
    end = RunEnded(seq=0, at=events[-1].at, status="completed", result="Done.")
    stage.portal.call(keep_in_journal, stage.server.journal, record, events, end)
    return f"{stage.url}/#run={record.id}"
