"""What lines say, byte by byte; and lines as the protocol, for clients that are not ours.

Our own client sends one prompt after the other, so these cases speak the protocol themselves.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lines.program import LIMIT, Program

# Private: a parser without I/O, tested byte by byte, and the translation that no client but ours meets.
from thinkwell._lines._names import RESPOND_METHOD
from thinkwell._lines._transport import LineTransport
from thinkwell._lines.words import (
    Init,
    Prompt,
    Response,
    read_host_line,
    read_message,
    write_init,
    write_message,
    write_prompt,
    write_response,
)
from thinkwell_acp import ClientHandler, ConnectionBroken, RpcError, connect, memory_transport_pair
from thinkwell_acp import schema as s
from thinkwell_acp._tasks import background_tasks
from thinkwell_acp.errors import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell_acp import Client

pytestmark = pytest.mark.anyio

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)
TEXT = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"Do it", Prompt("Do it")),
        (rb"one\ntwo\rthree\\n", Prompt("one\ntwo\rthree\\\n")),
        (rb"C:\temp\x", Prompt(r"C:\temp\x")),
        (b"Do it\r", Prompt("Do it")),
        (b"caf\xe9", Prompt("caf\ufffd")),
        (b"\xef\xbb\xbfDo it", Prompt("Do it")),
        (b"42", Prompt("42")),
        (b'{"prompt":"one\\ntwo"}', Prompt("one\ntwo")),
        (b'{"prompt":"a\\\\nb","context":{"x":[1]}}', Prompt("a\\nb", {"x": [1]})),
        (b' { "prompt": "a", "context": null, "type": "other" } \r', Prompt("a")),
        (b'{"type":"init"}', Init({})),
        (b'{"type":"init","params":{"a":1}}', Init({"a": 1})),
        (b'{"type":"init","params":7}', Init(7)),
        (b'{"type":"response","in_reply_to":"question","value":"x"}', Response("question", "x")),
        (b'{"type":"response","in_reply_to":"own","value":[1],"id":null}', Response("own", [1], None)),
        (b'{"type":"response","in_reply_to":7,"prompt":"a"}', Response("", None)),
        (b'{"type":"response","in_reply_to":"a","value":NaN,"id":"\\ud800"}', Response("a", None, "\ufffd")),
    ],
)
def test_a_line_of_a_host(line: bytes, said: object) -> None:
    assert read_host_line(line) == said


@pytest.mark.parametrize("line", [b"", b"\r", b" \t", b"\xef\xbb\xbf", b"\xef\xbb\xbf \r"])
def test_blank_lines_say_nothing(line: bytes) -> None:
    assert read_host_line(line) is None
    assert read_message(line) is None


@pytest.mark.parametrize(
    ("line", "flaw"),
    [
        (b'{"prompt":7}', "no text under `prompt`"),
        (b'{"type":"cancel"}', "no text under `prompt`"),
        (b'{"prompt":"a"', "truncated|delimiter"),
        (b'{"prompt":"a","context":' + b"[" * 300 + b"]" * 300 + b"}", "more than 200 levels"),
        (b"{" * 100_000, "recursion|Expecting"),
    ],
)
def test_what_begins_like_an_object_and_is_none_is_a_text(line: bytes, flaw: str) -> None:
    said = read_host_line(line)
    assert isinstance(said, Prompt)
    assert said.text == line.decode()
    assert re.search(flaw, said.flaw), said.flaw


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_parameters_are_read_as_they_were_written(params: dict[str, object]) -> None:
    line = write_init(params)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_host_line(line[:-1]) == Init(params)


@given(TEXT, st.dictionaries(TEXT, JSON, max_size=4))
def test_prompts_are_read_as_they_were_written(text: str, context: dict[str, object]) -> None:
    line = write_prompt(text, context, "json")
    assert line.count(b"\n") == 1
    assert read_host_line(line[:-1]) == Prompt(text, context or None)


@given(TEXT.filter(lambda text: "\\" not in text and text.strip() and text[0] not in "{\ufeff \t"))
def test_texts_are_read_as_they_were_written(text: str) -> None:
    line = write_prompt(text, None, "text")
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert read_host_line(line[:-1]) == Prompt(text)


@given(TEXT, JSON, st.just(b"") | JSON)
def test_answers_are_read_as_they_were_written(kind: str, value: object, id_: object) -> None:
    written_id = None if id_ == b"" else msgspec.json.encode(id_)
    line = write_response(kind, msgspec.json.encode(value), written_id)
    assert line.count(b"\n") == 1
    expected = Response(kind, value) if id_ == b"" else Response(kind, value, id_)
    assert read_host_line(line[:-1]) == expected


@given(TEXT, st.dictionaries(TEXT.filter(lambda key: key != "type"), JSON, max_size=4))
def test_messages_are_read_as_they_were_written(kind: str, body: dict[str, object]) -> None:
    line = write_message(kind, body)
    assert line.count(b"\n") == 1
    message = read_message(line[:-1])
    assert message is not None
    assert (message.kind, message.body, message.flaw) == (kind, body, "")


# Lines as the protocol


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
    with anyio.fail_after(LIMIT):
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
            with pytest.raises(ConnectionBroken, match="a prompt was cancelled"):
                await client.prompt(prompt(session_id))

        tasks.start_soon(client.prompt, prompt(one))
        assert await program.hear() == "Go"
        tasks.start_soon(fail, two)
        await anyio.wait_all_tasks_blocked()
        client.cancel(one)
        with pytest.raises(anyio.EndOfStream):
            await program.hear()


class Hearer(ClientHandler):
    """Our side, alone."""


async def test_what_a_program_has_no_word_for_is_refused() -> None:
    ours, theirs = memory_transport_pair()
    async with (
        background_tasks() as tasks,
        connect(LineTransport(ours, tasks, name="program"), Hearer()) as client,
    ):
        hello = await client.initialize(
            s.InitializeRequest(protocol_version=1, client_capabilities=s.ClientCapabilities())
        )
        assert hello.agent_info == s.Implementation(name="program", version="")
        with pytest.raises(RpcError, match="has no word for x/fly") as caught:
            await client.connection.request("x/fly", {})
        assert caught.value.code == METHOD_NOT_FOUND
        client.connection.notify("x/land", {})
        assert (await client.new_session(s.NewSessionRequest(cwd="/", mcp_servers=()))).session_id
        await theirs.aclose()


async def test_a_program_is_read_no_faster_than_it_is_heard() -> None:
    ours, theirs = memory_transport_pair()
    program = Program(theirs)
    async with background_tasks() as tasks:
        line = LineTransport(ours, tasks, name="program")
        await line.send(b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}\n')
        written, heard = 0, b""

        async def speak() -> None:
            nonlocal written
            for number in range(20):
                await program.write(b'{"type":"own","x":"%b","number":%d}\n' % (b"x" * 1_000_000, number))
                written += 1
            await program.end()

        async with anyio.create_task_group() as speaking:
            speaking.start_soon(speak)
            await anyio.wait_all_tasks_blocked()
            assert written < 10
            try:
                while True:
                    heard += await line.receive()
            except anyio.EndOfStream:
                pass  # all of it was received
        assert [b'"number":%d}' % number in heard for number in range(20)] == [True] * 20
        await line.aclose()


async def test_an_answer_that_comes_with_the_next_prompt_is_not_taken_back() -> None:
    ours, theirs = memory_transport_pair()
    program = Program(theirs)
    with anyio.fail_after(LIMIT):
        async with background_tasks() as tasks:
            line = LineTransport(ours, tasks, name="program")
            await line.send(b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}\n')
            await line.receive()
            await program.say("question", question="?")
            assert b'"elicitation/create"' in await line.receive()
            await line.send(
                b'{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":'
                b'{"sessionId":"lines-1","prompt":[{"type":"text","text":"Go"}]}}\n'
                b'{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}\n'
            )
            assert await program.value() is None
            assert await program.hear() == "Go"
            await program.say("result")
            assert b"cancel_request" not in await line.receive()
            await line.aclose()


async def test_a_closed_pipe_is_received_from_no_more() -> None:
    ours, _ = memory_transport_pair()
    async with background_tasks() as tasks:
        line = LineTransport(ours, tasks, name="program")
        await line.aclose()
        with anyio.fail_after(LIMIT), pytest.raises(anyio.ClosedResourceError):
            await line.receive()
