"""Fuzzing for as long as one likes: ``cd tests && python -m fuzz [MINUTES] [TARGET…]``.

Each target gets rounds of examples with new seeds in turn until the time is up. What fails is printed with
its input, and makes the exit status 1; its target is not tried any further.
"""
# ruff: noqa: T201

from __future__ import annotations

import faulthandler
import os
import random
import sys
import time
import traceback
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fuzz.target import Target

ROUND: Final = 150
"""Examples of a round. Hypothesis learns within a round, so more are better; but each target has its turn."""

STUCK: Final = 300.0
"""Seconds after which a round hangs where no watch of ours can break in: the program says where, and ends."""


def main(arguments: list[str]) -> int:
    """Fuzz, and return the exit status."""
    minutes = float(arguments[0]) if arguments else float(os.environ.get("THINKWELL_FUZZ") or 5)
    os.environ["THINKWELL_FUZZ"] = str(minutes)  # the targets look at it when they are imported
    from fuzz.test_targets import TARGETS

    targets = [target for target in TARGETS if not arguments[1:] or target.name in arguments[1:]]
    tried = dict.fromkeys((target.name for target in targets), 0)
    spent = dict.fromkeys(tried, 0.0)
    end = time.monotonic() + 60 * minutes
    failed: list[str] = []
    while targets and time.monotonic() < end:
        # The one that has had the least time is next, so that costly ones do not starve the others.
        target = min(targets, key=lambda target: spent[target.name])
        began = time.monotonic()
        number = random.SystemRandom().getrandbits(64)
        faulthandler.dump_traceback_later(STUCK, exit=True)
        try:
            tried[target.name] += target.run(ROUND, number)
        except Exception as exc:
            failed.append(target.name)
            targets.remove(target)
            _report(target, number, exc)
        finally:
            faulthandler.cancel_dump_traceback_later()
        spent[target.name] += time.monotonic() - began
    for name, count in tried.items():
        print(f"{name:20} {count:8,} examples in {spent[name]:6.1f} s{'  FAILED' if name in failed else ''}")
    print(f"{sum(tried.values()):,} examples, {len(failed)} of {len(tried)} targets failed")
    return 1 if failed else 0


def _report(target: Target, number: int, failure: Exception) -> None:
    print(f"== {target.name}, seed {number}", flush=True)
    traceback.print_exception(failure, limit=-6, chain=False, file=sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
