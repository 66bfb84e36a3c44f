"""The benchmark of servers runs to its end, and every client gets every event. No test looks at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_servers_are_measured_with_the_same_clients(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    kinds = ["--kind", "memory", "--kind", "sqlite", "--kind", "each", "--kind", "joined"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.serving", "--quick", "--json", str(target), *kinds],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {
        line["scene"]["action"]: line["samples"] for line in json.loads(target.read_text("utf-8"))["lines"]
    }
    assert set(lines) == {"pour", "paced", "idle"}
    for kind in ("memory", "sqlite", "each", "joined"):
        assert lines["pour"][kind][0]["deliveries"] == 3 * 50
        assert lines["paced"][kind][0]["late_p50_seconds"] > 0
        assert "per_watcher_bytes" in lines["idle"][kind][0]
    assert "| 3 watchers | thinkwell, SQLite |" in done.stdout
