"""The client's side: typed calls to an agent, and the rules that a client must follow."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from msgspec.structs import replace

from thinkwell_acp import schema as s
from thinkwell_acp._framing import MAX_LINE
from thinkwell_acp._gates import check_call, need
from thinkwell_acp._recent import Recent
from thinkwell_acp._side import CommonHandler, Side
from thinkwell_acp.connection import open_connection
from thinkwell_acp.errors import (
    AUTH_REQUIRED,
    INVALID_PARAMS,
    REQUEST_CANCELLED,
    AcpError,
    RpcError,
    VersionMismatch,
)
from thinkwell_acp.schema import DecodeError, decode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from thinkwell_acp._jsonrpc import RequestId
    from thinkwell_acp.connection import Connection, Outcome
    from thinkwell_acp.transport import Transport

__all__ = (
    "CANCELLED_KEPT",
    "CANCEL_DRAIN_TIMEOUT",
    "PROTOCOL_VERSION",
    "Client",
    "ClientHandler",
    "PromptOutcome",
    "connect",
)

PROTOCOL_VERSION = 1
"""The version of the protocol that this client speaks."""

CANCELLED_KEPT: Final = 1000
"""Sessions with a cancelled turn that are remembered: their requests before the next turn are answered as
cancelled."""

CANCEL_DRAIN_TIMEOUT = 10.0
"""Seconds that a cancelled `Client.prompt` waits for the turn's end. Agents were seen to take several."""

PromptOutcome: TypeAlias = s.PromptResponse | AcpError | DecodeError
"""How a turn ended."""

AgentQuestion: TypeAlias = s.RequestPermissionRequest | s.CreateElicitationRequest
"""A question of the agent."""

T = TypeVar("T")

_NO_LOGIN: Final = frozenset({"initialize", "authenticate", "logout", "session/close"})
"""Calls that never cause a login."""


class ClientHandler(CommonHandler):
    """Requests and notifications that a client may receive from an agent."""

    async def login_required(self) -> bool:
        """Log in, because the agent answered a call with `AUTH_REQUIRED`; return whether to retry the call.

        The call is retried once. This is not called for calls that log in or close, nor for
        `Client.start_prompt`, whose caller can do the same.
        """
        return False

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        """Handle session updates: all that were read together, in order."""

    async def request_permission(self, request: s.RequestPermissionRequest, /) -> s.RequestPermissionResponse:
        """Choose one of the offered options. The default rejects; without an option for that, it cancels."""
        for kind in ("reject_once", "reject_always"):
            for option in request.options:
                if option.kind == kind:
                    return s.RequestPermissionResponse(
                        outcome=s.SelectedPermissionOutcome(option_id=option.option_id)
                    )
        return s.RequestPermissionResponse(outcome=s.CancelledPermissionOutcome())

    async def create_elicitation(self, request: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        """Ask the user, by form or by URL."""
        raise RpcError.method_not_found("elicitation/create")

    def complete_elicitation(self, notification: s.CompleteElicitationNotification, /) -> None:
        """Handle that the purpose of an opened URL is done."""

    async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
        """Return a file's text."""
        raise RpcError.method_not_found("fs/read_text_file")

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        """Write a file's text."""
        raise RpcError.method_not_found("fs/write_text_file")

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        """Start a command and return its terminal's id at once."""
        raise RpcError.method_not_found("terminal/create")

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        """Return the output of a terminal."""
        raise RpcError.method_not_found("terminal/output")

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest, /
    ) -> s.WaitForTerminalExitResponse:
        """Wait for a terminal's command to end."""
        raise RpcError.method_not_found("terminal/wait_for_exit")

    async def kill_terminal(self, request: s.KillTerminalRequest, /) -> s.KillTerminalResponse:
        """Kill a terminal's command and keep its id."""
        raise RpcError.method_not_found("terminal/kill")

    async def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:
        """Kill a terminal's command and forget its id."""
        raise RpcError.method_not_found("terminal/release")

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        """Open an MCP session with a server that this client declared."""
        raise RpcError.method_not_found("mcp/connect")

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> s.DisconnectMcpResponse:
        """Close an MCP session."""
        raise RpcError.method_not_found("mcp/disconnect")


