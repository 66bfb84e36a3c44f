"""The built-in agent's side of the protocol: sessions, their tools, and turns that can be cancelled."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from anyio import AsyncContextManagerMixin

from thinkwell._version import VERSION
from thinkwell.builtin._files import Folder
from thinkwell.builtin._request import read_prompt
from thinkwell.builtin._servers import SessionServers
from thinkwell.builtin._speech import Speaker, pace_of
from thinkwell.builtin._turn import Turn
from thinkwell_acp import AgentHandler, RpcError
from thinkwell_acp import schema as s
from thinkwell_acp._tasks import BackgroundTasks, background_tasks
from thinkwell_acp.errors import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from thinkwell.builtin._facts import FileFacts
    from thinkwell_acp import AgentSide


MODEL: Final = "model"
"""The option by which its models are chosen."""


class _Session:
    """A conversation: its folder, its tools and what was read so far."""

    def __init__(self, folder: Folder, servers: SessionServers, model: str) -> None:
        self.model = model
        self.folder = folder
        self.servers = servers
        self.remembered: tuple[FileFacts, ...] = ()
        self.turns = 0
        self.lock = anyio.Lock()
        self.closed = False
        self.running = anyio.CancelScope()
        """Where the last turn runs."""


class BuiltinAgent(AgentHandler, AsyncContextManagerMixin):
    """Serves one client. Its work ends with its block.

    Args:
        models: Names of models that it offers, as other agents do. All of them do the same: it has none.
    """

    def __init__(self, models: Sequence[str] = ()) -> None:
        self._models = tuple(models)
        self._sessions: dict[str, _Session] = {}
        self._client: AgentSide
        self._tasks: BackgroundTasks

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[BuiltinAgent]:
        async with background_tasks() as self._tasks:
            yield self

    def connected(self, client: AgentSide, /) -> None:
        """Read what the client sends about itself."""
        self._client = client

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        """Introduce this agent: its title says that it has no model."""
        return s.InitializeResponse(
            protocol_version=1,
            agent_info=s.Implementation(
                name="thinkwell-builtin", title="thinkwell's built-in agent (no model)", version=VERSION
            ),
            agent_capabilities=s.AgentCapabilities(
                prompt_capabilities=s.PromptCapabilities(embedded_context=True),
                mcp_capabilities=s.McpCapabilities(acp=True),
                session_capabilities=s.SessionCapabilities(
                    close=s.SessionCloseCapabilities(),
                    system_prompt=s.SessionSystemPromptCapabilities(),  # else the prompt has it
                ),
            ),
        )

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        """Open a session, and fetch its tools first, if that is quick."""
        if not Path(request.cwd).is_dir():  # noqa: ASYNC240 - one look
            raise RpcError(INVALID_PARAMS, f"cwd: there is no folder {request.cwd}")
        model = next(iter(self._models), "")
        session = _Session(Folder(request.cwd), SessionServers(request.mcp_servers), model)
        try:
            await session.servers.open(self._tasks, self._client, session.folder)
        except BaseException:  # the client cancels its request
            session.servers.cancel()
            raise
        session_id = secrets.token_hex(8)
        self._sessions[session_id] = session
        return s.NewSessionResponse(session_id=session_id, config_options=self._options(session) or None)

    async def set_session_config_option(
        self, request: s.SetSessionConfigOptionRequest, /
    ) -> s.SetSessionConfigOptionResponse:
        """Switch to another model."""
        session, model = self._find(request.session_id), request.value
        if request.config_id != MODEL or model not in self._models:
            raise RpcError(INVALID_PARAMS, f"There is no option {request.config_id} = {model}")
        session.model = str(model)
        return s.SetSessionConfigOptionResponse(config_options=self._options(session))

    async def close_session(self, request: s.CloseSessionRequest, /) -> s.CloseSessionResponse:
        """End a session, and what runs in it."""
        session = self._find(request.session_id)
        del self._sessions[request.session_id]
        session.closed = True
        session.running.cancel()
        await session.servers.close()
        return s.CloseSessionResponse()

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        """Run a turn; one at a time in each session."""
        session = self._find(request.session_id)
        async with session.lock:
            with anyio.CancelScope() as session.running:
                if session.closed:
                    session.running.cancel()
                await self._run(session, request)
                return s.PromptResponse(stop_reason="end_turn")
        return s.PromptResponse(stop_reason="cancelled")

    async def _run(self, session: _Session, request: s.PromptRequest) -> None:
        session.turns += 1
        speaker = Speaker(
            self._client, request.session_id, f"{request.session_id}-{session.turns}", pace_of(request.meta)
        )
        turn = Turn(
            read_prompt(request.prompt),
            session.folder,
            speaker,
            remembered=session.remembered,
            first=session.turns == 1,
        )
        await turn.run(session.servers)
        session.remembered = tuple(turn.files) or session.remembered

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        """Fetch the tools again if they have changed."""
        if notification.method == "notifications/tools/list_changed":
            for session in self._sessions.values():
                session.servers.changed(notification.connection_id)

    def _options(self, session: _Session) -> tuple[s.SessionConfigOption, ...]:
        choices = tuple(s.SessionConfigSelectOption(value=name, name=name) for name in self._models)
        model = s.SessionConfigSelect(
            id=MODEL, name="Model", category="model", current_value=session.model, options=choices
        )
        return (model,) if choices else ()

    def _find(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise RpcError(INVALID_PARAMS, f"There is no session {session_id}", {"sessionId": session_id})
        return session
