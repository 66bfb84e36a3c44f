"""The client that Letta publishes for Python, unmodified and strict, against real servers on the loopback."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import httpx
import pytest
from letta_stage import allowed, hello, tool_done, tool_start
from real_servers import backend_of, listening
from web_stage import scripted_agent

from thinkwell.web import Access, RunServer, web_app
from thinkwell_acp import RpcError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from letta_client import AsyncLetta
    from real_servers import ServerKind
    from scripted import Turn

# The client leaves generators behind when it has read the end, of which trio warns.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Async generator '(letta_client|httpx|httpcore)[.]:ResourceWarning"
)

TOKEN = "a-token-for-ada-0123456789"


@pytest.fixture
def anyio_backend(kind: ServerKind) -> str:
    return backend_of(kind)


async def work(turn: Turn) -> None:
    """Everything that a run tells."""
    turn.think("Let me ")
    turn.think("see.")
    tool_start(turn, raw_input={"path": "a.py"})
    tool_done(turn)
    outcome = await allowed(turn, "t2")
    turn.say(f"They said {outcome}")
    turn.say(".")


@asynccontextmanager
async def serving(kind: ServerKind, *scripts: Any) -> AsyncGenerator[tuple[str, RunServer, Any]]:
    """Serve an agent, with the guard before it. Yield its address, its server, and its other side."""
    agent, handler = scripted_agent(*scripts)
    server = RunServer({"scripted": agent})
    async with listening(web_app(server, access=Access({TOKEN: "ada"})), kind) as at:
        yield at.url, server, handler


@pytest.fixture
def letta() -> Any:
    """The client's package, which takes a second to import."""
    return import_module("letta_client")


def asynchronous(url: str, *, token: str = TOKEN, **options: Any) -> AsyncLetta:
    letta = import_module("letta_client")
    options.setdefault("http_client", letta.DefaultAsyncHttpxClient(base_url=url, verify=False))
    client: AsyncLetta = letta.AsyncLetta(
        base_url=url, api_key=token, _strict_response_validation=True, **options
    )
    return client


def kinds(frames: list[Any]) -> list[str]:
    return [frame.message_type for frame in frames if frame.message_type != "ping"]


ALL = [
    "reasoning_message",
    "tool_call_message",
    "tool_return_message",
    "tool_call_message",
    "approval_request_message",
    "stop_reason",
    "usage_statistics",
]


@pytest.mark.parametrize("tokens", [False, True])
async def test_a_conversation(kind: ServerKind, tokens: bool) -> None:
    async with serving(kind, work) as (url, _, _), asynchronous(url) as client:
        agent = await client.agents.create(
            name="Ada", model="openai/gpt-5", embedding="openai/text-embedding-3-small", tags=["mine"]
        )
        stream = await client.agents.messages.create(
            agent.id, input="Go.", streaming=True, stream_tokens=tokens, background=True
        )
        frames: list[Any] = [frame async for frame in stream]
        assert [k for n, k in enumerate(kinds(frames)) if k not in kinds(frames)[:n] or not tokens] == (
            list(dict.fromkeys(ALL)) if tokens else ALL
        )
        run_id = frames[0].run_id
        request: Any = next(f for f in frames if f.message_type == "approval_request_message")
        state = await client.agents.retrieve(agent.id)
        assert state.pending_approval is not None
        assert state.pending_approval.id == request.id

        decision: Any = {
            "type": "approval",
            "approvals": [
                {"type": "approval", "tool_call_id": request.tool_call.tool_call_id, "approve": True}
            ],
        }
        stream = await client.agents.messages.create(
            agent.id, messages=[decision], streaming=True, stream_tokens=tokens
        )
        rest = [frame async for frame in stream]
        said = [frame.content for frame in rest if frame.message_type == "assistant_message"]
        assert said == (["They said yes", "."] if tokens else ["They said yes."])
        assert [f.stop_reason for f in rest if f.message_type == "stop_reason"] == ["end_turn"]

        resumed = await client.runs.messages.stream(run_id, starting_after=frames[1].seq_id)
        again = [frame async for frame in resumed]
        assert [f.model_dump() for f in again] == [f.model_dump() for f in frames[2:]]

        listed = [message async for message in client.agents.messages.list(agent.id, limit=2)]
        assert [message.message_type for message in reversed(listed)] == [
            "user_message",
            *ALL[:5],
            "approval_response_message",
            "assistant_message",
        ]
        runs = [run async for run in client.runs.list(agent_id=agent.id)]
        assert [(run.id, run.status, run.stop_reason) for run in runs] == [(run_id, "completed", "end_turn")]
        assert (await client.runs.retrieve(run_id)).agent_id == agent.id
        assert [known.id async for known in client.agents.list(tags=["mine"])] == [agent.id]
        assert (await client.runs.usage.retrieve(run_id)).total_tokens == 0
        assert [m.id async for m in client.runs.messages.list(run_id)] == [m.id for m in listed]


