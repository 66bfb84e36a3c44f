"""The recordings are what their scenes make, and hold nothing of the machine that they were made on."""

from __future__ import annotations

import pytest
from progress.golden import NAMES, events, every_recording, final, recording, steps
from progress.make_recordings import record
from progress.scenes import SCENES


def test_every_scene_is_recorded() -> None:
    assert tuple(SCENES) == NAMES


@every_recording
def test_a_recording_is_what_its_scene_makes(name: str) -> None:
    assert record(SCENES[name]) == recording(name).read_bytes().decode()


@every_recording
def test_steps_come_to_the_end(name: str) -> None:
    seen = steps(name)
    assert [step.now for step in seen] == sorted(step.now for step in seen)
    assert final(name).view.phase in ("completed", "failed", "cancelled")
    assert events(name)[-1].at == pytest.approx(final(name).now)
    assert len(seen) > 2
    if final(name).view.error is None:
        assert final(name).result
