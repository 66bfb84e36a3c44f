"""Makes the items of a run from its entries.

An item is a part of the page: a row of the timeline, a block of a text, a hunk of a change, a panel. Its id
depends only on the log, so that all servers use the same. The last item of each id is kept, with the number
of its entry: together they are the current state of the run, and those up to a number are an earlier state.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from thinkwell import ViewReducer
from thinkwell import events as ev
from thinkwell._display import changes as ch
from thinkwell._display import diffs
from thinkwell._display.calls import is_denied, is_result_title, returns_result
from thinkwell._display.items import rows
from thinkwell._display.items.nodes import element
from thinkwell._display.text import json_text
from thinkwell.web._records import RunEnded, read_entries
from thinkwell.web.items._panels import Now, Panels, draft_of
from thinkwell.web.items._rows import SAID, STEP, Call, Fixed, Folds, Question, Text
from thinkwell.web.items._store import ItemStore, More

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkwell._display.changes import Block, Change
    from thinkwell.events import JsonValue
    from thinkwell.journal import Entry
    from thinkwell.view import AnswerView
    from thinkwell.web._records import LogEntry
    from thinkwell.web.items._rows import Row

WORK: Final = 0.2
"""Most seconds of a drawing; the remaining rows wait. The latest rows come first."""

APART: Final = 0.05
"""The fraction of a run's time between the panels that are drawn from many entries at once."""

_SAYING: Final = (ev.Message, ev.Thought)


