"""What of a run is settled: each thing once, in the order in which it came to its end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from progress.stage import MOST_AT_ONCE, MOST_FOLDED, Looking, Speech, Story, cut_paragraphs

from thinkwell import events as ev


@pytest.fixture
def run() -> Looking:
    return Looking()


def test_a_call_is_settled_when_it_has_ended(run: Looking) -> None:
    run.story.begin("a").begin("b")
    assert (run.look(), run.running) == ([], ["a", "b"])
    run.story.end("b")
    assert (run.look(), run.running) == (["calls b"], ["a"])
    run.story.end("a", "failed")
    assert (run.look(), run.running) == (["calls a"], [])
    assert run.look() == []


def test_reads_wait_for_others_to_share_their_line(run: Looking) -> None:
    run.story.read("a", "b").begin("c", "search")
    assert (run.look(), run.held) == ([], ["a", "b"])
    run.story.end("c").begin("edit", "edit")
    assert (run.look(), run.held) == (["calls a,b,c"], [])
    run.story.end("edit").read("d")
    assert run.look() == ["calls edit"]
    run.story.say("Now")
    assert run.look() == ["calls d"]


def test_reads_that_failed_share_no_line(run: Looking) -> None:
    run.story.read("a").begin("b", "read").end("b", "failed").read("c")
    assert run.look(end=True) == ["calls a", "calls b", "calls c"]


def test_a_line_has_room_for_so_many(run: Looking) -> None:
    run.story.read(*map(str, range(MOST_FOLDED + 2)))
    assert run.look() == ["calls " + ",".join(map(str, range(MOST_FOLDED)))]
    assert len(run.held) == 2


def test_a_thought_that_goes_on_later_is_settled_once(run: Looking) -> None:
    thought = ev.Thought(text="Hm.", message_id="1")
    run.story.tell(thought).say("So")
    assert run.look() == ["thought 0.0"]
    run.story.tell(thought)
    assert run.look(end=True) == ["said 'So' first"]


def test_thoughts_do_not_part_reads(run: Looking) -> None:
    run.story.read("a").think("Hm.")
    run.look()
    run.story.after(2).read("b").think("Aha.")
    run.look()
    run.story.after(3).read("c")
    assert run.look() == []
    run.story.say("So")
    assert run.look() == ["calls a,b,c, thought 5.0 between"]


def test_a_thought_after_reads_stands_after_them(run: Looking) -> None:
    run.story.read("a").think("Hm.").after(2).read("b").think("Aha.")
    run.look()
    run.story.after(3).begin("c")
    assert run.look() == ["calls a,b, thought 2.0 between", "thought 3.0"]


def test_with_verbose_they_do() -> None:
    run = Looking(verbose=True)
    run.story.read("a").think("Hm.")
    run.look()
    run.story.after(2).read("b")
    assert run.look() == ["calls a", "thought 2.0"]


def test_thoughts_take_until_something_else_begins(run: Looking) -> None:
    run.story.think("One.")
    assert (run.look(), run.thinking) == ([], "One.")
    run.story.after(4).begin("a").think("Two.").after(1.5).begin("b").after(20)
    assert run.look() == ["thought 4.0", "thought 1.5"]
    assert run.thinking == ""


def test_what_was_there_before_the_first_look() -> None:
    story = Story().think("One.").after(3).begin("a").end("a").think("Two.").after(2)
    run = Looking(story)
    assert run.look(9) == ["thought 3.0", "calls a"]
    story.phase("completed")
    assert run.look(10) == ["thought 2.0"]


def test_a_thought_that_goes_on_takes_until_now() -> None:
    story = Story().after(2).think("One.")
    assert Looking(story).look(9, end=True) == ["thought 7.0"]


def test_paragraphs_are_settled_when_they_end(run: Looking) -> None:
    run.story.say("One.\nStill one.\n\nTw")
    assert run.look() == ["said 'One.\\nStill one.' first"]
    assert run.saying == ("Tw", False)
    run.story.say("o.\n\n\n\nThree.")
    assert run.look() == ["said 'Two.'"]
    run.story.begin("a")
    assert run.look() == ["said 'Three.'"]
    assert run.saying == ("", False)


def test_a_message_of_which_more_comes_after_something_else(run: Looking) -> None:
    run.story.say("One.", "m").begin("a")
    assert run.look() == ["said 'One.' first"]
    run.story.say(" Two.\n\nThree", "m")
    assert run.look() == ["said ' Two.'", "said 'Three'"]
    assert run.look() == []


def test_everything_is_settled_at_the_end(run: Looking) -> None:
    run.story.say("One").begin("a").read("b").think("Hm")
    assert run.look() == ["said 'One' first", "calls b"]
    run.story.phase("cancelled")
    assert run.look() == ["calls a", "thought 0.0"]
    assert run.look(end=True) == []


def test_a_look_that_is_the_last_one_settles_what_was_said(run: Looking) -> None:
    run.story.begin("a").read("b").say("One. Tw")
    assert run.look(end=True) == ["calls b", "said 'One. Tw' first"]
    assert run.running == ["a"]


def test_calls_of_a_sub_agent_are_settled_with_it(run: Looking) -> None:
    run.story.begin("task").begin("a", parent="task").begin("b", parent="task").end("a")
    run.story.begin("deep", parent="b").begin("other")
    assert run.look() == []
    assert run.running == ["task", "other"]
    run.story.end("deep").end("b").end("other").end("task")
    assert run.look() == ["calls task[>a][>b][>>deep]", "calls other"]


def test_a_call_that_outlives_its_sub_agent(run: Looking) -> None:
    run.story.begin("task").begin("a", parent="task").begin("b", parent="task").end("a").end("task")
    assert (run.look(), run.running) == (["calls task[>a]"], ["b"])
    run.story.end("b").begin("c", parent="task").end("c")
    assert run.look() == ["calls b", "calls c"]


def test_calls_that_are_said_to_be_part_of_each_other(run: Looking) -> None:
    run.story.begin("a", parent="b").begin("b", parent="a").begin("c", parent="c")
    run.look()
    assert run.running == ["a", "c"]
    run.story.end("a").end("b").end("c")
    assert run.look() == ["calls a[>b]", "calls c"]


def test_a_name_that_is_used_again(run: Looking) -> None:
    run.story.begin("a").end("a")
    assert run.look() == ["calls a"]
    run.story.after(1).begin("a")
    assert (run.look(), run.running) == ([], ["a"])
    run.story.end("a")
    assert run.look() == ["calls a"]


def test_news_are_told_before_what_came_after_them(run: Looking) -> None:
    run.story.begin("a").ask(tool_id="a").after(1).answer().after(1).end("a").after(1)
    run.story.tell(ev.ResultAttempt(accepted=False, errors=("no list",), at=run.story.time))
    run.story.tell(ev.ResultAttempt(accepted=True, at=run.story.time))
    run.story.after(1).begin("b").end("b")
    run.story.tell(ev.Notice(severity="info", title="Careful", at=run.story.time + 1))
    assert run.look() == ["answered q", "calls a", "refused no list", "result", "calls b", "notice Careful"]
    assert run.look() == []


def test_a_plan_is_told_where_its_steps_change(run: Looking) -> None:
    run.story.plan("a", "b")
    assert run.look() == []
    run.story.plan("a", "b", done=1)
    assert run.look() == []
    run.story.plan("a", "c", done=1)
    assert run.look() == ["plan a,c"]
    run.story.plan()
    assert run.look() == []


def test_turns_and_what_the_user_said(run: Looking) -> None:
    run.story.tell(ev.TurnStarted(number=1), ev.UserMessage(text="Do it."))
    assert run.look() == []
    run.story.tell(ev.TurnStarted(number=2), ev.TurnStarted(number=3))
    assert run.look() == ["user Do it.", "turn 2"]


def test_of_much_at_once_the_end_is_told(run: Looking) -> None:
    for number in range(5_000):
        run.story.begin(f"{number}").end(f"{number}")
    found = run.look()
    assert found[:2] == [f"skipped {5_000 - MOST_AT_ONCE}", f"calls {5_000 - MOST_AT_ONCE}"]
    assert len(found) == MOST_AT_ONCE + 1


def test_of_many_words_at_once_the_end_is_told(run: Looking) -> None:
    for number in range(10):
        run.story.say(f"{number} {'word ' * 4_000}").begin(f"{number}")
    found = run.look()
    assert found[0] == "skipped 29"
    assert len(found) < 15


# Texts


def pieces(text: str, *cuts: int, whole: bool = True) -> list[Any]:
    """Return the pieces of a text that comes in parts."""
    speech = Speech()
    found = [piece for cut in sorted(cuts) for piece in speech.take(text[:cut])]
    return [*found, *speech.take(text, whole=whole)]


def shown(found: list[Any]) -> list[str]:
    return [
        f"{'+' if each.goes_on else ''}{'' if each.code is None else f'<{each.code}>'}{each.text}"
        for each in found
    ]


def test_code_is_apart_and_keeps_its_empty_lines() -> None:
    text = "Look:\n```python\na = 1\n\nb = 2\n```\nThat is all."
    assert shown(pieces(text)) == ["Look:", "<python>a = 1\n\nb = 2", "That is all."]


def test_a_fence_ends_where_one_like_it_is() -> None:
    text = "````\n```\nx\n```\n````\ny\n~~~ sh\n```\n~~~~"
    assert shown(pieces(text)) == ["<>```\nx\n```", "y", "<sh>```\n~~~~"]
    assert shown(pieces(text + "\n")) == ["<>```\nx\n```", "y", "<sh>```"]


def test_code_in_a_list_is_moved_to_the_left() -> None:
    assert shown(pieces("1. Do\n   ```sh\n   ls\n     -l\n   ```\n")) == ["1. Do", "<sh>ls\n  -l"]


def test_code_without_anything_in_it() -> None:
    assert shown(pieces("```\n```\nx")) == ["x"]


def test_long_code_comes_in_parts() -> None:
    lines = [f"line {number}" for number in range(30)]
    found = shown(pieces("```c\n" + "\n".join(lines) + "\n```\nEnd."))
    assert found == [
        "<c>" + "\n".join(lines[:12]),
        "+<c>" + "\n".join(lines[12:24]),
        "+<c>" + "\n".join(lines[24:]),
        "End.",
    ]


def test_code_that_is_not_complete_is_shown_as_such() -> None:
    speech = Speech()
    assert speech.take("```c\nint a") == []
    assert (speech.tail("```c\nint a"), speech.in_code) == ("int a", True)


def test_a_long_paragraph_is_cut_where_lines_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_paragraphs(monkeypatch, 20)
    text = "\n".join(f"- item {number}" for number in range(6))
    assert shown(pieces(text)) == ["- item 0\n- item 1\n- item 2", "+- item 3\n- item 4", "+- item 5"]
    assert shown(pieces(f"```\n{text}\n```\n")) == [
        "<>- item 0\n- item 1\n- item 2",
        "+<>- item 3\n- item 4\n- item 5",
    ]


def test_a_long_line_is_cut_where_words_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_paragraphs(monkeypatch, 20)
    assert shown(pieces("one two three four five six", whole=False)) == ["one two three four"]
    assert shown(pieces("x" * 45)) == ["x" * 20, "+" + "x" * 20, "+" + "x" * 5]


def test_of_a_flood_the_end_is_looked_at() -> None:
    text = "word " * 1_000_000 + "\n\nThe end.\n\nReally."
    found = pieces(text, 10)
    assert sum(len(each.text) for each in found) < 60_000
    assert found[0].skipped > 4_800_000
    assert [each.text for each in found[-2:]] == ["The end.", "Really."]
    assert sum(each.skipped for each in found[1:]) == 0


def test_a_flood_ends_code() -> None:
    speech = Speech()
    speech.take("```\ncode\n")
    text = "```\ncode\n" + "x\n\n" * 100_000
    assert {each.code for each in speech.take(text)} == {None}


TEXTS = st.text(st.sampled_from("ab \n`~"), max_size=300)


@given(TEXTS, st.lists(st.integers(0, 300), max_size=5))
def test_pieces_do_not_depend_on_how_the_text_comes(text: str, cuts: list[int]) -> None:
    assert pieces(text, *cuts) == pieces(text)


@given(TEXTS)
def test_nothing_that_is_said_is_lost(text: str) -> None:
    kept = "".join(each.text for each in pieces(text))
    for letter in "ab":
        # The name of a language is told apart from its code.
        named = sum((each.code or "").count(letter) for each in pieces(text) if not each.goes_on)
        assert kept.count(letter) + named <= text.count(letter)
        if "``" not in text and "~~" not in text:
            assert kept.count(letter) == text.count(letter)
