"""``python -m tests.mutation``: draw mutants, record which cases run them, and see which are found.

The three steps, each on a checkout of its own that has a virtual environment (``--tree``):

1. ``draw mutants.jsonl`` draws 150 mutants over all areas by a seed.
2. ``record mutants.jsonl records/`` runs the suite once with probes at the mutated places.
3. ``run mutants.jsonl records/ verdicts.jsonl`` runs each mutant against the cases that come by its place:
   the nearest folder first, the cheapest case first. The first failure ends it, and so do 60 s.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .sites import ROOT, Mutant, drawn, loaded, saved

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT: Final = 60.0
"""Seconds that the cases have to find a mutant."""

MOST_CASES: Final = 1500


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    steps = parser.add_subparsers(dest="step", required=True)
    draw = steps.add_parser("draw")
    draw.add_argument("mutants", type=Path)
    draw.add_argument("--count", type=int, default=150)
    draw.add_argument("--seed", type=int, default=20)
    record = steps.add_parser("record")
    record.add_argument("mutants", type=Path)
    record.add_argument("records", type=Path)
    record.add_argument("pytest", nargs="*", help="further arguments of pytest, behind --")
    run = steps.add_parser("run")
    run.add_argument("mutants", type=Path)
    run.add_argument("records", type=Path)
    run.add_argument("verdicts", type=Path)
    run.add_argument("--only", type=int, nargs="*", help="the ids of the mutants to run")
    for step in (record, run):
        step.add_argument("--tree", type=Path, default=ROOT, help="the checkout that is changed for it")
    given = parser.parse_args()
    if given.step == "draw":
        saved(drawn(given.count, given.seed), given.mutants)
    elif given.step == "record":
        _record(loaded(given.mutants), given.records.absolute(), given.tree, given.pytest)
    else:
        _run(loaded(given.mutants), given.records, given.verdicts, given.tree, given.only)


def _record(mutants: list[Mutant], records: Path, tree: Path, further: list[str]) -> None:
    from .cases import PROBE

    records.mkdir(parents=True, exist_ok=True)
    probe = tree / "thinkwell/_mutation_probe.py"
    probe.write_text(PROBE.format(folder=str(records)), encoding="utf-8")
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        if (tree / mutant.file).exists() and mutant.is_in((tree / mutant.file).read_bytes()):
            by_file[mutant.file].append(mutant)
    texts = {file: (tree / file).read_bytes() for file in by_file}
    try:
        for file, text in texts.items():
            probed = text
            for mutant in sorted(by_file[file], key=lambda mutant: -mutant.start):
                probed = mutant.probed_in(probed)
            (tree / file).write_bytes(probed)
        plugin = ("-p", "mutation.cases", *(further or ["-m", "not interop"]))
        subprocess.run(
            [_python(tree), "-m", "pytest", "-q", *plugin],
            cwd=tree,
            env=_environment(tree, records),
            check=False,
        )
    finally:
        for file, text in texts.items():
            (tree / file).write_bytes(text)
        probe.unlink()


def _run(mutants: list[Mutant], records: Path, verdicts: Path, tree: Path, only: list[int] | None) -> None:
    costs = _costs(records)
    hits = _hits(records)
    known: dict[int, dict[str, object]] = {}
    if verdicts.exists():
        known = {verdict["id"]: verdict for verdict in map(json.loads, verdicts.read_text().splitlines())}
    for mutant in mutants:
        if (only is None and mutant.id not in known) or (only is not None and mutant.id in only):
            begun = time.monotonic()
            verdict, by = _judged(mutant, _ordered(mutant, hits[mutant.id], costs), tree, records)
            known[mutant.id] = {
                "id": mutant.id,
                "verdict": verdict,
                "place": f"{mutant.file}:{mutant.line}",
                "cases": len(hits[mutant.id]),
                "seconds": round(time.monotonic() - begun, 1),
                "by": by,
            }
            print(f"{mutant.id:3} {verdict:8} {mutant.file}:{mutant.line} {by}", flush=True)
            lines = "".join(json.dumps(known[number]) + "\n" for number in sorted(known))
            verdicts.write_text(lines, encoding="utf-8")
    print(Counter(str(value["verdict"]) for value in known.values()))


def _judged(mutant: Mutant, cases: list[str], tree: Path, records: Path) -> tuple[str, str]:
    if not cases:
        return "unseen", ""
    path = tree / mutant.file
    text = path.read_bytes() if path.exists() else b""
    if not mutant.is_in(text):
        return "gone", ""
    with tempfile.TemporaryDirectory() as folder:
        arguments = Path(folder) / "cases"
        arguments.write_text("\n".join(cases), encoding="utf-8")
        output = Path(folder) / "output"
        try:
            path.write_bytes(mutant.applied_to(text))
            with output.open("w") as file:
                process = subprocess.Popen(
                    [
                        _python(tree),
                        "-m",
                        "pytest",
                        "-x",
                        "-q",
                        "-rfE",
                        "--no-header",
                        "--tb=no",
                        f"@{arguments}",
                    ],
                    cwd=tree,
                    env=_environment(tree, records),
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
                try:
                    code: int | None = process.wait(LIMIT)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, 9)
                    process.wait()
                    code = None
        finally:
            path.write_bytes(text)
        lines = output.read_text(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    if code is None:
        return "timeout", ""
    if code == 0:
        return "missed", ""
    return "found", failed[0][:200] if failed else f"pytest ended with {code}: {lines[-1:]}"


def _ordered(mutant: Mutant, cases: set[str], costs: dict[str, float]) -> list[str]:
    parts = {part.strip("_").removesuffix(".py") for part in mutant.file.split("/")[2:]}
    folders = Counter(case.split("/")[1] for case in cases if "/" in case)

    def distance(case: str) -> tuple[bool, int, str, float]:
        folder = case.split("/")[1] if "/" in case else ""
        return folder not in parts, -folders[folder], folder, costs.get(case, 1.0)

    chosen: list[str] = []
    spent = 0.0
    # A test's own run of pytest names its cases too; an id that holds an address is another one each time.
    usable = (case for case in cases if case.startswith("tests/") and " at 0x" not in case)
    for case in sorted(usable, key=distance):
        if spent > LIMIT or len(chosen) >= MOST_CASES:
            break
        spent += costs.get(case, 1.0)
        chosen.append(case)
    return chosen


def _costs(records: Path) -> dict[str, float]:
    return {
        _without_group(case["id"]): case["cpu"] + case["children"]  # how long they take says how busy it was
        for path in records.glob("costs-*.jsonl")
        for case in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    }


def _hits(records: Path) -> dict[int, set[str]]:
    hits: dict[int, set[str]] = defaultdict(set)
    for mutant, case in _pairs(records):
        hits[mutant].add(case)
    return hits


def _pairs(records: Path) -> Iterator[tuple[int, str]]:
    for path in records.glob("hits-*"):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            mutant, _, case = line.partition("\t")
            yield int(mutant), _without_group(case)


def _without_group(case: str) -> str:
    """Return the id of a case without the group that xdist puts behind it."""
    return re.sub(r"@[\w ]+$", "", case)


def _python(tree: Path) -> str:
    return str(tree.absolute() / ".venv/bin/python")


def _environment(tree: Path, records: Path) -> dict[str, str]:
    path = os.pathsep.join((str(tree.absolute() / "tests"), os.environ.get("PYTHONPATH", ""))).rstrip(
        os.pathsep
    )
    return {**os.environ, "MUTATION_RECORDS": str(records), "PYTHONPATH": path}


if __name__ == "__main__":
    main()
