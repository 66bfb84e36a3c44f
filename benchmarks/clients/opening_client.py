"""A browser that opens a run that has ended: when its end is in a frame, and when all of it is there.

    python -m benchmarks.clients.opening_client JSON

The run is in SQLite. A working agent has made it, at ten events a second. The times are those of the page
since it was opened; a script that runs before the page's own takes them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from benchmarks.agent import WORDS
from benchmarks.clients import _common as common
from benchmarks.clients._chromium import find_chromium, started_chromium
from benchmarks.clients.browser_client import LOG_IN
from benchmarks.clients.serving_client import Measuring, Serving, measure
from benchmarks.serving_agent import TOKEN
from thinkwell import events as ev
from thinkwell.journal import Entry, RunRecord, SqliteJournal
from thinkwell.web import RunEnded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.clients._common import Figures

RUN = "run-kept"

RATE = 10
"""Events per second of the run."""

SCRIPT = """
(() => {
  const seen = window.seen = { bytes: 0, rows: 0 };
  const now = () => performance.now() / 1000;
  window.EventSource = class extends EventSource {
    constructor(url) {
      super(url);
      seen.asked ??= now();
      this.addEventListener("message", ({ data }) => {
        seen.came ??= now();
        seen.bytes += data.length;
      });
      this.addEventListener("end", () => { seen.sent = now(); });
    }
  };
  const look = () => {
    const last = [...document.querySelectorAll("#timeline > .row")].at(-1);
    const rows = Number(last?.ariaSetSize ?? 0);
    // The frame is drawn behind the callbacks, and a task of this priority comes right behind it.
    scheduler.postTask(() => {
      if (rows) seen.first ??= now();
      if (rows !== seen.rows) [seen.rows, seen.whole] = [rows, now()];
    }, { priority: "user-blocking" });
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()
"""

OVER = """
new Promise(done => setInterval(() => {
  const last = Math.max(seen.whole, seen.sent ?? Infinity);
  if (performance.now() / 1000 - last > 2) done({ ...seen, whole: last });
}, 200))
"""
"""What was seen, when nothing more comes."""


def log_of(count: int) -> Iterator[ev.ThoughtEvent]:
    """The events of a working agent: twenty at a time, as in the mix of updates of that name."""
    yield ev.SessionOpened(agent="bench", session_id="s", cwd="/project")
    output = (ev.BlockContent(content=ev.TextContent(text="120 passed in 3.41s")),)
    for step in range(count // 20):
        call = f"call-{step}"
        yield from (ev.Thought(text=word, message_id=f"thought-{step}") for word in WORDS[:6])
        yield from (ev.Message(text=word, message_id=f"message-{step}") for word in WORDS[6:14])
        yield ev.ToolStart(id=call, title="make test", kind="execute", input={"command": "make test"})
        yield ev.ToolUpdate(id=call, status="in_progress")
        yield ev.ToolUpdate(id=call, content=output)
        yield ev.ToolDone(id=call, status="completed", content=output, output={"exit": 0})
        yield ev.PlanUpdate(entries=(ev.PlanEntry(content=f"Step {step}", status="in_progress"),))
        yield ev.UsageUpdate(used=1000 + step, size=200_000)


async def keep(path: Path, count: int) -> None:
    """Put a run that has ended into a journal."""
    entries = [
        Entry(seq, ev.event_to_json(replace(event, seq=seq, at=seq / RATE)))
        for seq, event in enumerate(log_of(count), 1)
    ]
    end = RunEnded(seq=len(entries) + 1, at=len(entries) / RATE, status="completed", result="Done.")
    async with SqliteJournal(path) as journal:
        await journal.create(RunRecord(id=RUN, agent="bench", created=1.0, caller="bench", title="Kept"))
        for begin in range(0, len(entries), 5_000):
            await journal.append(RUN, entries[begin : begin + 5_000])
        await journal.finish(RUN, Entry(end.seq, msgspec.json.encode(end)), end.status, 1.0 + end.at)


class OpeningMeasuring(Measuring):
    """One sample."""

    @classmethod
    def prepare(cls, serving: Serving, folder: Path) -> None:
        """Make the run."""
        asyncio.run(keep(folder / "runs.sqlite", serving.count))

    async def main(self) -> Figures:
        """Take it."""
        await self.wait_for_server()
        program = find_chromium()
        assert program is not None
        home = f"http://127.0.0.1:{self.port}"
        async with started_chromium(program) as browser:
            tab = await browser.open()
            await tab.go(f"{home}/blank")
            await tab.value(LOG_IN % json.dumps(TOKEN))
            await tab.before(SCRIPT)
            before, server_before = await tab.metrics(), await self.ask("GET", "/figures")
            await tab.go(f"{home}/#run={RUN}")
            seen = await tab.value(OVER)
            after, server_after = await tab.metrics(), await self.ask("GET", "/figures")
        spent = {name: after[name] - before[name] for name in before}
        figures = {f"{name}_seconds": seen[name] for name in ("asked", "came", "first", "sent", "whole")}
        return {
            **figures,
            "rows": seen["rows"],
            "items_bytes": seen["bytes"],
            "server_cpu_seconds": server_after["cpu_seconds"] - server_before["cpu_seconds"],
            "script_seconds": spent["ScriptDuration"],
            "layout_seconds": spent["LayoutDuration"] + spent["RecalcStyleDuration"],
        }


if __name__ == "__main__":
    common.report(measure(Serving(**json.loads(sys.argv[1])), OpeningMeasuring))
