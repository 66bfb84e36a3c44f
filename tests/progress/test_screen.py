"""The two zones of the terminal, as a terminal shows them."""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from progress.stage import Zones, leave_soon, wraps_rows_again
from progress.terminal import Terminal, controls
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


print_ = print
"""That of programs: what it prints is looked at."""


def texts(*rows: str) -> list[Text]:
    return [Text(row) for row in rows]


class Shown:
    """A screen on a terminal."""

    def __init__(self, columns: int = 60, lines: int = 18, *, reflows: bool = True) -> None:
        self.terminal = Terminal(columns, lines, reflows=reflows)
        self.screen = Zones(self.terminal, reflows=reflows)

    def draw(self, *live: str, above: Iterable[str] = ()) -> list[str]:
        return self.screen.draw(texts(*live), texts(*above))


@pytest.fixture
def shown() -> Iterator[Shown]:
    shown = Shown()
    yield shown
    shown.screen.release()


def test_a_frame_replaces_the_one_before(shown: Shown) -> None:
    assert shown.draw("one", "two", "three") == ["one", "two", "three"]
    assert shown.draw("one", "2") == ["one", "2"]
    assert shown.draw("1", "2", "3", "4") == ["1", "2", "3", "4"]
    assert shown.draw() == [""]


def test_what_is_settled_stands_above_and_stays(shown: Shown) -> None:
    shown.draw("live")
    shown.draw("live", above=["first", "second"])
    assert shown.draw("alive", above=["third"]) == ["first", "second", "third", "alive"]
    shown.screen.release()
    assert shown.terminal.rows == ["first", "second", "third"]


def test_what_is_settled_scrolls_away_whole(shown: Shown) -> None:
    for number in range(100):
        shown.draw("live", "zone", f"{number}", above=[f"row {number}"])
    assert shown.terminal.everything == [*(f"row {number}" for number in range(100)), "live", "zone", "99"]


def test_a_frame_is_one_write_and_an_equal_one_none(shown: Shown) -> None:
    shown.draw("one", "two")
    shown.draw("one", "2", above=["above"])
    assert len(shown.terminal.writes) == 2
    shown.draw("one", "2")
    assert len(shown.terminal.writes) == 2


def test_only_rows_that_changed_are_written(shown: Shown) -> None:
    shown.draw("first", "second", "third", "fourth")
    shown.draw("first", "2nd", "third", "4th")
    assert "first" not in shown.terminal.writes[-1]
    assert "third" not in shown.terminal.writes[-1]
    assert shown.terminal.rows == ["first", "2nd", "third", "4th"]


def test_a_full_row_keeps_its_last_character() -> None:
    shown = Shown(columns=10)
    assert shown.draw("0123456789", "日本語日本") == ["0123456789", "日本語日本"]
    assert shown.draw("9876543210", "x") == ["9876543210", "x"]


def test_what_is_wider_than_the_screen_is_wrapped() -> None:
    assert Shown(columns=10).draw("one two three", "日本語日本語") == ["one two", "three", "日本語日本", "語"]


def test_nothing_is_left_of_the_row_before_where_a_terminal_takes_a_text_for_shorter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = Shown(columns=10)
    shown.draw("0123456789")
    draw = shown.terminal.screen.draw

    def without_x(data: str) -> None:
        draw(data.replace("x", ""))

    monkeypatch.setattr(shown.terminal.screen, "draw", without_x)
    assert shown.draw("xxxxxx6789") == ["6789"]


def test_the_cursor_is_hidden_and_stands_below(shown: Shown) -> None:
    shown.draw("one", "two")
    cursor = shown.terminal.screen.cursor
    assert (cursor.hidden, cursor.x, cursor.y) == (True, 0, 2)
    shown.screen.release()
    assert not shown.terminal.screen.cursor.hidden


@pytest.mark.parametrize("columns", [20, 33, 59, 61, 100])
@pytest.mark.parametrize("lines", [12, 18, 30])
def test_a_resize_leaves_no_rubbish(columns: int, lines: int) -> None:
    shown = Shown()
    wide = "日本語" * 9
    shown.draw("head " * 11, wide, "short", "", "tail " * 12, above=["settled"])
    shown.terminal.resize(columns, lines)
    shown.draw("head", "tail")
    assert shown.terminal.everything == ["settled", "head", "tail"]
    shown.screen.release()
    assert "\n".join(shown.terminal.everything).rstrip("\n") == "settled"


