"""Programs of the blocking API are run by a Python that is warm."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str) -> None:
    """Scripts of agents are kept in a folder of the test's, and run by a Python that is warm."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
