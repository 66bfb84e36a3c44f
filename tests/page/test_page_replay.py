"""The replay of a run: any moment of it, in the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from asking import permission
from page.acting import plans, runs
from page.staging import Gate, served_page

if TYPE_CHECKING:
    from page.browsing import Browser, Tab
    from scripted import Turn


async def works(turn: Turn) -> None:
    """Take some time, so that there are moments to be told apart."""
    plans(turn, "Think", "Act")
    turn.think("Let me think.")
    await anyio.sleep(0.15)
    plans(turn, "Think", "Act", done=1)
    turn.say("First. ")
    await anyio.sleep(0.15)
    turn.say("Second.")
    await anyio.sleep(0.15)
    runs(turn, "make")
    plans(turn, "Think", "Act", done=2)
    await anyio.sleep(0.15)
    turn.say("Third.")


def move(tab: Tab, share: str) -> None:
    """Move the slider to a share of the run."""
    tab.value(
        "(slider => { slider.value = Number(slider.min) + (slider.max - slider.min) * "
        f"{share}; slider.dispatchEvent(new Event('input')) }})(document.querySelector('#scrub'))"
    )


def messages(tab: Tab) -> list[str]:
    return [text.strip() for text in tab.texts(".row[data-kind=message]")]


def test_any_moment_can_be_seen_again(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".final")
        tab.click("#tab-plan")
        move(tab, "0.35")
        tab.see("#replaying")
        tab.miss(".final")
        assert messages(tab) == ["First."]
        assert tab.texts("#panel .completed .what") == ["Think"]
        assert tab.text("#phase") == "answering"
        move(tab, "0.6")
        tab.see(".text p:text-is('First. Second.')")
        move(tab, "0.02")
        tab.miss(".text")
        move(tab, "0.9")
        tab.see(".fold:has-text('make')")
        assert messages(tab) == ["First. Second."]
        tab.click("#replaying button")
        tab.see(".final")
        assert messages(tab) == ["First. Second.", "Third."]


def test_the_slider_is_moved_by_keys_and_says_where_it_is(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".final")
        tab.press("r")
        assert tab.value("document.activeElement.id") == "scrub"
        tab.press("Home")
        tab.see("#replaying")
        tab.miss(".text")
        assert tab.value("document.querySelector('#scrub').getAttribute('aria-valuetext')").startswith(
            "00:00 of 00:0"
        )
        tab.press("End")
        tab.see(".final")


def test_it_plays_from_the_beginning_to_the_end(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".final")
        tab.value(
            """window.seen = [];
            void new MutationObserver(() => {
                const rows = [...document.querySelectorAll('.row[data-kind=message]')];
                const text = rows.map((row) => row.innerText.trim()).join('|');
                if (seen.at(-1) !== text) seen.push(text);
            }).observe(document.querySelector('#timeline'), {childList: true, subtree: true})"""
        )
        tab.choose("#speed", "4")
        tab.press("p")
        tab.see("#play[aria-label=Pause]")
        tab.see(".final")
        tab.see("#play[aria-label=Replay]")
        assert [text for text in tab.value("seen") if text] == [
            "First.",
            "First. Second.",
            "First. Second.|Third.",
        ]


def test_it_can_be_paused(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".final")
        tab.press("p")
        tab.see(".text")
        tab.press("p")
        tab.see("#play[aria-label=Replay]")
        before = tab.text("#moment")
        assert tab.count(".final") == 0
        tab.value("new Promise(resolve => setTimeout(resolve, 300))")
        assert tab.text("#moment") == before


def test_what_goes_on_can_be_looked_back_at_and_nothing_is_answered_there(browser: Browser) -> None:
    async def asks(turn: Turn) -> None:
        turn.say("Before.")
        await anyio.sleep(0.2)
        await turn.client.request_permission(permission(turn.session_id))
        turn.say("After.")

    with served_page(asks) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".question button:enabled")
        move(tab, "0.5")
        tab.see("#replaying button:has-text('Back to now')")
        tab.miss(".question")
        tab.press("y")
        assert messages(tab) == ["Before."]
        assert not any("/answer" in each for each in tab.requests)
        tab.click("#replaying button")
        tab.see(".question button:enabled")
        tab.press("y")
        tab.see(".final")


def test_the_moment_outlives_a_reload(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".final")
        move(tab, "0.35")
        tab.see(".text p:text-is('First.')")
        tab.reload()
        tab.see("#replaying")
        tab.see(".text p:text-is('First.')")


def test_each_tool_has_a_lane(browser: Browser) -> None:
    gate = Gate()

    async def goes_on(turn: Turn) -> None:
        await works(turn)
        await gate.wait()

    with served_page(goes_on) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".text p:text-is('Third.')")
        tab.until("document.querySelector('#lane-names').innerText === 'thought\\nanswer\\nrun'")
        picture = "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 900, 30)"
        assert tab.value(f"[...{picture}.data].some(Boolean)")
        gate.open()
        tab.see(".final")
