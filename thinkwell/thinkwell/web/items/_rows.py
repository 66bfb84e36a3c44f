"""The rows of a run's timeline, with their items."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct

from thinkwell._display import diffs, numbers, questions, tools
from thinkwell._display.calls import RESULT, returns_result
from thinkwell._display.changes import answered_question, open_question
from thinkwell._display.items import rows
from thinkwell._display.items.growth import GrowingText
from thinkwell._display.items.nodes import element
from thinkwell.web.items._store import NOTHING, More, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from thinkwell import events as ev
    from thinkwell._display.changes import BlockKind
    from thinkwell._display.items.nodes import Node
    from thinkwell.view import AnswerView, QuestionView, ToolView
    from thinkwell.web.items._store import ItemStore

TIMELINE: Final = "timeline"

STEP: Final = 0.1
"""Seconds of a run in which several changes count as one."""

DRAWN: Final = 300_000
"""Most characters of a text that are drawn."""

BEGINS: Final = 1_000
"""Characters of the beginning of a text, more than any line shows."""

SAID: Final = 300
"""Most characters of the text for screen readers."""

SHARED: Final = 200
"""Most calls and thoughts that share a line."""

SAID_INSIDE: Final = 8_000
"""Characters of a sub-agent's text that are shown: the last ones."""

OUTPUT: Final = 1_000
"""The place of a call's output among its parts, after its changes."""


class Row:
    """A row of the timeline.

    Args:
        letter: The first letter of its id.
        seq: Number of the entry that began it.
        at: Its time, in seconds of the run.
    """

    def __init__(self, letter: str, seq: int, at: float) -> None:
        self.id = f"{letter}{seq}"
        self.seq = seq
        self.began = at
        self.ended: float | None = None
        self.place: tuple[str, int] = (TIMELINE, seq)

    def draw(self, store: ItemStore, cwd: str, *, over: bool) -> None:
        """Put the changed items.

        Args:
            store: Takes them.
            cwd: The session's folder.
            over: Whether the run is over.
        """
        raise NotImplementedError  # pragma: no cover - each kind has its own


class Fixed(Row):
    """A row that does not change."""

    def __init__(self, letter: str, seq: int, at: float, node: Node, more: More = NOTHING) -> None:
        super().__init__(letter, seq, at)
        self._node = node
        self._more = more

    def draw(self, store: ItemStore, cwd: str, *, over: bool) -> None:
        store.put(
            Shown(self.id, self.place, self._node, self.seq, self.began, self.began, self.began, self._more)
        )


_LETTERS: Final[dict[BlockKind, str]] = {"message": "m", "thought": "t", "user": "u"}
_LANES: Final[dict[BlockKind, tuple[str, str]]] = {
    "message": ("answer", "answer"),
    "thought": ("thought", "thought"),
    "user": ("", ""),
}


class Text(Row):
    """A message, a thought, or a message of the user."""

    def __init__(self, kind: BlockKind, seq: int, at: float) -> None:
        super().__init__(_LETTERS[kind], seq, at)
        self.kind: BlockKind = kind
        self.is_over = False
        """Whether it is complete."""
        self._begins = ""
        """The beginning of the text."""
        self._new: list[str] = []
        """The pieces that are not drawn so far."""
        self._growing: GrowingText | None = None
        """The text, from its first drawing until it is complete and drawn."""
        self._length = 0
        self._cuts: list[float] = []
        self._cut_at = -math.inf
        """The time of the last cut."""
        self._ends: tuple[int, float] = (seq, at)
        self._is_begun = False
        """Whether its beginning was drawn."""

    @property
    def folds(self) -> bool:
        """Whether it may share a line with its neighbours."""
        return self.kind == "thought" and self.ended is not None

    def add(self, text: str, at: float) -> None:
        """Add a piece of text."""
        self.ended = None
        left = DRAWN - self._length
        if left > 0:
            self._new.append(text if len(text) <= left else text[:left])
        self._length += len(text)
        if at - self._cut_at < STEP:
            self._cuts[-1] = self._length
        else:
            self._cut_at = at
            self._cuts += (round(at, 3), self._length)

    def end(self, seq: int, at: float) -> None:
        """Complete it."""
        self.ended = at
        self._ends = seq, at

    def again(self, seq: int, at: float) -> None:
        """Draw it again."""
        self._ends = seq, at

    def draw(self, store: ItemStore, cwd: str, *, over: bool) -> None:
        new = "".join(self._new)
        self._new.clear()
        self._begins += new[: max(BEGINS - len(self._begins), 0)]
        self._draw_head(store)
        growing = self._growing or GrowingText()
        growing.add(new)
        self._growing = None if self.is_over else growing
        for part in growing.end() if self.is_over else growing.flush():
            id_ = ".".join(map(str, (self.id, *part.path)))
            place = (self.id if len(part.path) == 1 else f"{self.id}.{part.path[0]}", part.path[-1])
            store.put(Shown(id_, place, part.node, store.seq, store.at, self.began))
        if self._length > DRAWN:
            told = f"… and {numbers.count(self._length - DRAWN)} more characters, which are not shown"
            missing = element("p", "dim more", told)
            place = (self.id, self._length)
            store.put(Shown(f"{self.id}.more", place, missing, store.seq, store.at, self.began))

    def _draw_head(self, store: ItemStore) -> None:
        lane, look = _LANES[self.kind]
        ended = self.ended
        more = More(lane=lane, look=look)
        if ended is not None:
            say: str | Literal[True] = True if self.kind == "message" else ""
            more = More(lane=lane, look=look, cuts=self._cuts.copy(), say=say)
        if self.kind != "thought":
            node = element("div", "prose bubble" if self.kind == "user" else "prose text", rows.slot())
            store.put(Shown(self.id, self.place, node, self.seq, self.began, self.began, ended, more))
            return
        if ended is None or not self._is_begun:
            self._is_begun = True
            node = rows.thought(self._begins, None, self.id)
            store.put(
                Shown(self.id, self.place, node, self.seq, self.began, self.began, None, more, kept=True)
            )
        if ended is not None:
            node = rows.thought(self._begins, ended - self.began)
            seq, at = self._ends
            store.put(Shown(self.id, self.place, node, seq, at, self.began, ended, more, kept=True))


