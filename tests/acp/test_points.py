"""The points that clients of this protocol get wrong, as far as they concern the connection and the client.

Each test is named after its point; `test_points_manifest.py` says where the others are.
"""

from __future__ import annotations

import sys

import anyio
import pytest
from acp_support import (
    LIMIT,
    Json,
    Recorder,
    chunk,
    failure,
    notification,
    permission,
    request,
    result,
    talk,
    to_bytes,
)

from thinkwell_acp import (
    AgentHandler,
    AgentSide,
    CapabilityMissing,
    ClientHandler,
    ProcessExited,
    RpcError,
    connect,
    memory_transport_pair,
    serve_agent,
    stdio_transport,
)
from thinkwell_acp import schema as s
from thinkwell_acp.client import CANCELLED_KEPT

END = {"stopReason": "end_turn"}
CANCELLED = {"outcome": {"outcome": "cancelled"}}
SELECTED = {"outcome": {"outcome": "selected", "optionId": "yes"}}


def prompt(text: str = "hi") -> s.PromptRequest:
    return s.PromptRequest(session_id="s1", prompt=(s.TextContent(text=text),))


# 1: a prompt's result never overtakes its updates


async def test_point_01_a_prompt_resolves_after_every_update_before_it() -> None:
    handler = Recorder()
    at_the_end: list[int] = []
    async with talk(handler) as t:
        t.client.start_prompt(prompt(), lambda _: at_the_end.append(len(handler.updates)))
        asked = await t.wire.expect("session/prompt")
        updates = [chunk(str(number)) for number in range(1000)]
        await t.wire.send(*updates, result(asked["id"], END), chunk("late"))
        await handler.wait_until(lambda: handler.texts[-1:] == ["late"])
    assert at_the_end == [1000]
    assert handler.texts == [*map(str, range(1000)), "late"]


async def test_point_01_awaiting_the_prompt_is_no_different() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        await t.wire.send(*(chunk(str(number)) for number in range(1000)), result(asked["id"], END))
        assert (await turn.wait()).stop_reason == "end_turn"
        assert len(handler.updates) == 1000


# 2: cancelling answers what is asked


async def test_point_02_cancelling_answers_every_open_permission_at_once() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        await t.wire.send(permission("p1"), permission("p2"))
        await handler.wait_until(lambda: len(handler.asked) == 2)
        t.client.cancel("s1")
        await t.wire.expect("session/cancel")
        answers = [await t.wire.read(), await t.wire.read()]
        assert sorted(answers, key=lambda answer: str(answer["id"])) == [
            result("p1", CANCELLED),
            result("p2", CANCELLED),
        ]
        await t.wire.send(permission("p3"))
        assert await t.wire.read() == result("p3", CANCELLED)
        assert len(handler.asked) == 2
        assert not turn.done
        handler.answer.set()
        await t.wire.send(chunk("still here"), result(asked["id"], {"stopReason": "cancelled"}))
        assert (await turn.wait()).stop_reason == "cancelled"
        assert handler.texts == ["still here"]
        t.client.ext_notify("_nothing_else_was_written")
        await t.wire.expect("_nothing_else_was_written")


async def test_point_02_cancelling_outside_of_a_turn_answers_what_is_asked_there() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        await t.wire.send(permission("p1"))
        await handler.wait_until(lambda: len(handler.asked) == 1)
        t.client.cancel("s1")
        await t.wire.expect("session/cancel")
        assert await t.wire.read() == result("p1", CANCELLED)
        handler.answer.set()
        await t.wire.send(permission("p2"))
        assert await t.wire.read() == result("p2", SELECTED)


