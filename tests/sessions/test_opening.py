"""Old sessions: loaded, resumed, forked, listed and deleted, and never replaced by a new one."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from msgspec.structs import replace
from scripted import EVERY_SESSION_CALL, Played, Proceed, Turn, scripted
from stream.wire_agent import Json, answer, refuse, say, update, wire_agent

from thinkwell import Agent, AgentClosed, AgentReported, CapabilityMissing, LoginRequired
from thinkwell.errors import (
    AnswerUnreadable,
    SessionIdReused,
    SessionInUse,
    SessionNotOpened,
    SessionOpenTimeout,
)
from thinkwell_acp import RpcError
from thinkwell_acp import schema as s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from thinkwell import Session, ThoughtEvent

LOADS: Json = {"loadSession": True, "mcpCapabilities": {"acp": True}}

REMEMBERS: Json = {**LOADS, "sessionCapabilities": {"resume": {}, "fork": {}, "close": {}}}


async def done(turn: Turn) -> None:
    turn.say("Done")


def user(text: str) -> s.UserMessageChunk:
    return s.UserMessageChunk(content=s.TextContent(text=text))


def says(text: str) -> s.AgentMessageChunk:
    return s.AgentMessageChunk(content=s.TextContent(text=text))


def old(scripts: list[Any] | None = None, **options: Any) -> Played:
    """An agent that remembers sessions."""
    return Played(scripts or [done], capabilities=EVERY_SESSION_CALL, **options)


async def take(events: AsyncIterator[ThoughtEvent], count: int) -> list[ThoughtEvent]:
    """Take the next events."""
    with anyio.fail_after(30):
        return [await anext(events) for _ in range(count)]


def told(events: list[ThoughtEvent]) -> list[str]:
    return [getattr(event, "text", "") or event.type for event in events]


# Loading


async def test_a_loaded_session_repeats_its_history_on_its_own_stream_and_goes_on() -> None:
    handler = old()
    handler.replay = [user("What?"), says("That.")]
    async with scripted(agent=handler) as agent, agent.session(load="old") as session:
        assert session.id == "old"
        stream = session.think().text("Go on").stream()
        assert await stream.result == "Done"
        assert told(await take(session.events(), 4)) == ["replay_start", "What?", "That.", "replay_end"]
        assert [event.type async for event in stream] == ["message"]
        assert stream.late == ()
    assert handler.asked == ["session/load", "session/close"]
    assert handler.sent.prompts[0].session_id == "old"


async def test_what_is_repeated_after_the_answer_is_history_too() -> None:
    handler = old()
    handler.replay = [user("1"), says("2")]
    async with scripted(agent=handler) as agent, agent.session(load="old") as session:
        handler.client.update("old", user("3"))
        handler.client.update("old", s.SessionInfoUpdate(title="T"))
        handler.client.update("old", says("4"))
        events = session.events()
        kinds = ["replay_start", "1", "2", "replay_end", "replay_start", "3", "session_info", "4"]
        assert told(await take(events, 8)) == kinds
        stream = session.think().text("Go on").stream()
        await stream.wait()
        assert told(await take(events, 1)) == ["replay_end"]
        assert stream.view.messages == ("Done",)
        assert [(m.text, m.turn, m.replayed) for m in session.history()] == [
            *((text, 0, True) for text in "1234"),
            ("Go on", 1, False),
            ("Done", 1, False),
        ]


async def test_a_replay_that_goes_on_when_the_session_is_left_ends_with_it() -> None:
    handler = old()
    async with scripted(agent=handler) as agent:
        async with agent.session(load="old") as session:
            handler.client.update("old", says("more"))
            events = session.events()
            assert told(await take(events, 4)) == ["replay_start", "replay_end", "replay_start", "more"]
        assert [event.type async for event in events] == ["replay_end"]


async def test_news_of_the_session_that_come_before_a_turn_are_no_replay() -> None:
    handler = old()
    async with scripted(agent=handler) as agent, agent.session(resume="old") as session:
        handler.client.update("old", s.SessionInfoUpdate(title="T"))
        assert told(await take(session.events(), 1)) == ["session_info"]
        assert await session.think().text("Go").run() == "Done"
        handler.client.update("old", says("late"))
        assert told(await take(session.events(), 2)) == ["session_info", "late"]


async def test_an_agent_that_repeats_history_on_resume_is_understood() -> None:
    handler = old()
    async with scripted(agent=handler) as agent, agent.session(resume="old") as session:
        handler.client.update("old", says("before"))
        assert told(await take(session.events(), 2)) == ["replay_start", "before"]
        assert [message.replayed for message in session.history()] == [True]


async def test_a_load_may_be_answered_with_null() -> None:
    async with wire_agent(capabilities=LOADS) as (agent, wire), anyio.create_task_group() as tasks:

        async def play() -> None:
            request = await wire.expect("session/load")
            assert request["params"]["sessionId"] == "old"
            await wire.write(say("before", "old"), answer(request, None))

        tasks.start_soon(play)
        async with agent.session(load="old") as session:
            assert (session.modes, session.options) == ((), ())
            assert told(await take(session.events(), 3)) == ["replay_start", "before", "replay_end"]


async def test_updates_for_another_session_during_a_load_are_not_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def mix(request: s.LoadSessionRequest, proceed: Proceed) -> object:
        for session_id in ("session-1", "stranger", "old"):
            handler.client.update(session_id, says(f"for {session_id}"))
        return await proceed(request)

    handler = Played([done], capabilities=EVERY_SESSION_CALL, answers={"session/load": mix})
    async with (
        scripted(agent=handler) as agent,
        agent.session() as first,
        agent.session(load="old") as second,
    ):
        assert told(await take(second.events(), 3)) == ["replay_start", "for old", "replay_end"]
        assert told(await take(first.events(), 1)) == ["for session-1"]
    assert "sent 1 updates for unknown session 'stranger'" in caplog.text


async def test_a_load_that_fails_after_half_of_the_replay_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "thinkwell")

    async def fail_once(request: s.LoadSessionRequest, proceed: Proceed) -> object:
        if len(handler.sent.sessions) == 1:
            handler.client.update(request.session_id, says("half"))
            raise RpcError(-32603, "the file is broken", {"at": 7})
        return await proceed(request)

    handler = Played([done], capabilities=EVERY_SESSION_CALL, answers={"session/load": fail_once})
    async with scripted(agent=handler) as agent:
        with pytest.raises(SessionNotOpened) as caught:
            async with agent.session(load="old"):
                raise AssertionError("it opened")
        assert (caught.value.how, caught.value.session_id) == ("load", "old")
        assert (caught.value.code, caught.value.data) == (-32603, {"at": 7})
        assert "'old'" in str(caught.value)
        assert "the file is broken" in str(caught.value)
        assert isinstance(caught.value, AgentReported)
        handler.client.update("old", says("nobody asked"))
        with pytest.raises(RpcError):  # when it is answered, the update was read
            await handler.client.connect_mcp(s.ConnectMcpRequest(server_id="none"))
        assert "sent 1 updates for unknown session 'old'" in caplog.text
        async with agent.session(load="old") as session:  # it is not in use
            assert told(await take(session.events(), 2)) == ["replay_start", "replay_end"]
            assert await session.think().text("Go").run() == "Done"
    assert handler.asked == ["session/load", "session/load", "session/close"]


# Resuming and forking


@pytest.mark.parametrize("how", ["load", "resume", "fork"])
async def test_a_failure_never_becomes_a_new_session(how: str) -> None:
    async with wire_agent(capabilities=REMEMBERS) as (agent, wire), anyio.create_task_group() as tasks:

        async def play() -> None:
            request = await wire.expect(f"session/{how}")
            await wire.write(refuse(request, "I forgot", -32002))

        tasks.start_soon(play)
        with pytest.raises(SessionNotOpened, match="I forgot") as caught:
            async with agent.session(**{how: "old"}):  # type: ignore[arg-type]
                raise AssertionError("it opened")
        assert (caught.value.how, caught.value.session_id, caught.value.code) == (how, "old", -32002)
        assert wire.unread == []


async def test_a_login_that_is_missing_is_said_as_such() -> None:
    logged_out = {"session/resume": RpcError(-32000, "Authentication required")}
    async with scripted(agent=Played(capabilities=EVERY_SESSION_CALL, fails_at=logged_out)) as agent:
        with pytest.raises(LoginRequired):
            async with agent.session(resume="old"):
                raise AssertionError("it opened")


async def test_a_resumed_session_goes_on_without_a_replay() -> None:
    handler = old()
    async with scripted(agent=handler) as agent:
        async with agent.session(resume="old") as session:
            assert await session.think().text("Go on").run() == "Done"
        assert [event.type async for event in session.events()] == []
    assert handler.asked == ["session/resume", "session/close"]


async def test_a_fork_and_its_source_are_used_at_once() -> None:
    both = anyio.Event()
    running: set[str] = set()

    async def script(turn: Turn) -> None:
        running.add(turn.session_id)
        if len(running) == 2:
            both.set()
        await both.wait()
        turn.say(f"{turn.session_id}: {turn.text}")

    handler = old([script])
    with anyio.fail_after(30):
        async with (
            scripted(agent=handler) as agent,
            agent.session() as source,
            source.fork() as fork,
            agent.session(fork=source.id) as other,
        ):
            assert (source.id, fork.id, other.id) == ("session-1", "session-2", "session-3")
            assert fork.cwd == source.cwd
            streams = [session.think().text("Go").stream() for session in (source, fork)]
            texts = [(await stream.result).split(":")[0] for stream in streams]
            assert texts == [source.id, fork.id]
            with pytest.raises(ValueError, match="keeps the folder"):
                fork.think().cwd(".").text("Go").stream()
    assert sorted(handler.sent.closed) == ["session-1", "session-2", "session-3"]


async def test_a_session_that_is_open_is_not_opened_again() -> None:
    handler = old()
    async with scripted(agent=handler) as agent:
        async with agent.session() as session:
            for again in (agent.session(load=session.id), agent.session(resume=session.id)):
                with pytest.raises(SessionInUse, match="session-1"):
                    async with again:
                        raise AssertionError("it opened")
            assert await session.think().text("Go").run() == "Done"
        async with agent.session(resume=session.id) as again_open:
            assert again_open.id == session.id
    assert handler.asked == ["session/new", "session/close", "session/resume", "session/close"]


async def test_an_agent_that_gives_one_id_to_two_sessions_is_refused() -> None:
    async def forget(request: s.ForkSessionRequest, _proceed: Proceed) -> s.ForkSessionResponse:
        return s.ForkSessionResponse(session_id=request.session_id)

    handler = Played([done], capabilities=EVERY_SESSION_CALL, answers={"session/fork": forget})
    async with scripted(agent=handler) as agent, agent.session() as session:
        with pytest.raises(SessionIdReused, match="gave the same session id twice: 'session-1' is"):
            async with session.fork():
                raise AssertionError("it opened")
        assert await session.think().text("Go").run() == "Done"


async def test_runs_whose_sessions_have_one_id_say_whose_fault_that_is() -> None:
    async def forget(request: s.NewSessionRequest, proceed: Proceed) -> s.NewSessionResponse:
        opened: s.NewSessionResponse = await proceed(request)
        return replace(opened, session_id="session-1")

    async with scripted(agent=Played([done], answers={"session/new": forget})) as agent:
        streams = [agent.think().text("Go").stream() for _ in range(3)]
        for stream in streams:
            await stream.wait()
        assert await agent.think().text("Go").run() == "Done"
    refused = [stream.result.exception() for stream in streams if stream.result.exception() is not None]
    assert {type(error) for error in refused} == {SessionIdReused}
    assert len(refused) == 2
    assert "That is a fault of the agent" in str(refused[0])


async def test_an_answer_that_cannot_be_read_opens_nothing() -> None:
    async with wire_agent(capabilities=LOADS) as (agent, wire), anyio.create_task_group() as tasks:

        async def play() -> None:
            await wire.write(answer(await wire.expect("session/new"), {"session": "s"}))

        tasks.start_soon(play)
        with pytest.raises(AnswerUnreadable):
            async with agent.session():
                raise AssertionError("it opened")
        assert wire.unread == []


# What an agent cannot do


@pytest.mark.parametrize("how", ["load", "resume", "fork"])
async def test_what_is_not_advertised_is_refused_here(how: str) -> None:
    flag = "loadSession" if how == "load" else f"sessionCapabilities.{how}"
    handler = Played([done])
    async with scripted(agent=handler) as agent:
        with pytest.raises(CapabilityMissing) as caught:
            async with agent.session(**{how: "old"}):  # type: ignore[arg-type]
                raise AssertionError("it opened")
        assert caught.value.capability == flag
    assert handler.asked == []


async def test_lists_deletions_forks_and_folders_are_refused_where_not_advertised(tmp_path: Path) -> None:
    handler = Played([done])
    async with scripted(agent=handler) as agent, agent.session() as session:
        with pytest.raises(CapabilityMissing, match=r"sessionCapabilities\.list"):
            await agent.list_sessions()
        with pytest.raises(CapabilityMissing, match=r"sessionCapabilities\.delete"):
            await agent.delete_session("old")
        with pytest.raises(CapabilityMissing, match=r"sessionCapabilities\.additionalDirectories"):
            async with agent.session(additional_directories=[tmp_path]):
                raise AssertionError("it opened")
        with pytest.raises(CapabilityMissing, match=r"sessionCapabilities\.fork"):
            async with session.fork():
                raise AssertionError("it opened")
    assert handler.asked == ["session/new"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"load": "a", "resume": "b"}, ValueError, "load=…, resume=….*give only one"),
        ({"resume": "a", "fork": "b"}, ValueError, "give only one"),
        ({"load": 7}, TypeError, "load=7.*id of a session"),
        ({"additional_directories": "src"}, TypeError, "a list of folders"),
        ({"additional_directories": ["/nowhere/at/all"]}, NotADirectoryError, "additional_directories"),
        ({"cwd": "/nowhere/at/all"}, NotADirectoryError, "cwd"),
        ({"open_timeout": -1}, ValueError, "open_timeout"),
    ],
)
async def test_wrong_arguments_are_refused_at_once(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    handler = old()
    async with scripted(agent=handler) as agent:
        with pytest.raises(error, match=message):
            agent.session(**arguments)
    assert handler.asked == []


# Folders and servers


async def test_folders_and_servers_are_sent_on_every_way(tmp_path: Path) -> None:
    more = [tmp_path / "a", tmp_path / "b"]
    for folder in more:
        folder.mkdir()
    server = s.McpServerStdio(name="mine", command="/bin/true", args=(), env=())
    handler = old()
    ways: list[dict[str, Any]] = [{}, {"load": "old"}, {"resume": "old"}, {"fork": "old"}]
    async with scripted(agent=handler, cwd=tmp_path) as agent:
        for way in ways:
            async with agent.session(
                mcp_servers=[server], additional_directories=[more[0], more[1], more[0], tmp_path], **way
            ):
                pass
    opened = handler.requests("session/new", "session/load", "session/resume", "session/fork")
    assert len(opened) == 4
    for request in opened:
        assert request.cwd == str(tmp_path)
        assert request.additional_directories == tuple(map(str, more))
        assert next(known.name for known in request.mcp_servers) == "mine"
        assert len(request.mcp_servers) == 2


# Time


@pytest.mark.parametrize("how", ["new", "load", "resume", "fork"])
async def test_an_agent_that_hangs_is_given_up(how: str) -> None:
    source: dict[str, Any] = {} if how == "new" else {how: "old"}
    async with wire_agent(capabilities=REMEMBERS) as (agent, wire):
        with anyio.fail_after(30), pytest.raises(SessionOpenTimeout) as caught:
            async with agent.session(**source, open_timeout=0.2):
                raise AssertionError("it opened")
        assert (caught.value.how, caught.value.session_id) == (how, source.get(how))
        request = await wire.expect(f"session/{how}")
        given_up = await wire.expect("$/cancel_request")
        assert given_up["params"]["requestId"] == request["id"]
        await wire.write(say("late", "old"), answer(request, {"sessionId": "late"}))
        with anyio.move_on_after(0.2):
            async with agent.session(**source):
                raise AssertionError("it opened")
        again = await wire.expect(f"session/{how}")
        assert (await wire.expect("$/cancel_request"))["params"]["requestId"] == again["id"]
        assert wire.unread == []


# Lists


def known(count: int) -> list[s.SessionInfo]:
    return [s.SessionInfo(session_id=f"s{n}", cwd=f"/{n % 2}", title=f"T{n}") for n in range(count)]


async def test_all_pages_of_a_list_are_fetched() -> None:
    handler = old()
    handler.known = [
        *known(4),
        s.SessionInfo(
            session_id="s4", cwd="/1", updated_at="2026-01-01T00:00:00Z", additional_directories=("/x",)
        ),
    ]
    async with scripted(agent=handler) as agent:
        sessions = await agent.list_sessions()
        assert [info.id for info in sessions] == ["s0", "s1", "s2", "s3", "s4"]
        assert (sessions[0].cwd, sessions[0].title, sessions[0].updated_at) == ("/0", "T0", None)
        assert (sessions[4].title, sessions[4].updated_at) == (None, "2026-01-01T00:00:00Z")
        assert sessions[4].additional_directories == ("/x",)
        assert [info.id for info in await agent.list_sessions("/0")] == ["s0", "s2"]
        await agent.delete_session("s0")
        await agent.delete_session("s0")
        assert len(await agent.list_sessions()) == 4


@pytest.mark.parametrize(("repeats", "pages"), [(True, 3), (False, 1000)])
async def test_a_list_without_an_end_is_ended(
    repeats: bool, pages: int, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = itertools.count(1)

    async def list_more(_request: object, _proceed: Proceed) -> s.ListSessionsResponse:
        number = next(numbers)
        return s.ListSessionsResponse(
            sessions=tuple(known(2)), next_cursor=str(number % 2 if repeats else number)
        )

    handler = Played(capabilities=EVERY_SESSION_CALL, answers={"session/list": list_more})
    async with scripted(agent=handler) as agent:
        with anyio.fail_after(30):
            assert [info.id for info in await agent.list_sessions()] == ["s0", "s1"]
    assert len(handler.asked) == pages
    assert "lists sessions without end" in caplog.text


# After the end


async def test_a_session_that_was_left_refuses_everything() -> None:
    handler = old()
    async with scripted(agent=handler) as agent:
        async with agent.session() as session:
            pass
        for refused in (lambda: session.think().text("Go").stream(), session.fork):
            with pytest.raises(AgentClosed):
                refused()
        for waiting in (session.set_mode("m"), session.set_option("o", "v")):
            with pytest.raises(AgentClosed):
                await waiting
    with pytest.raises(AgentClosed):
        async with agent.session(resume="old"):
            raise AssertionError("it opened")


async def test_early_news_are_older_than_the_answer() -> None:
    """What was sent before the answer to `session/new` is applied before it, what comes behind it after."""
    mode: dict[str, Any] = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}]}
    opened: list[Session] = []

    async def play(agent: Agent, seen: anyio.Event) -> None:
        async with agent.session() as session:
            opened.append(session)
            assert (session.mode, session.title) == ("b", "after")
            seen.set()

    async with wire_agent(capabilities=LOADS) as (agent, wire), anyio.create_task_group() as tasks:
        seen = anyio.Event()
        tasks.start_soon(play, agent, seen)
        request = await wire.expect("session/new")
        await wire.write(
            update("current_mode_update", currentModeId="z"),
            update("session_info_update", title="before"),
            answer(request, {"sessionId": "s", "modes": mode}),
            update("current_mode_update", currentModeId="b"),
            update("session_info_update", title="after"),
        )
        with anyio.fail_after(30):
            await seen.wait()
    assert opened[0].mode == "b"


async def test_one_of_two_loads_of_a_session_at_once_is_refused() -> None:
    refused = 0
    handler = old()

    async def load(agent: Agent, loaded: anyio.Event) -> None:
        nonlocal refused
        try:
            async with agent.session(load="old"):
                await loaded.wait()
        except SessionInUse:
            refused += 1
            loaded.set()

    with anyio.fail_after(30):
        async with scripted(agent=handler) as agent, anyio.create_task_group() as tasks:
            loaded = anyio.Event()
            for _ in range(2):
                tasks.start_soon(load, agent, loaded)
    assert refused == 1
    assert handler.asked == ["session/load", "session/close"]
