"""A program that speaks lines is an agent as any other."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import anyio
import pytest
from lines.program import LIMIT, ON_ONE_LOOP, every, first, played, started

from thinkwell import (
    AgentExited,
    AgentReported,
    CapabilityMissing,
    ThoughtCancelled,
    open_agent,
    replay,
)
from thinkwell import events as ev

if TYPE_CHECKING:
    from pathlib import Path

    from thinkwell import Agent, Session
    from thinkwell.questions import Answer, Question

pytestmark = pytest.mark.anyio

ECHO = """
while True:
    say("result", text="You said: " + hear())
"""


async def test_one_process_serves_many_prompts(tmp_path: Path) -> None:
    async with started(tmp_path, ECHO) as agent:
        assert await agent.think().text("one").run() == "You said: one"
        assert await agent.think().text("two").run() == "You said: two"
        async with agent.session() as session:
            assert await session.think().text("three").run() == "You said: three"
            assert await session.think().text("four").run() == "You said: four"


async def test_runs_are_served_in_the_order_of_their_start() -> None:
    async with played() as (agent, program), agent.session() as one, agent.session() as two:
        starters: list[Agent | Session] = [agent, one, two, one, agent]
        streams = [starter.think().text(str(number)).stream() for number, starter in enumerate(starters)]
        for number in range(5):
            assert await program.hear() == str(number)
            await program.say("result", text=f"answer {number}")
        assert [await stream.result for stream in streams] == [f"answer {number}" for number in range(5)]


async def test_the_next_prompt_is_written_when_the_one_before_has_failed() -> None:
    async with played() as (agent, program):
        one = agent.think().text("one").stream()
        assert await program.hear() == "one"
        two = agent.think().text("two").stream()
        await program.say("error", message="no")
        assert await program.hear() == "two"
        await program.say("result", text="yes")
        with pytest.raises(AgentReported, match="no"):
            await one.result
        assert await two.result == "yes"


def go_on(_: Question) -> Answer:
    return {"answer": "go on"}


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
async def test_a_shell_program_is_an_agent(tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text(
        """
        while IFS= read -r prompt; do
            echo '{"type":"question","question":"Go on?"}'
            IFS= read -r answer
            case $answer in
            '{"type":"response","in_reply_to":"question","value":"go on"}') done="$prompt was done" ;;
            *) done="never" ;;
            esac
            printf '%s\n' "$done"
        done
        """,
        "utf-8",
    )
    with anyio.fail_after(LIMIT):
        async with open_agent(
            command=["sh", str(script)],
            protocol="ndjson",
            permissions="ask",
            on_question=go_on,
        ) as agent:
            assert await agent.think().text("a\nb").run() == r"a\nb was done"
            assert await agent.think().text("c").run() == "c was done"


async def test_what_it_is_called_and_can_do() -> None:
    async with played() as (agent, _):
        assert agent.info is not None
        assert (agent.info.name, agent.info.version) == ("agent", "")
        assert agent.capabilities.prompt_capabilities.embedded_context
        assert not agent.capabilities.prompt_capabilities.image
        with pytest.raises(CapabilityMissing):
            await agent.list_sessions()


async def test_a_program_that_prints_its_result_and_is_gone(tmp_path: Path) -> None:
    async with started(tmp_path, 'hear(); sys.stdout.write("42")') as agent:
        assert await agent.think().text("How many?").run() == "42"
        with pytest.raises(AgentExited) as caught:
            await agent.think().text("And now?").run()
    assert caught.value.exit_code == 0


@pytest.mark.parametrize("code", [0, 3])
async def test_a_program_that_ends_in_the_middle_of_a_prompt(tmp_path: Path, code: int) -> None:
    source = f"""
    hear()
    say("partial", text="so ")
    sys.stderr.write("that was it"); sys.exit({code})
    """.replace("\n    ", "\n")
    async with started(tmp_path, source) as agent:
        stream = agent.think().text("Go").stream()
        with pytest.raises(AgentExited, match="that was it") as caught:
            await stream.result
        assert caught.value.exit_code == code
        assert stream.view.text == "so "


async def test_a_program_that_is_gone_before_its_prompt(tmp_path: Path) -> None:
    async with started(tmp_path, "sys.exit(9)") as agent:
        with pytest.raises(AgentExited) as caught:
            await agent.think().text("Go").run()
    assert caught.value.exit_code == 9


async def test_every_run_that_waits_fails_with_the_process(tmp_path: Path) -> None:
    async with started(tmp_path, "hear(); sys.exit(1)") as agent:
        streams = [agent.think().text(str(number)).stream() for number in range(3)]
        for stream in streams:
            with pytest.raises(AgentExited):
                await stream.result


# Cancelling


async def test_cancelling_ends_the_program(tmp_path: Path) -> None:
    source = f"""
hear()
say("log", message=str({os.getpid()}))
say("partial", text="I beg")
sys.stdin.read()  # the end of its input is all that it is told
open({str(tmp_path / "ended")!r}, "w").close()
"""
    async with started(tmp_path, source) as agent:
        stream = agent.think().text("Go").stream(include="all")
        await first(stream, ev.Message)
        stream.cancel()
        with pytest.raises(ThoughtCancelled):
            await stream.result
        await stream.wait()
        with pytest.raises(AgentExited, match="was ended by thinkwell, because a prompt was cancelled;"):
            await agent.think().text("And now?").run()
        assert (tmp_path / "ended").exists()


@ON_ONE_LOOP  # it takes two seconds
async def test_a_program_that_ignores_the_end_of_its_input_is_terminated(tmp_path: Path) -> None:
    source = f"""