@pytest.mark.parametrize("again", ["a question", "a file"])
async def test_point_02_an_answered_question_leaves_its_id_to_others(again: str) -> None:
    class Lingers(Recorder):
        linger = anyio.Event()
        lingering = anyio.Event()

        async def request_permission(
            self, request: s.RequestPermissionRequest, /
        ) -> s.RequestPermissionResponse:
            try:
                return await super().request_permission(request)
            except anyio.get_cancelled_exc_class():
                self.lingering.set()
                with anyio.CancelScope(shield=True):
                    await self.linger.wait()
                if again == "a file":
                    return s.RequestPermissionResponse(outcome=s.SelectedPermissionOutcome(option_id="no"))
                raise

        async def read_text_file(self, request: s.ReadTextFileRequest, /) -> s.ReadTextFileResponse:
            await self.answer.wait()
            return s.ReadTextFileResponse(content=request.path)

    handler = Lingers()
    async with talk(handler) as t:
        await t.initialize(
            client=s.ClientCapabilities(fs=s.FileSystemCapabilities(read_text_file=True)),
        )
        await t.wire.send(permission("p"))
        await handler.wait_until(lambda: len(handler.asked) == 1)
        t.client.cancel("s1")
        await t.wire.expect("session/cancel")
        assert await t.wire.read() == result("p", CANCELLED)
        await handler.lingering.wait()
        if again == "a question":
            await t.wire.send(permission("p"))
            await handler.wait_until(lambda: len(handler.asked) == 2)
            handler.linger.set()
        else:
            await t.wire.send(request("p", "fs/read_text_file", {"sessionId": "s1", "path": "/f"}))
        await anyio.wait_all_tasks_blocked()
        t.client.cancel("s1")
        await t.wire.expect("session/cancel")
        handler.linger.set()
        handler.answer.set()
        expected: Json = CANCELLED if again == "a question" else {"content": "/f"}
        assert await t.wire.read() == result("p", expected)


@pytest.mark.parametrize("again", ["cancelled", "prompted"])
async def test_point_02_a_session_that_is_heard_of_again_is_not_the_oldest_any_more(again: str) -> None:
    handler = Recorder()
    handler.answer.set()
    async with talk(handler) as t:

        def prompt(number: int) -> None:
            turn = s.PromptRequest(session_id=f"s{number}", prompt=(s.TextContent(text="hi"),))
            t.client.start_prompt(turn, lambda _: None)

        def cancel(number: int) -> None:
            t.client.cancel(f"s{number}")

        prompt(0)
        cancel(0)
        if again == "prompted":
            asked = await t.wire.expect("session/prompt")
            await t.wire.send(result(asked["id"], {"stopReason": "cancelled"}))
            await anyio.wait_all_tasks_blocked()
        for number in range(1, CANCELLED_KEPT):
            prompt(number)
            cancel(number)
        (cancel if again == "cancelled" else prompt)(0)
        prompt(CANCELLED_KEPT)
        cancel(CANCELLED_KEPT)
        kept = {0: CANCELLED, 1: SELECTED} if again == "cancelled" else {0: SELECTED, 1: CANCELLED}
        for number, answered in kept.items():
            await t.wire.send(permission("p", f"s{number}"))
            while (answer := await t.wire.read()).get("id") != "p":
                pass
            assert answer == result("p", answered)


async def test_point_02_permissions_of_the_next_turn_are_asked_again() -> None:
    handler = Recorder()
    handler.answer.set()
    async with talk(handler) as t:
        for stop_reason in ("cancelled", "end_turn"):
            turn = t.prompt()
            asked = await t.wire.expect("session/prompt")
            if stop_reason == "cancelled":
                t.client.cancel("s1")
                await t.wire.expect("session/cancel")
            else:
                await t.wire.send(permission("p"))
                assert await t.wire.read() == result("p", SELECTED)
            await t.wire.send(result(asked["id"], {"stopReason": stop_reason}))
            assert (await turn.wait()).stop_reason == stop_reason


async def test_point_02_a_turn_that_ends_as_a_cancelled_request_is_a_cancelled_turn() -> None:
    async with talk(ClientHandler()) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        t.client.cancel("s1")
        await t.wire.send(failure(asked["id"], -32800))
        assert (await turn.wait()).stop_reason == "cancelled"


async def test_point_02_a_turn_that_ends_with_another_error_is_an_error() -> None:
    async with talk(ClientHandler()) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        t.client.cancel("s1")
        await t.wire.send(failure(asked["id"], -32603))
        with pytest.raises(RpcError):
            await turn.wait()


