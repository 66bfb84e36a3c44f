"""An agent in memory that wants a login before it does what it is told to refuse."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from msgspec.structs import replace
from scripted import Played, Proceed, Script, Turn, scripted

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


GATED = tuple(
    f"session/{what}"
    for what in (
        "new",
        "load",
        "resume",
        "fork",
        "close",
        "list",
        "delete",
        "set_mode",
        "set_config_option",
        "prompt",
    )
)


class LoginAgent(Played):
    """Refuses these methods until it is logged in."""

    def __init__(self, *refuses: str, script: Script = answers) -> None:
        gates: dict[str, Any] = {method: partial(self.gate, method) for method in GATED}
        gates["authenticate"] = self.authenticate
        super().__init__([script], capabilities=EVERYTHING, answers=gates)
        self.modes = s.SessionModeState(
            current_mode_id="ask",
            available_modes=(s.SessionMode(id="ask", name="Ask"), s.SessionMode(id="code", name="Code")),
        )
        self.methods: tuple[s.AuthMethod, ...] = (BROWSER, CONSOLE)
        self.meta: dict[str, Any] | None = None
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

    async def initialize(self, request: Any, proceed: Proceed) -> Any:
        said = await super().initialize(request, proceed)
        return replace(said, auth_methods=self.methods, agent_info=None, meta=self.meta)

    async def authenticate(self, request: s.AuthenticateRequest, _proceed: Proceed) -> s.AuthenticateResponse:
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

    async def gate(self, method: str, request: object, proceed: Proceed) -> object:
        """Refuse a call that is to be refused."""
        self.calls.append(method)
        if method in self.refuses and not self.logged_in:
            async with self.has_refused:
                self.refused += 1
                self.has_refused.notify_all()
            raise RpcError(AUTH_REQUIRED, "Authentication required")
        return await proceed(request)

    async def wait_refused(self, times: int) -> None:
        async with self.has_refused:
            while self.refused < times:
                await self.has_refused.wait()


@asynccontextmanager
async def opened(agent: LoginAgent, **options: Any) -> AsyncGenerator[Agent]:
    with anyio.fail_after(30):
        async with scripted(agent=agent, **options) as running:
            yield running