_Place: TypeAlias = "tuple[str, int]"

_Part: TypeAlias = "tuple[str, tuple[_Place, Node]]"
"""The id of a part, its place, and its node."""


class _State(Struct, frozen=True, gc=False):
    """A state of a tool call."""

    seq: int
    at: float
    view: ToolView
    words: str = ""
    """The words about the sub-agent that it is; empty: it is none so far."""
    denied: bool = False


class Call(Row):
    """A tool call."""

    def __init__(self, view: ToolView, seq: int, at: float, parent: Call | None) -> None:
        super().__init__("c", seq, at)
        self.view = view
        self.parent = parent
        self.calls = 0
        """The number of its calls, as a sub-agent."""
        self._last: Call | None = None
        """Its last call."""
        self._said = ""
        """The end of its text, as a sub-agent."""
        self.is_asked_about = False
        self.is_denied = False
        self._states = [_State(seq, at, view)]
        """The states that are not drawn so far. A run that ends adds one to a call that goes on."""
        self._line: object = None
        """What its line was drawn from."""
        self._drawn: object = None
        """What its parts were drawn from."""
        self._parts: frozenset[str] = frozenset()
        if parent is not None:
            parent.calls += 1
            parent._last = self
            self.place = (f"{parent.id}.calls", seq)

    @property
    def folds(self) -> bool:
        """Whether it may share a line with its neighbours."""
        return tools.folds(self.view) and not self._is_agent and not self.is_asked_about

    def change(self, view: ToolView, seq: int, at: float) -> None:
        """Update it."""
        self.view = view
        self.ended = view.ended_at
        if self._states and at - self._states[-1].at < STEP:
            at = self._states.pop().at
        words = ""
        if self._is_agent:
            did = "" if self._last is None else self._last.view.title
            words = tools.subagent_words(self.calls, self._said, did)
        self._states.append(_State(seq, at, view, words, self.is_denied))

    def hear(self, event: ev.SubagentText) -> None:
        """Add to its text, as a sub-agent."""
        if not event.thinks:
            self._said = (self._said + event.text)[-SAID_INSIDE:]
        self.again(event.seq, event.at)

    @property
    def _is_agent(self) -> bool:
        return bool(self.calls or self._said)

    def again(self, seq: int, at: float) -> None:
        """Draw it again."""
        self.change(self.view, seq, at)

    def draw(self, store: ItemStore, cwd: str, *, over: bool) -> None:
        states, self._states = self._states, []
        first, last = states[0], states[-1]
        if self._drawn is None and first is not last:  # a replay shows what it was called with
            self._draw_parts(store, cwd, first, over=False)
        status = self._draw_parts(store, cwd, last, over=over)
        is_result = returns_result(last.view)  # it has its own row
        is_open = not (last.denied or last.words) and rows.is_open(last.view, cwd, over=over)
        bar = More(lane=tools.verb_of(last.view), look=status)
        unfolds = any(name.startswith(self.id) for name in self._parts)
        name = f"{self.id}.s"
        for state in states:
            seq, at, view = state.seq, state.at, state.view
            line = (*_said_of(view), self.place, is_result, is_open, unfolds, cwd)
            if line != self._line:
                self._line = line
                slot = element("span", "state", rows.slot(name))
                node = None if is_result else rows.call(view, cwd, "", slot, unfolds=unfolds)
                more = More(open=is_open)
                store.put(Shown(self.id, self.place, node, seq, at, self.began, None, more, kept=True))
            was = rows.status_of(view, over=over and state is last, denied=state.denied)
            now = None if is_result else rows.state(was, rows.outcome(view, cwd, was, state.words))
            place = (name, self.seq)
            store.put(Shown(name, place, now, seq, at, self.began, view.ended_at, bar, kept=True))

    def _draw_parts(self, store: ItemStore, cwd: str, state: _State, *, over: bool) -> rows.Status:
        """Put the changed parts of a state, and return its status."""
        view = state.view
        status = rows.status_of(view, over=over, denied=state.denied)
        drawn = (status, *_said_of(view), view.content, view.output, cwd, state.words, self.calls, self._said)
        if drawn == self._drawn:
            return status
        self._drawn = drawn
        parts = {} if returns_result(view) else dict(self._parts_of(state, cwd))
        if not state.denied:
            parts |= self._in_panels(view, cwd, status)
        for name in self._parts - parts.keys():
            store.put(Shown(name, (self.id, 0), None, state.seq, state.at, self.began))
        self._parts = frozenset(parts)
        for name, (place, node) in parts.items():
            store.put(Shown(name, place, node, state.seq, state.at, self.began))
        return status

    def _parts_of(self, state: _State, cwd: str) -> Iterator[_Part]:
        id_, view = self.id, state.view
        if asked_for := rows.arguments(view, cwd):
            yield f"{id_}.a", ((id_, 0), asked_for)
        for number, change in enumerate(diffs.changes_of(view, cwd, kept=diffs.WHOLE)):
            whole = rows.change(change, element("div", "", rows.slot()))
            yield f"{id_}.d{number}", ((id_, 1 + number), whole)
            for place, hunk in enumerate(change.hunks):
                yield f"{id_}.d{number}.{place}", ((f"{id_}.d{number}", place), rows.hunk(hunk, change.path))
        if pictures := rows.pictures(view):
            yield f"{id_}.p", ((id_, OUTPUT - 1), pictures)
        if state.words:
            yield f"{id_}.i", ((id_, OUTPUT + 1), element("div", "calls", rows.slot(f"{id_}.calls")))
            if self._said.strip():
                said = element("pre", "wrap output", self._said, attributes={"label": "Said"})
                yield f"{id_}.said", ((f"{id_}.calls", 0), said)
        if output := rows.output(view):
            whole = element("pre", "wrap output", rows.slot(), attributes={"label": "Output"})
            yield f"{id_}.o", ((id_, OUTPUT), whole)
            for place, part in enumerate(output):
                if part:
                    yield f"{id_}.o.{place}", ((f"{id_}.o", place), part)

    def _in_panels(self, view: ToolView, cwd: str, status: rows.Status) -> Iterator[_Part]:
        if view.kind == "execute":
            yield f"s{self.seq}", (("terminal", self.seq), rows.command(view, f"{self.id}.s", f"{self.id}.o"))
        if status in ("failed", "cancelled"):
            return
        for number, change in enumerate(diffs.changes_of(view, cwd, kept=diffs.WHOLE)):
            place = ("changes", self.seq * diffs.FULLY + number)
            yield f"e{self.seq}.{number}", (place, rows.edit(change, status, f"{self.id}.d{number}"))


