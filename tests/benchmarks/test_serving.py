"""The benchmark of servers runs to its end, and every client gets every event. No test looks at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from debian_packages import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

KINDS = ("memory", "sqlite", "redis", "each", "joined")


def measure(
    target: Path, *asked: str, env: Mapping[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], dict[str, dict[str, Any]]]:
    """Run the quick benchmark, and return what it printed and the samples that it wrote."""
    with tempfile.TemporaryDirectory() as scratch:  # servers are killed, and leave their sockets
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.serving", "--quick", "--json", str(target), *asked],
            cwd=ROOT,
            env={**(os.environ if env is None else env), "TMPDIR": scratch},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = json.loads(target.read_text("utf-8"))["lines"]
    return done, {line["scene"]["action"]: line["samples"] for line in lines}


def test_all_servers_are_measured_with_the_same_clients(tmp_path: Path) -> None:
    redis = find_program("redis-server")
    env = {**redis.env, "PATH": f"{Path(redis.path).parent}{os.pathsep}{redis.env['PATH']}"}
    asked = [part for action in ("pour", "paced", "idle") for part in ("--only", action)]
    done, lines = measure(tmp_path / "report.json", *asked, env=env)
    assert set(lines) == {"pour", "paced", "idle"}
    for kind in KINDS:
        assert lines["pour"][kind][0]["deliveries"] == 3 * 50
        assert lines["paced"][kind][0]["late_p50_seconds"] > 0
        assert "per_watcher_bytes" in lines["idle"][kind][0]
    assert "| 3 watchers | thinkwell, SQLite |" in done.stdout


def test_items_are_measured_beside_events(tmp_path: Path) -> None:
    done, lines = measure(tmp_path / "report.json", "--only", "items")
    events, items = lines["items"]["memory"][0], lines["items"]["items"][0]
    assert set(lines["items"]) == {"memory", "items"}
    for sample in (events, items):
        assert sample["watcher_bytes"] > 1_000
        assert sample["resident_bytes"] > 0
    assert "| 3 watchers, 100 updates a second, mixed | thinkwell, in memory, items |" in done.stdout


def test_a_browser_gets_every_update_and_shows_it(tmp_path: Path) -> None:
    chromium = find_program("chromium")
    env = {**chromium.env, "THINKWELL_BENCH_CHROMIUM": chromium.path}
    kinds = ["--kind", "memory", "--kind", "joined"]
    done, lines = measure(tmp_path / "report.json", *kinds, "--only", "browser", "--only", "page", env=env)
    for kind in ("memory", "joined"):
        watched, shown = lines["browser"][kind][0], lines["page"][kind][0]
        assert watched["deliveries"] == shown["deliveries"] == 5
        assert shown["drawn_p50_seconds"] >= shown["late_p50_seconds"]
    assert "\npage\n" in done.stdout


def test_a_run_that_is_opened_is_measured_up_to_its_last_row(tmp_path: Path) -> None:
    chromium = find_program("chromium")
    env = {**chromium.env, "THINKWELL_BENCH_CHROMIUM": chromium.path}
    _, lines = measure(tmp_path / "report.json", "--only", "open", env=env)
    (sample,) = lines["open"]["sqlite"]
    assert 0 < sample["first_seconds"] <= sample["whole_seconds"]
    assert sample["rows"] > 30


def test_what_there_is_no_program_for_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    env = {**os.environ, "PATH": str(tmp_path)}
    env.pop("THINKWELL_BENCH_CHROMIUM", None)
    env.pop("THINKWELL_BENCH_REDIS", None)
    asked = ["--only", "pour", "--only", "page", "--kind", "redis", "--kind", "joined"]
    done, lines = measure(tmp_path / "report.json", *asked, env=env)
    assert {action: list(samples) for action, samples in lines.items()} == {"pour": ["joined"]}
    assert "left out: redis, as there is no redis-server" in done.stderr
    assert "left out: browser and page and open, as there is no Chromium" in done.stderr
