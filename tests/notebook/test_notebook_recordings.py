"""Recorded runs as pages, beside what every other display makes of them.

``THINKWELL_WRITE_GOLDEN=1 pytest tests/notebook`` writes the files anew; look at them in a browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from notebook.reading import Page
from progress.golden import check, every_recording, final, steps

from thinkwell._display.html import FRAME_LIMIT, Picture, page
from thinkwell._display.html_style import STYLE

if TYPE_CHECKING:
    from thinkwell.progress._renderer import Shown


def drawn(shown: Shown) -> str:
    picture = Picture(
        view=shown.view, now=shown.now, label=shown.label, result=shown.result, recording=shown.recording
    )
    return page(picture, limit=FRAME_LIMIT)


@every_recording
def test_the_page_of_a_recorded_run(name: str) -> None:
    html = drawn(final(name))
    Page(html)
    lines = html.replace(STYLE, "").replace("<div", "\n<div").replace("<details", "\n<details")
    check(name, "page", None, lines.strip() + "\n", suffix="html")


@every_recording
def test_every_moment_of_a_recorded_run_is_a_page(name: str) -> None:
    for step in steps(name):
        html = drawn(step)
        Page(html)
        assert len(html) <= FRAME_LIMIT
