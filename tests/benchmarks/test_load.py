"""The benchmark of buffers under load runs to its end. Nothing here looks at a time or at memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mix", ["working", "interleaved"])
def test_every_policy_is_measured_with_a_slow_reader(mix: str, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    asked = ["--rounds", "1", "--count", "600", "--max-events", "50", "--mix", mix, "--reader", "slow"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", "--alone", "--json", str(target), *asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = json.loads(target.read_text(encoding="utf-8"))["lines"]
    kept = {line["load"]["policy"]: line["samples"][0]["kept"] for line in lines}
    assert kept["none"] == 600
    assert kept["drop_oldest"] <= 60
    assert kept["coalesce"] <= 60