# 3, 4: early and late updates are delivered like all others


async def test_point_03_updates_of_a_session_that_is_not_yet_known_are_delivered_in_order() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        call = t.start(lambda: t.client.new_session(s.NewSessionRequest(cwd="/w", mcp_servers=())))
        asked = await t.wire.expect("session/new")
        await t.wire.send(
            chunk("early 1", "new"), chunk("early 2", "new"), result(asked["id"], {"sessionId": "new"})
        )
        await call.wait()
        assert [
            (update.session_id, text) for update, text in zip(handler.updates, handler.texts, strict=True)
        ] == [
            ("new", "early 1"),
            ("new", "early 2"),
        ]


async def test_point_04_late_updates_are_delivered_and_harm_no_turn() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        for number in range(2):
            turn = t.prompt()
            asked = await t.wire.expect("session/prompt")
            await t.wire.send(result(asked["id"], END), chunk(f"late {number}"), chunk("other", "s2"))
            await turn.wait()
            await handler.wait_until(lambda: handler.texts[-1:] == ["other"])
        assert handler.texts == ["late 0", "other", "late 1", "other"]
        assert [update.session_id for update in handler.updates] == ["s1", "s2", "s1", "s2"]
        assert handler.reports == []


# 5: nothing blocks the reader


async def test_point_05_a_handler_that_waits_for_the_agent_blocks_nothing() -> None:
    class Asks(Recorder):
        async def request_permission(
            self, request: s.RequestPermissionRequest, /
        ) -> s.RequestPermissionResponse:
            await t.client.ext_call("_what_is_this")
            return await super().request_permission(request)

    handler = Asks()
    handler.answer.set()
    async with talk(handler) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        await t.wire.send(permission("p"))
        question = await t.wire.expect("_what_is_this")
        await t.wire.send(*(chunk(str(number)) for number in range(5000)), result(asked["id"], END))
        await turn.wait()
        assert len(handler.updates) == 5000
        await t.wire.send(result(question["id"], {}))
        assert await t.wire.read() == result("p", SELECTED)


# 6: unknown updates


async def test_point_06_an_unknown_update_surfaces_and_the_turn_goes_on() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        unknown = {"sessionUpdate": "weather", "sky": "blue"}
        broken = {"sessionUpdate": "agent_message_chunk", "content": 5}
        await t.wire.send(
            chunk("a"),
            notification("session/update", {"sessionId": "s1", "update": unknown}),
            notification("session/update", {"sessionId": "s1", "update": broken}),
            notification("session/update", {"update": unknown}),
            chunk("b"),
            result(asked["id"], END),
        )
        await turn.wait()
        kinds = [type(update.update) for update in handler.updates]
        assert kinds == [s.AgentMessageChunk, s.UnknownUpdate, s.InvalidUpdate, s.AgentMessageChunk]
        assert len(handler.reports) == 1


# 7: tool calls that were not announced


async def test_point_07_an_update_of_an_unseen_tool_call_is_delivered() -> None:
    handler = Recorder()
    handler.answer.set()
    async with talk(handler) as t:
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "unseen", "status": "completed"}
        await t.wire.send(
            notification("session/update", {"sessionId": "s1", "update": update}), permission("p")
        )
        await t.wire.read()
        assert handler.updates[0].update == s.ToolCallProgress(tool_call_id="unseen", status="completed")
        (asked,) = handler.asked
        assert isinstance(asked, s.RequestPermissionRequest)
        assert (asked.tool_call.tool_call_id, asked.tool_call.title) == ("c1", "rm")


# 9: framing


async def test_point_09_a_line_of_several_megabytes_is_read() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        await t.wire.send(chunk("\u00e9" * 4_000_000), chunk("end"))
        await handler.wait_until(lambda: len(handler.updates) == 2)
        assert len(handler.texts[0]) == 4_000_000


# 10: noise


