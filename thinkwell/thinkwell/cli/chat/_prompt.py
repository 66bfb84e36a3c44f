"""The prompt at the foot of a terminal: what runs, what waits, an input area and a status line."""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Final

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from thinkwell._display.cells import clip
from thinkwell._display.text import clean, line
from thinkwell._terminal.shared import SharedTerminal
from thinkwell.cli.chat._answers import Answers
from thinkwell.cli.chat._completion import is_completed_while_typed
from thinkwell.cli.chat._entries import unquoted
from thinkwell.cli.chat._keys import key_bindings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

    from prompt_toolkit.completion import Completer
    from prompt_toolkit.filters import FilterOrBool
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.output import Output

    from thinkwell._terminal.keyboard import Keyboard
    from thinkwell.cli.chat._answers import Wanted

__all__ = ("Prompt", "prompt_output")

FIRST: Final = "> "
"""Precedes the input area, and entries that were sent."""

MORE: Final = "  "

TYPED: Final = 10
"""Most rows of the input area."""

OFFERED: Final = 7
"""Most rows of the list of completions."""

WAITING: Final = 3
"""Most waiting entries that are shown."""

_BEGIN: Final = "\x1b[?2026h"
"""The terminal shows a frame only when it is complete."""
_END: Final = "\x1b[?2026l"

STYLE: Final = Style.from_dict(
    {
        "rule": "ansibrightblack",
        "waits": "ansibrightblack",
        "hint": "ansiyellow",
        "status": "ansibrightblack",
        "prompt": "ansicyan bold",
        "completion-menu": "noinherit",
        "completion-menu.completion": "noinherit",
        "completion-menu.completion.current": "noinherit reverse",
        "completion-menu.meta.completion": "noinherit ansibrightblack",
        "completion-menu.meta.completion.current": "noinherit reverse",
        "scrollbar.background": "noinherit",
        "scrollbar.button": "noinherit reverse",
    }
)


@contextmanager
def prompt_output() -> Generator[None]:
    """Let prompts appear on standard error during a block, if standard output is no terminal."""
    if sys.stdout.isatty():
        yield
        return
    with create_app_session(output=create_output(sys.stderr)):
        yield


