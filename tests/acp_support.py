"""The other end of a connection, written out message by message, and a handler that remembers."""

from __future__ import annotations

import json
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import anyio

from thinkwell_acp import ClientHandler, MemoryTransport, connect, memory_transport_pair
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

    import msgspec
    from anyio.abc import TaskGroup

    from thinkwell_acp import AcpError, Client

T = TypeVar("T")
R = TypeVar("R")
Json: TypeAlias = dict[str, Any]

LIMIT = 30
"""Seconds after which a test that waits has failed."""


def text_of(update: s.SessionNotification) -> str:
    """The text of a text chunk."""
    chunk = update.update
    assert isinstance(chunk, s.AgentMessageChunk)
    assert isinstance(chunk.content, s.TextContent)
    return chunk.content.text


def chunk(text: str, session: str = "s1") -> Json:
    """A message that carries a piece of text."""
    content = {"type": "text", "text": text}
    return notification(
        "session/update",
        {"sessionId": session, "update": {"sessionUpdate": "agent_message_chunk", "content": content}},
    )


def request(id_: object, method: str, params: object) -> Json:
    """A request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def notification(method: str, params: object) -> Json:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(id_: object, value: object) -> Json:
    """An answer."""
    return {"jsonrpc": "2.0", "id": id_, "result": value}


def failure(id_: object, code: int, message: str = "no", data: object = None) -> Json:
    """An answer that is an error."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message, "data": data}}


def permission(id_: object, session: str = "s1") -> Json:
    """A request for permission, with one option of each of two kinds."""
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    call = {"toolCallId": "c1", "title": "rm"}
    return request(
        id_, "session/request_permission", {"sessionId": session, "toolCall": call, "options": options}
    )


def to_bytes(*messages: Json) -> bytes:
    """Messages as lines."""
    return b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages)


REQUESTS: tuple[s.Model, ...] = (
    s.AuthenticateRequest(method_id="key"),
    s.LogoutRequest(),
    s.ListProvidersRequest(),
    s.SetProviderRequest(provider_id="p", api_type="openai", base_url="http://x"),
    s.DisableProviderRequest(provider_id="p"),
    s.NewSessionRequest(cwd="/w", mcp_servers=()),
    s.LoadSessionRequest(session_id="s1", cwd="/w", mcp_servers=()),
    s.ResumeSessionRequest(session_id="s1", cwd="/w"),
    s.ForkSessionRequest(session_id="s1", cwd="/w"),
    s.CloseSessionRequest(session_id="s1"),
    s.ListSessionsRequest(),
    s.DeleteSessionRequest(session_id="s1"),
    s.SetSessionModeRequest(session_id="s1", mode_id="m"),
    s.SetSessionModelRequest(session_id="s1", model_id="m"),
    s.SetSessionConfigOptionRequest(session_id="s1", config_id="o", value="v"),
    s.PromptRequest(
        session_id="s1", prompt=(s.TextContent(text="t"), s.ResourceLink(name="n", uri="file:///t"))
    ),
    s.MessageMcpRequest(connection_id="c", method="ping"),
)
"""A request for each method of agents."""


def method_of(request: s.Model) -> str:
    """The method that a request calls."""
    return next(method.name for method in s.METHODS if method.params is type(request))


class Wire:
    """The other end: writes what it is told to, and reads one message at a time."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self._buffer = b""
        self._lines: deque[bytes] = deque()

    async def send(self, *messages: Json) -> None:
        """Send messages in one write."""
        await self.transport.send(to_bytes(*messages))

    async def read(self) -> Json:
        """Return the next message."""
        while not self._lines:
            *lines, self._buffer = (self._buffer + await self.transport.receive()).split(b"\n")
            self._lines.extend(lines)
        message: Json = json.loads(self._lines.popleft())
        return message

    async def expect(self, method: str) -> Json:
        """Return the next message, which is a call of a method."""
        message = await self.read()
        assert message.get("method") == method, message
        return message

    async def rest(self) -> list[Json]:
        """Close the sending half's view of the world: return what is still to be read, up to the end."""
        messages: list[Json] = []
        while True:
            try:
                messages.append(await self.read())
            except anyio.EndOfStream:
                return messages


