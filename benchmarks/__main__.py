"""`python -m benchmarks`: measure and print the tables; the exit code is 1 if a sample failed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks._plan import PEERS, plan
from benchmarks._report import as_json, as_markdown
from benchmarks._runner import measure


def arguments() -> argparse.Namespace:
    keys = [measurement.key for measurement in plan(quick=False)]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="Buffers under load: python -m benchmarks.load",
    )
    parser.add_argument("--rounds", type=int, help="samples per measurement and client (default 5; quick: 1)")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: shows that it runs, measures nothing"
    )
    parser.add_argument(
        "--only", action="append", choices=keys, metavar="NAME", help=f"one of {', '.join(keys)}"
    )
    parser.add_argument(
        "--peer",
        action="append",
        choices=[peer.key for peer in PEERS],
        metavar="NAME",
        help="measure these clients only",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write every sample, median and bar to FILE"
    )
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    rounds = asked.rounds or (1 if asked.quick else 5)
    measurements = tuple(m for m in plan(quick=asked.quick) if not asked.only or m.key in asked.only)
    peers = [peer for peer in PEERS if not asked.peer or peer.key in asked.peer]
    results = measure(measurements, peers, rounds, lambda line: print(line, file=sys.stderr, flush=True))
    print(as_markdown(results, measurements))
    if asked.json:
        report = as_json(results, measurements, rounds=rounds)
        asked.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