def test_resizes_between_frames_leave_no_rubbish(shown: Shown) -> None:
    shown.draw("a" * 60, "b" * 45, above=["settled"])
    for columns in (25, 50, 31, 90):
        shown.terminal.resize(columns, 18)
    assert shown.draw("a" * 60, "b" * 45) == ["settled", "a" * 60, "b" * 45]
    for columns in (25, 44, 80, 60, 12):
        shown.terminal.resize(columns, 18)
        assert shown.draw("one", "two") == ["settled", "one", "two"]


@pytest.mark.parametrize("columns", [20, 59, 100])
def test_a_terminal_that_cuts_its_rows_loses_nothing_above(columns: int) -> None:
    shown = Shown(reflows=False)
    shown.draw("head " * 11, "tail " * 12, above=["settled"])
    shown.terminal.resize(columns, 18)
    assert shown.draw("head", "tail") == ["settled", "head", "tail"]


def test_an_equal_frame_is_drawn_again_after_a_resize(shown: Shown) -> None:
    shown.draw("x" * 50)
    shown.terminal.resize(30, 18)
    assert shown.draw("x" * 30) == ["x" * 30]


def test_the_live_zone_is_lower_than_the_terminal() -> None:
    shown = Shown(lines=5)
    assert shown.draw(*"abcdefgh") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("environ", "wraps"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(390)"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "screen", "STY": "1.pts-0"}, False),
        ({"TERM": "screen", "STY": "1.pts-0", "TMUX": "/tmp/tmux"}, True),
    ],
)
def test_terminals_that_do_not_wrap_again_are_known(environ: dict[str, str], wraps: bool) -> None:
    assert wraps_rows_again(environ) is wraps


