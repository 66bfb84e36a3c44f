"""Texts of an agent that want to be more than texts: nothing of them runs, loads, hides or hangs the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asking import permission
from page.acting import edits, plans, runs, uses
from page.staging import Gate, opened, served_page

from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from page.browsing import Browser
    from scripted import Turn

EVIL = "https://evil.example"

SCRIPTS = (
    "<script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 2'>",
    "<svg onload='window.owned = 3'>",
    "<iframe srcdoc='<script>parent.owned = 4</script>'></iframe>",
    "<a href='javascript:window.owned=5'>here</a>",
    "[click](javascript:window.owned=6) [this](data:text/html,<script>window.owned=7</script>)",
    f"![pixel]({EVIL}/pixel.png)",
    "<style>body { display: none }</style><base href='//evil.example/'>",
    "<form action='//evil.example'><button>Send</button></form>",
    f"<meta http-equiv=refresh content='0; url={EVIL}'>",
    "${window.owned=8} {{window.owned=9}} `<b onclick='window.owned=10'>`",
)
HOSTILE = "\n\n".join(SCRIPTS)
UNSEEN = (
    "a\u202egnp.exe\u202c \u2066x\u2069 zero\u200bwidth \x1b[31mred\x1b[0m \x1b]0;owned\x07 nul\x00 bell\x07"
)


async def attacks(turn: Turn) -> None:
    """Put it everywhere."""
    turn.think(HOSTILE)
    turn.say(HOSTILE)
    plans(turn, *SCRIPTS, done=2)
    runs(turn, HOSTILE, HOSTILE)
    edits(turn, f"/w/{SCRIPTS[1]}", HOSTILE, SCRIPTS[0])
    uses(
        turn,
        SCRIPTS[1],
        SCRIPTS[0],
        name="<b>name</b>",
        raw_input={SCRIPTS[0]: HOSTILE},
        output={"output": HOSTILE},
    )
    link = s.ResourceLink(uri="javascript:window.owned=11", name=SCRIPTS[1])
    uses(turn, "link", SCRIPTS[2], shows=(s.Content(content=link),), kind="fetch")
    picture = s.ImageContent(data="PHN2Zz4=", mime_type="image/svg+xml")
    uses(turn, "picture", "Picture", shows=(s.Content(content=picture),))
    turn.update(s.AgentMessageChunk(content=picture))
    option = s.PermissionOption(option_id="y", name=SCRIPTS[1], kind="<script>window.owned=12</script>")
    call = s.ToolCallUpdate(tool_call_id="ask", title=HOSTILE, kind="execute", raw_input={"command": HOSTILE})
    await turn.client.request_permission(permission(turn.session_id, call, (option,)))
    turn.say(HOSTILE)


@pytest.mark.quick
def test_nothing_of_it_is_run_or_loaded(browser: Browser) -> None:
    with served_page(attacks) as stage, browser.tab() as tab:
        tab.go(stage.start(HOSTILE[:100]))
        tab.see(".question button:enabled")
        tab.click(".question button:has-text('onerror')")
        tab.see(".final")
        for name in ("plan", "changes", "terminal", "result", "usage"):
            tab.click(f"#tab-{name}")
            tab.see(f"#panel[aria-labelledby=tab-{name}]")
        folds = "details:not([open]) > .fold"
        for _ in range(tab.count(folds)):
            tab.click(folds)
        tab.click("#brand")
        tab.see("#runs li")
        assert tab.value("window.owned") is None
        assert tab.value("document.scripts.length") == 1
        assert tab.count("iframe, #run style, form[action], svg[onload], [onclick], #run img") == 0
        hrefs = tab.value("[...document.querySelectorAll('#run a[href]')].map(link => link.href)")
        assert all(href.startswith((EVIL, stage.url)) for href in hrefs), hrefs
        assert all(stage.url in each for each in tab.requests)
        assert tab.value("document.title") == "thinkwell"


def test_what_does_not_show_is_made_visible_or_gone(browser: Browser) -> None:
    async def hides(turn: Turn) -> None:
        turn.say(UNSEEN)
        uses(turn, "t", UNSEEN, kind="fetch")
        runs(turn, f"echo {UNSEEN}", UNSEEN)

    with opened(browser, hides) as tab:
        tab.see(".final")
        shown = "a\\u202egnp.exe\\u202c \\u2066x\\u2069 zerowidth red  nul␀ bell␇"
        assert tab.text(".text") == shown
        tab.click("#tab-terminal")
        tab.see("#panel pre")
        assert tab.text("#panel pre") == shown
        assert tab.texts("#panel pre .t-f1") == ["red"]
        controls = r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069]/"
        assert tab.value(f"{controls}.test(document.body.innerText)") is False


def test_marks_in_heaps_stay_in_their_line(browser: Browser) -> None:
    async def heaps(turn: Turn) -> None:
        turn.say("Z" + "\u0300" * 500)

    with opened(browser, heaps) as tab:
        tab.see(".final")
        assert tab.text(".text") == "Z" + "\u0300" * 8


@pytest.mark.parametrize(
    "text",
    ["y" * 5_000_000, "word " * 1_000_000, "*a _b `c [d " * 400_000, "\n" * 1_000_000 + "x"],
    ids=["one line", "words", "marks", "line feeds"],
)
def test_a_huge_text_does_not_hang_the_page(browser: Browser, text: str) -> None:
    gate = Gate()

    async def floods(turn: Turn) -> None:
        for begin in range(0, len(text), 100_000):
            turn.say(text[begin : begin + 100_000])
        await gate.wait()

    with opened(browser, floods) as tab:
        tab.see(
            ".more:has-text('4.7M more characters'), .more:has-text('4.5M more'), .more:has-text('700k more')"
        )
        tab.value("new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        took = tab.value(
            """new Promise((resolve) => {
                const began = performance.now();
                document.querySelector('#tab-usage').click();
                requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
            })"""
        )
        assert took < 2000
        tab.until("document.querySelector('.text').textContent.length !== 100000")
        gate.open()
        tab.see(".final")


def test_a_long_line_does_not_widen_the_page(browser: Browser) -> None:
    async def writes(turn: Turn) -> None:
        turn.say("x" * 5000)
        runs(turn, "y" * 5000, "z" * 5000, code=1)
        edits(turn, "/w/" + "p" * 300, "n" * 5000)
        plans(turn, "q" * 5000)

    with served_page(writes) as stage, browser.tab(viewport={"width": 360, "height": 740}) as tab:
        tab.go(stage.start("t" * 3000))
        tab.see(".final", attached=True)
        for name in ("timeline", "plan", "changes", "terminal"):
            tab.click(f"#tab-{name}")
            tab.see(f"#tab-{name}[aria-selected=true]")
            assert tab.value("document.documentElement.scrollWidth") == 360
            assert tab.value("document.querySelector('#timeline').scrollWidth") <= 360
            assert tab.value("document.querySelector('#panel').scrollWidth") <= 360


def test_json_nested_too_deep_breaks_nothing(browser: Browser) -> None:
    async def nests(turn: Turn) -> None:
        deep: object = "end"
        for _ in range(90):
            deep = [deep]
        uses(turn, "deep", "Deep", raw_input={"deep": deep}, output={"a": deep})
        turn.say("There.")

    with opened(browser, nests) as tab:
        tab.see(".final")
        tab.click(".fold:has-text('Deep')")
        tab.see(".card:has-text('Deep')")


def test_a_script_in_the_page_may_do_no_more_than_the_page(browser: Browser) -> None:
    async def ends(turn: Turn) -> None:
        turn.say("Yes.")

    with opened(browser, ends, clean=False) as tab:
        tab.see(".final")
        # Somebody who has found a way in all the same gets no further.
        for attempt in (
            "document.body.append(Object.assign(document.createElement('img'), {src: 'https://evil.example/x.png'}))",
            "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
            "new Function('return 1')()",
            "void fetch('https://evil.example/').catch(() => {})",
        ):
            try:
                tab.value(attempt)
            except AssertionError as exc:
                assert "Trusted" in str(exc) or "unsafe-eval" in str(exc) or "EvalError" in str(exc)  # noqa: PT017
        problems = " ".join(tab.problems)
        assert "img-src" in problems
        assert "connect-src" in problems
        assert "require-trusted-types-for" in problems
