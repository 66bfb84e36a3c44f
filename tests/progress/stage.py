"""Displays on a stage: runs state by state, what each display makes of them, terminals and keyboards.

What a display shows depends on moments: a question that is open, a paragraph that has not ended. Tests choose
those moments here, where a run that goes on by itself would pass over them.
"""

# Private: displays are given one state after another, which no program does; the one door of all their tests

from __future__ import annotations

import io
import os
import termios
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.lowlevel import current_token
from progress.ptys import Person, Settings, echoes, is_raw
from progress.terminal import Terminal

from thinkwell import ViewReducer
from thinkwell import events as ev
from thinkwell._display.json_lines import JsonLines
from thinkwell._terminal.keyboard import TerminalKeyboard, find_keyboard
from thinkwell._terminal.output import direct
from thinkwell.cli._progress import follow_json
from thinkwell.progress import _drawing, _prose, _screen
from thinkwell.progress._board_renderer import BoardRenderer
from thinkwell.progress._lines import LinesRenderer
from thinkwell.progress._live import default_labels
from thinkwell.progress._live_renderer import LiveRenderer
from thinkwell.progress._renderer import Renderer, Shown
from thinkwell.progress._screen import Screen, wraps_again
from thinkwell.progress._settling import (
    AT_ONCE,
    FOLDED,
    Calls,
    Said,
    Settling,
    Skipped,
    Thought,
    UserSaid,
)
from thinkwell.progress._showing import showing
from thinkwell.view import AnswerView

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    import pytest
    from rich.text import Text

    from thinkwell import ThoughtStream
    from thinkwell._display.filling import Picking
    from thinkwell.progress import BoardState
    from thinkwell.progress._prose import Piece
    from thinkwell.progress._settling import Settled
    from thinkwell.view import RunView

CWD: Final = "/home/ada/shop"

SHARE: Final = _drawing.SHARE
"""Part of the time that drawing may compute."""

MOST_AT_ONCE: Final = AT_ONCE
"""Things that are told at once, at most."""

MOST_FOLDED: Final = FOLDED
"""Calls that share a line, at most."""


# Runs


@dataclass(frozen=True, kw_only=True)
class State:
    """A run at one moment, as a display is given it."""

    label: str
    view: RunView
    now: float
    result: str | None = None
    recording: str | None = None
    asking: str | None = None
    """Id of the question that the keyboard answers."""
    problem: str = ""
    """What was wrong with the last key."""
    chosen: int | None = None
    """The key that the arrows are at."""
    picking: Picking | None = None
    """The field whose value is picked."""
    explained: int = 0
    """How often an explanation was wanted."""
    cancelling: bool = False
    killed: bool = False


def _given(states: Iterable[State]) -> tuple[Shown, ...]:
    return tuple(
        Shown(**{each.name: getattr(state, each.name) for each in fields(State)}) for state in states
    )


def _taken(runs: Iterable[Shown]) -> tuple[State, ...]:
    return tuple(State(**{each.name: getattr(run, each.name) for each in fields(State)}) for run in runs)


