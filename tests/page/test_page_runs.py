"""A run in the page: it is started, watched, stopped and found again."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from page.acting import edits, plans, reads, runs, uses, uses_up
from page.staging import Gate, cable, keep_run, opened, served_page
from page.test_page_looks import faults
from real_servers import SERVERS
from scripted import Played, scripted

from thinkwell import events as ev
from thinkwell.testing import ScriptedAgent, script
from thinkwell.web import ServedAgent
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from page.browsing import Browser
    from real_servers import ServerKind
    from scripted import Turn

    from thinkwell import Agent

OLD = "import os\n\n\ndef total(orders):\n    return sum(orders)\n"
NEW = "import os\n\n\ndef total(orders: list[int]) -> int:\n    return sum(orders)\n"


async def works(turn: Turn) -> None:
    """Do a bit of everything."""
    plans(turn, "Look", "Change", "Test")
    turn.think("Let me look first.")
    reads(turn, "/w/shop/orders.py", "/w/shop/views.py", "/w/shop/urls.py")
    plans(turn, "Look", "Change", "Test", done=1)
    turn.say("I change **one** file.")
    edits(turn, "/w/shop/orders.py", NEW, OLD)
    edits(turn, "/w/notes.md", "# Notes\n")
    runs(turn, "pytest -q")
    plans(turn, "Look", "Change", "Test", done=3)
    uses_up(turn, 48_000, 200_000, 0.06)
    turn.say("## Done\n\n- typed\n- tested\n\n| a | b |\n|---|---|\n| 1 | 2 |")


@pytest.mark.parametrize("kind", [pytest.param(SERVERS[0], marks=pytest.mark.quick), *SERVERS[1:]])
def test_a_run_is_started_and_watched_to_its_end(browser: Browser, kind: ServerKind) -> None:
    with served_page(works, kind=kind) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.type("#prompt", "Type the orders, and test that.")
        tab.click("#go")
        tab.see(".final.completed")
        assert "#run=run-" in tab.value("location.href")
        assert tab.text("#title") == "Type the orders, and test that."
        assert tab.text("#phase") == "done"
        assert tab.text(".row[data-kind=prompt]").endswith("Type the orders, and test that.")
        looked = tab.text(".row[data-kind=f] .fold:has-text('orders.py, ')")
        assert re.fullmatch(
            r"read\n.*/orders.py, .*/views.py \(\+1\)\nthought( [0-9.]+s)?(\n[0-9.]+s)?", looked
        )
        assert tab.texts(".prose strong") == ["one"]
        assert tab.texts(".text td") == ["1", "2"]
        assert "6 tools · 2 files changed, +2 −1 · 48k/200k ctx · $0.06 (agent)" in tab.text(".final")
        assert stage.agent.sent.prompts[0].text == "Type the orders, and test that."
        assert tab.value("document.title") == "✔ Type the orders, and test that. – thinkwell"


def test_each_panel_tells_its_part(browser: Browser) -> None:
    with opened(browser, works) as tab:
        tab.see(".final")
        tab.see("#tab-result[aria-selected=true]")  # what there is something of is shown
        assert tab.texts("#panel h4, #panel li") == ["Done", "typed", "tested"]
        tab.click("#tab-plan")
        tab.see("#panel .steps")
        assert tab.texts("#panel .steps li") == ["Look", "Change", "Test"]
        assert tab.text("#tab-plan .badge") == "3/3"
        tab.click("#tab-changes")
        tab.see("#panel .tree")
        assert tab.texts("#panel .tree button") == ["orders.py\n+1\n−1", "notes.md\n+1\n−0"]
        tab.click("#panel .tree button:has-text('orders.py')")
        tab.see("#panel .diff .path:has-text('orders.py')")
        assert tab.texts("#panel td.code.added") == ["def total(orders: list[int]) -> int:"]
        assert tab.texts("#panel td.code.added mark")[0] == ": list[int]"
        assert tab.texts("#panel td.code.added > .keyword") == ["def"]
        tab.click("#tab-terminal")
        tab.see("#panel .shell")
        assert tab.text("#panel .command") == "$\npytest -q"
        assert tab.texts("#panel .t-f2") == ["3 passed"]
        tab.click("#tab-usage")
        tab.see("#panel .facts")
        assert "48k of 200k tokens, 24%" in tab.text("#panel")
        assert "$0.06, as the agent says" in tab.text("#panel")


def test_a_wide_panel_shows_both_sides_of_a_change(browser: Browser) -> None:
    with opened(browser, works, viewport={"width": 1900, "height": 900}) as tab:
        tab.click("#tab-changes")
        tab.click("#panel .tree button:has-text('orders.py')")
        tab.see("#panel table.two")
        pairs = tab.value(
            "[...document.querySelectorAll('#panel tr')].map(row => [...row.querySelectorAll('.code')]"
            ".map(cell => cell.textContent))"
        )
        assert ["def total(orders):", "def total(orders: list[int]) -> int:"] in pairs
        tab.do("focus", "#splitter")
        for _ in range(8):
            tab.press("ArrowRight")
        tab.see("#panel table.one")


def test_what_goes_on_is_seen_as_it_comes(browser: Browser) -> None:
    gate = Gate()

    async def thinks_slowly(turn: Turn) -> None:
        turn.think("First this.\nThen that.")
        await gate.wait()
        uses(turn, "t", "Slow", kind="execute", raw_input={"command": "sleep 9"}, status="in_progress")
        await gate.wait()
        for word in ("One ", "two ", "three."):
            turn.say(word)
            await gate.wait()

    with served_page(thinks_slowly) as stage, browser.tab() as tab:
        tab.go(stage.start("Take your time."))
        tab.see(".thinking:has-text('Then that.')")
        assert tab.text("#phase") == "thinking"
        assert tab.text(".row[data-kind=t] .verb") == "thinking"
        gate.open()
        tab.see(".fold .spinner")
        assert tab.text("#phase") == "running sleep 9"
        assert tab.text(".row[data-kind=t] .verb").startswith("thought")
        gate.open()
        for text in ("One ", "One two ", "One two three."):
            tab.see(f".text p:text-is('{text.strip()}')")
            assert tab.text("#phase") != "done"
            gate.open()
        tab.see(".final")
        tab.miss("#stop")


def test_stop_asks_nothing(browser: Browser) -> None:
    gate = Gate()

    async def goes_on(turn: Turn) -> None:
        turn.say("Working.")
        await gate.wait()

    with opened(browser, goes_on) as tab:
        tab.see(".text:has-text('Working.')")
        tab.click("#stop")
        tab.see(".final.cancelled")
        tab.miss("#stop")
        assert tab.text("#phase") == "cancelled"
        gate.open()


def test_after_a_reload_one_is_where_one_was(browser: Browser) -> None:
    gate = Gate()

    async def talks(turn: Turn) -> None:
        for number in range(60):
            uses(turn, f"t{number}", f"Step {number}", raw_input={"number": number})
        edits(turn, "/w/a.py", NEW, OLD)
        edits(turn, "/w/b.py", NEW, OLD)
        await gate.wait()
        turn.say("The end.")

    with opened(browser, talks) as tab:
        tab.click("#tab-changes")
        tab.click("#panel .tree button:has-text('b.py')")
        tab.do("hover", "#timeline")
        tab.do("mouse.wheel", 0, -5000)
        tab.until("document.querySelector('#timeline').scrollTop === 0")
        tab.click(".fold:has-text('Step 7')")
        tab.see(".card:has-text('Step 7')")
        tab.do("mouse.wheel", 0, 150)
        tab.until("document.querySelector('#timeline').scrollTop > 100")
        before = tab.value("document.querySelector('#timeline').scrollTop")
        tab.reload()
        tab.see(".card:has-text('Step 7')")
        tab.until(f"Math.abs(document.querySelector('#timeline').scrollTop - {before}) < 3")
        tab.see("#tab-changes[aria-selected=true]")
        tab.see("#panel .tree [aria-current=true]:has-text('b.py')")
        gate.open()
        tab.see("#latest")
        assert abs(tab.value("document.querySelector('#timeline').scrollTop") - before) < 3
        tab.click("#latest")
        tab.until("document.querySelector('#latest').hidden")


def test_growth_moves_neither_a_reader_at_the_end_nor_one_further_up(browser: Browser) -> None:
    gate = Gate()

    async def talks(turn: Turn) -> None:
        for number in range(3):
            turn.say("\n\n".join(f"{number}.{line}" for line in range(60)), message_id=str(number))
            await gate.wait()

    at_end = "(({scrollTop, clientHeight, scrollHeight}) => scrollTop + clientHeight > scrollHeight - 4)"
    with opened(browser, talks) as tab:
        tab.see("text='0.59'")
        gate.open()
        tab.see("text='1.59'")
        tab.until(f"{at_end}(document.querySelector('#timeline'))")
        tab.do("hover", "#timeline")
        tab.do("mouse.wheel", 0, -700)
        tab.see("#latest")
        before = tab.value("document.querySelector('#timeline').scrollTop")
        gate.open()
        tab.until("document.querySelector('#timeline').textContent.includes('2.59')")
        assert tab.value("document.querySelector('#timeline').scrollTop") == before
        gate.open()


@pytest.mark.quick
def test_a_typed_result_fills_in(browser: Browser) -> None:
    gate = Gate()
    schema = {
        "type": "object",
        "properties": {
            "summary": {"type": "string"},
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
                },
            },
            "risk": {"enum": ["low", "high"]},
        },
        "required": ["summary", "files", "risk"],
    }

    async def returns(turn: Turn) -> None:
        turn.think("Hm.")
        await gate.wait()
        draft = {"summary": "Two files."}
        uses(turn, "r", "Return", name="return_result", raw_input={"result": draft}, status="in_progress")
        await gate.wait()
        await turn.returns(summary="Two files.", files=[], risk="none")
        await gate.wait()
        await turn.returns(
            summary="Two files.",
            files=[{"path": "a.py", "lines": 3}, {"path": "b.py", "lines": 4}],
            risk="low",
        )

    with served_page(returns) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.type("#prompt", "Look.")
        tab.click("#schema-box summary")
        tab.type("#schema", json.dumps(schema))
        tab.click("#go")
        tab.click("#tab-result")
        tab.see("#panel dd.waits")
        assert tab.texts("#panel dt") == ["summary\nstring", "files\nlist of object", 'risk\n"low" | "high"']
        assert tab.texts("#panel dd") == ["not given"] * 3
        gate.open()
        tab.see("#panel:has-text('Being filled in')")
        assert tab.texts("#panel dd") == ["Two files.", "not given", "not given"]
        gate.open()
        tab.see("#panel:has-text('1 refused attempt')")
        assert "risk" in tab.text("#panel ol li")
        gate.open()
        tab.see(".final.completed")
        tab.see("#panel td:has-text('b.py')")
        assert tab.texts("#panel th") == ["path", "lines"]
        assert tab.text("#panel dd:last-of-type") == "low"


def test_what_the_result_has_to_fit_is_known_late(browser: Browser) -> None:
    gate = Gate()

    async def waits(turn: Turn) -> None:
        await gate.wait()

    with served_page(waits) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        schema = {"type": "object", "properties": {"summary": {"type": "string"}}}
        address = stage.start(output=schema, meta={"page": {"output": schema}})
        tab.go(line.url)
        tab.see("#runs li")
        line.cut(stay=True)
        tab.value(f"void (location.hash = '{address.partition('#')[2]}')")
        tab.press("]")
        tab.click("#tab-result")
        tab.see("#panel:has-text('There is no result so far.')")
        line.mend()
        tab.see("#panel dd.waits")
        tab.click("#stop")
        tab.see(".final")


def test_a_schema_that_is_none_is_refused_where_it_was_written(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab(clean=False) as tab:
        tab.go(stage.url)
        tab.type("#prompt", "Look.")
        tab.click("#schema-box summary")
        tab.type("#schema", "{nonsense")
        tab.click("#go")
        assert "not a JSON Schema" in tab.text("#start-problem")
        tab.type("#schema", '{"type": "nonsense"}')
        tab.click("#go")
        tab.see("#start-problem:has-text('output')")
        assert tab.value("location.hash") == ""


def test_a_conversation_goes_on(browser: Browser) -> None:
    async def answers(turn: Turn) -> None:
        turn.say(f"You said: {turn.text}")

    with served_page(answers) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.type("#prompt", "One.")
        tab.do("focus", "#prompt")
        tab.press("Control+Enter")
        tab.see(".final")
        first = tab.value("location.hash")
        tab.type("#more", "Two.")
        tab.click("#more-go")
        tab.see(".text:has-text('You said: Two.')")
        tab.see("#conversation a")
        assert len(stage.agent.sent.sessions) == 1
        tab.click("#conversation a")
        tab.see(".text:has-text('You said: One.')")
        assert tab.value("location.hash") == first


def test_the_agent_is_told_something_while_it_works(browser: Browser) -> None:
    told = script.says("I read it.").hears("login").hears("tests").says("Both are fine.")
    agents = {"steered": ServedAgent(open=lambda _: ScriptedAgent(told, steering=True).open())}
    with served_page(works, agents=agents) as stage, browser.tab() as tab:
        tab.go(stage.start("Review it.", agent="steered"))
        tab.see(".text:has-text('I read it.')")
        for text in ("Also the login", "and the tests"):
            tab.type("#more", text)
            tab.click("#more-go")
            tab.see(f".bubble:has-text('{text}')")
            assert tab.do("inputValue", "#more") == ""
        tab.see(".final.completed")
        assert tab.texts(".bubble") == ["Review it.", "Also the login", "and the tests"]
        tab.miss("#further")


def test_what_the_agent_does_not_take_stays_in_the_field(browser: Browser) -> None:
    """It goes on with the conversation when the run is over, where that is one."""
    gate = Gate()

    async def answers(turn: Turn) -> None:
        turn.say(f"You said: {turn.text}")
        if turn.text == "One.":
            await gate.wait()

    with served_page(answers) as stage, browser.tab(clean=False) as tab:
        for thread in (None, "t"):
            tab.go(stage.start("One.", **({"thread": thread} if thread else {})))
            tab.see(".text:has-text('You said: One.')")
            assert tab.do("getAttribute", "#more", "placeholder") == "Tell the agent something while it works"
            tab.type("#more", "Two.")
            tab.click("#more-go")
            tab.see("#more-problem:has-text('the agent takes no message while it works')")
            gate.open()
            tab.see(".final.completed")
            assert tab.do("inputValue", "#more") == "Two."
            tab.click("#more-go")
            if thread is None:
                tab.see("#more-problem:has-text('its conversation cannot be continued')")
        tab.see(".text:has-text('You said: Two.')")


@pytest.mark.parametrize("several", [False, True])
def test_a_conversation_of_a_program_goes_on(browser: Browser, tmp_path: Path, several: bool) -> None:
    """Where there are choices, they are asked for: with others it would be another conversation."""

    async def answers(turn: Turn) -> None:
        turn.say(f"You said: {turn.text}")

    handler = Played([answers])
    folders = {"site": tmp_path, "api": tmp_path.parent} if several else {"site": tmp_path}

    @asynccontextmanager
    async def opened(permissions: Any) -> AsyncGenerator[Agent]:
        async with scripted(agent=handler, permissions=permissions) as agent:
            yield agent

    agents = {"other": ServedAgent(open=opened, folders=folders)}
    with served_page(works, agents=agents) as stage, browser.tab(clean=False) as tab:
        tab.go(stage.start("One.", agent="other", thread="ours", folder="api" if several else "site"))
        tab.see(".final")
        tab.type("#more", "Two.")
        tab.click("#more-go")
        if several:
            tab.see("#more-problem:has-text('Choose the folder of the conversation')")
            assert tab.count("#pick-more-permissions:not([hidden])") == 0
            tab.choose("#more-folder", "api")
            tab.click("#more-go")
        tab.see(".text:has-text('You said: Two.')")
        tab.see("#conversation a")
        assert len(handler.sent.sessions) == 1
        tab.type("#more", "Three.")
        assert tab.count("#further .pick:not([hidden])") == 0  # it is known from the turn before
        tab.click("#more-go")
        tab.see(".text:has-text('You said: Three.')")
        assert len(handler.sent.sessions) == 1
        tab.click("#conversation a:text-is('1')")
        tab.see(".text:has-text('You said: One.')")
        tab.see("#more[placeholder='Continue this conversation, after turn 3']")
        assert faults(tab) == []


def test_a_run_by_itself_cannot_be_gone_on_with(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.start("One."))
        tab.see(".final")
        tab.miss("#further")
        tab.click("#tab-usage")
        tab.see("#panel dd:text-is('none: it cannot be continued')")


def test_what_is_waited_for_is_said_and_for_how_long(browser: Browser) -> None:
    gate = Gate()

    @asynccontextmanager
    async def opened(permissions: Any) -> AsyncGenerator[Agent]:
        await gate.wait()
        async with scripted(works, permissions=permissions) as agent:
            yield agent

    launch = (
        ev.PhaseChanged(phase="starting", detail="another run of the conversation goes first"),
        ev.PhaseChanged(phase="installing", detail="npm package cli@1.2", at=20.0),
        ev.PhaseChanged(phase="authenticating", at=120.0),
        ev.Message(text="Yes.", at=130.0),
    )
    agents = {"slow": ServedAgent(open=opened)}
    with served_page(works, agents=agents) as stage, browser.tab() as tab:
        tab.go(stage.start(agent="slow"))
        tab.until("parseFloat(document.querySelector('.row .since')?.textContent) > 0")
        tab.see("#stop")
        gate.open()
        tab.see(".final")
        tab.go(keep_run(stage, *launch))
        tab.see(".final")
        for moment, text in (
            (5, "waiting: another run of the conversation goes first\n5.0s"),
            (112, "installing npm package cli@1.2\n1:32"),
            (129, "waiting for login\n9.0s"),
        ):
            tab.value(
                f"(slider => {{ slider.value = {moment}; slider.dispatchEvent(new Event('input')) }})"
                "(document.querySelector('#scrub'))"
            )
            tab.until(f"document.querySelector('.row .wait')?.parentNode.innerText === {json.dumps(text)}")


def test_times_have_one_form(browser: Browser) -> None:
    long = (
        ev.ToolStart(id="make", kind="execute", input={"command": "make"}, at=1.0),
        ev.ToolDone(id="make", status="completed", at=223.0),
        ev.Message(text="Done.", at=222.0),
    )
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(keep_run(stage, *long))
        tab.see(".final")
        assert tab.text("#elapsed") == tab.text("#moment") == tab.text(".fold .end") == "3:42"
        assert "in 3:42" in tab.text(".final")
        tab.click("#brand")
        tab.see("#runs .about:has-text('took 3:42')")


@pytest.mark.quick
def test_runs_are_listed_filtered_and_deleted(browser: Browser) -> None:
    async def ends(turn: Turn) -> str | None:
        return "refusal" if "refuse" in turn.text else None

    with served_page(ends) as stage, browser.tab() as tab:
        for prompt in ("First", "Second", "Please refuse"):
            tab.go(stage.start(prompt))
            tab.see(".final")
        tab.value(
            """void new MutationObserver(([change]) => { window.first ??= change.target.innerText; })
            .observe(document.getElementById("runs"), { childList: true })"""
        )
        tab.click("#brand")
        tab.until("document.querySelectorAll('#runs li').length === 3")
        assert "Second" in tab.value("window.first"), "the list said first that there are no runs"
        assert tab.texts("#runs .name") == ["Please refuse", "Second", "First"]
        tab.choose("#filter", "failed")
        tab.until("document.querySelectorAll('#runs li').length === 1")
        assert tab.texts("#runs .name") == ["Please refuse"]
        tab.choose("#filter", "")
        tab.until("document.querySelectorAll('#runs li').length === 3")
        tab.do("hover", "#runs li:has-text('Second')")
        tab.click("#runs li:has-text('Second') button")
        tab.click("#runs li:has-text('Second') button:has-text('Really?')")
        tab.until("document.querySelectorAll('#runs li').length === 2")
        tab.click("#runs a:has-text('First')")
        tab.see("#title:has-text('First')")


@pytest.mark.parametrize("width", [1200, 390])
def test_a_run_that_is_not_there(browser: Browser, width: int) -> None:
    with (
        served_page(works) as stage,
        browser.tab(clean=False, viewport={"width": width, "height": 800}) as tab,
    ):
        tab.go(stage.start("One that is there"))
        tab.see(".final", attached=True)
        tab.go(f"{stage.url}/#run=run-nothing")
        tab.see("text=There is no such run here")
        assert tab.text("#title") == "No such run"
        for part in ("#replay", "#tabs", "#panel", "#stop", "#state", "#splitter", "#plan-strip", "#further"):
            tab.miss(part)
        tab.click("#timeline a")
        tab.click("#runs a")
        tab.see(".final", attached=True)  # and nothing of it stays
        tab.see("#replay")


def test_nothing_of_another_run_is_shown_while_one_is_loaded(browser: Browser) -> None:
    with served_page(works) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        tab.go(stage.start("The one").replace(stage.url, line.url))
        tab.see(".final")
        tab.click("#unroll")
        tab.until("document.querySelector('#lane-names').innerText !== ''")
        line.cut(stay=True)
        tab.value("void (location.hash = 'run=run-other')")
        tab.see("#link:has-text('reconnecting')")
        assert tab.value("document.querySelector('#lane-names').innerText") == ""
        assert tab.value("document.querySelector('#scrub').disabled") is True
        assert [tab.text(each) for each in ("#title", "#elapsed", "#moment")] == ["Run", "", ""]
        tab.miss("#panel")
        tab.miss("#plan-strip")


def test_a_list_that_is_not_there_yet_has_no_frame(browser: Browser) -> None:
    with served_page(works) as stage, cable(stage.port) as line, browser.tab(clean=False) as tab:
        tab.go(line.url)
        tab.see("#runs .empty:has-text('There are no runs so far.')")
        tab.value("document.querySelector('#runs').replaceChildren()")
        tab.miss("#runs")


def test_a_run_that_fails_says_why(browser: Browser) -> None:
    async def refuses(turn: Turn) -> str:
        turn.say("No.")
        return "refusal"

    with opened(browser, refuses) as tab:
        tab.see(".final.failed")
        assert "ResultRefused" in tab.text(".final .error")
        assert tab.text(".final .words") == "failed\n(refusal)"


def test_a_run_that_failed_is_run_again_after_a_look_at_what_its_tools_did(browser: Browser) -> None:
    async def refuses(turn: Turn) -> str | None:
        runs(turn, "make release")
        return "refusal"

    with served_page(refuses, works) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.type("#prompt", "Release it.")
        tab.click("#go")
        tab.see(".final.failed")
        first = tab.value("location.hash")
        tab.click(".final button")
        assert tab.texts("#again-tools li") == ["run make release"]
        assert faults(tab) == []
        tab.press("Escape")
        tab.miss("#again")
        assert tab.value("location.hash") == first
        tab.click(".final button")
        tab.click("#again button.main")
        tab.until(f"location.hash !== '{first}'")
        tab.see(".final.completed")
        assert tab.count(".final button") == 0
        assert [prompt.text for prompt in stage.agent.sent.prompts] == ["Release it."] * 2
        assert len(stage.agent.sent.sessions) == 1
        tab.go(stage.start("By a program."))  # what it has sent is not known here
        tab.see(".final")
        tab.miss(".final button")


@pytest.mark.quick
def test_the_schema_goes_with_the_prompt(browser: Browser) -> None:
    with served_page(works) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.type("#prompt", "Look.")
        tab.miss("#schema-set")
        tab.click("#schema-box summary")
        tab.type("#schema", '{"type": "object"}')
        tab.reload()
        tab.see("#schema-set")
        tab.see("#agent option", attached=True)
        assert tab.value("document.querySelector('#prompt').value") == "Look."
        tab.click("#go")
        tab.see("#stop, .final", attached=True)
        tab.click("#brand")
        tab.miss("#schema-set")
        assert tab.value("document.querySelector('#schema').value") == ""


def test_agents_are_called_by_the_names_that_the_operator_gave_them(browser: Browser) -> None:
    served = ServedAgent(open=lambda permissions: scripted(works, permissions=permissions), title="Same")
    with served_page(works, agents={"fast": served, "careful": served}) as stage, browser.tab() as tab:
        tab.go(stage.url)
        tab.see("#agent option", attached=True)
        assert tab.texts("#agent option") == ["scripted", "fast", "careful"]


def test_panels_are_there_when_something_is_in_them(browser: Browser) -> None:
    gate = Gate()

    async def plans_late(turn: Turn) -> None:
        turn.say("Yes.")
        await gate.wait()
        plans(turn, "Look")
        await gate.wait()

    with opened(browser, plans_late) as tab:
        tab.see(".text")
        for part in ("#tabs", "#panel", "#splitter"):
            tab.miss(part)
        gate.open()
        tab.see("#panel .steps")
        tab.click("#details[aria-pressed=true]")
        tab.miss("#panel")
        tab.reload()
        tab.see("#details[aria-pressed=false]")
        tab.miss("#panel")
        tab.click("#details")
        tab.see("#panel .steps")
        gate.open()


def test_the_result_comes_first_on_a_phone(browser: Browser) -> None:
    gate = Gate()

    async def answers(turn: Turn) -> None:
        turn.say("\n\n".join(map(str, range(90))))
        await gate.wait()

    with served_page(answers) as stage, browser.tab(viewport={"width": 390, "height": 844}) as tab:
        address = stage.start()
        tab.go(address)
        tab.see("#tab-timeline[aria-selected=true]")
        tab.see(".text")
        gate.open()
        tab.see("#tab-result[aria-selected=true]")
        tab.see("#panel .prose")
        tab.click("#tab-timeline")
        tab.see(".final")
        tab.reload()
        tab.see(".final")  # it was chosen


def test_the_other_runs_stand_beside_a_run_in_a_wide_window(browser: Browser) -> None:
    async def answers(turn: Turn) -> None:
        turn.say("Yes.")

    wide = {"width": 1400, "height": 900}
    with served_page(answers) as stage, browser.tab(viewport=wide) as tab:
        for prompt in ("First", "Second"):
            tab.go(stage.start(prompt))
            tab.see(".final")
        tab.see("#runs li:has-text('First')")
        assert tab.texts("#runs [aria-current=page] .name") == ["Second"]
        assert tab.value("document.title").startswith("✔ Second")
        assert faults(tab) == []
        tab.click("#runs a:has-text('First')")
        tab.see("#title:has-text('First')")
        assert tab.texts("#runs [aria-current=page] .name") == ["First"]
        tab.miss("#start")
        tab.do("setViewportSize", {"width": 1200, "height": 800})
        tab.miss("#runs")
        tab.click("#brand")
        tab.see("#start")
        assert tab.value("document.title") == "thinkwell"


def test_a_sub_agent_is_one_row_that_unfolds(browser: Browser) -> None:
    by_boss = {"claudeCode": {"parentToolUseId": "boss"}}

    async def delegates(turn: Turn) -> None:
        uses(turn, "boss", "Delegate", kind="think", status="in_progress")
        uses(turn, "worker", "Work", kind="fetch", meta=by_boss)
        text = s.TextContent(text="I look at it.\nAll is <b>well</b>.")
        turn.update(s.AgentMessageChunk(content=text, message_id="b", meta=by_boss))
        uses(turn, "other", "Other", kind="fetch")

    with opened(browser, delegates) as tab:
        tab.see(".final")
        heads = ".call > .fold .verb, .row[data-kind=c] > .call > details > summary .verb"
        assert tab.texts(f".row[data-kind=c] > {heads}") == ["think", "fetch"]
        assert "1 call · All is <b>well</b>." in tab.text(".row[data-kind=c]")
        tab.click(".row[data-kind=c] summary")
        tab.see(".row .calls .verb:text-is('fetch')")
        assert "I look at it." in tab.text(".row .calls pre")
        assert tab.count(".bubble") == 1


def test_a_list_of_thousands_is_in_the_page_in_part(browser: Browser) -> None:
    async def does_much(turn: Turn) -> None:
        for number in range(2000):
            uses(turn, f"t{number}", f"Step {number}", kind="fetch")

    with opened(browser, does_much) as tab:
        tab.see(".final")
        assert tab.count(".row") < 120
        assert tab.text("article:has-text('Step 1999')")
        tab.until("document.querySelector('article:last-of-type').ariaSetSize === '2002'")
        tab.value("document.querySelector('#timeline').scrollTop = 0")
        tab.see("text='Step 0'")
        assert tab.count(".row") < 120
        tab.value("document.querySelector('#timeline').scrollTop = 30000")
        tab.until(
            "[...document.querySelectorAll('.row')].some(row => /Step [6-9]\\d\\d$/.test(row.innerText))"
        )
        tab.do("focus", "#timeline")
        for _ in range(3):
            tab.press("j")
        focused = tab.value("document.activeElement.innerText")
        tab.press("k")
        assert focused.startswith("fetch")
        assert tab.value("document.activeElement.innerText") != focused
