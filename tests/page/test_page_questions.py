"""What an agent asks, answered in the page: by mouse, by keyboard, with forms and addresses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from asking import permission
from page.acting import edits, plans, runs
from page.staging import Gate, opened, served_page
from scripted import scripted

from thinkwell.permissions import PermissionPolicy
from thinkwell.questions import Reply
from thinkwell.web import ServedAgent
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from page.browsing import Browser, Tab
    from scripted import Script, Turn

RULES: dict[str, Any] = {"none": "deny", "rules": PermissionPolicy(otherwise="deny"), "all": "allow"}

HIDDEN = s.ToolCallUpdate(
    tool_call_id="t1",
    title="List files",
    kind="execute",
    raw_input={"command": "ls \u202e\u200b; rm -rf /", "sudo": True, "description": "List"},
)


async def asks(turn: Turn) -> None:
    """Ask, and say what was answered."""
    response = await turn.client.request_permission(permission(turn.session_id))
    outcome = response.outcome
    turn.say(outcome.option_id if isinstance(outcome, s.SelectedPermissionOutcome) else "cancelled")


def ready(tab: Tab) -> None:
    """Wait until the question takes an answer."""
    tab.see(".question .answers button:enabled")


@pytest.mark.quick
def test_an_answer_by_mouse(browser: Browser) -> None:
    with opened(browser, asks) as tab:
        tab.see(".question")
        assert tab.text(".question h2") == "rm -rf build"
        assert tab.text(".question pre") == "rm -rf build"
        assert tab.texts(".question button") == [
            "a\nAlways allow",
            "d\nAlways deny",
            "y\nAllow once",
            "n\nDeny",
        ]
        assert tab.text("#phase") == "waiting for your answer"
        assert tab.value("document.title").startswith("? ")
        tab.click(".question button:has-text('Allow once')")
        tab.see(".text:has-text('y')")
        tab.miss(".question")
        assert "allowed by you" in tab.text(".row[data-kind=q]")


def test_the_list_shows_where_an_answer_is_waited_for(browser: Browser) -> None:
    gate = Gate()

    async def works(turn: Turn) -> None:
        turn.say("I begin.")
        await gate.wait()

    with served_page(works, asks) as stage, browser.tab(hurry=True) as tab:
        tab.go(stage.start("Work"))
        tab.see(".text:has-text('I begin.')")
        stage.start("Clean up")
        tab.click("#brand")
        tab.see("#runs .asks")
        assert tab.texts("#runs .name") == ["Clean up", "Work"]
        about = tab.texts("#runs .about")
        assert about[0].endswith("just now · waiting for your answer")
        assert about[1].endswith("just now · running")
        assert len(tab.texts("#runs .mark.ask")) == 1
        assert tab.value("document.title") == "? thinkwell"
        assert tab.text("#polite") == "Clean up is waiting for your answer"
        tab.click("#runs a:has-text('Clean up')")
        ready(tab)
        tab.press("y")
        tab.see(".final")
        tab.click("#brand")
        tab.see("#runs .mark.completed")
        assert tab.texts("#runs .asks") == []
        assert tab.value("document.title") == "thinkwell"
        gate.open()
        tab.see("#runs li:has-text('Work') .mark.completed")


def test_the_title_of_the_list_tells_that_an_answer_is_waited_for(browser: Browser) -> None:
    gate = Gate()

    async def asks_later(turn: Turn) -> None:
        await gate.wait()
        await asks(turn)

    with served_page(asks_later) as stage, browser.tab(hurry=True) as tab:
        stage.start("Clean up")
        tab.go(stage.url)
        tab.see("#runs .mark.running")
        tab.value("void Object.defineProperty(document, 'hidden', { value: true })")  # in another tab
        gate.open()
        tab.until("document.title === '? thinkwell'")


@pytest.mark.parametrize(
    ("key", "said"), [pytest.param("y", "y", marks=pytest.mark.quick), ("a", "a"), ("n", "x"), ("d", "n")]
)
def test_an_answer_by_keyboard(browser: Browser, key: str, said: str) -> None:
    with opened(browser, asks) as tab:
        ready(tab)
        tab.press(key)
        tab.see(f".text p:text-is('{said}')")


def test_a_key_that_was_meant_for_something_else_answers_nothing(browser: Browser) -> None:
    gate = Gate()

    async def asks_later(turn: Turn) -> None:
        await gate.wait()
        await asks(turn)

    with opened(browser, asks_later) as tab:
        tab.see("#phase")
        # The key comes in the same moment as the question.
        tab.value(
            """void new MutationObserver(() => {
                if (!document.querySelector('.question')) return;
                document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'y', bubbles: true}));
            }).observe(document.querySelector('#dock'), {childList: true})"""
        )
        gate.open()
        ready(tab)
        assert tab.requests[-1].startswith("GET")
        tab.click("#help-open")
        tab.press("y")  # a dialog is open
        tab.click("#keys-on")
        tab.press("Escape")
        tab.press("y")  # the keys are off
        assert not any("/answer" in request for request in tab.requests)
        tab.press("?")
        assert tab.count("dialog[open]") == 0
        tab.click("#help-open")
        tab.click("#keys-on")
        tab.click("#help-close")
        tab.press("n")
        tab.see(".text p:text-is('x')")


def test_typing_answers_nothing(browser: Browser) -> None:
    async def asks_form(turn: Turn) -> None:
        await turn.client.create_elicitation(form(turn, {"name": s.StringPropertySchema(title="Name")}))

    with opened(browser, asks_form) as tab:
        ready(tab)
        tab.press("f")
        tab.do("keyboard.type", "yan")
        tab.until("document.querySelector('.question textarea').value === 'yan'")
        assert not any("/answer" in request for request in tab.requests)
        tab.press("Escape")
        tab.press("n")
        tab.see(".final")
        assert "declined by you" in tab.text(".row[data-kind=q]")


def test_nothing_of_a_command_is_hidden(browser: Browser) -> None:
    async def asks_hidden(turn: Turn) -> None:
        await turn.client.request_permission(permission(turn.session_id, HIDDEN))

    with opened(browser, asks_hidden) as tab:
        tab.see(".question")
        assert tab.texts(".question pre") == ["ls \\u202e\\u200b; rm -rf /", '{\n  "sudo": true\n}']


def test_a_change_is_seen_before_it_is_allowed(browser: Browser) -> None:
    async def asks_to_edit(turn: Turn) -> None:
        change = s.Diff(path="/w/a.py", old_text="a = 1\n", new_text="a = 2\u200b\n")
        call = s.ToolCallUpdate(tool_call_id="t1", title="Edit", kind="edit", content=(change,))
        await turn.client.request_permission(permission(turn.session_id, call))
        edits(turn, "/w/a.py", "a = 2\n", "a = 1\n")

    with opened(browser, asks_to_edit) as tab:
        tab.see(".question .diff")
        assert tab.texts(".question td.code") == ["a = 1", "a = 2\\u200b"]
        assert tab.text("#tab-changes .badge") == "1"
        tab.click("#tab-changes")
        tab.see("#panel .path:has-text('proposed')")
        ready(tab)
        tab.press("y")
        tab.see(".final")


def form(turn: Turn, properties: dict[str, Any], *required: str) -> s.ElicitationFormMode:
    schema = s.ElicitationSchema(properties=properties, required=required)
    return s.ElicitationFormMode(session_id=turn.session_id, message="Where to?", requested_schema=schema)


def filled(properties: dict[str, Any], *required: str) -> tuple[Script, list[Any]]:
    """A script that has a form filled in, and what it was told."""
    told: list[Any] = []

    async def asks_form(turn: Turn) -> None:
        response = await turn.client.create_elicitation(form(turn, properties, *required))
        told.append((response.action, response.content))

    return asks_form, told


@pytest.mark.quick
def test_a_form_is_filled_in(browser: Browser) -> None:
    many = tuple(f"zone {number}" for number in range(12))
    script, told = filled(
        {
            "name": s.StringPropertySchema(title="Name", min_length=2, description="Of the release"),
            "mail": s.StringPropertySchema(title="Mail", format="email"),
            "size": s.IntegerPropertySchema(title="Size", minimum=1, maximum=9, default=3),
            "share": s.NumberPropertySchema(title="Share"),
            "fast": s.BooleanPropertySchema(title="Fast?"),
            "colour": s.StringPropertySchema(title="Colour", enum=("red", "blue")),
            "zone": s.StringPropertySchema(title="Zone", enum=many),
            "tags": s.MultiSelectPropertySchema(
                title="Tags", items=s.StringMultiSelectItems(enum=("a", "b", "c"))
            ),
            "note": s.StringPropertySchema(title="Note", default="nothing"),
        },
        "name",
        "colour",
    )
    with opened(browser, script) as tab:
        ready(tab)
        assert tab.value("document.querySelector('.field input[type=number]').value") == "3"
        tab.click(".question button:has-text('Send')")
        assert tab.texts(".field .wrong:not([hidden])") == ["A value is required.", "A value is required."]
        assert tab.value("document.activeElement.closest('.field').innerText").startswith("Name")
        tab.do("fill", ".field:has-text('Name') textarea", "X")
        tab.click(".question button:has-text('Send')")
        assert tab.texts(".field .wrong:not([hidden])")[0] == "It has to be at least 2."
        tab.do("fill", ".field:has-text('Name') textarea", "Ada \u00e9😀")
        tab.do("fill", ".field:has-text('Share') input", "0.25")
        tab.do("check", ".field:has-text('Fast?') input[value=true]")
        tab.do("check", ".field:has-text('Colour') input[value=blue]")
        tab.choose(".field select", "zone 7")
        tab.do("check", ".field:has-text('Tags') input[value=a]")
        tab.do("check", ".field:has-text('Tags') input[value=c]")
        tab.do("fill", ".field:has-text('Note') textarea", "")
        tab.click(".question button:has-text('Send')")
        tab.see(".final")
    assert told == [
        (
            "accept",
            {
                "name": "Ada \u00e9😀",
                "size": 3,
                "share": 0.25,
                "fast": True,
                "colour": "blue",
                "zone": "zone 7",
                "tags": ("a", "c"),
            },
        )
    ]


def test_a_form_that_the_server_refuses_can_be_mended(browser: Browser) -> None:
    script, told = filled({"code": s.StringPropertySchema(title="Code", pattern="^[A-Z]{3}$")}, "code")
    with opened(browser, script, clean=False) as tab:
        ready(tab)
        tab.do("fill", ".question textarea", "abc")
        tab.do("focus", ".question textarea")
        tab.press("Control+Enter")
        tab.see(".question > .problem:has-text('code')")
        tab.do("fill", ".question textarea", "ABC")
        tab.click(".question button:has-text('Send')")
        tab.see(".final")
    assert told == [("accept", {"code": "ABC"})]


def test_what_was_typed_stays_while_the_run_goes_on(browser: Browser) -> None:
    gate = Gate()

    async def asks_and_talks(turn: Turn) -> None:
        async def talk() -> None:
            await gate.wait()
            turn.say("By the way.")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk)
            await turn.client.create_elicitation(form(turn, {"name": s.StringPropertySchema(title="Name")}))

    with opened(browser, asks_and_talks) as tab:
        ready(tab)
        tab.do("fill", ".question textarea", "Ada")
        gate.open()
        tab.see(".text:has-text('By the way.')")
        assert tab.value("document.querySelector('.question textarea').value") == "Ada"
        assert tab.value("document.activeElement.tagName") == "TEXTAREA"
        tab.press("Control+Enter")
        tab.see(".final")


@pytest.mark.parametrize(("key", "said"), [("y", "accept"), ("n", "decline")])
def test_an_address_is_shown_whole_and_opened_without_a_word_of_where_from(
    browser: Browser, key: str, said: str
) -> None:
    told: list[str] = []

    async def asks_page(turn: Turn) -> None:
        url = f"{turn.text}/start?x=1"
        request = s.ElicitationUrlMode(
            session_id=turn.session_id, message="Log in", elicitation_id="e1", url=url
        )
        response = await turn.client.create_elicitation(request)
        told.append(response.action)

    with served_page(asks_page) as stage, browser.tab(clean=False) as tab:
        tab.go(stage.start(f"{stage.url}/healthz#"))
        ready(tab)
        assert tab.text(".question .address") == f"{stage.url}/healthz#/start?x=1"
        assert "It leads to 127.0.0.1." in tab.text(".question")
        link = tab.value(
            "(link => [link.rel, link.target, link.referrerPolicy])(document.querySelector('.question a'))"
        )
        assert link == ["noopener noreferrer nofollow", "_blank", "no-referrer"]
        assert tab.do("popups") == []
        tab.press("o")
        tab.press(key)
        tab.see(".final")
        assert tab.do("popups") == [
            {"url": f"{stage.url}/healthz#/start?x=1", "referrer": "", "opener": False}
        ]
    assert told == [said]


def test_an_address_that_is_none_of_the_web_is_not_opened(browser: Browser) -> None:
    async def asks_page(turn: Turn) -> None:
        request = s.ElicitationUrlMode(
            session_id=turn.session_id, message="Log in", elicitation_id="e1", url="ftp://files.example/a"
        )
        await turn.client.create_elicitation(request)

    with opened(browser, asks_page) as tab:
        ready(tab)
        assert tab.text(".question .address") == "ftp://files.example/a"
        assert "It leads to files.example." in tab.text(".question")
        assert tab.count(".question a") == 0
        tab.press("o")
        tab.press("n")
        tab.see(".final")


def test_the_time_that_is_left_is_shown_and_then_it_is_denied(browser: Browser) -> None:
    with served_page(asks, question_timeout=2.5) as stage, browser.tab() as tab:
        tab.go(stage.start())
        tab.see(".question .ring")
        tab.see(".question .ring.soon")
        assert tab.value("document.querySelector('.ring').getAttribute('aria-label')").endswith(
            "seconds left, then it is denied"
        )
        tab.see(".final")
        tab.miss(".question")
        tab.see(".settled:has-text('rm -rf build: denied: no answer within 2.5 seconds')")
        assert "denied: no answer within 2.5 seconds" in tab.text(".row[data-kind=q]")


def test_a_question_that_others_have_answered_is_gone(browser: Browser) -> None:
    with served_page(asks) as stage, browser.tab() as tab, browser.tab() as other:
        url = stage.start()
        tab.go(url)
        other.go(url)
        ready(tab)
        ready(other)
        other.do("focus", ".question")
        tab.click(".question button:text-matches('^n?\\\\s*Deny$')")
        other.miss(".question")
        other.see(".text p:text-is('x')")
        assert other.text(".settled") == "rm -rf build: denied elsewhere\nDismiss"
        assert other.texts("#polite p")[0] == "rm -rf build: denied elsewhere"
        assert other.value("document.activeElement.id") == "timeline"
        other.click(".settled button")
        other.miss(".settled")
        assert tab.count(".settled") == 0
        for each, said in ((tab, "denied by you"), (other, "denied elsewhere")):
            assert each.text(".row[data-kind=q] .told") == said
            each.reload()  # it is known then, too
            each.see(f".row[data-kind=q] .told:text-is('{said}')")


def test_who_has_answered_is_told_in_words(browser: Browser) -> None:
    gate = Gate()

    async def asks_twice(turn: Turn) -> None:
        await asks(turn)
        call = s.ToolCallUpdate(tool_call_id="t2", title="git push", kind="execute")
        await turn.client.request_permission(permission(turn.session_id, call))
        await gate.wait()

    with served_page(asks_twice) as stage, browser.tab() as tab:
        address = stage.start()
        tab.go(address)
        ready(tab)
        run = address.rpartition("=")[2]
        listed = Reply(True, "it is on the list")
        for title, by, answer in (("rm -rf build", "letta", False), ("git push", "build robot", listed)):
            tab.see(f".question:has-text('{title}')")
            question = tab.do("getAttribute", ".question", "data-question")
            stage.portal.call(partial(stage.server.answer, run, question, answer, caller="", by=by))
            tab.see(f".settled:has-text('{title}')")
        gate.open()
        tab.see(".final")
        assert tab.texts(".row[data-kind=q] .told") == [
            "denied in a Letta client",
            "allowed by build robot: it is on the list",
        ]
        tab.click("summary.fold:has-text('git push')")
        tab.see(".card:has-text('git push') .dim:has-text('allowed by build robot: it is on the list')")


def test_what_the_policy_has_decided_is_told_in_words(browser: Browser) -> None:
    own = partial(scripted, asks)
    agents = {"other": ServedAgent(open=lambda permissions: own(permissions=permissions), permissions=RULES)}
    with served_page(asks, agents=agents) as stage, browser.tab() as tab:
        for name, said in (
            ("none", "denied by the permission policy: it denies all that is asked"),
            ("rules", "denied by the permission policy: no rule allows it"),
            ("all", "allowed by the permission policy: it allows all that is asked"),
        ):
            tab.go(stage.start(agent="other", permissions=name))
            tab.see(".final")
            tab.see(f".told:text-is('{said}')")
            assert tab.count(".settled") == 0


def test_two_questions_are_answered_each_by_itself(browser: Browser) -> None:
    answers: list[str] = []

    async def asks_twice(turn: Turn) -> None:
        async def ask(number: int) -> None:
            call = s.ToolCallUpdate(tool_call_id=f"t{number}", title=f"Call {number}", kind="fetch")
            response = await turn.client.request_permission(permission(turn.session_id, call))
            assert isinstance(response.outcome, s.SelectedPermissionOutcome)
            answers.append(f"{number} {response.outcome.option_id}")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, 1)
            tasks.start_soon(ask, 2)

    with opened(browser, asks_twice) as tab:
        tab.see(".question:has-text('Call 1')")
        tab.see(".question:has-text('Call 2') button:enabled")
        tab.do("focus", ".question:has-text('Call 2')")
        tab.press("y")
        tab.miss(".question:has-text('Call 2')")
        tab.press("n")
        tab.see(".final")
    assert answers == ["2 y", "1 x"]


def test_a_stop_withdraws_the_question(browser: Browser) -> None:
    with opened(browser, asks) as tab:
        ready(tab)
        tab.press("Shift+S")
        tab.see(".final.cancelled")
        tab.miss(".question")
        assert "withdrawn" in tab.text(".row[data-kind=q]")


IN_SIGHT = """(() => {
    const inside = (node, x, y) => node.contains(document.elementFromPoint(x, y));
    const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
    const card = document.querySelector('.question');
    const last = [...card.querySelectorAll('.answers button')].at(-1);
    return inside(last, ...middle(last.getBoundingClientRect()))
        && inside(card, ...middle(card.querySelector('h2').getBoundingClientRect()))
        && last.getBoundingClientRect().bottom <= innerHeight;
})()"""
"""Whether one sees what is asked, and the last of the answers."""

ROOM = """(() => {
    const [panel, dock] = ['panel', 'dock'].map((id) => document.getElementById(id).getBoundingClientRect());
    const whole = [panel, dock].every((box) => box.left === 0 && box.width === innerWidth);
    return whole && panel.bottom <= dock.top + 1 ? panel.height : -1;
})()"""
"""The height of what is above the question; negative where they share the place or the width."""

PARTS = ("plan", "changes", "terminal", "result", "usage")


@pytest.mark.parametrize(
    "size", [(390, 844), (320, 568), (844, 390), (640, 400)], ids=lambda size: f"{size[0]}x{size[1]}"
)
def test_a_question_stays_in_sight_whichever_tab_is_shown(browser: Browser, size: tuple[int, int]) -> None:
    async def works_and_asks(turn: Turn) -> None:
        plans(turn, "Look", "Change", "Test", done=1)
        edits(turn, "/w/a.py", "a = 2\n" * 40, "a = 1\n" * 40)
        runs(turn, "make", "\n".join(f"line {number}" for number in range(80)))
        await asks(turn)

    viewport = dict(zip(("width", "height"), size, strict=True))
    with opened(browser, works_and_asks, viewport=viewport) as tab:
        ready(tab)
        assert tab.value(IN_SIGHT) is True
        for name in PARTS:
            tab.click(f"#tab-{name}")
            tab.see(f"#panel[aria-labelledby=tab-{name}]")
            assert tab.value(IN_SIGHT) is True, name
            assert tab.value(ROOM) >= 48, name
            assert tab.value("document.documentElement.scrollHeight <= innerHeight"), name
        tab.press("y")
        tab.miss(".question")
        tab.click("#tab-timeline")
        tab.see(".text p:text-is('y')")


def test_a_question_that_comes_is_seen_in_any_tab(browser: Browser) -> None:
    gate = Gate()

    async def asks_later(turn: Turn) -> None:
        runs(turn, "make")
        await gate.wait()
        await asks(turn)

    with (
        served_page(asks_later) as stage,
        browser.tab(viewport={"width": 390, "height": 844}) as tab,
        browser.tab() as other,
    ):
        address = stage.start()
        other.go(address)
        tab.go(address)
        tab.click("#tab-terminal")
        tab.see("#panel .shell")
        gate.open()
        ready(tab)
        ready(other)
        assert tab.value(IN_SIGHT) is True
        tab.do("focus", ".question")
        other.press("n")
        tab.see(".settled:has-text('rm -rf build: denied elsewhere')")
        assert tab.value("document.activeElement.id") == "panel"  # the timeline is not to be seen


@pytest.mark.quick
def test_a_window_that_becomes_narrow_shows_the_timeline_with_a_question(browser: Browser) -> None:
    async def asks_form(turn: Turn) -> None:
        runs(turn, "make")
        await turn.client.create_elicitation(form(turn, {"name": s.StringPropertySchema(title="Name")}))

    wide, narrow = {"width": 1200, "height": 800}, {"width": 390, "height": 844}
    with opened(browser, asks_form) as tab:
        ready(tab)
        tab.click("#tab-terminal")
        tab.do("fill", ".question textarea", "Ada")
        tab.do("setViewportSize", narrow)
        tab.see("#tab-timeline[aria-selected=true]")
        tab.see("#timeline .row")
        assert tab.value(IN_SIGHT) is True
        assert tab.value("[document.activeElement.tagName, document.activeElement.value]") == [
            "TEXTAREA",
            "Ada",
        ]
        tab.do("setViewportSize", wide)
        tab.see("#tab-terminal[aria-selected=true]")  # as it was
        tab.do("setViewportSize", narrow)
        tab.see("#tab-timeline[aria-selected=true]")
        tab.click("#tab-usage")
        tab.do("setViewportSize", wide)
        tab.see("#tab-usage[aria-selected=true]")
        tab.do("focus", ".question textarea")
        tab.press("Control+Enter")
        tab.see(".final")
        tab.do("setViewportSize", narrow)  # nothing is asked any more
        tab.see("#tab-usage[aria-selected=true]")
        assert tab.value("document.querySelector('#run').dataset.tab") == "usage"


@pytest.mark.parametrize("key", ["y", "a", "n", "d"])
def test_a_key_answers_nothing_that_is_not_in_sight(browser: Browser, key: str) -> None:
    viewport = {"width": 390, "height": 844}
    with opened(browser, asks, viewport=viewport) as tab:
        ready(tab)
        tab.do("setViewportSize", {"width": 390, "height": 100})
        tab.requests  # noqa: B018 - those from before
        tab.press(key)
        tab.do("setViewportSize", viewport)
        ready(tab)
        tab.value("document.querySelector('#dock').style.visibility = 'hidden'")
        tab.press(key)
        tab.value("document.querySelector('#dock').style.visibility = ''")
        ready(tab)
        assert not any("/answer" in request for request in tab.requests)
        tab.press(key)
        tab.miss(".question")
        tab.see(".final", attached=True)


def test_a_key_leads_to_the_timeline_where_there_is_no_room_beside_a_question(browser: Browser) -> None:
    """As in a window that is four times as large (WCAG 2.2, 1.4.10): the answers cover what is asked."""
    with opened(browser, asks, viewport={"width": 320, "height": 256}) as tab:
        ready(tab)
        tab.click("#tab-terminal")
        tab.see("#panel[aria-labelledby=tab-terminal]")
        assert tab.value(ROOM) >= 48
        tab.press("y")
        tab.see("#tab-timeline[aria-selected=true]")
        ready(tab)
        assert not any("/answer" in request for request in tab.requests)
        assert tab.value(IN_SIGHT) is True
        tab.press("y")
        tab.see(".text p:text-is('y')")


def test_a_key_brings_a_question_into_sight_before_it_answers(browser: Browser) -> None:
    answers: list[str] = []

    async def asks_twice(turn: Turn) -> None:
        async def ask(name: str) -> None:
            command = "\n".join(f"{name} {number}" for number in range(60))
            call = s.ToolCallUpdate(
                tool_call_id=name, title=name, kind="execute", raw_input={"command": command}
            )
            response = await turn.client.request_permission(permission(turn.session_id, call))
            assert isinstance(response.outcome, s.SelectedPermissionOutcome)
            answers.append(f"{name} {response.outcome.option_id}")

        async with anyio.create_task_group() as tasks:
            for name in ("one", "two", "three"):
                tasks.start_soon(ask, name)

    to_end = "(dock => { dock.scrollTop = dock.scrollHeight })(document.querySelector('#dock'))"
    with opened(browser, asks_twice, viewport={"width": 390, "height": 600}) as tab:
        for number in (1, 2, 3):
            tab.see(f".question:nth-child({number}) .answers button:enabled")
        order = tab.texts(".question h2")
        tab.click("#tab-plan")
        tab.do("focus", f".question:has(h2:text-is('{order[0]}')) button")
        tab.value(to_end)
        tab.press("y")  # the focus is in one that is out of sight
        tab.see(".question:nth-child(1) .answers button:enabled")
        assert tab.value("document.activeElement.querySelector('h2').textContent") == order[0]
        assert tab.value("document.querySelector('#dock').scrollTop") < 100
        assert answers == []
        tab.press("y")
        tab.miss(f".question:has(h2:text-is('{order[0]}'))")
        tab.value("document.activeElement.blur()")
        tab.value(to_end)
        tab.press("n")  # the one that is in sight
        tab.miss(f".question:has(h2:text-is('{order[2]}'))")
        tab.press("y")
        tab.miss(".question")
        tab.see(".final", attached=True)
    assert answers == [f"{order[0]} y", f"{order[2]} x", f"{order[1]} y"]