async def test_point_10_noise_on_standard_output_is_reported_and_never_answered() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        noise = [
            b"Welcome to the agent!",
            b"[1,2]",
            b"42",
            b'"text"',
            b"{}",
            b'{"id":7}',
            b"\xff\xfe",
            b'{"id":9,"result":1}',
        ]
        await t.wire.transport.send(b"\n".join(noise) + b"\n\n  \r\n" + to_bytes(chunk("a")))
        await handler.wait_until(lambda: handler.texts == ["a"])
        assert [report.line for report in handler.reports] == noise
        t.client.ext_notify("_first")
        await t.wire.expect("_first")


# 13: nothing ungated is sent (every call: test_acp_client.py)


async def test_point_13_a_turn_that_the_agent_cannot_take_is_not_started() -> None:
    image = s.PromptRequest(session_id="s1", prompt=(s.ImageContent(data="", mime_type="image/png"),))
    async with talk(ClientHandler()) as t:
        with pytest.raises(CapabilityMissing):
            t.client.start_prompt(image, lambda _: None)
        t.client.ext_notify("_first")
        await t.wire.expect("_first")


# 14: ids


@pytest.mark.parametrize("id_", [0, 1, -7, "0", "one", "", None])
async def test_point_14_ids_are_echoed_with_their_type_and_never_mixed_with_ours(id_: object) -> None:
    handler = Recorder()
    async with talk(handler) as t:
        first, second = t.prompt(), t.prompt("other", "s2")
        asked = {
            message["params"]["sessionId"]: message for message in [await t.wire.read(), await t.wire.read()]
        }
        assert {message["id"] for message in asked.values()} == {0, 1}
        await t.wire.send(permission(id_))
        await handler.wait_until(lambda: len(handler.asked) == 1)
        await t.wire.send(
            result(asked["s2"]["id"], END), result(asked["s1"]["id"], {"stopReason": "refusal"})
        )
        assert (await first.wait()).stop_reason == "refusal"
        assert (await second.wait()).stop_reason == "end_turn"
        handler.answer.set()
        answer = await t.wire.read()
        assert (type(answer["id"]), answer["id"]) == (type(id_), id_)


async def test_point_14_answers_to_ids_of_another_type_are_not_answers() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        turn = t.prompt()
        await t.wire.expect("session/prompt")
        await t.wire.send(result("0", END), result(None, END), result(0, {"stopReason": "refusal"}))
        assert (await turn.wait()).stop_reason == "refusal"
        assert len(handler.reports) == 2


# 15: option ids


@pytest.mark.parametrize("option", ["allow_once", "", "Yes"])
async def test_point_15_an_option_that_was_not_offered_is_never_sent(option: str) -> None:
    handler = Recorder()
    handler.option = option
    handler.answer.set()
    async with talk(handler) as t:
        await t.wire.send(permission("p"))
        answer = await t.wire.read()
        assert answer["error"]["code"] == -32603
        assert "was not offered" in answer["error"]["message"]


# 16: $/cancel_request


async def test_point_16_a_request_that_is_cancelled_gets_one_answer() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        await t.wire.send(permission("p"))
        await handler.wait_until(lambda: len(handler.asked) == 1)
        cancel = notification("$/cancel_request", {"requestId": "p"})
        await t.wire.send(cancel, cancel, notification("$/cancel_request", {"requestId": "unknown"}))
        answer = await t.wire.read()
        assert (answer["id"], answer["error"]["code"]) == ("p", -32800)
        await t.wire.send(cancel, notification("$/anything", {}))
        handler.answer.set()
        await anyio.wait_all_tasks_blocked()
        t.client.ext_notify("_nothing_else_was_written")
        await t.wire.expect("_nothing_else_was_written")


async def test_point_16_both_kinds_of_cancellation_together_give_one_answer() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        turn = t.prompt()
        asked = await t.wire.expect("session/prompt")
        await t.wire.send(permission("p"))
        await handler.wait_until(lambda: len(handler.asked) == 1)
        t.client.cancel("s1")
        await t.wire.send(
            notification("$/cancel_request", {"requestId": "p"}),
            result(asked["id"], {"stopReason": "cancelled"}),
        )
        await turn.wait()
        await t.wire.expect("session/cancel")
        assert await t.wire.read() == result("p", CANCELLED)
        t.client.ext_notify("_nothing_else_was_written")
        await t.wire.expect("_nothing_else_was_written")