class Client(Side[ClientHandler]):
    """A connection to an agent. Made by `connect`.

    Calls with `heard` call it with the answer in its order among the updates: see `Side.call`.
    """

    requests: ClassVar[Mapping[str, str]] = {
        "session/request_permission": "request_permission",
        "elicitation/create": "create_elicitation",
        "fs/read_text_file": "read_text_file",
        "fs/write_text_file": "write_text_file",
        "terminal/create": "create_terminal",
        "terminal/output": "terminal_output",
        "terminal/wait_for_exit": "wait_for_terminal_exit",
        "terminal/kill": "kill_terminal",
        "terminal/release": "release_terminal",
        "mcp/connect": "connect_mcp",
        "mcp/message": "message_mcp",
        "mcp/disconnect": "disconnect_mcp",
    }
    notifications: ClassVar[Mapping[str, str]] = {
        "elicitation/complete": "complete_elicitation",
        "mcp/message": "notify_mcp",
    }

    def __init__(
        self, connection: Connection, handler: ClientHandler | Callable[[Client], ClientHandler]
    ) -> None:
        self._offered = s.ClientCapabilities()
        self._turns: dict[str, anyio.Event] = {}
        self._no_turn = anyio.Event()
        self._no_turn.set()
        self._cancelling = Recent(CANCELLED_KEPT)
        self.logins: int = 0
        """The number of successful calls of `authenticate`."""
        self.agent: s.InitializeResponse = s.InitializeResponse(protocol_version=PROTOCOL_VERSION)
        """The agent's description of itself; empty before `initialize`."""
        super().__init__(connection, handler)

    @property
    def capabilities(self) -> s.AgentCapabilities:
        """The agent's capabilities; empty before `initialize`."""
        return self.agent.agent_capabilities

    # Calls to the agent

    async def call(
        self, method: str, params: s.Model, result: type[T], heard: Callable[[T], None] | None = None
    ) -> T:
        """Send a request and return its typed result; see `Side.call`.

        If the agent answers with `AUTH_REQUIRED` and the handler logs in, the call is retried once.
        """
        attempt = partial(super().call, method, params, result, heard)
        return await (attempt() if method in _NO_LOGIN else self._with_login(attempt))

    async def _checked_call(
        self, method: str, params: s.Model, result: type[T], heard: Callable[[T], None] | None = None
    ) -> T:
        """Call a method, if the agent advertises everything that this needs.

        Raises:
            CapabilityMissing: It does not. Nothing was sent.
        """
        check_call(self.capabilities, method, params)
        return await self.call(method, params, result, heard)

    async def _with_login(self, attempt: Callable[[], Awaitable[T]]) -> T:
        logins = self.logins
        try:
            return await attempt()
        except RpcError as exc:
            if exc.code != AUTH_REQUIRED or not await self.login_since(logins):
                raise
        return await attempt()

    async def login_since(self, logins: int) -> bool:
        """Log in for a call that was refused without one; return whether to retry it.

        Args:
            logins: The value of `logins` when the call was sent: a later login makes another unnecessary.
        """
        return self.logins > logins or await self._handler.login_required()

    async def initialize(self, request: s.InitializeRequest | None = None) -> s.InitializeResponse:
        """Agree on the protocol version and receive the agent's capabilities. Must be the first call.

        Raises:
            VersionMismatch: The agent only speaks another version. Close the connection.
        """
        if request is None:
            request = s.InitializeRequest(
                protocol_version=PROTOCOL_VERSION, client_capabilities=s.ClientCapabilities()
            )
        self._offered = request.client_capabilities
        response = await self.call("initialize", request, s.InitializeResponse)
        if response.protocol_version != PROTOCOL_VERSION:
            raise VersionMismatch(request.protocol_version, response.protocol_version)
        self.agent = response
        return response

    async def authenticate(self, request: s.AuthenticateRequest) -> s.AuthenticateResponse:
        """Log in by an advertised method of type ``agent``.

        Raises:
            CapabilityMissing: The agent offers no such method, or it is one for a terminal, which must not
                be passed to `authenticate`.
        """
        methods = {m.id for m in self.agent.auth_methods if not isinstance(m, s.AuthMethodTerminal)}
        need(request.method_id in methods, f"authMethods[{request.method_id!r}]", "authenticate")
        response = await self.call("authenticate", request, s.AuthenticateResponse)
        self.logins += 1
        return response

    async def logout(self, request: s.LogoutRequest | None = None) -> s.LogoutResponse:
        """Log out, if ``auth.logout`` is advertised."""
        return await self._checked_call("logout", request or s.LogoutRequest(), s.LogoutResponse)

    async def list_providers(self, request: s.ListProvidersRequest | None = None) -> s.ListProvidersResponse:
        """Return the model services to choose from, if ``providers`` is advertised."""
        return await self._checked_call(
            "providers/list", request or s.ListProvidersRequest(), s.ListProvidersResponse
        )

    async def set_provider(self, request: s.SetProviderRequest) -> s.SetProviderResponse:
        """Set the address of a model service, if ``providers`` is advertised."""
        return await self._checked_call("providers/set", request, s.SetProviderResponse)

    async def disable_provider(self, request: s.DisableProviderRequest) -> s.DisableProviderResponse:
        """Disable a model service, if ``providers`` is advertised."""
        return await self._checked_call("providers/disable", request, s.DisableProviderResponse)

    async def new_session(
        self, request: s.NewSessionRequest, heard: Callable[[s.NewSessionResponse], None] | None = None
    ) -> s.NewSessionResponse:
        """Open a session."""
        return await self._checked_call("session/new", request, s.NewSessionResponse, heard)

    async def load_session(
        self, request: s.LoadSessionRequest, heard: Callable[[s.LoadSessionResponse], None] | None = None
    ) -> s.LoadSessionResponse:
        """Open an old session, if ``loadSession`` is advertised. Its history comes before the answer."""
        return await self._checked_call("session/load", request, s.LoadSessionResponse, heard)

    async def resume_session(
        self, request: s.ResumeSessionRequest, heard: Callable[[s.ResumeSessionResponse], None] | None = None
    ) -> s.ResumeSessionResponse:
        """Open an old session without its history, if ``sessionCapabilities.resume`` is advertised."""
        return await self._checked_call("session/resume", request, s.ResumeSessionResponse, heard)

    async def fork_session(
        self, request: s.ForkSessionRequest, heard: Callable[[s.ForkSessionResponse], None] | None = None
    ) -> s.ForkSessionResponse:
        """Open a session with another's history, if ``sessionCapabilities.fork`` is advertised."""
        return await self._checked_call("session/fork", request, s.ForkSessionResponse, heard)

    async def close_session(self, request: s.CloseSessionRequest) -> s.CloseSessionResponse:
        """Close a session and cancel its turn, if ``sessionCapabilities.close`` is advertised."""
        return await self._checked_call("session/close", request, s.CloseSessionResponse)

    async def list_sessions(self, request: s.ListSessionsRequest | None = None) -> s.ListSessionsResponse:
        """Return a page of sessions, if ``sessionCapabilities.list`` is advertised."""
        return await self._checked_call(
            "session/list", request or s.ListSessionsRequest(), s.ListSessionsResponse
        )

    async def delete_session(self, request: s.DeleteSessionRequest) -> s.DeleteSessionResponse:
        """Delete a session, if ``sessionCapabilities.delete`` is advertised."""
        return await self._checked_call("session/delete", request, s.DeleteSessionResponse)

    async def set_session_mode(
        self,
        request: s.SetSessionModeRequest,
        heard: Callable[[s.SetSessionModeResponse], None] | None = None,
    ) -> s.SetSessionModeResponse:
        """Change a session's mode; allowed while a turn runs."""
        return await self.call("session/set_mode", request, s.SetSessionModeResponse, heard)

    async def set_session_model(
        self,
        request: s.SetSessionModelRequest,
        heard: Callable[[s.SetSessionModelResponse], None] | None = None,
    ) -> s.SetSessionModelResponse:
        """Change a session's model, if the agent named `models`; allowed while a turn runs."""
        return await self.call("session/set_model", request, s.SetSessionModelResponse, heard)

    async def set_session_config_option(
        self,
        request: s.SetSessionConfigOptionRequest,
        heard: Callable[[s.SetSessionConfigOptionResponse], None] | None = None,
    ) -> s.SetSessionConfigOptionResponse:
        """Change an option of a session and return all of them; allowed while a turn runs."""
        return await self.call("session/set_config_option", request, s.SetSessionConfigOptionResponse, heard)

    # Turns

    async def prompt(self, request: s.PromptRequest) -> s.PromptResponse:
        """Run a turn, after the session's last turn has ended. After a login it is retried, as in `call`.

        Cancelling the call cancels the turn and waits for its end, at most `CANCEL_DRAIN_TIMEOUT`, so that
        the cancellation cannot affect the session's next turn.

        Raises:
            RpcError: The agent answered with an error.
            ConnectionClosed, ConnectionBroken: There will be no answer.
            CapabilityMissing: The prompt has a kind of content that the agent does not accept. Nothing was
                sent.
        """
        return await self._with_login(partial(self._prompt, request))

    async def _prompt(self, request: s.PromptRequest) -> s.PromptResponse:
        while (running := self._turns.get(request.session_id)) is not None:
            await running.wait()
        await checkpoint_if_cancelled()
        outcomes: list[PromptOutcome] = []
        self.start_prompt(request, outcomes.append)
        ended = self._turns.get(request.session_id, self._no_turn)
        try:
            await ended.wait()
        finally:
            if not outcomes:
                self.cancel(request.session_id)
                with anyio.move_on_after(CANCEL_DRAIN_TIMEOUT, shield=True):
                    await ended.wait()
        outcome = outcomes[0]
        if isinstance(outcome, s.PromptResponse):
            return outcome
        raise outcome

    def start_prompt(self, request: s.PromptRequest, settle: Callable[[PromptOutcome], None]) -> None:
        """Send a prompt; `settle` is called with the turn's outcome.

        It is called while messages are being read: after every update that was read before the answer has
        been handed over, and before any later one is.

        Raises:
            CapabilityMissing: The prompt has a kind of content that the agent does not accept. Nothing was
                sent.
            RuntimeError: A turn is running in this session.
        """
        check_call(self.capabilities, "session/prompt", request)
        session_id = request.session_id
        if session_id in self._turns:
            raise RuntimeError(f"a turn is running in session {session_id}")
        ended = self._turns[session_id] = anyio.Event()
        # Not at the turn's end: a question that was read just before it is served after it.
        self._cancelling.discard(session_id)

        def end(outcome: Outcome) -> None:
            del self._turns[session_id]
            ended.set()
            settle(_read_prompt_outcome(outcome))

        try:
            self.connection.call("session/prompt", request, end)
        except BaseException:  # it has no JSON form, so nothing was sent
            self._turns.pop(session_id, None)
            raise

    def cancel(self, session_id: str) -> None:
        """Cancel a session's turn. The turn ends when the agent answers its prompt.

        Every open question of the session is answered as cancelled now, and so is any that comes before the
        next turn.
        """
        self.connection.notify("session/cancel", s.CancelNotification(session_id=session_id))
        if session_id in self._turns:
            self._cancelling.add(session_id)
        self.cancel_questions(lambda question: question.session_id == session_id)

    def cancel_questions(self, concerns: Callable[[AgentQuestion], bool]) -> None:
        """Answer open questions as cancelled now, if `concerns` returns true for them."""
        for id_, served in list(self.connection.serving.items()):
            question = served.params
            if isinstance(question, AgentQuestion) and concerns(question):
                self.connection.answer(id_, _cancelled(question))

    # The agent's requests

    def updates(self, batch: list[s.SessionNotification], /) -> None:
        """Pass on session updates."""
        self._handler.session_updates(batch)

    async def serve(
        self,
        id: RequestId,  # noqa: A002 - the field's name
        method: str,
        params: s.Model,
        handle: Callable[..., object],
    ) -> object:
        """Serve a request of the agent, if it was offered."""
        self._check_offered(method, params)
        if isinstance(params, AgentQuestion) and params.session_id in self._cancelling:
            return _cancelled(params)
        answer = await super().serve(id, method, params, handle)
        if isinstance(params, s.RequestPermissionRequest):
            _check_option(params, answer)
        return answer

    def accept_elicitation(self) -> None:
        """Accept questions from now on, even from an agent that was not told that it may ask."""
        self._offered = replace(
            self._offered,
            elicitation=s.ElicitationCapabilities(
                form=s.ElicitationFormCapabilities(), url=s.ElicitationUrlCapabilities()
            ),
        )

    @property
    def offers_elicitation(self) -> bool:
        """Whether the agent was told that it may ask questions, or is answered anyway."""
        return self._offered.elicitation is not None

    def _check_offered(self, method: str, params: s.Model) -> None:
        """Refuse requests that were not advertised: agents send them (one for terminals, in session/new)."""
        gate = s.REQUESTS[method].gate
        if isinstance(params, s.CreateElicitationRequest):
            self._check_mode(params)
        elif gate is not None and gate.holder == "client" and not gate.is_open(self._offered):
            raise RpcError.method_not_found(method)

    def _check_mode(self, request: s.CreateElicitationRequest) -> None:
        modes = self._offered.elicitation or s.ElicitationCapabilities()
        match request:
            case s.ElicitationFormMode():
                offered = modes.form is not None
            case s.ElicitationUrlMode():
                offered = modes.url is not None
            case _:
                offered = False
        if not offered:
            raise RpcError(INVALID_PARAMS, "This client did not advertise this mode of elicitation")


