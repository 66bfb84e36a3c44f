"""What handlers give, as a program gets it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from lines.program import Program, played

from thinkwell._lines._names import RESPOND_METHOD
from thinkwell._lines._transport import LineTransport
from thinkwell.listen import Handlers
from thinkwell_acp import ClientHandler, ConnectionBroken, RpcError, connect, memory_transport_pair
from thinkwell_acp import schema as s
from thinkwell_acp._tasks import background_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent
    from thinkwell_acp import Client

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def listening(handlers: Handlers) -> AsyncGenerator[tuple[Agent, Program]]:
    """Begin a listen, which is over when a result was said."""
    async with played() as (agent, program), anyio.create_task_group() as tasks:

        async def listen() -> None:
            assert await agent.think().text("Go").listen(handlers) == "done"

        tasks.start_soon(listen)
        assert await program.hear() == "Go"
        yield agent, program


async def nothing_more(agent: Agent, program: Program) -> None:
    """Check that a program was told nothing else before its next prompt."""
    await program.say("result", text="done")
    stream = agent.think().text("the next").stream()
    assert await program.hear() == "the next"
    await program.say("result")
    await stream.wait()


@pytest.mark.parametrize("kind", ["question", "approval", "progress", "own \u00e4"])
@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("text", '"text"'),
        ("\u00e4 \u2028\n", '"\u00e4 \u2028\\n"'),
        (True, "true"),
        (0, "0"),
        (2.0, "2.0"),
        ([1, {"a": None}], '[1,{"a":null}]'),
    ],
)
async def test_a_value_is_written_as_it_is(kind: str, value: object, written: str) -> None:
    handlers = Handlers()

    @handlers.on(kind)
    async def answer(_: dict[str, object]) -> object:
        return value

    async with listening(handlers) as (agent, program):
        start = f'{{"type":"response","in_reply_to":"{kind}","value":{written}'
        await program.say(kind, text="?")
        assert await program.hear() == start + "}"
        await program.say(kind, text="?!", id={"n": [1]})
        assert await program.hear() == start + ',"id":{"n":[1]}}'
        await program.say(kind, text="?!?", id=None)
        assert await program.hear() == start + ',"id":null}'
        await nothing_more(agent, program)


@pytest.mark.parametrize("kind", ["question", "approval", "progress"])
async def test_nothing_is_written_as_nothing(kind: str) -> None:
    handlers = Handlers()
    seen: list[object] = []

    @handlers.on(kind)
    async def answer(message: dict[str, object]) -> object:
        seen.append(message["text"])
        return "an answer" if message["text"] == "third" else None

    async with listening(handlers) as (agent, program):
        for text in ("first", "second", "third"):
            await program.say(kind, text=text)
        assert (await program.hear_json())["value"] == "an answer"
        assert seen == ["first", "second", "third"]
        await nothing_more(agent, program)


async def test_an_answer_to_the_prompt_before_is_none_to_the_next() -> None:
    handlers = Handlers()
    begun, gate = anyio.Event(), anyio.Event()

    @handlers.on("own")
    async def answer(_: dict[str, object]) -> str:
        begun.set()
        await gate.wait()
        return "late"

    async with listening(handlers) as (agent, program):
        await program.say("own")
        await begun.wait()
        await program.say("result", text="done")
        stream = agent.think().text("the next").stream()
        assert await program.hear() == "the next"
        gate.set()
        await anyio.wait_all_tasks_blocked()
        await program.say("result")
        await stream.wait()
        stream = agent.think().text("and the next").stream()
        assert await program.hear() == "and the next"
        await program.say("result")
        await stream.wait()


# Our side, alone


class Refuser(ClientHandler):
    """Refuses to answer."""

    async def create_elicitation(self, _: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        raise RpcError(7, "no")

    async def request_permission(self, _: s.RequestPermissionRequest, /) -> s.RequestPermissionResponse:
        raise RpcError(7, "no")


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[Client, Program]]:
    ours, theirs = memory_transport_pair()
    forms = s.ElicitationCapabilities(form=s.ElicitationFormCapabilities())
    with anyio.fail_after(20):
        async with background_tasks() as tasks:
            pipe = LineTransport(ours, tasks, name="program")
            async with connect(pipe, Refuser()) as client:
                await client.initialize(
                    s.InitializeRequest(
                        protocol_version=1, client_capabilities=s.ClientCapabilities(elicitation=forms)
                    )
                )
                yield client, Program(theirs)


async def session_of(client: Client) -> str:
    return (await client.new_session(s.NewSessionRequest(cwd="/", mcp_servers=()))).session_id


def prompt(session_id: str) -> s.PromptRequest:
    return s.PromptRequest(session_id=session_id, prompt=(s.TextContent(text="Go"),))


async def test_a_refusal_to_answer_is_an_answer() -> None:
    async with connected() as (client, program):
        await session_of(client)
        assert await program.ask("question", question="?") is None
        assert await program.ask("approval", description="?") is False


async def test_answers_reach_the_prompt_that_they_are_for_alone() -> None:
    async with connected() as (client, program), anyio.create_task_group() as tasks:
        one, two = await session_of(client), await session_of(client)

        def respond(session_id: str, value: Any) -> None:
            said = {"kind": "own", "value": value, "sessionId": session_id}
            client.connection.notify(RESPOND_METHOD, said)

        respond(one, "too early")
        tasks.start_soon(client.prompt, prompt(one))
        assert await program.hear() == "Go"
        respond(two, "of another session")
        respond(one, "in time")
        assert await program.hear_json() == {"type": "response", "in_reply_to": "own", "value": "in time"}
        await program.say("result")


# Prompts that come while the program works: our own side does not send them


async def test_prompts_wait_for_each_other() -> None:
    outcomes: dict[str, object] = {}
    sessions: list[str] = []

    async with connected() as (client, program), anyio.create_task_group() as tasks:

        async def run(session_id: str) -> None:
            try:
                outcomes[session_id] = (await client.prompt(prompt(session_id))).stop_reason
            except RpcError as exc:
                outcomes[session_id] = exc.message

        for _ in range(4):
            sessions.append(session_id := await session_of(client))
            tasks.start_soon(run, session_id)
            await anyio.wait_all_tasks_blocked()
        assert await program.hear() == "Go"
        client.cancel(sessions[2])
        await anyio.wait_all_tasks_blocked()
        assert outcomes == {sessions[2]: "cancelled"}
        await program.say("error", message="no")
        assert await program.hear() == "Go"
        await program.say("result")
        assert await program.hear() == "Go"
        client.cancel(sessions[3])
        with pytest.raises(anyio.EndOfStream):
            await program.hear()
    assert outcomes == dict(zip(sessions, ["no", "end_turn", "cancelled", "cancelled"], strict=True))


async def test_no_prompt_begins_when_the_program_is_being_ended() -> None:
    async with connected() as (client, program), anyio.create_task_group() as tasks:
        one, two = await session_of(client), await session_of(client)

        async def fail(session_id: str) -> None:
            with pytest.raises(ConnectionBroken, match="because a prompt was cancelled"):
                await client.prompt(prompt(session_id))

        tasks.start_soon(client.prompt, prompt(one))
        assert await program.hear() == "Go"
        tasks.start_soon(fail, two)
        await anyio.wait_all_tasks_blocked()
        client.cancel(one)
        with pytest.raises(anyio.EndOfStream):
            await program.hear()


@pytest.mark.parametrize(
    ("id_", "written"),
    [("1e2", "1e2"), (r'"\u0041"', r'"\u0041"'), ("-0", "-0"), ("[1, 2]", "[1,2]"), ("null", "null")],
)
@pytest.mark.parametrize("kind", ["question", "own", "progress"])
async def test_an_id_comes_back_as_it_was_written(id_: str, written: str, kind: str) -> None:
    handlers = Handlers()

    @handlers.on(kind)
    async def _(_message: object) -> str:
        return "yes"

    async with listening(handlers) as (agent, program):
        await program.write(f'{{"type":"{kind}","id": {id_} ,"x":1}}\n'.encode())
        start = f'{{"type":"response","in_reply_to":"{kind}","value":"yes","id":'
        assert await program.hear() == f"{start}{written}}}"
        await nothing_more(agent, program)
