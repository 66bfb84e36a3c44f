"""What a scripted agent is beside its steps: connections, settings, checks, failures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio.lowlevel
import pytest
from trio.testing import MockClock

from thinkwell import (
    AgentExited,
    AgentReported,
    AgentStartFailed,
    CapabilityMissing,
    Message,
    SessionNotOpened,
    ThoughtCancelled,
    ToolsNotSeen,
    open_agent,
)
from thinkwell.testing import ScriptedAgent, ScriptFailed, ScriptNotFinished, script
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s
from thinkwell_acp.connection import open_connection

if TYPE_CHECKING:
    from msgspec import Raw

    from thinkwell import Answer, Question
    from thinkwell.testing import Script
    from thinkwell_acp import AcpError


VIRTUAL = pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})])


async def failure(told: Script, **options: object) -> str:
    """Why a run of this script fails, and that the check says the same."""
    played = ScriptedAgent(told)
    with pytest.raises(ScriptFailed) as failed:  # noqa: PT012 - what is left is what is tested
        async with played.open(**options) as agent:  # type: ignore[arg-type]
            with pytest.raises(AgentReported, match="The script failed"):
                await agent.think().text("go").run()
    assert played.checked
    assert not isinstance(failed.value, ScriptNotFinished)
    assert len(failed.value.failures) == 1
    return failed.value.failures[0]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (script.expects("stop"), "turn 1, step 1, expects('stop'): the prompt does not contain it: 'go'"),
        (
            script.says("x").calls("add", {"a": 1}),
            "turn 1, step 2, calls('add', {'a': 1}): the client offers no tool 'add', but none at all",
        ),
        (
            script.asks("May I?", expect="allow_once"),
            "turn 1, step 1, asks('May I?', expect='allow_once'): the client answered reject_once",
        ),
        (
            script.asks_form("Who?", {"type": "object", "properties": {}}),
            (
                "turn 1, step 1, asks_form('Who?', {'type': 'object', 'properties': {}}): "
                "the client refuses: This client did not advertise this mode of elicitation "
                "(it takes forms where it has an on_question=)"
            ),
        ),
        (
            script.reads("/a.py"),
            (
                "turn 1, step 1, reads('/a.py'): "
                "it failed, and no expect_error= allows that: "
                "Method not found: fs/read_text_file (it has files where it has a workspace=)"
            ),
        ),
        (
            script.reads("/a.py", expect="x", expect_error=None),
            (
                "turn 1, step 1, reads('/a.py', expect='x', expect_error=None): the client answered "
                "'Method not found: fs/read_text_file (it has files where it has a workspace=)'"
            ),
        ),
        (
            script.reads("/a.py", expect_error="no such file"),
            (
                "turn 1, step 1, reads('/a.py', expect_error='no such file'): "
                "it failed otherwise: Method not found: fs/read_text_file "
                "(it has files where it has a workspace=)"
            ),
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value.steps[-1].__struct_config__.tag),
)
async def test_the_script_fails_where_the_client_does_otherwise(told: Script, why: str) -> None:
    assert await failure(told) == why


async def test_a_form_that_is_answered_otherwise() -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    told = script.asks_form("Who?", form, expect={"name": "you"})

    def answer(_question: Question) -> Answer:
        return {"name": "I"}

    why = await failure(told, permissions="ask", on_question=answer)
    assert why.endswith("the client answered accept {'name': 'I'}")


@pytest.mark.parametrize(
    ("expected", "why"), [(True, "it did not fail"), ("full", "it did not fail"), (False, None)]
)
async def test_a_tool_that_does_not_fail(expected: bool | str, why: str | None) -> None:
    played = ScriptedAgent(script.calls("nothing", expect_error=expected), complete=False)
    async with played.connect() as transport, open_agent(transport=transport) as agent:

        def nothing() -> None:
            """Do nothing."""

        await agent.think().text("go").tool(nothing).stream().wait()
    assert [reason.split(": ")[-1] for reason in played.failures] == ([why] if why else [])


class OddClient:
    """Answers what no client should."""

    def __init__(self) -> None:
        self.lists = 0
        self.asked = anyio.Event()

    def updates(self, batch: list[s.SessionNotification], /) -> None: ...
    def arrived(self, request: object, /) -> None: ...
    def notification(self, method: str, params: Raw, /) -> None: ...
    def malformed(self, report: object, /) -> None: ...
    def closed(self, reason: AcpError, /) -> None: ...

    async def request(self, id: object, method: str, params: Raw, /) -> object:  # noqa: A002
        match method:
            case "session/request_permission":
                return {"outcome": {"outcome": "selected", "optionId": "mine"}}
            case "mcp/connect":
                return {"connectionId": "mcp"}
            case "mcp/message" if b'"tools/list"' in bytes(params):
                self.lists += 1
                if self.lists > 1:
                    self.asked.set()
                    raise RpcError(-32603, "I forgot them")
                return {"tools": [{"name": "add"}]}
            case "mcp/message":
                return {}
            case _:
                return {"content": 5}


async def test_a_tool_that_is_not_among_those_that_are_offered() -> None:
    def nothing() -> None:
        """Do nothing."""

    played = ScriptedAgent(script.calls("something"))
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        with pytest.raises(AgentReported, match="the client offers no tool 'something', but nothing"):
            await agent.think().text("go").tool(nothing).run()


async def test_a_client_that_chooses_no_option_and_one_that_answers_nonsense() -> None:
    played = ScriptedAgent(script.asks("May I?").stops().reads("/a.py"))
    async with played.connect() as transport, open_connection(transport, OddClient()) as connection:
        await connection.request("initialize", {"protocolVersion": 1})
        opened = await connection.request("session/new", {"cwd": "/", "mcpServers": []})
        known = s.decode(s.NewSessionResponse, opened).session_id
        for session_id, why in ((known, "script failed"), (known, "script failed"), ("x", "no session x")):
            with pytest.raises(RpcError, match=why):
                await connection.request("session/prompt", {"sessionId": session_id, "prompt": []})
    one, other = played.failures
    assert "the client chose 'mine', which is not one of the options" in one
    assert "ReadTextFileResponse" in other
    assert [(given.choice, given.option_id) for given in played.sent.answers] == [("selected", "mine")]


@pytest.mark.parametrize("steering", [False, True])
async def test_a_message_for_a_turn_that_is_not_running(steering: bool) -> None:
    played = ScriptedAgent(script, steering=steering, complete=False)
    async with played.connect() as transport, open_connection(transport, OddClient()) as connection:
        await connection.request("initialize", {"protocolVersion": 1})
        opened = await connection.request("session/new", {"cwd": "/", "mcpServers": []})
        prompt = [{"type": "text", "text": "More"}]
        params = {"sessionId": s.decode(s.NewSessionResponse, opened).session_id, "prompt": prompt}
        asked = partial(connection.request, "_session/steering", params)
        if steering:
            assert s.decode(dict[str, str], await asked())["reason"] == "noRunningTurn"
        else:
            with pytest.raises(RpcError, match="Method not found"):
                await asked()


async def test_a_client_whose_tools_make_no_sense() -> None:
    class Confused(OddClient):
        async def request(self, id: object, method: str, params: Raw, /) -> object:  # noqa: A002
            return {"connectionId": "c"} if method == "mcp/connect" else {"tools": "none"}

    servers = [{"type": "acp", "name": "box", "serverId": "1"}]
    played = ScriptedAgent(script)
    async with played.connect() as transport, open_connection(transport, Confused()) as connection:
        await connection.request("initialize", {"protocolVersion": 1})
        with pytest.raises(RpcError, match="its answer to tools/list is malformed"):
            await connection.request("session/new", {"cwd": "/", "mcpServers": servers})


async def test_a_client_that_forgets_its_tools() -> None:
    played, client = ScriptedAgent(script.calls("add")), OddClient()
    server = {"type": "acp", "name": "tools", "serverId": "1"}
    async with played.connect() as transport, open_connection(transport, client) as connection:
        await connection.request("initialize", {"protocolVersion": 1})
        servers = [server, {"name": "n", "command": "c"}]
        opened = await connection.request("session/new", {"cwd": "/", "mcpServers": servers})
        for id_, method in (
            ("mcp", "progress"),
            ("other", "tools/list_changed"),
            ("mcp", "tools/list_changed"),
        ):
            changed = {"connectionId": id_, "method": f"notifications/{method}"}
            connection.notify("mcp/message", changed)
        with anyio.fail_after(30):
            await client.asked.wait()
        known = s.decode(s.NewSessionResponse, opened).session_id
        await connection.request("session/prompt", {"sessionId": known, "prompt": []})
    assert client.lists == 2
    played.check()


async def test_more_prompts_than_turns() -> None:
    played = ScriptedAgent(script.says("a"))
    with pytest.raises(ScriptFailed, match="has 1 turn, and this is prompt 2: 'more'"):  # noqa: PT012
        async with played.open() as agent:
            assert await agent.think().text("go").run() == "a"
            with pytest.raises(AgentReported, match="the script has 1 turn"):
                await agent.think().text("more").run()
    with pytest.raises(ScriptFailed, match="the script has 0 turns"):
        async with ScriptedAgent(script).open() as agent:
            await agent.think().text("go").stream().wait()


async def test_a_run_that_ends_before_the_script() -> None:
    played = ScriptedAgent(script.says("a").stops().says("b").returns({"x": 1}))
    with pytest.raises(ScriptNotFinished) as early:
        async with played.open() as agent:
            assert await agent.think().text("go").run() == "a"
    assert str(early.value) == (
        "2 steps were not played:\n  turn 2, step 1: says('b')\n  turn 2, step 2: returns({'x': 1})"
    )
    assert [(left.turn, left.step) for left in early.value.unplayed] == [(2, 1), (2, 2)]
    assert repr(played) == "<ScriptedAgent, 2 of 4 steps to play>"


async def test_an_exception_of_the_block_is_not_replaced() -> None:
    played = ScriptedAgent(script.says("a"))
    with pytest.raises(ZeroDivisionError):
        async with played.open():
            _ = 1 / 0
    assert not played.checked
    with pytest.raises(ScriptNotFinished, match="1 step was not played"):
        played.check()


async def test_connections_go_on_in_the_script() -> None:
    played = ScriptedAgent(script.says("a").stops().says("b"))
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        assert await agent.think().text("a").run() == "a"
    async with played.open() as agent:
        assert await agent.think().text("b").run() == "b"
    assert [prompt.text for prompt in played.sent.prompts] == ["a", "b"]
    assert len({prompt.session_id for prompt in played.sent.prompts}) == 2


@pytest.mark.parametrize("told", [script.says("a").hangs_up(), script.says("a").crashes()])
async def test_an_agent_that_goes_away(told: Script) -> None:
    played = ScriptedAgent(told + script.says("b"))
    async with played.connect() as transport, open_agent(transport=transport) as agent:
        stream = agent.think().text("go").stream()
        assert [event.text async for event in stream if isinstance(event, Message)] == ["a"]
        with pytest.raises(AgentExited):
            await stream.result
    async with played.open() as agent:
        assert await agent.think().text("go").run() == "b"


async def test_a_question_is_answered_before_the_turn_is_cancelled() -> None:
    played = ScriptedAgent(script.asks("May I?", expect="cancelled").says("never"), complete=False)
    async with played.open(permissions="ask") as agent:
        stream = agent.think().text("go").stream()
        async for _ in stream:
            break
        while not stream.view.questions:
            await anyio.lowlevel.checkpoint()
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
    assert [given.choice for given in played.sent.answers] == ["cancelled"]
    assert [str(left.what) for left in played.unplayed] == ["says('never')"]


@VIRTUAL
async def test_a_deaf_agent_is_left() -> None:
    played = ScriptedAgent(script.hangs(deaf=True))
    async with played.open() as agent:
        stream = agent.think().text("go").stream()
        while not played.sent.prompts:
            await anyio.lowlevel.checkpoint()
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result


async def test_updates_before_the_session_is_opened() -> None:
    played = ScriptedAgent(script.says("b"), before_session=script.thinks("a"))
    async with played.open() as agent:
        stream = agent.think().text("go").stream()
        assert [str(getattr(event, "text", "")) async for event in stream] == ["a", "b"]
    with pytest.raises(ValueError, match="before_session: stops"):
        ScriptedAgent(script, before_session=script.stops())


async def test_what_the_agent_says_of_itself() -> None:
    info = s.Implementation(name="mine", version="7")
    played = ScriptedAgent(script, capabilities=s.AgentCapabilities(load_session=True), info=info)
    async with played.open() as agent:
        assert agent.info == info
        assert agent.capabilities.load_session
        with pytest.raises(CapabilityMissing):
            async with agent.session(resume="x"):
                pass
    async with ScriptedAgent(script).open() as agent:
        assert agent.info is not None
        assert agent.info.name == "scripted"
        assert agent.capabilities.mcp_capabilities.acp


async def test_requests_that_fail() -> None:
    error = RpcError(-32050, "not today", {"why": "so"})
    played = ScriptedAgent(script, fails_at={"session/new": error})
    async with played.open() as agent:
        with pytest.raises(AgentReported) as reported:
            await agent.think().text("go").run()
        assert (reported.value.code, reported.value.data) == (-32050, {"why": "so"})
    with pytest.raises(AgentStartFailed, match="not today"):
        async with ScriptedAgent(script, fails_at={"initialize": error}).open():
            pass


@VIRTUAL
async def test_an_agent_that_never_fetches_the_tools() -> None:
    played = ScriptedAgent(script.says("I see no tool"), lists_tools=False)
    async with played.open() as agent:
        with pytest.raises(ToolsNotSeen):
            await agent.think(int).text("go").run()


OPENS_OLD = s.AgentCapabilities(
    load_session=True,
    mcp_capabilities=s.McpCapabilities(acp=True),
    session_capabilities=s.SessionCapabilities(resume=s.SessionResumeCapabilities()),
)


async def test_old_sessions() -> None:
    told = script.says("a").stops().says("b").stops()
    played = ScriptedAgent(told, capabilities=OPENS_OLD, before_session=script.says("before"))
    async with played.open() as agent:
        async with agent.session(load="one") as session:
            assert [message.text for message in session.history()] == ["before"]
            assert await session.think().text("go").run() == "a"
        async with agent.session(resume="two") as session:
            assert await session.think().text("go").run() == "b"
    assert [(opened.method, opened.asked_id) for opened in played.sent.sessions] == [
        ("session/load", "one"),
        ("session/resume", "two"),
    ]
    async with ScriptedAgent(
        script, capabilities=OPENS_OLD, fails_at={"session/load": RpcError(1, "x")}
    ).open() as agent:
        with pytest.raises(SessionNotOpened):
            async with agent.session(load="one"):
                pass
