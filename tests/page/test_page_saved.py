"""A run that is saved as one file, which shows it without a server."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from kept_runs import keep_run as keep_in_journal
from page.staging import keep_run, served_page
from page.test_page_looks import NARROW, faults, works
from page.test_page_replay import STORY, messages, move, nothing
from web_stage import Client, served

from thinkwell import events as ev
from thinkwell.journal import MemoryJournal, RunRecord
from thinkwell.testing import ScriptedAgent, script
from thinkwell.web import Access, RunEnded, recording_html, web_app

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path
    from typing import Any

    from page.browsing import Browser, Tab
    from scripted import Turn

    from thinkwell.journal import Entry

SAVED = "fetch(document.querySelector('#save').href).then(answer => answer.text())"


@contextmanager
def opened(browser: Browser, path: Path, html: str, **options: Any) -> Generator[Tab]:
    """Open a file, which may ask for nothing but itself."""
    path.write_text(html, "utf-8")
    with browser.tab(**options) as tab:
        tab.go(path.as_uri())
        tab.see(".final", attached=True)
        yield tab
        assert tab.requests == [f"GET {path.as_uri()}"]


def test_a_saved_run_needs_no_server(browser: Browser, tmp_path: Path) -> None:
    with served_page(nothing) as stage, browser.tab() as tab:
        tab.go(keep_run(stage, *STORY, ev.Message(text=" </script><!--", at=2.0)))
        tab.see("#save")
        said = messages(tab)
        html = tab.value(SAVED)
    with opened(browser, tmp_path / "run.html", html) as tab:
        assert tab.value("document.title") == "✔ Kept – thinkwell"
        assert messages(tab) == said
        assert tab.texts("#polite p") == []  # nothing of it happens now
        move(tab, 0.7)
        tab.see("#replaying")
        assert messages(tab) == ["First."]
        tab.click("#tab-plan")
        assert tab.texts("#panel .completed .what") == ["Think"]
        tab.click("#unroll")
        tab.choose("#speed", "16")
        tab.press("p")
        tab.see(".final")
        assert messages(tab) == said
        tab.click("#tab-terminal")
        tab.see("#panel .command")
        tab.click(".row[data-kind=t] summary")
        tab.see(".thought-body")
        for key in "yuScn":  # nothing is answered, stopped or asked
            tab.press(key)
        tab.click("#brand")
        tab.see(".final")
        for part in ("#save", "#stop", "#further", "#home", "#dock .question"):
            tab.miss(part)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1200, "height": 800}, NARROW], ids=["wide", "narrow"])
def test_a_saved_run_looks_like_the_page(
    browser: Browser, tmp_path: Path, scheme: str, size: dict[str, int]
) -> None:
    with served_page(works) as stage, browser.tab(colorScheme=scheme, viewport=size) as tab:
        tab.go(stage.start("Make it so."))
        tab.see(".question button:enabled")
        tab.miss("#save")
        tab.press("n")
        tab.see(".final", attached=True)
        tab.see("#save")
        assert faults(tab) == []
        assert tab.value("document.documentElement.scrollWidth") == size["width"]
        html = tab.value(SAVED)
    with opened(browser, tmp_path / "run.html", html, colorScheme=scheme, viewport=size) as tab:
        assert faults(tab) == []
        for name in ("changes", "terminal", "usage"):
            tab.click(f"#tab-{name}")
            tab.see(f"#panel[aria-labelledby=tab-{name}]")
            assert faults(tab) == [], name


def test_a_recorded_run_is_shown_without_a_server(browser: Browser, tmp_path: Path) -> None:
    played = ScriptedAgent(script.thinks("Hm.").says("Done & <dusted>.").stops().fails(message="No."))

    async def record() -> list[str]:
        async with played.open(record=tmp_path / "run.ndjson") as agent:
            done = agent.think().text("Go.").stream()
            await done.wait()
            failed = agent.think().text("Go on.").stream()
            await failed.wait()
            assert failed.result.exception()
        return [await recording_html(tmp_path / "run.ndjson", run=each.id) for each in (done, failed)]

    done, failed = anyio.run(record)
    with opened(browser, tmp_path / "done.html", done) as tab:
        assert messages(tab) == ["Done & <dusted>."]
        assert tab.text("#title").startswith("run.ndjson, ")
        assert tab.count(".row[data-kind=prompt]") == 0
    with opened(browser, tmp_path / "failed.html", failed) as tab:
        assert "No." in tab.text(".final")
        assert tab.text("#phase") == "failed"


async def test_a_run_is_saved_when_it_has_ended_and_by_its_caller() -> None:
    gate = anyio.Event()

    async def waits(turn: Turn) -> None:
        turn.say("Yes.")
        await gate.wait()

    access = Access({"a-secret-of-sixteen-or-more": "ada", "another-secret-of-that-size": "bob"})
    async with served(waits) as stage:
        client = Client(web_app(stage.server, access=access))
        ada, bob = (
            {"authorization": f"Bearer {secret}"}
            for secret in ("a-secret-of-sixteen-or-more", "another-secret-of-that-size")
        )
        key = "sk-ant-api03-Zk3bV9qLm2XyT7wR5uP1"
        prompt = f"Use {key}, please."
        run = await stage.start(prompt, caller="ada", meta={"page": {"prompt": prompt}})
        path = f"/api/runs/{run.id}/html"
        goes_on = await client.get(path, headers=ada)
        assert (goes_on.status, (await goes_on.json())["error"]["code"]) == (409, "run_still_running")
        gate.set()
        await stage.ended(run.id, caller="ada")
        assert (await client.get(path)).status == 401
        assert (await client.get(path, headers=bob)).status == 404
        saved = await client.get(path, headers=ada)
        assert saved.status == 200
        assert saved.headers["content-type"] == "text/html; charset=utf-8"
        assert saved.headers["content-disposition"] == f'attachment; filename="{run.id}.html"'
        html = (await saved.body()).decode()
    policy = re.findall('<meta http-equiv="Content-Security-Policy" content="(.*)">', html)
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'; script-src 'sha256-")
    assert key not in html
    assert ", please." in html


class Forgetful(MemoryJournal):
    """Has forgotten the entries of its runs."""

    async def read(self, run_id: str, after: int = 0, *, most: int = 0) -> list[Entry]:
        return []


async def test_a_run_that_is_deleted_meanwhile_is_not_found() -> None:
    journal = Forgetful()
    async with served(nothing, journal=journal) as stage:
        record = RunRecord(id="run-1", agent="scripted", created=1.0, caller="", title="Go")
        await keep_in_journal(journal, record, STORY, RunEnded(seq=0, at=2, status="completed"))
        answered = await Client(web_app(stage.server)).get("/api/runs/run-1/html")
        assert answered.status == 404
