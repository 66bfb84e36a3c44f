from __future__ import annotations

import pytest

from thinkwell.testing import SimulationReport


@pytest.fixture
def report() -> SimulationReport:
    """What was simulated."""
    return SimulationReport()
