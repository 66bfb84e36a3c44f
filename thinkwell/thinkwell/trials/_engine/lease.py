"""Leases: which worker lives, and who owns a store that is a file.

On PostgreSQL a worker holds an advisory lock, which its death frees at once, and says every half second that
it lives, since one that is stopped keeps its lock.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from thinkwell.trials import _marks
from thinkwell.trials._errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator

    from thinkwell.trials._engine.store import Store

__all__ = ("Lease", "bury", "owned")

BEAT: Final = 0.5
"""Seconds between two signs of life."""


class Lease:
    """A worker's lease.

    Args:
        store: The store.
        worker: The worker's id.
        lost: Called in another thread, once, when the lease is lost: the store does not answer, or others
            have taken over.
        seconds: How long it lasts without a sign of life.
    """

    def __init__(self, store: Store, worker: str, lost: Callable[[str], None], seconds: float) -> None:
        self._store = store
        self._worker = worker
        self._lost = lost
        self._seconds = seconds
        self._connection: sa.Connection | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self.settled = threading.Event()
        """Set while its signs of life are heard. After an outage, other workers get time to give theirs."""

    def take(self, agents: Collection[str], host: str) -> None:
        """Take it, and keep it from now on.

        Raises:
            StoreError: The store cannot be used.
        """
        with self._store.translated("used"):
            self._lock()
        self._store.enter(self._worker, agents=agents, host=host, lease=self._seconds)
        self.settled.set()
        self._thread.start()

    def end(self) -> None:
        """Give it back."""
        self._stop.set()
        self._thread.join(BEAT * 4)
        with suppress(StoreError):
            self._store.leave(self._worker)

    def _keep(self) -> None:
        heard = calm = time.monotonic()
        while not self._stop.wait(BEAT):
            try:
                connection = self._connection or self._lock()
                with connection.begin():
                    alive = self._store.beat(connection, self._worker)
                if not alive:
                    self._lost("others have taken over its trials, as it gave no sign of life")
                    return
                heard = time.monotonic()
            except SQLAlchemyError:
                self.settled.clear()
                calm = time.monotonic() + self._seconds / 2
                if self._connection is not None:
                    with suppress(SQLAlchemyError):
                        self._connection.invalidate()
                        self._connection.close()
                    self._connection = None
            if time.monotonic() - heard > self._seconds:
                self._lost("the store has not answered")
                return
            if time.monotonic() > calm:
                self.settled.set()

    def _lock(self) -> sa.Connection:
        """Open the connection that holds the lock as long as it lives."""
        self._connection = connection = self._store.engine.connect()
        if not self._store.embedded:
            with connection.begin():
                connection.execute(sa.select(sa.func.pg_advisory_lock(_key(self._worker))))
        return connection


def bury(store: Store, own: str) -> set[str]:
    """Remove the workers that are dead, and return the ids of those that live.

    Args:
        store: The store.
        own: The worker that does it.
    """
    living = set[str]()
    for worker in store.workers():
        if worker.id != own and (worker.late or _is_free(store, worker.id)):
            store.leave(worker.id)
        else:
            living.add(worker.id)
    return living


def _is_free(store: Store, worker: str) -> bool:
    """Return whether the lock of a worker is free: its process, or its connection, is gone."""
    if store.embedded:
        return True  # a file has one owner, which is another now
    key = _key(worker)
    with store.engine.begin() as tx:
        return bool(tx.execute(sa.select(sa.func.pg_try_advisory_xact_lock(key))).scalar())


def _key(worker: str) -> int:
    return int.from_bytes(hashlib.sha256(worker.encode()).digest()[:8], signed=True)


@contextmanager
def owned(store: Store, what: str, patience: float = 0.0) -> Generator[None]:
    """Own a store that is a file during a block; of others there can be many users.

    Args:
        store: The store.
        what: The part of it: ``owner`` for the program, ``worker`` for the worker.
        patience: Seconds to wait for the one that owns it.

    Raises:
        StoreError: Another process owns it.
    """
    if store.path is None:
        yield
        return
    path = Path(f"{store.path}-{what}")
    until = time.monotonic() + patience
    while (lock := _taken(path)) is None:
        if time.monotonic() >= until:
            raise store.error(
                "another program runs trials in it, and a file has one owner at a time; wait for that, name "
                "another file, or use PostgreSQL, which many can share"
            )
        time.sleep(0.05)
    try:
        yield
    finally:
        _marks.give_back(lock, path.unlink)


def _taken(path: Path) -> int | None:
    """Take the lock of a file, which is there only while it is locked; ``None``: another process has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(FileNotFoundError):
        if _marks.take(lock, wait=False) and os.path.samestat(os.fstat(lock), path.stat()):
            return lock
    os.close(lock)
    return None
