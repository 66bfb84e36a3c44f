"""The client's side: every call and its gate, every request of the agent and its gate, and turns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest
from acp_support import (
    REQUESTS,
    Everything,
    Json,
    Recorder,
    Wire,
    method_of,
    notification,
    permission,
    request,
    result,
    talk,
)
from msgspec.structs import replace

from thinkwell_acp import (
    AgentSide,
    CapabilityMissing,
    ClientHandler,
    ConnectionClosed,
    DecodeError,
    VersionMismatch,
    connect,
    memory_transport_pair,
)
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from thinkwell_acp.client import Client, PromptOutcome

TEXT = s.TextContent(text="t")


def needs(capability: str) -> tuple[Json, str]:
    """What the agent says of itself to have one capability, and the capability's name."""
    *path, name = capability.split(".")
    is_flag = name in {"loadSession", "image", "audio", "embeddedContext", "http", "sse", "acp"}
    value: Json = {name: True if is_flag else {}}
    for outer in reversed(path):
        value = {outer: value}
    return {"agentCapabilities": value}, capability


def new(*servers: s.McpServer, more: tuple[str, ...] = ()) -> s.NewSessionRequest:
    return s.NewSessionRequest(cwd="/w", mcp_servers=servers, additional_directories=more)


def prompt(*blocks: s.ContentBlock) -> s.PromptRequest:
    return s.PromptRequest(session_id="s1", prompt=blocks)


IMAGE = s.ImageContent(data="", mime_type="image/png")
AUDIO = s.AudioContent(data="", mime_type="audio/wav")
RESOURCE = s.EmbeddedResource(resource=s.TextResourceContents(text="t", uri="file:///t"))
STDIO = s.McpServerStdio(name="m", command="/m", args=(), env=())
HTTP = s.McpServerHttp(name="m", url="http://m", headers=())
SSE = s.McpServerSse(name="m", url="http://m", headers=())
ACP = s.McpServerAcp(name="m", server_id="m1")
APPENDED = s.SystemPrompt(mode="append", content=(TEXT,))
LOGIN: Json = {"authMethods": [{"id": "key", "name": "Key"}]}
END = {"stopReason": "end_turn"}

NEW = {"sessionId": "s1"}
ANSWERS: Json = {
    "providers/list": {"providers": []},
    "session/new": NEW,
    "session/fork": NEW,
    "session/list": {"sessions": []},
    "session/set_config_option": {"configOptions": []},
    "session/prompt": END,
}
NEEDS: dict[str, tuple[Json, str]] = {
    "authenticate": (LOGIN, "authMethods['key']"),
    "logout": needs("auth.logout"),
    "providers/list": needs("providers"),
    "providers/set": needs("providers"),
    "providers/disable": needs("providers"),
    "session/load": needs("loadSession"),
    "session/resume": needs("sessionCapabilities.resume"),
    "session/fork": needs("sessionCapabilities.fork"),
    "session/close": needs("sessionCapabilities.close"),
    "session/list": needs("sessionCapabilities.list"),
    "session/delete": needs("sessionCapabilities.delete"),
}
CALLS: list[tuple[s.Model, tuple[Json, str]]] = [
    *((request, NEEDS.get(method_of(request), ({}, ""))) for request in REQUESTS),
    (new(STDIO), ({}, "")),
    (new(HTTP), needs("mcpCapabilities.http")),
    (new(SSE), needs("mcpCapabilities.sse")),
    (new(ACP), needs("mcpCapabilities.acp")),
    (new(more=("/more",)), needs("sessionCapabilities.additionalDirectories")),
    (replace(new(), system_prompt=APPENDED), needs("sessionCapabilities.systemPrompt")),
    (prompt(IMAGE), needs("promptCapabilities.image")),
    (prompt(AUDIO), needs("promptCapabilities.audio")),
    (prompt(RESOURCE), needs("promptCapabilities.embeddedContext")),
]


async def test_a_call_is_made_where_it_is_advertised_and_else_refused_before_it_is_sent() -> None:
    async with talk(ClientHandler()) as t:
        for request, (advertised, capability) in CALLS:
            method = method_of(request)
            call = partial(getattr(t.client, AgentSide.requests[method]), request)
            await t.initialize()
            if capability:
                refused = t.start(call)
                await anyio.wait_all_tasks_blocked()
                assert refused.done, f"{method} was sent without {capability}"
                with pytest.raises(CapabilityMissing) as caught:
                    await refused.wait()
                assert caught.value.capability == capability
            await t.initialize(advertised)
            made = t.start(call)
            asked = await t.wire.expect(method)
            await t.wire.send(result(asked["id"], ANSWERS.get(method, {})))
            await made.wait()


