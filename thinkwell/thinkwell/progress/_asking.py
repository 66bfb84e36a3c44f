"""Answers an agent's questions at the keyboard: one after another, by one key or line by line."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO

import anyio

from thinkwell._display.filling import fill_in, heading
from thinkwell._display.questions import FILL_IN, Putting, keys_of
from thinkwell._display.text import exact, line
from thinkwell._terminal.keyboard import BACKGROUND_INTERVAL, POLL_INTERVAL
from thinkwell.errors import AnswerInvalid, QuestionNotOpen
from thinkwell.questions import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from thinkwell._display.filling import Picking
    from thinkwell._display.questions import Asked
    from thinkwell._terminal.keyboard import Keyboard
    from thinkwell.progress._drawing import Drawing
    from thinkwell.questions import Answer, FormValue
    from thinkwell.view import QuestionView

GRACE: Final = 0.25
"""Seconds after a question appears in which keys do not count: they were meant for something else."""


class Asking:
    """Asks the open questions of runs, in order.

    Args:
        drawing: Shows which question is asked.
        keyboard: The source of answers. It is closed at the end.
        out: The terminal.
        picks: Whether the display is redrawn: it can show a list from which a value is picked, and typed
            characters are hidden.
    """

    def __init__(self, drawing: Drawing, keyboard: Keyboard, out: TextIO, *, picks: bool = False) -> None:
        self._drawing = drawing
        self._keyboard = keyboard
        self._out = out
        self._picks = picks
        self._answered: set[tuple[int, str]] = set()
        """The questions with an answer; the log reports it a moment later."""
        self._putting = Putting()
        self._again = False
        """Whether the terminal was used otherwise meanwhile, so that the question must be shown again."""

    async def run(self) -> None:
        """Ask all questions, until cancelled or until nothing is drawn any more."""
        try:
            self.step_forward()
            while not self._drawing.painter.ended:  # pragma: no branch - most often cancelled
                found = self._next()
                if found is None:
                    await self._drawing.news()
                elif not self._keyboard.take():
                    await anyio.sleep(BACKGROUND_INTERVAL)  # pragma: no cover - tested with a shell's bg
                else:
                    await self._put(*found)
        finally:
            self._keyboard.close()

    def step_back(self) -> None:
        """Release the keyboard: the program is about to be stopped. The question is asked again later."""
        self._again = True
        self._keyboard.unmute()

    def step_forward(self) -> None:
        """Use the keyboard from now on: a display that is redrawn must not be moved by what is typed."""
        if self._picks:
            self._keyboard.mute()

    def _next(self) -> tuple[int, QuestionView] | None:
        """Return the first open question, with the number of its run."""
        for index, shown in enumerate(self._drawing.shown):
            if shown.view.questions and self._drawing.streams[index]._run.live:
                for question in shown.view.questions:
                    if (index, question.id) not in self._answered:
                        return index, question
        return None

    async def _put(self, index: int, question: QuestionView) -> None:
        """Ask the user a question, until it is answered or closed."""
        drawing, keyboard = self._drawing, self._keyboard
        self._again = False
        try:
            drawing.ask((index, question.id))
            if await drawing.drawn():  # pragma: no branch - else drawing fails at this very frame
                seen = self._putting.put(question, drawing.shown[index].view)
                await anyio.sleep(GRACE)
                keyboard.forget()
                await self._listen(index, question, seen)
        finally:
            drawing.ask(None)
            keyboard.release()

    async def _listen(self, index: int, question: QuestionView, seen: Asked) -> None:
        """Handle keys until the question is answered or closed, or must be asked again.

        It must also be asked again if it has changed since it was shown: keys are for what the user saw.
        """
        chosen: int | None = None
        while self._is_open(index, question) and not self._again and not self._drawing.painter.ended:
            if not seen.same(self._putting.put(question, self._drawing.streams[index].view)):
                return
            key = self._keyboard.key()
            if key is None:
                await anyio.sleep(POLL_INTERVAL)
                continue
            keys = keys_of(seen)
            if key in ("up", "down"):
                # No answer is chosen at first: Enter may have been meant for something else.
                step = 1 if key == "down" else -1
                chosen = (chosen + step) % len(keys) if chosen is not None else min(step, 0) % len(keys)
                self._drawing.ask((index, question.id), chosen=chosen)
                continue
            if key == "enter" and chosen is not None:
                key = keys[chosen].key
            if len(key) == 1 and await self._press(key, index, question):
                self._answered.add((index, question.id))
                return

    def _is_open(self, index: int, question: QuestionView) -> bool:
        return any(each.id == question.id for each in self._drawing.streams[index].view.questions)

    async def _press(self, key: str, index: int, question: QuestionView) -> bool:
        """Handle a key, and return whether the question is answered."""
        view = self._drawing.streams[index].view
        asked = self._putting.put(question, view)
        keys = keys_of(asked)
        meant = next((each for each in keys if each.key == key.lower()), None)
        if meant is None:
            known = ", ".join(f"[{each.key}]" for each in keys)
            self._drawing.ask((index, question.id), f"[{exact(key)}] means nothing here: press {known}")
            return False
        if meant.answer is not None:
            return self._answer(index, question, Reply(meant.answer, f"[{meant.key}] was pressed"))
        if meant.key == FILL_IN:
            return await self._fill_in(index, question, asked)
        self._drawing.explain()
        await self._drawing.drawn()
        self._keyboard.forget()
        return False

    def _answer(self, index: int, question: QuestionView, answer: Answer) -> bool:
        """Give an answer, and return whether the question is answered."""
        try:
            self._drawing.streams[index].answer(question.id, answer, by="human")
        except QuestionNotOpen:  # pragma: no cover - another answer was faster, by a moment
            return True
        except AnswerInvalid as exc:  # pragma: no cover - each value was checked, but in other circumstances
            self._drawing.ask((index, question.id), line(str(exc)))
            return False
        return True

    async def _fill_in(self, index: int, question: QuestionView, asked: Asked) -> bool:
        """Fill in a form, field by field, and return whether the question is answered."""

        async def next_(look: Callable[[], str | None]) -> str:
            while (found := look()) is None:
                if self._again or not self._is_open(index, question):
                    raise _Gone
                await anyio.sleep(POLL_INTERVAL)
            return found

        async def read(prompt: str) -> str:
            async with self._lines(begins=self._picks):
                await self._write(prompt)
                return await next_(self._keyboard.line)

        async def pick(picking: Picking) -> FormValue | None:
            while True:
                self._drawing.ask((index, question.id), picking=picking)
                match await next_(self._keyboard.key):
                    case "enter":
                        return picking.value
                    case "leave":
                        raise EOFError
                    case key:
                        picking = picking.pressed(key)

        async with self._lines(begins=not self._picks):
            try:
                async with self._drawing.away():
                    await self._write(heading(asked))
                values = await fill_in(asked.fields, read, pick if self._picks else None)
                return self._answer(index, question, Reply(values, "it was filled in"))
            except EOFError:
                await self._write("\n")
            except _Gone:
                await self._write("\nThe question is gone.\n")
            except anyio.get_cancelled_exc_class():
                self._drawing.painter.begin(partial(self._put_out, "\n"))
                raise
        self._drawing.ask((index, question.id))
        return False

    @asynccontextmanager
    async def _lines(self, *, begins: bool) -> AsyncGenerator[None]:
        """Read typed lines during a block, instead of drawing.

        Args:
            begins: Whether this starts here, not in another such block around this one.
        """
        if not begins:
            yield
            return
        async with self._drawing.away():
            self._keyboard.take(lines=True)
            try:
                yield
            finally:
                self._keyboard.take()

    async def _write(self, text: str) -> None:
        await self._drawing.painter.do(partial(self._put_out, text))

    def _put_out(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class _Gone(Exception):  # noqa: N818 - it is none that anybody sees
    """The question is closed, or must be asked again."""
