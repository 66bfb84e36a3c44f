"""The tables of the store."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from thinkwell.trials._trial import Trial

__all__ = ("KEY", "OUTCOME", "SUMMARY", "attempts", "metadata", "plans", "trials", "versions", "workers")

metadata: Final = sa.MetaData()

versions: Final = sa.Table(
    "thinkwell_store", metadata, sa.Column("version", sa.Integer, primary_key=True, autoincrement=False)
)

plans: Final = sa.Table(
    "thinkwell_plans",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

trials: Final = sa.Table(
    "thinkwell_trials",
    metadata,
    sa.Column("plan", sa.Text, primary_key=True),
    sa.Column("input", sa.Text, primary_key=True),
    sa.Column("agent", sa.Text, primary_key=True),
    sa.Column("repeat", sa.Integer, primary_key=True),
    sa.Column("status", sa.Text, nullable=False, index=True, default="waiting"),
    sa.Column("attempt", sa.Integer, nullable=False, default=0),
    sa.Column("dispatch", sa.Integer, nullable=False, default=0),
    sa.Column("dispatched", sa.Boolean, nullable=False, default=False),
    sa.Column("phase", sa.Text, nullable=False, default=""),
    sa.Column("score", sa.Float),
    sa.Column("detail", sa.Text, nullable=False, default=""),
    sa.Column("seconds", sa.Float, nullable=False, default=0.0),
    sa.Column("error", sa.Text),
    sa.Column("result", sa.Text),
    sa.Column("changes", sa.Text),
    sa.Column("recording", sa.Text),
)
KEY: Final = tuple(trials.primary_key.columns.keys())
SUMMARY: Final = [column for column in trials.c if column.name not in ("result", "changes")]
OUTCOME: Final = [
    column for column in trials.c if column.name in Trial.__struct_fields__ and not column.primary_key
]

attempts: Final = sa.Table(
    "thinkwell_attempts",
    metadata,
    sa.Column("plan", sa.Text, primary_key=True),
    sa.Column("input", sa.Text, primary_key=True),
    sa.Column("agent", sa.Text, primary_key=True),
    sa.Column("repeat", sa.Integer, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("tool_calls", sa.Integer, nullable=False, default=0),
    sa.Column("tokens", sa.BigInteger, nullable=False, default=0),
    sa.Column("cost", sa.Float),
)

workers: Final = sa.Table(
    "thinkwell_workers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("beat", sa.Float, nullable=False),
    sa.Column("lease", sa.Float, nullable=False),
    sa.Column("agents", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
)
