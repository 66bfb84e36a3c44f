"""A run as HTML: what is on the page, what never gets into it, and how long it can become.

Recorded runs are compared with files that are kept of their pages. ``THINKWELL_WRITE_GOLDEN=1 pytest
tests/notebook`` writes them anew; look at them in a browser.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from types import MappingProxyType
from typing import Any, get_args

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace
from notebook.reading import Page
from progress.golden import check, every_recording, steps
from tried import tried

from thinkwell import events as ev

# Private: what is on a page of HTML, element by element, for views of every kind, which no agent can be
# made to bring about so exactly; what needs a notebook is in the tests of notebooks.
from thinkwell._display.html import FRAME_LIMIT, PAGE_LIMIT, page, pages
from thinkwell._display.html_style import STYLE
from thinkwell._display.items.html import LEAST, to_html
from thinkwell._display.items.nodes import Tag, styled
from thinkwell._display.items.rows import Status
from thinkwell._display.summary import Picture
from thinkwell.errors import AgentExited, ThoughtCancelled
from thinkwell.questions import FieldChoice, FormField
from thinkwell.view import AnswerView, PhaseView, QuestionView, RunView, TimelineItem, TokenCounts, ToolView


def read(view: RunView, **known: Any) -> Page:
    """Return the page of a run, read."""
    return Page(page(Picture(view=view, now=102.0, **known)))


def timeline(*items: str | ToolView) -> dict[str, Any]:
    """Return the parts of a view in which these things happened, in order.

    Texts begin with what they are: ``thought: …``, ``message: …``, ``user: …``, ``turn: 2``.
    """
    texts: dict[str, list[str]] = {"thought": [], "message": [], "user": []}
    tools: dict[str, ToolView] = {}
    order: list[TimelineItem] = []
    for item in items:
        if isinstance(item, ToolView):
            tools[item.id] = item
            order.append(TimelineItem(kind="tool", id=item.id))
            continue
        kind, _, text = item.partition(": ")
        if kind == "turn":
            order.append(TimelineItem(kind="turn", index=int(text)))
            continue
        order.append(TimelineItem(kind=kind, index=len(texts[kind])))  # type: ignore[arg-type]
        texts[kind].append(text)
    return {
        "timeline": tuple(order),
        "tools": MappingProxyType(tools),
        "messages": tuple(texts["message"]),
        "text": "".join(texts["message"]),
        "thought_blocks": tuple(texts["thought"]),
        "user_messages": tuple(texts["user"]),
    }


def told(text: str) -> tuple[ev.ToolContent, ...]:
    return (ev.BlockContent(content=ev.TextContent(text=text)),)


READ = ToolView(
    id="1",
    kind="read",
    title="Read",
    status="completed",
    locations=(ev.Location(path="/proj/models.py"),),
    started_at=1.0,
    ended_at=1.8,
)
EDIT = ToolView(
    id="2",
    kind="edit",
    title="Edit",
    status="completed",
    content=(
        ev.DiffContent(
            path="/proj/a.py", old_text="one = 1\ntwo = 2\n", new_text="one = 1\ntwo = 22\nmore\n"
        ),
    ),
    started_at=2.0,
    ended_at=4.1,
)
RUN = ToolView(
    id="3",
    kind="execute",
    title="pytest -q",
    status="in_progress",
    input={"command": "pytest -q"},
    content=told("1 passed\n" * 9 + "the last line"),
    started_at=5.0,
)

HEAD: dict[str, Any] = {
    "agent": "claude",
    "model": "sonnet",
    "mode": "ask",
    "cwd": "/proj",
    "session_id": "sess-1",
}
WORKING: dict[str, Any] = {**HEAD, "phase": "responding", "phases": (PhaseView(phase="responding", at=1.0),)}
DONE: dict[str, Any] = {
    **HEAD,
    "phase": "completed",
    "stop_reason": "end_turn",
    "phases": (
        PhaseView(phase="starting", seconds=0.4),
        PhaseView(phase="responding", at=0.4, seconds=101.0),
        PhaseView(phase="completed", at=101.4),
    ),
}
FAILED: dict[str, Any] = {**DONE, "phase": "failed"}
CANCELLED: dict[str, Any] = {**DONE, "phase": "cancelled"}


def test_head() -> None:
    view = RunView(**WORKING, **timeline("thought: It is missing.", RUN))
    first = read(view).lines[0]
    for fact in ("claude", "sonnet", "ask", "/proj", "running pytest -q", "1 tool running", "01:42"):
        assert fact in first
    assert read(view, label="the tests").lines[0].startswith("▸the testsclaude · sonnet")
    assert "cancelling" in read(view, cancelling=True).lines[0]
    assert read(RunView()).lines[0].startswith("▸run")


def test_tools() -> None:
    shown = read(RunView(**WORKING, **timeline(READ, EDIT, RUN)))
    assert "✔readmodels.py0.8s" in shown.lines
    assert "✔edita.py+2−12.1s" in shown.lines
    assert "▸runpytest -q1:37" in shown.lines
    assert shown.unfolded == 2  # what was changed, and what goes on
    assert "the last line" in shown.lines
    assert shown.text.count("1 passed") == 4  # the end of what is put out


def test_changes_line_by_line() -> None:
    html = page(Picture(view=RunView(**DONE, **timeline(EDIT)), now=1.0))
    assert re.search("two = (<mark[^>]*>22|2<mark[^>]*>2)</mark>", html)
    assert {"- two = 2", "+ two = 22", "+ more"} <= set(Page(html).lines)
    assert "1 file changed, +2 −1" in Page(html).text


def test_a_failed_tool_is_open_and_says_why() -> None:
    failed = replace(RUN, status="failed", ended_at=6.0, output={"exit_code": 2}, content=told("boom"))
    shown = read(RunView(**DONE, **timeline(failed)))
    assert "✘runpytest -qexit 21.0s" in shown.lines
    assert shown.unfolded == 1
    assert "boom" in shown.lines


def test_consecutive_reads_share_a_line() -> None:
    reads = [
        replace(READ, id=f"r{number}", locations=(ev.Location(path=f"/proj/{number}.py"),))
        for number in range(60)
    ]
    shown = read(RunView(**DONE, **timeline(*reads, EDIT)))
    folded = shown.lines[1]
    assert folded.startswith("✔read0.py, 1.py (+58)")
    assert "✔read49.py0.8s" in shown.lines
    assert "… 10 more calls" in shown.lines


def test_thoughts_are_folded_away_once_they_are_over() -> None:
    thought = "thought: The index is missing.\nSo the join is slow.\nHm."
    going_on = read(RunView(**WORKING, **timeline(thought)))
    assert going_on.lines[-3:-1] == ["So the join is slow.", "Hm."]
    assert "details" not in going_on.elements
    over = read(RunView(**WORKING, **timeline(thought, "message: Done.")))
    assert "details" in over.elements
    assert over.unfolded == 0
    assert "The index is missing." in over.text


def test_the_conversation_in_its_order() -> None:
    view = RunView(
        **DONE, **timeline("turn: 1", "user: Do it.", "message: I did.", "turn: 2", "message: Really.")
    )
    shown = read(view)
    assert shown.lines[1:5] == ["Do it.", "I did.", "turn 2", "Really."]


def test_a_list_begins_where_it_says() -> None:
    html = page(Picture(view=RunView(**DONE, **timeline("message: 3. three\n4. four")), now=1.0))
    assert '<ol start="3">' in html


def test_messages_with_the_commonest_marks() -> None:
    said = (
        "message: # Why\nThe **index** is `missing`: a - b\n- one\n* two\n\n"
        "```python\nx = 1 < 2\n# no heading\n```\n"
        "| a | b |\n|---|---|\n## Then\n## There\n~~~\n```\nnever ended"
    )
    html = page(Picture(view=RunView(**DONE, **timeline(said)), now=1.0))
    assert '<div class="tw-h3">Why</div>' in html
    assert "The <strong>index</strong> is <code>missing</code>: a - b" in html
    assert html.count("<li><p>") == 2
    assert "x = 1 < 2\n# no heading" in Page(html).text
    assert '<span class="tw-comment"># no heading</span></pre>' in html
    assert "<th>a</th><th>b</th>" in html
    assert '<pre class="tw-code">```\nnever ended</pre>' in html
    Page(html)


def test_messages_are_shown_as_they_are_written_where_nothing_can_read_markdown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    shown = read(RunView(**DONE, **timeline("thought: *Hm.*", "message: It is **fine**.\n<b>")), result="`x`")
    assert {"*Hm.*", "It is **fine**.", "<b>", "`x`"} <= set(shown.lines)


def test_a_sub_agents_calls_stand_in_its_place() -> None:
    boss = ToolView(
        id="boss", kind="other", name="Task", title="Look around", status="completed", ended_at=9.0
    )
    calls = [replace(EDIT, id=f"c{number}", parent="boss") for number in range(60)]
    deep = [
        ToolView(id=f"d{number}", kind="think", title="deeper", parent=f"d{number - 1}")
        for number in range(6)
    ]
    shown = read(RunView(**DONE, **timeline(boss, *calls, *deep)))
    assert shown.lines[1].startswith("✔Task")
    assert "… 10 more earlier calls" in shown.lines
    assert shown.text.count("a.py") >= 50
    assert shown.text.count("deeper") == 4
    assert "… 1 more call" in shown.lines


def test_plan() -> None:
    done = [ev.PlanEntry(content=f"done {number}", status="completed") for number in range(98)]
    here = ev.PlanEntry(content="write", status="in_progress")
    rest = [ev.PlanEntry(content=f"step {number}") for number in range(98)]
    short = read(RunView(**WORKING, plan=(done[0], here)))
    assert short.lines[1:4] == ["Plan 1/2▰▰▰▰▰▱▱▱▱▱", "✔done 0", "▸write"]
    long = read(RunView(**WORKING, plan=(*done, here, *rest))).lines
    assert long[1:4] == ["Plan 98/197▰▰▰▰▰▱▱▱▱▱", "… 78 steps before", "✔done 78"]
    at = long.index("▸write")
    assert long[at - 1 : at + 2] == ["✔done 97", "▸write", "·step 0"]
    assert "… 79 more steps" in long
    assert "… 157 steps before" in read(RunView(**WORKING, plan=(*done, *done, here))).text


def test_open_questions() -> None:
    question = QuestionView(
        id="q",
        title="rm -rf build/",
        tool_id="3",
        options=(
            ev.QuestionOption(id="y", name="Allow once", kind="allow_once"),
            ev.QuestionOption(id="n", name="Reject", kind="reject_once"),
        ),
        deadline=154.0,
        verdicts=(ev.QuestionVerdict(id="q", verdict=None, by="supervisor", why="it deletes"),),
    )
    asking = replace(RUN, input={"command": "rm -rf build/"}, status="pending")
    web = QuestionView(id="w", title="Log in", asks="url", url="https://example.org/login")
    form = QuestionView(id="f", title="Fill in", asks="form")
    many = (question, web, *[dataclasses.replace(form, id=str(number)) for number in range(9)])
    shown = read(RunView(**WORKING, **timeline(asking), questions=many))
    for part in ("rm -rf build/", "00:52 left", "supervisor", "it deletes", "https://example.org/login"):
        assert part in shown.text
    assert "… 6 more questions" in shown.lines
    stalled = read(RunView(**WORKING, stalled=ev.Stalled(idle=60.0, limit=120.0)))
    assert "nothing was heard of the agent for 1:00" in shown_text(stalled)


def test_a_form_shows_what_may_be_chosen() -> None:
    choices = (FieldChoice(value="1", title="RS\x1b[1m256"), FieldChoice(value="2", title="<b>"))
    fields = (
        FormField(name="answer", type="choice", choices=choices),
        FormField(name="other", type="string"),
    )
    form = QuestionView(id="f", title="Which?", asks="form", fields=fields)
    shown = read(RunView(**WORKING, questions=(form,)))
    assert "answer (one of these: RS256 · <b>) · other (text)" in shown.lines


def test_a_question_hides_nothing_of_what_it_is_about() -> None:
    places = tuple(ev.Location(path=f"/home/ada/shop/{number}.py") for number in range(9))
    options = tuple(
        ev.QuestionOption(id=str(number), name=f"Choice {number}", kind="allow_once") for number in range(40)
    )
    question = QuestionView(id="q", title="Write\u202e it", tool_id="3", options=options)
    asking = replace(RUN, title="Write", input=None, locations=places, content=(), status="pending")
    shown = read(RunView(**WORKING, **timeline(asking), questions=(question,)))
    assert "\\u202e" in shown.text
    assert "0.py" in shown.text
    assert {f"/home/ada/shop/{number}.py" for number in range(9)} <= set(shown.lines)
    assert any(each.endswith(" more choices") for each in shown.lines)
    asking = replace(asking, locations=places * 20)
    assert "… 80 more files" in read(RunView(**WORKING, **timeline(asking), questions=(question,))).lines
    changes = tuple(ev.DiffContent(path=f"{number}.py", new_text="x\n") for number in range(9))
    writing = replace(asking, locations=(), content=changes)
    shown = read(RunView(**WORKING, **timeline(writing), questions=(question,)))
    assert {f"new {number}.py+1−0" for number in range(9)} <= set(shown.lines)


def shown_text(shown: Page) -> str:
    return " ".join(shown.lines)


def test_answers_stand_with_their_tools() -> None:
    answer = AnswerView(
        id="q", title="pytest -q", tool_id="3", choice="reject_once", by="policy", why="no shell"
    )
    denied = replace(RUN, status="failed", ended_at=6.0, content=())
    shown = read(RunView(**DONE, **timeline(denied), answers=(answer,), denied=("pytest -q",)))
    assert "no shell" in shown.text
    login = AnswerView(id="w", title="Log in", asks="url", choice="decline", by="human", why="not now")
    assert "Log in: declined by human: not now" in read(RunView(**DONE, answers=(login,))).lines
    assert "1 denied" in shown.text


def test_a_denied_call_is_shown_as_denied_and_not_as_run() -> None:
    answer = AnswerView(
        id="q", title="pytest -q", tool_id="3", choice="reject_once", by="policy", why="", answered_at=5.1
    )
    ran = replace(RUN, status="completed", ended_at=6.0, content=())
    shown = read(RunView(**DONE, **timeline(ran), answers=(answer,), denied=("pytest -q",)))
    assert "⊘runpytest -qdenied" in shown.lines
    assert "1 tool" not in shown.text
    again = dataclasses.replace(answer, id="r", choice="allow_once")
    shown = read(RunView(**DONE, **timeline(ran), answers=(answer, again)))
    assert "✔runpytest -q1.0s" in shown.lines
    assert "1 tool" in shown.text


def test_a_result_is_one_row_and_no_tool_call() -> None:
    call = ToolView(id="r", title="thinkwellc1b50d97ab12_return_result", status="completed", ended_at=3.0)
    asked = AnswerView(id="q", title=call.title, tool_id="r", choice="allow_once", by="policy", why="ours")
    attempts = (
        ev.ResultAttempt(accepted=False, errors=("name: missing",), at=1.0),
        ev.ResultAttempt(accepted=True, value={"name": "x"}, at=2.0),
    )
    happened = timeline(READ, call, "message: That is it.")
    items = happened["timeline"]
    happened["timeline"] = (*items[:2], replace(items[2], at=3.0))
    shown = read(RunView(**DONE, **happened, answers=(asked,), attempts=attempts))
    assert "return_result" not in shown.text
    assert "allowed" not in shown.text
    assert "1 tool" in shown.text
    assert shown.text.index("✔result") < shown.text.index("That is it.") < shown.text.index("Result")
    assert shown.text.count("✔result") == 1


def test_result_as_a_table() -> None:
    value = {"name": "x", "lines": ["a", "b"], "deep": {"k": [1, 2]}, "flag": True, "none": None}
    attempts = (
        ev.ResultAttempt(accepted=False, errors=("name: missing",)),
        ev.ResultAttempt(accepted=True, value=value),
    )
    shown = read(RunView(**DONE, attempts=attempts))
    assert "1 refused attempt" in shown.lines
    assert "name: missing" in shown.lines
    assert shown.elements.count("dt") == 6  # with that of the object in it
    assert {"a", "b", "flagboolean", "null"} <= set(shown.lines)
    nothing = (ev.ResultAttempt(accepted=True, value=None),)
    assert "null" in read(RunView(**DONE, attempts=nothing)).lines
    many = json.dumps({f"key{number}": number for number in range(240)})
    assert "… 40 more fields" in read(RunView(**DONE), result=many).text


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("Fine.", "Fine."),
        ("[1, 2]", "\n1\n2\n"),
        ("{}", "{}"),
        ("{broken", "{broken"),
        ("[" * 100_000, "[[["),
        ('{"a": ' * 3_000 + "1" + "}" * 3_000, "{"),
    ],
)
def test_any_result(result: str, expected: str) -> None:
    assert expected in read(RunView(**DONE), result=result).text


def test_a_text_that_was_said_is_not_repeated() -> None:
    shown = read(RunView(**DONE, **timeline("message: Fine.")), result="Fine.\n")
    assert shown.text.count("Fine.") == 1
    shown = read(RunView(**DONE, **timeline('message: {"a": 1}')), result='{"a": 1}')
    assert "Result" not in shown.text
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    shown = read(RunView(**DONE, attempts=(ev.ResultAttempt(accepted=True, value=nested),)))
    assert "nested too deep to be shown" in shown.text


def test_how_it_ended() -> None:
    failed = read(RunView(**FAILED, error=AgentExited(3, "out of memory")))
    assert "✘" in failed.lines[0]
    assert "out of memory" in failed.text
    stopped = read(RunView(**CANCELLED, error=ThoughtCancelled("It was cancelled.")))
    assert "⊘" in stopped.lines[0]
    noticed = read(
        RunView(
            **DONE,
            notices=(
                ev.Notice(severity="warning", title="Slow", description="The model is busy."),
                ev.Notice(severity="info", title="Hello"),
            ),
        )
    )
    assert "warning: Slow: The model is busy." in noticed.lines
    assert "info: Hello" in noticed.lines


def test_sums() -> None:
    view = RunView(
        **DONE,
        **timeline(EDIT),
        turns=2,
        usage=ev.UsageUpdate(used=18_200, size=200_000, cost=ev.Cost(amount=0.06, currency="USD")),
        tokens=TokenCounts(total=22_300, input=18_200, output=4_100, cached_read=16_800),
    )
    shown = read(view, recording="/proj/run.ndjson").text
    for part in (
        "1 tool · 1 file changed, +2 −1 · 2 turns",
        "2 turns",
        "18.2k",
        "$0.06",
        "session sess-1",
        "recorded in /proj/run.ndjson",
    ):
        assert part in shown
    assert "usage not reported" in read(RunView(**DONE)).text


def test_several_runs() -> None:
    done = Picture(view=RunView(**DONE, **timeline("message: Fine.")), now=9.0, label="first")
    failed = Picture(view=RunView(**FAILED, error=RuntimeError("no")), now=9.0, label="second")
    asked = QuestionView(id="w", title="Log in", asks="url", url="https://example.org/login")
    used = ev.UsageUpdate(used=18_200, size=200_000)
    working = Picture(view=RunView(**WORKING, questions=(asked,), usage=used), now=9.0, label="third")
    shown = Page(pages([done, working, failed]))
    rows = [row for row in shown.lines if row.endswith("00:09")]
    assert rows[0] == "✘secondfailed00:09"
    assert "✔firstdone00:09" in rows
    assert rows[-1] == "▸thirdwaiting for an answer · 18.2k/200k ctx00:09"
    assert shown.lines[-2:] == ["https://example.org/login", "It leads to example.org."]
    assert "Fine." in shown.text
    assert "Fine." not in Page(pages([done] * 60)).text  # so many have no room but for a row
    assert "4000 runs" in Page(pages([working] * 4_000)).text


HOSTILE = [
    "</style></div><script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "\" onmouseover=alert(1) x='",
    "<!-- <![CDATA[ <?php ]]> -->",
    "&lt;script&gt; &amp; &#60;",
    "](javascript:alert(1)) ![x](https://example.org/x.png)",
    "`<b>` **<i>** ```<u>",
    "\x1b]8;;https://example.org\x07link\x1b[31m\x00\u202etxt",
    "\ud800 \U000e0041",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_an_agent_sends_becomes_an_element(text: str) -> None:
    tool = ToolView(
        id=text,
        title=text,
        name=text,
        kind="other",
        status="failed",
        input={text: text},
        output={text: text},
        content=(*told(f"{text}\n```\n{text}"), ev.DiffContent(path=text, old_text=text, new_text=text * 2)),
        locations=(ev.Location(path=text),),
        ended_at=1.0,
    )
    runs = replace(
        tool, id="run", kind="execute", input={"command": text}, ended_at=None, status="in_progress"
    )
    question = QuestionView(
        id="q",
        title=text,
        tool_id="run",
        url=text,
        options=(ev.QuestionOption(id=text, name=text, kind=text),),
        verdicts=(ev.QuestionVerdict(id="q", verdict=text, by=text, why=text),),
    )
    view = RunView(
        **timeline(
            tool, runs, f"thought: {text}", f"user: {text}", f"message: {text}\n```{text}\n{text}", "turn: 2"
        ),
        agent=text,
        model=text,
        mode=text,
        cwd=text,
        session_id=text,
        plan=(ev.PlanEntry(content=text),),
        questions=(question, dataclasses.replace(question, id="w", asks="url")),
        answers=(AnswerView(id="a", title=text, tool_id=text, choice=text, by=text, why=text),),
        attempts=(
            ev.ResultAttempt(accepted=False, errors=(text,)),
            ev.ResultAttempt(accepted=True, value={text: [text]}),
        ),
        notices=(ev.Notice(severity=text, title=text, description=text),),
        usage=ev.UsageUpdate(used=1, size=2, cost=ev.Cost(amount=1.0, currency=text)),
        phases=(PhaseView(phase="installing", detail=text),),
        phase="installing",
    )
    for phase in ("installing", "responding", "failed", "completed"):
        seen = dataclasses.replace(view, phase=phase, error=RuntimeError(text) if phase == "failed" else None)
        html = page(Picture(view=seen, now=1.0, label=text, recording=text))
        Page(html)
        Page(pages([Picture(view=seen, now=1.0, label=text, result=text)] * 2))
        html.encode()
        assert not set(html) & set(map(chr, [*range(9), *range(11, 32), 0x7F, 0x202E]))


@pytest.mark.parametrize("count", [200, pytest.param(5_000, marks=pytest.mark.long)])
def test_the_longest_run_has_a_bounded_page(count: int) -> None:
    long = "&" * 2_000
    calls = [
        replace(
            EDIT,
            id=str(number),
            title=long,
            locations=(ev.Location(path=long),),
            content=(
                *told(long),
                ev.DiffContent(path=f"/{number}", old_text="a\n" * 100, new_text="&\n" * 100),
            ),
        )
        for number in range(count)
    ]
    texts = [f"{kind}: {'<&>' * (20 * count)}" for kind in ("thought", "message", "user") for _ in range(6)]
    view = RunView(
        **timeline(*texts[:9], *calls, *texts[9:]),
        **DONE,
        plan=tuple(ev.PlanEntry(content=long) for _ in range(count)),
        questions=tuple(QuestionView(id=str(number), title=long, url=long * 10) for number in range(count)),
        attempts=(
            *(ev.ResultAttempt(accepted=False, errors=(long,) * 100) for _ in range(count // 10)),
            ev.ResultAttempt(accepted=True, value={long + str(number): long for number in range(count // 5)}),
        ),
        notices=tuple(ev.Notice(severity=long, title=long) for _ in range(count // 5)),
        error=RuntimeError(long * 100),
    )
    for limit in (PAGE_LIMIT, FRAME_LIMIT, 10_000):
        html = page(Picture(view=view, now=1.0, label=long), limit=limit)
        assert limit / 2 < len(html) <= limit
        assert "earlier steps are not shown" in Page(html).text
        many = pages([Picture(view=view, now=1.0, label=long)] * 10, limit=limit)
        Page(many)
        assert len(many) <= limit


TEXTS = st.text(st.sampled_from("<>&\"'`=/ !-;x\n\u202e\ud7ff"), max_size=40)
WORDS = st.lists(st.sampled_from(("card", "open", "button", "tw", "in_progress", '"><script>')), max_size=3)
TAGS = sorted({*get_args(Tag), "script", "style", "iframe"} - {"mark", "meter", "time", "lines"})


def elements(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return elements of all kinds, some with attributes, with these in them."""
    looks = WORDS.map(" ".join)
    links = st.fixed_dictionaries({"href": TEXTS, "start": TEXTS | st.integers(0, 9), "data": TEXTS})
    own = st.tuples(st.sampled_from(TAGS), looks, inner, inner)
    with_attributes = st.tuples(st.sampled_from(TAGS), looks, links, inner)
    mark = st.tuples(st.just("mark"), st.sampled_from(get_args(Status)))
    shares = st.fixed_dictionaries({"value": st.floats(0, 1), "since": st.floats(0, 1)})
    measure = st.tuples(st.sampled_from(("meter", "time")), looks, shares)
    styled_lines = st.lists(st.tuples(TEXTS, looks)).map(styled)
    return own | with_attributes | mark | measure | styled_lines


