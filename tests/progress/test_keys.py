"""The keyboard of a terminal: keys and lines, and how it is given back."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from progress.ptys import PROGRAMS, program

if TYPE_CHECKING:
    from progress.stage import Pty


async def typed(pty: Pty, text: str) -> str | None:
    """Type, and return what key that is."""
    pty.type(text)
    return pty.keyboard.key()


async def test_a_key(pty: Pty) -> None:
    assert pty.keyboard.take()
    assert pty.keyboard.key() is None
    assert await typed(pty, "y") == "y"
    assert pty.keyboard.key() is None
    assert await typed(pty, "é") == "é"


@pytest.mark.parametrize(
    "text",
    [
        "yn",  # pasted
        "y\r",
        "\x1b[1;5A",  # an arrow, with Ctrl
        "\x1bOa",
        "\x1by",  # Alt
        "\x7f",
        "\x1b",
    ],
)
async def test_what_is_no_key(pty: Pty, text: str) -> None:
    assert pty.keyboard.take()
    expected = "y" if text == "y\r" else None
    assert await typed(pty, text) == expected
    if text != "\x1b":
        assert await typed(pty, "n") == "n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("\x1b[A", "up"),
        ("\x1bOB", "down"),
        ("\x1b[D", "up"),
        ("\x1b[C", "down"),
        ("\r", "enter"),
        ("\x04", "leave"),
    ],
)
async def test_keys_that_have_names(pty: Pty, text: str, name: str) -> None:
    assert pty.keyboard.take()
    assert await typed(pty, text) == name
    assert await typed(pty, "n") == "n"


@pytest.mark.parametrize("arrow", ["\x1b[a", "\x1bOa", "\x1b[1;5a"])
async def test_an_arrow_that_comes_in_pieces_is_no_letter(pty: Pty, arrow: str) -> None:
    assert pty.keyboard.take()
    for piece in arrow:
        assert await typed(pty, piece) is None
    assert await typed(pty, "n") == "n"


async def test_what_was_typed_before_is_forgotten(pty: Pty) -> None:
    pty.type("yes\ny")
    assert pty.keyboard.take()
    assert pty.keyboard.key() is None
    pty.type("y")
    pty.keyboard.forget()
    assert pty.keyboard.key() is None


async def test_lines(pty: Pty) -> None:
    assert pty.keyboard.take()
    assert pty.keyboard.take(lines=True)
    assert not pty.is_raw()
    assert pty.keyboard.line() is None
    pty.type("one\ntwo")
    assert pty.keyboard.line() == "one"
    assert pty.keyboard.line() is None
    pty.type("s\x7f!\n")
    assert pty.keyboard.line() == "two!"
    pty.type("\x04")
    with pytest.raises(EOFError):
        pty.keyboard.line()


async def test_half_a_line_and_ctrl_d(pty: Pty) -> None:
    assert pty.keyboard.take(lines=True)
    pty.type("ha\x04")
    assert pty.keyboard.line() is None
    pty.type("lf\n")
    assert pty.keyboard.line() == "half"


async def test_settings_are_given_back(pty: Pty) -> None:
    before = pty.settings()
    assert pty.keyboard.take()
    assert pty.settings() != before
    pty.keyboard.release()
    assert pty.settings() == before
    pty.keyboard.release()
    assert pty.keyboard.take()
    assert pty.keyboard.take(lines=True)
    pty.keyboard.close()
    assert pty.settings() == before


async def test_what_is_typed_is_hidden_while_it_is_muted(pty: Pty) -> None:
    before = pty.settings()
    pty.keyboard.mute()
    assert not pty.echoes()
    assert pty.keyboard.take()
    pty.keyboard.mute()
    assert pty.is_raw()
    assert pty.keyboard.take(lines=True)
    assert pty.echoes()
    pty.keyboard.release()
    assert not pty.echoes()
    assert not pty.is_raw()
    pty.type("left for the shell\n")
    pty.keyboard.unmute()
    assert pty.settings() == before
    pty.keyboard.mute()
    assert not pty.echoes()
    assert pty.keyboard.line() == "left for the shell"
    pty.keyboard.close()
    assert pty.settings() == before


async def test_what_was_typed_for_the_display_is_dropped_at_its_end(pty: Pty) -> None:
    assert pty.keyboard.take()
    pty.type("y")
    pty.keyboard.release()
    assert pty.keyboard.take(lines=True)
    pty.type("\n")
    assert pty.keyboard.line() == ""


async def test_a_terminal_that_is_gone(pty: Pty) -> None:
    assert pty.keyboard.take()
    pty.hang_up()
    assert pty.keyboard.key() is None
    with pytest.raises(EOFError):
        pty.keyboard.line()
    pty.keyboard.release()
    assert not pty.keyboard.take()


def test_the_standard_input_is_the_keyboard() -> None:
    with program("keyboard.py") as shell:
        shell.expect("key?")
        shell.type("k")
        shell.expect("'k'")
        shell.expect("line?")
        shell.type("a line\n")
        shell.expect("'a line'")


def test_the_terminal_of_the_session_is_the_keyboard_where_input_is_piped() -> None:
    with program("sh", "-c", f"echo piped | {sys.executable} {PROGRAMS / 'keyboard.py'}") as shell:
        shell.expect("key?")
        shell.type("k")
        shell.expect("'k'")
        shell.expect("line?")
        shell.type("a line\n")
        shell.expect("'a line'")


def test_settings_are_given_back_at_exit() -> None:
    with program("keyboard.py", "crash") as shell:
        before = shell.settings()
        shell.expect("key?")
        shell.type("k")
        shell.expect("ValueError: crashed")
        shell.process.wait(10)
        assert shell.settings() == before


def test_a_program_in_the_background_leaves_the_keyboard_alone() -> None:
    with program("keyboard.py", "background") as shell:
        before = shell.settings()
        shell.expect("taken: False")
        assert shell.settings() == before


def test_no_terminal_no_keyboard() -> None:
    found = subprocess.run(
        [sys.executable, str(PROGRAMS / "keyboard.py")],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
        timeout=30,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "no keyboard\n"
