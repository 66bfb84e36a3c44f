"""An agent's open questions, in one place."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from thinkwell import events as ev
from thinkwell._values.rulings import Ruling, read_answer
from thinkwell.errors import QuestionNotOpen

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.lowlevel import EventLoopToken

    from thinkwell._core.log.listener import RunListener
    from thinkwell._core.log.log_lines import LogLines
    from thinkwell._core.log.run_log import RunLog
    from thinkwell._core.policy.remember import Remembered
    from thinkwell.questions import Answer, Question
    from thinkwell_acp._tasks import BackgroundTasks

PAGES_KEPT: Final = 1000
"""Opened web pages that are remembered until the agent reports that they are done; some never do."""

CANCELLED: Final = Ruling(
    verdict="deny", by="cancel", why="the turn or the question was cancelled", cancels=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The place and context of a question."""

    cwd: str
    tasks: BackgroundTasks
    """The tasks of handlers."""
    lines: LogLines
    """Writes log lines of its handlers."""
    log: RunLog | None = None
    """The log to report it in; ``None`` if it belongs to no session."""
    remembered: Remembered | None = None
    """Answers for the whole session."""
    own: bool = False
    """Whether it is about a tool of ours, or asked by one."""
    listener: RunListener | None = None
    """Gets it before all handlers, and its outcome."""
    too_often: Callable[[Question], str | None] | None = None
    """Counts questions, and returns a reason if it is one too many."""
    page: str | None = None
    """The agent's id of the web page to open."""
    take_back: Callable[[], None] | None = None
    """Tells the agent that it is cancelled."""

    def tell(self, kind: Callable[..., ev.ThoughtEvent], **fields: object) -> None:
        """Append an event to the log, if there is one."""
        if self.log is not None:
            self.log.add(kind, **fields)
            self.log.publish()


class QuestionLife(Enum):
    """The stages of a question's life."""

    ASKED = auto()
    RULED = auto()
    """It has an answer that was not yet sent to the agent and the log."""
    ANSWERED = auto()
    PAGE_OPEN = auto()
    """It was answered, and the agent has not yet reported that the web page is done."""
    WITHDRAWN = auto()


_NEXT: Final = {
    QuestionLife.ASKED: {QuestionLife.RULED, QuestionLife.WITHDRAWN},
    QuestionLife.RULED: {QuestionLife.ANSWERED, QuestionLife.PAGE_OPEN, QuestionLife.WITHDRAWN},
    QuestionLife.PAGE_OPEN: {QuestionLife.ANSWERED},
    QuestionLife.ANSWERED: set[QuestionLife](),
    QuestionLife.WITHDRAWN: set[QuestionLife](),
}


