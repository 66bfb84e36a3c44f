"""``thinkwell chat`` at its prompt, in memory: what is typed, what stands there, what the keys do."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.prompting import ALT_ENTER, CTRL_A, CTRL_C, CTRL_D, DOWN, ENTER, ESCAPE, UP, at_prompt
from cli.remembering import remember, remembering

from thinkwell.testing import script

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from cli.prompting import Person

    from thinkwell.testing import Script, ScriptedAgentFactory

EVERYTHING = ("list", "load", "modes", "options", "commands")
READY = "Ctrl-D leaves"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the chat."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SESSIONS", str(remember(tmp_path, [{"sessionId": "s-old", "cwd": str(here)}])))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "CI", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    return here


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The file of what was typed."""
    return tmp_path / "state" / "thinkwell" / "chat_history"


def chat(*options: str, agent: str = "", columns: int = 80) -> AbstractContextManager[Person]:
    return at_prompt("--command", agent or remembering(*EVERYTHING), *options, columns=columns)


def played(
    agent: ScriptedAgentFactory, told: Script, *, complete: bool = True, steering: bool = False
) -> str:
    return shlex.join(agent(told, complete=complete, steering=steering).program())


def leave(person: Person) -> None:
    """Leave after a turn, whatever stands in the input area."""
    person.sees("(done in|cancelled after)")
    person.types_until(CTRL_C, "exit leaves")
    person.type(CTRL_D)


def test_a_turn_and_its_end() -> None:
    with chat() as person:
        person.sees(READY)
        person.type(f"Hello.{ENTER}")
        seen = person.sees("done in")
        assert "> Hello.\n You said: 'Hello.'\n ✔ done in " in seen
        person.type(CTRL_D)
        person.sees("To continue later, type: thinkwell chat --command ")
    assert person.code == 0


def test_plain_lines() -> None:
    with chat("--style", "lines") as person:
        person.sees(READY)
        person.type(ENTER)
        person.type(f"usage{ENTER}")
        seen = person.sees(r"\[done\]   done in \d.*s · 1.2k/200k ctx")
        assert seen.count("[done]") == 1
        assert "[say]    You said: 'usage'" in seen
        person.type(f"/exit{ENTER}")
    assert person.code == 0


def test_what_was_typed_comes_back(kept: Path) -> None:
    with chat() as person:
        person.sees(READY)
        person.type(f"one{ALT_ENTER}two{ENTER}")
        person.sees(r"You said: 'one\\ntwo'")
        person.type(f" not to be kept{ENTER}")
        person.sees("You said: ' not")
        person.type(f"my key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789{ENTER}")
        person.sees("You said: 'my key")
        person.type(UP + UP + f"!{ENTER}")
        person.sees(r"You said: 'one!\\ntwo'")
        person.type(f"/exit{ENTER}")
    assert [json.loads(line) for line in kept.read_text("utf-8").splitlines()] == [
        "one\ntwo",
        "one!\ntwo",
        "/exit",
    ]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    with chat() as person:
        person.sees(READY)
        person.type("\x12one!")  # Ctrl-R searches
        person.sees("> one!\n  two")
        person.type(ENTER + ENTER)
        person.sees(r"You said: 'one!\\ntwo'")
        person.type(CTRL_D)


def test_no_history(kept: Path) -> None:
    with chat("--no-history") as person:
        person.sees(READY)
        person.type(f"Hello.{ENTER}")
        person.sees("done in")
        person.type(UP)
        person.sees("─\n> Hello.\n")
        person.types_until(CTRL_C, "exit leaves")
        person.type(CTRL_D)
    assert not kept.exists()


def test_a_history_that_cannot_be_read_or_is_broken(kept: Path) -> None:
    kept.mkdir(parents=True)
    with chat() as person:
        person.sees(r"No history is kept: [\s\S]*Is a directory")
        person.type(CTRL_D)
    kept.rmdir()
    kept.write_text('no json\n"Hello."\n\n', "utf-8")
    with chat() as person:
        person.sees(READY)
        person.type(UP + ENTER)
        person.sees("You said: 'Hello.'")
        person.type(CTRL_D)


