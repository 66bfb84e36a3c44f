"""How the page looks and reads: narrow and dark, by keyboard, and to those who do not see it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from asking import permission
from node_packages import node_packages
from page.acting import edits, plans, reads, runs, uses_up
from page.staging import Gate, opened, served_page

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from page.browsing import Browser, Tab
    from scripted import Script, Turn

CHECKS = Path(__file__).with_name("script") / "checks.js"
TABS = ("plan", "changes", "terminal", "result", "usage")
NARROW = {"width": 360, "height": 740}


async def works(turn: Turn) -> None:
    """Show all sorts of things, and end up asking."""
    plans(turn, "Look", "Change", "Test", done=1)
    turn.think("Let me look.")
    reads(turn, "/w/a.py", "/w/b.py")
    turn.say("See [this](https://example.com), `code`, and\n\n```python\nx = 1\n```\n\n> quoted\n\n")
    turn.say("| a | b |\n|---|---|\n| 1 | 2 |")
    edits(turn, "/w/a.py", "a = 2\n", "a = 1\n")
    runs(
        turn,
        "make",
        " ".join(
            f"\x1b[{code}mcolour {code}\x1b[0m" for code in (*range(30, 38), *range(90, 98), 41, 42, 43, 44)
        ),
        code=2,
    )
    uses_up(turn, 48_000, 200_000, 0.06)
    turn.update(s.NoticeUpdate(severity="warning", title="Slow", description="It takes long."))
    schema = s.ElicitationSchema(
        properties={
            "name": s.StringPropertySchema(title="Name", description="Of the release"),
            "size": s.IntegerPropertySchema(title="Size"),
            "fast": s.BooleanPropertySchema(title="Fast?"),
            "zone": s.StringPropertySchema(title="Zone", enum=tuple("abcdefghij")),
        },
        required=("name",),
    )
    await turn.client.create_elicitation(
        s.ElicitationFormMode(session_id=turn.session_id, message="Where to?", requested_schema=schema)
    )


async def asks_long(turn: Turn) -> None:
    """Ask whether a long command may be run."""
    command = "\n".join(f"step {number}" for number in range(100))
    call = s.ToolCallUpdate(
        tool_call_id="t1",
        title="Do all of that",
        kind="execute",
        raw_input={"command": command, "sudo": True},
    )
    await turn.client.request_permission(permission(turn.session_id, call))


def faults(tab: Tab) -> list[str]:
    """What is wrong with the page for those who see little, or nothing."""
    axe = node_packages() / "node_modules" / "axe-core" / "axe.min.js"
    tab.value(axe.read_text("utf-8"))
    found: list[str] = tab.value(CHECKS.read_text("utf-8"))
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1200, "height": 800}, NARROW], ids=["wide", "narrow"])
def test_everything_has_a_name_and_enough_contrast(
    browser: Browser, scheme: str, size: dict[str, int]
) -> None:
    with served_page(works) as stage, browser.tab(colorScheme=scheme, viewport=size) as tab:
        tab.go(stage.url)
        tab.see("#agent option", attached=True)
        tab.click("#schema-box summary")
        assert faults(tab) == []
        tab.go(stage.start("Make it so."))
        tab.see(".question button:enabled")
        assert faults(tab) == []
        tab.click("#help-open")
        assert faults(tab) == []
        tab.click("#help-close")
        tab.click(".question button:has-text('Decline')")
        tab.see(".final", attached=True)
        for name in TABS:
            tab.click(f"#tab-{name}")
            tab.see(f"#panel[aria-labelledby=tab-{name}]")
            assert faults(tab) == [], name


def test_faults_would_be_found(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.see("#agent option", attached=True)
        for parent, tag, name, value in (
            (".inner", "p", "id", "go"),
            (".inner", "span", "aria-label", "Three"),
            (".inner", "i", "role", "tab"),
            (".inner", "i", "aria-controls", "nothing"),
            (".tools", "button", "type", "button"),
            (".tools", "button", "type", "button"),
        ):
            tab.value(
                f"(node => {{ node.setAttribute('{name}', '{value}');"
                f" document.querySelector('{parent}').append(node) }})(document.createElement('{tag}'))"
            )
        tab.value("document.querySelector('p#go').textContent = 'faint'")
        tab.value("document.querySelector('p#go').style.color = '#999'")
        found = {fault.partition(":")[0] for fault in faults(tab)}
    assert found >= {
        "aria-prohibited-attr",
        "button-name",
        "color-contrast",
        "target-size",
        "twice",
        "controls nothing",
        "not selected or not",
    }


def test_colours_follow_the_system_or_the_choice(browser: Browser) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with served_page(works) as stage, browser.tab(colorScheme="dark") as tab:
        tab.go(stage.url)
        dark = tab.value(background)
        tab.do("emulateMedia", {"colorScheme": "light"})
        light = tab.value(background)
        assert light != dark
        tab.click("#theme[aria-label='Colours: system']")
        tab.click("#theme[aria-label='Colours: light']")
        tab.see("#theme[aria-label='Colours: dark']")
        assert tab.value(background) == dark
        tab.reload()
        tab.see("#theme[aria-label='Colours: dark']")
        assert tab.value(background) == dark


def test_little_moves_where_reduced_motion_is_preferred(browser: Browser) -> None:
    gate = Gate()

    async def waits(turn: Turn) -> None:
        await gate.wait()

    with opened(browser, waits, reducedMotion="reduce") as tab:
        tab.see("#mark .spinner")
        assert tab.value("document.getAnimations().length") == 0
        gate.open()
        tab.see(".final")


def test_a_narrow_window_shows_one_thing_at_a_time(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab(viewport=NARROW) as tab:
        tab.go(stage.start("A title that is much too long for a window of three hundred and sixty pixels"))
        tab.see(".question button:enabled")
        assert tab.value("document.documentElement.scrollWidth") == 360
        assert tab.value("document.querySelector('#stop').getBoundingClientRect().right") <= 360
        send = tab.value("document.querySelector('.question button').getBoundingClientRect().bottom")
        assert send <= 740  # however long the form is, it can be sent
        assert tab.value("getComputedStyle(document.querySelector('#panel')).display") == "none"
        tab.click("#tab-changes")
        tab.see("#panel .diff")
        assert tab.value("getComputedStyle(document.querySelector('#left')).visibility") == "hidden"
        tab.click("#tab-timeline")
        tab.see(".question")
        tab.do("setViewportSize", {"width": 1200, "height": 800})
        tab.see("#tab-plan[aria-selected=true]")


@pytest.mark.parametrize(
    "size", [(640, 400), (320, 256), (844, 390), (1200, 800)], ids=lambda size: f"{size[0]}x{size[1]}"
)
@pytest.mark.parametrize("asks", [works, asks_long], ids=["form", "permission"])
def test_a_low_window_has_room_for_an_answer(browser: Browser, size: tuple[int, int], asks: Script) -> None:
    """As when all of a window is twice as large, or four times (WCAG 2.2, 1.4.4 and 1.4.10)."""
    width, height = size
    with served_page(asks) as stage, browser.tab(viewport={"width": width, "height": height}) as tab:
        tab.go(stage.start("A title that is much too long for such a window, whatever is left out of it"))
        tab.see(".question button:enabled")
        assert tab.value("document.documentElement.scrollWidth") == width
        for part in (".question .answers button", "#stop", "#tabs [aria-selected=true]"):
            seen = tab.value(
                f"(box => document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2))"
                f"(document.querySelector('{part}').getBoundingClientRect())?.matches('{part}')"
            )
            assert seen is True, part
        assert faults(tab) == []
        tab.press("n")
        tab.see(".final", attached=True)
        tab.see("#replay")


def test_all_of_it_works_by_keyboard(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.think("Hm.")
        turn.say("Yes.")

    with served_page(ends) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.see("#agent option", attached=True)
        tab.press("c")
        tab.do("keyboard.type", "Go.")
        tab.press("Control+Enter")
        tab.see(".final")
        tab.press("k")  # what is at the top of what is visible
        assert "row" in tab.value("document.activeElement.className")
        for _ in range(4):
            tab.press("k")
        tab.press("j")
        assert tab.value("document.activeElement.dataset.kind") == "t"
        tab.press("Tab")
        tab.press("Enter")
        tab.see(".thought-body")
        assert tab.value("document.activeElement.parentElement.open")
        tab.press("]")
        tab.see("#tab-plan[aria-selected=true]")
        tab.do("focus", "#tabs [aria-selected=true]")
        tab.press("ArrowLeft")
        tab.see("#tab-result[aria-selected=true]")
        assert tab.value("document.activeElement.id") == "tab-result"
        tab.press("[")
        tab.see("#tab-usage[aria-selected=true]")
        tab.press("?")
        tab.see("#help[open]")
        tab.press("Escape")
        tab.miss("#help")
        tab.press("u")
        tab.see("#runs li")


def test_focus_is_seen(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.see("#agent option", attached=True)
        for _ in range(12):
            tab.press("Tab")
            width = tab.value("getComputedStyle(document.activeElement).outlineWidth")
            tag = tab.value("document.activeElement.id || document.activeElement.tagName")
            assert width == "2px" or tag in ("prompt", "BODY"), tag  # the prompt's frame is marked instead
        tab.go(stage.start())
        tab.see("#panel .steps")
        for name in ("timeline", "panel"):  # half of the page has a line at its side, not a frame
            tab.do("focus", f"#{name}")
            tab.press("Shift+Tab")
            tab.press("Tab")
            style = f"getComputedStyle(document.querySelector('#{name}:focus'))"
            assert tab.value(f"{style}.outlineStyle") == "none"
            assert "3px 0px" in tab.value(f"{style}.boxShadow")


def test_what_matters_is_said_and_not_every_word(browser: Browser) -> None:
    gate = Gate()

    async def talks(turn: Turn) -> None:
        await gate.wait()
        for word in ("One ", "two ", "three."):
            turn.say(word)
        runs(turn, "make")
        await gate.wait()

    with opened(browser, talks) as tab:
        tab.see(".fold.dim")
        gate.open()
        tab.until("document.querySelector('#polite').textContent !== ''")
        assert tab.texts("#polite p") == ["One two three."]
        gate.open()
        tab.see(".final")
        tab.until("document.querySelectorAll('#polite p').length === 2")
        assert tab.texts("#polite p")[1].startswith("The run is done.")
        live = tab.value("[...document.querySelectorAll('[aria-live]')].map(each => each.id)")
        assert live == ["polite", "urgent"]


def test_a_question_is_said_at_once(browser: Browser) -> None:
    gate = Gate()

    async def asks(turn: Turn) -> None:
        await gate.wait()
        await works(turn)

    with opened(browser, asks) as tab:
        tab.see(".fold.dim")
        gate.open()
        tab.until("document.querySelector('#urgent').textContent.includes('Question: Where to?')")
        tab.press("Shift+S")
        tab.see(".final")
