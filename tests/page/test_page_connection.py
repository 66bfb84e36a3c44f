"""Connections that break, servers that are started again, and tokens."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from page.staging import Gate, cable, served_page
from page.test_page_looks import faults

from thinkwell.journal import SqliteJournal
from thinkwell.web import Access

if TYPE_CHECKING:
    from pathlib import Path

    from page.browsing import Browser
    from scripted import Script, Turn

TOKEN = "a-token-of-sixteen-or-more"


def counts(gate: Gate) -> Script:
    """A script that says a number, and the next one after each opening of a gate."""

    async def script(turn: Turn) -> None:
        for number in range(6):
            turn.say(f"{number} ")
            await gate.wait()

    return script


@pytest.mark.quick
def test_a_cut_connection_goes_on_where_it_was(browser: Browser) -> None:
    gate = Gate()
    with served_page(counts(gate)) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        tab.go(stage.start().replace(stage.url, line.url))
        tab.see(".text p:text-is('0')")
        for said in ("0 1", "0 1 2"):
            line.cut()
            gate.open()
            tab.see(f".text p:text-is('{said}')")
        line.cut(stay=True)
        tab.see("#link:has-text('reconnecting')")
        gate.open()
        line.mend()
        tab.see(".text p:text-is('0 1 2 3')")
        tab.miss("#link")
        for _ in range(3):
            gate.open()
        tab.see(".final.completed")
        assert tab.text(".text") == "0 1 2 3 4 5"


def test_a_refusal_of_what_stands_between_is_outlived(browser: Browser) -> None:
    """A browser does not come back by itself from an answer that is an error."""
    gate = Gate()
    with served_page(counts(gate)) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        tab.go(stage.start().replace(stage.url, line.url))
        tab.see(".text p:text-is('0')")
        line.cut(stay=True, status="502 Bad Gateway")
        tab.see("#link:has-text('reconnecting')")
        tab.requests  # noqa: B018 - those until now
        tab.until("performance.getEntriesByType('resource').some(each => each.responseStatus === 502)")
        gate.open()
        line.mend()
        tab.see(".text p:text-is('0 1')")
        asked = [each for each in tab.requests if "/items" in each]
        assert not asked[-1].endswith("after=")  # it went on behind what it had


def test_a_run_whose_server_was_started_again_was_interrupted(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    gate = Gate()
    with ExitStack() as stack, browser.tab(clean=False) as tab:
        with served_page(counts(gate), journal=SqliteJournal(path)) as first:
            line = stack.enter_context(cable(first.port))
            tab.go(first.start().replace(first.url, line.url))
            tab.see(".text p:text-is('0')")
            gate.open()
            tab.see(".text p:text-is('0 1')")
        tab.see("#link:has-text('reconnecting')")
        with served_page(counts(gate), journal=SqliteJournal(path)) as second:
            line.lead_to(second.port)
            tab.see(".final.interrupted")
            assert tab.text(".text") == "0 1"
            assert "The server ended before the run did" in tab.text(".final")
            tab.reload()
            tab.see(".final.interrupted")


def test_all_runs_are_there_again_when_the_server_is(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    with served_page(ends) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        stage.start("One")
        tab.go(line.url)
        tab.see("#runs li:has-text('One')")
        line.cut(stay=True)
        tab.value("void dispatchEvent(new Event('online'))")  # it looks again at once
        tab.see("#link:has-text('reconnecting')")
        assert tab.texts("#runs .name") == ["One"]
        stage.start("Two")
        line.mend()
        tab.see("#runs li:has-text('Two')")
        tab.miss("#link")


def test_a_stop_that_does_not_come_through_is_told(browser: Browser) -> None:
    gate = Gate()
    with served_page(counts(gate)) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        tab.go(stage.start().replace(stage.url, line.url))
        tab.see(".text")
        line.cut(stay=True)
        tab.click("#stop")
        tab.see("#notice:has-text('It could not be stopped: The server cannot be reached')")
        assert faults(tab) == []
        tab.see("#stop:enabled")
        line.mend()
        tab.click("#stop")
        tab.see(".final.cancelled")
        tab.miss("#stop")


def test_a_start_that_is_not_answered_is_not_done_twice(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    with served_page(ends) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        tab.go(line.url)
        tab.see("#agent option", attached=True)
        tab.type("#prompt", "Once.")
        line.cut(stay=True)
        tab.click("#go")
        tab.see("#start-problem:has-text('cannot be reached')")
        line.mend()
        tab.click("#go")
        tab.see(".final")
        assert len(stage.agent.sent.prompts) == 1


# Tokens


@pytest.mark.quick
@pytest.mark.parametrize("name", ["127.0.0.1", "think.test"])
def test_who_has_given_no_token_is_asked_for_one(browser: Browser, name: str) -> None:
    """Over plain http to a name such as the second, a browser says only by Referer whose page asks."""

    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    access = Access({TOKEN: "ada"}, hosts=["think.test"])
    with served_page(ends, access=access) as stage, browser.tab(clean=False) as tab:
        tab.go(f"http://{name}:{stage.port}/")
        tab.see("#login")
        assert tab.value("document.activeElement.id") == "token"
        for _ in range(3):
            tab.press("Escape")
        tab.type("#token", "something else of length")
        tab.click("#login button")
        tab.see("#login-problem:has-text('That token is not accepted.')")
        tab.type("#token", TOKEN)
        tab.press("Enter")
        tab.miss("#login")
        tab.see("#agent option", attached=True)
        tab.type("#prompt", "Go.")
        tab.click("#go")
        tab.see(".final")
        tab.reload()
        tab.see(".final")
        assert tab.count("#login[open]") == 0
        kept = tab.value("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        assert TOKEN not in kept


def test_the_token_of_an_address_is_taken_out_of_it_at_once(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    with served_page(ends, access=Access({TOKEN: "ada"})) as stage, browser.tab(clean=False) as tab:
        address = stage.start(caller="ada")
        tab.go(f"{stage.url}/#secret={TOKEN}")
        tab.see("#runs li")
        assert tab.value("location.href") == f"{stage.url}/"
        tab.go("about:blank")
        tab.go(f"{address}&secret={TOKEN}")
        tab.see(".final")
        assert tab.value("location.href") == address
        assert not any(TOKEN in request for request in tab.requests)
        assert tab.value("history.length") <= 4


def test_a_wrong_token_of_an_address_is_said_to_be_wrong(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    problem = "#login-problem:has-text('The token in the address is not accepted.')"
    with served_page(ends, access=Access({TOKEN: "ada"})) as stage, browser.tab(clean=False) as tab:
        tab.go(f"{stage.url}/#secret=something-else-of-length")
        tab.see(problem)
        tab.go(f"{stage.url}/#secret={TOKEN}")  # the right one lets in who was asked for it
        tab.miss("#login")
        tab.see("#runs .empty")
        tab.go(f"{stage.url}/#secret=something-else-of-length")
        tab.see("#notice:has-text('The token in the address is not accepted.')")
        assert tab.count("#login[open]") == 0  # this browser is known
        tab.click("#notice-close")
        tab.miss("#notice")


def test_a_token_works_where_none_is_needed(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    with served_page(ends) as stage, browser.tab(clean=False) as tab:
        tab.go(f"{stage.url}/#secret={TOKEN}")
        tab.see("#runs .empty")
        assert tab.value("location.href") == f"{stage.url}/"
        assert tab.count("#login[open], #notice:not([hidden])") == 0


def test_who_tries_too_many_tokens_is_told_so(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    with served_page(ends, access=Access({TOKEN: "ada"})) as stage, browser.tab(clean=False) as tab:
        tab.go(stage.url)
        tab.see("#login")
        tab.type("#token", "something else of length")
        for _ in range(12):
            tab.do("focus", "#token")
            tab.press("Enter")
        tab.see("#login-problem:has-text('too many were tried')")
        tab.type("#token", TOKEN)
        tab.press("Enter")
        tab.miss("#login")


def test_a_token_that_was_given_in_another_window_is_enough(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    with (
        served_page(ends, access=Access({TOKEN: "ada"})) as stage,
        browser.tab(clean=False) as tab,
        browser.tab(of=tab, clean=False) as other,
    ):
        tab.go(stage.url)
        tab.see("#login")
        other.go(f"{stage.url}/#secret={TOKEN}")
        other.see("#runs .empty")
        tab.value("void document.dispatchEvent(new Event('visibilitychange'))")
        tab.miss("#login")
        tab.see("#runs .empty")


def test_a_session_that_ends_meanwhile_is_begun_anew(browser: Browser, tmp_path: Path) -> None:
    gate = Gate()
    with ExitStack() as stack, browser.tab(clean=False) as tab:
        path = tmp_path / "runs.sqlite"
        with served_page(counts(gate), journal=SqliteJournal(path), access=Access({TOKEN: "ada"})) as first:
            line = stack.enter_context(cable(first.port))
            tab.go(f"{first.start(caller='ada')}&secret={TOKEN}".replace(first.url, line.url))
            tab.see(".text p:text-is('0')")
        other = Access({f"{TOKEN}-new": "ada"})
        with served_page(counts(gate), journal=SqliteJournal(path), access=other) as second:
            line.lead_to(second.port)
            tab.see("#login")
            tab.type("#token", f"{TOKEN}-new")
            tab.press("Enter")
            tab.see(".final.interrupted")
