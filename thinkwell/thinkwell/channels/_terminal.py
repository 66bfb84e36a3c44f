"""A terminal, a pipe or a file as a channel: text is only appended."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO

import anyio

from thinkwell._display import numbers
from thinkwell._display.chunks import CleanChunks
from thinkwell._display.text import clean, exact, line
from thinkwell._terminal.keyboard import BACKGROUND_INTERVAL, POLL_INTERVAL, find_keyboard
from thinkwell.channels._page import Page
from thinkwell.channels._protocols import ChannelCapabilities, DeliverySettings
from thinkwell.channels._writer import Writer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from thinkwell._terminal.keyboard import Keyboard
    from thinkwell.channels._page import Kind
    from thinkwell.channels._protocols import ChannelChoice, ChannelQuestion

UNREACHABLE: Final = "there is no keyboard to answer with"


class _NobodyReads(BrokenPipeError):  # noqa: N818 - its name is what happened
    """The pipe has lost its reader for good."""

    temporary = False


class TerminalChannel:
    """Shows answers in a terminal while they are written. A pipe or a file works too.

    Written text is never changed. The answer is shown as the agent wrote it; thinking is dim, after ``┆``,
    and the agent's actions are in brackets. If there are several users, each line begins with the user's
    name. No text can control the terminal, not even when it is split into pieces.

    A terminal that accepts no output blocks only the delivery.

    Args:
        out: The file to write to; by default the standard output. It is not closed.
        read_line: Returns the next line of input without its end; by default the terminal's keyboard is read.
            It is cancelled when the question is no longer open, and raises `EOFError` if nothing can be
            read.
        settings: The settings of its deliveries.

    Raises:
        ValueError: There is no standard output.
    """

    def __init__(
        self,
        out: TextIO | None = None,
        *,
        read_line: Callable[[], Awaitable[str]] | None = None,
        settings: DeliverySettings | None = None,
    ) -> None:
        out = sys.stdout if out is None else out
        if out is None:
            raise ValueError("TerminalChannel(): this program has no standard output; give out=…")
        self._writer = Writer(out)
        self._page = Page(dim=_takes_escapes(out))
        self._read_line = read_line
        self._settings = settings or DeliverySettings()
        self._streams: dict[str, _Stream] = {}
        self._asking = anyio.Lock()

    @property
    def capabilities(self) -> ChannelCapabilities:
        """Messages of any length, which cannot be edited."""
        return ChannelCapabilities()

    @property
    def settings(self) -> DeliverySettings:
        """The settings of its deliveries."""
        return self._settings

    async def send(self, user_id: str, text: str) -> None:
        """Write a text. If its beginning was already streamed, only the rest is written.

        Raises:
            BrokenPipeError: The pipe has lost its reader. `deliver` does not retry that.
            OSError: It cannot be written.
            ValueError: The file was closed.
        """
        stream = self._stream(user_id)
        missing = stream.missing(text)
        if missing is None:
            self._finish(user_id, stream)
            missing = text
        self._add(user_id, stream, "say", missing)
        self._finish(user_id, stream)
        stream.said = [text]
        await self._write(stream)
        if self._streams.get(user_id) is stream:  # pragma: no branch - no other should have been begun
            del self._streams[user_id]

    async def notify(self, user_id: str, text: str) -> None:
        """Write a text beside the answer that is being written, in separate lines."""
        await self._put(user_id, "note", clean(text).strip("\n"))

    async def on_stream_start(self, user_id: str) -> None:
        """Begin an answer. Nothing is written yet."""
        if (stream := self._streams.pop(user_id, None)) is not None:  # it had no end
            self._finish(user_id, stream)
        await self._write(self._stream(user_id))

    async def on_stream_chunk(self, user_id: str, chunk: str) -> None:
        """Write a piece of the answer.

        While there are several users, or a question waits for input, each line is written when it is
        complete.
        """
        stream = self._stream(user_id)
        stream.said.append(chunk)
        self._add(user_id, stream, "say", chunk)
        await self._write(stream)

    async def on_stream_status(self, user_id: str, status: str) -> None:
        """Write the agent's status in a separate line."""
        await self._note(user_id, status)

    async def on_stream_end(self, user_id: str, full_text: str) -> None:
        """Write the text that was not streamed: the end, or all of it if the chunks differ from it."""
        await self.send(user_id, full_text)

    async def on_stream_thinking(self, user_id: str, chunk: str) -> None:
        """Write a piece of thinking."""
        stream = self._stream(user_id)
        self._add(user_id, stream, "think", chunk)
        await self._write(stream)

    async def on_stream_thinking_end(self, user_id: str, seconds: float) -> None:
        """Write how long the agent has thought."""
        stream = self._stream(user_id)
        self._finish(user_id, stream)
        self._page.add_lines(user_id, "think", f"thought for {numbers.seconds(seconds)}")
        await self._write(stream)

    async def ask(self, user_id: str, question: ChannelQuestion) -> str | None:
        """Ask, and wait for a line of input that is a valid answer. One question is asked at a time.

        Returns:
            The id of a choice, or a text; ``None`` without a keyboard, or after Ctrl-D.
        """
        async with self._asking:
            keyboard = find_keyboard() if self._read_line is None else None
            read = self._read_line
            try:
                if keyboard is not None:
                    await _take(keyboard)
                    read = partial(_typed, keyboard)
                await self._put(user_id, "ask", "\n".join(_rows(question)))
                if read is not None:
                    return await self._answer(user_id, question, read)
                await self._note(user_id, UNREACHABLE)
                return None
            finally:
                self._page.typed(ended=False)
                if keyboard is not None:
                    keyboard.close()

    async def on_question_end(self, user_id: str, question: ChannelQuestion, outcome: str) -> None:
        """Write the outcome of a question."""
        await self._note(user_id, outcome)

    async def _answer(
        self, user_id: str, question: ChannelQuestion, read: Callable[[], Awaitable[str]]
    ) -> str | None:
        keys = _keys(question)
        while keys or question.takes_text:
            self._page.prompted = True
            await self._write(None)
            try:
                typed = (await read()).strip()
            except EOFError:
                return None
            self._page.typed(ended=True)
            for key, choice in keys:
                if typed.casefold() == key.casefold():
                    return choice.id
            if question.takes_text:
                return typed
            known = ", ".join(key for key, _ in keys)
            await self._put(user_id, "ask", f"That is not one of the answers. Type one of: {known}")
        return None

    async def _note(self, user_id: str, text: str) -> None:
        await self._put(user_id, "note", f"[{line(text)}]")

    async def _put(self, user_id: str, kind: Kind, text: str) -> None:
        """Write whole lines."""
        stream = self._streams.get(user_id)
        if stream is not None:
            self._page.add(user_id, stream.kind, stream.take_all())
        self._page.add_lines(user_id, kind, text)
        await self._write(stream)

    def _stream(self, user_id: str) -> _Stream:
        return self._streams.setdefault(user_id, _Stream())

    def _add(self, user_id: str, stream: _Stream, kind: Kind, chunk: str) -> None:
        if stream.kind != kind:
            self._finish(user_id, stream)
            stream.kind = kind
        stream.add(chunk)
        alone = len(self._streams) == 1 and not self._page.prompted
        self._page.add(user_id, kind, stream.take(whole_lines=not alone))

    def _finish(self, user_id: str, stream: _Stream) -> None:
        """End the unfinished answer, and its line."""
        self._page.add(user_id, stream.kind, stream.finish())
        self._page.end_line(user_id)

    async def _write(self, stream: _Stream | None) -> None:
        self._writer.put(self._page.take())
        try:
            await self._writer.flush()
        except (OSError, ValueError) as exc:
            if stream is not None:
                stream.said.clear()  # it may be partly written
            if isinstance(exc, BrokenPipeError):
                raise _NobodyReads(*exc.args) from exc
            raise


