"""The pictures of pages: bitmaps, which a browser takes. Each is known by what it is made from.

A browser of another version draws other bytes, so nothing compares them. `pictures.json` has a hash of what
each shows, which the tests make anew, and only a picture of something else is taken again.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from debian_packages import find_program
from kept_runs import keep_run
from page.browsing import browsing
from page.staging import served_page
from trials.reported import many_trials

from pictures.drawn import FOLDER, story
from pictures.stories import PROMPTS
from thinkwell import replay
from thinkwell.journal import RunRecord
from thinkwell.trials import Report
from thinkwell.web import RunEnded, recording_html

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from page.staging import PageStage
    from scripted import Turn

KNOWN: Final = FOLDER / "pictures.json"
ROOT: Final = FOLDER.parents[1]
SITE: Final = ROOT / "build" / "site"

CONFIGS: Final = ("zensical.toml", "mkdocs.yml")
"""Of the site."""

NOW: Final = 1_772_450_000
"""Seconds since 1970: the time of the browser."""

DESK: Final = {"width": 1200, "height": 760}
PHONE: Final = {"width": 390, "height": 760}
SHEET: Final = {"width": 1000, "height": 900}
CELL: Final = {"width": 860, "height": 840}

FONTS: Final = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <alias><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>JetBrains Mono</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>JetBrains Mono</family></prefer></alias>
</fontconfig>
"""
"""The same fonts on every machine."""

FLAGS: Final = ("--font-render-hinting=none", "--force-device-scale-factor=2", "--disable-partial-raster")
"""Without them, what is drawn depends on what was drawn before."""

NOTEBOOK: Final = """\
<!doctype html>
<meta charset="utf-8">
<style>
  body {{ margin: 0; padding: 20px; font: 14px system-ui; background: #fff; }}
  .cell {{ display: grid; grid-template-columns: 60px 1fr; gap: 14px 10px; }}
  .mark {{ font: 13px monospace; color: #2c6dc4; text-align: right; padding-top: 10px; }}
  pre.code {{ margin: 0; padding: 9px 12px; font: 13px/1.5 monospace; background: #f7f7f8;
    border: 1px solid #e2e2e6; border-radius: 4px; }}
</style>
<div class="cell">
  <div class="mark">[1]:</div><pre class="code">{code}</pre>
  <div class="mark"></div><div>{output}</div>
</div>
"""
CODE: Final = """\
async with open_agent("my-agent") as agent:
    report = await show(agent.think(Report).text(task).stream())"""


@dataclass(frozen=True, kw_only=True)
class Shot:
    """A picture to be taken."""

    source: Callable[[], str]
    """Makes what it is made from."""
    address: str
    """Where that is: what follows the server's address, or that of a folder."""
    sees: str
    """What is waited for."""
    viewport: Mapping[str, int] = field(default_factory=lambda: DESK)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else Playwright's `newContext` takes."""
    clicks: str = ""
    """What is clicked at last."""

    @property
    def digest(self) -> str:
        """The hash of what it is made from."""
        parts = [self.source(), self.address, self.sees, self.viewport, self.options]
        text = json.dumps([*parts, self.clicks] if self.clicks else parts)
        return sha256(text.encode()).hexdigest()[:32]


@cache
def page() -> str:
    """Return all that the page is made from: its modules, its style, and the runs as it is given them."""
    return "\n".join(anyio.run(recording_html, story(name)) for name in PROMPTS)


@cache
def notebook() -> str:
    """Return a run in the output of a cell."""
    stream = replay(story("search"), speed=0, include="all")
    output = stream._repr_mimebundle_()["text/html"]  # what Jupyter calls
    output = output.replace(escape(str(story("search"))), "runs/search.ndjson")
    return NOTEBOOK.format(code=escape(CODE), output=output)


