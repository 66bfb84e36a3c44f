"""Errors carry what they know, through pickles too, and say what to do next."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import anyio
import pytest
from stream.wire_agent import answer, wire_agent

from thinkwell import errors, open_agent
from thinkwell.errors import ThinkwellError
from thinkwell.testing import ScriptedAgent, script
from thinkwell_acp import (
    FrameTooLong,
    ProcessExited,
    RpcError,
    Transport,
    memory_transport_pair,
)
from thinkwell_acp import schema as s

LOGINS = (
    errors.AuthMethod(id="a", name="A", description="opens"),
    errors.AuthMethod(
        id="b", name="B", type="terminal", command=("npx", "a b", "login"), env={"K;": "$(v)", "L": "l"}
    ),
    errors.AuthMethod(id="c", name="C", type="terminal"),
)

EXAMPLES: tuple[ThinkwellError, ...] = (
    errors.ThinkwellError("something"),
    errors.AgentError("something"),
    errors.ResultError("something"),
    errors.ToolError("try again"),
    errors.AgentNotFound("claude", "no npx"),
    errors.AgentStartFailed("claude", "it exited", stderr_tail="oh\n", exit_code=3, command=["npx", "a b"]),
    errors.AgentStartFailed("claude", "it exited"),
    errors.AgentStartFailed(
        "claude", "npx exited", phase="installing", version="1.2.3", next_command="npx --yes claude@1.2.3"
    ),
    errors.AgentNotFound("goose", "there is no program goose", next_command="brew install goose"),
    errors.AgentExited(3, "oh\n"),
    errors.AgentExited(-9),
    errors.AgentExited(-9, "oh\n", agent="odd", ended_because="agent.kill() was called"),
    errors.AgentExited(None, reason="a line of more than 3 bytes"),
    errors.AgentClosed(),
    errors.SessionUnusable("s1"),
    errors.LoginRequired("claude", LOGINS),
    errors.LoginRequired("claude", []),
    errors.LoginFailed("claude", "b", "its command exited with code 3", 3),
    errors.LoginFailed("claude", "a", "the window was closed"),
    errors.ModelNotOffered("huge", ["swift", "large"]),
    errors.CapabilityMissing("promptCapabilities.image", "an image"),
    errors.AgentReported(-32603, "no", {"why": ["busy"]}),
    errors.AgentReported(-32603, "no"),
    errors.AgentReported(None, "no"),
    errors.Overloaded(None, "at capacity"),
    errors.Overloaded(-32603, "at capacity", {"a": 1}, retry_after=2.5),
    errors.QuotaExhausted(-32603, "no credit"),
    errors.QuotaExhausted(None, "no credit", resets_at=1795771800.0),
    errors.QuotaExhausted(None, "no credit", resets_at=1e300),
    errors.ContextFull(-32603, "too long"),
    errors.ModelNotFound(None, "no model x"),
    errors.LoginExpired(-32000, "Invalid API key"),
    errors.LoginExpired(-32000, "Invalid API key", agent="claude", methods=LOGINS),
    errors.SessionNotOpened("load", "s1", -32603, "gone", {"why": "old"}),
    errors.SessionNotOpened("new", None, -32603, "no"),
    errors.SessionOpenTimeout("resume", "s1", 1.5),
    errors.SessionClosed(),
    errors.SessionIdReused("odd", "s1"),
    errors.SessionInUse("s1"),
    errors.WrongEventLoop("claude", "the event loop of trio", "thread 'T', without an event loop"),
    errors.AnswerUnreadable("no sessionId"),
    errors.ResultMissing("max_tokens", "so far"),
    errors.ResultMissing("max_turn_requests", ""),
    errors.ResultMissing("end_turn", ""),
    errors.ResultMissing("end_turn", "so far", denied=["lookup"]),
    errors.ResultInvalid({"a": 1}, ["a: no", "b: no"], 4),
    errors.ResultRefused("never"),
    errors.ToolsNotSeen(["http", "stdio"], "which tools?"),
    errors.ToolsNotSeen(("acp",)),
    errors.ThoughtCancelled(),
    errors.ThoughtTimeout(1.5),
    errors.ThoughtTimeout(1.5, idle=True),
    errors.BudgetExceeded("tool_calls", 3, 4),
    errors.QuestionsStopped("five denials", "q7"),
    errors.RunEnded("run-1"),
    errors.SteeringUnsupported("gemini"),
    errors.AnswerInvalid("q7", {"": "no", "size": "too large"}),
    errors.MessageInvalid("question", {"": "no", "question": "a value is required"}, agent="mine"),
    errors.QuestionNotOpen("q7"),
    errors.QuestionNotOpen("q7", ["q8"]),
    errors.McpServerError("no such program", server="files"),
    errors.McpServerError("no text", server="a", source="mcp.json", where="mcpServers.a.url"),
    errors.PolicyError("there is no such key", source="policy.toml", where="rules[1].kind"),
    errors.PolicyError("this is no TOML"),
    errors.ProfileError("claude", "give exactly one of npx, uvx", ["/a/claude.toml"]),
    errors.ProfileError("claude", "give exactly one of npx, uvx"),
    errors.RecordingError("run.ndjson", "it is empty"),
    errors.RecordingCut("run.ndjson", "it ends with line 3"),
    errors.ResultStoreError("jobs.sqlite", "job-17", "it is another program's database; name another file"),
    errors.RecordedFailure("ValueError", "no"),
    errors.RegistryError("registry.json", "it is no JSON"),
    errors.SkillError("notes", "it has no description"),
    errors.BufferOverflow(10),
)


@pytest.mark.parametrize("error", EXAMPLES, ids=repr)
def test_an_error_survives_a_pickle(error: ThinkwellError) -> None:
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(copied) is type(error)
        assert vars(copied) == vars(error)
        assert str(copied) == str(error)
        assert copied.args == error.args


def defined() -> set[type[ThinkwellError]]:
    return {cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, ThinkwellError)}


def test_the_tree_in_the_documentation_is_that_of_the_classes() -> None:
    drawn: set[tuple[str, str]] = set()
    branch = ["Exception"]
    for edge, name in re.findall(r"^    ([│├└─ ]*)(\w+)", errors.__doc__ or "", re.MULTILINE):
        branch[len(edge) // 4 + 1 :] = [name]
        drawn.add((branch[-2], name))
    assert drawn == {(cls.__bases__[0].__name__, cls.__name__) for cls in defined()}


def test_every_error_has_an_example_and_documents_its_attributes() -> None:
    assert defined() == {type(error) for error in EXAMPLES}
    for error in EXAMPLES:
        doc = type(error).__doc__ or ""
        for name in vars(error):
            assert f"{name}:" in doc, (type(error), name)


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (
            errors.AgentExited(3, "oh\n"),
            "exited with code 3 before it had finished; open it again to go on\nThe end of",
        ),
        (errors.AgentExited(-9), "The agent was killed by signal 9"),
        (
            errors.AgentExited(-9, "oh\n", agent="odd", ended_because="agent.kill() was called"),
            "Agent 'odd' was ended by thinkwell, because agent.kill() was called; open it again",
        ),
        (errors.AgentExited(3, agent="odd"), "Agent 'odd' exited with code 3"),
        (errors.AgentExited(None, reason="too long"), "closed the connection (too long) before"),
        (
            errors.ResultMissing("max_tokens", "so far"),
            "ran out of tokens: ask for less, or for a smaller result",
        ),
        (errors.ResultMissing("max_turn_requests", ""), "ran out of model requests"),
        (errors.ResultMissing("end_turn", ""), "it said nothing"),
        (
            errors.ResultMissing("end_turn", "", denied=["a", "b", "c", "d"]),
            "said nothing. It asked for 'a', 'b', 'c' and 1 more, and that was denied",
        ),
        (errors.ResultMissing("end_turn", "", denied=["x" * 81]), f"It asked for '{'x' * 80}', and that"),
        (errors.ResultInvalid({"a": 1}, ["a: no"], 4), "in 4 attempts. The last one was {'a': 1}:\n- a: no"),
        (errors.AgentReported(None, "no"), "The agent reported: no. This comes"),
        (errors.Overloaded(-1, "busy"), "is overloaded: busy [-1]; try again later"),
        (errors.Overloaded(None, "busy", retry_after=2.5), "is overloaded: busy; try again in 2.5 seconds"),
        (errors.QuotaExhausted(None, "no"), "is used up: no; wait until it is renewed, or take another"),
        (
            errors.QuotaExhausted(None, "no", resets_at=1795771800.0),
            "wait until it is renewed on 2026-11-27 at 09:30 UTC, or take another account",
        ),
        (errors.QuotaExhausted(None, "no", resets_at=1e300), "wait until it is renewed, or take"),
        (errors.LoginExpired(None, "no", agent="a"), "any more: no; log in again with its own program"),
        (errors.LoginExpired(None, "no", agent="a", methods=LOGINS[:1]), "again. It offers:\n- a: A (opens)"),
        (errors.LoginRequired("claude", []), "wants a login first. It offers no way: log in with its own"),
        (
            errors.LoginRequired("claude", LOGINS),
            (
                "It offers:\n"
                '- a: A (opens): `await agent.authenticate("a")`, or open_agent(login="a")\n'
                '- b: B: `await thinkwell.login(…, "b")` in a terminal, or type there: '
                "env 'K;=$(v)' L=l npx 'a b' login\n"
                "- c: C: with the agent's own program, in a terminal"
            ),
        ),
        (errors.LoginFailed("claude", "a", "no"), "'a' of agent 'claude' failed: no. Try again"),
        (errors.AgentStartFailed("a", "no", command=["npx", "a b"]), "no\nIts command: npx 'a b'"),
        (errors.AnswerUnreadable("bad"), "cannot be read: bad. Try another version"),
        (errors.McpServerError("no", server="files"), "MCP server 'files': no"),
        (errors.McpServerError("no", server="a", source="f.json", where="x.a"), "f.json: x.a: no"),
        (errors.ToolsNotSeen(["http", "stdio"]), "over http, stdio"),
        (errors.AgentClosed(), "wait for their results, before that"),
        (errors.ThoughtTimeout(1.5), "1.5 seconds"),
        (errors.BufferOverflow(10), "more than 10 events"),
        (errors.SessionUnusable("s1"), "open another session"),
        (errors.AgentReported(-1, "no", {"a": 1}), "no [-1] ({'a': 1})"),
        (errors.ResultRefused("never"), "'never'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_an_error_says(error: ThinkwellError, part: str) -> None:
    assert part in str(error)


class Breaking(Transport):
    """A connection that ends with an error of its own."""

    def __init__(self, inner: Transport, error: Exception) -> None:
        self._inner = inner
        self._error = error

    async def send(self, item: bytes, /) -> None:
        await self._inner.send(item)

    async def receive(self) -> bytes:
        try:
            return await self._inner.receive()
        except anyio.EndOfStream:
            raise self._error from None

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (RpcError(-32000, "Log in"), errors.LoginRequired("odd", (), "it wants a login first (Log in)")),
        (RpcError(-32603, "no", [1]), errors.AgentReported(-32603, "no", [1])),
        (ProcessExited(3, "oh"), errors.AgentExited(3, "oh", agent="odd")),
        (
            FrameTooLong(5),
            errors.AgentExited(None, reason="the other side sent a line of more than 5 bytes", agent="odd"),
        ),
        (anyio.EndOfStream(), errors.AgentExited(None, agent="odd")),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_errors_of_the_protocol_become_ours(wire: Exception, expected: ThinkwellError) -> None:
    ends = script.hangs_up()
    if isinstance(wire, RpcError):
        ends = script.fails(wire.code, wire.message, data=wire.data)
    async with (
        ScriptedAgent(ends).connect() as transport,
        open_agent("odd", transport=Breaking(transport, wire)) as agent,
    ):
        with anyio.fail_after(30), pytest.raises(type(expected)) as caught:
            await agent.think().text("Go").run()
    assert type(caught.value) is type(expected)
    assert vars(caught.value) == vars(expected)


async def test_an_agent_that_is_closed_meanwhile_is_our_own_doing() -> None:
    lists = s.SessionCapabilities(list=s.SessionListCapabilities())
    played = ScriptedAgent(script.hangs(), capabilities=s.AgentCapabilities(session_capabilities=lists))
    async with played.open() as agent:
        with pytest.raises(errors.CapabilityMissing, match=r"authMethods\['key'\]"):
            await agent.authenticate("key")
        stream = agent.think().text("Go").stream()
        await anyio.wait_all_tasks_blocked()
    assert isinstance(stream.result.exception(), errors.AgentClosed)
    with pytest.raises(errors.AgentClosed):
        await agent.list_sessions()


async def test_an_answer_that_cannot_be_read_is_the_agents_error() -> None:
    async with wire_agent() as (agent, wire):
        stream = agent.think().text("Go").stream()
        await wire.write(answer(await wire.expect("session/new"), {"session": "s"}))
        with pytest.raises(errors.AnswerUnreadable) as caught:
            await stream.result
    assert "sessionId" in caught.value.reason


async def test_a_failed_start_says_what_was_printed() -> None:
    ours, theirs = memory_transport_pair()
    await theirs.send(b"Usage: odd\nmore\n")
    await theirs.aclose()
    with pytest.raises(errors.AgentStartFailed, match="Usage: odd"):
        async with open_agent("odd", transport=ours):
            raise AssertionError("it opened")
