"""Who answers what an agent asks: the policy, then each handler in its order, and at any time a program."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.lowlevel import checkpoint_if_cancelled, current_token
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._answers import Ruling, read_answer
from thinkwell.errors import AnswerInvalid, QuestionNotOpen
from thinkwell.permissions import PermissionMode, PermissionPolicy, Remembered
from thinkwell.questions import FormQuestion, PermissionQuestion, UrlQuestion, wait_for_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._listener import RunListener
    from thinkwell._log import RunLog
    from thinkwell.questions import Answer, Question, QuestionHandler
    from thinkwell_acp._tasks import BackgroundTasks

X = TypeVar("X")

logger = logging.getLogger("thinkwell")

QUESTION_TIMEOUT: Final = 300.0
"""Seconds that a question waits for an answer, by default."""

HANDLER_THREADS: Final = 200
"""How many handlers that are not ``async`` may think at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where a question comes up."""

    cwd: str
    tasks: BackgroundTasks
    """Where handlers run."""
    log: RunLog | None = None
    """Where to tell of it; ``None`` where it belongs to no session."""
    remembered: Remembered | None = None
    """What was answered for the whole session."""
    own: bool = False
    """Whether it is about a tool of ours, or asked by one."""
    listener: RunListener | None = None
    """Who is asked before all handlers, and told how it ended."""
    too_often: Callable[[Question], str | None] | None = None
    """Counts what somebody is asked, and says why it is once too often."""


class _Open:
    """A question that waits for its answer. The first one counts, and the log is told once."""

    def __init__(self, question: Question, scene: Scene, choose: Callable[[Ruling], str | None]) -> None:
        self.question = question
        self.settled = anyio.Event()
        self.ruling: Ruling | None = None
        self.thread = threading.get_ident()
        self.token = current_token()
        self._scene = scene
        self._choose = choose
        self._asked_at = anyio.current_time()
        self.told = False
        """Whether the log has its answer."""

    def settle(self, ruling: Ruling) -> None:
        if self.ruling is None:
            self.ruling = ruling
            self.settled.set()

    def withdraw(self) -> None:
        """Settle it as cancelled, whatever was said meanwhile: the agent has not been told of that."""
        self.ruling = CANCELLED
        self.settled.set()
        self.tell(CANCELLED)

    def tell(self, final: Ruling) -> None:
        if self.told:
            return
        self.told = True
        _tell(
            self._scene,
            ev.QuestionAnswered,
            id=self.question.id,
            choice=None if final is CANCELLED else self._choose(final),
            by=final.by,
            why=final.why,
            option_id=final.option_id,
            filled=tuple(final.values or ()),
        )
        if self._scene.listener is not None:
            self._scene.listener.answered(self.question, final, anyio.current_time() - self._asked_at)


class _Front:
    """A listener as the first of those who are asked."""

    def __init__(self, listener: RunListener) -> None:
        self._listener = listener
        self.by = listener.by

    async def __call__(self, question: Question) -> Answer | None:
        return await self._listener.answer(question)


class Asker:
    """Gets an answer to every question of one agent.

    Args:
        policy: What is decided without asking; ``None``: everything is denied, except where somebody listens
            to the run who decides it.
        handlers: Who is asked, in this order.
        timeout: Seconds that they get for a question, all in all.
    """

    def __init__(
        self,
        *,
        policy: PermissionMode | PermissionPolicy | None = "deny",
        handlers: Sequence[QuestionHandler] = (),
        timeout: float = QUESTION_TIMEOUT,
    ) -> None:
        self._policy = policy
        self._handlers = tuple(handlers)
        # Where nobody else is asked, and nobody listens who could say more, a program is waited for.
        self._without = (wait_for_answer,) if not self._handlers and _leaves_open(policy) else ()
        self._timeout = timeout
        self._open: dict[str, _Open] = {}
        # Of their own: people think for long, and tools and programs need threads too.
        self._threads = anyio.CapacityLimiter(HANDLER_THREADS)

    @property
    def denies_all(self) -> bool:
        """Whether it was said that everything is denied: then nobody can be asked for permission."""
        return self._policy == "deny"

    @property
    def can_answer(self) -> bool:
        """Whether there is anybody who could fill in a form."""
        return bool(self._handlers or self._without)

    @property
    def asks_others(self) -> bool:
        """Whether anybody is asked what a listener leaves open."""
        return bool(self._handlers)

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is open."""
        return tuple(entry.question for entry in self._open.values() if entry.ruling is None)

    def answer(
        self, question_id: str, answer: Answer, by: str, *, concerns: Callable[[Question], bool]
    ) -> None:
        """Answer an open question from outside.

        Raises:
            QuestionNotOpen: There is none of that name that concerns the caller.
            AnswerInvalid: The answer does not fit it; it stays open.
        """
        asked = self._open.get(question_id)
        if asked is not None and asked.thread != threading.get_ident():
            function = functools.partial(self.answer, question_id, answer, by, concerns=concerns)
            anyio.from_thread.run_sync(function, token=asked.token)
            return
        open_ = {
            id_: entry
            for id_, entry in self._open.items()
            if entry.ruling is None and concerns(entry.question)
        }
        if question_id not in open_:
            raise QuestionNotOpen(question_id, tuple(open_))
        entry = open_[question_id]
        entry.settle(read_answer(entry.question, answer, by, "answered from outside"))

    async def ask(self, question: Question, scene: Scene, choose: Callable[[Ruling], str | None]) -> Ruling:
        """Get an answer and tell of it.

        Args:
            question: What is asked.
            scene: Where it comes up.
            choose: Says by which of the agent's options the answer is given.
        """
        ruling, handlers = self._first_word(question, scene)
        if handlers and scene.too_often is not None and (why := scene.too_often(question)) is not None:
            ruling = Ruling(verdict="deny", by="listener", why=why, stop=why, cancels=True)
            handlers = ()
        question = replace(question, timeout=self._timeout if handlers else None)
        _tell(scene, ev.QuestionAsked, **_shown(question))
        entry = self._open[question.id] = _Open(question, scene, choose)
        try:
            final = await self._rule(entry, scene, ruling, handlers)
            entry.settle(final)
            await checkpoint_if_cancelled()  # a question that was taken back has no other answer
            if (
                scene.remembered is not None
                and isinstance(question, PermissionQuestion)
                and final is not ruling
            ):
                scene.remembered.remember(question, final.verdict)
            entry.tell(final)
            return final
        finally:
            entry.tell(CANCELLED)
            del self._open[question.id]

    def forbids(self, question: PermissionQuestion, cwd: str) -> str | None:
        """Return why a rule forbids what the agent does through us without asking; ``None``: none does."""
        if not isinstance(self._policy, PermissionPolicy):
            return None
        decision = self._policy.decide(question, cwd=cwd)
        return decision.why if decision.verdict == "deny" and decision.rule is not None else None

    def withdraw(self, concerns: Callable[[Question], bool]) -> frozenset[str]:
        """Cancel the open questions that concern the caller, tell the log so, and return their ids."""
        entries = [entry for entry in self._open.values() if concerns(entry.question)]
        for entry in entries:
            entry.withdraw()
        return frozenset(entry.question.id for entry in entries)

    def _first_word(self, question: Question, scene: Scene) -> tuple[Ruling, tuple[QuestionHandler, ...]]:
        """Return what the policy says, and who is asked before that stands."""
        handlers = self._handlers or self._without
        if scene.listener is not None:
            handlers = (_Front(scene.listener), *self._handlers)
        if not isinstance(question, PermissionQuestion):
            if scene.own:  # whoever has written the tool could have asked them
                handlers = (wait_for_answer,)
            return _nobody("nobody who was asked answered it"), handlers
        if scene.own:
            return Ruling(verdict="allow", by="policy", why="it is a tool of ours", widens=True), ()
        verdict, why = self._by_policy(question, scene)
        if verdict == "deny":
            return Ruling(verdict="deny", by="policy", why=why), ()
        remembered = None if scene.remembered is None else scene.remembered.recall(question)
        if remembered is not None:
            why = "it was answered for the whole session"
            return Ruling(verdict=remembered, by="remembered", why=why), ()
        if verdict == "allow":
            reviewers = tuple(handler for handler in handlers if getattr(handler, "reviews", "open") == "all")
            return Ruling(verdict="allow", by="policy", why=why, widens=True), reviewers
        return _nobody("everybody who was asked left it open"), handlers

    def _by_policy(self, question: PermissionQuestion, scene: Scene) -> tuple[str, str]:
        if self._policy is None:
            if scene.listener is not None:
                return "ask", "somebody listens to the run"
            return "deny", 'permissions="deny"'
        if not isinstance(self._policy, PermissionPolicy):
            return self._policy, f'permissions="{self._policy}"'
        decision = self._policy.decide(question, cwd=scene.cwd)
        return decision.verdict, decision.why

    async def _rule(
        self, entry: _Open, scene: Scene, ruling: Ruling, handlers: Sequence[QuestionHandler]
    ) -> Ruling:
        """Return the answer: the first that one of the handlers or a program gives, in time; else `ruling`.

        Where `ruling` allows, the others may only forbid, and silence forbids.
        """
        if not handlers:
            return ruling
        asking = anyio.CancelScope()
        # In the background: a handler that is cancelled may take its time, and nobody waits for that.
        scene.tasks.start_soon(self._consult, asking, entry, scene, ruling, handlers)
        try:
            with anyio.move_on_after(self._timeout):
                await entry.settled.wait()
        finally:
            asking.cancel()
        final = entry.ruling or Ruling(
            verdict="deny", by="deadline", why=f"nobody answered within {self._timeout:g} seconds", late=True
        )
        if final.allows and ruling.allows:
            return ruling  # whoever only reviews cannot widen what the policy said
        return final

    async def _consult(
        self,
        scope: anyio.CancelScope,
        entry: _Open,
        scene: Scene,
        ruling: Ruling,
        handlers: Sequence[QuestionHandler],
    ) -> None:
        with scope:
            for handler in handlers:
                if handler is wait_for_answer:
                    await anyio.sleep_forever()
                heard = await self._hear(handler, entry, scene)
                if heard is not None:
                    entry.settle(heard)
                    return
            entry.settle(_nobody("no reviewer agreed") if ruling.allows else ruling)

    async def _hear(self, handler: QuestionHandler, entry: _Open, scene: Scene) -> Ruling | None:
        """Return what one handler says; ``None`` where it is nothing of use."""
        question = entry.question
        by = str(getattr(handler, "by", "handler"))
        answer: object = None
        try:
            answer = await call_handler(handler, question, self._threads)
            heard = None if _is_nothing(answer) else read_answer(question, answer, by, f"the {by} said so")
            why = heard.why if heard else getattr(answer, "why", "") or f"the {by} left it open"
        except AnswerInvalid as exc:
            # What a form is filled in with may be a secret, and the errors quote it.
            fields = [name for name in exc.errors if name]
            if fields:
                wrong = f"the {by} filled in wrongly: {', '.join(fields)}"
            elif isinstance(question, PermissionQuestion):
                wrong = str(exc)
            else:
                wrong = f"the {by} gave a {type(answer).__name__}, which is no answer to it"
            about = "Agent %s: the %s gave an answer to question %s that does not fit: %s"
            logger.error(about, question.agent, by, question.id, wrong)
            heard, why = None, wrong
        except (Exception, anyio.get_cancelled_exc_class()) as exc:
            await checkpoint_if_cancelled()  # else it is a cancellation of the handler's own, and a failure
            about = "Agent %s: the %s failed over question %s"
            logger.exception(about, question.agent, by, question.id)
            heard, why = None, f"the {by} failed: {type(exc).__name__}: {exc}"
        by = heard.by if heard else getattr(answer, "by", None) or by
        if not entry.told:  # else he speaks when the answer is out
            _tell(scene, ev.QuestionVerdict, id=question.id, verdict=heard and heard.verdict, by=by, why=why)
        return heard


