"""The agent's requests for permission and input as questions, and the answers in the agent's form."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from itertools import count
from typing import TYPE_CHECKING

from thinkwell._core.log.log_lines import LogLines, log_fields
from thinkwell._core.policy.permissions import choose
from thinkwell._core.protocol.call_facts import facts_of
from thinkwell._core.protocol.elicitation import content_values, elicitation_question
from thinkwell._core.protocol.own_tools import denied_words
from thinkwell._core.questions.open_questions import Scene
from thinkwell.errors import QuestionsStopped
from thinkwell.questions import FormQuestion, PermissionQuestion, QuestionOption, UrlQuestion
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from thinkwell import events as ev
    from thinkwell._core.protocol.dialect import Dialect
    from thinkwell._core.questions.asker import Asker
    from thinkwell._core.session.routes import SessionRoutes
    from thinkwell._core.session.session import WireSession
    from thinkwell._values.rulings import Ruling
    from thinkwell.events import ToolKind
    from thinkwell.questions import FormField, FormValue, Question
    from thinkwell_acp import Client
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.client import AgentQuestion

logger = logging.getLogger("thinkwell")


class AgentQuestions:
    """Answers one agent's questions.

    Args:
        agent: The agent's name.
        cwd: Its folder.
        client: The connection to it.
        asker: Finds the answers.
        routes: Its sessions.
        tasks: The tasks of handlers.
        dialect: Its use of the protocol.
    """

    def __init__(
        self,
        agent: str,
        cwd: str,
        client: Client,
        asker: Asker,
        routes: SessionRoutes[WireSession],
        tasks: BackgroundTasks,
        dialect: Dialect,
    ) -> None:
        self.asker = asker
        self._agent = agent
        self._cwd = cwd
        self._client = client
        self._routes = routes
        self._dialect = dialect
        self._tasks = tasks
        self._numbers = count(1)

    def check(self, session_id: str, *, kind: ToolKind, command: str | None = None, path: str = "") -> None:
        """Check that no rule forbids a request that the agent makes through us.

        Raises:
            RpcError: A rule does.
        """
        session = self._routes.get(session_id)
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

    async def permission(self, request: s.RequestPermissionRequest) -> s.RequestPermissionResponse:
        """Answer a request for permission. A cancelled turn answers it as cancelled."""
        session = self._routes.get(request.session_id)
        if session is None or session.life.silent:
            logger.warning(
                "Agent %s asks for permission in unknown session %r",
                self._agent,
                request.session_id,
                extra=log_fields(agent=self._agent, session=request.session_id),
            )
            return _outcome(choose(request.options, "deny"))
        call = request.tool_call
        own = session.own_calls.asks(call)
        facts = facts_of(call, session.calls.get(call.tool_call_id), session.mapper.log, session.cwd)
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
            run_id=_run_id(session),
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
            message=self._dialect.message(request),
        )
        run = session.occupant
        like = None
        if own or _may_be_own(session, question):  # recognised, or it seems to be
            like = session.own_calls.likeness(call.tool_call_id, question.title, question.name)
        if like is not None and like.bare:
            session.tools.learn_bare_names()
        if own:
            session.calls.meet(call.tool_call_id).ours = True
        ruling = await self._ask(request, question, session, choice_of, own=own)
        if not ruling.allows:
            session.calls.meet(call.tool_call_id).runs = False  # some agents send no further update
            if like is not None and run is not None and not ruling.cancels:
                run.denied_own(denied_words(question.title, like))
        return _outcome(option_of(ruling), self._dialect.answer_meta(ruling))

    async def elicitation(self, request: s.CreateElicitationRequest) -> s.CreateElicitationResponse:
        """Answer a request for input. A cancelled turn answers it as cancelled."""
        session = self._routes.get(request.session_id) or self._routes.opening_session
        assert isinstance(request, s.ElicitationFormMode | s.ElicitationUrlMode)  # the others are refused
        run_id = _run_id(session)
        question = elicitation_question(
            request,
            id=self._new_id(),
            agent=self._agent,
            run_id=run_id,
            message=self._dialect.message(request),
        )
        if session is not None and session.life.silent:
            return s.CreateElicitationResponse(action="decline")
        if isinstance(question, UrlQuestion) and not question.host:
            extra = log_fields(agent=self._agent)
            logger.warning(
                "Agent %s asks to open an address that is not a web page; it is declined",
                self._agent,
                extra=extra,
            )
            logger.debug("That address of agent %s: %.200r", self._agent, question.url, extra=extra)
            return s.CreateElicitationResponse(action="decline")
        ruling = await self._ask(request, question, session, _action)
        values = ruling.values if ruling.allows else None
        return s.CreateElicitationResponse(
            action=_action(ruling),
            content=None if values is None else content_values(values),
            meta=self._dialect.answer_meta(ruling),
        )

    async def ask_for_tool(
        self, title: str, fields: Sequence[FormField], session: WireSession, run_id: str
    ) -> dict[str, FormValue] | None:
        """Ask for values for a tool of ours; ``None`` if they were not given."""
        question = FormQuestion(
            id=self._new_id(),
            title=title,
            agent=self._agent,
            session_id=session.id,
            run_id=run_id,
            fields=tuple(fields),
        )
        lines = self._lines(session)
        scene = Scene(cwd=session.cwd, tasks=self._tasks, lines=lines, log=session.mapper.log, own=True)
        ruling = await self.asker.ask(question, scene, _action)
        return (ruling.values or {}) if ruling.allows else None

    def _new_id(self) -> str:
        return f"q{next(self._numbers)}"

    def _lines(self, session: WireSession | None) -> LogLines:
        if session is None or session.occupant is None:
            return LogLines(agent=self._agent, session=None if session is None else session.id)
        return session.occupant.lines

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
        scene = Scene(
            cwd=self._cwd if session is None else session.cwd,
            tasks=self._tasks,
            lines=self._lines(session),
            log=None if session is None else session.mapper.log,
            remembered=None if session is None else session.remembered,
            own=own,
            listener=None if run is None else run.listener,
            too_often=None if run is None else run.asked_too_often,
            page=request.elicitation_id if isinstance(request, s.ElicitationUrlMode) else None,
            take_back=lambda: self._client.cancel_questions(lambda asked: asked is request),
        )
        with nullcontext() if run is None else run.standing_still():
            ruling = await self.asker.ask(question, scene, choice_of)
        if ruling.stop is not None and run is not None:
            run.stop(QuestionsStopped(ruling.stop, question.id))
        return ruling


def _run_id(session: WireSession | None) -> str | None:
    return None if session is None or session.occupant is None else session.occupant.id


def _may_be_own(session: WireSession, question: PermissionQuestion) -> bool:
    """Return whether nothing known about a call says that it is of another tool than ours."""
    ours = (None, session.tools.server.name)
    return question.kind == "other" and question.command is None and question.server in ours


def _option(
    options: tuple[s.PermissionOption, ...], ruling: Ruling, mode_ids: frozenset[str]
) -> s.PermissionOption | None:
    """Return the option to answer with; ``None`` if it was cancelled, or no offered option fits."""
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
    """Return the log's word for an answer to a request for input."""
    if ruling.allows:
        return "accept"
    return "cancel" if ruling.cancels or ruling.late else "decline"
