"""``python -m thinkwell.testing._replaying RECORDING SPEED``: be the agent of a recording."""

from __future__ import annotations

import sys

import anyio

from thinkwell.testing._recorded_agent import serve_recording

if __name__ == "__main__":
    path, speed = sys.argv[1:]
    code = anyio.run(serve_recording, path, float(speed))
    if code is not None:
        sys.exit(code if code >= 0 else 128 - code)
