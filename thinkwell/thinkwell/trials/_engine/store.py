"""The store: tables with the plans, the trials, their attempts and the workers. What they say is the truth.

DBOS keeps its own tables beside them, and only decides which worker runs what. Its methods block.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from thinkwell.trials._engine import tables as t
from thinkwell.trials._errors import StoreError
from thinkwell.trials._trial import Spent, Status, Trial

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Sequence

__all__ = ("MAX_ATTEMPTS", "Attempt", "LeaseLost", "Name", "Store")

VERSION: Final = 1
"""Of the tables. A release that changes them raises it, and brings older ones up to date."""

PATIENCE: Final = 30
"""Seconds to wait while another process writes to an SQLite file."""

MAX_ATTEMPTS: Final = 25
"""How often a trial is begun at most. One that ends its worker each time would else do so forever."""


Name: TypeAlias = tuple[str, str, int]
"""What names a trial in a plan: input, agent, and the number of the repeat."""


class Attempt(Struct, frozen=True):
    """An attempt of a trial."""

    plan: str
    name: Name
    number: int
    worker: str


class WorkerRow(Struct, frozen=True, kw_only=True):
    """A worker, as the store knows it."""

    id: str
    agents: tuple[str, ...]
    """The agents that it can run."""
    late: bool
    """Whether its lease has run out."""


class Store:
    """A store, which is made where there is none.

    Args:
        address: A path of an SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StoreError: It cannot be used.
    """

    def __init__(self, address: str) -> None:
        self.url: Final = _url(address)
        self.engine: Final = _engine(self.url)
        self.path: Final = self.url.database if self.embedded else None
        try:
            with self._working("opened") as tx:
                self._prepare(tx)
        except BaseException:
            self.close()
            raise

    @property
    def embedded(self) -> bool:
        """Whether it is a file, which one worker at a time uses."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def address(self) -> str:
        """The address, with the password."""
        return self.path or self.url.render_as_string(hide_password=False)

    def __str__(self) -> str:
        if self.embedded:
            return self.url.database or ""
        return self.url.set(drivername="postgresql").render_as_string(hide_password=True)

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def error(self, reason: str) -> StoreError:
        """Return an error of this store."""
        return StoreError(str(self), reason)

    # Plans

    def save(self, plan: str, body: str, names: Sequence[Name], again: Sequence[Status]) -> None:
        """Save a plan with its new trials; let those of its trials that have some statuses wait again."""
        with self._working("written") as tx:
            newer = t.plans.update().where(t.plans.c.id == plan)
            if not tx.execute(newer.values(body=body, revision=t.plans.c.revision + 1)).rowcount:
                tx.execute(t.plans.insert().values(id=plan, body=body, revision=1))
            found = tx.execute(sa.select(*_NAME, t.trials.c.status).where(t.trials.c.plan == plan))
            known = {(row.input, row.agent, row.repeat): row.status for row in found}
            new = [_key(plan, name) for name in names if name not in known]
            if new:
                tx.execute(t.trials.insert(), new)
            for name in names:  # others are of inputs, agents and repeats that the plan no longer has
                if known.get(name) in again:
                    tx.execute(_update(plan, name, status="waiting", error=None, phase="", **_DISPATCH_AGAIN))

    def cancel(self, plan: str, why: str) -> None:
        """Cancel the trials of a plan that have not ended."""
        open_ones = t.trials.update().where(t.trials.c.plan == plan, _OPEN)
        with self._working("written") as tx:
            tx.execute(open_ones.values(status="cancelled", error=why, phase=""))

    def plan(self, plan: str, known: int | None) -> tuple[int, str] | None:
        """Return the newest revision of a plan, and the plan; ``None``: it is known, or there is none."""
        newest = sa.select(t.plans.c.revision, t.plans.c.body).where(t.plans.c.id == plan)
        with self._working("read") as tx:
            found = tx.execute(newest.where(t.plans.c.revision.is_distinct_from(known))).one_or_none()
        return None if found is None else (found.revision, found.body)

    def trials(self, plan: str, *, whole: bool = True) -> list[Trial]:
        """Return the trials of a plan.

        Args:
            plan: Its id.
            whole: Whether with their results and changes, which may be large.
        """
        columns = list(t.trials.c) if whole else t.SUMMARY
        own = sa.and_(*(t.trials.c[name] == t.attempts.c[name] for name in t.KEY))
        rows = sa.select(*columns, *_SPENT).outerjoin_from(t.trials, t.attempts, own)
        with self._working("read") as tx:
            found = tx.execute(rows.where(t.trials.c.plan == plan).group_by(*t.trials.primary_key)).all()
        return [_trial_of(row) for row in found]

    def spent(self, plan: str, *, but: str | None = None) -> Spent:
        """Return what all attempts of a plan have spent, the lost ones included.

        Args:
            plan: Its id.
            but: A worker whose attempts do not count.
        """
        sums = sa.select(*_SPENT).where(t.attempts.c.plan == plan)
        if but is not None:
            sums = sums.where(t.attempts.c.worker != but)
        with self._working("read") as tx:
            return _spent_of(tx.execute(sums).one())

    # Dispatching

    def open_trials(self, *, dispatched: bool) -> list[tuple[str, Name, int]]:
        """Return the trials that have not ended: the plan, the trial, and how often it was put in a queue.

        Args:
            dispatched: Whether those that are in a queue, or run, or else those that wait to be put in one.
        """
        rows = sa.select(t.trials.c.plan, *_NAME, t.trials.c.dispatch)
        with self._working("read") as tx:
            found = tx.execute(rows.where(_OPEN, t.trials.c.dispatched == dispatched)).all()
        return [(row.plan, (row.input, row.agent, row.repeat), row.dispatch) for row in found]

    def dispatched(self, trials: Iterable[tuple[str, Name, int]]) -> None:
        """Note that these are in a queue."""
        with self._working("written") as tx:
            for plan, name, dispatch in trials:
                tx.execute(_update(plan, name, t.trials.c.dispatch == dispatch, dispatched=True))

    def dispatch_again(self, plan: str, name: Name, dispatch: int) -> None:
        """Note that a trial is in no queue any more, though it has not ended."""
        with self._working("written") as tx:
            tx.execute(_update(plan, name, _OPEN, t.trials.c.dispatch == dispatch, **_DISPATCH_AGAIN))

    # Attempts

    def begin(self, plan: str, name: Name, dispatch: int, worker: str) -> Attempt | None:
        """Begin an attempt; ``None`` where the trial has ended, or was put in a queue again since.

        Raises:
            LeaseLost: Others have taken over what this worker ran.
            StoreError: The store cannot be used.
        """
        with self._working("written") as tx:
            alive = sa.select(sa.exists().where(t.workers.c.id == worker))
            if not tx.execute(
                alive
            ).scalar():  # pragma: no cover - tested; which stopped one gets here is chance
                raise LeaseLost
            queued = (_OPEN, t.trials.c.dispatch == dispatch)
            begun = _update(plan, name, *queued, attempt=t.trials.c.attempt + 1, status="running", phase="")
            more = tx.execute(begun.returning(t.trials.c.attempt)).one_or_none()
            if more is None:
                return None
            if more.attempt > MAX_ATTEMPTS:
                why = f"it was begun {MAX_ATTEMPTS} times, and its worker died each time; see what it does"
                tx.execute(_update(plan, name, *queued, status="error", error=why, attempt=MAX_ATTEMPTS))
                return None
            attempt = Attempt(plan, name, more.attempt, worker)
            tx.execute(t.attempts.insert().values(number=attempt.number, worker=worker, **_key(plan, name)))
        return attempt

    def put(self, outcomes: Iterable[tuple[Attempt, Trial]]) -> None:
        """Write what attempts have come to, those that are the newest and still wanted."""
        with self._working("written") as tx:
            for attempt, trial in outcomes:
                plan, name = attempt.plan, attempt.name
                if tx.execute(_update(plan, name, *_newest(attempt), **_columns(trial))).rowcount:
                    own = (*_is(t.attempts, plan, name), t.attempts.c.number == attempt.number)
                    tx.execute(t.attempts.update().where(*own).values(**asdict(trial.spent)))

    def unwanted(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Return those attempts whose trial was cancelled, or that others have taken over."""
        with self._working("read") as tx:
            return [
                attempt
                for attempt in attempts
                if not tx.execute(sa.select(sa.exists().where(*_newest(attempt)))).scalar()
            ]

    # Workers

    def enter(self, worker: str, *, agents: Collection[str], host: str, lease: float) -> None:
        """Add a worker."""
        new = t.workers.insert().values(id=worker, lease=lease, host=host, beat=self._now)
        with self._working("written") as tx:
            tx.execute(new.values(agents=json.dumps(sorted(agents))))

    def beat(self, tx: sa.Connection, worker: str) -> bool:
        """Say that a worker lives; return whether it still has its lease."""
        alive = t.workers.update().where(t.workers.c.id == worker).values(beat=self._now)
        return bool(tx.execute(alive).rowcount)

    def leave(self, worker: str) -> None:
        """Remove a worker: it has left, or is dead."""
        with self._working("written") as tx:
            tx.execute(t.workers.delete().where(t.workers.c.id == worker))

    def workers(self) -> list[WorkerRow]:
        """Return the workers."""
        late = (t.workers.c.beat + t.workers.c.lease < self._now).label("late")
        with self._working("read") as tx:
            rows = tx.execute(sa.select(t.workers, late)).all()
        return [
            WorkerRow(id=row.id, agents=tuple(json.loads(row.agents)), late=bool(row.late)) for row in rows
        ]

    @property
    def _now(self) -> sa.ColumnElement[float]:
        """The time of the database: the clocks of machines differ."""
        if self.embedded:
            return sa.literal(time.time())
        return sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Float)

    # The tables

    def _prepare(self, tx: sa.Connection) -> None:
        """Make the tables, or check that they are of this version."""
        if not self.embedded:  # of several that find it empty, one makes the tables
            tx.execute(sa.select(sa.func.pg_advisory_xact_lock(0x74776B74)))
        elif not sa.inspect(tx).has_table(t.versions.name):
            tx.exec_driver_sql("BEGIN IMMEDIATE")
        if not sa.inspect(tx).has_table(t.versions.name):
            if self.embedded and sa.inspect(tx).get_table_names():
                raise self.error("it is another program's database; name another file")
            t.metadata.create_all(tx)
            tx.execute(t.versions.insert().values(version=VERSION))
            return
        found = tx.execute(sa.select(t.versions.c.version)).scalar_one()
        if found != VERSION:
            raise self.error(
                f"its tables have version {found}, and this thinkwell knows {VERSION}; use the version of "
                "thinkwell that made it, or another store"
            )

    @contextmanager
    def _working(self, what: str) -> Generator[sa.Connection]:
        """Open a transaction, and translate its errors."""
        with self.translated(what), self.engine.begin() as tx:
            yield tx

    @contextmanager
    def translated(self, what: str) -> Generator[None]:
        """Translate the errors of the database.

        Args:
            what: What should have been done with the store, such as "read".

        Raises:
            StoreError: It could not be done.
        """
        try:
            yield
        except SQLAlchemyError as exc:
            raise self.error(_reason(exc, what)) from exc


class LeaseLost(Exception):  # noqa: N818 - the name says what happened
    """A worker's lease has run out, and others have taken over what it ran."""


_NAME: Final = (t.trials.c.input, t.trials.c.agent, t.trials.c.repeat)
_SPENT: Final = [sa.func.sum(t.attempts.c[name]).label(name) for name in Spent.__struct_fields__]
_OPEN: Final = t.trials.c.status.in_(("waiting", "running"))
_DISPATCH_AGAIN: Final[dict[str, Any]] = {"dispatched": False, "dispatch": t.trials.c.dispatch + 1}


def _url(address: str) -> sa.URL:
    for scheme in ("postgresql://", "postgres://"):
        if address.startswith(scheme):
            return sa.make_url(address).set(drivername="postgresql+psycopg")
    if address.startswith("postgresql+psycopg://"):
        return sa.make_url(address)
    if "://" in address:
        scheme = address.partition("://")[0]
        raise StoreError(
            f"{scheme}://…", "a store is a path of an SQLite file, or postgresql://user@host/database"
        )
    path = os.path.abspath(os.path.expanduser(address))  # noqa: PTH100, PTH111 - nothing is looked up
    return sa.URL.create("sqlite", database=path)


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
    engine = sa.create_engine(url, connect_args={"check_same_thread": False}, pool_size=20)

    def connected(connection: Any, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # what a power failure takes runs again
        # DBOS asks for fractions of a second, which SQLite has only since 3.42.
        connection.create_function("unixepoch", -1, _unixepoch)

    event.listen(engine, "connect", connected)
    return engine


def _unixepoch(*_: object) -> float:
    return time.time()


def _reason(exc: SQLAlchemyError, what: str) -> str:
    said = str(exc.orig if isinstance(exc, DBAPIError) else exc).strip().splitlines()
    reason = said[0] if said else type(exc).__name__
    if "disk is full" in reason or "No space left" in reason:
        return (
            f"it could not be {what}, as the disk is full; make room, and start again: what has ended is kept"
        )
    if isinstance(exc, DBAPIError) and "not a database" in reason:
        return "it is no SQLite file; name another file"
    if isinstance(exc, DBAPIError) and "unable to open database file" in reason:
        return "it is no file that can be written, or its folder does not exist; name another file"
    return f"it could not be {what} ({reason}); check that it runs, and start again: what has ended is kept"


def _key(plan: str, name: Name) -> dict[str, Any]:
    return dict(zip(t.KEY, (plan, *name), strict=True))


def _is(table: sa.Table, plan: str, name: Name) -> list[sa.ColumnElement[bool]]:
    return [table.c[column] == value for column, value in _key(plan, name).items()]


def _newest(attempt: Attempt) -> tuple[sa.ColumnElement[bool], ...]:
    """Select a trial if this attempt is its newest, still wanted, and of a worker with a lease."""
    holds = sa.exists().where(t.workers.c.id == attempt.worker)
    running = t.trials.c.status == "running"
    return (*_is(t.trials, attempt.plan, attempt.name), t.trials.c.attempt == attempt.number, running, holds)


def _update(plan: str, name: Name, *where: sa.ColumnElement[bool], **values: Any) -> sa.Update:
    """Change a trial, if the rest applies to it, too."""
    return t.trials.update().where(*_is(t.trials, plan, name), *where).values(**values)


def _spent_of(row: Any) -> Spent:
    cost = None if row.cost is None else float(row.cost)
    return Spent(tool_calls=int(row.tool_calls or 0), tokens=int(row.tokens or 0), cost=cost)


def _trial_of(row: Any) -> Trial:
    whole = row._mapping
    found = {name: whole[name] for name in Trial.__struct_fields__ if whole.get(name) is not None}
    found |= {name: json.loads(found[name]) for name in ("result", "changes") if name in found}
    return msgspec.convert(found | {"attempts": row.attempt, "spent": asdict(_spent_of(row))}, Trial)


def _columns(trial: Trial) -> dict[str, Any]:
    columns = {column.name: getattr(trial, column.name) for column in t.OUTCOME}
    columns |= {name: columns[name] and _text(columns[name]) for name in ("phase", "detail", "error")}
    return columns | {"result": _json(trial.result), "changes": _json(trial.changes or None)}


def _json(value: object) -> str | None:
    """Return a value as JSON in ASCII: a patch of a file that is no UTF-8 has lone surrogates."""
    return None if value is None else json.dumps(msgspec.to_builtins(value))


def _text(text: str) -> str:
    """Return a text as PostgreSQL takes it: without NUL and lone surrogates."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