class Call(Generic[T]):
    """A call that runs in a task."""

    def __init__(self, tasks: TaskGroup, function: Callable[[], Awaitable[T]]) -> None:
        self._function = function
        self._ended = anyio.Event()
        self._values: list[T] = []
        self._error: Exception | None = None
        self.scope = anyio.CancelScope()
        tasks.start_soon(self._run)

    async def _run(self) -> None:
        try:
            with self.scope:
                self._values.append(await self._function())
        except Exception as exc:
            self._error = exc
        finally:
            self._ended.set()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    async def wait(self) -> T:
        """Return what it returned, or raise what it raised."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._values[0]

    async def wait_ended(self) -> None:
        """Wait until it has ended, however."""
        await self._ended.wait()


class Recorder(ClientHandler):
    """Remembers what it is told, and answers permissions when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Sequence[s.SessionNotification]] = []
        self.reports: list[Any] = []
        self.extensions: list[tuple[str, s.JsonValue]] = []
        self.completed: list[str] = []
        self.reasons: list[AcpError] = []
        self.asked: list[s.RequestPermissionRequest | s.CreateElicitationRequest] = []
        self.interrupted = 0
        self.answer = anyio.Event()
        self.option = "yes"
        self._changed = anyio.Event()

    @property
    def updates(self) -> list[s.SessionNotification]:
        """All updates, in order."""
        return [update for batch in self.batches for update in batch]

    @property
    def texts(self) -> list[str]:
        """The text of all updates."""
        return [text_of(update) for update in self.updates]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds that changes with what comes in."""
        while not condition():
            await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        self.batches.append(batch)
        self._change()

    def malformed(self, report: Any, /) -> None:
        super().malformed(report)
        self.reports.append(report)
        self._change()

    def ext_notification(self, method: str, params: s.JsonValue, /) -> None:
        self.extensions.append((method, params))
        self._change()

    def complete_elicitation(self, notification: s.CompleteElicitationNotification, /) -> None:
        self.completed.append(notification.elicitation_id)
        self._change()

    def closed(self, reason: AcpError, /) -> None:
        self.reasons.append(reason)
        self._change()

    async def request_permission(self, request: s.RequestPermissionRequest, /) -> s.RequestPermissionResponse:
        await self._asked(request)
        return s.RequestPermissionResponse(outcome=s.SelectedPermissionOutcome(option_id=self.option))

    async def create_elicitation(self, request: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        await self._asked(request)
        return s.CreateElicitationResponse(action="decline")

    async def _asked(self, question: s.RequestPermissionRequest | s.CreateElicitationRequest) -> None:
        self.asked.append(question)
        self._change()
        try:
            await self.answer.wait()
        except BaseException:
            self.interrupted += 1
            raise


class Talk(Generic[T]):
    """A client that talks to a `Wire`."""

    def __init__(self, client: Client, wire: Wire, handler: T, tasks: TaskGroup) -> None:
        self.client = client
        self.wire = wire
        self.handler = handler
        self._tasks = tasks

    def start(self, function: Callable[[], Awaitable[R]]) -> Call[R]:
        """Call something in a task."""
        return Call(self._tasks, function)

    async def initialize(self, agent: Json | None = None, client: s.ClientCapabilities | None = None) -> Json:
        """Run the handshake; the agent says `agent` of itself. Return the request as it was on the wire."""
        ask = s.InitializeRequest(protocol_version=1, client_capabilities=client or s.ClientCapabilities())
        call = Call(self._tasks, lambda: self.client.initialize(ask))
        message = await self.wire.expect("initialize")
        await self.wire.send(result(message["id"], {"protocolVersion": 1, **(agent or {})}))
        await call.wait()
        return message

    def prompt(self, text: str = "hi", session: str = "s1") -> Call[s.PromptResponse]:
        """Start a turn."""
        ask = s.PromptRequest(session_id=session, prompt=(s.TextContent(text=text),))
        return Call(self._tasks, lambda: self.client.prompt(ask))


H = TypeVar("H", bound=ClientHandler)


@asynccontextmanager
async def talk(handler: H, *, max_line: int = 64 * 1024 * 1024) -> AsyncGenerator[Talk[H]]:
    """A client with a handler, connected to a `Wire`."""
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as tasks:
            async with connect(ours, handler, max_line=max_line) as client:
                yield Talk(client, Wire(theirs), handler, tasks)
            tasks.cancel_scope.cancel()


class Everything(ClientHandler):
    """Serves all that an agent may ask."""

    def __init__(self) -> None:
        self.notes: list[object] = []
        self.requests: list[s.Model] = []
        """Those about files and terminals."""

    async def create_elicitation(self, request: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        return s.CreateElicitationResponse(action="accept", content={"a": 1})

    def complete_elicitation(self, notification: s.CompleteElicitationNotification, /) -> None:
        self.notes.append(notification)

    def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
        self.notes.append(notification)

    def ext_notification(self, method: str, params: s.JsonValue, /) -> None:
        self.notes.append((method, params))

    async def ext_request(self, method: str, params: s.JsonValue, /) -> s.JsonValue:
        return [method, params]

    async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
        self.requests.append(request)
        return s.ReadTextFileResponse(content=request.path)

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        self.requests.append(request)
        return s.WriteTextFileResponse()

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        self.requests.append(request)
        return s.CreateTerminalResponse(terminal_id=request.command)

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        self.requests.append(request)
        return s.TerminalOutputResponse(output="o", truncated=True)

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest, /
    ) -> s.WaitForTerminalExitResponse:
        self.requests.append(request)
        return s.WaitForTerminalExitResponse(exit_code=3)

    async def kill_terminal(self, request: s.KillTerminalRequest, /) -> s.KillTerminalResponse:
        self.requests.append(request)
        return s.KillTerminalResponse()

    async def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:
        self.requests.append(request)
        return s.ReleaseTerminalResponse()

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        return s.ConnectMcpResponse(connection_id=request.server_id)

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> s.JsonValue:
        return {"inner": request.method}

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> s.DisconnectMcpResponse:
        return s.DisconnectMcpResponse()


class Log:
    """A handler that writes down everything, in order."""

    def __init__(self) -> None:
        self.entries: list[object] = []
        self.serve: Callable[[str], Coroutine[object, object, object]] | None = None
        self.fail_on: str | None = None

    def note(self, kind: str, entry: object) -> None:
        if kind == self.fail_on:
            raise ValueError(f"{kind} fails")
        self.entries.append(entry)

    def updates(self, batch: list[s.SessionNotification], /) -> None:
        self.note("updates", [text_of(update) for update in batch])

    def arrived(self, request: Any, /) -> None:
        self.note("arrived", f"arrived {request.method}")

    async def request(self, id: int | str | None, method: str, params: msgspec.Raw, /) -> object:  # noqa: A002
        del id, params
        self.note("request", f"request {method}")
        return {} if self.serve is None else await self.serve(method)

    def notification(self, method: str, params: msgspec.Raw, /) -> None:
        del params
        self.note("notification", method)

    def malformed(self, report: Any, /) -> None:
        self.note("malformed", report.reason)

    def closed(self, reason: AcpError, /) -> None:
        self.note("closed", reason)


class Faulty(MemoryTransport):
    """A transport that fails in its own way."""

    def __init__(self, *, on_send: Exception | None = None, on_receive: Exception | None = None) -> None:
        one, _ = memory_transport_pair()
        super().__init__(one._incoming, one._outgoing)
        self.on_send = on_send
        self.on_receive = on_receive
        self.closed = False

    async def send(self, item: bytes, /) -> None:
        if self.on_send is not None:
            raise self.on_send
        await super().send(item)

    async def receive(self) -> bytes:
        if self.on_receive is not None:
            raise self.on_receive
        return await super().receive()

    async def aclose(self) -> None:
        self.closed = True
        await super().aclose()