def test_a_history_that_cannot_be_written(kept: Path) -> None:
    kept.parents[1].symlink_to("/proc/nothing")
    with chat() as person:
        person.sees(READY)
        person.type(f"Hello.{ENTER}")
        person.sees("No history is kept: ")
        person.sees("You said: 'Hello.'")
        person.type(CTRL_D)


def test_a_long_history_is_cut(kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text("".join(f'"{number}"\n' for number in range(2500)), "utf-8")
    with chat() as person:
        person.sees(READY)
        person.type(CTRL_D)
    lines = kept.read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [str(number) for number in range(1500, 2500)]
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"one\\{ENTER}two", r"'one\\ntwo'"),
        ("one\ntwo", r"'one\\ntwo'"),
        (f'"""{ENTER}one\\{ENTER}{ENTER}two{ENTER}"""', r"'one\\\\n\\ntwo'"),
        ("\x1b[200~one\rtwo \\\rthree\x1b[201~", r"'one\\ntwo \\\\nthree'"),
        ("日本語の長い文 🙂", "'日本語の長い文 🙂'"),
        ("\x1b[200~a\x1b[2J\x07b\x1b[201~", r"'a\\x1b\[2J\\x07b'"),
    ],
)
def test_texts_of_several_lines_and_of_all_characters(typed: str, said: str) -> None:
    with chat() as person:
        person.sees(READY)
        person.type(typed + ENTER)
        person.sees(f"You said: {said}")
        assert "\x07" not in person.screen.bytes
        assert "\x1b[2J" not in person.screen.bytes
        person.type(CTRL_D)
    assert person.code == 0


def test_tab_completes(here: Path) -> None:
    (here / "src").mkdir()
    (here / "src" / "shop.py").touch()
    (here / "src" / "bad\x1bname").touch()
    (here / ".hidden").touch()
    with chat() as person:
        person.sees(READY)
        person.type("/rev")
        person.sees("/review +Review the change")  # while it is typed
        person.type("\t")
        person.sees("─\n> /review\n")
        person.type(f"it{ENTER}")
        person.sees("You said: '/review it'")
        for typed, completed in (("/mo", "/mode"), ("c", "code")):
            person.type(f"{typed}\t")
            person.sees(rf"─\n> (/mode )?{completed}\n")
        person.type(ENTER)
        person.sees("The mode is code")
        person.type("/option br\t")
        person.sees("> /option brave")
        person.type("on\t")
        person.sees("> /option brave on")
        person.type(ENTER)
        person.sees("brave is on")
        person.type("Look at @sr")
        person.sees("\n src/")
        person.type("\t")
        person.sees("> Look at @src/")
        person.type("\t")
        person.sees("> Look at @src/shop.py")
        person.type(f" or sr\t{CTRL_C}/nowhere\t")
        assert "hidden" not in person.sees("> /nowhere")
        person.type(f"{CTRL_C}{CTRL_D}")
    assert "bad" not in person.screen.bytes


def test_tab_goes_through_what_there_is(here: Path) -> None:
    for name in ("page_a.md", "page_b.md"):
        (here / name).touch()
    with chat(agent=remembering()) as person:
        person.sees(READY)
        person.type("See p\t")
        person.sees("─\n> See page_\n")
        person.type("\t")
        person.sees("\n +page_a.md\n +page_b.md\n")
        person.type("\t")
        person.sees("─\n> See page_a.md\n")
        person.type("\t")
        person.sees("─\n> See page_b.md\n")
        person.type("\x1b[Z")  # Shift-Tab
        person.sees("─\n> See page_a.md\n")
        person.type(f"{CTRL_C}not/there\t{ENTER}")
        person.sees("You said: 'not/there'")
        person.type(CTRL_D)
    assert person.code == 0


