"""Makes the recordings that the displays are tested with: ``python tests/progress/make_recordings.py``.

Time is virtual, so they are the same each time. What they tell is in ``scenes.py``; the golden files are
written anew by ``THINKWELL_WRITE_GOLDEN=1 pytest tests/progress``.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from progress.scenes import HOME, SCENES

from thinkwell.testing import virtual_backend

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FOLDER: Final = Path(__file__).parent / "recordings"

TIME: Final = "2026-01-01T00:00:00Z"


MESSAGES: Final = ("sent", "received", "tool_call", "tool_result")
"""What is not replayed, and has random names in it."""


def record(scene: Callable[[Path, Path], Awaitable[None]]) -> str:
    """Return the recording of a scene, without what is different each time and on each machine."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        file = folder / "recording.ndjson"
        (folder / "shop").mkdir()
        backend, options = virtual_backend("asyncio")
        anyio.run(scene, file, folder / "shop", backend=backend, backend_options=options)
        text = file.read_text("utf-8").replace(json.dumps(str(folder / "shop"))[1:-1], HOME)
    header, *lines = text.strip("\n").split("\n")
    fields = {**json.loads(header), "time": TIME, "thinkwell": "0"}
    kept = [line for line in lines if json.loads(line)["type"] not in MESSAGES]
    numbered = "\n".join([json.dumps(fields), *kept, ""])
    return re.sub(r'"run":"run-\d+"', '"run":"run-1"', numbered)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, scene in SCENES.items():
        (FOLDER / f"{name}.ndjson").write_text(record(scene), "utf-8")
