"""Who answers an agent's questions: the policy, then each handler in order, and a program at any time."""

from __future__ import annotations

import functools
import inspect
import logging
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec.structs import replace

from thinkwell import events as ev
from thinkwell._core.policy.permissions import PermissionMode, PermissionPolicy
from thinkwell._core.questions.open_questions import OpenQuestion, OpenQuestions, Scene
from thinkwell._values.rulings import Ruling, read_answer
from thinkwell.errors import AnswerInvalid
from thinkwell.questions import FormQuestion, PermissionQuestion, UrlQuestion, wait_for_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell._core.log.listener import RunListener
    from thinkwell.questions import Answer, Question, QuestionHandler

X = TypeVar("X")

QUESTION_TIMEOUT: Final = 300.0
"""Seconds that a question waits for an answer, by default."""

HANDLER_THREADS: Final = 200
"""Most handlers without ``async`` that may run at the same time."""


class _Front:
    """A listener as the first handler."""

    def __init__(self, listener: RunListener) -> None:
        self._listener = listener
        self.by = listener.by

    async def __call__(self, question: Question) -> Answer | None:
        return await self._listener.answer(question)


class Asker:
    """Gets an answer to every question of one agent.

    Args:
        policy: Decides without asking; ``None``: everything is denied, except in a run whose listener decides
            permissions.
        handlers: The handlers, in order.
        timeout: Seconds for all of them together, for each question.
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
        # If no handler is asked, and no listener could answer more, wait for the program.
        self._without = (wait_for_answer,) if not self._handlers and _leaves_open(policy) else ()
        self._timeout = timeout
        self.open: OpenQuestions = OpenQuestions()
        # Separate threads: handlers may take long, and tools and programs need threads too.
        self._threads = anyio.CapacityLimiter(HANDLER_THREADS)

    @property
    def denies_all(self) -> bool:
        """Whether everything is denied: then no handler is asked for permission."""
        return self._policy == "deny"

    @property
    def can_answer(self) -> bool:
        """Whether anything could fill in a form."""
        return bool(self._handlers or self._without)

    @property
    def asks_others(self) -> bool:
        """Whether a handler is asked when a listener leaves a question open."""
        return bool(self._handlers)

    async def ask(self, question: Question, scene: Scene, choose: Callable[[Ruling], str | None]) -> Ruling:
        """Get an answer and report it.

        Args:
            question: The question.
            scene: Its place and context.
            choose: Chooses the agent's option for the answer.
        """
        ruling, handlers = self._first_word(question, scene)
        if handlers and scene.too_often is not None and (why := scene.too_often(question)) is not None:
            ruling = Ruling(verdict="deny", by="listener", why=why, stop=why, cancels=True)
            handlers = ()
        question = replace(question, timeout=self._timeout if handlers else None)
        scene.tell(ev.QuestionAsked, **_shown(question))
        entry = OpenQuestion(question, scene, choose)
        self.open.add(entry)
        try:
            final = await self._rule(entry, scene, ruling, handlers)
            await checkpoint_if_cancelled()  # a withdrawn question has no other answer
            if (
                scene.remembered is not None
                and isinstance(question, PermissionQuestion)
                and final is not ruling
            ):
                scene.remembered.remember(question, final.verdict)
            entry.answered(final)
            return final
        finally:
            self.open.remove(entry)

    def forbids(self, question: PermissionQuestion, cwd: str) -> str | None:
        """Return why a rule forbids a request made through us; ``None``: no rule does."""
        if not isinstance(self._policy, PermissionPolicy):
            return None
        decision = self._policy.decide(question, cwd=cwd)
        return decision.why if decision.verdict == "deny" and decision.rule is not None else None

    def _first_word(self, question: Question, scene: Scene) -> tuple[Ruling, tuple[QuestionHandler, ...]]:
        """Return the policy's answer, and the handlers that are asked before it takes effect."""
        handlers = self._handlers or self._without
        if scene.listener is not None:
            handlers = (_Front(scene.listener), *self._handlers)
        if not isinstance(question, PermissionQuestion):
            if scene.own:  # the author of the tool could have asked them
                handlers = (wait_for_answer,)
            return _nobody("no one who was asked answered it"), handlers
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
                return "ask", "the run has a listener"
            return "deny", 'permissions="deny"'
        if not isinstance(self._policy, PermissionPolicy):
            return self._policy, f'permissions="{self._policy}"'
        decision = self._policy.decide(question, cwd=scene.cwd)
        return decision.verdict, decision.why

    async def _rule(
        self, entry: OpenQuestion, scene: Scene, ruling: Ruling, handlers: Sequence[QuestionHandler]
    ) -> Ruling:
        """Return the first answer of a handler or a program in time; else `ruling`.

        If `ruling` allows, the others may only forbid, and silence forbids.
        """
        if not handlers:
            return ruling
        asking = anyio.CancelScope()
        # In the background: a cancelled handler may need time, which is not waited for.
        scene.tasks.start_in_order(self._consult, asking, entry, scene, ruling, handlers)
        try:
            with anyio.move_on_after(self._timeout):
                await entry.ruled.wait()
        finally:
            asking.cancel()
        final = entry.ruling or Ruling(
            verdict="deny", by="deadline", why=f"no answer within {self._timeout:g} seconds", late=True
        )
        if final.allows and ruling.allows:
            return ruling  # a reviewer cannot allow more than the policy
        return final

    async def _consult(
        self,
        scope: anyio.CancelScope,
        entry: OpenQuestion,
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
                    entry.rule(heard)
                    return
            entry.rule(_nobody("no reviewer agreed") if ruling.allows else ruling)

    async def _hear(self, handler: QuestionHandler, entry: OpenQuestion, scene: Scene) -> Ruling | None:
        """Return a handler's answer; ``None`` if it is not usable."""
        question = entry.question
        by = str(getattr(handler, "by", "handler"))
        answer: object = None
        try:
            answer = await call_handler(handler, question, self._threads)
            heard = None if _is_nothing(answer) else read_answer(question, answer, by, f"the {by} said so")
            why = heard.why if heard else getattr(answer, "why", "") or f"the {by} left it open"
        except AnswerInvalid as exc:
            # The values of a form may be secrets, and the errors quote them.
            fields = [name for name in exc.errors if name]
            if fields:
                wrong = f"the {by} filled in wrongly: {', '.join(fields)}"
            elif isinstance(question, PermissionQuestion):
                wrong = str(exc)
            else:
                wrong = f"the {by} gave a {type(answer).__name__}, which does not answer it"
            about = "Agent %s: the %s gave an answer to question %s that does not fit: %s"
            scene.lines(logging.ERROR, about, question.agent, by, question.id, wrong)
            heard, why = None, wrong
        except (Exception, anyio.get_cancelled_exc_class()) as exc:
            await checkpoint_if_cancelled()  # otherwise the handler cancelled itself: a failure
            about = "Agent %s: the %s failed over question %s"
            scene.lines(logging.ERROR, about, question.agent, by, question.id, exc_info=True)
            heard, why = None, f"the {by} failed: {type(exc).__name__}: {exc}"
        by = heard.by if heard else getattr(answer, "by", None) or by
        if not entry.over:  # otherwise the answer came too late
            scene.tell(ev.QuestionVerdict, id=question.id, verdict=heard and heard.verdict, by=by, why=why)
        return heard


def _leaves_open(policy: PermissionMode | PermissionPolicy | None) -> bool:
    """Return whether handlers may be asked for permission."""
    if isinstance(policy, PermissionPolicy):
        return "ask" in (policy.otherwise, *(rule.verdict for rule in policy.rules))
    return policy == "ask"


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
        # In a list, because trio does not let a thread return an awaitable.
        (answer,) = await anyio.to_thread.run_sync(
            lambda: [handler(argument)], abandon_on_cancel=True, limiter=threads
        )
    return await answer if inspect.isawaitable(answer) else answer


def _shown(question: Question) -> dict[str, object]:
    """Return the log's details of a question."""
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
        case UrlQuestion():  # pragma: no branch - the last of the union
            return {**shown, "asks": "url", "url": question.url}
