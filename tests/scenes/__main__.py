"""``cd tests && python -m scenes``: store what the scenes show now."""

from __future__ import annotations

import anyio

from thinkwell.testing import virtual_backend

from .player import STORED, written
from .plays import SCENES

if __name__ == "__main__":
    backend, options = virtual_backend("asyncio")
    for name, scene in SCENES.items():
        shown = anyio.run(written, scene, backend=backend, backend_options=options)
        (STORED / f"{name}.txt").write_text(shown, "utf-8")
