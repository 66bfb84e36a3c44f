"""A browser on a measured server: how late an agent's update reaches a page.

    python -m benchmarks.clients.browser_client JSON

For *browser* an empty page opens an `EventSource`. For *page* the text has to be in the document, and then in
a frame: of thinkwell's own page, which draws once in each frame; beside that, the empty page on a loop
appends each text as it comes, which is the minimum that shows it. Each update has the time at which the agent
wrote it; the browser compares that with its own clock, which has steps of 0.1 ms.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING

from benchmarks.clients import _common as common
from benchmarks.clients._chromium import find_chromium, started_chromium
from benchmarks.clients.serving_client import Measuring, Serving, measure
from benchmarks.serving_agent import READY, STAMP, TOKEN

if TYPE_CHECKING:
    from benchmarks.clients._chromium import Tab
    from benchmarks.clients._common import Figures

SCRIPT = Path(__file__).with_suffix(".js")

LOG_IN = """
fetch("/api/session", {
  method: "POST",
  headers: {"Content-Type": "application/json"},
  body: JSON.stringify({secret: %s}),
}).then(answer => { if (!answer.ok) throw new Error(`the server does not let us in: ${answer.status}`); })
"""

STEPS = """
(() => {
  const steps = [];
  for (let last = performance.now(); steps.length < 50; ) {
    const now = performance.now();
    if (now > last) steps.push(now - last);
    last = now;
  }
  return Math.min(...steps);
})()
"""

CLOCK = "performance.timeOrigin + performance.now()"

SLACK = 0.25
"""Milliseconds by which the browser's clock may seem wrong: its rounding, twice."""


def ahead() -> int:
    """Nanoseconds by which the clock of the day is ahead of the agents' clock."""
    return time_ns() - monotonic_ns()


class BrowserMeasuring(Measuring):
    """One sample."""

    async def main(self) -> Figures:
        """Take it."""
        await self.wait_for_server()
        program = find_chromium()
        assert program is not None
        async with started_chromium(program) as browser:
            tab = await browser.open()
            await self.watch_in(tab, await self.start())
            resolution = await tab.value(STEPS)
            await check_clock(tab)
            shift = ahead()
            self.go.touch()
            came = await tab.value("watched.over")
            shift = (shift + ahead()) // 2
        if len(came) != self.serving.count:
            raise SystemExit(f"of {self.serving.count} times {len(came)} came")
        figures: Figures = {"deliveries": len(came), "resolution_seconds": resolution / 1e3}
        for name in sorted(came[0].keys() - {"written"}):
            late = sorted(each[name] * 1e6 - int(each["written"]) - shift for each in came)
            figures[f"{name}_p50_seconds"] = late[len(late) // 2] / 1e9
            figures[f"{name}_p99_seconds"] = late[len(late) * 99 // 100] / 1e9
        return figures

    async def watch_in(self, tab: Tab, run_id: str) -> None:
        """Let a page watch a run. It has the first text when this returns."""
        serving, home = self.serving, f"http://127.0.0.1:{self.port}"
        is_page = serving.action == "page"
        is_own = is_page and not serving.is_loop
        if is_own:
            await tab.go(f"{home}/#secret={TOKEN}&run={run_id}")
        else:
            await tab.go(f"{home}/blank")
            if not serving.is_loop:
                await tab.value(LOG_IN % json.dumps(TOKEN))
        given = {
            "url": "" if is_own else f"/api/runs/{run_id}/events",
            "isPage": is_page,
            "place": "#timeline",
            "count": serving.count,
            "ready": READY,
            "stamp": STAMP,
        }
        script = SCRIPT.read_text("utf-8").strip().removesuffix(";")
        await tab.value(f"({script})({json.dumps(given)})")
        await tab.value("watched.begun")


async def check_clock(tab: Tab) -> None:
    """Check that the browser's clock is ours."""
    for _ in range(10):
        before = time_ns() / 1e6
        said = await tab.value(CLOCK)
        after = time_ns() / 1e6
        if not before - SLACK <= said <= after + SLACK:
            raise SystemExit(f"it is {before:f} to {after:f} here, and {said:f} in the browser")


if __name__ == "__main__":
    common.report(measure(Serving(**json.loads(sys.argv[1])), BrowserMeasuring))
