"""One run in a terminal, as it looks there."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress.golden import check, every_recording, every_width, steps
from progress.stage import CWD, LiveTerminal, State, Story
from progress.terminal import controls

from thinkwell import errors
from thinkwell import events as ev
from thinkwell.questions import FieldChoice, FormField
from thinkwell.view import TokenCounts

if TYPE_CHECKING:
    from types import FrameType


class Live(LiveTerminal):
    """A terminal on which one run is drawn."""

    @property
    def zone(self) -> list[str]:
        """The live zone, without the empty row above it."""
        rows = self.live
        return rows[1:] if rows and not rows[0] else rows


@pytest.fixture
def live() -> Live:
    return Live()


def asked(shown: State) -> State:
    """Return a run whose questions are answered by the keyboard."""
    return replace(shown, asking=shown.view.questions[0].id if shown.view.questions else None)


# The recordings


@every_width
@every_recording
def test_golden(name: str, width: int) -> None:
    live = Live(width)
    looks = steps(name)
    screens: list[str] = []
    every = max(len(looks) // 12, 1)
    for number, shown in enumerate(looks):
        live.draw(asked(shown))
        if number % every == 0:
            screens.append(f"=== {shown.now:.1f}\n" + "\n".join(live.zone))
    screens.append("=== the end\n" + "\n".join(live.finish(looks[-1])))
    check(name, "live", width, "\n".join(screens) + "\n")


@pytest.mark.parametrize("lines", [2, 6, 12, 24, 40, 90])
@every_recording
def test_the_live_zone_has_a_third_of_the_terminal(name: str, lines: int) -> None:
    live = Live(lines=lines)
    for shown in steps(name)[::5]:
        live.draw(asked(shown))
        assert 0 < len(live.live) <= max(lines // 3, 1)


@pytest.mark.parametrize("columns", [1, 2, 5, 11, 25, 200])
@every_recording
def test_any_width_will_do(name: str, columns: int) -> None:
    live = Live(columns)
    for shown in steps(name)[::9]:
        live.draw(asked(shown))
    live.finish(steps(name)[-1])
    assert all(len(row) <= columns for row in live.terminal.rows)


@pytest.mark.parametrize("verbose", [False, True])
@every_recording
def test_nothing_of_an_agent_controls_the_terminal(name: str, verbose: bool) -> None:
    live = Live(verbose=verbose)
    for shown in steps(name):
        live.draw(asked(shown))
    live.finish(steps(name)[-1])
    assert controls(live.terminal.bytes) == set()
    assert "]8;" not in live.terminal.bytes


@every_recording
def test_a_frame_is_one_write_and_an_equal_one_none(name: str) -> None:
    live = Live()
    for shown in steps(name):
        before = len(live.terminal.writes)
        live.draw(shown)
        written = len(live.terminal.writes)
        assert written - before <= 1
        live.draw(shown)
        assert len(live.terminal.writes) == written


def test_resizes_leave_no_rubbish() -> None:
    live = Live(100)
    for number, shown in enumerate(steps("rich")):
        live.draw(asked(shown))
        live.terminal.resize((100, 61, 140, 80)[number % 4], (30, 24, 40)[number % 3])
    rows = live.finish(steps("rich")[-1])
    for once in ("I will look at the models", "was not valid", "the plan has changed", "✔ done in"):
        assert sum(once in row for row in rows) == 1, once


# What goes on


def test_the_header_tells_what_runs_where_and_for_how_long(live: Live) -> None:
    story = Story(label="refactor")
    story.tell(ev.SessionOpened(agent="claude", session_id="s", cwd="/w/shop", model="sonnet", mode="plan"))
    live.draw(story.after(102).begin("a").begin("b").now)
    assert live.zone[0] == " refactor · claude · sonnet · [plan] · /w/… 01:42  ◑ 2 tools"


def test_home_is_written_as_shells_do(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    live.draw(Story().now)
    assert live.zone[0].startswith(" claude · ~/shop  ")
    monkeypatch.setenv("HOME", CWD)
    live.draw(Story().now)
    assert live.zone[0].startswith(" claude · ~  ")


def test_before_the_first_token_the_phase_is_told(live: Live) -> None:
    story = Story()
    live.draw(story.phase("installing", "npm package x").after(2).now)
    assert live.zone[1] == " ◑ installing npm package x …"
    live.draw(story.after(5).now)
    assert live.zone[1] == " ◒ installing npm package x …                             7s"
    live.draw(story.phase("prompted").now)
    assert live.zone[1] == " ◒ waiting for the first token …"


def test_without_any_phase(live: Live) -> None:
    shown = Story().now
    live.draw(replace(shown, view=replace(shown.view, phases=(), phase="starting")))
    assert live.zone[1] == " ◐ opening a session …"


def test_cancelling_is_told(live: Live) -> None:
    story = Story().begin("a")
    live.draw(replace(story.now, cancelling=True))
    assert " ⊘ cancelling   Ctrl-C again kills the agent" in live.zone
    live.draw(replace(story.now, cancelling=True, killed=True))
    assert " ⊘ killing the agent" in live.zone


def test_silence_is_told(live: Live) -> None:
    live.draw(Story().tell(ev.Stalled(idle=60, limit=120)).now)
    assert live.zone[1] == " ◐ nothing heard for 1:00 …"


def test_of_thoughts_the_last_rows_are_shown(live: Live) -> None:
    live.draw(Story().think("First.\n" + "I think\tso " * 30 + "the end.").now)
    assert len(live.zone) == 3
    assert live.zone[1].startswith(" ┆ ")
    assert "so the end." in live.zone[2]
    assert live.zone[2].endswith("(thinking)")


def test_of_what_is_said_the_last_rows_are_shown(live: Live) -> None:
    story = Story().say("word " * 200 + "end")
    live.draw(story.now)
    assert live.zone[-1].endswith("end▌")
    assert len(live.zone) == 9
    live.draw(story.say("\n\n```c\nint a;\nint b").now)
    assert live.zone[1:] == ["   int a;", "   int b▌"]


def test_a_call_that_goes_on_shows_its_output(live: Live) -> None:
    story = Story().begin("a", title="pytest -q").put_out("a", "\n".join(map(str, range(20))))
    live.draw(story.begin("b", "edit", path="x.py").after(37).now)
    assert live.zone[1:] == [
        " ▸ edit    x.py                                          37s",
        " ▸ run     pytest -q                                     37s",
        *(f"     {number}" for number in range(15, 20)),
    ]
    live.draw(story.put_out("a", "\x1b[1mred\x1b[0m\x1b[3").now)
    assert live.zone[-1] == "     red"


def test_of_many_calls_the_last_are_shown(live: Live) -> None:
    story = Story()
    for number in range(30):
        story.begin(f"{number}")
    live.draw(story.now)
    assert live.zone[0].endswith("◐ 30 tools")
    assert [row.split()[2] for row in live.zone[1:]] == [f"{number}" for number in range(22, 30)]


def test_a_sub_agent_is_one_row(live: Live) -> None:
    story = Story().begin("task", "think", title="Look around")
    story.begin("a", "read", path="a.py", parent="task").end("a").begin(
        "b", "read", path="b.py", parent="task"
    )
    live.draw(story.put_out("b", "text").now)
    assert live.zone == [
        " claude · /home/ada/shop                     00:00  ◐ 1 tool",
        " ▸ think   Look around                    2 calls · b     0s",
    ]
    story.tell(ev.SubagentText(agent="task", text="I look.\nBoth are fine.\n"))
    live.draw(story.now)
    assert live.zone[1] == " ▸ think   Look around       2 calls · Both are fine.     0s"
    rows = live.draw(story.end("b").end("task").now)
    assert rows[:1] == [" ✔ think   Look around       2 calls · Both are fine.   0.0s"]


def test_a_plan_that_fits_is_one_row(live: Live) -> None:
    live.draw(Story().plan("read", "write", "test", done=1).now)
    assert live.zone[1] == " plan  ✔ read   ▸ write   · test                         1/3"


def test_of_a_long_plan_the_steps_around_the_current_one_are_shown(live: Live) -> None:
    steps_ = [f"the step with the number {number}" for number in range(9)]
    live.draw(Story().plan(*steps_, done=4).now)
    assert live.zone[1:] == [
        " plan  …  ▸ the step with the number 4  …                4/9",
        "   · the step with the number 5",
        "   · the step with the number 6",
        "   · the step with the number 7",
        "   · the step with the number 8",
        " ◐ working …",
    ]


@pytest.mark.parametrize(
    ("used", "bar"), [(0, "────────"), (100_000, "━━━━────"), (150_000, "━━━━━━──"), (190_000, "━━━━━━━━")]
)
def test_usage_is_shown_as_far_as_it_is_reported(live: Live, used: int, bar: str) -> None:
    story = Story()
    live.draw(story.now)
    assert len(live.zone) == 2
    live.draw(story.tell(ev.UsageUpdate(used=used, size=200_000)).now)
    assert live.zone[-1].startswith(f" {bar} ")
    view = replace(story.view, usage=None, tokens=TokenCounts(input=10, output=5))
    live.draw(replace(story.now, view=view))
    assert live.zone[-1] == " 10 in · 5 out"


# What is settled


def settled(*stories: Story, columns: int = 60, **options: Any) -> list[str]:
    live = Live(columns, lines=3, **options)
    for story in stories:
        live.draw(story.now)
    return [row for row in live.terminal.everything if row not in [*live.zone, ""]]


def test_a_failed_call_shows_the_end_of_its_output() -> None:
    story = Story().begin("a", title="make").end("a", "failed", "\n\n".join(map(str, range(9))))
    assert settled(story) == [
        " ✘ run     make                                         0.0s",
        *(f"     {number}" for number in range(4, 9)),
    ]


def test_other_calls_show_theirs_with_verbose() -> None:
    story = Story().begin("a", title="make").end("a", text="fine")
    assert settled(story) == [" ✔ run     make                                         0.0s"]
    assert settled(story, verbose=True)[1:] == ["     fine"]


def test_reads_in_a_row_are_one_row() -> None:
    story = Story().read("a.py", "b.py", "c.py").begin("x")
    assert settled(story) == [" ✔ read    a.py, b.py (+1)                              0.0s"]
    assert len(settled(story, verbose=True)) == 4


def diff(path: str, old: str | None, new: str) -> ev.DiffContent:
    return ev.DiffContent(path=f"{CWD}/{path}", old_text=old, new_text=new)


def test_a_change_shows_its_first_hunk() -> None:
    old = "".join(f"line {number}\n" for number in range(40))
    new = old.replace("line 3\n", "line three\n").replace("line 30\n", "")
    story = Story().begin("a", "edit", path="x").end("a", content=(diff("x", old, new),))
    assert settled(story) == [
        " ✔ edit    x                                    +1 −2   0.0s",
        "      2   line 1",
        "      3   line 2",
        "      4 - line 3",
        "      4 + line three",
        "      5   line 4",
        "      6   line 5",
        "         … 1 more hunk",
    ]


def test_changes_of_several_files_show_the_first_of_them() -> None:
    content = tuple(diff(f"{name}.py", None, "\n\na\n") for name in "abcde")
    story = Story().begin("a", "edit").end("a", content=content)
    assert settled(story)[1:6] == [
        "     a.py  +3  new file",
        "      1 +",
        "      2 +",
        "      3 + a",
        "     b.py  +3  new file",
    ]
    assert settled(story)[-1] == "     … 2 more files"


def test_empty_rows_around_a_hunk_are_left_out() -> None:
    story = Story().begin("a", "edit").end("a", content=(diff("x", "\n\nold\n\n\n", "\n\nnew\n\n\n"),))
    assert settled(story)[1:] == ["        - old", "        + new"]


def test_of_the_calls_of_a_sub_agent_those_that_failed_are_shown() -> None:
    story = Story().begin("task")
    for number in range(20):
        id_ = f"c{number}"
        story.begin(id_, parent="task").end(id_, "failed" if number == 3 else "completed")
    rows = settled(story.end("task"))
    assert [row.split()[2] for row in rows] == ["task", "c3"]
    assert len(settled(story, verbose=True)) == 21


def test_short_thoughts_are_not_mentioned() -> None:
    live = Live(lines=3)
    story = Story().think("Hm.")
    live.draw(story.now)
    live.draw(story.after(0.4).begin("a").now)
    live.draw(story.think("Hm.").now)
    live.draw(story.after(12).begin("b").now)
    assert " ┆ thought for 12s" in live.terminal.everything
    assert sum("thought" in row for row in live.terminal.everything) == 1


def test_thoughts_are_told_whole_with_verbose() -> None:
    story = Story().think("One.\nTwo. " + "word " * 20).begin("a")
    assert settled(story, verbose=True) == [
        " ┆ One.",
        " ┆ Two. word word word word word word word word word word",
        " ┆ word word word word word word word word word word",
    ]


def test_answers_refusals_notices_and_turns() -> None:
    story = (
        Story().begin("a", title="rm -rf /").ask(tool_id="a").answer(choice="reject_once", by="supervisor")
    )
    story.after(1).ask("r").answer("r", None, by="cancel").after(1)
    wrong = tuple(f"field {number}: {'wrong ' * 12}" for number in range(5))
    story.tell(ev.ResultAttempt(accepted=False, errors=wrong, at=2))
    story.tell(ev.Notice(severity="warning", title="Disk", description="full", at=3))
    story.tell(ev.TurnStarted(number=2)).begin("b")
    assert settled(story) == [
        " ✘ asked   run rm -rf /",
        "         → denied by supervisor",
        " ⊘ asked   May I?",
        "         → withdrawn",
        " ✘ result  was not valid; the agent was told why",
        "     field 0: wrong wrong wrong wrong wrong wrong wrong",
        "     wrong wrong wrong wrong wrong",
        "     field 1: wrong wrong wrong wrong wrong wrong wrong",
        "     wrong wrong wrong wrong wrong",
        "     field 2: wrong wrong wrong wrong wrong wrong wrong",
        "     wrong wrong wrong wrong wrong",
        " ! Disk: full",
        " ↻ turn 2",
    ]


def test_a_plan_that_was_replaced_is_told_once() -> None:
    story = Story().plan("a", "b")
    live = Live(lines=3)
    live.draw(story.now)
    live.draw(story.plan(*map(str, range(14)), done=1).now)
    live.draw(story.plan(*map(str, range(14)), done=2).now)
    rows = live.terminal.everything
    assert rows[:3] == [" ≡ the plan has changed", "   ✔ 0", "   ▸ 1"]
    assert sum("plan" in row for row in rows) == 1
    assert "     … 2 more steps" in rows


def test_what_the_user_said_is_repeated_in_short() -> None:
    story = Story().tell(ev.UserMessage(text="One.\nTwo.\nThree.\nFour.\n")).begin("a")
    assert settled(story) == [" › One.", "   Two.", "   Three. …"]


@pytest.mark.long
def test_too_much_at_once_is_said_to_be() -> None:
    story = Story()
    for number in range(1_000):
        story.begin(f"{number}").end(f"{number}")
    rows = settled(story.say("x" * 500_000 + " end").begin("a"))
    assert rows[0].startswith(" … ")
    assert rows[0].endswith(" more things happened at once")
    assert any("characters are not shown here" in row for row in rows)
    assert len(rows) < 2_500


def test_what_is_said_is_drawn_as_markdown() -> None:
    story = Story().say(
        "# Head\n\nSome **bold** `code` and [a link](http://x.y/z) <b>html</b>.\n\n"
        "- one\n- two\n\n```py\ndef f():\n    return 1\n```\n\n    indented\n\n> quoted\n\nEnd."
    )
    assert settled(story.begin("a")) == [
        " Head",
        " Some bold code and a link (http://x.y/z) <b>html</b>.",
        "  • one",
        "  • two",
        "   def f():",
        "       return 1",
        "   indented",
        " ▌ quoted",
        " End.",
    ]


def test_between_words_and_deeds_there_is_an_empty_row() -> None:
    live = Live()
    live.draw(Story().begin("a").end("a").begin("b").end("b").say("One.\n\nTwo.\n\n").begin("c").end("c").now)
    assert [row[:10].strip() for row in live.terminal.rows][:7] == [
        "✔ run",
        "✔ run",
        "",
        "One.",
        "",
        "Two.",
        "",
    ]


def test_parts_of_long_code_have_no_empty_row_between_them() -> None:
    code = "\n".join(f"line {number}" for number in range(40))
    rows = settled(Story().say(f"```\n{code}\n```\n").begin("a"))
    assert rows == [f"   line {number}" for number in range(40)]


@given(
    st.text(st.sampled_from("ab \n#*_`>-|[]()!<&;1.~:\\\t語👨\u200d\x1b"), max_size=200), st.integers(20, 70)
)
def test_any_text_can_be_drawn(text: str, columns: int) -> None:
    live = Live(columns)
    live.draw(Story().say(text).now)
    live.draw(Story().say(text).begin("a").now)
    assert controls(live.terminal.bytes) == set()


# Questions


def test_a_short_question_is_one_row() -> None:
    live = Live(100)
    story = Story().begin("a", input={"command": "rm -rf build/"}).ask(tool_id="a").after(8)
    live.draw(story.asking())
    assert live.zone[1] == (" ? allow  rm -rf build/   [y] once [n] no [e] explain" + " " * 41 + "(0:52)")


def test_a_question_shows_all_of_the_command(live: Live) -> None:
    command = "echo one   two \\\n\n  && rm -rf " + "x" * 80
    story = Story().begin("a", title="Build", input={"command": command, "cwd": "/tmp"}).ask(tool_id="a")
    live.draw(story.asking(problem="[q] means nothing here"))
    assert live.terminal.rows == [
        " ? allow   May I?",
        "   $ echo one   two \\",
        "",
        "       && rm -rf " + "x" * 43,
        "     " + "x" * 37,
        "   {",
        '     "cwd": "/tmp"',
        "   }",
        "",
        *live.zone,
    ]
    assert live.zone[1:] == [
        " ? allow   May I?                                     (1:00)",
        " ! [q] means nothing here",
        "   [y] once  [n] no  [e] explain",
    ]


@pytest.mark.parametrize("char", ["z", "語"])
def test_what_has_no_room_is_printed_whole_and_once(live: Live, char: str) -> None:
    story = Story().begin("a", title="Build", input={"command": char * 1_000}).ask(tool_id="a")
    story.tell(ev.QuestionVerdict(id="q", verdict=None, by="judge", why="it is long"))
    for _ in range(3):
        live.draw(story.after(1).asking())
    assert "\n".join(live.terminal.everything).count(char) == 1_000
    assert live.zone[1:] == [
        " ? allow   May I?                                     (0:57)",
        " ┆ judge: no answer (it is long)",
        "   [y] once  [n] no  [e] explain",
    ]


def test_what_is_too_long_to_be_read_says_so(live: Live) -> None:
    live.draw(Story().begin("a", input={"command": "x" * 30_000}).ask(tool_id="a").asking())
    assert any("and 10,000 more characters: press [e]" in row for row in live.terminal.everything)


@pytest.mark.long
def test_a_question_shows_the_whole_change() -> None:
    live = Live(lines=90)
    old = "".join(f"line {number}\n" for number in range(60))
    new = old.replace("line 3\n", "line three\n").replace("line 50\n", "")
    story = Story().begin("a", "edit", path="x", content=(diff("x", old, new),)).ask(tool_id="a")
    live.draw(story.asking())
    rows = "\n".join(live.zone)
    for row in ("     x  +1 −2", "- line 3\n", "+ line three\n", "- line 50\n", "       …\n"):
        assert row in rows
    huge = "".join(f"l{number}\n" for number in range(5_000))
    story = Story().begin("a", "edit", content=(diff("x", huge, huge.replace("l", "m")),)).ask(tool_id="a")
    live.draw(story.asking())
    assert any("more lines" in row for row in live.terminal.everything)
    many = "".join(f"{number}\n" * 9 for number in range(99))
    changed = "".join(f"{number}\n" * 8 + f"{number}!\n" for number in range(99))
    story = Story().begin("a", "edit", content=(diff("x", many, changed),)).ask("r", tool_id="a")
    live.draw(story.asking("r"))
    assert any("more hunks" in row for row in live.terminal.everything)
    longer = diff("x", "a\n" * 200_000, "b\n" * 200_000)
    live.draw(Story().begin("a", "edit", content=(longer,)).ask("s", tool_id="a").asking("s"))
    assert any("too long to compare" in row for row in live.terminal.everything)


def test_nothing_of_a_change_or_a_path_is_cut(live: Live) -> None:
    path, new = "p" * 150, "n" * 150
    story = Story().begin("a", "edit", content=(diff(path, None, f"{new}\nsecond"),)).ask(tool_id="a")
    live.draw(story.asking())
    shown = "".join("".join(live.terminal.everything).split())
    assert path in shown
    assert new in shown
    live = Live()
    live.draw(Story().begin("b", "delete", path=path).ask("r", tool_id="b").asking("r"))
    assert "".join("".join(live.zone).split()).count("p" * 150) == 1


def test_a_line_of_a_change_that_is_cut_says_so() -> None:
    live = Live(lines=90)
    new = "n" * 1_500
    story = Story().begin("a", "edit", content=(diff("x", None, new),)).ask(tool_id="a")
    live.draw(story.asking())
    assert "".join(live.zone).count("n") >= 499
    assert "         … 1,001 more characters: press [e] to see more" in live.zone


def test_a_question_of_which_only_the_title_tells_shows_all_of_it(live: Live) -> None:
    live.draw(Story().ask(title=f"Delete {'a' * 70}?", tool_id=None).asking())
    assert "".join(live.zone).count("a" * 70) == 0
    assert "".join("".join(live.terminal.everything).split()).count("a" * 70) == 1
    live = Live()
    live.draw(Story().begin("a", title="deploy\u200b " + "x" * 700).ask(tool_id="a").asking())
    everything = "".join("".join(live.terminal.everything).split())
    assert "rundeploy\\u200b" + "x" * 700 in everything
    live = Live()
    live.draw(Story().begin("a", title="Deploy").ask(tool_id="a", title="Deploy").asking())
    assert live.zone[1:] == [" ? allow   Deploy" + " " * 37 + "(1:00)", live.zone[-1]]
    live = Live()
    live.draw(Story().ask(asks="url", url="no address").asking())
    assert "   no address" in live.zone
    assert not any("leads to" in row for row in live.zone)
    live = Live()
    live.draw(Story().begin("a", "delete", input={"path": "x.py"}).ask(tool_id="a").asking())
    assert "   delete x.py" in live.terminal.everything
    assert '     "path": "x.py"' in live.terminal.everything
    live = Live()
    files = tuple(ev.Location(path=f"/p/{number}") for number in range(101))
    live.draw(Story().tell(ev.ToolStart(id="a", kind="delete", locations=files)).ask(tool_id="a").asking())
    assert "   delete /p/99" in live.terminal.everything
    assert "         … 1 more file: press [e] to see more" in live.terminal.everything


def test_a_question_that_is_changed_is_printed_again(live: Live) -> None:
    story = Story().begin("a", input={"command": "one\n" * 9}).ask(tool_id="a")
    live.draw(story.asking())
    story.tell(ev.ToolUpdate(id="a", input={"command": "two\n" * 9}))
    live.draw(story.after(1).asking())
    live.draw(story.after(1).asking())
    rows = live.terminal.everything
    assert " ! the agent has changed what it asks:" in rows
    assert sum("one" in row for row in rows) == sum("two" in row for row in rows) == 9
    story.answer().ask("r", title="And this?")
    live.draw(story.asking("r"))
    assert len([row for row in live.zone if row.startswith(" ? allow   And this?")]) == 1
    assert len([row for row in live.terminal.everything if "And this?" in row]) == 1


@pytest.mark.long
def test_a_question_of_very_many_rows_says_that_it_is_cut(live: Live) -> None:
    diffs = tuple(diff(f"{number}.py", None, "line\n" * 50) for number in range(80))
    live.draw(Story().begin("a", "edit", content=diffs).ask(tool_id="a").asking())
    assert "   … and more, for which there is no room: press [e]" in live.terminal.everything
    assert live.zone[-1] == "   [y] once  [n] no  [e] explain"


def test_options_without_a_key(live: Live) -> None:
    options = tuple(ev.QuestionOption(id=str(n), name=f"option {n}", kind="other") for n in range(12))
    live.draw(Story().ask(options=options).asking())
    assert live.zone[-1] == "   … 3 more options without a key"


def test_more_questions_than_rows(live: Live) -> None:
    story = Story()
    for number in range(5):
        story.ask(f"q{number}", title=f"May I {number}?", timeout=None)
    assert live.draw(story.now)[-3:] == [
        " ? asks    May I 0?",
        " ? asks    May I 1?",
        "   … 3 more questions",
    ]


def test_other_questions(live: Live) -> None:
    live.draw(Story().begin("a", "delete", path="x.py").ask(tool_id="a", timeout=None).asking())
    assert live.zone[1:] == [" ? allow   May I?", "   delete x.py", "   [y] once  [n] no  [e] explain"]
    live = Live()
    live.draw(
        Story().ask("u", asks="url", url="https://bücher.example/a", options=(), timeout=5.0).asking("u")
    )
    assert live.zone[1:] == [
        " ? open    May I?                                     (0:05)",
        "   https://bücher.example/a",
        "   it leads to xn--bcher-kva.example",
        "   [y] I have opened it  [n] no  [e] show it to be copied",
    ]


def test_a_form(live: Live) -> None:
    field = FormField(name="age", type="integer", title="Your age", required=True)
    live.draw(Story().ask("f", asks="form", options=(), fields=(field,)).asking("f"))
    assert live.zone[2:] == ["   Your age  whole number, required", "   [f] fill in  [n] no"]


def test_the_key_that_the_arrows_are_at(live: Live) -> None:
    live.draw(Story().begin("a", input={"command": "ls"}).ask(tool_id="a").asking(chosen=1))
    assert "\x1b[7m no\x1b[0m" in live.terminal.bytes


def test_everything_is_explained(live: Live) -> None:
    content = (
        ev.DiffContent(path="/f", old_text="a\nb\nc", new_text="a\nB\x1b[1m\nc"),
        ev.DiffContent(path="/g", new_text="new"),
    )
    story = Story().begin(
        "a", "edit", title="edit\x1b[2J it", input={"note": "one\u202e two"}, content=content
    )
    state = story.ask(tool_id="a").asking()
    live.draw(state)
    above = len(live.terminal.everything)
    for times in (1, 1, 2):
        live.draw(replace(state, explained=times))
    rows = live.terminal.everything
    assert rows.count("   Input:") == 2
    begin = rows.index("   Input:")
    assert rows[begin : begin + 11] == [
        "   Input:",
        "     {",
        '       "note": "one\\u202e two"',
        "     }",
        "   Change of /f:",
        "   @@ line 2",
        "     - b",
        "     + B\\u001b[1m",
        "   New file /g:",
        "   @@ line 1",
        "     + new",
    ]
    assert begin > above - len(live.zone) - 20
    assert controls(live.terminal.bytes) == set()


def choices(*titles: str) -> tuple[FieldChoice, ...]:
    return tuple(FieldChoice(value=str(number), title=title) for number, title in enumerate(titles))


def test_what_a_form_offers(live: Live) -> None:
    fields = (
        FormField(name="answer", type="choice", choices=choices("RS256", "HS\x1b[2J\n256\u202e")),
        FormField(name="many", type="choices", choices=choices(*(f"number {n}" for n in range(12)))),
        FormField(name="other", type="string", title="Something else"),
    )
    live.draw(Story().ask("f", asks="form", options=(), fields=fields).asking("f"))
    assert live.zone[2:] == [
        "   answer  one of these",
        "     RS256 · HS 256\\u202e",
        "   many  any of these",
        "     number 0 · number 1 · number 2 · number 3 · number 4 ·",
        "     number 5 · number 6 · number 7 · number 8 · … 3 more",
        "   Something else  text",
        "   [f] fill in  [n] no",
    ]


def test_long_choices_are_shortened(live: Live) -> None:
    field = FormField(name="answer", type="choice", choices=choices("x" * 100))
    live.draw(Story().ask("f", asks="form", options=(), fields=(field,)).asking("f"))
    assert "".join(row.strip() for row in live.zone[3:-1]) == "x" * 59 + "…"


def test_questions_that_are_answered_elsewhere(live: Live) -> None:
    story = (
        Story().begin("a", input={"command": "ls"}).ask(tool_id="a").ask("r", title="And this?", timeout=None)
    )
    live.draw(story.now)
    assert live.zone[1:] == [
        " ? asks    run ls                                     (1:00)",
        " ? asks    And this?",
    ]
    live.draw(story.asking("r"))
    assert live.zone[1:] == [
        " ? asks    run ls                                     (1:00)",
        " ? allow   And this?",
        "   [y] once  [n] no  [e] explain",
    ]
    live.draw(story.asking("gone"))
    assert len(live.zone) == 3


# The end


def ended(story: Story, **options: Any) -> list[str]:
    live = Live(**options)
    live.draw(story.now)
    rows = live.finish(story.now)
    return rows[next(i for i, row in enumerate(rows) if row[1:2] in "✔✘⊘▸" and "claude" in row) :]


def test_the_card_tells_what_a_run_came_to() -> None:
    story = Story(recording="run.ndjson").begin("a", "edit").after(2)
    story.tell(ev.SessionOpened(agent="claude", session_id="s-1", cwd=CWD, model="sonnet"))
    story.end("a", content=tuple(diff(f"f{number}.py", None, "a\n") for number in range(12)))
    story.ask().answer(choice="reject_once").after(100).phase("completed")
    rows = ended(story)
    assert rows[:3] == [
        " ✔ done in 1:42 · claude · sonnet",
        "   work    1 tool · 12 files changed, +12 −0 · 1 denied",
        "           f0.py  +1  new file",
    ]
    assert rows[12:] == [
        "           … 2 more files",
        "   denied  May I?",
        "   time    answer 1:42",
        "   usage   usage not reported",
        "   session s-1",
        "   replay  run.ndjson",
    ]


def test_an_error_tells_what_to_do() -> None:
    error = errors.AgentExited(1, stderr_tail="\n".join(map(str, range(20))))
    rows = ended(Story().after(1).fail(error))
    assert rows[0] == " ✘ failed after 1.0s · claude"
    assert [row for row in rows if "│" in row] == [f"   │ {number}" for number in range(12, 20)]
    refused = ended(Story().fail(errors.ResultRefused("No.")))
    assert "   → put the prompt differently" in refused


def test_an_error_of_which_nothing_is_known() -> None:
    rows = ended(Story().fail(RuntimeError("boom")))
    assert rows[1:] == ["   RuntimeError: boom", "   usage   usage not reported"]


def test_a_run_that_was_cancelled() -> None:
    rows = ended(Story().fail(errors.ThoughtCancelled()).phase("cancelled"))
    assert rows == [" ⊘ cancelled after 0.0s · claude", "   usage   usage not reported"]


def test_a_run_that_goes_on_when_the_display_is_left() -> None:
    assert ended(Story().begin("a").say("Half a sen"))[0] == " ▸ goes on after 0.0s · claude"


def result(text: str, said: str = "", **options: Any) -> list[str]:
    rows = ended(Story(result=text).say(said).phase("completed"), **options)
    return rows[1 : next(i for i, row in enumerate(rows) if "usage" in row)]


def test_a_result_with_fields_is_a_table() -> None:
    text = '{"name": "A\\nB", "files": ["a", "b"], "ok": true, "no": null, "n": 1.5, "deep": {"x": [1]}, %s}'
    assert result(text % f'"long": "{"x" * 400}"')[:9] == [
        "",
        "   name    A",
        "           B",
        "   files   a",
        "           b",
        "   ok      yes",
        "   no      –",
        "   n       1.5",
        '   deep    {"x": [1]}',
    ]


def test_a_result_of_rows_is_a_table() -> None:
    assert result('[{"a": 1, "b": "x"}, {"a": 2}]') == ["", "   a   b", "   1   x", "   2", ""]


@pytest.mark.parametrize(
    "text",
    [
        "[1,\n2]",
        "[]",
        "{}",
        '[{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}]',
    ],
)
def test_other_results_are_json(text: str) -> None:
    assert result(text) == ["", *(f"   {row}".rstrip() for row in text.split("\n")), ""]


def test_a_result_that_is_no_json_after_all() -> None:
    assert result("[see above") == ["", "   [see above", ""]
    assert result("[" * 50_000)[-2] == "   … the result is longer"


def test_a_long_result_is_cut() -> None:
    rows = result("\n\n".join(map(str, range(100))))
    assert rows[-2] == "   … the result is longer"
    assert len(rows) < 40
    assert len(result("\n\n".join(map(str, range(100))), verbose=True)) > 150
    assert result(f"[{','.join(f'{chr(10)}{n}' for n in range(100))}]")[-2] == "   …"


def test_a_result_that_was_said_is_not_repeated() -> None:
    assert result("It is done.\n", said="It is done.") == []
    assert result("It is done.", said="It is done. Really.") == ["", "   It is done.", ""]


# Driving it


def test_the_terminal_can_be_lent_meanwhile(live: Live) -> None:
    story = Story().begin("a").end("a").begin("b")
    live.draw(story.now)
    live.leave()
    live.terminal.write("Name? Ada\r\n")
    live.draw(story.end("b").now)
    assert live.terminal.rows[:3] == [
        " ✔ run     a                                            0.0s",
        "Name? Ada",
        " ✔ run     b                                            0.0s",
    ]


def test_the_terminal_is_given_back_where_the_end_cannot_be_drawn(live: Live) -> None:
    story = Story()
    live.draw(story.now)

    def gone(text: str, /) -> int:
        raise OSError(5, "Input/output error")

    live.terminal.write = gone  # type: ignore[method-assign]
    with pytest.raises(OSError, match="Input"):
        live.finish(story.now)
    assert live.terminal.console.file is live.terminal.file


def calls_of(live: Live, shown: State) -> int:
    """Return how many functions are called by drawing a frame: its cost, but for the speed of the machine."""
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        counts[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        live.draw(shown)
    finally:
        sys.setprofile(before)
    return counts["call"] + counts["c_call"]


def flood(tools: int, characters: int) -> Story:
    story = Story().plan("one", "two")
    for number in range(tools):
        story.begin(f"{number}", "edit", path=f"{number}.py").end(f"{number}")
    for _ in range(10):
        story.begin(f"r{_}", path="x").think("thought " * (characters // 160)).say(
            "word " * (characters // 100)
        )
    return story.begin("loud").put_out("loud", "output\n" * (characters // 20))


@pytest.mark.long
def test_a_frame_costs_what_is_on_it() -> None:
    costs: list[int] = []
    for tools, characters in ((20, 20_000), (5_000, 5_000_000)):
        live = Live(100)
        story = flood(tools, characters)
        live.draw(story.now)
        costs.append(calls_of(live, story.after(1).think("more").now))
    small, large = costs
    assert large < 2 * small + 3 * 5_000  # of each tool, it is only looked at whether it goes on
