"""``python -m thinkwell``: the command ``thinkwell``."""

from __future__ import annotations

import sys

from thinkwell._command import main

if __name__ == "__main__":  # pragma: no branch - it is a program
    sys.exit(main())
