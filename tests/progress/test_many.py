"""Several runs in a terminal, as they look there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from progress.golden import NAMES, check, every_width, steps
from progress.stage import LiveTerminal, State, Story
from progress.terminal import controls

from thinkwell import errors
from thinkwell import events as ev


class Live(LiveTerminal):
    """A terminal on which runs are drawn."""

    def draw(self, *runs: State) -> list[str]:
        super().draw(*runs)
        return self.live


@pytest.fixture
def live() -> Live:
    return Live()


def all_at(number: int) -> list[State]:
    """Return all recorded runs beside each other, after so many looks."""
    return [replace(steps(name)[min(number, len(steps(name)) - 1)], label=name) for name in NAMES]


@every_width
def test_golden(width: int) -> None:
    live = Live(width)
    screens: list[str] = []
    longest = max(len(steps(name)) for name in NAMES)
    for number in range(longest):
        zone = live.draw(*all_at(number))
        if number % (longest // 10) == 0:
            screens.append(f"=== {number}\n" + "\n".join(zone))
    screens.append("=== the end\n" + "\n".join(live.finish(*all_at(longest))))
    check("all", "live", width, "\n".join(screens) + "\n")
    assert controls(live.terminal.bytes) == set()


@pytest.mark.parametrize("lines", [2, 9, 40])
def test_the_live_zone_has_a_third_of_the_terminal(lines: int) -> None:
    live = Live(lines=lines)
    for number in range(0, 60, 7):
        assert 0 < len(live.draw(*all_at(number))) <= max(lines // 3, 1)


def test_each_run_has_a_row(live: Live) -> None:
    one = Story(label="one").begin("a", "edit", path="x.py")
    two = Story(label="the second one").think("Let me see.")
    two.tell(ev.UsageUpdate(used=18_200, size=200_000))
    assert live.draw(one.after(3).now, two.after(65).now) == [
        " 2 runs · 0/2 done                                     01:05",
        " ◒ one             editing x.py                        00:03",
        " ◓ the second one  thinking            18.2k/200k ctx  01:05",
    ]


def test_the_first_that_goes_on_is_told_more_of(live: Live) -> None:
    runs = Story(label="a").begin("x").end("x"), Story(label="b").think("Let me\nsee.")
    assert len(live.draw(*(run.now for run in runs))) == 3
    runs[0].say("It is " + "so " * 99)
    assert live.draw(*(run.now for run in runs))[3].startswith("   ┆ so so so")


def test_runs_that_failed_stay_at_the_top_until_the_end(live: Live) -> None:
    one, two, three = (Story(label=name, result="{\n}") for name in ("one", "two", "three"))
    live.draw(one.now, two.now, three.now)
    two.after(4).fail(errors.ResultRefused("No."))
    three.after(5).phase("completed")
    zone = live.draw(one.now, two.now, three.now)
    assert zone[:3] == [
        " 3 runs · 2/3 done · 1 failed                          00:05",
        " ✘ two    The model refused                             4.0s",
        " ◐ one    working                                      00:00",
    ]
    assert live.terminal.rows[:2] == [
        " ✔ three  done                                          5.0s",
        "     → { }",
    ]
    one.phase("cancelled")
    rows = live.finish(one.now, two.now, three.now)
    assert rows == [
        " ✔ three  done                                          5.0s",
        "     → { }",
        " ⊘ one    cancelled                                     0.0s",
        " ✘ two    The model refused                             4.0s",
        "     → put the prompt differently",
        "",
        " 3 runs: 1 done, 1 failed, 1 cancelled, 5.0s",
    ]


def test_an_error_of_which_nothing_is_known() -> None:
    live = Live()
    runs = Story(label="a").fail(RuntimeError("boom")), Story(label="b").phase("completed")
    rows = live.finish(*(run.now for run in runs))
    assert rows[0].startswith(" ✘ a  RuntimeError: boom")
    assert rows[1].startswith(" ✔ b  done")
    assert len(rows) == 4


def test_all_went_well(live: Live) -> None:
    runs = [Story(label=name).phase("completed").now for name in "ab"]
    assert live.finish(*runs)[-1] == " 2 runs: 2 done, 0.0s"


def test_a_display_that_is_left_early(live: Live) -> None:
    assert live.finish(Story(label="a").now, Story(label="b").phase("completed").now)[-1] == (
        " 2 runs: 1 done, 1 going on, 0.0s"
    )


def test_more_runs_than_rows() -> None:
    live = Live(lines=18)
    runs = [Story(label=f"run {number}").now for number in range(20)]
    zone = live.draw(*runs)
    assert [row.rpartition("  ")[0].rstrip() or row for row in zone] == [
        " 20 runs · 0/20 done",
        *(f" ◐ run {number}   working" for number in range(4)),
        "   … 16 more runs",
    ]


def test_a_question_is_shown_with_its_run(live: Live) -> None:
    asks = Story(label="asks").begin("a", input={"command": "rm -rf build/"}).ask(tool_id="a")
    other = Story(label="other")
    zone = live.draw(other.now, asks.asking())
    assert zone[1].startswith(" ◐ asks ")
    assert zone[3:] == [
        " asks",
        " ? allow   May I?                                     (1:00)",
        "   $ rm -rf build/",
        "   [y] once  [n] no  [e] explain",
    ]


def test_a_long_question_is_printed_with_its_run(live: Live) -> None:
    asks = Story(label="asks").begin("a", input={"command": "x" * 2_000}).ask(tool_id="a")
    live.draw(Story(label="other").now, asks.asking())
    assert live.terminal.everything[:2] == [" asks", " ? allow   May I?"]


def test_answers_are_told_with_the_run(live: Live) -> None:
    asks = Story(label="asks").begin("a").ask(tool_id="a")
    live.draw(asks.now, Story(label="other").now)
    live.draw(asks.answer().now, Story(label="other").now)
    assert live.terminal.rows[:3] == [" asks", " ✔ asked   run a", "         → allowed by human"]


def test_cancelling_is_told(live: Live) -> None:
    runs = [replace(Story(label=name).now, cancelling=True) for name in "ab"]
    zone = live.draw(*runs)
    assert "⊘ cancelling" in zone[0]
    assert zone[1] == " ◐ a  cancelling                                       00:00"


def test_no_runs(live: Live) -> None:
    assert live.draw() == [" 0 runs · 0/0 done                                     00:00"]
    assert not any(row.strip() for row in live.finish())
