"""The pictures of the documentation show what is shown today."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from progress.make_recordings import record

from pictures.drawn import DRAWN, FOLDER, story
from pictures.stories import STORIES
from pictures.taken import ROOT, SHOTS, stale
from pictures.typed import chat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

IMAGE = re.compile(r"!\[([^]]*)\]\(([^)]+\.(?:png|svg))\)")
OTHERWISE = "is not what it is made from any more: run `make pictures`, and look at it"


@pytest.mark.parametrize("name", STORIES)
def test_a_recording_is_what_happens(name: str) -> None:
    assert record(STORIES[name]) == story(name).read_bytes().decode(), f"{name}.ndjson {OTHERWISE}"


@pytest.mark.parametrize(
    ("name", "draw"), [*DRAWN.items(), pytest.param("chat.svg", chat, marks=pytest.mark.long)]
)
def test_a_terminal_is_what_its_run_shows(name: str, draw: Callable[[], str]) -> None:
    svg = (FOLDER / name).read_bytes().decode()
    assert svg == draw(), f"{name} {OTHERWISE}"
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"\w+://\S+|url\(|href|@import", svg) == ['http://www.w3.org/2000/svg"']


@pytest.mark.parametrize("name", SHOTS)
def test_a_bitmap_is_of_what_is_shown(name: str) -> None:
    assert name not in list(stale()), f"{name} {OTHERWISE}"


def test_each_is_shown_and_told_in_words() -> None:
    shown: set[Path] = set()
    for page in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")):
        for words, address in IMAGE.findall(page.read_text("utf-8")):
            assert len(words) > 20, f"{page.name}: ![{words}]({address})"
            shown.add((page.parent / address).resolve())
    assert {FOLDER / name for name in (*DRAWN, *SHOTS, "chat.svg")} <= shown


def test_all_of_them_together_are_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 2_000_000
