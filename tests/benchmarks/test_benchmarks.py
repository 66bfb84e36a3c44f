"""The benchmarks run to their end and account for every update. Nothing here looks at a time."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]

UPDATES = {"tokens": 200, "mixed": 200, "diffs": 3, "sessions": 100, "unread": 500, "startup": 10}
"""How many updates each quick measurement sends."""

CLIENTS = {
    "thinkwell": "thinkwell",
    "thinkwell_trio": "thinkwell",
    "official": "acp",
    "acp_client": "acp_client",
}
"""Measured client to the package it needs."""


def run(target: Path, *arguments: str) -> tuple[str, Mapping[str, Any]]:
    """Run the quick benchmarks and return the printed report and the written one."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--json", str(target), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return done.stdout, report


@pytest.mark.long
@pytest.mark.parametrize("client", CLIENTS)
def test_every_measurement_of_a_client_sees_all_updates_and_all_text(client: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(CLIENTS[client]) is None:
        pytest.skip(f"{client} is not installed")

    _, report = run(tmp_path / "report.json", "--peer", client)

    assert report["failures"] == {}
    medians = {key: peers[client] for key, peers in report["medians"].items() if client in peers}
    seen = {key: figures["updates"] for key, figures in medians.items() if key in UPDATES}
    assert seen == {key: UPDATES[key] for key in seen}
    assert {"tokens", "mixed", "diffs", "unread", "startup"} <= seen.keys()
    assert medians["tokens"]["characters"] == 813
    assert medians["mixed"]["characters"] == 580
    assert medians["diffs"]["characters"] == 998_640


def test_report_compares_clients_with_the_agent_alone_and_names_the_bars(tmp_path: Path) -> None:
    printed, report = run(tmp_path / "report.json", "--only", "tokens", "--peer", "raw", "--rounds", "2")

    assert [sample["updates"] for sample in report["samples"]["tokens"]["raw"]] == [200, 200]
    assert "| Tokens: updates | 1/s |" in printed
    assert {bar["met"] for bar in report["bars"]} == {None}
    assert "not measured" in printed
