"""A client of the bare protocol with MCP servers of its own, for the built-in agent to call."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from thinkwell import Agent
from thinkwell.builtin import BuiltinAgent
from thinkwell_acp import Client, ClientHandler, RpcError, connect, memory_transport_pair, serve_agent
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

OpenBuiltin: TypeAlias = Callable[..., AbstractAsyncContextManager[Agent]]
"""Opens the agent on a project."""

LIMIT = 200
"""Seconds, of virtual time too: more than any limit of the agent's."""


def answer(text: str = "fine", **fields: Any) -> dict[str, Any]:
    """Return what a tool answers."""
    return {"content": [{"type": "text", "text": text}, {"type": "image"}], **fields}


class ToolBox(ClientHandler):
    """A client with MCP servers.

    Args:
        pages: The names of the tools, page by page.
        lists: Whether it lists them.
        details: What it says of all of them.
        schemas: Of the arguments of some.
        answers: What some answer, call by call; the last one again and again.
    """

    def __init__(
        self,
        pages: Sequence[Sequence[str]] = ((),),
        *,
        lists: bool = True,
        details: Mapping[str, Any] | None = None,
        schemas: Mapping[str, Any] | None = None,
        answers: Mapping[str, Sequence[dict[str, Any]]] | None = None,
    ) -> None:
        self.pages = pages
        self.lists = lists
        self.details = details or {}
        self.schemas = schemas or {}
        self.answers = answers or {}
        self.updates: list[s.SessionUpdate] = []
        self.listed = 0
        self.relisted = anyio.Event()
        self.called: list[tuple[str, Any]] = []
        """The calls, by the names of the tools and with their arguments."""
        self.disconnected: list[str] = []
        self.refuses_disconnect = False

    def session_updates(self, batch: Sequence[s.SessionNotification], /) -> None:
        self.updates += [notification.update for notification in batch]

    async def connect_mcp(self, request: s.ConnectMcpRequest, /) -> s.ConnectMcpResponse:
        return s.ConnectMcpResponse(connection_id=secrets.token_hex(4))

    async def disconnect_mcp(self, request: s.DisconnectMcpRequest, /) -> s.DisconnectMcpResponse:
        self.disconnected.append(request.connection_id)
        if self.refuses_disconnect:
            raise RpcError.method_not_found("mcp/disconnect")
        return s.DisconnectMcpResponse()

    async def message_mcp(self, request: s.MessageMcpRequest, /) -> Any:
        match request.method:
            case "initialize":
                return {}
            case "tools/list" if self.lists:
                self.listed += 1
                if self.listed > len(self.pages):
                    self.relisted.set()
                page = int((request.params or {}).get("cursor", 0))
                more = {"nextCursor": str(page + 1)} if page + 1 < len(self.pages) else {}
                return {"tools": [self._tool(name) for name in self.pages[page]], **more}
            case "tools/call":
                assert request.params is not None
                return self._answered(request.params["name"], request.params["arguments"])
            case _:
                raise RpcError.method_not_found(request.method)

    def _tool(self, name: str) -> dict[str, Any]:
        schema = {"inputSchema": self.schemas[name]} if name in self.schemas else {}
        return {"name": name, **self.details, **schema}

    def _answered(self, name: str, arguments: Any) -> dict[str, Any]:
        if name == "gone":
            raise RpcError.method_not_found("gone")
        before = [called for called, _ in self.called].count(name)
        self.called.append((name, arguments))
        answers = self.answers.get(name, (answer(structuredContent={"result": 7}),))
        return answers[min(before, len(answers) - 1)]

    @property
    def thoughts(self) -> str:
        """What the agent has thought."""
        return self._said(s.AgentThoughtChunk)

    @property
    def messages(self) -> str:
        """What it has said."""
        return self._said(s.AgentMessageChunk)

    def _said(self, kind: type[s.AgentThoughtChunk | s.AgentMessageChunk]) -> str:
        chunks = [update for update in self.updates if isinstance(update, kind)]
        return "".join(chunk.content.text for chunk in chunks if isinstance(chunk.content, s.TextContent))

    @property
    def titles(self) -> list[str]:
        """What it has done, in order."""
        return [update.title for update in self.updates if isinstance(update, s.ToolCallStart)]

    def results(self) -> list[Any]:
        """Return what it has given to `return_result`."""
        return [arguments for name, arguments in self.called if name == "return_result"]


@asynccontextmanager
async def talking(handler: ClientHandler) -> AsyncGenerator[Client]:
    """Connect to the agent in memory."""
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(LIMIT):
        async with BuiltinAgent() as agent, serve_agent(theirs, agent), connect(ours, handler) as client:
            await client.initialize()
            yield client


def server(name: str = "box") -> s.McpServerAcp:
    """A server of the client's."""
    return s.McpServerAcp(name=name, server_id="1")


async def new_session(client: Client, project: Path, *servers: s.McpServer) -> str:
    """Open a session, and return its id."""
    request = s.NewSessionRequest(cwd=str(project), mcp_servers=servers)
    return (await client.new_session(request)).session_id


def text_prompt(session_id: str, text: str, *more: s.ContentBlock, **fields: Any) -> s.PromptRequest:
    """A prompt that begins with a text."""
    return s.PromptRequest(session_id=session_id, prompt=(s.TextContent(text=text), *more), **fields)


async def asked(
    project: Path, text: str = "Go", *more: s.ContentBlock, box: ToolBox | None = None
) -> ToolBox:
    """Let the agent answer a prompt in a folder, with the tools of a box; return the box."""
    box = box or ToolBox()
    async with talking(box) as client:
        session_id = await new_session(client, project, server())
        await client.prompt(text_prompt(session_id, text, *more))
    return box


async def filled(
    project: Path,
    schema: object,
    text: str = "How many lines?",
    *,
    schemas: Mapping[str, Any] | None = None,
    **answers: Sequence[dict[str, Any]],
) -> ToolBox:
    """Let the agent make values for a schema, of what is in a folder, for the tool `return_result`.

    Args:
        project: The folder.
        schema: Of the result.
        text: The question.
        schemas: Of other tools.
        answers: What tools answer, call by call, in the order in which they are there.
    """
    box = ToolBox(
        [[*(name for name in answers if name != "return_result"), "return_result"]],
        schemas={"return_result": schema, **(schemas or {})},
        answers=answers,
    )
    return await asked(project, f"{text}\n\nCall return_result.", box=box)
