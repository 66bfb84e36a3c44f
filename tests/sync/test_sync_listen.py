"""Typed handlers in the blocking API."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import anyio
import pytest
from sync.playing import playing

from thinkwell import AgentReported, ThoughtTimeout
from thinkwell.listen import AgentApproval, AgentProgress, AgentQuestion, Handlers, Transcript
from thinkwell.sync import listen, open_agent
from thinkwell.testing import script

if TYPE_CHECKING:
    from pathlib import Path

LINES = """\
import json, sys

def say(**message):
    print(json.dumps(message), flush=True)

for prompt in sys.stdin:
    say(type="progress", message="Reading", percent=10)
    say(type="question", question="Which?", options=["a", "b"], id=7)
    answer = json.loads(sys.stdin.readline())
    say(type="result", text=f"{answer['id']} {answer['value']}")
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    file = tmp_path / "agent.py"
    file.write_text(LINES)
    return [sys.executable, str(file)]


def test_handlers_may_block_and_use_other_agents(program: list[str]) -> None:
    transcript = Transcript()
    handlers = Handlers(transcript=transcript)
    heard: list[tuple[str, float | None]] = []

    with (
        playing(script.says("b")) as architect,
        open_agent(command=program, protocol="ndjson") as agent,
    ):

        @handlers.on("progress")
        def progress(message: AgentProgress) -> None:
            heard.append((message.message, message.percent))

        @handlers.on("question", by="architect")
        def decide(question: AgentQuestion) -> str:
            assert threading.current_thread() is not threading.main_thread()
            return architect.think().text(f"Answer: {question.question}").run()

        assert agent.think().text("Go").listen(handlers, timeout=30) == "7 b"

    assert heard == [("Reading", 10)]
    assert [(record.answer, record.by) for record in transcript] == [("b", "architect")]


def test_a_run_that_was_started_can_be_listened_to() -> None:
    handlers = Handlers()

    @handlers.on("approval")
    async def approve(approval: AgentApproval) -> bool:
        return approval.command == "ls"

    told = script.pauses(0.2).asks("List", input={"command": "ls"}, expect="allow_once").says("Done")
    with playing(told) as agent:
        stream = agent.think().text("Go").stream()
        assert listen(stream, handlers, timeout=30) == "Done"
        assert stream.result() == "Done"


def test_what_a_handler_raises_comes_out_as_it_is_and_ends_the_run() -> None:
    handlers = Handlers()

    @handlers.on("approval")
    def approve(approval: AgentApproval) -> bool:
        raise LookupError("no such rule")

    with (
        playing(script.asks("List", expect="cancelled").hangs()) as agent,
        pytest.raises(LookupError, match="no such rule"),
    ):
        agent.think().text("Go").listen(handlers)


def test_errors_and_timeouts_are_those_of_a_run() -> None:
    with (
        playing(script.fails(-32603, "out of paper")) as agent,
        pytest.raises(AgentReported, match="out of paper"),
    ):
        agent.think().text("Go").listen(Handlers())
    with playing(script.hangs()) as agent, pytest.raises(ThoughtTimeout):
        agent.think().text("Go").listen(Handlers(), timeout=0.3)


def test_no_handler_goes_on_behind_ctrl_c() -> None:
    handlers = Handlers()
    ended: list[str] = []

    @handlers.on("approval")
    async def approve(approval: AgentApproval) -> bool:
        os.kill(os.getpid(), signal.SIGINT)  # it reaches the main thread, which waits
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.3)
            ended.append("ended")
        return True

    with playing(script.asks("List", expect="cancelled").hangs()) as agent:
        with pytest.raises(KeyboardInterrupt):
            agent.think().text("Go").listen(handlers)
        assert ended == ["ended"]
