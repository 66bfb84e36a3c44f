"""The pipe to a program, in time that passes when nothing else can."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from limits.virtual import Stopwatch
from lines.program import Program, first, played

from thinkwell import AgentExited, AgentStartFailed, ThoughtCancelled, open_agent
from thinkwell import events as ev
from thinkwell_acp import memory_transport_pair
from thinkwell_acp.connection import WRITE_FAILURE_GRACE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from thinkwell import Agent
    from thinkwell.permissions import PermissionMode
    from thinkwell_acp import MemoryTransport

pytestmark = pytest.mark.virtual_time


class Odd:
    """A pipe that can be told to take nothing, and that takes long to close."""

    def __init__(self, inner: MemoryTransport) -> None:
        self.inner = inner
        self.broken = False
        self.sent: list[bytes] = []
        self.closing_takes = 0.0
        self.stubborn = False
        """Whether no cancellation reaches who receives."""

    async def receive(self) -> bytes:
        with anyio.CancelScope(shield=self.stubborn):
            return await self.inner.receive()
        raise AssertionError("nobody cancels that scope")

    async def send(self, item: bytes, /) -> None:
        self.sent.append(item)
        if self.broken:
            raise anyio.BrokenResourceError
        await self.inner.send(item)

    async def aclose(self) -> None:
        await self.inner.aclose()
        await anyio.sleep(self.closing_takes)


@asynccontextmanager
async def odd(*, asks: bool = False) -> AsyncGenerator[tuple[Agent, Program, Odd]]:
    ours, theirs = memory_transport_pair()
    pipe = Odd(ours)
    permissions: PermissionMode = "ask" if asks else "allow"
    async with open_agent(transport=pipe, protocol="ndjson", permissions=permissions) as agent:
        yield agent, Program(theirs), pipe


async def test_a_prompt_that_cannot_be_written_fails_after_a_while() -> None:
    async with odd() as (agent, program, pipe):
        one = agent.think().text("one").stream()
        await program.hear()
        pipe.broken = True
        await program.say("result", text="1")
        assert await one.result == "1"
        watch = Stopwatch()
        with pytest.raises(AgentExited, match="the program reads no more"):
            await agent.think().text("two").run()
        assert watch.seconds == WRITE_FAILURE_GRACE


async def test_parameters_that_cannot_be_written_fail_the_start() -> None:
    ours, _ = memory_transport_pair()
    pipe = Odd(ours)
    pipe.broken = True
    watch = Stopwatch()
    with pytest.raises(AgentStartFailed, match="the program reads no more"):
        async with open_agent(transport=pipe, protocol="ndjson", init={}):
            raise AssertionError("it started")
    assert watch.seconds == WRITE_FAILURE_GRACE


async def test_its_end_says_more_where_it_comes_in_that_while() -> None:
    async with odd() as (agent, program, pipe):
        pipe.broken = True
        stream = agent.think().text("one").stream()
        await anyio.wait_all_tasks_blocked()
        assert pipe.sent == [b"one\n"]
        await program.end()
        with pytest.raises(AgentExited) as caught:
            await stream.result
        assert caught.value.reason == ""


async def test_unread_answers_end_nothing() -> None:
    async with odd() as (agent, program, pipe):
        stream = agent.think().text("one").stream(include="all")
        await program.hear()
        pipe.broken = True
        await program.say("approval", description="a")
        await program.say("approval", description="b")
        await first(stream, ev.QuestionAnswered, 2)
        await anyio.sleep(2 * WRITE_FAILURE_GRACE)
        await program.say("result", text="done")
        assert await stream.result == "done"
    assert pipe.sent == [b"one\n", b'{"type":"response","in_reply_to":"approval","value":true}\n']


async def test_a_cancelled_run_does_not_wait_until_the_program_has_ended() -> None:
    async with odd() as (agent, program, pipe):
        pipe.closing_takes = 30
        watch = Stopwatch()
        stream = agent.think().text("one").stream()
        await program.hear()
        stream.cancel()
        await stream.wait()
        assert watch.seconds == 0
        with pytest.raises(ThoughtCancelled):
            await stream.result
        with pytest.raises(AgentExited, match="was ended by thinkwell, because a prompt was cancelled;"):
            await agent.think().text("two").run()
        assert watch.seconds == 30


async def test_a_cancelled_program_is_told_no_answers() -> None:
    async with odd(asks=True) as (agent, program, pipe):
        pipe.closing_takes = 30
        stream = agent.think().text("one").stream(include="all")
        await program.hear()
        await program.say("approval", description="a")
        await first(stream, ev.QuestionAsked)
        stream.cancel()
        await stream.wait()
        await anyio.sleep(10)
        assert pipe.sent == [b"one\n"]


async def test_leaving_the_block_while_the_program_is_being_ended() -> None:
    async with odd() as (agent, program, pipe):
        pipe.closing_takes = 30
        stream = agent.think().text("one").stream()
        await program.hear()
        stream.cancel()
        await stream.wait()
        waiting = agent.think().text("two").stream()
    with pytest.raises(ThoughtCancelled):
        await waiting.result


async def test_time_that_a_run_may_take_ends_the_program() -> None:
    async with played() as (agent, program):
        stream = agent.think().text("one").stream(timeout=5)
        assert await program.hear() == "one"
        await stream.wait()
        with pytest.raises(anyio.EndOfStream):
            await program.hear()


async def test_waiting_for_another_run_is_no_silence() -> None:
    async with played() as (agent, program):
        one = agent.think().text("one").stream(idle_timeout=5)
        two = agent.think().text("two").stream(idle_timeout=5)
        for _ in range(4):
            await anyio.sleep(4)
            await program.say("own")
        await program.say("result", text="1")
        assert (await program.hear(), await program.hear()) == ("one", "two")
        await anyio.sleep(2)
        await program.say("result", text="2")
        assert (await one.result, await two.result) == ("1", "2")


@pytest.mark.long
async def test_nothing_is_lost_while_both_sides_speak_at_once() -> None:
    async with played(permissions="allow") as (agent, program):
        stream = agent.think().text("one").stream(include="all")
        await program.hear()
        answers: list[str] = []

        async def hear() -> None:
            for _ in range(500):
                answers.append(await program.hear())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hear)
            for number in range(500):
                await program.write(b'{"type":"approval","description":"%d","id":%d}\n' % (number, number))
                await program.write(b'{"type":"partial","text":"%d "}\n' % number)
        await program.say("result")
        await stream.result
        assert sorted(answers) == sorted(
            f'{{"type":"response","in_reply_to":"approval","value":true,"id":{number}}}'
            for number in range(500)
        )
        assert stream.view.text == "".join(f"{number} " for number in range(500))


async def test_a_pipe_that_breaks_while_the_program_is_being_ended() -> None:
    async with odd() as (agent, program, pipe):
        pipe.closing_takes = 30
        watch = Stopwatch()
        stream = agent.think().text("one").stream()
        await program.hear()
        pipe.stubborn = True
        await program.say("partial", text="so ")
        await first(stream, ev.Message)  # what is received next is that the pipe was closed
        stream.cancel()
        await stream.wait()
        assert watch.seconds == 0
        with pytest.raises(AgentExited, match="was ended by thinkwell, because a prompt was cancelled;"):
            await agent.think().text("two").run()
        assert watch.seconds == 30


class Hasty:
    """A pipe that loses what comes once nobody waits for it any more, as those of some systems do."""

    def __init__(self, inner: MemoryTransport) -> None:
        self.inner = inner
        self.given_up = 0
        self.broken = False

    async def receive(self) -> bytes:
        try:
            data = await self.inner.receive()
        except anyio.get_cancelled_exc_class():
            self.given_up += 1
            raise
        if self.broken:
            raise OSError("it broke")
        return data

    async def send(self, item: bytes, /) -> None:
        await self.inner.send(item)

    async def aclose(self) -> None:
        await self.inner.aclose()


async def test_no_read_is_given_up_while_the_program_may_speak() -> None:
    ours, theirs = memory_transport_pair()
    program, pipe = Program(theirs), Hasty(ours)
    async with open_agent(transport=pipe, protocol="ndjson", permissions="allow") as agent:
        for number in range(3):
            stream = agent.think().text("Go").stream()
            await program.hear()
            assert await program.ask("approval", description="d") is True
            await program.say("result", text=str(number))
            assert await stream.result == str(number)
        assert pipe.given_up == 0
    assert pipe.given_up == 1


async def test_a_pipe_that_breaks_is_told_after_what_came_before() -> None:
    ours, theirs = memory_transport_pair()
    program, pipe = Program(theirs), Hasty(ours)
    async with open_agent(transport=pipe, protocol="ndjson") as agent:
        stream = agent.think().text("Go").stream()
        await program.hear()
        await program.say("partial", text="so far")
        await first(stream, ev.Message)
        pipe.broken = True
        await program.say("partial", text=" so good")
        with pytest.raises(AgentExited):
            await stream.result
        assert stream.view.text == "so far"