# 17: cancelling the task that awaits a prompt


async def test_point_17_a_cancelled_prompt_cancels_the_turn_and_waits_for_its_end() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        turn = t.prompt("first")
        asked = await t.wire.expect("session/prompt")
        await t.wire.send(permission("p"))
        await handler.wait_until(lambda: len(handler.asked) == 1)
        turn.scope.cancel()
        await t.wire.expect("session/cancel")
        assert await t.wire.read() == result("p", CANCELLED)
        following = t.prompt("second")
        await anyio.wait_all_tasks_blocked()
        assert not turn.done
        await t.wire.send(chunk("last words"), result(asked["id"], {"stopReason": "cancelled"}))
        await turn.wait_ended()
        assert handler.texts == ["last words"]
        asked = await t.wire.expect("session/prompt")
        assert asked["params"]["prompt"][0]["text"] == "second"
        await t.wire.send(result(asked["id"], END))
        assert (await following.wait()).stop_reason == "end_turn"


async def test_point_17_a_cancelled_prompt_at_the_end_of_everything_still_ends_well() -> None:
    class Slow(AgentHandler):
        def __init__(self) -> None:
            self.cancelled = False

        def connected(self, client: AgentSide, /) -> None:
            self.client = client

        async def prompt(self, request: s.PromptRequest, /) -> s.PromptResponse:
            self.client.update("s1", s.AgentMessageChunk(content=s.TextContent(text="begun")))
            try:
                await anyio.sleep_forever()
                raise AssertionError
            finally:
                self.cancelled = True

    agent, handler = Slow(), Recorder()
    ours, theirs = memory_transport_pair()
    with anyio.fail_after(LIMIT):
        async with serve_agent(theirs, agent):
            with anyio.CancelScope() as scope:
                async with connect(ours, handler) as client, anyio.create_task_group() as tasks:
                    tasks.start_soon(client.prompt, prompt())
                    await handler.wait_until(lambda: handler.texts == ["begun"])
                    scope.cancel()
            assert agent.cancelled


# 18: the end of the agent


async def test_point_18_the_death_of_the_agent_fails_every_call_and_says_why() -> None:
    code = "import sys; sys.stdin.readline(); sys.stdin.readline(); sys.exit('out of memory')"
    errors: list[ProcessExited] = []

    with anyio.fail_after(LIMIT):
        async with stdio_transport([sys.executable, "-ISc", code]) as transport, connect(transport) as client:

            async def ask() -> None:
                with pytest.raises(ProcessExited) as caught:
                    await client.prompt(prompt()) if errors else await client.ext_call("_x")
                errors.append(caught.value)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                tasks.start_soon(ask)
            await ask()
    assert [(error.exit_code, error.stderr_tail) for error in errors] == [(1, "out of memory\n")] * 3


# 19: load and resume


@pytest.mark.parametrize("answer", [None, {}, {"modes": None, "configOptions": None}])
async def test_point_19_a_replay_comes_before_the_answer_which_may_be_null(answer: Json | None) -> None:
    handler = Recorder()
    ask = s.LoadSessionRequest(session_id="old", cwd="/w", mcp_servers=())
    async with talk(handler) as t:
        await t.initialize({"agentCapabilities": {"loadSession": True}})
        call = t.start(lambda: t.client.load_session(ask))
        asked = await t.wire.expect("session/load")
        assert asked["params"] == {"sessionId": "old", "cwd": "/w", "mcpServers": []}
        await t.wire.send(chunk("replayed", "old"), result(asked["id"], answer))
        assert await call.wait() == s.LoadSessionResponse()
        assert handler.texts == ["replayed"]


# 20: logins


