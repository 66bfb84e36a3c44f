"""Nothing that an agent or a reader of events sees has changed, in any of the stored scenes.

Where a change is meant, ``cd tests && python -m scenes`` stores them anew, and the difference is for review.
"""

from __future__ import annotations

import pytest

from .player import STORED, Scene, written
from .plays import SCENES


@pytest.mark.virtual_time
@pytest.mark.parametrize(("name", "scene"), SCENES.items(), ids=SCENES)
async def test_a_scene_is_as_it_was_stored(name: str, scene: Scene) -> None:
    assert await written(scene) == (STORED / f"{name}.txt").read_text("utf-8")


def test_each_stored_scene_is_played() -> None:
    assert {path.stem for path in STORED.iterdir()} == set(SCENES)
