"""The questions that wait for an answer: each of an agent's in one place."""

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
"""Opened web pages that are remembered until the agent says that they are done; some agents never do."""

CANCELLED: Final = Ruling(
    verdict="deny", by="cancel", why="the turn or the question was cancelled", cancels=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where a question comes up."""

    cwd: str
    tasks: BackgroundTasks
    """Where handlers run."""
    lines: LogLines
    """Writes what is logged of its handlers."""
    log: RunLog | None = None
    """Where to tell of it; ``None`` where it belongs to no session."""
    remembered: Remembered | None = None
    """What was answered for the whole session."""
    own: bool = False
    """Whether it is about a tool of ours, or asked by one."""
    listener: RunListener | None = None
    """Hears it before all handlers, and learns how it ended."""
    too_often: Callable[[Question], str | None] | None = None
    """Counts what is asked, and says why it is once too often."""
    page: str | None = None
    """The agent's id of the web page that it is to open."""
    take_back: Callable[[], None] | None = None
    """Answers the agent that it is cancelled."""

    def tell(self, kind: Callable[..., ev.ThoughtEvent], **fields: object) -> None:
        """Append an event to the log, where there is one."""
        if self.log is not None:
            self.log.add(kind, **fields)
            self.log.publish()


class QuestionLife(Enum):
    """Where a question is in its life."""

    ASKED = auto()
    RULED = auto()
    """There is an answer, of which the agent and the log do not know yet."""
    ANSWERED = auto()
    PAGE_OPEN = auto()
    """It was answered, and the agent has yet to say that the web page is done."""
    WITHDRAWN = auto()


_NEXT: Final = {
    QuestionLife.ASKED: {QuestionLife.RULED, QuestionLife.WITHDRAWN},
    QuestionLife.RULED: {QuestionLife.ANSWERED, QuestionLife.PAGE_OPEN, QuestionLife.WITHDRAWN},
    QuestionLife.PAGE_OPEN: {QuestionLife.ANSWERED},
    QuestionLife.ANSWERED: set[QuestionLife](),
    QuestionLife.WITHDRAWN: set[QuestionLife](),
}


class OpenQuestion:
    """A question that waits for its answer. The first one counts, and the log learns of one.

    Args:
        question: What is asked.
        scene: Where it comes up.
        choose: Says by which of the agent's options an answer is given.
    """

    def __init__(self, question: Question, scene: Scene, choose: Callable[[Ruling], str | None]) -> None:
        self.question = question
        self.scene = scene
        self.life: QuestionLife = QuestionLife.ASKED
        self.ruled: anyio.Event = anyio.Event()
        """Set where there is an answer, or it was withdrawn."""
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
        """Return whether it is of a run and a session; ``None``: of any."""
        return run in (None, self.question.run_id) and session in (None, self.question.session_id)

    def rule(self, ruling: Ruling) -> None:
        """Take an answer, where it is the first one."""
        if self.life is QuestionLife.ASKED:
            self._move(QuestionLife.RULED)
            self.ruling = ruling
            self.ruled.set()

    def answered(self, final: Ruling) -> None:
        """Tell the answer that the agent gets now, unless the question was withdrawn."""
        if self.over:  # pragma: no cover - withdrawn while its answer was on the way
            return
        self.rule(final)
        self._move(QuestionLife.PAGE_OPEN if self.scene.page and final.allows else QuestionLife.ANSWERED)
        self._tell(final)

    def withdraw(self) -> None:
        """Cancel it, whatever was said meanwhile: the agent has not heard that.

        The agent and the log learn of it in the same step, so that they cannot learn different things.
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
        """Tell that what the web page was opened for is done."""
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
    """Every open question of one agent, by its id, and the web pages that were opened."""

    def __init__(self) -> None:
        self._entries: dict[str, OpenQuestion] = {}
        self._pages: OrderedDict[str, OpenQuestion] = OrderedDict()

    @property
    def waiting(self) -> tuple[Question, ...]:
        """What waits for an answer."""
        return tuple(e.question for e in self._entries.values() if e.life is QuestionLife.ASKED)

    def add(self, entry: OpenQuestion) -> None:
        """Know of a question."""
        self._entries[entry.question.id] = entry

    def remove(self, entry: OpenQuestion) -> None:
        """Forget a question, but for the page that it has opened."""
        entry.withdraw()
        del self._entries[entry.question.id]
        if entry.life is QuestionLife.PAGE_OPEN and entry.scene.page is not None:
            self._pages[entry.scene.page] = entry
            if len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)

    def page_done(self, page: str) -> None:
        """Learn that a page is done. Unknown ids are ignored (ACP, Elicitation)."""
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
        """Answer an open question from outside: any, or one of a run or a session. Any thread may.

        Raises:
            QuestionNotOpen: There is none of that name.
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
        """Cancel the open questions of a run, or of a session: their answers are not waited for any more."""
        for entry in list(self._entries.values()):
            if entry.concerns(run, session):
                entry.withdraw()
