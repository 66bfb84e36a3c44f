"""Runs trials with the blocking API, and says ``ready`` when one runs. The argument is the store."""

import signal
import sys
from collections.abc import Sequence

from thinkwell import think
from thinkwell.sync import trials
from thinkwell.trials import Trial


def look(now: Sequence[Trial]) -> None:
    """Say so."""
    if now[0].phase:
        print("ready", flush=True)  # noqa: T201


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where the tests run in the background
    trials(think().text("Go: "), inputs=["a"], agents=["agent"], store=sys.argv[1], on_change=look)
