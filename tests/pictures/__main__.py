"""``cd tests && python -m pictures``: make all pictures of the documentation anew."""

from __future__ import annotations

from progress.make_recordings import record

from .drawn import DRAWN, FOLDER, story
from .stories import STORIES

if __name__ == "__main__":
    for name, scene in STORIES.items():
        story(name).write_text(record(scene), "utf-8")
    for name, draw in DRAWN.items():
        (FOLDER / name).write_text(draw(), "utf-8")