class _Stream:
    """The state of an answer that is being written."""

    def __init__(self) -> None:
        self.kind: Kind = "say"
        self.said: list[str] = []
        """The chunks of the answer, as they came."""
        self._clean = CleanChunks()
        self._left = ""
        """Clean text that was not written yet."""

    def add(self, chunk: str) -> None:
        self._left += self._clean.take(chunk)

    def take(self, *, whole_lines: bool) -> str:
        """Return the text to write, without the line feeds at the end: they come with the next line."""
        end = self._left.rfind("\n") + 1 if whole_lines else len(self._left)
        text = self._left[:end].rstrip("\n")
        self._left = self._left[len(text) :]
        return text

    def take_all(self) -> str:
        """Return the rest of the kept text, without the line feeds at the end."""
        text, self._left = self._left.rstrip("\n"), ""
        return text

    def finish(self) -> str:
        """Return the rest of the text, before something else is written."""
        self._left += self._clean.rest()
        self._clean = CleanChunks()
        return self.take_all()

    def missing(self, text: str) -> str | None:
        """Return the part of the answer after the chunks, or ``None`` if the chunks differ from it."""
        said = "".join(self.said)
        if text.startswith(said):
            return text[len(said) :]
        if text.startswith(said := said.strip()):
            self._left = self._left.rstrip("\n")
            return text[len(said) :]
        return None


def _takes_escapes(out: TextIO) -> bool:
    if sys.platform == "win32":  # consoles need a mode first
        return False
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return not plain and out.isatty()


def _rows(question: ChannelQuestion) -> Iterator[str]:
    """Yield the lines of a question."""
    first, *rows = clean(question.text).split("\n")
    yield f"? {first}"
    yield from (f"  {row}".rstrip() for row in rows)
    if question.code:
        yield from (f"    {row}".rstrip() for row in exact(question.code).split("\n"))
    if question.url is not None:
        yield f"    {exact(question.url)}"
    if question.takes_text and question.hint:
        yield f"  ({line(question.hint)})"
    if question.deadline is not None:
        yield f"  denied in {numbers.seconds(question.deadline)}, unless it is answered"
    yield from (f"  {key:>2}  {line(choice.label)}" for key, choice in _keys(question))


def _keys(question: ChannelQuestion) -> list[tuple[str, ChannelChoice]]:
    """Return the key for each choice. If a text may be typed too, keys cannot look like one."""
    ids = [choice.id for choice in question.choices]
    if question.takes_text:
        keys = [f"/{number}" for number in range(1, len(ids) + 1)]
    elif all(len(id_) == 1 and id_.isalnum() for id_ in ids) and len(set(map(str.casefold, ids))) == len(ids):
        keys = ids
    else:
        keys = [str(number) for number in range(1, len(ids) + 1)]
    return list(zip(keys, question.choices, strict=True))


async def _take(keyboard: Keyboard) -> None:
    """Take the keyboard, and drop earlier input: it was meant for something else."""
    while not keyboard.take(lines=True):  # noqa: ASYNC110 - nothing tells when
        await anyio.sleep(BACKGROUND_INTERVAL)  # pragma: no cover - as where questions are asked by keys


async def _typed(keyboard: Keyboard) -> str:
    while (typed := keyboard.line()) is None:  # noqa: ASYNC110 - as where keys are read
        await anyio.sleep(POLL_INTERVAL)  # pragma: no cover - tested; it depends on who types
    keyboard.forget()  # several lines were pasted
    return typed