async def test_conversations(kind: ServerKind, letta: Any) -> None:
    async with serving(kind, hello) as (url, _, _), asynchronous(url) as client:
        agent = await client.agents.create()
        conversation = await client.conversations.create(agent_id=agent.id, summary="Tea")
        message: Any = {"role": "user", "content": "Go.", "otid": "o1"}
        stream = await client.conversations.messages.create(
            conversation.id, messages=[message], stream_tokens=True, background=True
        )
        frames = [frame async for frame in stream]
        assert kinds(frames)[-2:] == ["stop_reason", "usage_statistics"]
        stream = await client.conversations.messages.stream(conversation.id, otid="o1", starting_after=2)
        assert [f.seq_id async for f in stream if f.message_type == "assistant_message"] == [4, 5]
        listed = [m.message_type async for m in client.conversations.messages.list(conversation.id)]
        assert listed == ["assistant_message", "reasoning_message", "user_message"]
        assert (await client.conversations.retrieve(conversation.id)).summary == "Tea"
        await client.conversations.update(conversation.id, summary="Coffee")
        assert [c.summary for c in await client.conversations.list(agent_id=agent.id)] == ["Coffee"]
        with pytest.raises(letta.ConflictError, match="No active runs to cancel"):
            await client.conversations.cancel(conversation.id)
        await client.conversations.delete(conversation.id)
        await client.agents.update(agent.id, name="Other")
        await client.agents.delete(agent.id)
        with pytest.raises(letta.NotFoundError):
            await client.agents.retrieve(agent.id)
        assert (await client.health()).status == "ok"
        assert [model.handle for model in await client.models.list()] == ["thinkwell/scripted"]


async def test_a_complete_answer(kind: ServerKind) -> None:
    async with serving(kind, hello) as (url, _, _), asynchronous(url) as client:
        agent = await client.agents.create()
        answer = await client.agents.messages.create(agent.id, input="Go.")
        assert [message.message_type for message in answer.messages] == [
            "reasoning_message",
            "assistant_message",
        ]
        assert answer.stop_reason.stop_reason == "end_turn"
        assert answer.usage.step_count == 1
        run = await client.agents.messages.create_async(agent.id, input="Go.")
        stream = await client.runs.messages.stream(run.id)
        assert "assistant_message" in [frame.message_type async for frame in stream]


async def test_the_blocking_client(kind: ServerKind, letta: Any) -> None:
    def talk(url: str) -> list[str]:
        http = letta.DefaultHttpxClient(base_url=url, verify=False)
        options = {"base_url": url, "api_key": TOKEN, "http_client": http}
        with letta.Letta(**options, _strict_response_validation=True) as client:
            agent = client.agents.create(name="Blocking")
            seen: list[str] = []
            with client.agents.messages.create(agent.id, input="Go.", streaming=True) as stream:
                seen += [str(frame.message_type) for frame in stream]
            for message in client.agents.messages.list(agent.id, limit=1):
                seen.append(str(message.message_type))
            return seen

    async with serving(kind, hello) as (url, _, _):
        assert await anyio.to_thread.run_sync(talk, url) == [
            "ping",
            "reasoning_message",
            "assistant_message",
            "stop_reason",
            "usage_statistics",
            "assistant_message",
            "reasoning_message",
            "user_message",
        ]


