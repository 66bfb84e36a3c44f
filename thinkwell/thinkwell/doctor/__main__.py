"""``python -m thinkwell.doctor``: see `thinkwell.doctor.program`."""

from __future__ import annotations

import sys

from thinkwell.doctor.program import main

if __name__ == "__main__":  # pragma: no branch - it is a program
    sys.exit(main())
