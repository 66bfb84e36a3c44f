"""The agent's requests for permission and for input, as questions, and their answers in its form."""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import TYPE_CHECKING, Final

from thinkwell import events as ev
from thinkwell._asking import Scene
from thinkwell._call_facts import facts_of
from thinkwell._json_schema import is_object
from thinkwell._lines._names import MESSAGE_META, SILENT_META, VALUE_META
from thinkwell._wire_questions import content_values, elicitation_question
from thinkwell.errors import QuestionsStopped
from thinkwell.permissions import choose
from thinkwell.questions import FormQuestion, PermissionQuestion, QuestionOption, UrlQuestion
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from thinkwell._answers import Ruling
    from thinkwell._asking import Asker
    from thinkwell._log import RunLog
    from thinkwell._wire_session import WireSession
    from thinkwell.events import ToolKind
    from thinkwell.questions import FormField, FormValue, Question
    from thinkwell_acp import Client
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.client import AgentQuestion

logger = logging.getLogger("thinkwell")

PAGES_KEPT: Final = 1000
"""Opened web pages that are remembered until the agent says that they are done; some agents never do."""


class WireAsker:
    """Answers what one agent asks."""

    def __init__(
        self,
        agent: str,
        cwd: str,
        asker: Asker,
        sessions: Mapping[str, WireSession],
        tasks: BackgroundTasks,
        *,
        by_lines: bool = False,
    ) -> None:
        self.asker = asker
        self._by_lines = by_lines
        self._agent = agent
        self._cwd = cwd
        self._sessions = sessions
        self._tasks = tasks
        self._numbers = count(1)
        self._pages: OrderedDict[str, tuple[RunLog, str]] = OrderedDict()
        self._asked: dict[str, AgentQuestion] = {}
        """What is being asked, by the id of the question."""
        self._openings: list[WireSession] = []

    def check(self, session_id: str, *, kind: ToolKind, command: str | None = None, path: str = "") -> None:
        """Check that no rule forbids what the agent does through us.

        Raises:
            RpcError: One does.
        """
        session = self._sessions.get(session_id)
        question = PermissionQuestion(
            id="",
            title=command or path,
            agent=self._agent,
            options=(),
            kind=kind,
            command=command,
            paths=(path,) if path else (),
        )
        why = self.asker.forbids(question, self._cwd if session is None else session.cwd)
        if why is not None:
            raise RpcError(INVALID_PARAMS, f"It is not permitted: {why}", {"reason": "permissions"})

    def withdraw(self, client: Client, concerns: Callable[[Question], bool]) -> None:
        """Cancel the open questions that concern the caller: nobody waits for their answers any more.

        The agent and the log are told in the same step, so that they cannot be told different things.
        """
        requests = [self._asked[id_] for id_ in self.asker.withdraw(concerns) if id_ in self._asked]
        client.cancel_questions(lambda asked: any(asked is request for request in requests))

    async def permission(self, request: s.RequestPermissionRequest) -> s.RequestPermissionResponse:
        """Answer a request for permission; a cancelled turn answers for us."""
        session = self._sessions.get(request.session_id)
        if session is None or session.closed:
            logger.warning(
                "Agent %s asks for permission in unknown session %r", self._agent, request.session_id
            )
            return _outcome(choose(request.options, "deny"))
        call = request.tool_call
        own = session.own_calls.asks(call)
        facts = facts_of(call, session.mapper.log.view().tools.get(call.tool_call_id), session.cwd)
        session.mapper.update_tool(call)

        def option_of(ruling: Ruling) -> s.PermissionOption | None:
            return _option(request.options, ruling, session.mode_ids)

        def choice_of(ruling: Ruling) -> str | None:
            option = option_of(ruling)
            return None if option is None else option.kind

        question = PermissionQuestion(
            id=self._new_id(),
            title=facts.title,
            agent=self._agent,
            session_id=session.id,
            run_id=session.run_id,
            tool_id=call.tool_call_id,
            options=tuple(
                QuestionOption(id=option.option_id, name=option.name, kind=option.kind)
                for option in request.options
            ),
            kind=facts.kind,
            input=facts.input,
            content=facts.content,
            name=facts.name,
            server=facts.server,
            command=facts.command,
            paths=facts.paths,
            message=self._message(request),
        )
        if own and session.occupant is not None:
            session.occupant.know_own(call.tool_call_id)
        ruling = await self._ask(request, question, session, choice_of, own=own)
        if not ruling.allows:
            session.mapper.tool_refused(call.tool_call_id)
        return _outcome(option_of(ruling), self._said(ruling))

    async def elicitation(self, request: s.CreateElicitationRequest) -> s.CreateElicitationResponse:
        """Answer a request for input; a cancelled turn answers for us."""
        session = self._sessions.get(request.session_id or "") or self._opening_session
        if not isinstance(request, s.ElicitationFormMode | s.ElicitationUrlMode):
            raise RpcError(INVALID_PARAMS, "This client knows no such mode of elicitation")
        run_id = None if session is None else session.run_id
        question = elicitation_question(
            request, id=self._new_id(), agent=self._agent, run_id=run_id, message=self._message(request)
        )
        if session is not None and session.closed:
            return s.CreateElicitationResponse(action="decline")
        if isinstance(question, UrlQuestion) and not question.host:
            logger.warning("Agent %s asks to open what is no web page; it is declined", self._agent)
            logger.debug("That address of agent %s: %.200r", self._agent, question.url)
            return s.CreateElicitationResponse(action="decline")
        ruling = await self._ask(request, question, session, _action)
        if not ruling.allows:
            return s.CreateElicitationResponse(action=_action(ruling), meta=self._said(ruling))
        if isinstance(request, s.ElicitationUrlMode) and session is not None:
            self._pages[request.elicitation_id] = (session.mapper.log, question.id)
            if len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        return s.CreateElicitationResponse(
            action="accept",
            content=None if ruling.values is None else content_values(ruling.values),
            meta=self._said(ruling),
        )

    async def ask_for_tool(
        self, title: str, fields: Sequence[FormField], session: WireSession, run_id: str
    ) -> dict[str, FormValue] | None:
        """Get values for a tool of ours; ``None``: nobody wants to give them."""
        question = FormQuestion(
            id=self._new_id(),
            title=title,
            agent=self._agent,
            session_id=session.id,
            run_id=run_id,
            fields=tuple(fields),
        )
        scene = Scene(cwd=session.cwd, tasks=self._tasks, log=session.mapper.log, own=True)
        ruling = await self.asker.ask(question, scene, _action)
        return (ruling.values or {}) if ruling.allows else None

    def _message(self, request: AgentQuestion) -> dict[str, ev.JsonValue] | None:
        """Return what an agent that speaks lines has said; from any other it would be a lie."""
        message: ev.JsonValue = request.meta.get(MESSAGE_META) if self._by_lines and request.meta else None
        return message if is_object(message) else None

    def _said(self, ruling: Ruling) -> dict[str, ev.JsonValue] | None:
        """Return what else an agent that speaks lines is told of an answer."""
        if not self._by_lines:
            return None
        if ruling.said is not None:
            return {VALUE_META: ruling.said[0]}
        return {SILENT_META: True} if ruling.silent else None

    def completed(self, notification: s.CompleteElicitationNotification) -> None:
        """Tell that what a page was opened for is done. Unknown ids are ignored (ACP, Elicitation)."""
        log, question_id = self._pages.pop(notification.elicitation_id, (None, ""))
        if log is not None:
            log.add(ev.QuestionCompleted, id=question_id)
            log.publish()

    @contextmanager
    def opening(self, session: WireSession) -> Generator[None]:
        """Take what is asked meanwhile as the session's own: "trust this folder?", before it has an id."""
        self._openings.append(session)
        try:
            yield
        finally:
            self._openings.remove(session)

    @property
    def _opening_session(self) -> WireSession | None:
        """The session that is being opened, where there is no doubt which."""
        return self._openings[0] if len(self._openings) == 1 else None

    def _new_id(self) -> str:
        return f"q{next(self._numbers)}"

    async def _ask(
        self,
        request: AgentQuestion,
        question: Question,
        session: WireSession | None,
        choice_of: Callable[[Ruling], str | None],
        *,
        own: bool = False,
    ) -> Ruling:
        run = None if session is None else session.occupant
        scene = Scene(cwd=self._cwd, tasks=self._tasks)
        if session is not None:
            scene = Scene(
                cwd=session.cwd,
                tasks=self._tasks,
                log=session.mapper.log,
                remembered=session.remembered,
                own=own,
                listener=None if run is None else run.listener,
                too_often=None if run is None else run.asked_too_often,
            )
        self._asked[question.id] = request
        try:
            with nullcontext() if run is None else run.standing_still():
                ruling = await self.asker.ask(question, scene, choice_of)
        finally:
            del self._asked[question.id]
        if ruling.stop is not None and run is not None:
            run.stop(QuestionsStopped(ruling.stop, question.id))
        return ruling


def _option(
    options: tuple[s.PermissionOption, ...], ruling: Ruling, mode_ids: frozenset[str]
) -> s.PermissionOption | None:
    """Return the option to answer with; ``None``: it was cancelled, or none that is offered says it."""
    if ruling.cancels:
        return None
    if ruling.option_id is not None:
        return next(option for option in options if option.option_id == ruling.option_id)
    option = choose(options, ruling.verdict, widen=ruling.widens, avoid=mode_ids)
    return option or choose(options, "deny")


def _outcome(
    option: s.PermissionOption | None, meta: dict[str, ev.JsonValue] | None = None
) -> s.RequestPermissionResponse:
    if option is None:
        return s.RequestPermissionResponse(outcome=s.CancelledPermissionOutcome(), meta=meta)
    chosen = s.SelectedPermissionOutcome(option_id=option.option_id)
    return s.RequestPermissionResponse(outcome=chosen, meta=meta)


def _action(ruling: Ruling) -> str:
    """Return what is told of an answer to a request for input."""
    if ruling.allows:
        return "accept"
    return "cancel" if ruling.cancels or ruling.late else "decline"
