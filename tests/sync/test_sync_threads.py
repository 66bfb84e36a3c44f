"""Several threads, several agents, and processes that were forked."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from sync.playing import playing, program

from thinkwell import Reply, ResultMissing, wait_for_answer
from thinkwell.events import QuestionAnswered
from thinkwell.permissions import PermissionPolicy
from thinkwell.questions import PermissionQuestion
from thinkwell.sync import open_agent, supervise
from thinkwell.testing import script

if TYPE_CHECKING:
    from pathlib import Path

QUIET = {"THINKWELL_BUILTIN_PACE": "0"}


def test_several_threads_use_one_agent(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")

    def work(number: int) -> tuple[int, str]:
        stream = agent.think(int).text(f"How many files are there? {number}").stream()
        events = list(stream)
        return stream.result(), events[-1].type

    with open_agent("builtin", cwd=tmp_path, env=QUIET) as agent, ThreadPoolExecutor(6) as threads:
        results = list(threads.map(work, range(12)))
    assert {result for result, _ in results} == {1}


def test_several_threads_have_agents_of_their_own() -> None:
    together = threading.Barrier(4)

    def work(number: int) -> str:
        with playing(script.says(f"I am {number}")) as agent:
            together.wait(30)
            return agent.think().text("Who?").run()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [f"I am {number}" for number in range(4)]


def test_several_threads_wait_for_one_run() -> None:
    release = threading.Event()

    def hold() -> None:
        """Wait."""
        assert release.wait(30)

    with playing(script.says("a").calls("hold").says("no result")) as agent:
        stream = agent.think(int).text("Go.").tool(hold).stream(reminders=0)
        with ThreadPoolExecutor(6) as threads:
            results = [threads.submit(stream.result) for _ in range(3)]
            readers = [threads.submit(list, stream) for _ in range(2)]
            shared = iter(stream)
            assert next(shared).seq
            release.set()
            for result in results:
                with pytest.raises(ResultMissing):
                    result.result(30)
            first, second = (reader.result(30) for reader in readers)
        assert first == second
        assert len(first) > 1
        assert list(shared) == first[1:]


def test_closing_in_one_thread_ends_the_waits_of_another() -> None:
    with ThreadPoolExecutor(2) as threads:
        agent = playing(script.says("a").hangs()).start()
        stream = agent.think().text("Go.").stream()
        events = threads.submit(list, stream)
        result = threads.submit(stream.exception)
        for _ in stream:
            break
        agent.close()
        assert len(events.result(30)) >= 1
        result.result(30)


def test_one_agent_supervises_another() -> None:
    judging = script.returns({"verdict": "allow", "reason": "harmless"})
    asking = script.asks("List the files", expect="allow_once").says("Done.")
    with playing(judging) as judge:
        supervisor = supervise(by=judge, instructions="Allow what is harmless.", timeout=30)
        assert repr(supervisor) == "<Supervisor by thinkwell.testing>"
        with playing(asking, permissions="ask", on_question=supervisor) as agent:
            stream = agent.think().text("Go.").stream(include="all")
            (answer,) = (event for event in stream if isinstance(event, QuestionAnswered))
            assert (answer.choice, answer.by, answer.why) == ("allow_once", "supervisor", "harmless")
            assert stream.result() == "Done."


def test_a_supervisor_in_a_chain_that_reviews_what_a_policy_allows() -> None:
    judging = script.returns({"verdict": "deny", "reason": "not today"})
    asking = script.asks("List the files", expect="reject_once").says("Done.")
    policy = PermissionPolicy(otherwise="allow")
    with playing(judging) as judge:
        handlers = [supervise(by=judge, instructions="Deny it.", reviews="all"), wait_for_answer]
        with playing(asking, permissions=policy, on_question=handlers) as agent:
            assert agent.think().text("Go.").run() == "Done."


def test_a_supervisor_that_is_tried_and_one_that_is_none() -> None:
    question = PermissionQuestion(
        id="1", title="Clean up", agent="worker", options=(), command="rm -rf build"
    )
    with playing(script.returns({"verdict": "deny", "reason": "no"})) as judge:
        reply = supervise(by=judge, instructions="Deny everything.")(question)
        assert reply == Reply("deny", "no")
    with pytest.raises(TypeError, match=r"give an open agent, from thinkwell.sync.open_agent"):
        supervise(by="judge", instructions="Deny everything.")  # type: ignore[arg-type]


def test_a_handler_may_block() -> None:
    asked = threading.Event()

    def handler(_: object) -> bool:
        asked.set()
        return True

    with playing(
        script.asks("May I?", expect="allow_once").says("Done."), permissions="ask", on_question=handler
    ) as agent:
        assert agent.think().text("Go.").run() == "Done."
    assert asked.is_set()


FORK = """
    import os, sys
    from thinkwell.sync import open_agent

    command = sys.argv[1:]
    with open_agent(command=command) as agent:
        stream = agent.think().text("Go.").stream()
        assert stream.result() == "a"
        child = os.fork()
        if not child:
            try:
                stream.result()
            except RuntimeError as exc:
                print(exc, flush=True)
            with open_agent(command=command) as own:
                print(own.think().text("Go.").run(), flush=True)
            agent.close()  # is not the child's
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(agent.think().text("Go on.").run(), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_was_forked() -> None:
    command = program(script.says("a").stops().says("b"))
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORK), *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == "" or "DeprecationWarning" in ran.stderr
    assert ran.stdout.splitlines()[1:] == ["a", "b"]
    assert ran.stdout.startswith("this process was forked from the one that opened the agent")
