"""Nothing of the blocking API is left behind by a test."""

from __future__ import annotations

import gc
import tempfile
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str) -> None:
    """Scripts of agents are kept in a folder of the test's, and run by a Python that is warm."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """No thread is left, neither of the loop nor of tools."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        while thread.is_alive():  # it may be about to let go of what holds it
            gc.collect()
            thread.join(0.1)