CANCELLED: Final = Ruling(
    verdict="deny", by="cancel", why="the turn or the question was cancelled", cancels=True
)


def _leaves_open(policy: PermissionMode | PermissionPolicy | None) -> bool:
    """Return whether somebody may be asked for permission."""
    if isinstance(policy, PermissionPolicy):
        return "ask" in (policy.otherwise, *(rule.verdict for rule in policy.rules))
    return policy == "ask"


def _tell(scene: Scene, kind: Callable[..., ev.ThoughtEvent], **fields: object) -> None:
    if scene.log is not None:
        scene.log.add(kind, **fields)
        scene.log.publish()


def _nobody(why: str) -> Ruling:
    return Ruling(verdict="deny", by="policy", why=why)


def _is_nothing(answer: object) -> bool:
    return answer is None or getattr(answer, "answer", answer) is None


async def call_handler(handler: Callable[[X], object], argument: X, threads: anyio.CapacityLimiter) -> object:
    """Call a handler where it may block: in the event loop if it is ``async``, else in a thread."""
    function = handler
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        answer: object = handler(argument)
    else:
        # In a list, since trio lets no thread return something to be awaited.
        (answer,) = await anyio.to_thread.run_sync(
            lambda: [handler(argument)], abandon_on_cancel=True, limiter=threads
        )
    return await answer if inspect.isawaitable(answer) else answer


def _shown(question: Question) -> dict[str, object]:
    """Return what the log tells of a question."""
    shown: dict[str, object] = {
        "id": question.id,
        "title": question.title,
        "tool_id": question.tool_id,
        "timeout": question.timeout,
    }
    match question:
        case PermissionQuestion():
            return {**shown, "asks": "permission", "options": question.options}
        case FormQuestion():
            return {**shown, "asks": "form", "fields": question.fields}
        case UrlQuestion():
            return {**shown, "asks": "url", "url": question.url}