HOSTILE = (
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x1bP1$q\x1b\\",
    "\x9b31m",
    "\x07\x08\x7f\x00",
    "\u202egnp.exe\u2066",
    "a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h",
    "\x1b[?2026l\x1b[?7h\x1bc",
    "\ud800",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_text_controls_the_terminal(shown: Shown, text: str) -> None:
    shown.draw(
        f"live {text}", "below", above=[f"above {text}", Text(text, style="bold link http://evil").plain]
    )
    shown.screen.draw(texts("below"), [Text("x" + text, style="link http://evil\x1b[2J")])
    assert controls(shown.terminal.bytes) == set()
    assert "]8;" not in shown.terminal.bytes
    assert shown.terminal.rows[-1] == "below"


def test_spaces_that_do_not_show_are_not_written(shown: Shown) -> None:
    shown.screen.draw([Text("text  "), Text("   "), Text.assemble("on ", ("  ", "on red"))])
    assert shown.screen.live == ["text", "", "on   "]


def test_without_colours() -> None:
    terminal = Terminal()
    terminal.console.no_color = True
    Zones(terminal, reflows=None).draw([Text("text", style="bold red")])
    assert "\x1b[1mtext" in terminal.bytes


# What the program prints


def test_what_the_console_prints_stands_above(shown: Shown) -> None:
    shown.draw("live", "zone")
    shown.terminal.console.print("printed")
    shown.terminal.console.print("more\nlines")
    assert shown.terminal.rows == ["printed", "more", "lines", "live", "zone"]
    shown.screen.release()
    shown.terminal.console.print("after")
    assert shown.terminal.rows == ["printed", "more", "lines", "after"]


def test_what_print_and_logging_write_stands_above(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", shown.terminal.file)
    monkeypatch.setattr(sys, "stderr", shown.terminal)
    handler = logging.StreamHandler()
    logger = logging.getLogger("thinkwell.test.printing")
    logger.addHandler(handler)
    shown.draw("live", "zone")
    print_("printed", "x" * 70)
    logger.warning("logged")
    print_("to stderr", file=sys.stderr)
    above = [f"printed {'x' * 52}", "x" * 18, "logged", "to stderr"]
    assert shown.terminal.rows == [*above, "live", "zone"]
    shown.screen.release()
    assert [sys.stdout, sys.stderr, handler.stream] == [shown.terminal.file] * 3
    print_("after")
    assert shown.terminal.rows == [*above, "after"]
    logger.removeHandler(handler)


def test_streams_that_were_replaced_meanwhile_stay_so(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", shown.terminal.file)
    handler = logging.StreamHandler(shown.terminal.file)
    logger = logging.getLogger("thinkwell.test.taken")
    logger.addHandler(handler)
    shown.draw("live")
    kept = sys.stdout
    others = Terminal()
    monkeypatch.setattr(sys, "stdout", others)
    handler.setStream(others.file)
    shown.terminal.console.file = others.file
    shown.screen.release()
    assert [sys.stdout, handler.stream, shown.terminal.console.file] == [others.file] * 3
    print_("through what was kept", file=kept, flush=True)
    assert shown.terminal.rows == ["through what was kept"]
    logger.removeHandler(handler)


def test_a_stream_that_is_no_terminal_is_left_alone(
    shown: Shown, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = Terminal()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    monkeypatch.setattr(closed, "isatty", lambda: closed.fileno())
    shown.draw("live")
    print_("to a pipe")
    assert sys.stderr is closed
    monkeypatch.undo()
    assert capsys.readouterr().out == "to a pipe\n"
    assert shown.terminal.rows == ["live"]


def test_a_line_that_goes_on_stands_above_until_it_ends(shown: Shown) -> None:
    shown.draw("live")
    file = shown.terminal.console.file
    file.write("\x1b[31m10 %")
    assert shown.terminal.rows == ["live"]
    file.flush()
    assert shown.terminal.rows == ["10 %", "live"]
    file.write("\r50 %")
    shown.draw("alive")
    assert shown.terminal.rows == ["50 %", "alive"]
    file.write("\r90 %\r")
    file.flush()
    assert shown.terminal.rows == ["90 %", "alive"]
    file.write("\r100 %\nmore")
    assert shown.terminal.rows == ["100 %", "more", "alive"]
    shown.screen.release()
    assert shown.terminal.rows == ["100 %", "more"]


@pytest.mark.parametrize(("char", "end"), [("x", "x" * 60), ("語", "語" * 30)])
def test_of_a_long_line_that_goes_on_the_end_is_shown(shown: Shown, char: str, end: str) -> None:
    shown.draw("live")
    shown.terminal.console.file.write(char * 200)
    assert shown.draw("live") == [end, "live"]


def test_a_line_that_never_ends_is_broken(shown: Shown) -> None:
    shown.draw("live")
    shown.terminal.console.file.write("one\n" + "x" * 20_000)
    assert shown.terminal.everything.count("x" * 60) == 333
    assert shown.terminal.everything[0] == "one"


def test_colours_that_the_program_leaves_on_do_not_reach_the_live_zone(shown: Shown) -> None:
    shown.draw("live")
    shown.terminal.console.file.write("\x1b[31mred\n")
    assert shown.terminal.screen.buffer[1][0].fg == "default"


def test_threads_print_meanwhile(shown: Shown) -> None:
    def prints(name: str) -> None:
        for number in range(50):
            shown.terminal.console.print(f"{name} {number}")

    shown.draw("first")
    threads = [threading.Thread(target=prints, args=[name]) for name in "abc"]
    for thread in threads:
        thread.start()
    for number in range(50):
        shown.draw(f"frame {number}", "zone", above=[f"settled {number}"])
    for thread in threads:
        thread.join()
    lines = shown.terminal.everything
    assert lines[-2:] == ["frame 49", "zone"]
    for name in ("a", "b", "c", "settled"):
        assert [line for line in lines if line.startswith(f"{name} ")] == [f"{name} {n}" for n in range(50)]
    assert len(lines) == 202


def test_what_stands_in_for_a_stream_is_like_it(shown: Shown) -> None:
    shown.draw("live")
    file = shown.terminal.console.file
    shown.terminal.fileno = lambda: 7  # type: ignore[method-assign]
    assert (file.isatty(), file.writable(), file.fileno()) == (True, True, 7)
    assert (getattr(file, "encoding", ""), getattr(file, "errors", "")) == (None, None)
    assert getattr(file, "screen", None) is shown.terminal.screen


def test_a_thread_that_prints_when_the_terminal_is_given_back(shown: Shown) -> None:
    shown.draw("live")
    file = shown.terminal.console.file
    shown.screen.release()
    vars(file)["over"] = False  # it has looked just before
    file.write("printed\n")
    file.flush()
    assert shown.terminal.rows == ["printed"]


def test_without_standard_streams(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert shown.draw("live") == ["live"]


def test_a_console_of_the_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal.file)
    terminal.console = Console(
        stderr=True, force_terminal=True, width=60, height=18, legacy_windows=False, _environ={}
    )
    screen = Zones(terminal)
    screen.draw(texts("live"))
    print_("printed", file=sys.stderr)
    terminal.console.print("too")
    assert terminal.rows == ["printed", "too", "live"]
    screen.release()
    others = Terminal()
    monkeypatch.setattr(sys, "stderr", others.file)
    assert terminal.console.file is others.file


def test_a_second_display_on_the_terminal_is_refused(shown: Shown) -> None:
    shown.draw("live")
    second = Zones(shown.terminal, reflows=None)
    with pytest.raises(RuntimeError, match="another live display"):
        second.draw(texts("second"))
    shown.screen.release()
    second.draw(texts("second"))
    assert shown.terminal.rows == ["second"]
    second.release()
    second.release()


def test_it_can_be_taken_again(shown: Shown) -> None:
    shown.draw("live", above=["settled"])
    shown.screen.release()
    shown.terminal.write("asked? yes\r\n")
    assert shown.draw("live") == ["settled", "asked? yes", "live"]
    shown.terminal.console.print("printed")
    assert shown.terminal.rows == ["settled", "asked? yes", "printed", "live"]


def test_a_terminal_with_other_characters(shown: Shown) -> None:
    class Old(Terminal):
        encoding = "latin-1"

    terminal = Old()
    Zones(terminal, reflows=None).draw(texts("Zürich ✔"))
    assert terminal.rows == ["Zürich ?"]


def test_a_terminal_that_is_full_for_a_moment_is_drawn_anew(shown: Shown) -> None:
    shown.draw("one")
    write = shown.terminal.write

    def full(text: str, /) -> int:
        shown.terminal.write = write  # type: ignore[method-assign]
        raise BlockingIOError

    shown.terminal.write = full  # type: ignore[method-assign]
    shown.draw("two")
    assert shown.draw("two") == ["two"]


def test_at_the_end_of_the_program_the_terminal_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    at_exit: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    shown = Shown()
    shown.draw("live", above=["settled"])
    (leave,) = at_exit
    leave()
    assert (shown.terminal.rows, shown.terminal.screen.cursor.hidden) == (["settled"], False)


def test_at_the_end_of_the_program_a_frame_that_hangs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_exit: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    leave_soon(monkeypatch)
    shown = Shown()
    shown.draw("live")
    hanging, over = threading.Event(), threading.Event()

    def hangs(text: str, /) -> int:
        hanging.set()
        over.wait()
        return len(text)

    shown.terminal.write = hangs  # type: ignore[method-assign]
    thread = threading.Thread(target=shown.draw, args=["more"])
    thread.start()
    hanging.wait()
    shown.terminal.console.file.flush()
    at_exit[0]()
    assert shown.terminal.console.file is shown.terminal.file
    over.set()
    thread.join()
    assert shown.terminal.screen.cursor.hidden
    shown.screen.release()


def test_a_terminal_that_is_gone(shown: Shown) -> None:
    shown.draw("one")

    def gone(text: str, /) -> int:
        raise OSError(5, "Input/output error")

    shown.terminal.write = gone  # type: ignore[method-assign]
    with pytest.raises(OSError, match="Input"):
        shown.draw("two")
    with pytest.raises(OSError, match="Input"):
        shown.screen.release()
    shown.screen.release()
    assert shown.terminal.console.file is shown.terminal.file
