"""The agent's side of a script: it answers the client, and plays a turn for each prompt."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Never, TypeAlias, cast

from msgspec import Struct

from thinkwell._core.exit import background_tasks
from thinkwell._version import VERSION
from thinkwell.testing._client_tools import ClientTools
from thinkwell.testing._journal import Failure, Tap
from thinkwell.testing._script import Script
from thinkwell.testing._steps import Fails, Step, Telling  # noqa: TC001 - types of fields
from thinkwell.testing._telling import Teller
from thinkwell.testing._turn import Turn, client_is_gone, prompt_text, script_failed, what_went_wrong
from thinkwell_acp import AcpError, AgentHandler, AgentSide, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.connection import open_connection
from thinkwell_acp.errors import INVALID_PARAMS
from thinkwell_acp.steering import METHOD, SteeringRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import msgspec

    from thinkwell.testing._journal import Journal
    from thinkwell_acp import Transport
    from thinkwell_acp._jsonrpc import RequestId
    from thinkwell_acp._tasks import BackgroundTasks
    from thinkwell_acp.connection import Connection

logger = logging.getLogger("thinkwell.testing")

CAPABILITIES: Final = s.AgentCapabilities(
    mcp_capabilities=s.McpCapabilities(acp=True),
    session_capabilities=s.SessionCapabilities(close=s.SessionCloseCapabilities()),
)
"""The advertised capabilities of a scripted agent, by default."""

INFO: Final = s.Implementation(name="scripted", version=VERSION)
"""Its advertised name and version."""


MODEL: Final = "model"
"""The option by which its models are chosen."""


class Play(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A script, and everything else that an agent needs to play it. A saved `Script` can be read as one."""

    steps: tuple[Step, ...]
    capabilities: s.AgentCapabilities = CAPABILITIES
    info: s.Implementation = INFO
    before_session: tuple[Telling, ...] = ()
    lists_tools: bool = True
    relists: bool = True
    fails_at: dict[str, Fails] = {}
    repeats: bool = False
    models: tuple[str, ...] = ()
    steering: bool = False


Proceed: TypeAlias = Callable[[s.Model], Awaitable[object]]
"""Answers a request in the usual way."""

Answer: TypeAlias = Callable[[Never, Proceed], Awaitable[object]]
"""Answers a request instead, given the request and a function that answers it in the usual way."""


