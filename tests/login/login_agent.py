"""An agent in memory that wants a login before it does what it is told to refuse."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from scripted import Script, ScriptedAgent, Turn, scripted

from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.errors import AUTH_REQUIRED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

    from thinkwell import Agent

BROWSER = s.AuthMethodAgent(id="browser", name="Browser", description="opens one")
CONSOLE = s.AuthMethodTerminal(id="console", name="Console", args=("login",), env={"KIND": "by hand"})

EVERYTHING = s.AgentCapabilities(
    load_session=True,
    mcp_capabilities=s.McpCapabilities(acp=True),
    session_capabilities=s.SessionCapabilities(
        list=s.SessionListCapabilities(),
        delete=s.SessionDeleteCapabilities(),
        resume=s.SessionResumeCapabilities(),
        close=s.SessionCloseCapabilities(),
        fork=s.SessionForkCapabilities(),
    ),
)


async def answers(turn: Turn) -> None:
    turn.say("done")


class LoginAgent(ScriptedAgent):
    """Refuses these methods until it is logged in."""

    def __init__(self, *refuses: str, script: Script = answers) -> None:
        super().__init__([script], capabilities=EVERYTHING)
        self.modes = s.SessionModeState(
            current_mode_id="ask",
            available_modes=(s.SessionMode(id="ask", name="Ask"), s.SessionMode(id="code", name="Code")),
        )
        self.methods: tuple[s.AuthMethod, ...] = (BROWSER, CONSOLE)
        self.refuses: Collection[str] = refuses
        self.logged_in = False
        self.calls: list[str] = []
        """The methods that were called, refused or not, and the logins."""
        self.refused = 0
        self.has_refused = anyio.Condition()
        self.may_answer = anyio.Event()
        """Whether `authenticate` may answer."""
        self.may_answer.set()
        self.login_began = anyio.Event()
        self.abandoned = anyio.Event()
        """Whether the client has given an `authenticate` up."""
        self.error: RpcError | None = None
        self.useless = False

    async def initialize(self, request: s.InitializeRequest, /) -> s.InitializeResponse:
        response = await super().initialize(request)
        return s.InitializeResponse(
            protocol_version=1,
            agent_capabilities=response.agent_capabilities,
            auth_methods=self.methods,
        )

    async def authenticate(self, request: s.AuthenticateRequest, /) -> s.AuthenticateResponse:
        self.calls.append(request.method_id)
        self.login_began.set()
        try:
            await self.may_answer.wait()
        except anyio.get_cancelled_exc_class():
            self.abandoned.set()
            raise
        if self.error is not None:
            raise self.error
        self.logged_in = not self.useless
        return s.AuthenticateResponse()

    async def gate(self, method: str) -> None:
        """Refuse a call that is to be refused."""
        self.calls.append(method)
        if method in self.refuses and not self.logged_in:
            async with self.has_refused:
                self.refused += 1
                self.has_refused.notify_all()
            raise RpcError(AUTH_REQUIRED, "Authentication required")

    async def wait_refused(self, times: int) -> None:
        async with self.has_refused:
            while self.refused < times:
                await self.has_refused.wait()

    async def new_session(self, request: s.NewSessionRequest, /) -> s.NewSessionResponse:
        await self.gate("session/new")
        return await super().new_session(request)

    async def load_session(self, request: s.LoadSessionRequest, /) -> s.LoadSessionResponse:
        await self.gate("session/load")
        return await super().load_session(request)

    async def resume_session(self, request: s.ResumeSessionRequest, /) -> s.ResumeSessionResponse:
        await self.gate("session/resume")
        return await super().resume_session(request)

    async def fork_session(self, request: s.ForkSessionRequest, /) -> s.ForkSessionResponse:
        await self.gate("session/fork")
        return await super().fork_session(request)

    async def close_session(self, request: s.CloseSessionRequest, /) -> s.CloseSessionResponse:
        await self.gate("session/close")
        return await super().close_session(request)

    async def list_sessions(self, request: s.ListSessionsRequest, /) -> s.ListSessionsResponse:
        await self.gate("session/list")
        return await super().list_sessions(request)

    async def delete_session(self, request: s.DeleteSessionRequest, /) -> s.DeleteSessionResponse:
        await self.gate("session/delete")
        return await super().delete_session(request)

    async def set_session_mode(self, request: s.SetSessionModeRequest, /) -> s.SetSessionModeResponse:
        await self.gate("session/set_mode")
        return await super().set_session_mode(request)

    async def set_session_config_option(
        self, request: s.SetSessionConfigOptionRequest, /
    ) -> s.SetSessionConfigOptionResponse:
        await self.gate("session/set_config_option")
        return await super().set_session_config_option(request)

    async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
        await self.gate("session/prompt")
        return await super().prompt(request)


@asynccontextmanager
async def opened(agent: LoginAgent, **options: Any) -> AsyncGenerator[Agent]:
    with anyio.fail_after(10):
        async with scripted(agent=agent, **options) as running:
            yield running
