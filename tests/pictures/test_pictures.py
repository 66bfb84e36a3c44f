"""The pictures of the documentation show what is shown today."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from progress.make_recordings import record

from pictures.drawn import DRAWN, FOLDER, story
from pictures.stories import STORIES

if TYPE_CHECKING:
    from collections.abc import Callable

OTHERWISE = "is not what it is made from any more: run `make pictures`, and look at it"


@pytest.mark.parametrize("name", STORIES)
def test_a_recording_is_what_happens(name: str) -> None:
    assert record(STORIES[name]) == story(name).read_bytes().decode(), f"{name}.ndjson {OTHERWISE}"


@pytest.mark.parametrize(("name", "draw"), DRAWN.items())
def test_a_terminal_is_what_its_run_shows(name: str, draw: Callable[[], str]) -> None:
    svg = (FOLDER / name).read_bytes().decode()
    assert svg == draw(), f"{name} {OTHERWISE}"
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"\w+://\S+|url\(|href|@import", svg) == ['http://www.w3.org/2000/svg"']


def test_all_of_them_together_are_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 2_000_000