async def test_a_system_prompt_replaces_the_agents_own_only_where_that_is_advertised() -> None:
    override = s.SystemPrompt(mode="override", content=(TEXT,))
    async with talk(ClientHandler()) as t:
        modes: list[Json] = [{}, {"mode": None}, {"mode": {}}, {"mode": {"override": None}}]
        for taken in modes:
            await t.initialize({"agentCapabilities": {"sessionCapabilities": {"systemPrompt": taken}}})
            with pytest.raises(CapabilityMissing) as caught:
                await t.client.new_session(
                    s.NewSessionRequest(cwd="/w", mcp_servers=(), system_prompt=override)
                )
            assert caught.value.capability == "sessionCapabilities.systemPrompt.mode.override"


async def test_initialize_says_who_we_are_and_keeps_what_the_agent_is() -> None:
    async with talk(ClientHandler()) as t:
        call = t.start(t.client.initialize)
        asked = await t.wire.expect("initialize")
        assert asked["params"] == {"protocolVersion": 1, "clientCapabilities": {}}
        await t.wire.send(
            result(asked["id"], {"protocolVersion": 1, "agentInfo": {"name": "a", "version": "1"}})
        )
        await call.wait()
        assert t.client.agent.agent_info == s.Implementation(name="a", version="1")
        assert not t.client.capabilities.load_session


async def test_a_handler_that_is_made_of_its_client_gets_the_one_of_the_block() -> None:
    class Handler(ClientHandler):
        def __init__(self, client: Client) -> None:
            self.client = client
            client.ext_notify("_hello")

        async def ext_request(self, method: str, params: s.JsonValue, /) -> s.JsonValue:
            return await self.client.ext_call("_back", params)

    ours, theirs = memory_transport_pair()
    wire = Wire(theirs)
    async with connect(ours, Handler) as client:
        assert client.connection.error is None
        await wire.expect("_hello")
        await wire.send(request(1, "_ask", {"a": 1}))
        asked = await wire.expect("_back")
        assert asked["params"] == {"a": 1}
        await wire.send(result(asked["id"], 2))
        assert await wire.read() == result(1, 2)


async def test_another_version_is_refused() -> None:
    async with talk(ClientHandler()) as t:
        call = t.start(t.client.initialize)
        asked = await t.wire.expect("initialize")
        await t.wire.send(result(asked["id"], {"protocolVersion": 2}))
        with pytest.raises(VersionMismatch) as caught:
            await call.wait()
        assert (caught.value.offered, caught.value.answered) == (1, 2)


async def test_an_answer_of_the_wrong_shape_is_an_error_of_its_call() -> None:
    async with talk(ClientHandler()) as t:
        call = t.start(lambda: t.client.new_session(new()))
        asked = await t.wire.expect("session/new")
        await t.wire.send(result(asked["id"], {"session": 1}))
        with pytest.raises(DecodeError):
            await call.wait()


# Extensions


async def test_extension_methods_keep_their_underscore() -> None:
    async with talk(ClientHandler()) as t:
        with pytest.raises(ValueError, match="starts with an underscore"):
            await t.client.ext_call("x")
        with pytest.raises(ValueError, match="starts with an underscore"):
            t.client.ext_notify("x")
        t.client.ext_notify("_x", [1])
        assert (await t.wire.read()) == notification("_x", [1])
        t.client.ext_notify("_x")
        assert (await t.wire.read())["params"] == {}
        call = t.start(lambda: t.client.ext_call("_y"))
        asked = await t.wire.expect("_y")
        assert asked["params"] == {}
        await t.wire.send(result(asked["id"], None))
        assert await call.wait() is None


async def test_notifications_inside_an_mcp_connection() -> None:
    class Handler(ClientHandler):
        def __init__(self) -> None:
            self.seen: list[s.MessageMcpNotification] = []

        def notify_mcp(self, notification: s.MessageMcpNotification, /) -> None:
            self.seen.append(notification)

    handler = Handler()
    async with talk(handler) as t:
        t.client.notify_mcp(s.MessageMcpNotification(connection_id="c", method="n"))
        assert (await t.wire.expect("mcp/message"))["params"] == {"connectionId": "c", "method": "n"}
        await t.wire.send(
            notification("mcp/message", {"connectionId": "c", "method": "n"}), request(1, "_x", {})
        )
        await t.wire.read()
        assert [message.method for message in handler.seen] == ["n"]


