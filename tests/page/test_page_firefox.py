"""The page in Firefox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from page.browsing import browsing
from page.staging import Gate, keep_run, served_page
from page.test_page_replay import STORY
from page.test_page_saved import SAVED

if TYPE_CHECKING:
    from pathlib import Path

    from scripted import Turn

KINDS = "[...document.querySelectorAll('.row')].map(row => row.dataset.kind).join(' ')"


@pytest.mark.long
def test_runs_are_shown(tmp_path: Path) -> None:
    """One that has ended, the same as a file, and one that grows: without errors, and within the policy."""
    gate = Gate()

    async def talks(turn: Turn) -> None:
        turn.think("Hm.")
        await gate.wait()
        turn.say("Yes.")

    path = tmp_path / "run.html"
    with (
        served_page(talks) as stage,
        browsing(tmp_path, "firefox-esr") as browser,
        browser.tab() as kept,
        browser.tab() as saved,
        browser.tab() as growing,
    ):
        kept.go(keep_run(stage, *STORY))
        kept.until("document.querySelector('.final')")
        assert kept.value(KINDS) == "prompt t m c m final"
        path.write_text(kept.value(SAVED), "utf-8")
        saved.go(path.as_uri())
        saved.until("document.querySelector('.final')")
        assert saved.value(KINDS) == kept.value(KINDS)
        growing.go(stage.start())
        growing.until("document.querySelector('.row[data-kind=t]')")
        assert growing.value(KINDS) == "prompt t"
        gate.open()
        growing.until("document.querySelector('.final')")
        assert growing.value(KINDS) == "prompt t m final"
