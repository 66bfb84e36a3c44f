"""Stores for the logs of runs: in memory, in SQLite, or in Redis Streams.

A server (`thinkwell.web`) appends every event of a run as a numbered entry; watchers read the entries, each
at its own pace and from its own position.
"""

from __future__ import annotations

from thinkwell.journal._errors import JournalConflict, JournalError, JournalUnwritable
from thinkwell.journal._memory import MemoryJournal
from thinkwell.journal._retention import Retention
from thinkwell.journal._sqlite import SqliteJournal
from thinkwell.journal._types import (
    MAX_PAGE,
    CallHandler,
    Entry,
    Journal,
    RunEnd,
    RunRecord,
    RunStatus,
)

__all__ = (
    "MAX_PAGE",
    "CallHandler",
    "Entry",
    "Journal",
    "JournalConflict",
    "JournalError",
    "JournalUnwritable",
    "MemoryJournal",
    "Retention",
    "RunEnd",
    "RunRecord",
    "RunStatus",
    "SqliteJournal",
)
