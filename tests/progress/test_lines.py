"""Lines that are only ever added to."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from typing import TYPE_CHECKING

import msgspec
import pytest
from progress.golden import check, every_recording, every_width, final, steps, together
from progress.stage import Lines, State, Story

from thinkwell import FormField, RunView, ViewReducer
from thinkwell import events as ev
from thinkwell.questions import FieldChoice
from thinkwell.view import TimelineItem

if TYPE_CHECKING:
    from collections.abc import Sequence


def written(*looks: Sequence[State], **options: bool | int | None) -> str:
    out = StringIO()
    lines = Lines(out, **options)
    for look in looks[:-1]:
        lines.draw(*look)
    lines.finish(*looks[-1])
    return out.getvalue()


@every_width
@every_recording
def test_golden(name: str, width: int) -> None:
    runs = [(shown,) for shown in steps(name)]
    check(name, "lines", width, written(*runs, width=width))


@every_width
def test_several_runs(width: int) -> None:
    check("several", "lines", width, written(*together("rich", "nested", "died"), width=width))


@every_recording
def test_logs_without_a_width(name: str) -> None:
    runs = [(shown,) for shown in steps(name)]
    check(name, "lines", None, written(*runs, verbose=True, github=True))


def test_nothing_is_said_twice_and_nothing_without_news() -> None:
    out = StringIO()
    lines = Lines(out, width=100)
    for shown in steps("rich"):
        lines.draw(shown)
        length = len(out.getvalue())
        lines.draw(shown)
        assert len(out.getvalue()) == length
    lines.finish(final("rich"))
    length = len(out.getvalue())
    lines.finish(final("rich"))
    lines.leave()
    assert len(out.getvalue()) == length


def test_a_run_that_is_silent_for_long_says_that_it_goes_on() -> None:
    story = Story().after(2).begin("t", title="`pytest -q`")
    out = StringIO()
    lines = Lines(out)
    lines.draw(story.now)
    length = len(out.getvalue())
    for _ in range(100):
        lines.draw(story.now)
        story.after(1)
    assert out.getvalue()[length:].splitlines() == [
        f"[phase]  running pytest -q, {so_far} so far" for so_far in ("32s", "1:02", "1:32")
    ]


def test_cancelling() -> None:
    shown = steps("cancelled")[-2]
    out = written(
        (shown,),
        (replace(shown, cancelling=True),),
        (replace(shown, cancelling=True, killed=True),),
        (final("cancelled"),),
    )
    assert out.count("[phase]  cancelling\n") == out.count("[phase]  killed\n") == 1


def test_left_before_its_end() -> None:
    assert "[done]   left while it goes on, after 6.3s · 1 tool\n" in written(
        (replace(steps("cancelled")[-2], now=6.3),)
    )


def test_keys_of_the_question_that_the_keyboard_answers() -> None:
    shown = next(step for step in steps("rich") if step.view.questions)
    question = shown.view.questions[0].id
    out = written(
        (shown,),
        (replace(shown, asking=question),),
        (replace(shown, asking=question, problem="there is no key x"),),
        (replace(shown, asking=question, problem="there is no key x"),),
        (replace(shown, asking=question),),
        (replace(shown, asking=question, problem="there is no key z"),),
    )
    keys = "[ask]      [y] once  [a] always: Always allow pytest  [n] no  [e] explain\n"
    assert out.count(keys) == out.count("there is no key x") == out.count("there is no key z") == 1
    assert out.count("permission: Run the tests") == 1


def test_everything_is_explained() -> None:
    shown = next(step for step in steps("rich") if step.view.questions)
    asked = replace(shown, asking=shown.view.questions[0].id)
    out = written((asked,), (replace(asked, explained=1),), (replace(asked, explained=1),))
    assert out.count("[ask]      Input:\n[ask]        {\n") == 1
    assert "Input:" not in written((asked,))


def test_a_log_that_knows_no_other_characters() -> None:
    out = TextIOWrapper(BytesIO(), "ascii")
    Lines(out, width=100).finish(final("hostile"))
    out.seek(0)
    text = out.read()
    assert "[tool]   ok edit constants.py  +400 -400  0.2s\n" in text
    assert "\\u6570\\u636e" in text


def test_github_takes_no_commands_from_agents() -> None:
    view = RunView(
        agent="a",
        phase="responding",
        messages=("::set-env name=A::b\n##[add-mask]all\n\n##[command]rm",),
        timeline=(TimelineItem(kind="message"),),
    )
    text = written((State(label="a", view=view, now=1),), github=True)
    assert "##[" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


def view_of(*events: ev.ThoughtEvent) -> RunView:
    reducer = ViewReducer(agent="mine")
    reducer.apply(events)
    return reducer.snapshot()


def rows(*events: ev.ThoughtEvent, now: float = 9.0, **options: bool | int | None) -> list[str]:
    """What is written of these events, without the first line and the end."""
    lines = written((State(label="a", view=view_of(*events), now=now),), **options).splitlines()
    end = next(index for index, line in enumerate(lines) if line.startswith("[usage]"))
    return lines[1:end]


def test_phases_before_the_first_token() -> None:
    assert rows(
        ev.PhaseChanged(phase="launching", at=-8.0, seconds=0.1),
        ev.PhaseChanged(phase="installing", detail="npm package x", at=-7.9, seconds=7.5),
        ev.PhaseChanged(phase="authenticating", at=0.4),
    ) == ["[phase]  installing npm package x (7.5s)", "[phase]  waiting for login"]


def test_stalls() -> None:
    events: tuple[ev.ThoughtEvent, ...] = (
        ev.PhaseChanged(phase="responding"),
        ev.Stalled(idle=30, limit=60, at=30),
        ev.Message(text="x", at=31),
        ev.Stalled(idle=30, limit=60, at=61),
    )
    looks = [(State(label="a", view=view_of(*events[:n]), now=61),) for n in (1, 2, 2, 3, 4)]
    told = "[phase]  nothing heard for 30s; it is cancelled after 1:00\n"
    assert written(*looks).count(told) == 2


def test_what_the_user_said_and_refusals_and_notices() -> None:
    assert rows(
        ev.UserMessage(text="do\nit"),
        ev.ResultAttempt(accepted=False, errors=tuple(f"wrong {n}" for n in range(7)), at=1),
        ev.ResultAttempt(accepted=False, at=2),
        ev.Notice(severity="info", title="t", at=3),
    ) == [
        "[result] refused: wrong 0",
        *(f"[result]   wrong {n}" for n in range(1, 5)),
        "[result]   … and 2 more",
        "[result] refused: it is not valid",
        "[note]   info: t",
        "[user]   do",
        "[user]   it",
    ]


def test_forms_and_pages() -> None:
    fields = (
        FormField(name="n", type="integer", minimum=1, maximum=9, required=True),
        FormField(
            name="c",
            type="choice",
            choices=(FieldChoice(value="1", title="one\x1b[1m\n"), FieldChoice(value="2", title="two")),
        ),
    )
    asked = rows(
        ev.QuestionAsked(id="1", title="Who?", asks="form", fields=fields),
        ev.QuestionAsked(id="2", title="Log in", asks="url", url="https://пример.example/x"),
        ev.QuestionAsked(id="3", title="Log in", asks="url", url="mailto:x"),
    )
    assert asked == [
        "[ask]    form: Who?",
        "[ask]      n: whole number, 1 to 9, required",
        "[ask]      c: one of these",
        "[ask]        one · two",
        "[ask]    open a web page: Log in",
        "[ask]      https://пример.example/x",
        "[ask]      which leads to xn--e1afmkfd.example",
        "[ask]    open a web page: Log in",
        "[ask]      mailto:x",
        "[ask]      which leads to an unknown host",
    ]


def test_a_question_about_a_change_and_arguments() -> None:
    diff = ev.DiffContent(path="/p/a.py", old_text="a\n", new_text="b\n")
    asked = rows(
        ev.ToolStart(id="t", kind="edit", title="Edit", content=(diff,)),
        ev.QuestionAsked(
            id="1",
            title="Edit?",
            tool_id="t",
            options=(ev.QuestionOption(id="o", name="Yes", kind="allow_once"),),
        ),
        ev.ToolStart(id="u", name="deploy", title="deploy", input={"to": "all"}),
        ev.QuestionAsked(id="2", title="Deploy?", tool_id="u"),
    )
    assert asked[-8:] == [
        "[ask]    permission: Edit? (edit /p/a.py)",
        "[ask]    /p/a.py +1 −1",
        "[ask]      - a",
        "[ask]      + b",
        "[ask]    permission: Deploy? (deploy)",
        "[ask]      {",
        '[ask]        "to": "all"',
        "[ask]      }",
    ]


def test_a_question_says_what_it_leaves_out() -> None:
    old = "".join(f"{number}\n" for number in range(100))
    diff = ev.DiffContent(path="/p/a.py", old_text=old, new_text=old.replace("7\n", "x" * 1_200 + "\n"))
    story = Story().begin("t", "edit", title="Edit", content=(diff,)).ask(tool_id="t")
    out = written((story.asking(),), width=60).splitlines()
    assert sum(row.count("x") for row in out) >= 5 * 498
    assert "[ask]      … 5 more hunks" in out
    assert any("701 more characters" in row for row in out)
    assert out[out.index("[ask]      that is not all of it: [e] shows the rest") + 1].endswith("[e] explain")
    files = tuple(ev.Location(path=f"/p/{number}") for number in range(101))
    story = Story().tell(ev.ToolStart(id="t", kind="delete", locations=files)).ask(tool_id="t")
    out = written((story.asking(),)).splitlines()
    assert "[ask]      /p/99" in out
    assert "[ask]      … 1 more file" in out
    assert "[ask]      that is not all of it: [e] shows the rest" in out


def test_a_question_that_is_changed_is_told_again() -> None:
    story = Story().begin("a", input={"command": "one"}).ask(tool_id="a")
    first = story.asking()
    story.tell(ev.ToolUpdate(id="a", input={"command": "two"}))
    out = written((first,), (story.asking(),), (story.end("a").asking(),)).splitlines()
    begin = out.index("[ask]    the agent has changed what it asks:")
    assert out[begin:][1:5] == [
        "[ask]    permission: May I?",
        "[ask]      $ two",
        "[ask]      denied in 1:00, unless it is answered",
        "[ask]      [y] once  [n] no  [e] explain",
    ]
    assert sum("two" in row for row in out) == 1 + sum("run two" in row for row in out)


def test_a_call_without_arguments_is_told_exactly() -> None:
    told = written((Story().begin("a", title="deploy\u200b").ask(tool_id="a").asking(),))
    assert "[ask]    permission: May I? (run deploy)\n[ask]      deploy\\u200b\n" in told
    told = written((Story().begin("a", title="deploy").ask(tool_id="a").asking(),))
    assert "[ask]    permission: May I? (run deploy)\n[ask]      denied" in told


def test_a_title_is_shown_as_it_is_where_nothing_else_tells() -> None:
    out = written((Story().ask(title="Delete\u200b all\nof it?").asking(),)).splitlines()
    assert out[out.index("[ask]      Delete\\u200b all") + 1] == "[ask]      of it?"


def test_a_plan_that_is_taken_back() -> None:
    entries = (ev.PlanEntry(content="a"),)
    assert [
        row for row in growing(ev.PlanUpdate(entries=entries), ev.PlanUpdate(removed=True)) if "plan" in row
    ] == [
        "[plan]   0/1  · a",
        "[plan]   taken back",
    ]


def growing(*events: ev.ThoughtEvent) -> list[str]:
    """What is written where each event is drawn."""
    looks = [(State(label="a", view=view_of(*events[:n]), now=n),) for n in range(1, len(events) + 1)]
    return written(*looks).splitlines()


def test_very_much_at_once() -> None:
    events: list[ev.ThoughtEvent] = []
    for number in range(300):
        events.append(ev.ToolStart(id=str(number), kind="execute", title=str(number)))
        events.append(ev.ToolDone(id=str(number), status="completed"))
    told = rows(*events)
    assert told[0] == "[note]   … 100 more things happened"
    assert told[-1] == "[tool]   ✔ run 299  0.0s"


def test_turns_have_no_rows() -> None:
    first, second = (ev.Message(text=name, message_id=name) for name in "ab")
    told = rows(ev.TurnStarted(number=1), first, ev.TurnStarted(number=2), second)
    assert told == ["[say]    a", "[say]    b"]


def test_several_files_in_one_call_and_a_call_that_has_not_ended() -> None:
    diffs = tuple(ev.DiffContent(path=f"/p/{name}", new_text="x\n") for name in "ab")
    told = rows(
        ev.ToolStart(id="t", kind="edit", title="Edit"),
        ev.ToolDone(id="t", status="completed", content=diffs),
        ev.ToolStart(id="u", kind="execute", title="go", status="in_progress"),
        ev.PhaseChanged(phase="completed"),
    )
    assert told == [
        "[tool]   ✔ edit /p/a, /p/b  +2  0.0s",
        "[diff]   /p/a +1 −0",
        "[diff]        1 + x",
        "[diff]   /p/b +1 −0",
        "[diff]        1 + x",
        "[tool]   ▸ run go  not ended",
    ]


def test_a_tool_that_fails_without_a_word() -> None:
    told = rows(
        ev.ToolStart(id="t", kind="execute", title="go"), ev.ToolDone(id="t", status="failed", output="\n\n")
    )
    assert told == ["[tool]   ✘ run go  failed  0.0s"]


def test_an_unknown_encoding() -> None:
    class Odd(StringIO):
        encoding = "klingon"

    out = Odd()
    with pytest.raises(LookupError):
        "x".encode(out.encoding)
    Lines(out).finish(replace(final("died"), result="é"))
    assert "[tool]   - run pytest -x -q  cancelled  4.0s\n" in out.getvalue()


def test_an_error_without_advice() -> None:
    view = replace(final("died").view, error=OSError("full"))
    told = written((replace(final("died"), view=view),))
    assert "[done]   error: OSError: full\n" in told
    assert "next:" not in told


def test_what_was_said_of_a_question_before() -> None:
    asked = rows(
        ev.QuestionAsked(id="1", title="Delete?"),
        ev.QuestionVerdict(id="1", verdict=None, by="supervisor", why="unsure"),
    )
    assert asked == ["[ask]    permission: Delete?", "[ask]      supervisor: no answer (unsure)"]


def test_a_plan_of_which_only_the_priority_changes_is_told_once() -> None:
    entry = ev.PlanEntry(content="one", status="pending", priority="low")
    first = Story().tell(ev.PlanUpdate(entries=(entry,))).now
    second = Story().tell(ev.PlanUpdate(entries=(msgspec.structs.replace(entry, priority="high"),))).now
    assert written((first,), (second,)).count("[plan]") == 1


def test_options_without_a_key() -> None:
    options = tuple(ev.QuestionOption(id=str(n), name=f"option {n}", kind="other") for n in range(12))
    out = written((Story().ask(options=options).asking(),))
    assert "[ask]      3 more options without a key\n" in out