def _said_of(view: ToolView) -> tuple[object, ...]:
    """Return what the line of a call says without its state."""
    return view.title, view.kind, view.name, view.input, view.locations


class Question(Row):
    """A question, open or answered.

    Args:
        event: The question.
        about_result: Whether it is about a call that returns the result.
    """

    def __init__(self, event: ev.QuestionAsked, *, about_result: bool) -> None:
        super().__init__("q", event.seq, event.at)
        self._about_result = about_result
        self.view = open_question(event)
        if about_result:
            self.view = replace(self.view, title=RESULT)
        self.answer: AnswerView | None = None
        self.is_given_up = False
        self._states: list[tuple[int, float, QuestionView, AnswerView | None]] = []
        self.again(event.seq, event.at)

    def judge(self, verdict: ev.QuestionVerdict) -> None:
        """Add a verdict."""
        self.view = replace(self.view, verdicts=(*self.view.verdicts, verdict))
        self.again(verdict.seq, verdict.at)

    def again(self, seq: int, at: float) -> None:
        """Draw it again."""
        self._states.append((seq, at, self.view, self.answer))

    def give_up(self, seq: int, at: float) -> None:
        """Note that it stays unanswered: its id is used again."""
        self.is_given_up = True
        self.again(seq, at)

    def end(self, answer: ev.QuestionAnswered) -> AnswerView:
        """Take its answer, and return it with the question."""
        self.answer = answered_question(self.view, answer)
        self.ended = answer.at
        self.again(answer.seq, answer.at)
        return self.answer

    def draw(self, store: ItemStore, cwd: str, *, over: bool) -> None:
        more = More(lane="questions", look="ask", say=f"Question: {self.view.title[:SAID]}", urgent=True)
        states, self._states = self._states, []
        for state in states:
            seq, at, view, answer = state
            if self._about_result and answer is not None and questions.allowed(answer):
                # The result has its own row.
                store.put(Shown(self.id, self.place, None, seq, at, self.began, kept=True))
                continue
            is_over = (over or self.is_given_up) and state is states[-1]
            node = rows.past_question(view, answer, over=is_over)
            ended = None if answer is None else answer.answered_at
            store.put(Shown(self.id, self.place, node, seq, at, self.began, ended, more, kept=True))