import signal, time
def leave(*args):
    open({str(tmp_path / "terminated")!r}, "w").close()
    sys.exit()
signal.signal(signal.SIGTERM, leave)
hear()
say("partial", text="I beg")
while True:
    time.sleep(60)
"""
    async with started(tmp_path, source) as agent:
        stream = agent.think().text("Go").stream(include="all")
        await first(stream, ev.Message)
        stream.cancel()
        with pytest.raises(AgentExited):
            await agent.think().text("And now?").run()
        assert (tmp_path / "terminated").exists()


async def test_runs_behind_a_cancelled_one_fail_with_the_program() -> None:
    async with played() as (agent, program):
        one = agent.think().text("one").stream()
        await program.hear()
        two = agent.think().text("two").stream()
        one.cancel()
        await one.wait()
        with pytest.raises(AgentExited, match="because a prompt was cancelled"):
            await two.result
        with pytest.raises(anyio.EndOfStream):
            await program.hear()


async def test_a_run_that_waits_is_cancelled_without_a_word_to_the_program() -> None:
    async with played() as (agent, program):
        one = agent.think().text("one").stream()
        assert await program.hear() == "one"
        two = agent.think().text("two").stream()
        three = agent.think().text("three").stream()
        two.cancel()
        with pytest.raises(ThoughtCancelled):
            await two.result
        await two.wait()
        await program.say("result", text="1")
        assert await program.hear() == "three"
        await program.say("result", text="3")
        assert (await one.result, await three.result) == ("1", "3")


async def test_a_cancelled_turn_hears_nothing_more_of_its_program(caplog: pytest.LogCaptureFixture) -> None:
    async with played() as (agent, program), agent.session() as session:
        stream = session.think().text("one").stream()
        await program.hear()
        await program.write(b'{"type":"partial","text":"half a li')
        await anyio.wait_all_tasks_blocked()
        stream.cancel()
        await stream.wait()
        with pytest.raises(AgentExited):
            await session.think().text("two").run()
        assert stream.late == ()
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_a_program_that_does_not_read_delays_nothing(tmp_path: Path) -> None:
    source = """
import select
end = select.poll()
end.register(0, 0)
end.poll()  # nothing is read, and the end of the input is noticed all the same
"""
    async with started(tmp_path, source, prompt_format="json") as agent:
        stream = agent.think().text("x" * 5_000_000).stream(include="all")
        await first(stream, ev.TurnStarted)
        stream.cancel()
        with anyio.fail_after(LIMIT):
            await stream.wait()  # the turn ends at once, whatever the program does


@pytest.mark.long
async def test_what_it_writes_is_read_while_it_does_not_read(tmp_path: Path) -> None:
    source = """
for number in range(20_000):
    say("partial", text="word " * 10)
say("result", text=str(len(hear())))
"""
    async with started(tmp_path, source) as agent:
        # Neither side reads before it has written more than a pipe holds.
        assert await agent.think().text("x" * 3_000_000).run() == "3000000"


async def test_a_program_need_not_read_answers(tmp_path: Path) -> None:
    source = """
import os
hear()
os.close(0)
say("approval", description="one"); say("approval", description="two")
for line in open(%r): pass
say("result", text="done")
"""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with started(tmp_path, source % str(gate), permissions="allow") as agent:
        stream = agent.think().text("one").stream(include="all")
        await first(stream, ev.QuestionAnswered, 2)
        await anyio.to_thread.run_sync(gate.write_text, "go\n")
        assert await stream.result == "done"


async def test_a_killed_program_says_so(tmp_path: Path) -> None:
    async with started(tmp_path, "import os\nhear(); os.kill(os.getpid(), 9)") as agent:
        with pytest.raises(AgentExited) as caught:
            await agent.think().text("Go").run()
    assert caught.value.exit_code == -signal.SIGKILL


# The rest of an agent


def choose_b(_: Question) -> Answer:
    return {"answer": "B"}


async def test_a_recording_is_replayed(tmp_path: Path) -> None:
    file = tmp_path / "run.ndjson"
    source = """
hear()
say("progress", message="Reading", percent=10)
answer = ask("question", question="Which?", options=["A", "B"], id=[1])
say("result", text="It is " + answer)
"""
    async with started(tmp_path, source, record=file, permissions="ask", on_question=choose_b) as agent:
        stream = agent.think().text("Go").stream(include="all")
        assert await stream.result == "It is B"
    again = replay(file, speed=0)
    assert await again.result == "It is B"
    assert [report.kind for report in await every(again, ev.Report)] == ["progress", "question"]


async def test_a_system_prompt_goes_before_the_prompt_where_that_is_wanted() -> None:
    async with played() as (agent, program):
        with pytest.raises(CapabilityMissing, match="systemPrompt"):
            agent.think().system("In rhyme.")
        stream = agent.think().text("Go").system("In rhyme.", fallback="prompt").stream()
        assert await program.hear() == r"<system>\nIn rhyme.\n</system>\n\nGo"
        await program.say("result", text="so")
        assert await stream.result == "so"


async def test_two_programs_do_not_hear_of_each_other() -> None:
    async with played() as (one, first_program), played() as (two, second_program):
        streams = one.think().text("1").stream(), two.think().text("2").stream()
        assert (await first_program.hear(), await second_program.hear()) == ("1", "2")
        await second_program.say("result", text="second")
        await first_program.say("result", text="first")
        assert [await stream.result for stream in streams] == ["first", "second"]
