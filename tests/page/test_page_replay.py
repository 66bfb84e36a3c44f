"""The replay of a run: any moment of it, in the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asking import permission
from msgspec.structs import replace
from page.acting import runs
from page.staging import Gate, keep_run, opened, served_page

from thinkwell import events as ev
from thinkwell.journal import MemoryJournal

if TYPE_CHECKING:
    from page.browsing import Browser, Tab
    from scripted import Turn

    from thinkwell.journal import Entry


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
    return [text.strip() for text in tab.texts(".row[data-kind=m]")]


@pytest.mark.quick
def test_any_moment_can_be_seen_again(browser: Browser) -> None:
    with served_page(nothing) as stage, browser.tab() as tab:
        tab.go(keep_run(stage, *STORY))
        tab.see(".final")
        tab.click("#tab-usage")
        tab.see("#panel .facts")
        tab.click("#tab-plan")
        move(tab, 0.7)
        tab.see("#replaying")
        tab.miss(".final")
        assert messages(tab) == ["First."]
        assert tab.texts("#panel .completed .what") == ["Think"]
        assert tab.count("#panel .facts") == 0  # another tab's
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
                const rows = [...document.querySelectorAll('.row[data-kind=m]')];
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

    with opened(browser, asks) as tab:
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

    with opened(browser, goes_on) as tab:
        tab.see(".fold:has-text('make')")
        tab.miss("#chart")
        tab.click("#unroll")
        tab.until("document.querySelector('#lane-names').innerText === 'thought\\nanswer\\nrun'")
        bars = "[...document.querySelectorAll('#chart path')]"
        assert len(tab.value(f"{bars}.map(bar => bar.getBoundingClientRect().height).filter(Boolean)")) == 3
        gate.open()
        tab.see(".final")
        tab.reload()
        tab.see("#unroll[aria-expanded=true]")
        tab.click("#unroll")
        tab.miss("#chart")


class Slow(MemoryJournal):
    """Reads the middle of a run when a gate lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def read(self, run_id: str, after: int = 0, *, most: int = 64 * 1024) -> list[Entry]:
        if 0 < after < 4_000:
            await self.gate.wait()
        return await super().read(run_id, after, most=most)


def test_a_long_run_shows_its_end_while_the_rest_comes(browser: Browser) -> None:
    log = [
        ev.Message(text=f"Message {number}.", message_id=str(number), at=number) for number in range(6_000)
    ]
    journal = Slow()
    with served_page(nothing, journal=journal) as stage, browser.tab() as tab:
        tab.go(keep_run(stage, *log))
        tab.see(".row:has-text('Message 5999.')")
        tab.see(".final:has-text('done')")
        tab.see("#phase:has-text('loading 6,001 events')")
        tab.do("evaluate", "document.getSelection().selectAllChildren(document.querySelector('.final'))")
        assert messages(tab)[-1] == "Message 5999."
        assert tab.count("#panel *") == 0
        for _ in range(200):
            journal.gate.open()
        tab.see("#phase:has-text('done')")
        assert tab.value("document.getSelection().toString()").startswith("done")
        assert tab.value("document.querySelector('.final').parentNode.ariaSetSize") == "6002"
        move(tab, 1.5)
        tab.until("document.querySelectorAll('.row[data-kind=m]').length === 2")
        assert messages(tab) == ["Message 0.", "Message 1."]
        tab.click("#replaying button")
        tab.see(".final")
        tab.do("hover", "#timeline")
        tab.do("mouse.wheel", 0, -9000)
        tab.see("#latest")
        seen = tab.value("Number(document.querySelector('.row').ariaPosInSet)")
        tab.reload()
        tab.see("#phase:has-text('done')")
        tab.see("#latest")  # it is where it was
        tab.until(f"Math.abs(Number(document.querySelector('.row').ariaPosInSet) - {seen}) < 3")
