"""``python -m thinkwell.agents``: see `thinkwell.agents.program`."""

from __future__ import annotations

import sys

from thinkwell.agents.program import main

if __name__ == "__main__":  # pragma: no branch - it is a program
    sys.exit(main())
