"""The logs of runs in Redis Streams, for several server processes or machines.

For this the extra ``redis`` is needed: ``pip install 'thinkwell[redis]'``.
"""

from __future__ import annotations

from importlib.util import find_spec as _find_spec

if _find_spec("redis") is None:
    raise ImportError(
        "thinkwell.journal.redis needs redis-py, which is not installed; pip install 'thinkwell[redis]'",
        name="redis",
    )

from thinkwell.journal._redis import RedisJournal

__all__ = ("RedisJournal",)