@cache
def report() -> str:
    """Return a report of trials."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        anyio.run(Report(many_trials(4)).save, path)
        return path.read_text("utf-8")


def site() -> str:
    """Return what the first page of the site is made from, without the list of all pages."""
    config = next(file for name in CONFIGS if (file := ROOT / name).exists()).read_text("utf-8")
    files = [ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "assets").rglob("*.*"))]
    return "\n".join(
        [line for line in config.splitlines() if ".md" not in line]
        + [sha256(file.read_bytes()).hexdigest() for file in files]
    )


RUN: Final = "#run=run-search"

SHOTS: Final = {
    "page.png": Shot(source=page, address=RUN, sees=".final"),
    "page-dark.png": Shot(source=page, address=RUN, sees=".final", options={"colorScheme": "dark"}),
    "page-phone.png": Shot(
        source=page, address=RUN, sees=".final", viewport=PHONE, options={"deviceScaleFactor": 1}
    ),
    "page-runs.png": Shot(source=page, address="", sees="#runs li"),
    "notebook.png": Shot(source=notebook, address="/notebook.html", sees=".thinkwell-run", viewport=CELL),
    "report.png": Shot(source=report, address="/report.html", sees=".matrix", viewport=SHEET),
    "report-dark.png": Shot(
        source=report,
        address="/report.html",
        sees=".matrix",
        clicks='[href="#trial-2"]',
        viewport=SHEET,
        options={"colorScheme": "dark"},
    ),
    "site.png": Shot(source=site, address="/index.html", sees="h1"),
}
"""The pictures by their names."""


def stale() -> Iterator[str]:
    """Return the names of the pictures that show something else by now, or are not there."""
    known: dict[str, str] = json.loads(KNOWN.read_text("utf-8")) if KNOWN.exists() else {}
    for name, shot in SHOTS.items():
        if known.get(name) != shot.digest or not (FOLDER / name).exists():
            yield name


def write_known() -> None:
    """Write down what the pictures are made from."""
    known = {name: shot.digest for name, shot in SHOTS.items()}
    KNOWN.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


@contextmanager
def camera(scratch: Path) -> Generator[Callable[[str], None]]:
    """Return what takes a picture, by its name.

    Args:
        scratch: A folder for what is needed meanwhile.
    """
    fonts = scratch / "fonts.conf"
    fonts.write_text(FONTS.format(fonts=find_program("fonts-inter").path, cache=scratch), "utf-8")
    (scratch / "notebook.html").write_text(notebook(), "utf-8")
    (scratch / "report.html").write_text(report(), "utf-8")
    with served_page(plays_no_part) as stage, browsing(scratch, "chromium", *FLAGS, fonts=fonts) as browser:
        for ago, run in enumerate(PROMPTS, 1):
            stage.portal.call(_keep, stage, run, NOW - 60.0 * ago)
        files = dict.fromkeys(("notebook", "report"), scratch.as_uri())
        places = {"page": f"{stage.url}/", **files, "site": SITE.as_uri()}

        def take(name: str) -> None:
            shot = SHOTS[name]
            options: dict[str, Any] = {
                "deviceScaleFactor": 2,
                "reducedMotion": "reduce",
                "timezoneId": "UTC",
                **shot.options,
            }
            with browser.tab(clean=False, hurry=False, viewport=shot.viewport, **options) as tab:
                tab.do("clock.setFixedTime", NOW * 1000)
                tab.go(places[shot.source.__name__] + shot.address)
                tab.see(shot.sees, attached=True)
                tab.reload()  # what was laid out first may have been so for another screen
                tab.see(shot.sees, attached=True)
                if shot.clicks:
                    tab.click(shot.clicks)
                tab.shot(FOLDER / name)

        yield take


async def plays_no_part(turn: Turn) -> None:
    """No agent is needed to see what one has done."""


async def _keep(stage: PageStage, name: str, created: float) -> None:
    """Put a recorded run into the journal of a server."""
    stream = replay(story(name), speed=0, include="all")
    events = [event async for event in stream]
    end = RunEnded(seq=0, at=stream.elapsed, status="completed", result=await stream.result)
    record = RunRecord(
        id=f"run-{name}",
        agent=stream.view.agent,
        created=created,
        title=PROMPTS[name],
        meta={"page": {"prompt": PROMPTS[name]}},
    )
    await keep_run(stage.server.journal, record, events, end)