class Story:
    """A run: what is told happens, and `now` is what a display is given."""

    def __init__(self, agent: str = "claude", **shown: Any) -> None:
        self._reducer = ViewReducer(agent=agent, cwd=CWD)
        self._error: Exception | None = None
        self.time = 0.0
        self.shown: dict[str, Any] = {"label": agent, **shown}
        self.phase("responding")

    def tell(self, *events: ev.ThoughtEvent) -> Story:
        self._reducer.apply(events)
        return self

    def after(self, seconds: float) -> Story:
        self.time += seconds
        return self

    def phase(self, phase: ev.Phase, detail: str = "") -> Story:
        return self.tell(ev.PhaseChanged(phase=phase, detail=detail, at=self.time))

    def say(self, text: str, message: str | None = None) -> Story:
        return self.tell(ev.Message(text=text, message_id=message, at=self.time))

    def think(self, text: str) -> Story:
        return self.tell(ev.Thought(text=text, at=self.time))

    def begin(self, id_: str, kind: ev.ToolKind = "execute", **about: Any) -> Story:
        about.setdefault("title", id_)
        path = about.pop("path", None)
        locations = () if path is None else (ev.Location(path=f"{CWD}/{path}"),)
        return self.tell(
            ev.ToolStart(id=id_, kind=kind, status="in_progress", locations=locations, at=self.time, **about)
        )

    def put_out(self, id_: str, text: str) -> Story:
        content = (ev.BlockContent(content=ev.TextContent(text=text)),)
        return self.tell(ev.ToolUpdate(id=id_, content=content, at=self.time))

    def end(self, id_: str, status: ev.FinalStatus = "completed", text: str = "", **about: Any) -> Story:
        if text:
            about["content"] = (ev.BlockContent(content=ev.TextContent(text=text)),)
        return self.tell(ev.ToolDone(id=id_, status=status, at=self.time, **about))

    def read(self, *names: str) -> Story:
        for name in names:
            self.begin(name, "read", path=name).end(name)
        return self

    def plan(self, *steps: str, done: int = 0) -> Story:
        entries = tuple(
            ev.PlanEntry(
                content=step,
                status="completed" if number < done else "in_progress" if number == done else "pending",
            )
            for number, step in enumerate(steps)
        )
        return self.tell(ev.PlanUpdate(entries=entries, at=self.time))

    def ask(self, id_: str = "q", **about: Any) -> Story:
        options = (
            ev.QuestionOption(id="yes", name="Allow", kind="allow_once"),
            ev.QuestionOption(id="no", name="Reject", kind="reject_once"),
        )
        about = {"title": "May I?", "options": options, "timeout": 60.0, **about}
        return self.tell(ev.QuestionAsked(id=id_, at=self.time, **about))

    def answer(self, id_: str = "q", choice: str | None = "allow_once", by: str = "human") -> Story:
        return self.tell(ev.QuestionAnswered(id=id_, choice=choice, by=by, why="", at=self.time))

    def fail(self, error: Exception) -> Story:
        self._error = error
        return self.phase("failed")

    @property
    def view(self) -> RunView:
        return self._reducer.snapshot(self._error)

    @property
    def now(self) -> State:
        return State(view=self.view, now=self.time, **self.shown)

    def asking(self, id_: str = "q", problem: str = "", chosen: int | None = None) -> State:
        return replace(self.now, asking=id_, problem=problem, chosen=chosen)


# Displays


class LiveTerminal:
    """A terminal on which runs are drawn, again and again."""

    def __init__(self, columns: int = 60, lines: int = 30, **options: Any) -> None:
        self.terminal = Terminal(columns, lines)
        self._renderer = LiveRenderer(self.terminal.console, reflows=True, **options)

    def draw(self, *runs: State) -> list[str]:
        """Draw the runs, and return what stands in the terminal."""
        self._renderer.draw(_given(runs))
        return self.terminal.rows

    def finish(self, *runs: State) -> list[str]:
        """Draw the end, and return all that a person finds who scrolls up."""
        self._renderer.draw(_given(runs), end=True)
        return self.terminal.everything

    def leave(self) -> None:
        """Leave the terminal to somebody else."""
        self._renderer.suspend()

    @property
    def live(self) -> list[str]:
        """The rows that are drawn again."""
        screen = self._renderer._screen
        assert isinstance(screen, Screen)
        return [row.plain for row in screen._live]


def draw_board(terminal: Terminal, read: Callable[[], BoardState | None]) -> None:
    """Draw a board on a terminal, once."""
    BoardRenderer(terminal.console, read).draw(())


class Lines:
    """Lines that are only ever added to."""

    def __init__(self, out: TextIO, **options: Any) -> None:
        self._renderer = LinesRenderer(out, **options)

    def draw(self, *runs: State) -> None:
        self._renderer.draw(_given(runs))

    def finish(self, *runs: State) -> None:
        self._renderer.draw(_given(runs), end=True)

    def leave(self) -> None:
        self._renderer.suspend()


class Json:
    """Lines of JSON."""

    def __init__(self, out: TextIO) -> None:
        self._lines = JsonLines(out)

    def error(self, error: Exception) -> None:
        self._lines.error(error)

    def result(self, value: object) -> None:
        self._lines.result(value)

    async def follow(self, stream: ThoughtStream[Any], run: str | None = None) -> None:
        """Write the events of a run, and what it came to."""
        await follow_json(stream, self._lines, run)


