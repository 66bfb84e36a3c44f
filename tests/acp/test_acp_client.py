"""The client's side: every call and its gate, every request of the agent and its gate, and turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import pytest
from acp_support import Json, Recorder, Wire, failure, notification, permission, request, result, talk

from thinkwell_acp import (
    CapabilityMissing,
    ClientHandler,
    ConnectionClosed,
    DecodeError,
    RpcError,
    VersionMismatch,
    connect,
    memory_transport_pair,
)
from thinkwell_acp import schema as s
from thinkwell_acp.client import Client  # noqa: TC001 - a field's type, read at run time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from thinkwell_acp.client import PromptOutcome

MORE = ("/more",)
TEXT = s.TextContent(text="t")


FREE: tuple[Json, str] = ({}, "")
"""No capability is needed."""


@dataclass(frozen=True)
class Outgoing:
    """A call of the client's, an answer to it, and what the agent has to say of itself before."""

    method: str
    call: Callable[[Client], Awaitable[object]]
    answer: object
    gate: tuple[Json, str] = FREE


def needs(capability: str, *path: str) -> tuple[Json, str]:
    """What the agent says of itself to have one capability, and the capability's name."""
    value: object = (
        True if path[-1] in {"loadSession", "image", "audio", "embeddedContext", "http", "sse", "acp"} else {}
    )
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)
    return {"agentCapabilities": value}, capability


def session(flag: str) -> tuple[Json, str]:
    return needs(f"sessionCapabilities.{flag}", "sessionCapabilities", flag)


def new(*servers: s.McpServer, more: tuple[str, ...] = ()) -> s.NewSessionRequest:
    return s.NewSessionRequest(cwd="/w", mcp_servers=servers, additional_directories=more)


def prompt(*blocks: s.ContentBlock) -> s.PromptRequest:
    return s.PromptRequest(session_id="s1", prompt=blocks)


IMAGE = s.ImageContent(data="", mime_type="image/png")
AUDIO = s.AudioContent(data="", mime_type="audio/wav")
RESOURCE = s.EmbeddedResource(resource=s.TextResourceContents(text="t", uri="file:///t"))
LINK = s.ResourceLink(name="n", uri="file:///t")
STDIO = s.McpServerStdio(name="m", command="/m", args=(), env=())
HTTP = s.McpServerHttp(name="m", url="http://m", headers=())
SSE = s.McpServerSse(name="m", url="http://m", headers=())
ACP = s.McpServerAcp(name="m", server_id="m1")
APPENDED = s.SystemPrompt(mode="append", content=(TEXT,))
LOGIN: Json = {"authMethods": [{"id": "key", "name": "Key"}]}
END = {"stopReason": "end_turn"}