async def test_point_20_a_login_that_is_needed_is_an_error_with_its_code_and_the_retry_works() -> None:
    methods = [
        {"id": "browser", "name": "Browser"},
        {"id": "tty", "name": "Terminal", "type": "terminal", "args": ["login"], "env": {"A": "b"}},
    ]
    new = s.NewSessionRequest(cwd="/w", mcp_servers=())
    async with talk(ClientHandler()) as t:
        await t.initialize({"authMethods": methods})
        call = t.start(lambda: t.client.new_session(new))
        asked = await t.wire.expect("session/new")
        await t.wire.send(failure(asked["id"], -32000, "Authentication required"))
        with pytest.raises(RpcError) as caught:
            await call.wait()
        assert caught.value.code == -32000
        terminal = t.client.agent.auth_methods[1]
        assert isinstance(terminal, s.AuthMethodTerminal)
        assert (terminal.args, terminal.env) == (("login",), {"A": "b"})
        for refused in ("tty", "unknown"):
            with pytest.raises(CapabilityMissing):
                await t.client.authenticate(s.AuthenticateRequest(method_id=refused))
        login = t.start(lambda: t.client.authenticate(s.AuthenticateRequest(method_id="browser")))
        asked = await t.wire.expect("authenticate")
        await t.wire.send(result(asked["id"], None))
        await login.wait()
        retry = t.start(lambda: t.client.new_session(new))
        asked = await t.wire.expect("session/new")
        await t.wire.send(result(asked["id"], {"sessionId": "s1"}))
        await retry.wait()


# 25: errors and extensions


@pytest.mark.parametrize("modes", [None, s.ElicitationCapabilities()])
@pytest.mark.parametrize("mode", ["form", "url", "telepathy"])
async def test_point_25_an_elicitation_that_was_not_advertised_is_refused(
    mode: str, modes: s.ElicitationCapabilities | None
) -> None:
    ask = {"sessionId": "s1", "message": "?", "mode": mode, "elicitationId": "e", "url": "https://x"}
    async with talk(Recorder()) as t:
        await t.initialize(client=s.ClientCapabilities(elicitation=modes))
        schema: Json = {"type": "object", "properties": {}}
        await t.wire.send(request("e", "elicitation/create", {**ask, "requestedSchema": schema}))
        assert (await t.wire.read())["error"]["code"] == -32602


async def test_point_25_unknown_requests_are_refused_and_unknown_notifications_are_not_answered() -> None:
    handler = Recorder()
    async with talk(handler) as t:
        await t.wire.send(
            notification("session/unheard_of", {}),
            notification("$/progress", {}),
            notification("_vendor/note", {"x": 1}),
            notification("elicitation/complete", {}),
            notification("elicitation/complete", {"elicitationId": "e"}),
            notification("elicitation/complete", {"elicitationId": "e"}),
            request("r", "session/unheard_of", {}),
        )
        answer = await t.wire.read()
        assert (answer["id"], answer["error"]["code"]) == ("r", -32601)
        await t.wire.send(request("x", "_vendor/ask", {}))
        answer = await t.wire.read()
        assert (answer["id"], answer["error"]["code"]) == ("x", -32601)
        assert handler.extensions == [
            ("session/unheard_of", {}),
            ("$/progress", {}),
            ("_vendor/note", {"x": 1}),
        ]
        assert handler.completed == ["e", "e"]


async def test_point_25_trace_context_goes_in_the_meta_of_the_params() -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}

    class Echo(ClientHandler):
        async def request_permission(
            self, request: s.RequestPermissionRequest, /
        ) -> s.RequestPermissionResponse:
            return s.RequestPermissionResponse(outcome=s.CancelledPermissionOutcome(), meta=request.meta)

    async with talk(Echo()) as t:
        ask = s.PromptRequest(session_id="s1", prompt=(), meta=trace)
        turn = t.start(lambda: t.client.prompt(ask))
        asked = await t.wire.expect("session/prompt")
        assert asked["params"]["_meta"] == trace
        assert "_meta" not in asked
        question = permission("p")
        question["params"]["_meta"] = {**trace, "vendor/x": [1]}
        await t.wire.send(question, result(asked["id"], END))
        assert await t.wire.read() == result("p", {**CANCELLED, "_meta": {**trace, "vendor/x": [1]}})
        await turn.wait()