def test_a_terminal_that_is_gone(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.asks("Delete it", expect="cancelled")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"Clean up.{ENTER}")
        person.sees(r"\[y\] once")
        person.hang_up()
    assert person.code == 0


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (100, r"\n remembering_agent.py · Small · ask · ~/here · 1% of 200k used"),
        (60, r"\n remembering_agent.py · Small · ask · 1% of 200k used"),
        (40, r"\n remembering_agent.py · 1% of 200k used"),
        (20, r"\n remembering_agent…"),
    ],
)
def test_the_status_line(columns: int, line: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here.parent))
    with chat(columns=columns) as person:
        person.type(f"usage{ENTER}")
        person.sees(line)
        person.type(CTRL_D)


def test_the_terminal_becomes_narrower() -> None:
    with chat() as person:
        person.type(f"usage{ENTER}")
        person.sees("Small · ask · 1% of")
        person.resizes_until(40, 24, r"remembering_agent.py · 1% of 200k used")
        person.type(f"Hello.{ENTER}")
        person.sees("You said: 'Hello.'")
        assert all(row.strip("─") for row in person.screen.scrolled)
        person.type(CTRL_D)


@pytest.mark.parametrize("columns", [60, 100])
def test_help_breaks_at_words(columns: int) -> None:
    with chat(columns=columns) as person:
        person.sees(READY)
        person.type(f"/help{ENTER}")
        seen = person.sees("Ctrl-C cancels what the agent does")
        rows = seen.split("/help\n")[-1].split("\n")
        assert all(len(row) <= columns for row in rows)
        assert "\n  /translate into which language\n    " in seen  # what is long has a row of its own
        words = " ".join(seen.split())
        for text in (
            "or set it",
            "reports them",
            "Tab completes commands and files",
            "a second one kills it.",
        ):
            assert text in words
        person.type(CTRL_D)


def test_the_card() -> None:
    with chat(columns=60) as person:
        person.sees(READY)
        person.type(f"/usage{ENTER}")
        person.sees("There was no turn yet")
        person.type(f"usage{ENTER}")
        person.sees("done in")
        person.type(f"/usage{ENTER}")
        person.sees(
            r"> /usage\n  done in .*s\n(  time .*\n)?  usage     1.2k/200k ctx\n  session   session-1"
        )
        person.type(CTRL_D)


def test_what_was_thought_stands_in_the_history(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.thinks("Hm,\nwell.").uses("Read a.py", kind="read").thinks("So.").says("Fine.")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"How is it?{ENTER}")
        person.sees("done in")
        person.type(f"/history{ENTER}")
        person.sees(r"> How is it\?\n\n  ┆ Hm, well\.\n\n  Read a.py \(completed\)\n\n  ┆ So\.\n\nFine\.")
        person.type(CTRL_D)


def test_mistakes_do_not_end_it() -> None:
    with chat() as person:
        person.sees(READY)
        for typed, told in (
            ("/hlep", "There is no command /hlep"),
            ("refuse", "no model"),
            ("/save /nowhere/at/all", "/nowhere/at/all: No such file or directory"),
            ("Hello.", "You said: 'Hello.'"),
        ):
            person.type(f"{typed}{ENTER}")
            person.sees(told)
        person.type(CTRL_D)
    assert person.code == 0


def test_an_agent_that_dies() -> None:
    with chat() as person:
        person.sees(READY)
        person.type(f"die{ENTER}")
        person.sees("exited with code 3")
        person.sees("It was too much")
        person.sees("To continue later, type: thinkwell chat")
    assert person.code == 3


def test_what_goes_wrong_is_logged_above(monkeypatch: pytest.MonkeyPatch) -> None:
    with chat("--verbose") as person:
        person.sees(READY)
        person.type(f"Hello.{ENTER}")
        person.sees("Info: ")
        person.type(CTRL_D)


# What goes on


def test_ctrl_c_at_the_prompt() -> None:
    with chat() as person:
        person.sees(READY)
        person.type(f"/mode nowhere{ENTER}")
        person.sees("There is no mode")
        person.type(f"half a line{CTRL_C}")
        person.sees("Ctrl-D or /exit leaves")
        person.type(f"whole{ENTER}")
        person.sees("You said: 'whole'")
        person.type(CTRL_D)
    assert person.code == 0