CALLS: list[Outgoing] = [
    Outgoing(
        "authenticate",
        lambda c: c.authenticate(s.AuthenticateRequest(method_id="key")),
        {},
        (LOGIN, "authMethods['key']"),
    ),
    Outgoing("logout", lambda c: c.logout(), {}, needs("auth.logout", "auth", "logout")),
    Outgoing(
        "providers/list", lambda c: c.list_providers(), {"providers": []}, needs("providers", "providers")
    ),
    Outgoing(
        "providers/set",
        lambda c: c.set_provider(
            s.SetProviderRequest(provider_id="p", api_type="openai", base_url="http://x")
        ),
        {},
        needs("providers", "providers"),
    ),
    Outgoing(
        "providers/disable",
        lambda c: c.disable_provider(s.DisableProviderRequest(provider_id="p")),
        {},
        needs("providers", "providers"),
    ),
    Outgoing("session/new", lambda c: c.new_session(new()), {"sessionId": "s1"}),
    Outgoing("session/new", lambda c: c.new_session(new(STDIO)), {"sessionId": "s1"}),
    Outgoing(
        "session/new",
        lambda c: c.new_session(new(HTTP)),
        {"sessionId": "s1"},
        needs("mcpCapabilities.http", "mcpCapabilities", "http"),
    ),
    Outgoing(
        "session/new",
        lambda c: c.new_session(new(SSE)),
        {"sessionId": "s1"},
        needs("mcpCapabilities.sse", "mcpCapabilities", "sse"),
    ),
    Outgoing(
        "session/new",
        lambda c: c.new_session(new(ACP)),
        {"sessionId": "s1"},
        needs("mcpCapabilities.acp", "mcpCapabilities", "acp"),
    ),
    Outgoing(
        "session/new",
        lambda c: c.new_session(new(more=MORE)),
        {"sessionId": "s1"},
        session("additionalDirectories"),
    ),
    Outgoing(
        "session/new",
        lambda c: c.new_session(s.NewSessionRequest(cwd="/w", mcp_servers=(), system_prompt=APPENDED)),
        {"sessionId": "s1"},
        session("systemPrompt"),
    ),
    Outgoing(
        "session/load",
        lambda c: c.load_session(s.LoadSessionRequest(session_id="s1", cwd="/w", mcp_servers=())),
        {},
        needs("loadSession", "loadSession"),
    ),
    Outgoing(
        "session/resume",
        lambda c: c.resume_session(s.ResumeSessionRequest(session_id="s1", cwd="/w")),
        {},
        session("resume"),
    ),
    Outgoing(
        "session/fork",
        lambda c: c.fork_session(s.ForkSessionRequest(session_id="s1", cwd="/w")),
        {"sessionId": "s2"},
        session("fork"),
    ),
    Outgoing(
        "session/close",
        lambda c: c.close_session(s.CloseSessionRequest(session_id="s1")),
        {},
        session("close"),
    ),
    Outgoing("session/list", lambda c: c.list_sessions(), {"sessions": []}, session("list")),
    Outgoing(
        "session/delete",
        lambda c: c.delete_session(s.DeleteSessionRequest(session_id="s1")),
        {},
        session("delete"),
    ),
    Outgoing(
        "session/set_mode",
        lambda c: c.set_session_mode(s.SetSessionModeRequest(session_id="s1", mode_id="m")),
        {},
    ),
    Outgoing(
        "session/set_model",
        lambda c: c.set_session_model(s.SetSessionModelRequest(session_id="s1", model_id="m")),
        {},
    ),
    Outgoing(
        "session/set_config_option",
        lambda c: c.set_session_config_option(
            s.SetSessionConfigOptionRequest(session_id="s1", config_id="o", value="v")
        ),
        {"configOptions": []},
    ),
    Outgoing("session/prompt", lambda c: c.prompt(prompt(TEXT, LINK)), END),
    Outgoing(
        "session/prompt",
        lambda c: c.prompt(prompt(IMAGE)),
        END,
        needs("promptCapabilities.image", "promptCapabilities", "image"),
    ),
    Outgoing(
        "session/prompt",
        lambda c: c.prompt(prompt(AUDIO)),
        END,
        needs("promptCapabilities.audio", "promptCapabilities", "audio"),
    ),
    Outgoing(
        "session/prompt",
        lambda c: c.prompt(prompt(RESOURCE)),
        END,
        needs("promptCapabilities.embeddedContext", "promptCapabilities", "embeddedContext"),
    ),
    Outgoing(
        "mcp/message",
        lambda c: c.message_mcp(s.MessageMcpRequest(connection_id="c", method="ping")),
        {"any": 1},
    ),
    Outgoing("_x/y", lambda c: c.ext_call("_x/y", {"a": 1}), [1, 2]),
]


@pytest.mark.parametrize("outgoing", CALLS, ids=lambda outgoing: f"{outgoing.method} {outgoing.gate[1]}")
async def test_a_call_is_made_where_it_is_advertised_and_else_refused_before_it_is_sent(
    outgoing: Outgoing,
) -> None:
    async with talk(ClientHandler()) as t:
        await t.initialize()
        if outgoing.gate[1]:
            with pytest.raises(CapabilityMissing) as caught:
                await outgoing.call(t.client)
            assert caught.value.capability == outgoing.gate[1]
        await t.initialize(outgoing.gate[0])
        call = t.start(lambda: outgoing.call(t.client))
        asked = await t.wire.expect(outgoing.method)
        await t.wire.send(result(asked["id"], outgoing.answer))
        await call.wait()