class OpenQuestion:
    """A question that waits for its answer. The first one counts, and the log gets exactly one.

    Args:
        question: The question.
        scene: Its place and context.
        choose: Chooses the agent's option for an answer.
    """

    def __init__(self, question: Question, scene: Scene, choose: Callable[[Ruling], str | None]) -> None:
        self.question = question
        self.scene = scene
        self.life: QuestionLife = QuestionLife.ASKED
        self.ruled: anyio.Event = anyio.Event()
        """Set when it has an answer, or was withdrawn."""
        self.ruling: Ruling | None = None
        self.thread: int = threading.get_ident()
        self.token: EventLoopToken = current_token()
        self._choose = choose
        self._asked_at = anyio.current_time()

    @property
    def over(self) -> bool:
        """Whether the log has its answer."""
        return self.life not in (QuestionLife.ASKED, QuestionLife.RULED)

    def concerns(self, run: str | None, session: str | None) -> bool:
        """Return whether it belongs to a run and a session; ``None``: to any."""
        return run in (None, self.question.run_id) and session in (None, self.question.session_id)

    def rule(self, ruling: Ruling) -> None:
        """Answer it, unless it has an answer."""
        if self.life is QuestionLife.ASKED:
            self._move(QuestionLife.RULED)
            self.ruling = ruling
            self.ruled.set()

    def answered(self, final: Ruling) -> None:
        """Report the answer that the agent gets now, unless the question was withdrawn."""
        if self.over:  # pragma: no cover - withdrawn while its answer was on the way
            return
        self.rule(final)
        self._move(QuestionLife.PAGE_OPEN if self.scene.page and final.allows else QuestionLife.ANSWERED)
        self._tell(final)

    def withdraw(self) -> None:
        """Cancel it, whatever the answer: the agent has not received it.

        The agent and the log are notified in the same step, so that they cannot differ.
        """
        if self.over:
            return
        self._move(QuestionLife.WITHDRAWN)
        self.ruling = CANCELLED
        self.ruled.set()
        self._tell(CANCELLED)
        if self.scene.take_back is not None:
            self.scene.take_back()

    def page_done(self) -> None:
        """Report that the purpose of the web page is done."""
        self._move(QuestionLife.ANSWERED)
        self.scene.tell(ev.QuestionCompleted, id=self.question.id)

    def _tell(self, ruling: Ruling) -> None:
        self.scene.tell(
            ev.QuestionAnswered,
            id=self.question.id,
            choice=None if ruling is CANCELLED else self._choose(ruling),
            by=ruling.by,
            why=ruling.why,
            option_id=ruling.option_id,
            filled=tuple(ruling.values or ()),
        )
        if self.scene.listener is not None:
            self.scene.listener.answered(self.question, ruling, anyio.current_time() - self._asked_at)

    def _move(self, life: QuestionLife) -> None:
        assert life in _NEXT[self.life], (self.life, life)
        self.life = life


class OpenQuestions:
    """All open questions of one agent, by id, and the opened web pages."""

    def __init__(self) -> None:
        self._entries: dict[str, OpenQuestion] = {}
        self._pages: OrderedDict[str, OpenQuestion] = OrderedDict()

    @property
    def waiting(self) -> tuple[Question, ...]:
        """The open questions."""
        return tuple(e.question for e in self._entries.values() if e.life is QuestionLife.ASKED)

    def add(self, entry: OpenQuestion) -> None:
        """Add a question."""
        self._entries[entry.question.id] = entry

    def remove(self, entry: OpenQuestion) -> None:
        """Remove a question, except the page that it opened."""
        entry.withdraw()
        del self._entries[entry.question.id]
        if entry.life is QuestionLife.PAGE_OPEN and entry.scene.page is not None:
            self._pages[entry.scene.page] = entry
            if len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)

    def page_done(self, page: str) -> None:
        """Handle that a page is done. Unknown ids are ignored (ACP, Elicitation)."""
        entry = self._pages.pop(page, None)
        if entry is not None:
            entry.page_done()

    def answer(
        self,
        question_id: str,
        answer: Answer,
        by: str,
        *,
        run: str | None = None,
        session: str | None = None,
    ) -> None:
        """Answer an open question from outside: any, or one of a run or a session. Works in any thread.

        Raises:
            QuestionNotOpen: There is no such open question.
            AnswerInvalid: The answer does not fit it; it stays open.
        """
        asked = self._entries.get(question_id)
        if asked is not None and asked.thread != threading.get_ident():
            function = partial(self.answer, question_id, answer, by, run=run, session=session)
            anyio.from_thread.run_sync(function, token=asked.token)
            return
        waiting = {
            id_: entry
            for id_, entry in self._entries.items()
            if entry.life is QuestionLife.ASKED and entry.concerns(run, session)
        }
        if question_id not in waiting:
            raise QuestionNotOpen(question_id, tuple(waiting))
        entry = waiting[question_id]
        entry.rule(read_answer(entry.question, answer, by, "answered from outside"))

    def withdraw(self, *, run: str | None = None, session: str | None = None) -> None:
        """Cancel the open questions of a run, or of a session. Their answers are no longer waited for."""
        for entry in list(self._entries.values()):
            if entry.concerns(run, session):
                entry.withdraw()
