"""The replay of a run: any moment of it, in the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asking import permission
from msgspec.structs import replace
from page.acting import runs
from page.staging import Gate, keep_run, served_page

from thinkwell import events as ev

if TYPE_CHECKING:
    from page.browsing import Browser, Tab
    from scripted import Turn


def plan(at: float, done: int) -> ev.PlanUpdate:
    steps = (("Think", done > 0), ("Act", done > 1))
    entries = [ev.PlanEntry(content=step, status="completed" if over else "pending") for step, over in steps]
    return ev.PlanUpdate(entries=tuple(entries), at=at)


STORY: tuple[ev.ThoughtEvent, ...] = (
    ev.PhaseChanged(phase="responding"),
    plan(0.1, 0),
    ev.Thought(text="Let me think.", at=0.1),
    plan(0.5, 1),
    ev.Message(text="First. ", at=0.5),
    ev.Message(text="Second.", at=1.0),
    ev.ToolStart(id="make", kind="execute", input={"command": "make"}, at=1.5),
    ev.ToolDone(id="make", status="completed", output={"exit_code": 0}, at=1.6),
    plan(1.6, 2),
    ev.Message(text="Third.", at=2.0),
)
"""A run of two seconds."""


async def nothing(turn: Turn) -> None:
    """No agent is needed to see again what one has done."""


def move(tab: Tab, moment: float) -> None:
    """Move the slider to a moment of the run."""
    tab.value(
        f"(slider => {{ slider.value = {moment!r}; slider.dispatchEvent(new Event('input')) }})"
        "(document.querySelector('#scrub'))"
    )


def messages(tab: Tab) -> list[str]:
    return [text.strip() for text in tab.texts(".row[data-kind=message]")]


@pytest.mark.quick
def test_any_moment_can_be_seen_again(browser: Browser) -> None:
    with served_page(nothing) as stage, browser.tab() as tab:
        tab.go(keep_run(stage, *STORY))
        tab.see(".final")
        tab.click("#tab-plan")
        move(tab, 0.7)
        tab.see("#replaying")
        tab.miss(".final")
        assert messages(tab) == ["First."]
        assert tab.texts("#panel .completed .what") == ["Think"]
        assert tab.text("#phase") == "answering"
        move(tab, 1.2)
        tab.see(".text p:text-is('First. Second.')")
        move(tab, 0.05)
        tab.miss(".text")
        move(tab, 1.9)
        tab.see(".fold:has-text('make')")
        assert messages(tab) == ["First. Second."]
        tab.click("#replaying button")
        tab.see(".final")
        assert messages(tab) == ["First. Second.", "Third."]


def test_the_slider_is_moved_by_keys_and_says_where_it_is(browser: Browser) -> None:
    with served_page(nothing) as stage, browser.tab() as tab:
        tab.go(keep_run(stage, *STORY))
        tab.see(".final")
        tab.press("r")
        assert tab.value("document.activeElement.id") == "scrub"
        tab.press("Home")
        tab.see("#replaying")
        tab.miss(".text")
        assert tab.value("document.querySelector('#scrub').getAttribute('aria-valuetext')").startswith(
            "0:00 of 0:0"
        )
        tab.press("End")
        tab.see(".final")


def test_it_plays_from_the_beginning_to_the_end(browser: Browser) -> None:
    with served_page(nothing) as stage, browser.tab() as tab:
        slower = [replace(event, at=4 * event.at) for event in STORY]
        tab.go(keep_run(stage, *slower))
        tab.see(".final")
        tab.value(
            """window.seen = [];
            void new MutationObserver(() => {
                const rows = [...document.querySelectorAll('.row[data-kind=message]')];
                const text = rows.map((row) => row.innerText.trim()).join('|');
                if (seen.at(-1) !== text) seen.push(text);
            }).observe(document.querySelector('#timeline'), {childList: true, subtree: true})"""
        )
        tab.click("#unroll")
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
    with served_page(nothing) as stage, browser.tab() as tab:
        long = [ev.Message(text="First.", at=0.1), ev.Message(text="Last.", at=600.0)]
        tab.go(keep_run(stage, *long))
        tab.see(".final")
        tab.press("p")
        tab.see(".text")
        tab.press("p")
        tab.see("#play[aria-label=Replay]")
        before = tab.text("#moment")
        assert tab.count(".final") == 0
        tab.value("new Promise(resolve => setTimeout(resolve, 1100))")  # longer than its clock shows
        assert tab.text("#moment") == before


def test_what_goes_on_can_be_looked_back_at_and_nothing_is_answered_there(browser: Browser) -> None:
    gate = Gate()

    async def asks(turn: Turn) -> None:
        turn.say("Before.")
        await gate.wait()
        await turn.client.request_permission(permission(turn.session_id))
        turn.say("After.")

    with served_page(asks) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".text p:text-is('Before.')")
        moment = tab.value("Number(document.querySelector('#scrub').max)")
        gate.open()
        tab.see(".question button:enabled")
        move(tab, moment)
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
    with served_page(nothing) as stage, browser.tab() as tab:
        tab.go(keep_run(stage, *STORY))
        tab.see(".final")
        move(tab, 0.7)
        tab.see(".text p:text-is('First.')")
        tab.reload()
        tab.see("#replaying")
        tab.see(".text p:text-is('First.')")


def test_each_tool_has_a_lane(browser: Browser) -> None:
    gate = Gate()

    async def goes_on(turn: Turn) -> None:
        turn.think("Let me think.")
        turn.say("First.")
        runs(turn, "make")
        await gate.wait()

    with served_page(goes_on) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".fold:has-text('make')")
        tab.miss("#lanes canvas")
        tab.click("#unroll")
        tab.until("document.querySelector('#lane-names').innerText === 'thought\\nanswer\\nrun'")
        drawn = (
            "(each => each.getContext('2d').getImageData(0, 0, each.width, each.height).data.some(Boolean))"
        )
        assert tab.value(f"{drawn}(document.querySelector('canvas'))")
        gate.open()
        tab.see(".final")
        tab.reload()
        tab.see("#unroll[aria-expanded=true]")
        tab.click("#unroll")
        tab.miss("#lanes canvas")