@pytest.mark.parametrize("style", ["lines", "live"])
def test_ctrl_c_cancels_a_turn(scripted_agent: ScriptedAgentFactory, style: str) -> None:
    told = script.says("Let me see").uses("Look", kind="think").hangs().stops("cancelled").says("Here again.")
    with chat("--style", style, agent=played(scripted_agent, told)) as person:
        person.type(f"Hello.{ENTER}")
        person.sees("Look")
        person.type(f"And now?{ENTER}")
        person.sees("waits  And now")
        person.type(f"/usage{ENTER}Not this{ENTER}yet{CTRL_C}")
        person.sees("\nCancelled")
        person.sees("> And now\\?\n  Not this\n  yet")  # what waited can be edited; a command is no text
        person.types_until(CTRL_C, "exit leaves")
        person.type(f"Well?{ENTER}")
        person.sees("Here again.")
        person.type(CTRL_D)
    assert person.code == 0


@pytest.mark.parametrize("style", ["lines", "live"])
def test_ctrl_c_twice_kills(scripted_agent: ScriptedAgentFactory, style: str) -> None:
    told = script.says("Let me see").uses("Look", kind="think").hangs(deaf=True)
    with chat("--style", style, agent=played(scripted_agent, told, complete=False)) as person:
        person.type(f"Hello.{ENTER}")
        person.sees("Look")
        person.type(CTRL_C)
        person.sees("ancelling")
        person.type(CTRL_C)
        person.sees("Killed")
    assert person.code == 130


def test_ctrl_c_ends_the_wait_for_a_command() -> None:
    with chat(agent=remembering("modes", "deaf")) as person:
        person.sees(READY)
        person.type(f"/mode code{ENTER}")
        person.sees(r"\n> /mode code\n─")
        person.types_until(CTRL_C, "exit leaves")
        person.type(f"Hello.{ENTER}")
        person.sees("You said: 'Hello.'")
        person.type(CTRL_D)
    assert person.code == 0


def asking(agent: ScriptedAgentFactory) -> str:
    told = script.asks("Delete it", input={"command": "rm -rf build"}, expect="allow_once").says("Gone.")
    return played(agent, told.stops().says("Again.").stops().says("And again."), complete=False)


def test_what_is_typed_in_a_turn_waits(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.asks("Delete it", expect="cancelled")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"Clean up.{ENTER}")
        person.sees(r"\[y\] once")
        person.sees("the keys answer the question; Esc goes to the message")
        person.type(ESCAPE)
        person.sees("Esc goes to the question")
        for number in range(5):
            person.type(f"{number}{ENTER}")
        person.sees(" waits  0\n waits  1\n waits  2\n +… and 2 more")
        person.type(UP)
        person.sees("> 4\n")
        person.type(f"{CTRL_C}")
        person.sees("> 0\n  1\n  2\n  3\n  4\n")
        person.sees("\nCancelled")
        leave(person)


def test_messages_that_wait_are_sent_in_order(scripted_agent: ScriptedAgentFactory) -> None:
    with chat(agent=asking(scripted_agent)) as person:
        person.type(f"Clean up.{ENTER}")
        person.sees(r"\[y\] once")
        person.type(ESCAPE)
        person.sees("Esc goes to the question")
        person.type(f"yes{ENTER}and{ENTER}{CTRL_D}")
        person.sees("leaves when this is done; Ctrl-C cancels it")
        person.sees("waits  yes\n +waits  and")
        person.type(ESCAPE)
        person.sees("Esc goes to the message")
        person.types_until("y", "Gone.")
        person.sees("> yes\n Again.\n ✔ done in .*\n> and\n And again.")
    assert person.code == 0


