"""The page of a report of trials, in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from page.test_page_looks import NARROW, faults
from trials.reported import many_trials

from thinkwell.testing import ScriptedAgent, script
from thinkwell.trials import Report, Trial

if TYPE_CHECKING:
    from pathlib import Path

    from page.browsing import Browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1200, "height": 800}, NARROW], ids=["wide", "narrow"])
def test_a_report_reads_well_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, scheme: str, size: dict[str, int]
) -> None:
    path = tmp_path / "report.html"
    anyio.run(Report(many_trials()).save, path)
    with browser.tab(colorScheme=scheme, viewport=size) as tab:
        tab.go(path.as_uri())
        tab.see(".matrix")
        assert tab.requests == [f"GET {path.as_uri()}"]
        assert faults(tab) == []
        tab.click(".marks a.failed")
        tab.see("details[open] .tw-changed")
        assert tab.count("details[open]") == 1
        assert faults(tab) == []
        assert tab.value("document.documentElement.scrollWidth") == size["width"]
        looks = "each => getComputedStyle(each).backgroundColor"
        styles = f"[...document.querySelectorAll('.trial .tw-added')].map({looks})"
        assert set(tab.value(styles)) == {"rgba(46, 160, 67, 0.17)"}  # the style may be used


def test_a_replay_is_one_click_away(browser: Browser, tmp_path: Path) -> None:
    async def save() -> None:
        async with ScriptedAgent(script.says("Fixed it.")).open(record=tmp_path / "run.ndjson") as agent:
            await agent.think().text("Fix it.").run()
        trial = Trial(
            input="a b", agent="c", repeat=1, status="passed", recording=str(tmp_path / "run.ndjson")
        )
        await Report([trial]).save(tmp_path / "my report.html")

    anyio.run(save)
    with browser.tab() as tab:
        tab.go((tmp_path / "my report.html").as_uri())
        tab.click(".marks a")
        tab.click("details a")
        tab.see(".final", attached=True)
        assert tab.texts(".row[data-kind=m]") == ["Fixed it."]