class Prompt:
    """An input area, with the agent's work above it.

    Args:
        history: Earlier entries.
        completer: Completes words.
        status: Returns the status line for a number of columns.
        interrupt: Cancels the current turn or command, and returns whether there was one.
    """

    def __init__(
        self,
        *,
        history: History,
        completer: Completer,
        status: Callable[[int], str],
        interrupt: Callable[[], bool],
    ) -> None:
        self.buffer = Buffer(
            history=history,
            completer=completer,
            complete_while_typing=Condition(self._completes),
            multiline=True,
        )
        self.waiting: deque[str] = deque()
        """The entries that wait."""
        self.on_question = False
        """Whether the keys go to a question, and not to the input area."""
        self._status = status
        self._interrupt = interrupt
        self._told: tuple[str, ...] = ()
        """The entry with which the agent is being steered."""
        self._interrupted = False
        self._left = False
        self._idle = False
        """Whether nothing runs, and the next entry is awaited."""
        self._closed = False
        self._draft = ""
        """The text in the input area when a question needed a line."""
        self._news = anyio.Event()
        self._live: Sequence[str] = ()
        self.terminal = _Above(self._draw, self._size)
        self.answers = Answers(self._answering, self.terminal.write)
        self.terminal.answers = self.answers
        self._app: Application[None] = Application(
            self._layout(),
            style=STYLE,
            key_bindings=key_bindings(self),
            erase_when_done=True,
            before_render=lambda _: self._shrink(),
            after_render=lambda _: self._raw(_END),
        )
        self._app.ttimeoutlen = 0.05
        self._app.timeoutlen = 0.3
        if isinstance(self._app.output, Vt100_Output):  # pragma: no branch - else a console of Windows
            self._app.output.enable_cpr = False  # the layout is as high as its contents

    # For the chat

    async def run(self) -> None:
        """Show the prompt until `close`, or until the terminal has closed."""
        try:
            if not self._closed:
                await self._app.run_async(set_exception_handler=False)
        except EOFError:
            self.waiting.clear()
            self._left = True
            self._news.set()
            self._interrupt()

    def close(self) -> None:
        """Remove it from the terminal."""
        self._closed = True
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    async def next_entry(self) -> str:
        """Return the next entry, and print it above.

        Raises:
            EOFError: The user leaves.
        """
        while not self.waiting:
            if self._left:
                raise EOFError
            self._news, self._idle = anyio.Event(), True
            await self._news.wait()
        self._idle = False
        entry = self.waiting.popleft()
        rows = clean(entry).split("\n")
        self.terminal.write("".join(f"{MORE if number else FIRST}{row}\n" for number, row in enumerate(rows)))
        return entry

    async def tell_each(self, tell: Callable[[str], Awaitable[bool]]) -> None:
        """Steer the agent with the entries that come while it works, until it does not take one.

        That one waits again. If this is cancelled, it waits for the agent's answer to the last one.
        """
        while True:
            while not self.waiting:
                self._news = anyio.Event()
                await self._news.wait()
            entry = self.waiting.popleft()
            self._told, self._interrupted = (entry,), False
            taken = False
            with anyio.CancelScope(shield=True):  # bounded by the end of the run
                taken = await tell(entry)
            self._told = ()
            if taken:
                continue
            if self._interrupted:
                self._put("\n".join(filter(None, (entry, self.buffer.text))))
            else:
                self.waiting.appendleft(entry)
            return

    @contextmanager
    def beside(self) -> Generator[None]:
        """Print the program's output above, during a block."""
        out = redirect_stdout(self.terminal) if sys.stdout.isatty() else nullcontext()
        with redirect_stderr(self.terminal), out:
            yield

    # For the keys

    def enter(self) -> None:
        """Take the text of the input area."""
        text = self.buffer.text
        if self.answers.wanted == "lines":
            self.buffer.reset()
            self.answers.enter(text)
            return
        entry = self.buffer.text = unquoted(text)
        self.buffer.reset(append_to_history=True)
        if entry.strip():
            self.waiting.append(entry)
            self._news.set()

    def take_back(self) -> None:
        """Put the last waiting entry back into the input area."""
        self._put(self.waiting.pop())

    def leave(self) -> None:
        """Leave when the waiting entries are done; or leave a form."""
        if self.answers.wanted == "lines":
            self.answers.enter(None)
            return
        self._left = True
        self._news.set()
        if not self._idle:
            self.terminal.write("(leaves when this is done; Ctrl-C cancels it)\n")

    def interrupt(self) -> None:
        """Cancel the current turn or command, and put the waiting messages back; or clear the input area.

        Waiting commands are dropped; the history has them.
        """
        if self._interrupt():
            self._interrupted = True
            messages = (each for each in self.waiting if not each.startswith("/"))
            texts = [*messages, *filter(None, (self.buffer.text,))]
            self.waiting.clear()
            self._put("\n".join(texts))
            return
        self.buffer.reset()
        self.terminal.write("(Ctrl-D or /exit leaves)\n")

    def _answering(self, before: Wanted) -> None:
        """Give the keys to a question, or take them back."""
        wanted = self.answers.wanted
        if wanted == "lines":
            self._draft = self.buffer.text
            self.buffer.reset()
        elif before == "lines":
            self._put(self._draft)
        if wanted != "keys":
            self.on_question = False
        elif before is None:
            self.on_question = not self.buffer.text  # the text was typed for the agent
        else:
            self.on_question = True
        self._app.invalidate()

    def _put(self, text: str) -> None:
        """Put a text into the input area."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    def _completes(self) -> bool:
        before = self.buffer.document.current_line_before_cursor
        return self.answers.wanted != "lines" and is_completed_while_typed(before)

    # The layout

    def _layout(self) -> Layout:
        search = SearchToolbar()
        typed = Window(
            BufferControl(self.buffer, search_buffer_control=search.control, preview_search=True),
            height=Dimension(min=1, max=TYPED),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=self._before,
        )
        return Layout(
            HSplit(
                [
                    _rows(lambda: ANSI("\n".join(self._live)), Condition(lambda: bool(self._live))),
                    _rows(self._waits, Condition(lambda: bool(self._told or self.waiting))),
                    _rows(self._hint, Condition(lambda: self.answers.wanted is not None)),
                    Window(height=1, char="─", style="class:rule"),
                    typed,
                    search,
                    CompletionsMenu(max_height=OFFERED),
                    _rows(lambda: [("class:status", f" {self._status(self._size()[0] - 2)}")]),
                ],
                align=VerticalAlign.TOP,
            ),
            focused_element=typed,
        )

    def _before(self, number: int, wrapped: int) -> StyleAndTextTuples:
        return [("class:prompt", MORE if number or wrapped else FIRST)]

    def _waits(self) -> StyleAndTextTuples:
        width = self._size()[0] - 10
        shown = [f" waits  {clip(line(each), width)}" for each in (*self._told, *self.waiting)[:WAITING]]
        if (more := len(self._told) + len(self.waiting) - WAITING) > 0:
            shown.append(f"        … and {more} more")
        return [("class:waits", "\n".join(shown))]

    def _hint(self) -> StyleAndTextTuples:
        if self.answers.wanted == "lines":
            told = "Enter gives the answer; Ctrl-D leaves the form"
        elif self.on_question:
            told = "the keys answer the question; Esc goes to the message"
        else:
            told = "Esc goes to the question"
        return [("class:hint", f" {told}")]

    def _size(self) -> tuple[int, int]:
        size = self._app.output.get_size()
        return size.columns, size.rows

    def _draw(self, above: str, live: Sequence[str] | None) -> None:
        if live is not None:
            self._live = live
        if above:
            self._raw(_BEGIN)
            if self._app.is_running:
                self._app.renderer.erase()
            self._app.output.write_raw(above.replace("\n", "\r\n"))
            self._app.output.flush()
        self._app.invalidate()

    def _shrink(self) -> None:
        """Erase the prompt when it becomes lower, so that no old rows stay."""
        output, renderer = self._app.output, self._app.renderer
        size = output.get_size()
        wanted = self._app.layout.container.preferred_height(size.columns, size.rows).preferred
        drawn = renderer.last_rendered_screen
        if drawn is not None and wanted < drawn.height:
            self._raw(_BEGIN)
            renderer.erase()

    def _raw(self, sequence: str) -> None:
        output: Output = self._app.output
        if isinstance(output, Vt100_Output):  # pragma: no branch - as above
            output.write_raw(sequence)
            output.flush()


class _Above(SharedTerminal):
    """The terminal above the prompt. Any thread may write to it."""

    answers: Keyboard

    def __init__(
        self,
        draw: Callable[[str, Sequence[str] | None], None],
        size: Callable[[], tuple[int, int]],
    ) -> None:
        super().__init__()
        self._draw = draw
        self._size = size
        self._token = current_token()
        self._thread = threading.get_ident()
        self._unfinished = ""

    @property
    def keyboard(self) -> Keyboard:
        return self.answers

    @property
    def size(self) -> tuple[int, int]:
        return self._size()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a text stream's own has no getter there
        return "utf-8"

    def draw(self, above: str, live: Sequence[str]) -> None:
        self._in_loop(above, live)

    def write(self, text: str, /) -> int:
        done, ended, self._unfinished = (self._unfinished + text).rpartition("\n")
        self._in_loop(done + ended, None)
        return len(text)

    def _in_loop(self, above: str, live: Sequence[str] | None) -> None:
        if threading.get_ident() == self._thread:
            self._draw(above, live)
        else:
            anyio.from_thread.run_sync(self._draw, above, live, token=self._token)


def _rows(text: Callable[[], ANSI | StyleAndTextTuples], shown: FilterOrBool = True) -> ConditionalContainer:
    """Return a text as rows, as high as it is."""
    return ConditionalContainer(Window(FormattedTextControl(text), dont_extend_height=True), shown)