# What the agent asks

EVERYTHING = s.ClientCapabilities(
    fs=s.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    elicitation=s.ElicitationCapabilities(
        form=s.ElicitationFormCapabilities(), url=s.ElicitationUrlCapabilities()
    ),
)
FORM: Json = {
    "sessionId": "s1",
    "message": "?",
    "mode": "form",
    "requestedSchema": {"type": "object", "properties": {}},
}
URL: Json = {"sessionId": "s1", "message": "?", "mode": "url", "elicitationId": "e", "url": "https://x"}
TERMINAL: Json = {"sessionId": "s1", "terminalId": "t"}

INCOMING: list[tuple[str, Json, int]] = [
    ("fs/read_text_file", {"sessionId": "s1", "path": "/f"}, -32601),
    ("fs/write_text_file", {"sessionId": "s1", "path": "/f", "content": ""}, -32601),
    ("terminal/create", {"sessionId": "s1", "command": "ls"}, -32601),
    ("terminal/output", TERMINAL, -32601),
    ("terminal/wait_for_exit", TERMINAL, -32601),
    ("terminal/kill", TERMINAL, -32601),
    ("terminal/release", TERMINAL, -32601),
    ("elicitation/create", FORM, -32602),
    ("elicitation/create", URL, -32602),
]


class Odd(Everything):
    """Answers a request with nothing, and another one without a wait."""

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        return None  # type: ignore[return-value]

    def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:  # type: ignore[override]
        return s.ReleaseTerminalResponse()


async def test_what_was_not_advertised_is_refused_and_what_was_is_served() -> None:
    async with talk(Odd()) as t:
        for method, params, code in INCOMING:
            await t.wire.send(request(1, method, params))
            assert (await t.wire.read())["error"]["code"] == code, method
        await t.initialize(client=EVERYTHING)
        for method, params, _ in INCOMING:
            await t.wire.send(request("two", method, params))
            answer = await t.wire.read()
            assert answer["id"] == "two"
            assert isinstance(answer["result"], dict), method


async def test_a_handler_that_serves_nothing_refuses_as_not_found() -> None:
    async with talk(ClientHandler()) as t:
        await t.initialize(client=EVERYTHING)
        for method, params in [
            *((method, params) for method, params, _ in INCOMING),
            ("mcp/connect", {"serverId": "m"}),
            ("mcp/message", {"connectionId": "c", "method": "ping"}),
            ("mcp/disconnect", {"connectionId": "c"}),
            ("_x", {}),
            ("nothing", {}),
            ("session/prompt", {}),
        ]:
            await t.wire.send(request(None, method, params))
            answer = await t.wire.read()
            assert answer["id"] is None
            assert (answer["error"]["code"], answer["error"]["data"]) == (-32601, {"method": method})


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        (["allow_once", "reject_always", "reject_once"], {"outcome": "selected", "optionId": "2"}),
        (["reject_always", "allow_once"], {"outcome": "selected", "optionId": "0"}),
        (["allow_once", "sing"], {"outcome": "cancelled"}),
    ],
)
async def test_permissions_are_rejected_by_default(kinds: list[str], outcome: Json) -> None:
    options = [{"optionId": str(number), "name": "n", "kind": kind} for number, kind in enumerate(kinds)]
    async with talk(ClientHandler()) as t:
        params = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options}
        await t.wire.send(request(7, "session/request_permission", params))
        assert await t.wire.read() == result(7, {"outcome": outcome})


async def test_without_a_handler_permissions_are_rejected_too() -> None:
    ours, theirs = memory_transport_pair()
    wire = Wire(theirs)
    async with connect(ours):
        await wire.send(permission(7))
        assert await wire.read() == result(7, {"outcome": {"outcome": "selected", "optionId": "no"}})


async def test_a_handler_that_answers_a_permission_with_something_else_fails_it() -> None:
    class Wrong(ClientHandler):
        async def request_permission(
            self, request: s.RequestPermissionRequest, /
        ) -> s.RequestPermissionResponse:
            return None  # type: ignore[return-value]

    async with talk(Wrong()) as t:
        await t.wire.send(permission(1))
        assert (await t.wire.read())["error"]["code"] == -32603