@tried(st.recursive(TEXTS, elements, max_leaves=20), st.integers(0, 400), few=100)
def test_whatever_a_node_holds_is_printed_as_elements_of_ours_and_texts(node: Any, limit: int) -> None:
    """What has no room is said to be missing."""
    whole = to_html(node, 100_000)
    assert "more is not shown" not in whole
    Page(whole)
    part = to_html(node, limit)
    assert len(part) <= limit
    if len(whole) > limit >= LEAST:
        assert "more is not shown" in Page(part).text


@tried(TEXTS)
def test_a_text_is_printed_as_it_is(text: str) -> None:
    assert "".join(Page(to_html(("span", "", text), 100_000)).text) == text


def drawn(name: str, moment: int = -1) -> str:
    """Return the page of a recorded run as it stood at one of its moments."""
    shown = steps(name)[moment]
    picture = Picture(
        view=shown.view, now=shown.now, label=shown.label, result=shown.result, recording=shown.recording
    )
    return page(picture, limit=FRAME_LIMIT)


@every_recording
def test_the_page_of_a_recorded_run(name: str) -> None:
    html = drawn(name)
    Page(html)
    lines = html.replace(STYLE, "").replace("<div", "\n<div").replace("<details", "\n<details")
    check(name, "page", None, lines.strip() + "\n", suffix="html")


@every_recording
def test_every_moment_of_a_recorded_run_is_a_page(name: str) -> None:
    for moment in range(len(steps(name))):
        html = drawn(name, moment)
        Page(html)
        assert len(html) <= FRAME_LIMIT