class Folds:
    """Finds neighbouring rows that share a line: thoughts, and calls that only read."""

    def __init__(self) -> None:
        self._rows: dict[Call | None, list[Row]] = {}
        """The rows at the place of each call with inner calls, and those of the timeline."""
        self._lines: dict[str, dict[str, tuple[ToolView | float | None, ...]]] = {}
        """The lines in each place, with the drawn state of their rows."""

    def add(self, row: Row) -> None:
        """Add a row at the end."""
        parent = row.parent if isinstance(row, Call) else None
        self._rows.setdefault(parent, []).append(row)

    def draw(self, store: ItemStore, cwd: str, parents: set[Call | None]) -> list[Call | Text]:
        """Put the shared lines, and return the rows that have moved.

        Args:
            store: Takes them.
            cwd: The session's folder.
            parents: The parents with changes.
        """
        moved: list[Call | Text] = []
        for parent in parents:
            home = TIMELINE if parent is None else f"{parent.id}.calls"
            shared: list[Call | Text] = []
            before = self._lines.pop(home, {})
            for row in [*self._rows.get(parent, ()), None]:
                if isinstance(row, Call | Text) and row.folds and len(shared) < SHARED:
                    shared.append(row)
                    continue
                moved += self._share(store, cwd, home, shared, before)
                shared = [row] if isinstance(row, Call | Text) and row.folds else []
                if isinstance(row, Call | Text) and not row.folds and row.place[0] != home:
                    row.place = (home, row.seq)
                    moved.append(row)
            for line in before.keys() - self._lines.get(home, {}).keys():
                store.put(Shown(line, (home, 0), None, store.seq, store.at, store.at, kept=True))
        return moved

    def _share(
        self,
        store: ItemStore,
        cwd: str,
        home: str,
        shared: Sequence[Call | Text],
        before: Mapping[str, tuple[ToolView | float | None, ...]],
    ) -> Iterator[Call | Text]:
        line = f"f{shared[0].seq}" if shared else ""
        parent = line if len(shared) > 1 else home
        for row in shared:
            if row.place[0] != parent:
                row.place = (parent, row.seq)
                yield row
        if len(shared) < 2:
            return
        first, last = shared[0], shared[-1]
        place = (home, first.seq)
        known = tuple(row.view if isinstance(row, Call) else row.ended for row in shared)
        self._lines.setdefault(home, {})[line] = known
        if before.get(line) == known:
            return
        if first.id not in store:  # it was never seen alone: its line came at the same time
            begun = _looked(shared[:1], cwd)
            store.put(Shown(line, place, begun, first.seq, first.began, first.began, kept=True))
        at = store.at if last.ended is None else last.ended
        store.put(Shown(line, place, _looked(shared, cwd), store.seq, at, first.began, kept=True))


def _looked(shared: Sequence[Call | Text], cwd: str) -> Node:
    calls = [row.view for row in shared if isinstance(row, Call)]
    thoughts = [row.ended - row.began for row in shared if isinstance(row, Text) and row.ended is not None]
    return rows.looked(calls, thoughts, cwd)