class _Session:
    """A session: its model, its tools and its running turn."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.tools: list[ClientTools] = []
        self.turns: set[Turn] = set()


class Player(AgentHandler):
    """Plays to one client.

    Args:
        play: The script.
        journal: Stores the history of the script.
        tasks: Runs background tasks.
        stderr: The descriptor of standard error, in a process.
        crash: Ends the process, if there is one.
        answers: Functions that answer requests instead, by method.
    """

    def __init__(
        self,
        play: Play,
        journal: Journal,
        tasks: BackgroundTasks,
        *,
        stderr: int | None,
        crash: Callable[[int], None],
        answers: Mapping[str, Answer],
    ) -> None:
        self._answers = answers
        self._play = play
        self.fails_at = play.fails_at
        self._turns = Script(play.steps).turns
        self._journal = journal
        self._tasks = tasks
        self._stderr = stderr
        self._crash = crash
        self._client: AgentSide
        self._sessions: dict[str, _Session] = {}
        self._calls = itertools.count(1)

    def connected(self, client: AgentSide, /) -> None:
        """Read what the client sends about itself."""
        self._client = client

    def answering(self, method: str, handle: Proceed) -> Proceed:
        """Return the function that answers a method."""
        if method not in self._answers:
            return handle
        answer = cast("Callable[[s.Model, Proceed], Awaitable[object]]", self._answers[method])
        return lambda request: answer(request, handle)

    def cancel(self, session_id: str) -> bool:
        """Cancel the running turn of a session; return whether there is one."""
        session = self._sessions.get(session_id)
        if session is None or not session.turns:
            return False
        for turn in session.turns:
            turn.cancel()
        return True

    # Requests of the client

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        """Introduce this agent."""
        return s.InitializeResponse(
            protocol_version=1,
            agent_info=self._play.info,
            agent_capabilities=self._play.capabilities,
            meta={"steering": {"supported": True}} if self._play.steering else None,
        )

    async def ext_request(self, method: str, params: s.JsonValue, /) -> s.JsonValue:
        """Take a message of the client in a turn."""
        if method != METHOD or not self._play.steering:
            raise RpcError.method_not_found(method)
        request = s.convert(SteeringRequest, params)
        session = self._sessions.get(request.session_id)
        if session is None or not session.turns:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        for turn in session.turns:
            turn.steer(prompt_text(request.prompt))
        return {"outcome": "injected"}

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        """Open a session."""
        session_id = _new_id(self._journal)
        await self._tell(session_id, self._play.before_session, "before_session")
        options = await self._open(session_id, request.mcp_servers)
        return s.NewSessionResponse(session_id=session_id, config_options=options)

    async def load_session(self, request: s.LoadSessionRequest, /) -> s.LoadSessionResponse:
        """Open a session, and send the updates from before its opening again."""
        await self._tell(request.session_id, self._play.before_session, "before_session")
        return s.LoadSessionResponse(config_options=await self._open(request.session_id, request.mcp_servers))

    async def resume_session(self, request: s.ResumeSessionRequest, /) -> s.ResumeSessionResponse:
        """Open any session."""
        options = await self._open(request.session_id, request.mcp_servers)
        return s.ResumeSessionResponse(config_options=options)

    async def fork_session(self, request: s.ForkSessionRequest, /) -> s.ForkSessionResponse:
        """Open another session."""
        session_id = _new_id(self._journal)
        options = await self._open(session_id, request.mcp_servers)
        return s.ForkSessionResponse(session_id=session_id, config_options=options)

    async def set_session_config_option(
        self, request: s.SetSessionConfigOptionRequest, /
    ) -> s.SetSessionConfigOptionResponse:
        """Change the model of a session."""
        session, model = self._sessions.get(request.session_id), request.value
        if session is None or request.config_id != MODEL or model not in self._play.models:
            raise RpcError(INVALID_PARAMS, f"There is no option {request.config_id} = {model}")
        session.model = str(model)
        return s.SetSessionConfigOptionResponse(config_options=_options(self._play, session))

    async def close_session(self, request: s.CloseSessionRequest, /) -> s.CloseSessionResponse:
        """Close a session, and cancel its turn."""
        self.cancel(request.session_id)
        self._sessions.pop(request.session_id, None)
        return s.CloseSessionResponse()

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        """Play the next turn."""
        session = self._sessions.get(request.session_id)
        if session is None:
            raise RpcError(INVALID_PARAMS, f"There is no session {request.session_id}")
        number, turns = self._journal.claim("turn"), self._turns
        if self._play.repeats and turns:
            number = min(number, len(turns))
        if number > len(turns):
            text = prompt_text(request.prompt)
            size = "1 turn" if len(turns) == 1 else f"{len(turns)} turns"
            reason = f"the script has {size}, and this is prompt {number}: {text!r:.2000}"
            self._journal.append(Failure(reason))
            raise script_failed(f"The script failed: {reason}")
        turn = Turn(
            number,
            turns[number - 1],
            request=request,
            teller=self._teller(request.session_id),
            tools=session.tools,
            journal=self._journal,
            crash=self._crash,
        )
        session.turns.add(turn)
        try:
            stop = await turn.play()
        finally:
            session.turns.discard(turn)
        if stop.late:
            where = f"turn {number}, late"
            self._tasks.start_soon(self._tell, request.session_id, stop.late, where)  # after the answer
        return s.PromptResponse(stop_reason=stop.reason)

    # Sessions and their tools

    async def _open(
        self, session_id: str, servers: Sequence[s.McpServer]
    ) -> tuple[s.SessionConfigOption, ...] | None:
        session = self._sessions[session_id] = _Session(next(iter(self._play.models), ""))
        for server in servers:
            if isinstance(server, s.McpServerAcp):
                lists = self._play.lists_tools
                session.tools.append(await ClientTools.open(self._client.connection, server, lists=lists))
        return _options(self._play, session) or None

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        """Fetch the tools again if they have changed."""
        if self._play.relists and notification.method == "notifications/tools/list_changed":
            for session in self._sessions.values():
                for server in session.tools:
                    if server.connection_id == notification.connection_id:
                        self._tasks.start_soon(_relist, server)

    # Updates

    def _teller(self, session_id: str) -> Teller:
        return Teller(self._client, session_id, self._calls, self._stderr)

    async def _tell(self, session_id: str, steps: Sequence[Telling], where: str) -> None:
        teller = self._teller(session_id)
        for index, step in enumerate(steps, 1):
            try:
                await teller.tell(step)
            except Exception as exc:
                if client_is_gone(exc):
                    logger.debug("no client is left to be told: %s", exc)
                else:
                    self._journal.append(
                        Failure(f"{where}, step {index}, {step}: {what_went_wrong(step, exc)}")
                    )
                return


def _new_id(journal: Journal) -> str:
    return f"session-{journal.claim('session')}"


def _options(play: Play, session: _Session) -> tuple[s.SessionConfigOption, ...]:
    choices = tuple(s.SessionConfigSelectOption(value=name, name=name) for name in play.models)
    model = s.SessionConfigSelect(
        id=MODEL, name="Model", category="model", current_value=session.model, options=choices
    )
    return (model,) if choices else ()


async def _relist(server: ClientTools) -> None:
    try:
        await server.list_tools()
    except AcpError as exc:
        logger.debug("tools/list: %s", exc)


class _Side(AgentSide):
    """The client's end of a player. It handles cancelled turns itself: they may have steps left."""

    def __init__(self, connection: Connection, player: Player) -> None:
        super().__init__(connection, player)
        self._player = player

    async def request(self, id: RequestId, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        error = self._player.fails_at.get(method)
        if error is not None:
            raise RpcError(error.code, error.message, error.data)
        return await super().request(id, method, params)

    async def serve(
        self,
        id: RequestId,  # noqa: A002 - the field's name
        method: str,
        params: s.Model,
        handle: Callable[..., Any],
    ) -> object:
        return await super().serve(id, method, params, self._player.answering(method, handle))

    def notified(self, method: str, params: s.Model) -> None:
        if not (isinstance(params, s.CancelNotification) and self._player.cancel(params.session_id)):
            super().notified(method, params)


async def serve(
    transport: Transport,
    play: Play,
    journal: Journal,
    *,
    stderr: int | None = None,
    crash: Callable[[int], None] = lambda _: None,
    answers: Mapping[str, Answer] = MappingProxyType({}),
    connected: Callable[[AgentSide], None] = lambda _: None,
) -> None:
    """Play for the client at the other end of a transport, until it leaves."""
    connection = journal.claim("connection")
    async with background_tasks() as tasks:
        player = Player(play, journal, tasks, stderr=stderr, crash=crash, answers=answers)
        tap = Tap(transport, journal, connection)
        async with open_connection(tap, partial(_Side, player=player)) as opened:
            connected(opened.handler)
            await opened.wait_closed()
