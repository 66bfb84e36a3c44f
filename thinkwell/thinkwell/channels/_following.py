"""What is new about a run since one has looked last, in the pieces in which channels take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from thinkwell._core.schema.output import RESULT_TOOL
from thinkwell._display.questions import allowed
from thinkwell._display.text import line
from thinkwell._display.tools import describe, tool_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from thinkwell.view import RunView

__all__ = ("BETWEEN", "Following", "Piece", "said")

BETWEEN: Final = 2
"""Line feeds between the messages of a run, their own ones among them: agents say something, work, and say
something else."""

STATUS: Final = 200
"""Characters of what is told of a tool call."""

USING: Final = "Using: "
"""What is said before what a tool call does."""

Kind: TypeAlias = Literal["text", "thought", "thought_end", "status"]


def said(messages: Iterable[str]) -> str:
    """Return all messages as one text. Those that are blank are left out."""
    pieces: list[str] = []
    for message in messages:
        if message.strip():
            if pieces:
                pieces.append(_between(pieces[-1], message))
            pieces.append(message)
    return "".join(pieces)


def _between(before: str, after: str) -> str:
    """Return what is to stand between two texts, so that the second one begins a paragraph."""
    there = len(before) - len(before.rstrip("\n")) + len(after) - len(after.lstrip("\n"))
    return "\n" * (BETWEEN - there)


class Piece(NamedTuple):
    """Something new."""

    kind: Kind
    text: str = ""
    """What to add; or the whole status, a clean line."""


class Following:
    """Follows a run.

    The texts that it yields add up to what was `said`, but where an agent adds to a message after it has
    begun another one: nothing of that is lost, but it comes later.
    """

    def __init__(self) -> None:
        self._items = 0
        """How many items of the timeline were told, or begun to be."""
        self._messages = _Blocks("text")
        self._thoughts = _Blocks("thought")
        self._thought_for = 0.0
        """Seconds that thoughts took that have ended."""
        self._thinks_since: float | None = None
        self._begun: dict[str, None] = {}
        """Tool calls of which was not told yet: while somebody is asked, nothing is done."""

    @property
    def thinks(self) -> bool:
        """Whether the agent thinks now."""
        return self._thinks_since is not None

    def thinking(self, now: float) -> float:
        """Return the seconds that the agent has thought in all.

        Args:
            now: Seconds since the run began.
        """
        since = self._thinks_since
        return self._thought_for + (0.0 if since is None else max(now - since, 0.0))

    def look(self, view: RunView) -> Iterator[Piece]:
        """Yield what is new, in the order in which it began."""
        timeline = view.timeline
        for index in range(max(self._items - 1, 0), len(timeline)):
            item = timeline[index]
            begins = index >= self._items
            if item.kind == "thought":
                if self._thinks_since is None and begins:
                    self._thinks_since = item.at
                yield from self._thoughts.grown(view.thought_blocks, item.index)
                continue
            if begins:
                yield from self._stop_thinking(item.at)
            if item.kind == "message":
                yield from self._messages.grown(view.messages, item.index)
            elif item.kind == "tool" and begins and item.id is not None:
                self._begun[item.id] = None
                yield from self._statuses(view)
        self._items = len(timeline)
        yield from self._statuses(view)
        for blocks, texts, whole in (
            (self._messages, view.messages, view.text),
            (self._thoughts, view.thought_blocks, view.thoughts),
        ):
            if blocks.told < len(whole):  # an earlier one has grown, or one is blank
                for index in range(len(texts)):
                    yield from blocks.grown(texts, index)

    def _statuses(self, view: RunView) -> Iterator[Piece]:
        """Yield which tool calls have begun that nobody is asked about, or is no more."""
        if not self._begun:
            return
        asked = {question.tool_id for question in view.questions}
        for id_ in [id_ for id_ in self._begun if id_ not in asked]:
            del self._begun[id_]
            answers = [answer for answer in view.answers if answer.tool_id == id_]
            if not answers or allowed(answers[-1]):
                yield from _status(view, id_)

    def end(self, now: float) -> Iterator[Piece]:
        """Yield what there is to say at the end.

        Args:
            now: Seconds since the run began.
        """
        yield from self._stop_thinking(now)

    def _stop_thinking(self, now: float) -> Iterator[Piece]:
        if self._thinks_since is not None:
            self._thought_for = self.thinking(now)
            self._thinks_since = None
            yield Piece("thought_end")


class _Blocks:
    """Texts that grow, and how much of each was told."""

    def __init__(self, kind: Kind) -> None:
        self.told = 0
        """Characters that were told, of all of them."""
        self._kind: Final = kind
        self._last = ""
        """The end of what was told last."""
        self._lengths: dict[int, int] = {}

    def grown(self, texts: Sequence[str], index: int) -> Iterator[Piece]:
        """Yield what one of them has more than the last time. One that is blank is not told."""
        text = texts[index]
        length = self._lengths.get(index, 0)
        if len(text) == length or not (length or text.strip()):
            return
        grown = text[length:]
        between = _between(self._last, grown) if self._last and not length else ""
        self._lengths[index] = len(text)
        self._last = (self._last + grown)[-BETWEEN:]
        self.told += len(grown)
        yield Piece(self._kind, between + grown)


def _status(view: RunView, tool_id: str) -> Iterator[Piece]:
    tool = view.tools.get(tool_id)
    if tool is not None and RESULT_TOOL not in (tool_name(tool) or tool.title):
        call = describe(tool, view.cwd)
        yield Piece("status", line(f"{USING}{call.verb} {call.target}".rstrip(), STATUS))
