"""``cd tests && python -m pictures``: make all pictures of the documentation anew."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from progress.make_recordings import record

from .drawn import DRAWN, FOLDER, story
from .stories import STORIES
from .taken import ROOT, camera, stale, write_known
from .typed import chat


def main() -> None:
    """Make the recordings, what is drawn of them, and the bitmaps that show something else by now."""
    for name, scene in STORIES.items():
        story(name).write_text(record(scene), "utf-8")
    for name, draw in {**DRAWN, "chat.svg": chat}.items():
        (FOLDER / name).write_text(draw(), "utf-8")
    if names := list(stale()):
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
            camera(Path(scratch)) as take,
        ):
            for name in names:
                if name == "site.png":  # the last one: the site shows the others
                    subprocess.run(["make", "--no-print-directory", "docs"], cwd=ROOT, check=True)
                take(name)
        write_known()


if __name__ == "__main__":
    main()