async def test_an_error_in_the_middle_is_raised(kind: ServerKind, letta: Any) -> None:
    async def fails(turn: Turn) -> None:
        turn.say("I be")
        raise RpcError(-32603, "no")

    async with serving(kind, fails) as (url, _, handler), asynchronous(url) as client:
        agent = await client.agents.create()
        stream = await client.agents.messages.create(agent.id, input="Go.", streaming=True)
        seen: list[Any] = []

        async def read() -> None:
            async for frame in stream:
                seen.append(frame)

        with pytest.raises(letta.APIStatusError) as raised:
            await read()
        assert kinds(seen) == ["assistant_message", "stop_reason"]
        body: Any = raised.value.body
        assert body["error_type"] == "agent_reported"
        with pytest.raises(letta.InternalServerError, match="answered with an error"):
            await client.agents.messages.create(agent.id, input="Go.")
        assert len(handler.sent.prompts) == 2  # and not four times


class Counting(httpx.AsyncHTTPTransport):
    """Counts requests, and cuts some of them off when they were answered."""

    def __init__(self, cut: Callable[[httpx.Request, int], bool]) -> None:
        super().__init__(verify=False)
        self.posts = 0
        self._cut = cut

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.posts += request.method == "POST"
        response = await super().handle_async_request(request)
        if request.method == "POST" and self._cut(request, self.posts):
            await response.aclose()
            raise httpx.ReadError("the connection is lost")
        return response


async def test_a_connection_that_is_lost_runs_nothing_twice(kind: ServerKind) -> None:
    transport = Counting(lambda request, number: number in (2, 3))  # the first one makes the agent
    async with serving(kind, hello) as (url, _, handler):
        http = httpx.AsyncClient(base_url=url, transport=transport)
        async with asynchronous(url, http_client=http, max_retries=3) as client:
            agent = await client.agents.create()
            message: Any = {"role": "user", "content": "Go.", "otid": "o1"}
            stream = await client.agents.messages.create(
                agent.id, messages=[message], streaming=True, background=True
            )
            assert kinds([frame async for frame in stream])[-1] == "usage_statistics"
        assert transport.posts == 4
        assert len(handler.sent.prompts) == 1


async def test_a_conflict_is_not_tried_again(kind: ServerKind, letta: Any) -> None:
    transport = Counting(lambda request, number: False)
    async with serving(kind, work) as (url, _, _):
        http = httpx.AsyncClient(base_url=url, transport=transport)
        async with asynchronous(url, http_client=http) as client:
            agent = await client.agents.create()
            await client.agents.messages.create(agent.id, input="Go.")
            with pytest.raises(letta.ConflictError, match="waiting for approval"):
                await client.agents.messages.create(agent.id, input="And now?")
            assert transport.posts == 3
            told = await client.agents.messages.cancel(agent.id)
            assert list(told.values()) == ["cancelled"]
            nothing: Any = {"type": "approval", "approve": True}
            with pytest.raises(letta.BadRequestError, match="No tool call"):
                await client.agents.messages.create(agent.id, messages=[nothing])
            with pytest.raises(letta.UnprocessableEntityError):
                await client.agents.messages.create(agent.id, messages=[])


async def test_an_unknown_token_is_refused(kind: ServerKind, letta: Any) -> None:
    async with (
        serving(kind, hello) as (url, _, _),
        asynchronous(url, token="a-token-of-nobody-000000") as client,
    ):
        with pytest.raises(letta.AuthenticationError):
            await client.agents.create()


async def test_a_tool_of_the_clients(kind: ServerKind) -> None:
    async def calls(turn: Turn) -> None:
        result = await turn.call("add", {"a": 1, "b": 2, "context": "not what it seems"})
        turn.say(result["content"][0]["text"])

    tool: Any = {
        "name": "add",
        "description": "Add two numbers",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    }
    async with serving(kind, calls) as (url, _, _), asynchronous(url) as client:
        agent = await client.agents.create()
        answer: Any = await client.agents.messages.create(agent.id, input="Add.", client_tools=[tool])
        call = answer.messages[-1].tool_call
        arguments = json.loads(call.arguments)
        assert (call.name, arguments["context"]) == ("add", "not what it seems")
        text = str(arguments["a"] + arguments["b"])
        returned: Any = {
            "type": "tool_return",
            "tool_returns": [
                {"type": "tool", "tool_call_id": call.tool_call_id, "tool_return": text, "status": "success"}
            ],
        }
        answer = await client.agents.messages.create(agent.id, messages=[returned], client_tools=[tool])
        assert answer.messages[-1].content == "3"
