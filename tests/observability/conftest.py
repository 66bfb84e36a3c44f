"""Spans are collected in the tests that ask for them, and none is left open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from observability.spans import Collected, collecting

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture
def spans(caplog: pytest.LogCaptureFixture) -> Generator[Collected]:
    """What OpenTelemetry collects in the test."""
    with collecting() as collected:
        yield collected
        assert collected.saboteur.open == set()
        assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []
