"""The changes of a run since the last look, as pieces for a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from thinkwell._display.calls import returns_result
from thinkwell._display.changes import Block, BlockBegun, BlockGrown, CallBegun
from thinkwell._display.questions import allowed
from thinkwell._display.text import line
from thinkwell._display.tools import describe
from thinkwell._display.view_changes import ViewReader
from thinkwell.events import TurnStarted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from thinkwell._display.changes import BlockKind
    from thinkwell.view import RunView

BETWEEN: Final = 2
"""Line feeds between two messages of a run, their own included: agents write a message, work, and write
another one."""

STATUS: Final = 200
"""Most characters of the status of a tool call."""

USING: Final = "Using: "
"""Stands before a tool call's title."""

Kind: TypeAlias = Literal["text", "thought", "thought_end", "status"]


def said(messages: Iterable[str]) -> str:
    """Return all messages as one text, without blank ones."""
    pieces: list[str] = []
    for message in messages:
        if message.strip():
            if pieces:
                pieces.append(_between(pieces[-1], message))
            pieces.append(message)
    return "".join(pieces)


def _between(before: str, after: str) -> str:
    """Return the line feeds between two texts that let the second one begin a paragraph."""
    there = len(before) - len(before.rstrip("\n")) + len(after) - len(after.lstrip("\n"))
    return "\n" * (BETWEEN - there)


class Piece(NamedTuple):
    """A change to show."""

    kind: Kind
    text: str = ""
    """The text to add; or the whole status, a clean line."""


class Following:
    """Follows a run.

    The texts that it yields add up to `said`. Only the order differs when an agent adds to a message after it
    has begun another one: that text comes later.
    """

    def __init__(self) -> None:
        self._reader = ViewReader()
        self._told: set[Block] = set()
        """Blocks of which a part was yielded."""
        self._blank: dict[Block, str] = {}
        """The blank text of other blocks, not yielded yet."""
        self._last: dict[BlockKind, str] = {"message": "", "thought": ""}
        """The end of the last yielded text."""
        self._thought_for = 0.0
        """Seconds of all ended thoughts."""
        self._thinks_since: float | None = None
        self._begun: dict[str, None] = {}
        """Tool calls without a status yet: while a question about one is open, it does not run."""

    @property
    def thinks(self) -> bool:
        """Whether the agent is thinking now."""
        return self._thinks_since is not None

    def thinking(self, now: float) -> float:
        """Return the seconds that the agent has thought in all.

        Args:
            now: Seconds since the run began.
        """
        since = self._thinks_since
        return self._thought_for + (0.0 if since is None else max(now - since, 0.0))

    def look(self, view: RunView, now: float) -> Iterator[Piece]:
        """Yield what is new, in the order in which it began.

        Args:
            view: The run.
            now: Seconds since the run began.
        """
        for change in self._reader.look(view, now):
            match change:
                case BlockBegun(block, at=at) if block.kind == "thought":
                    if self._thinks_since is None:
                        self._thinks_since = at
                case BlockBegun(at=at) | CallBegun(at=at) | TurnStarted(at=at):
                    yield from self.stop_thinking(at)
                    if isinstance(change, CallBegun):
                        self._begun[change.view.id] = None
                        yield from self._statuses(view)
                case BlockGrown(block, text) if block.kind != "user":
                    yield from self._grown(block, text)
                case _:
                    pass
        yield from self._statuses(view)

    def _grown(self, block: Block, text: str) -> Iterator[Piece]:
        """Yield a piece of a block, unless it is blank."""
        last = self._last[block.kind]
        if block not in self._told:
            text = self._blank.pop(block, "") + text
            if not text.strip():
                self._blank[block] = text
                return
            self._told.add(block)
            text = (_between(last, text) if last else "") + text
        self._last[block.kind] = (last + text)[-BETWEEN:]
        yield Piece("text" if block.kind == "message" else "thought", text)

    def _statuses(self, view: RunView) -> Iterator[Piece]:
        """Yield a status for each started tool call that has no open question."""
        if not self._begun:
            return
        asked = {question.tool_id for question in view.questions}
        for id_ in [id_ for id_ in self._begun if id_ not in asked]:
            del self._begun[id_]
            answers = [answer for answer in view.answers if answer.tool_id == id_]
            if not answers or allowed(answers[-1]):
                yield from _status(view, id_)

    def stop_thinking(self, now: float) -> Iterator[Piece]:
        """Yield the end of a thought, if there is one.

        Args:
            now: Seconds since the run began.
        """
        if self._thinks_since is not None:
            self._thought_for = self.thinking(now)
            self._thinks_since = None
            yield Piece("thought_end")


def _status(view: RunView, tool_id: str) -> Iterator[Piece]:
    tool = view.tools.get(tool_id)
    if tool is not None and not returns_result(tool):
        call = describe(tool, view.cwd)
        yield Piece("status", line(f"{USING}{call.verb} {call.target}".rstrip(), STATUS))