def test_a_text_that_is_pasted_at_a_question_is_a_message(scripted_agent: ScriptedAgentFactory) -> None:
    with chat(agent=asking(scripted_agent)) as person:
        person.type(f"Clean up.{ENTER}")
        person.sees("the keys answer the question")
        person.type(f"{ESCAPE}[200~yes please{ESCAPE}[201~")
        person.sees("Esc goes to the question")
        person.sees("> yes please")
        person.type(ENTER)
        person.sees("waits  yes please")
        person.type(ESCAPE)
        person.sees("Esc goes to the message")
        person.types_until("y", "Gone.")
        person.sees("> yes please\n Again.")
        leave(person)
    assert person.code == 0


def test_what_is_typed_in_a_turn_steers_it(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.says("I read it.").hears("login").hears("tests").says("Both are fine.").stops().says("Bye.")
    with chat(agent=played(scripted_agent, told, steering=True)) as person:
        person.type(f"Review it.{ENTER}")
        person.sees("I read it.")
        person.type(f"Also the login{ENTER}and the tests{ENTER}")
        seen = person.sees("Both are fine.(.|\n)*done in")
        assert seen.count("Also the login") == seen.count("and the tests") == 1
        assert seen.count("(the agent reads this while it works)") == 2
        person.type(f"Thanks.{ENTER}")
        person.sees("Bye.")
        person.type(f"/history{ENTER}")
        person.sees("> /history(.|\n)*Also the login(.|\n)*and the tests(.|\n)*Both are fine.(.|\n)*Thanks.")
        person.type(CTRL_D)
    assert person.code == 0


@pytest.mark.parametrize("at_once", [False, True])
def test_what_a_cancelled_turn_has_not_taken_can_be_edited(at_once: bool) -> None:
    program = Path(__file__).parent / "programs" / "slow_to_steer_agent.py"
    with chat(agent=shlex.join([sys.executable, str(program), *["at-once"] * at_once])) as person:
        person.type(f"Review it.{ENTER}")
        person.type(f"Also the login{ENTER}")
        if at_once:
            person.sees(r"Not now\.")
        person.sees("waits  Also the login")
        person.type(f"and{CTRL_C}")
        person.sees("\nCancelled")
        person.sees("> Also the login\n  and")
        person.types_until(CTRL_C, "exit leaves")
        person.type(CTRL_D)
    assert person.code == 0


def test_a_command_waits_for_the_end_of_a_turn_that_can_be_steered(
    scripted_agent: ScriptedAgentFactory,
) -> None:
    told = script.asks("Delete it", expect="allow_once").says("Gone.").stops().expects("More").says("Done.")
    with chat(agent=played(scripted_agent, told, steering=True)) as person:
        person.type(f"Clean up.{ENTER}")
        person.sees(r"\[y\] once")
        person.type(ESCAPE)
        person.sees("Esc goes to the question")
        person.type(f"/usage{ENTER}More{ENTER}")
        person.sees(" waits  /usage\n +waits  More")
        person.type(ESCAPE)
        person.sees("Esc goes to the message")
        person.types_until("y", "Gone.")
        person.sees("> /usage(.|\n)*> More\n Done.(.|\n)*done in")
        leave(person)
    assert person.code == 0


def test_what_is_being_typed_answers_nothing(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.says("Wait").asks("Delete it", expect="reject_once").says("Kept.")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"Clean up.{ENTER}yyy")
        person.sees("Esc goes to the question")
        person.sees("> yyy")
        person.type(ESCAPE)
        person.sees("Esc goes to the message")
        person.types_until("n", "Kept.")
        leave(person)
    assert person.code == 0


@pytest.mark.parametrize("style", ["lines", "live"])
def test_a_question_is_answered_by_a_key(scripted_agent: ScriptedAgentFactory, style: str) -> None:
    with chat("--style", style, agent=asking(scripted_agent)) as person:
        person.type(f"Clean up.{ENTER}")
        person.sees("rm -rf build")
        person.types_until("e", "Command:")
        person.type(CTRL_A + "e")
        assert "means nothing" not in person.types_until("y", "Gone.")  # it is no answer
        leave(person)
    assert person.code == 0


def test_a_question_is_answered_by_the_arrows(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.asks("Delete it", expect="reject_once").says("Kept.")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"Clean up.{ENTER}")
        person.sees(r"\[y\] once")
        person.types_until("x", "means nothing here")  # the keys count now
        for key in (ENTER, DOWN, UP, DOWN, DOWN, ENTER):  # the first one chooses nothing
            person.type(key)
        person.sees("Kept.")
        leave(person)
    assert person.code == 0


FORM = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "title": "Kind", "enum": ["major", "minor", "patch"], "default": "minor"},
        "sure": {"type": "boolean", "title": "Are you sure?"},
        "name": {"type": "string", "title": "Name", "minLength": 2},
        "where": {"type": "array", "title": "Where", "items": {"type": "string", "enum": ["here", "there"]}},
    },
    "required": ["sure", "name"],
}