async def leave_before_the_first_frame() -> bool:
    """Leave the terminal before a display is made, which would fail; return whether it still draws."""

    def make() -> Renderer:
        raise AssertionError

    drawing = _drawing.Drawing((), (), make)
    async with drawing.away():
        draws = not drawing.painter.ended
    drawing.painter.end()
    return draws


def output(file: TextIO) -> TextIO:
    """Return what displays write through, where they are to write to a file."""
    return direct(file)


# The terminal


class Zones:
    """The two zones of a terminal: rows that are settled, and below them rows that are drawn again."""

    def __init__(self, terminal: Terminal, *, reflows: bool | None = True) -> None:
        self.terminal = terminal
        self._screen = Screen(terminal.console, reflows=reflows)

    def draw(self, live: Sequence[Text], above: Sequence[Text] = ()) -> list[str]:
        """Draw both, and return what stands in the terminal."""
        self._screen.draw(above, live)
        return self.terminal.rows

    def release(self) -> None:
        """Give the terminal back."""
        self._screen.release()

    @property
    def live(self) -> list[str]:
        """The rows that are drawn again, as they were written."""
        return [row.plain for row in self._screen._shown]


def wraps_rows_again(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal of an environment wraps its rows again when it becomes narrower."""
    return wraps_again(environ)


def leave_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a frame that hangs little time at the end of the program."""
    monkeypatch.setattr(_screen, "LEAVE_TIMEOUT", 0.01)


# What is settled


class Looking:
    """A run that is looked at now and then: what has settled since, each thing in words."""

    def __init__(self, story: Story | None = None, *, verbose: bool = False) -> None:
        self.story = story or Story()
        self._settling = Settling(verbose=verbose)
        if story is None:
            self.look()

    def look(self, at: float | None = None, *, end: bool = False) -> list[str]:
        """Return what has settled since the last look."""
        now = self.story.time if at is None else at
        return [_words(thing) for thing in self._settling.look(self.story.view, now, end=end)]

    @property
    def running(self) -> list[str]:
        """The calls that run, those of sub-agents below them, and how many of theirs are done."""
        return [f"{'  ' * each.depth}{each.tool.id}" for each in self._settling.running]

    @property
    def held(self) -> list[str]:
        """The calls that wait for others to share their line."""
        return [tool.id for tool in self._settling.held]

    @property
    def thinking(self) -> str:
        """What is being thought."""
        return self._settling.thinking(self.story.view)

    @property
    def saying(self) -> tuple[str, bool]:
        """What is being said, and whether it is code."""
        return self._settling.saying(self.story.view)


def _words(thing: Settled) -> str:
    match thing:
        case Calls():
            inner = "".join(f"[{'>' * depth}{tool.id}]" for depth, tool in thing.inner)
            thought = "" if thing.thought is None else f", thought {thing.thought.seconds} between"
            return f"calls {','.join(tool.id for tool in thing.tools)}{inner}{thought}"
        case Said():
            return f"said {thing.piece.text!r}{' first' if thing.first else ''}"
        case Thought():
            return f"thought {thing.seconds}"
        case UserSaid():
            return f"user {thing.text}"
        case ev.TurnStarted():
            return f"turn {thing.number}"
        case ev.PlanUpdate():
            return f"plan {','.join(entry.content for entry in thing.entries)}"
        case AnswerView():
            return f"answered {thing.id}"
        case ev.ResultAttempt():
            return "result" if thing.accepted else f"refused {thing.errors[0]}"
        case ev.Notice():
            return f"notice {thing.title}"
        case Skipped():
            return f"skipped {thing.count}"


class Speech:
    """A text that grows, in pieces."""

    def __init__(self) -> None:
        self._prose = _prose.Prose()

    def take(self, text: str, *, whole: bool = False) -> list[Piece]:
        """Return the pieces that are complete by now."""
        return list(self._prose.take(text, whole=whole))

    def tail(self, text: str) -> str:
        """Return what is not complete."""
        return self._prose.tail(text)

    @property
    def in_code(self) -> bool:
        return self._prose.in_code


def cut_paragraphs(monkeypatch: pytest.MonkeyPatch, longest: int) -> None:
    """Make pieces no longer than this."""
    monkeypatch.setattr(_prose, "LONGEST", longest)


# Runs that go on


class Pressing(Protocol):
    """Ctrl-C."""

    def press(self) -> None: ...


class Keyboard(Protocol):
    """Where questions are answered."""

    def take(self, *, lines: bool = False) -> bool: ...
    def mute(self) -> None: ...
    def unmute(self) -> None: ...
    def release(self) -> None: ...
    def key(self) -> str | None: ...
    def line(self) -> str | None: ...
    def forget(self) -> None: ...
    def close(self) -> None: ...


class Keeping(Renderer):
    """A display that keeps its frames, and lets tests wait for one. Made in the event loop."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.frames: list[tuple[State, ...]] = []
        self.threads: set[int] = set()
        self._token = current_token()
        self._news = anyio.Event()

    @property
    def last(self) -> tuple[State, ...]:
        return self.frames[-1] if self.frames else ()

    def draw(self, runs: Sequence[Any], /, *, end: bool = False) -> None:
        self._keep("finish" if end else "draw", runs)

    def suspend(self) -> None:
        self._keep("suspend")

    async def until(self, condition: Callable[[Keeping], bool]) -> None:
        """Wait until what was drawn is as expected."""
        while not condition(self):
            await self._news.wait()

    async def shows(self, condition: Callable[[State], bool]) -> State:
        """Wait until the last frame shows the first run so."""
        await self.until(lambda kept: bool(kept.frames) and condition(kept.last[0]))
        return self.last[0]

    def _keep(self, call: str, runs: Sequence[Any] | None = None) -> None:
        self.threads.add(threading.get_ident())
        anyio.from_thread.run_sync(self._tell, call, runs, token=self._token)

    def _tell(self, call: str, runs: Sequence[Any] | None) -> None:
        self.calls.append(call)
        if runs is not None:
            self.frames.append(_taken(runs))
        self._news.set()
        self._news = anyio.Event()


@asynccontextmanager
async def shown_by(
    renderer: Renderer,
    *streams: ThoughtStream[Any],
    out: TextIO | None = None,
    keyboard: Keyboard | None = None,
    ctrl_c: bool = False,
    result: bool = True,
) -> AsyncGenerator[Pressing]:
    """Show runs with a display of the test's."""
    drawing = _drawing.Drawing(streams, default_labels(streams), lambda: renderer, result=result)
    async with showing(drawing, out or io.StringIO(), keyboard=keyboard, ctrl_c=ctrl_c):
        yield drawing.ctrl_c


@asynccontextmanager
async def kept(*streams: ThoughtStream[Any], **options: Any) -> AsyncGenerator[tuple[Keeping, Pressing]]:
    """Show runs with a display that keeps what it is given; options are those of `shown_by`."""
    renderer = Keeping()
    async with shown_by(renderer, *streams, **options) as pressing:
        yield renderer, pressing


def end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the last frame little time."""
    monkeypatch.setattr(_drawing, "LAST_FRAME_TIMEOUT", 0.1)


def is_open(state: State) -> bool:
    """Whether the run waits for an answer that the keyboard may give."""
    return state.asking is not None


def stream_of(agent: Any) -> ThoughtStream[Any]:
    stream: ThoughtStream[Any] = agent.think().text("Go").stream(include="all")
    return stream


# Keyboards


def keyboard_of_this_process() -> Keyboard | None:
    """Return the keyboard where programs ask, if there is one."""
    return find_keyboard()


class Pty(Person):
    """A terminal of this process, and its keyboard. No session has it."""

    def __init__(self) -> None:
        self._ours, self._theirs = os.openpty()
        super().__init__(self._ours)
        name = os.ttyname(self._theirs)
        self.keyboard: Keyboard = TerminalKeyboard(os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
        self.out = os.fdopen(os.dup(self._theirs), "w", buffering=1)
        self._hung_up = False

    def settings(self) -> Settings:
        """How the terminal is set."""
        return termios.tcgetattr(self._theirs)

    def is_raw(self) -> bool:
        """Whether single keys are taken, unseen."""
        return is_raw(self.settings())

    def echoes(self) -> bool:
        """Whether typed characters are shown."""
        return echoes(self.settings())

    async def sees(self, pattern: str) -> str:
        """Wait until this is shown, and return all that is new up to there."""
        return await anyio.to_thread.run_sync(self.expect, pattern)

    def hang_up(self) -> None:
        """Close the person's end."""
        os.close(self._ours)
        self._hung_up = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._hung_up:
            self.hang_up()
        os.close(self._theirs)
        self.out.close()