@pytest.mark.parametrize("outgoing", CALLS, ids=lambda outgoing: f"{outgoing.method} {outgoing.gate[1]}")
async def test_an_error_of_the_agent_is_raised_by_every_call(outgoing: Outgoing) -> None:
    async with talk(ClientHandler()) as t:
        await t.initialize(outgoing.gate[0])
        call = t.start(lambda: outgoing.call(t.client))
        asked = await t.wire.expect(outgoing.method)
        await t.wire.send(failure(asked["id"], -32000, "Log in", {"x": 1}))
        with pytest.raises(RpcError) as caught:
            await call.wait()
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32000, "Log in", {"x": 1})


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


async def test_a_login_in_a_terminal_is_never_called() -> None:
    async with talk(ClientHandler()) as t:
        await t.initialize({"authMethods": [{"id": "key", "name": "Key", "type": "terminal"}]})
        with pytest.raises(CapabilityMissing):
            await t.client.authenticate(s.AuthenticateRequest(method_id="key"))


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


class Server(ClientHandler):
    """Serves everything; what it has nothing to say to, it answers with nothing."""

    async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
        return s.ReadTextFileResponse(content="text")

    async def write_text_file(self, request: s.WriteTextFileRequest, /) -> s.WriteTextFileResponse:
        return None  # type: ignore[return-value]

    async def create_terminal(self, request: s.CreateTerminalRequest, /) -> s.CreateTerminalResponse:
        return s.CreateTerminalResponse(terminal_id="t")

    async def terminal_output(self, request: s.TerminalOutputRequest, /) -> s.TerminalOutputResponse:
        return s.TerminalOutputResponse(output="", truncated=False)

    async def wait_for_terminal_exit(
        self, request: s.WaitForTerminalExitRequest, /
    ) -> s.WaitForTerminalExitResponse:
        return s.WaitForTerminalExitResponse()

    async def kill_terminal(self, request: s.KillTerminalRequest, /) -> s.KillTerminalResponse:
        return s.KillTerminalResponse()

    def release_terminal(self, request: s.ReleaseTerminalRequest, /) -> s.ReleaseTerminalResponse:  # type: ignore[override]
        return s.ReleaseTerminalResponse()

    async def create_elicitation(self, request: s.CreateElicitationRequest, /) -> s.CreateElicitationResponse:
        return s.CreateElicitationResponse(action="decline")


@pytest.mark.parametrize(("method", "params", "code"), INCOMING)
async def test_what_was_not_advertised_is_refused_and_what_was_is_served(
    method: str, params: Json, code: int
) -> None:
    async with talk(Server()) as t:
        await t.wire.send(request(1, method, params))
        assert (await t.wire.read())["error"]["code"] == code
        await t.initialize(client=EVERYTHING)
        await t.wire.send(request("two", method, params))
        answer = await t.wire.read()
        assert answer["id"] == "two"
        assert isinstance(answer["result"], dict)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        *((method, params) for method, params, _ in INCOMING),
        ("mcp/connect", {"serverId": "m"}),
        ("mcp/message", {"connectionId": "c", "method": "ping"}),
        ("mcp/disconnect", {"connectionId": "c"}),
        ("_x", {}),
        ("nothing", {}),
        ("session/prompt", {}),
    ],
)
async def test_a_handler_that_serves_nothing_refuses_as_not_found(method: str, params: Json) -> None:
    async with talk(ClientHandler()) as t:
        await t.initialize(client=EVERYTHING)
        await t.wire.send(request(None, method, params))
        answer = await t.wire.read()
        assert answer["id"] is None
        assert answer["error"]["code"] == -32601
        assert answer["error"]["data"] == {"method": method}


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