def test_a_form_is_filled_in_by_the_arrows(scripted_agent: ScriptedAgentFactory) -> None:
    filled = {"kind": "patch", "sure": False, "name": "Ada", "where": ["there"]}
    told = script.asks_form("How?", FORM, expect=filled).says("Released.")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"Release it.{ENTER}")
        person.sees(r"\[f\] fill in")
        person.type(f"{ESCAPE}")
        person.sees("Esc goes to the question")
        person.type("a draft")
        person.sees("> a draft")
        person.type(ESCAPE)
        person.sees("Esc goes to the message")
        person.types_until("f", "❯ 2  minor")
        person.type(f"{DOWN}{ENTER}")
        person.sees("Are you sure.*\n   ❯ 1  yes\n     2  no")
        person.type(f"2{ENTER}")
        person.sees(r"Name \(text")
        person.sees("Enter gives the answer")
        person.type(f"x{ENTER}")
        person.sees("> x\n  should have at least 2 characters")
        person.type(f"Ada{ENTER}")
        person.sees(r"❯ 1  \[ \] here")
        person.type(f"{DOWN} {UP}  ")
        person.sees(r"❯ 1  \[ \] here\n     2  \[x\] there")
        person.type(ENTER)
        person.sees("Released.")
        person.sees("> a draft")  # it has come back
        leave(person)
    assert person.code == 0


def test_a_form_that_is_left(scripted_agent: ScriptedAgentFactory) -> None:
    told = script.asks_form("How?", FORM, expect="decline").says("Not then.")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"Release it.{ENTER}")
        person.sees(r"\[f\] fill in")
        person.types_until("f", "❯ 2  minor")
        person.type(CTRL_D)
        person.sees(r"\[f\] fill in")
        person.types_until("f", "❯ 2  minor")
        person.type(ENTER)
        person.sees("Are you sure.*\n   ❯ 1  yes")
        person.type(ENTER)
        person.sees("Enter gives the answer")
        person.type(CTRL_D)
        person.sees(r"\[f\] fill in")
        person.types_until("n", "Not then.")
        leave(person)
    assert person.code == 0


def test_a_long_list_shows_what_is_around(scripted_agent: ScriptedAgentFactory) -> None:
    numbers = [f"n{number}" for number in range(30)]
    picked = {
        "type": "array",
        "title": "Which",
        "items": {"type": "string", "enum": numbers},
        "default": ["n1"],
    }
    schema = {
        "type": "object",
        "properties": {"which": {**picked, "description": "As you like.", "minItems": 2}},
    }
    told = script.asks_form("Which?", schema, expect={"which": ["n1", "n29"]}).says("Those.")
    with chat(agent=played(scripted_agent, told)) as person:
        person.type(f"Ask.{ENTER}")
        person.sees(r"\[f\] fill in")
        person.types_until("f", r"As you like\.\n   ❯ 1  \[ \] n0\n     2  \[x\] n1")
        person.sees("Ctrl-D leaves +1/30")
        person.type(f"q{ENTER}")
        person.sees(" ! .*at least 2")
        person.type(f"{UP} ")
        person.sees(r"     29  \[ \] n28\n   ❯ 30  \[x\] n29\n")
        person.type(ENTER)
        person.sees("Those.")
        leave(person)
    assert person.code == 0