async def test_a_decoding_error_of_the_handlers_own_is_not_blamed_on_the_request() -> None:
    class Nested(ClientHandler):
        async def ext_request(self, method: str, params: s.JsonValue, /) -> s.JsonValue:
            raise DecodeError("Other", "$", "wrong", {})

    async with talk(Nested()) as t:
        await t.wire.send(request(1, "_x", {}), request(2, "session/request_permission", {"sessionId": 5}))
        codes = {
            message["id"]: message["error"]["code"] for message in (await t.wire.read(), await t.wire.read())
        }
        assert codes == {1: -32603, 2: -32602}


# Turns


async def test_turns_of_a_session_follow_one_another_and_sessions_do_not_wait() -> None:
    async with talk(ClientHandler()) as t:
        one, two, other = t.prompt("one"), t.prompt("two"), t.prompt("other", "s2")
        first, second = await t.wire.read(), await t.wire.read()
        in_s1 = first if first["params"]["sessionId"] == "s1" else second
        assert {first["params"]["sessionId"], second["params"]["sessionId"]} == {"s1", "s2"}
        await anyio.wait_all_tasks_blocked()
        await t.wire.send(result(in_s1["id"], END))
        third = await t.wire.expect("session/prompt")
        assert third["params"]["sessionId"] == "s1"
        await t.wire.send(result(third["id"], END))
        await one.wait()
        await two.wait()
        assert not other.done
        other.scope.cancel()
        asked = second if first is in_s1 else first
        await t.wire.send(result(asked["id"], END))


async def test_a_second_turn_cannot_be_started_over_a_running_one() -> None:
    outcomes: list[PromptOutcome] = []
    async with talk(ClientHandler()) as t:
        t.client.start_prompt(prompt(TEXT), outcomes.append)
        with pytest.raises(RuntimeError, match="a turn is running in session s1"):
            t.client.start_prompt(prompt(TEXT), outcomes.append)
        asked = await t.wire.expect("session/prompt")
        await t.wire.send(result(asked["id"], {"stopReason": 5}), request(1, "_sync", {}))
        await t.wire.read()
        assert isinstance(outcomes[0], DecodeError)
    t.client.start_prompt(prompt(TEXT), outcomes.append)
    assert isinstance(outcomes[1], ConnectionClosed)
    with pytest.raises(ConnectionClosed):
        await t.client.prompt(prompt(TEXT))


async def test_a_prompt_that_cannot_be_written_leaves_the_session_free() -> None:
    async with talk(ClientHandler()) as t:
        with pytest.raises(ValueError, match="surrogate"):
            await t.client.prompt(prompt(s.TextContent(text="\ud800")))
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        await t.wire.send(result(asked["id"], END))
        assert (await turn.wait()).stop_reason == "end_turn"


async def test_a_prompt_in_a_cancelled_scope_sends_nothing() -> None:
    async with talk(ClientHandler()) as t:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await t.client.prompt(prompt(TEXT))
        t.client.ext_notify("_after")
        await t.wire.expect("_after")


async def test_questions_of_other_sessions_are_left_alone_by_a_cancellation() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        await t.initialize(client=EVERYTHING)
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        loose: Json = {**FORM, "requestId": 0}
        del loose["sessionId"]
        await t.wire.send(
            permission("mine"),
            permission("other", "s2"),
            request("form", "elicitation/create", FORM),
            request("loose", "elicitation/create", loose),
        )
        await handler.wait_until(lambda: len(handler.asked) == 4)
        t.client.cancel("s1")
        t.client.cancel("s1")
        await t.wire.expect("session/cancel")
        answers = [await t.wire.read() for _ in range(3)]
        assert result("mine", {"outcome": {"outcome": "cancelled"}}) in answers
        assert result("form", {"action": "cancel"}) in answers
        assert answers[2]["method"] == "session/cancel"
        await anyio.wait_all_tasks_blocked()
        assert handler.interrupted == 2
        await t.wire.send(result(asked["id"], {"stopReason": "cancelled"}))
        await turn.wait()
        handler.answer.set()
        assert {(await t.wire.read())["id"] for _ in range(2)} == {"other", "loose"}