class RunItems:
    """The items of a run.

    Call `take_all` with its entries, and `draw` from time to time.

    Args:
        agent: The agent of the run.
        schema: The schema of its result; ``None``: it is unknown.
        prompt: Its prompt; empty: it is unknown.
        alone: Whether it belongs to no conversation.
        most: Approximate bytes of items that are kept; the oldest are dropped.
        is_end: Whether it gets only the last entries: what is counted is unknown.
    """

    def __init__(
        self,
        agent: str,
        schema: JsonValue = None,
        *,
        prompt: str = "",
        alone: bool = False,
        most: float = math.inf,
        is_end: bool = False,
    ) -> None:
        self.end: RunEnded | None = None
        """The end of the run."""
        self.store = ItemStore(most)
        """The items."""
        self._reader = ch.ChangeReader()
        self._reducer = ViewReducer(agent=agent)
        self._cwd = ""
        self._texts: dict[Block, Text] = {}
        self._called: dict[str, Call] = {}
        """The last call of each id."""
        self._questions: dict[str, Question] = {}
        self._compactions: set[str] = set()
        self._last: Row | None = None
        self._message: Text | None = None
        self._draft: JsonValue = None
        self._edited: dict[Call, set[str]] = {}
        """The files that calls change, except for failed calls."""
        self._commands: set[Call] = set()
        self._not_understood = 0
        self._folds = Folds()
        self._panels = Panels(schema, prompt, alone=alone, is_end=is_end)
        self._dirty: dict[Row, None] = {}
        """Changed rows, the last changed at the end."""
        self._regrouped: set[Call | None] = set()
        """The parents whose calls may share other lines than before."""
        self._drawn = (-1, 0.0)
        """Number of the last entry when the panels were drawn, and its time."""

    @property
    def is_drawn(self) -> bool:
        """Whether everything is drawn."""
        return not (self._dirty or self._is_behind)

    @property
    def _is_behind(self) -> bool:
        return self._drawn[0] < self.store.seq

    # Taking entries

    def read(self, entries: Iterable[Entry]) -> None:
        """Take the next entries, as a journal has them."""
        self.take_all(read_entries(entries))

    def take_all(self, entries: Iterable[LogEntry]) -> None:
        """Take the next entries. Of many at once, the panels are drawn in between, as they were."""
        store, reader, unreduced = self.store, self._reader, list[ev.ThoughtEvent]()
        grows = False
        due = self._drawn[1] + max(STEP, store.at * APART)
        for entry in entries:
            at = entry.at
            if at > due and self._is_behind:
                self._reducer.apply(unreduced)
                unreduced.clear()
                grows = False
                self._draw_panels()
                due = store.at + max(STEP, store.at * APART)
            store.seq = entry.seq
            store.at = max(at, store.at)
            if isinstance(entry, _SAYING) and (block := reader.goes_on(entry)) is not None:
                row = self._texts[block]
                row.add(entry.text, at)
                self._dirty[row] = None
                if grows:
                    unreduced.pop()  # panels have no texts: of several pieces, the last is enough
                grows = True
            elif isinstance(entry, RunEnded):
                store.at = at
                self._end(entry)
                break
            else:
                for change in reader.take(entry):
                    self._change(change)
                grows = False
            unreduced.append(entry)
        self._reducer.apply(unreduced)

    def _change(self, change: Change) -> None:
        match change:
            case ch.BlockGrown(block=block, text=text, at=at):
                row = self._texts[block]
                if row.folds:
                    self._regrouped.add(None)
                row.add(text, at)
                self._dirty[row] = None
            case ch.BlockBegun(block=block, seq=seq, at=at):
                row = self._texts[block] = Text(block.kind, seq, at)
                self._add(row)
                if block.kind == "message":
                    self._message = row
            case ch.BlockEnded(block=block, seq=seq, at=at):
                row = self._texts[block]
                row.end(seq, at)
                self._dirty[row] = None
                if row.folds:
                    self._regrouped.add(None)
            case ch.Media(content=content, seq=seq, at=at):
                self._add(Fixed("p", seq, at, element("div", "text", rows.media(content))))
            case ch.CallBegun() | ch.CallChanged() | ch.CallEnded():
                self._call(change)
            case ev.SubagentText(agent=agent) if (call := self._called.get(agent)) is not None:
                call.hear(change)
                self._dirty[call] = None
                self._regrouped.add(call.parent)
            case ev.QuestionAsked() | ev.QuestionAnswered() | ev.QuestionVerdict():
                self._question(change)
            case _:
                self._happened(change)

    def _again(self, row: Call | Question | Text, seq: int, at: float) -> None:
        """Draw a row again."""
        row.again(seq, at)
        self._dirty[row] = None

    def _add(self, row: Row) -> None:
        self._folds.add(row)
        self._last = row
        self._dirty[row] = None
        self._regrouped.add(row.parent if isinstance(row, Call) else None)

    def _call(self, change: ch.CallBegun | ch.CallChanged | ch.CallEnded) -> None:
        view, seq, at = change.view, change.seq, change.at
        if isinstance(change, ch.CallBegun):
            parent = self._called.get(view.parent) if view.parent is not None else None
            call = self._called[view.id] = Call(view, seq, at, parent)
            self._add(call)
            if parent is not None:
                self._again(parent, seq, at)
                self._regrouped.add(parent.parent)
        else:
            call = self._called[view.id]
            folded = call.folds
            call.change(view, seq, at)
            self._dirty[call] = None
            if folded or call.folds:
                self._regrouped.add(call.parent)
        self._count(call)
        draft = draft_of(view)
        self._draft = self._draft if draft is None else draft

    def _count(self, call: Call) -> None:
        """Count a call in the totals, unless it was denied."""
        view = call.view
        if view.kind == "execute" and not call.is_denied:
            self._commands.add(call)
        else:
            self._commands.discard(call)
        if call.is_denied or view.status in ("failed", "cancelled"):
            self._edited.pop(call, None)
        elif paths := {change.path for change in diffs.changes_of(view, self._cwd)}:
            self._edited[call] = paths

    def _question(self, event: ev.QuestionAsked | ev.QuestionAnswered | ev.QuestionVerdict) -> None:
        if isinstance(event, ev.QuestionAsked):
            before = self._questions.get(event.id)
            if before is not None and before.answer is None:
                before.give_up(event.seq, event.at)
                self._dirty[before] = None
            call = self._called.get(event.tool_id or "")
            about_result = is_result_title(event.title) if call is None else returns_result(call.view)
            asked = self._questions[event.id] = Question(event, about_result=about_result)
            self._add(asked)
            if call is not None:
                call.is_asked_about = True
                self._regrouped.add(call.parent)
            return
        if (question := self._questions.get(event.id)) is None:
            return
        if isinstance(event, ev.QuestionAnswered):
            self._judge_call(question.end(event), event.seq)
        else:
            question.judge(event)
        self._dirty[question] = None

    def _judge_call(self, answer: AnswerView, seq: int) -> None:
        """Note whether the call of a question was denied."""
        call = self._called.get(answer.tool_id or "")
        if call is not None and call.is_denied is not is_denied(answer):
            call.is_denied = not call.is_denied
            self._again(call, seq, answer.answered_at)
            self._count(call)

    def _happened(self, event: ev.ThoughtEvent) -> None:
        seq, at = event.seq, event.at
        if isinstance(event, ev.TurnStarted):
            self._end_texts(seq, at)
        match event:
            case ev.TurnStarted(number=number, reminder=reminder) if number > 1 or reminder:
                self._add(Fixed("r", seq, at, rows.turn(number, reminder=reminder)))
            case ev.ResultAttempt():
                self._draft = None
                self._add(Fixed("a", seq, at, rows.attempt(event)))
            case ev.Notice(severity=severity, title=title, description=description):
                more = More() if severity == "info" else More(say=title[:SAID])
                self._add(Fixed("n", seq, at, rows.note(title, severity, description or ""), more))
            case ev.Report(kind=kind, body=body):
                self._add(Fixed("n", seq, at, rows.note(kind, "report", json_text(body))))
            case ev.Compaction(id=name) if name not in self._compactions:
                self._compactions.add(name)
                self._add(Fixed("n", seq, at, rows.note("the agent shortens its context")))
            case ev.ReplayStarted():
                self._add(Fixed("n", seq, at, rows.note("what follows was said before")))
            case ev.ReplayEnded():
                self._add(Fixed("n", seq, at, rows.note("that was the history of the session")))
            case ev.SessionOpened(cwd=cwd) if cwd != self._cwd:
                self._cwd = cwd
                for call in self._called.values():  # their paths are elsewhere
                    self._again(call, seq, at)
            case ev.UnknownUpdate():
                self._not_understood += 1
            case _:
                pass

    def _end_texts(self, seq: int, at: float) -> None:
        """Draw the texts to their ends: another turn has other texts."""
        for text in self._texts.values():
            if text.ended is None:
                text.end(seq, at)
            text.is_over = True
            self._dirty[text] = None
            if text.folds:
                self._regrouped.add(None)
        self._texts.clear()

    def _end(self, end: RunEnded) -> None:
        self.end = end
        self._end_texts(end.seq, end.at)
        for call in self._called.values():
            if call.ended is None:
                self._again(call, end.seq, end.at)
        for question in self._questions.values():
            if question.answer is None:
                self._again(question, end.seq, end.at)

    # Drawing

    def draw(self) -> None:
        """Make the items of the changes, the latest first, within the time limit."""
        until = time.monotonic() + WORK
        over = self.end is not None
        for moved in self._folds.draw(self.store, self._cwd, self._regrouped):
            if moved.id in self.store and moved not in self._dirty:
                self._again(moved, self.store.seq, self.store.at)
        self._regrouped.clear()
        if self._is_behind:
            self._draw_panels()
        while self._dirty:
            row, _ = self._dirty.popitem()
            row.draw(self.store, self._cwd, over=over)
            if time.monotonic() > until:
                break

    def _draw_panels(self) -> None:
        self._drawn = self.store.seq, self.store.at
        self._panels.draw(self._now(), self.store)

    def _now(self) -> Now:
        return Now(
            seq=self.store.seq,
            at=self.store.at,
            view=self._reducer.snapshot(None),
            last=self._last,
            message=self._message,
            questions=self._questions,
            draft=self._draft,
            files=len(set[str]().union(*self._edited.values())),
            commands=len(self._commands),
            not_understood=self._not_understood,
            end=self.end,
        )