def _read_prompt_outcome(outcome: Outcome) -> PromptOutcome:
    """Read a turn's outcome. A cancelled turn may be answered as a cancelled request (ACP, Cancellation)."""
    if isinstance(outcome, RpcError) and outcome.code == REQUEST_CANCELLED:
        return s.PromptResponse(stop_reason="cancelled")
    if isinstance(outcome, AcpError):
        return outcome
    try:
        return decode(s.PromptResponse, outcome)
    except DecodeError as exc:
        return exc


def _cancelled(question: AgentQuestion) -> s.Model:
    if isinstance(question, s.RequestPermissionRequest):
        return s.RequestPermissionResponse(outcome=s.CancelledPermissionOutcome())
    return s.CreateElicitationResponse(action="cancel")


def _check_option(request: s.RequestPermissionRequest, answer: object) -> None:
    if not isinstance(answer, s.RequestPermissionResponse):
        raise TypeError(f"a permission request was answered with {type(answer).__name__}")
    if isinstance(answer.outcome, s.SelectedPermissionOutcome):
        offered = [option.option_id for option in request.options]
        if answer.outcome.option_id not in offered:
            raise ValueError(f"option {answer.outcome.option_id!r} was not offered, only {offered} were")


@asynccontextmanager
async def connect(
    transport: Transport,
    handler: ClientHandler | Callable[[Client], ClientHandler] | None = None,
    *,
    max_line: int = MAX_LINE,
) -> AsyncGenerator[Client]:
    """Connect to an agent over a transport, which is closed at the end of the block.

    Args:
        transport: The transport to the agent, such as one of `stdio_transport`.
        handler: Serves the agent's requests, or a function that makes it from the client. The default rejects
            permissions and serves nothing else.
        max_line: The longest message accepted, in bytes.
    """
    client = partial(Client, handler=handler or ClientHandler())
    async with open_connection(transport, client, max_line=max_line) as connection:
        yield connection.handler
